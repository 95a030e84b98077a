"""Answers and errors of single calls, one line for each."""

import cmath
import math

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

INF, NAN = math.inf, math.nan


def same_number(got: float, want: float) -> bool:
    """Whether two floats agree, zeros and infinities with their signs."""
    if math.isnan(want):
        return math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= 1e-12 * max(1, abs(want))


PARTS = [0.0, -0.0, 1e-200, -1e-200, 0.3, -0.3, 1.0, -1.0, 2.0, -2.0, 25.0, -25.0]
LARGE = [720.0, -720.0, 1e200, -1e200, INF, -INF]
INVERSES = ["sqrt", "log", "log10", "asin", "acos", "atan", "asinh", "acosh", "atanh"]
FORWARDS = ["exp", "sin", "cos", "tan", "sinh", "cosh", "tanh"]


@pytest.mark.parametrize("name", INVERSES + FORWARDS)
def test_complex_functions_keep_to_their_side_of_a_cut(name: str) -> None:
    # Python's functions are those of C's Annex G: defined at signed zeros and infinities.
    parts = PARTS + (LARGE if name in INVERSES else [INF, -INF])
    grid = [complex(x, y) for x in parts for y in parts]
    got = getattr(torch, name)(torch.tensor(grid, dtype=torch.complex128)).tolist()
    checked = 0
    for z, w in zip(grid, got, strict=True):
        try:
            want = getattr(cmath, name)(z)
        except (ValueError, OverflowError):
            continue
        if cmath.isinf(z) and not cmath.isfinite(want) and name in FORWARDS:
            # The sign of an infinity or of a zero beside it is not determined.
            assert cmath.isnan(w) == cmath.isnan(want), (z, w, want)
            continue
        if cmath.isinf(z) and name in ("tan", "tanh"):
            assert w == want, (z, w, want)
            continue
        assert same_number(w.real, want.real) and same_number(w.imag, want.imag), (z, w, want)
        checked += 1
    assert checked >= 140


