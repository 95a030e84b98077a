"""`out=`: which types it may have, as PyTorch answered for each operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_db import OPS
from op_row import Op

import pytensorlib as torch

# Operators whose results PyTorch 2.13 casts to an `out=` of float64 ...
CASTS = set(
    """square exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma logit sinc i0 deg2rad
    rad2deg logical_not add sub mul div pow maximum minimum fmax fmin fmod remainder floor_divide
    atan2 hypot copysign logaddexp logaddexp2 xlogy eq ne lt le gt ge lerp addcmul addcdiv
    bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor logsumexp cumsum cumprod
    outer addr kron diff cat stack hstack vstack dstack""".split()
)
# ... and those that want the type of the result.
EXACT = set(
    """abs neg sign sgn ceil floor round trunc frac nan_to_num clamp_min clamp_max clamp
    signbit amax amin argmax argmin linalg.vector_norm logcumsumexp searchsorted nonzero matmul
    mm mv dot bmm addmm baddbmm addmv tensordot linalg.inv linalg.det linalg.solve
    linalg.solve_triangular cross tril triu diag gather take_along_dim take index_select
    masked_select scatter scatter_add index_add index_copy""".split()
)


def call(op: Op) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return the operator's function and arguments of float32."""

    def cast(v: Any) -> Any:
        if isinstance(v, np.ndarray):
            return torch.tensor(v.astype(np.float32) if v.dtype == np.float64 else v)
        if isinstance(v, (tuple, list)):
            return type(v)(cast(item) for item in v)
        return v

    sample = max(op.samples(), key=lambda s: s.elements() if s.elements() < 100 else -1)
    kwargs = {k: cast(v) for k, v in sample.kwargs.items()}
    return op.function(torch), [cast(v) for v in sample.args], kwargs


@pytest.mark.parametrize("op", [op for op in OPS if op.name in CASTS and op.out], ids=str)
def test_out_of_a_wider_type_holds_the_result(op: Op) -> None:
    function, args, kwargs = call(op)
    want = function(*args, **kwargs)
    out = torch.empty(want.shape, dtype=torch.float64)
    assert function(*args, **kwargs, out=out) is out
    assert torch.equal(out, want.double()) or np.allclose(out, want, rtol=3e-7, equal_nan=True)


@pytest.mark.parametrize("op", [op for op in OPS if op.name in EXACT and op.out], ids=str)
def test_out_of_another_type_is_refused_and_left_alone(op: Op) -> None:
    function, args, kwargs = call(op)
    out = torch.full(function(*args, **kwargs).shape, 7.0, dtype=torch.float64)
    with pytest.raises(RuntimeError):
        function(*args, **kwargs, out=out)
    assert bool((out == 7).all())


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: torch.sort(x, out=(y, y.long())),
        lambda x, y: torch.topk(x, 2, out=(y, y.long())),
        lambda x, y: torch.max(x, 0, out=(y, y.long())),
        lambda x, y: torch.cummax(x, 0, out=(y, y.long())),
        lambda x, y: torch.histc(x, 3, out=y),
        lambda x, y: torch.quantile(x, 0.5, out=y),
        lambda x, y: torch.bucketize(x, x, out=y),
        lambda x, y: torch.isin(x, x, out=y),
        lambda x, y: torch.any(x, 0, out=y),
        lambda x, y: torch.isposinf(x, out=y),
        lambda x, y: torch.isneginf(x, out=y),
        lambda x, y: torch.multinomial(x, 1, out=y),
        lambda x, y: torch.linalg.svdvals(x.view(1, 3), out=y),
    ],
)
def test_result_of_one_type_wants_an_out_of_it(write: Any) -> None:
    with pytest.raises(RuntimeError):
        write(torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda x, y: torch.sum(x, 0, out=y), 6),
        (lambda x, y: torch.mean(x, 0, out=y), 2),
        (lambda x, y: torch.prod(x, 0, out=y), 6),
        (lambda x, y: torch.var(x, 0, out=y), 1),
        (lambda x, y: torch.std(x, 0, out=y), 1),
        (lambda x, y: torch.nansum(x, 0, out=y), 6),
    ],
)
def test_reduction_casts_to_its_out(write: Any, want: float) -> None:
    y = torch.zeros((), dtype=torch.float64)
    write(torch.tensor([1.0, 2.0, 3.0]), y)
    assert y.item() == want


