"""Every operator in a compiled function gives what it gives: bits, types, strides and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from op_calls import differentiable_calls, gradients, leaves, named, scalars_fit, tensors
from op_db import OPS, Op

import pytensorlib as torch
from pytensorlib import _C, wgpu

CALLS = 3


@pytest.fixture(autouse=True)
def small_work_waits() -> Any:
    """Let work on few elements wait too, as that on many does."""
    _C._Matched.set_tiny(0)
    yield
    _C._Matched.set_tiny(16)


def seen(value: Any) -> list[Any]:
    """Return all that there is to see of results."""

    def bits(t: Any) -> Any:
        if t.is_sparse or t.layout != torch.strided:
            t = t.to_dense()
        t = t.detach().resolve_conj().cpu().contiguous()
        # Which NaN it is depends on registers.
        if t.is_floating_point():
            t = t.masked_fill(t.isnan(), float("nan"))
        return t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""

    def facts(t: Any) -> Any:
        strides = t.stride() if t.layout == torch.strided else None
        return t.dtype, tuple(t.shape), strides, t.requires_grad, t._version, bits(t)

    return [facts(t) if isinstance(t, torch.Tensor) else t for t in leaves(value)]


def outcome(call: Callable[[], Any]) -> Any:
    torch.manual_seed(5)
    try:
        result = call()
    except Exception as error:
        return type(error), str(error)
    return seen(result), torch.get_rng_state().numpy().tobytes()


def check(function: Callable[..., Any], calls: list[tuple[Any, Any]]) -> None:
    compiled = torch.compile(function)
    for _ in range(CALLS):
        for args, kwargs in calls:
            want = outcome(lambda a=args, k=kwargs: function(*a, **k))
            assert outcome(lambda a=args, k=kwargs: compiled(*a, **k)) == want


# What memory held before is what they give.
OPEN = {"empty", "empty_like", "empty_strided", "new_empty", "empty_permuted", "new_empty_strided"}


@pytest.mark.parametrize("op", named([op for op in OPS if op.name not in OPEN]))
def test_results_of_a_compiled_call_are_those_of_the_call(op: Op) -> None:
    called = op.function(torch)

    def function(*args: Any, **kwargs: Any) -> Any:
        # Work before and after, so that the operator's waits between others.
        args = tuple(a.neg().neg() if is_plain(a) else a for a in args)
        result = called(*args, **kwargs)
        return result, [r.abs() for r in leaves(result) if is_plain(r)]

    def is_plain(t: Any) -> bool:
        return isinstance(t, torch.Tensor) and t.is_floating_point() and t.layout == torch.strided

    for dtype in op.dtypes:
        fits = [s for s in op.samples() if scalars_fit(s, dtype)][:6]
        calls = [tensors(s, dtype) for s in fits]
        check(function, [(c.args, c.kwargs) for c in calls])


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable]))
def test_gradients_of_a_compiled_call_are_those_of_the_call(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        check(lambda *x, f=function: gradients(f, x, list(x)), [(inputs, {})])


@pytest.mark.filterwarnings("ignore:wgpu.*runs on the CPU")
@pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
@pytest.mark.parametrize(
    "op", named([op for op in OPS if "float32" in op.dtypes and op.name not in OPEN])
)
def test_results_of_a_compiled_call_on_a_gpu_are_those_of_the_call(op: Op) -> None:
    from op_calls import mapped

    function = op.function(torch)
    calls = [tensors(s, "float32") for s in list(op.samples())[:3]]
    moved = [mapped((c.args, c.kwargs), lambda t: t.to("wgpu")) for c in calls]
    check(function, moved)