@pytest.mark.parametrize(
    ("name", "z", "want"),
    [
        ("asin", 2 + 0j, 1.5707963267948966 + 1.3169578969248166j),
        ("acos", 2 + 0j, complex(0, -1.3169578969248166)),
        ("atan", complex(INF, 0), 1.5707963267948966 + 0j),
        ("atanh", 1 + 0j, complex(INF, 0)),
        ("atanh", complex(-1, -0.0), complex(-INF, -0.0)),
        ("log2", 0j, complex(-INF, 0)),
        ("exp2", complex(INF, 0), complex(INF, 0)),
        ("log1p", complex(-1, 0), complex(-INF, 0)),
        ("expm1", complex(800, 0), complex(INF, 0)),
        ("sqrt", complex(1e308, 1e308), complex(1.09868411346781e154, 4.5508986056222735e153)),
    ],
)
def test_complex_functions_at_one_number(name: str, z: complex, want: complex) -> None:
    got = getattr(torch, name)(torch.tensor(z, dtype=torch.complex128)).item()
    assert same_number(got.real, want.real) and same_number(got.imag, want.imag), got


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4)])
def test_batch_norm_of_still_channels_without_eps_is_the_bias(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    x, bias = torch.ones(shape, dtype=dtype), torch.tensor([3.0, 4.0], dtype=dtype)
    y, mean, rstd = torch.native_batch_norm(x, None, bias, None, None, True, 0.1, 0.0)
    np.testing.assert_array_equal(
        y.transpose(1, -1).reshape(-1, 2).numpy(), np.tile([3.0, 4.0], (x.numel() // 2, 1))
    )
    assert (mean.tolist(), rstd.tolist()) == ([1, 1], [0, 0])
    if len(shape) == 3:
        assert F.instance_norm(x, eps=0.0).count_nonzero() == 0


def test_batch_norm_of_one_still_channel_leaves_the_others() -> None:
    y = torch.native_batch_norm(
        torch.tensor([[1.0, 2.0], [1.0, 3.0]]), None, None, None, None, True, 0.1, 0.0
    )
    assert y[0].tolist() == [[0, -1], [0, 1]]
    assert y[2].tolist() == [0, 2]


W = torch.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "bool", "int32", "int64"])
def test_embedding_bag_takes_narrow_indices_beside_wide_offsets(dtype: str) -> None:
    at = torch.tensor([1, 0], dtype=getattr(torch, dtype))
    for of in (torch.int64, torch.int32):
        y = torch.embedding_bag(W, at, torch.tensor([0], dtype=of))[0]
        assert y.tolist() == [[2, 4]]


@pytest.mark.parametrize(("mode", "want"), [(0, [0, 0]), (1, [1, 2]), (2, [[1, 1], [3, 3]])])
def test_embedding_bag_says_where_its_maxima_are(mode: int, want: list) -> None:
    last = torch.embedding_bag(W, torch.tensor([1, 2, 3]), torch.tensor([0, 1]), False, mode)[3]
    assert last.tolist() == want and last.dtype == torch.int64


ANSWERS = {
    "an empty region": (
        lambda: torch.as_strided_scatter(torch.ones(3, 2).t(), torch.ones(0), (0,), (1,)),
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
    ),
    "an empty tensor": (
        lambda: torch.as_strided_scatter(torch.zeros(2, 0), torch.zeros(0), (0,), (1,)),
        [[], []],
    ),
    "a kernel longer than time": (
        lambda: torch.tensor(
            torch.conv_tbc(torch.ones(2, 1, 2), torch.ones(3, 2, 4), torch.ones(4)).shape
        ),
        [0, 1, 4],
    ),
    "no time": (
        lambda: torch.tensor(
            torch.conv_tbc(torch.ones(0, 1, 2), torch.ones(1, 2, 4), torch.ones(4)).shape
        ),
        [0, 1, 4],
    ),
    "threshold": (lambda: F.threshold(torch.tensor([1, 9], dtype=torch.uint8), 3, 5), [5, 9]),
    # What overflows float32 is infinite, with the sign of the polynomial: NaN would say less.
    "hermite": (
        lambda: torch.special.hermite_polynomial_he(torch.tensor([1.0, 2.5]), 99),
        [INF, INF],
    ),
    "distance": (
        lambda: F.pairwise_distance(torch.tensor([[3 + 4j]]), torch.tensor([[0j]]), eps=0.0),
        [5.0],
    ),
    "triplet": (
        lambda: F.triplet_margin_loss(*[torch.ones(2, 2, dtype=torch.complex64)] * 3),
        1.0,
    ),
    "poisson": (
        lambda: F.poisson_nll_loss(
            *[torch.ones(2, dtype=torch.complex128)] * 2, log_input=False, eps=0.0
        ),
        1 + 0j,
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answer(case: str) -> None:
    call, want = ANSWERS[case]
    assert call().tolist() == want


def test_gradients_flow_through_detach_copy() -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch.detach_copy(x)
    assert y.requires_grad and y.data_ptr() != x.data_ptr()
    (3 * y).sum().backward()
    assert x.grad.tolist() == [3, 3]


Z, I2, B = torch.tensor([1j]), torch.ones(2, 2, dtype=torch.int64), torch.tensor([True])
NN = torch._C._nn
ERRORS = [
    (RuntimeError, lambda: torch.embedding_bag(I2, torch.tensor([0]), torch.tensor([0]))),
    (RuntimeError, lambda: torch.embedding_bag(W, torch.tensor([0.0]), torch.tensor([0]))),
    (
        RuntimeError,
        lambda: torch.embedding_bag(W, *[torch.tensor([0], dtype=torch.uint8)] * 2),
    ),
    (
        RuntimeError,
        lambda: torch.convolution(
            torch.ones(1, 4), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1
        ),
    ),
    (
        RuntimeError,
        lambda: torch.conv_tbc(torch.ones(2, 1, 2), torch.ones(4, 2, 4), torch.ones(4)),
    ),
    (RuntimeError, lambda: F.threshold(torch.tensor([1], dtype=torch.uint8), 3, 500)),
    (RuntimeError, lambda: F.threshold(torch.tensor([1], dtype=torch.int8), 300, 5)),
    (RuntimeError, lambda: F.threshold(torch.tensor([1.0]), 3, 1e40)),
    (RuntimeError, lambda: +B),
    (RuntimeError, lambda: torch.slice_copy(W, 0, 0, 2, 0)),
    (RuntimeError, lambda: torch.slice_scatter(W, W, 0, 0, 2, -1)),
    (IndexError, lambda: torch.slice_copy(torch.tensor(1.0))),
    (IndexError, lambda: torch.slice_scatter(torch.tensor(1.0), torch.tensor(1.0))),
    (ValueError, lambda: W[::-1]),
    (IndexError, lambda: torch.rot90(W, 1, [0, 2])),
    (IndexError, lambda: torch.rot90(W, 1, [3, 3])),
    (RuntimeError, lambda: torch.rot90(W, 1, [0, -2])),
    (NotImplementedError, lambda: torch.repeat_interleave(W[0], torch.tensor([1.0, 2.0]))),
    (NotImplementedError, lambda: torch.repeat_interleave(B)),
    (TypeError, lambda: ~W),
    (TypeError, lambda: ~Z),
    (NotImplementedError, lambda: torch.bitwise_not(W)),
    (RuntimeError, lambda: torch.maximum(Z, Z)),
    (RuntimeError, lambda: torch.minimum(Z, W[0])),
    (RuntimeError, lambda: torch.fmax(Z, Z)),
    (RuntimeError, lambda: torch.fmin(Z, Z)),
    (RuntimeError, lambda: torch.heaviside(Z, Z)),
    (RuntimeError, lambda: torch.isposinf(Z)),
    (RuntimeError, lambda: torch.isneginf(Z)),
    (RuntimeError, lambda: torch.deg2rad(Z)),
    (RuntimeError, lambda: torch.rad2deg(Z)),
    (NotImplementedError, lambda: torch.sign(Z)),
    (RuntimeError, lambda: torch.frexp(I2)),
    (RuntimeError, lambda: torch.frexp(Z)),
    (RuntimeError, lambda: NN.nll_loss(torch.ones(3, 2), torch.tensor([0, 1]))),
    (ValueError, lambda: NN.nll_loss(torch.ones(2), torch.tensor([0, 1]))),
    (ValueError, lambda: F.nll_loss(torch.ones(3, 2), torch.tensor([0, 1]))),
    (
        RuntimeError,
        lambda: NN.nll_loss2d(torch.ones(3, 2, 2, 2), torch.zeros(2, 2, 2, dtype=torch.int64)),
    ),
    (RuntimeError, lambda: F.scaled_dot_product_attention(I2, I2, I2)),
    (IndexError, lambda: torch.group_norm(torch.ones(4), 2)),
    (RuntimeError, lambda: F.group_norm(torch.ones(4), 2)),
    (IndexError, lambda: F.unfold(W, 1)),
    (RuntimeError, lambda: F.unfold(torch.ones(1, 1, 1, 2, 2), 1)),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_error_class(case: int) -> None:
    kind, call = ERRORS[case]
    with pytest.raises(kind) as raised:
        call()
    # NotImplementedError is a RuntimeError as well.
    assert raised.type is kind