@pytest.mark.parametrize("name", ["max", "min", "angle"])
def test_result_that_is_copied_casts_to_its_out(name: str) -> None:
    x = torch.tensor([3.0])
    want = getattr(torch, name)(x).item()
    y = torch.zeros((1,) if name == "angle" else (), dtype=torch.float64)
    assert getattr(torch, name)(x, out=y).item() == want


def test_bitwise_not_wants_an_out_of_its_type() -> None:
    with pytest.raises(RuntimeError):
        torch.bitwise_not(
            torch.tensor([1], dtype=torch.int32), out=torch.zeros(1, dtype=torch.int64)
        )


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda y: torch.add(torch.ones(3), 1, out=y), [2, 2, 2]),
        (lambda y: torch.cumsum(torch.ones(3), 0, out=y), [1, 2, 3]),
        (
            lambda y: torch.sort(torch.tensor([3.0, 1, 2]), out=(y, torch.empty(0).long())),
            [1, 2, 3],
        ),
        (lambda y: torch.mv(torch.ones(3, 2), torch.ones(2), out=y), [2, 2, 2]),
        (lambda y: torch.arange(1, 4, out=y), [1, 2, 3]),
        (lambda y: torch.ones((3,), out=y), [1, 1, 1]),
    ],
)
def test_view_as_out_grows_within_the_memory_of_its_base(write: Any, want: list[int]) -> None:
    for size in (0, 1, 2, 4):
        base = torch.zeros(8)
        y = base[2 : 2 + size]
        write(y)
        assert y.tolist() == want
        assert base.tolist() == [0, 0, *want, 0, 0, 0]
        assert y.data_ptr() == base.data_ptr() + 8 and y._version == base._version
    base = torch.zeros(3)
    y = base[1:]
    write(y)  # beyond the end the memory grows
    assert y.tolist() == want
    assert base.tolist() == [0, *want[:2]]
    assert y.data_ptr() == base.data_ptr() + 4


def test_half_types_compute_with_operands_that_they_hold() -> None:
    # PyTorch 2.13's answers; a factor or addend that comes second keeps its digits.
    x = torch.tensor([5.3, -7.7, 100.5, 0.3]).half()
    for number in (torch.tensor(0.3001), torch.tensor(0.3001, dtype=torch.float64)):
        want = [0.199951171875, -0.197998046875, 0.28369140625, 0.0]
        assert torch.fmod(x, number).tolist() == want
        assert torch.sub(x, number).tolist() == [5.0, -8.0, 100.1875, 0.0]
    assert torch.sub(x, 0.3001).tolist() == [5.0, -8.0, 100.1875, 0.0]
    low, high = torch.tensor([0.001]).half(), torch.tensor(1e5)
    assert (low * high).item() == (low * 1e5).item() == pytest.approx(100.0, rel=1e-3)
    assert (high * low).item() == float("inf")
    assert torch.pow(torch.tensor([1.3, 2.3]).half(), 2.003).tolist() == [1.69140625, 5.3125]


def test_lerp_takes_a_weight_without_dimensions_of_any_type() -> None:
    x, y = torch.zeros(2).half(), torch.ones(2).half()
    for weight in (torch.tensor(0.25), torch.tensor(0.25, dtype=torch.float64)):
        z = torch.lerp(x, y, weight)
        assert z.dtype == torch.float16 and z.tolist() == [0.25, 0.25]


def test_nextafter_steps_in_the_type_of_its_result() -> None:
    for other in (torch.tensor(0.3001), torch.tensor(0.3001, dtype=torch.float64)):
        for dtype, want in ((torch.float16, 5.296875), (torch.bfloat16, 5.28125)):
            x = torch.tensor([5.3]).to(dtype)
            assert torch.nextafter(x, other).tolist() == [want]


