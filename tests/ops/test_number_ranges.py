"""Which numbers a type takes, and what it makes of them: recorded of PyTorch 2.13."""

import numpy as np
import pytest

import pytensorlib as torch

INF, NAN = float("inf"), float("nan")
MASK = [True, False, True]
OVERFLOW = "without overflow"


def filled(dtype, value):
    return torch.zeros(3, dtype=dtype).fill_(value)


def full(dtype, value):
    return torch.full((3,), value, dtype=dtype)


def full_like(dtype, value):
    return torch.full_like(torch.zeros(3, dtype=dtype), value)


def masked(dtype, value):
    x = torch.zeros(3, dtype=dtype)
    return x.masked_fill(torch.tensor(MASK), value)[::2]


def masked_in_place(dtype, value):
    x = torch.zeros(3, dtype=dtype)
    return x.masked_fill_(torch.tensor(MASK), value)[::2]


def scattered(dtype, value):
    return torch.zeros(3, dtype=dtype).scatter(0, torch.tensor([1]), value)[1:2]


def padded(dtype, value):
    return torch.constant_pad_nd(torch.zeros(1, dtype=dtype), (1, 0), value)[:1]


WRITERS = [filled, full, full_like, masked, masked_in_place, scattered, padded]
HELD = [
    (torch.bool, 1j, True),
    (torch.bool, 0j, False),
    (torch.bool, 1 + 0j, True),
    (torch.bool, 1e300, True),
    (torch.bool, -0.5, True),
    (torch.uint8, 1 + 0j, 1),
    (torch.uint8, -1, 255),
    (torch.int8, 2 + 0j, 2),
    (torch.int64, 0j, 0),
    (torch.float16, 1.5 + 0j, 1.5),
    (torch.float32, -2 + 0j, -2.0),
    (torch.float64, complex(1e300, 0), 1e300),
    (torch.float32, INF, INF),
    (torch.complex64, INF, complex(INF, 0)),
    (torch.complex128, complex(0, 1e300), complex(0, 1e300)),
]
REFUSED = [
    (torch.uint8, 1j),
    (torch.uint8, 300),
    (torch.uint8, -1.5),
    (torch.uint8, complex(1e300, 0)),
    (torch.int8, 127.5),
    (torch.int16, 70000),
    (torch.int32, 2**40),
    (torch.int64, NAN),
    (torch.float16, 70000),
    (torch.float16, 65519.0),
    (torch.bfloat16, 1e300),
    (torch.float32, 1e300),
    (torch.float32, 1j),
    (torch.float32, complex(1e300, 0)),
    (torch.float64, 1j),
    (torch.complex64, 1e300),
    (torch.complex64, complex(0, 1e300)),
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_number_that_a_type_holds_is_written_as_one_of_it(write):
    for dtype, value, want in HELD:
        assert set(write(dtype, value).tolist()) == {want}, (dtype, value)


@pytest.mark.parametrize("write", WRITERS)
def test_a_number_that_a_type_cannot_hold_is_refused(write):
    for dtype, value in REFUSED:
        with pytest.raises(RuntimeError, match=OVERFLOW):
            write(dtype, value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "write",
    [
        lambda t, v: torch.zeros(1, dtype=t).fill_(v),
        lambda t, v: torch.zeros((), dtype=t).fill_(v),
        lambda t, v: torch.zeros(3, dtype=t)[:1].fill_(v),
        lambda t, v: torch.full((1, 1), v, dtype=t),
        lambda t, v: torch.scalar_tensor(v, dtype=t),
        lambda t, v: torch.zeros(1, dtype=t).new_full((), v),
    ],
)
def test_one_element_of_a_half_type_becomes_infinite(dtype, write):
    assert write(dtype, 1e300).item() == INF
    with pytest.raises(RuntimeError, match=OVERFLOW):
        write(dtype, 1j)
    with pytest.raises(RuntimeError, match=OVERFLOW):
        torch.zeros(0, dtype=dtype).fill_(1e300)


def test_fill_with_a_tensor_converts_as_a_copy_does():
    assert torch.zeros(2, dtype=torch.uint8).fill_(torch.tensor(300)).tolist() == [44, 44]
    assert torch.zeros(2, dtype=torch.bool).fill_(torch.tensor(1j)).tolist() == [True, True]
    wide = torch.tensor(1e300, dtype=torch.float64)
    assert torch.zeros(2).fill_(wide).tolist() == [INF, INF]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.masked_fill_(torch.tensor(MASK), v),
        lambda x, v: x.masked_fill(torch.tensor(MASK), v),
        lambda x, v: x.index_fill(0, torch.tensor([0]), v),
        lambda x, v: x.__setitem__(x == 0, v),
    ],
)
def test_a_tensor_that_stands_for_a_number_has_to_fit(write):
    for dtype, value in [
        (torch.uint8, torch.tensor(300)),
        (torch.float32, torch.tensor(1e300).double()),
    ]:
        value = torch.tensor(1e300, dtype=torch.float64) if dtype is torch.float32 else value
        with pytest.raises(RuntimeError, match=OVERFLOW):
            write(torch.zeros(3, dtype=dtype), value)


