"""Indexing against NumPy, and gradients through views that are modified in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

VALUES = np.arange(24.0).reshape(2, 3, 4)
MASK = np.array([[True, False, True], [False, True, False]])
KEYS: list[Any] = [
    0,
    -1,
    slice(None, None, 2),
    (..., 1),
    (0, ..., None, 2),
    None,
    True,
    [0, 1, 1],
    np.array([[0, 1], [1, 1]]),
    (slice(None), [0, 2]),
    ([0, 1], slice(None), [1, 2]),
    ([[0], [1]], [0, 2]),
    MASK,
    (MASK, slice(0, 2)),
    (MASK, 0),
    [],
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_getitem_any_key_equals_numpy(key: Any) -> None:
    got = torch.from_numpy(VALUES.copy())[key]
    want = VALUES[np.array([], dtype=int) if isinstance(key, list) and not key else key]
    assert tuple(got.shape) == want.shape
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_setitem_any_key_equals_numpy(key: Any) -> None:
    want, got = VALUES.copy(), torch.from_numpy(VALUES.copy())
    want[np.array([], dtype=int) if isinstance(key, list) and not key else key] = 7
    got[key] = 7
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (5, IndexError),
        ([5], IndexError),
        ((0, 0, 0, 0), IndexError),
        (1.5, IndexError),
        (slice(None, None, -1), ValueError),
        (([0, 1], [0, 1, 2]), IndexError),
        (np.array([True, False, True]), IndexError),
        ("a", TypeError),
    ],
)
def test_getitem_bad_key_raises(key: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        torch.from_numpy(VALUES.copy())[key]


def test_inplace_on_view_rebases_base() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 2
    y[1:3].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 6.0, 6.0, 2.0]


def test_transpose_inplace_keeps_identity_and_gradient() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    y = x * 1
    before, row = id(y), y[0]
    assert id(y.t_()) == before
    row.mul_(10)
    assert y.shape == (3, 2)
    (y * torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [[10.0, 30.0, 50.0], [2.0, 4.0, 6.0]]


def test_unbind_output_modified_inplace_raises() -> None:
    y = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="modified inplace"):
        y.unbind()[0].mul_(2)


def test_as_strided_overlapping_gradient_sums() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x.as_strided((2, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 1.0]


def test_repeat_interleave_beyond_memory_raises() -> None:
    with pytest.raises(RuntimeError):
        torch.ones(()).repeat_interleave(2**50)


@pytest.mark.parametrize("inplace", [False, True])
def test_masked_fill_converts_its_value_as_pytorch_does(inplace: bool) -> None:
    mask = torch.tensor([True, False])

    def fill(dtype: Any, value: Any) -> Any:
        x = torch.ones(2, dtype=dtype)
        y = x.masked_fill_(mask, value) if inplace else x.masked_fill(mask, value)
        assert y.dtype == dtype and (y is x) == inplace
        return y.tolist()

    double = torch.float64
    for dtype, value, want in [
        (torch.bool, -2.7, True),
        (torch.bool, float("nan"), True),
        (torch.uint8, 2.7, 2),
        (torch.uint8, -3, 253),
        (torch.int8, -2.7, -2),
        (torch.int32, torch.tensor(-2.7), -2),
        (torch.int64, torch.tensor(2.7, dtype=double), 2),
        (torch.int64, 1e10, 10**10),
        (torch.float16, float("inf"), float("inf")),
        (torch.float32, torch.tensor(True), 1.0),
    ]:
        assert fill(dtype, value) == [want, 1]
    for dtype, value in [
        (torch.uint8, -0.5),
        (torch.uint8, 255.5),
        (torch.uint8, 300),
        (torch.int8, torch.tensor(200, dtype=torch.uint8)),
        (torch.int32, 2**40),
        (torch.int64, float("nan")),
        (torch.float16, 70000),
        (torch.float32, torch.tensor(1e300, dtype=double)),
    ]:
        with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
            fill(dtype, value)


def test_index_add_to_nothing_looks_at_no_index() -> None:
    for shape, source in [((0, 3), (2, 3)), ((3, 0), (2, 0)), ((0, 0), (2, 0))]:
        x, s = torch.zeros(shape), torch.ones(source, requires_grad=True)
        y = x.index_add(0, torch.tensor([0, 7]), s)
        assert y.shape == shape
        y.sum().backward()
        assert s.grad.tolist() == torch.zeros(source).tolist()
        assert x.index_add_(0, torch.tensor([0, 7]), s.detach()) is x
    for shape, error in [((0,), IndexError), ((3,), IndexError), ((3, 2), RuntimeError)]:
        with pytest.raises(error, match="index 7 is out of bounds"):
            torch.zeros(shape).index_add(0, torch.tensor([7]), torch.ones(1, *shape[1:]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scatter_rounds_sums_and_products_of_half_types_once(dtype: torch.dtype) -> None:
    n = 1000
    ones, at = torch.ones(n, 2, dtype=dtype), torch.zeros(n, 2, dtype=torch.int64)
    zeros = torch.zeros(3, 2, dtype=dtype)
    want = [[n, n], [0, 0], [0, 0]]
    assert zeros.scatter_add(0, at, ones).tolist() == want
    assert zeros.scatter_reduce(0, at, ones, "sum").tolist() == want
    columns = torch.zeros(3, 4, dtype=dtype)[:, ::2]
    assert columns.scatter_add_(0, at, ones).tolist() == want
    # PyTorch's values: float32 products of 100 factors of 1 + 2^-7.
    grow = torch.full((100,), 1 + 2**-7, dtype=dtype)
    product = torch.ones(1, dtype=dtype).scatter_reduce(0, at[:100, 0], grow, "prod")
    assert product.item() == torch.tensor((1 + 2**-7) ** 100, dtype=dtype).item()
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        columns.scatter_add_(0, at + 3, ones)
    assert columns.tolist() == want


@pytest.mark.parametrize(
    ("shape", "key", "place"),
    [
        ((5, 5), 5, 0),
        ((5, 5), (slice(None), 5), 1),
        ((2, 5), (0, 5), 1),
        ((2, 5, 5), (0, 0, 5), 2),
        ((2, 5, 5), (..., 5), 1),
        ((5, 5), torch.tensor([1, 5]), 0),
        ((2, 5), (slice(None), torch.tensor([5])), 0),
        ((2, 5, 5), (torch.tensor([0]), slice(None), torch.tensor([5])), 1),
        ((5, 5), ([0, 1], [0, 5]), 1),
    ],
)
def test_error_of_an_index_counts_dimensions_by_places_in_the_key(shape, key, place):
    # As PyTorch 2.13 does: numbers by their place in the key, tensors by their place among tensors.
    x = torch.zeros(shape)
    text = f"index 5 is out of bounds for dimension {place} with size 5"
    with pytest.raises(IndexError, match=text):
        x[key]
    with pytest.raises(IndexError, match=text):
        x[key] = 1


def values(t: torch.Tensor) -> list[float]:
    return t.detach().reshape(-1).tolist()


def test_take_along_dim_of_flat_elements_refuses_what_counts_from_the_end() -> None:
    x = torch.arange(4.0).reshape(2, 2)
    for index in (-1, -(2**63), 4):
        with pytest.raises(RuntimeError, match="out of bounds"):
            torch.take_along_dim(x, torch.tensor([[index]]))
    assert values(torch.take_along_dim(x, torch.tensor([[-1]]), dim=1)) == [1, 3]


def test_fill_diagonal_writes_where_numpy_does() -> None:
    for shape in ((3, 3), (5, 3), (7, 3), (3, 7), (10, 2), (4, 1), (0, 3), (3, 0), (2, 2, 2)):
        for wrap in (False, True):
            want = np.zeros(shape, np.float32)
            if min(shape) and (len(shape) == 2 or not wrap):
                np.fill_diagonal(want, 5, wrap)
            elif min(shape):
                np.fill_diagonal(want, 5)
            x = torch.zeros(shape)
            assert x.fill_diagonal_(5, wrap) is x
            np.testing.assert_array_equal(x.numpy(), want, err_msg=f"{shape} {wrap}")
            stepped = torch.zeros((*shape, 2))[..., 1]
            np.testing.assert_array_equal(stepped.fill_diagonal_(5, wrap).numpy(), want)
            reversed_strides = torch.zeros(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
            np.testing.assert_array_equal(reversed_strides.fill_diagonal_(5, wrap).numpy(), want)
    x = torch.ones(2, 3, requires_grad=True)
    (g,) = torch.autograd.grad((x * 2).fill_diagonal_(5).sum(), x)
    assert g.tolist() == [[0, 2, 2], [2, 0, 2]]
    for shape in ((3,), (2, 2, 3)):
        with pytest.raises(RuntimeError, match="dimensions"):
            torch.zeros(shape).fill_diagonal_(5)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(2, 2, dtype=torch.uint8).fill_diagonal_(300)


@pytest.mark.parametrize("index", [[[4, 0], [5, -3]], [[0, 0], [1, 1]], [[-2, -2], [-1, 3]]])
def test_take_along_dim_counts_on_past_both_ends(index: list[list[int]]) -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    want = np.take_along_axis(x.numpy(), np.array(index) % 2, 0)
    assert torch.take_along_dim(x, torch.tensor(index), 0).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ([1, (2, 3)], TypeError, "'tuple' object cannot be interpreted as an integer"),
        ([[1], [[2]]], TypeError, "'list' object cannot be interpreted as an integer"),
        ([1, np.array([1, 2])], TypeError, "'ndarray' object cannot be interpreted as an integer"),
        ([[1], 2], TypeError, "not a sequence"),
        ([1, 2j], TypeError, "'complex' object cannot be interpreted as an integer"),
        ([1, b"a"], TypeError, "invalid data type 'bytes'"),
        ([None, 3], RuntimeError, "Could not infer dtype of NoneType"),
        ([1, slice(1)], RuntimeError, "Could not infer dtype of slice"),
    ],
)
def test_index_list_of_what_is_no_number_is_refused(index, error, text: str) -> None:
    x = torch.zeros(5, 5, 5)
    for use in (lambda: x[(index,)], lambda: x.__setitem__((index,), 1)):
        with pytest.raises(error, match=text):
            use()


def test_index_list_takes_what_a_tensor_is_made_of() -> None:
    x = torch.arange(5)
    assert x[([torch.tensor([3]), 2],)].tolist() == [3, 2]
    assert x[([[torch.tensor(1)], [torch.tensor([2])]],)].tolist() == [[1], [2]]
    assert x[([1, 2.5],)].tolist() == [1, 2]
    assert x[([True, np.False_, True, False, False],)].tolist() == [0, 2]
    assert x[([True, 0],)].tolist() == [1, 0]
    assert x[([],)].tolist() == []


def test_repeat_interleave_once_is_a_copy() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for dim in (0, 1, None):
        y = torch.repeat_interleave(x, 1, dim)
        y.zero_()
    assert torch.repeat_interleave(x.t(), 2, 1).tolist() == [
        [0.0, 0.0, 3.0, 3.0],
        [1.0, 1.0, 4.0, 4.0],
        [2.0, 2.0, 5.0, 5.0],
    ]
    with pytest.raises(RuntimeError, match="negative"):
        torch.repeat_interleave(x, -1)