def test_sums_and_products_take_the_type_of_out_before_they_add() -> None:
    # PyTorch 2.13: 2.6 is 2 before it is added.
    wants = {"cumsum": [1, 3], "cumprod": [1, 2], "sum": 3, "prod": 2}
    for name, want in wants.items():
        out = torch.empty(0, dtype=torch.int64)
        getattr(torch, name)(torch.tensor([1, 2.6]), 0, out=out)
        assert out.tolist() == want, name


def test_lists_of_results_go_to_lists_of_tensors() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    calls = [
        ("unbind_copy", (), x.unbind()),
        ("split_copy", (1,), x.split(1)),
        ("split_with_sizes_copy", ([1, 1],), x.split(1)),
    ]
    for name, args, want in calls:
        f = getattr(torch, name)
        for out in ([torch.empty(0), torch.empty(0)], tuple(torch.empty_like(t) for t in want)):
            assert f(x, *args, out=out) is None
            assert all(torch.equal(a, b) for a, b in zip(out, want, strict=True))
        with pytest.raises(
            RuntimeError, match="_out expected an out= argument of size 2, got size 1"
        ):
            f(x, *args, out=[torch.empty(0)])
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got"):
            f(x, *args, out=[torch.empty(0), torch.empty(0).double()])
        with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors"):
            f(x, *args, out=torch.empty(0))


def test_pools_write_to_what_they_are_given() -> None:
    nn = torch._C._nn
    x = torch.arange(32.0).reshape(1, 2, 4, 4)
    solid = x[None]
    for f, args in [
        (nn.avg_pool2d, (x, 2)),
        (nn.avg_pool2d, (x.to(memory_format=torch.channels_last), 2)),
        (nn.avg_pool3d, (solid, 2)),
        (nn.adaptive_avg_pool2d, (x, 2)),
        (nn.adaptive_avg_pool3d, (solid, 2)),
        (nn.max_unpool2d, (x, torch.arange(16).reshape(1, 1, 4, 4).expand(1, 2, 4, 4), (4, 4))),
    ]:
        out = torch.empty(0)
        assert f(*args, out=out) is out and torch.equal(out, f(*args))
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got"):
            f(*args, out=torch.empty(0, dtype=torch.float64))
    for f, args in [
        (nn.max_pool2d_with_indices, (x, 2)),
        (nn.max_pool3d_with_indices, (solid, 2)),
        (nn.adaptive_max_pool2d, (x, 2)),
        (nn.adaptive_max_pool3d, (solid, 2)),
        (nn.fractional_max_pool2d, (x, 2, 2, torch.full((1, 2, 2), 0.5))),
    ]:
        out, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
        got, want = f(*args, out=(out, indices)), f(*args)
        assert got[0] is out and torch.equal(out, want[0]) and torch.equal(indices, want[1])


NN = torch._C._nn
LINE, PLANE, SPACE = torch.rand(1, 1, 4), torch.rand(1, 1, 4, 4), torch.rand(1, 1, 2, 2, 2)
# Functions of `_C._nn` that have an `out=` in PyTorch 2.13, and their arguments.
PRIVATE: list[tuple[str, tuple[Any, ...]]] = [
    ("im2col", (PLANE, (2, 2), (1, 1), (0, 0), (1, 1))),
    ("col2im", (torch.rand(1, 4, 9), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1))),
    ("upsample_nearest1d", (LINE, (8,))),
    ("upsample_nearest2d", (PLANE, (8, 8))),
    ("upsample_nearest3d", (SPACE, (4, 4, 4))),
    ("_upsample_nearest_exact1d", (LINE, (8,))),
    ("_upsample_nearest_exact2d", (PLANE, (8, 8))),
    ("_upsample_nearest_exact3d", (SPACE, (4, 4, 4))),
    ("upsample_linear1d", (LINE, (8,), False)),
    ("upsample_bilinear2d", (PLANE, (8, 8), False)),
    ("upsample_trilinear3d", (SPACE, (4, 4, 4), False)),
    ("upsample_bicubic2d", (PLANE, (8, 8), False)),
    ("_upsample_bilinear2d_aa", (PLANE, (8, 8), False)),
    ("_upsample_bicubic2d_aa", (PLANE, (8, 8), False)),
    ("reflection_pad1d", (LINE, (1, 1))),
    ("reflection_pad2d", (PLANE, (1, 1, 1, 1))),
    ("reflection_pad3d", (SPACE, (1,) * 6)),
    ("replication_pad1d", (LINE, (1, 1))),
    ("replication_pad2d", (PLANE, (1, 1, 1, 1))),
    ("replication_pad3d", (SPACE, (1,) * 6)),
]


