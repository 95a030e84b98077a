"""`out=`: which types it may have, as PyTorch answered for each operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_db import OPS, Op

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
    """signbit amax amin argmax argmin linalg.vector_norm logcumsumexp searchsorted nonzero matmul
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