def test_masked_fill_takes_complex_tensors_without_an_imaginary_part():
    x = torch.ones(3)
    assert x.masked_fill(torch.tensor(MASK), torch.tensor(2 + 0j)).tolist() == [2, 1, 2]
    with pytest.raises(RuntimeError, match=OVERFLOW):
        x.masked_fill_(torch.tensor(MASK), torch.tensor(1j))


def test_an_assigned_number_has_to_fit():
    half = torch.zeros(3, dtype=torch.float16)
    half[1] = 1e300
    half[half == 0] = 1e300 + 0j
    assert half.tolist() == [INF, INF, INF]
    for value in [1e300, complex(0, 1e300)]:
        with pytest.raises(RuntimeError, match=OVERFLOW):
            torch.zeros(3, dtype=torch.complex64)[0] = value
    with pytest.raises(RuntimeError, match=OVERFLOW):
        torch.zeros(3)[torch.tensor([0])] = 1e300
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.zeros(3, dtype=torch.uint64)[0] = 2**63


def test_assigned_numpy_integers_count_as_numbers():
    x = torch.zeros(3)
    x[0], x[1:] = np.int64(3), np.uint8(7)
    assert x.tolist() == [3, 7, 7]
    for value in [np.float32(1), np.bool_(True), np.complex64(1)]:
        with pytest.raises(TypeError, match="can't assign a numpy"):
            x[0] = value


def test_an_assigned_tensor_of_another_type_is_refused_except_for_one_number_under_a_mask():
    x, wide = torch.zeros(3), torch.tensor([1.5], dtype=torch.float64)
    x[torch.tensor(MASK)] = wide
    assert x.tolist() == [1.5, 0, 1.5]
    for value in [wide, wide[0]]:
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            x[torch.tensor([0])] = value


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (-0.5, torch.uint8, RuntimeError),
        (-0.5, torch.uint16, RuntimeError),
        (127.5, torch.int8, RuntimeError),
        (2147483647.5, torch.int32, RuntimeError),
        (1j, torch.int32, TypeError),
        ([1j], torch.float32, TypeError),
        (2**64, torch.uint64, OverflowError),
        (10**400, torch.complex64, OverflowError),
    ],
)
def test_tensor_refuses_what_a_type_cannot_hold(value, dtype, error):
    with pytest.raises(error):
        torch.tensor(value, dtype=dtype)


def test_tensor_takes_numbers_of_any_size_as_bool_and_complex():
    assert torch.tensor([1j, 0j, 10**400], dtype=torch.bool).tolist() == [True, False, True]
    assert torch.tensor(2**70, dtype=torch.complex64).item() == 2**70


def test_a_factor_of_bool_is_whether_it_is_zero():
    a, b = torch.tensor([True, False]), torch.tensor([True, True])
    for alpha in [-1, 2, 128, True]:
        assert torch.add(a, b, alpha=alpha).tolist() == [True, True]
    assert torch.add(a, b, alpha=0).tolist() == [True, False]
    assert a.clone().add_(b, alpha=-1).tolist() == [True, True]


def test_powers_of_bool_with_a_bool_exponent():
    x = torch.tensor([True, False])
    assert (x**True).tolist() == [True, False]
    assert (x**False).tolist() == [True, True]
    assert torch.pow(x, True).dtype == torch.bool
    assert x.clone().pow_(False).tolist() == [True, True]


@pytest.mark.parametrize(("name", "want"), [("sum", [3, 9]), ("prod", [2, 20])])
def test_a_sum_is_computed_in_the_type_of_out(name, want):
    x = torch.tensor([[1.5, 2.5], [4.5, 5.5]])
    out = torch.empty(2, dtype=torch.uint8)
    assert getattr(torch, name)(x, 1, out=out).tolist() == want
    flags = torch.empty(2, dtype=torch.bool)
    assert getattr(torch, name)(x, 1, out=flags).tolist() == [True, True]


@pytest.mark.parametrize(("name", "want"), [("cumsum", [1, 3]), ("cumprod", [1, 2])])
def test_running_sums_are_computed_in_the_type_of_out(name, want):
    out = torch.empty(2, dtype=torch.int64)
    assert getattr(torch, name)(torch.tensor([1.5, 2.5]), 0, out=out).tolist() == want