@pytest.mark.parametrize(("name", "args"), PRIVATE)
def test_out_of_an_image_function_gets_what_it_returns(name: str, args: tuple[Any, ...]) -> None:
    function = getattr(NN, name)
    out = torch.empty(0)
    assert function(*args, out=out) is out
    assert torch.equal(out, function(*args))
    for dtype in (torch.float64, torch.int32, torch.complex64):
        with pytest.raises(RuntimeError, match="dtype|scalar type"):
            function(*args, out=torch.empty(0, dtype=dtype))


def test_out_of_copied_views_of_complex_numbers() -> None:
    z = torch.tensor([1 + 2j])
    out, back = torch.empty(0), torch.empty(0, dtype=torch.complex64)
    assert torch.view_as_real_copy(z, out=out) is out
    assert out.tolist() == [[1.0, 2.0]]
    assert torch.view_as_complex_copy(out, out=back) is back
    assert back.tolist() == [1 + 2j]
    with pytest.raises(RuntimeError, match="to have dtype float, but got double"):
        torch.view_as_real_copy(z, out=torch.empty(0, dtype=torch.float64))


@pytest.mark.parametrize("given", [torch.float32, torch.uint8, torch.bool, torch.int64])
@pytest.mark.parametrize("to", [torch.uint8, torch.bool])
def test_any_and_all_write_bytes_and_bools(given: torch.dtype, to: torch.dtype) -> None:
    x = torch.tensor([[0.0, 0.5], [0.25, 2.0]]).mul(4).to(given)
    for f, want in ((torch.any, [1, 1]), (torch.all, [0, 1])):
        out = torch.full((2,), 3, dtype=torch.uint8).to(to)
        assert f(x, 0, out=out) is out
        assert out.dtype == to
        assert out.tolist() == want
        whole = torch.zeros((), dtype=to)
        f(x, out=whole)
        assert whole.item() == (max(want) if f is torch.any else min(want))
    half = torch.tensor([0.5, 0.25])  # no byte, but not zero
    assert torch.all(half, out=torch.zeros((), dtype=torch.uint8)).item() == 1
    for other in (torch.float32, torch.int64):
        with pytest.raises(RuntimeError, match="only supports bool tensor for result"):
            torch.any(x, out=torch.zeros((), dtype=other))


def test_out_whose_elements_share_memory_is_refused() -> None:
    x = torch.ones(1).as_strided((2, 2), (0, 0))
    index, five = torch.tensor([0]), torch.tensor(5.0)
    for out in (x, torch.zeros(1).expand(2, 2)):
        for write in (
            lambda o=out: torch.index_fill(x, 0, index, 5.0, out=o),
            lambda o=out: torch.masked_fill(x, x > 0, five, out=o),
            lambda o=out: torch.index_copy(x, 0, index, torch.ones(1, 2), out=o),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                write()
        assert out.unique().numel() == 1
    assert x.index_fill_(0, index, 5.0).tolist() == [[5, 5], [5, 5]]


def test_differences_of_nothing_are_nothing_with_out_too() -> None:
    out = torch.zeros(3)[:0]
    for n in (1, 2):
        assert torch.diff(torch.zeros(0), n=n, out=out).shape == (0,)


def test_normal_of_means_gives_out_the_shape_of_any_out() -> None:
    mean = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    out = torch.zeros(0)
    assert torch.normal(mean, 0.0, out=out) is out
    assert out.tolist() == mean.tolist()
