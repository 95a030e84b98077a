"""What ops say of their results beforehand, from shapes, strides, types and devices alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from op_calls import differentiable_calls, gradients, mapped, named, scalars_fit, tensors
from op_db import OPS, Op
from test_ops import LAYOUT_MATTERS, LAYOUTS

import pytensorlib as torch

checked = torch._C._checked


@pytest.mark.parametrize("op", named(OPS))
def test_results_are_as_planned(op: Op) -> None:
    for dtype in op.dtypes:
        for sample in op.samples():
            if scalars_fit(sample, dtype):
                call = tensors(sample, dtype)
                checked(lambda c=call: op.function(torch)(*c.args, **c.kwargs))


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable]))
def test_gradients_are_as_planned(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        checked(lambda f=function, x=inputs: gradients(f, x, list(x)))


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda f: f.__name__)
@pytest.mark.parametrize("op", named(OPS))
def test_results_are_as_planned_in_any_layout(op: Op, layout: Callable[[Any], Any]) -> None:
    if op.name in LAYOUT_MATTERS:
        pytest.skip("the layout decides whether it is possible")
    function = op.function(torch)
    for sample in op.samples():
        call = tensors(sample, "float32" if "float32" in op.dtypes else op.dtypes[0])
        args, kwargs = (
            mapped(v, lambda t: layout(t) if t.dim() else t) for v in (call.args, call.kwargs)
        )
        checked(lambda a=args, k=kwargs: function(*a, **k))


@pytest.mark.parametrize("op", named([op for op in OPS if op.out]))
def test_results_go_where_planned(op: Op) -> None:
    for sample in op.samples():
        call = tensors(sample, "float64")
        x, *rest = call.args
        want = checked(lambda c=call: op.function(torch)(*c.args, **c.kwargs))
        out = torch.empty(0, dtype=want.dtype)
        checked(lambda c=call, o=out: op.function(torch)(*c.args, **c.kwargs, out=o))
        if op.inplace and want.shape == x.shape:
            checked(lambda x=x, r=rest, k=call.kwargs: getattr(x.clone(), op.name + "_")(*r, **k))


@pytest.mark.parametrize("call", ["sum", "amax", "flip", "logsumexp", "mean", "max"])
def test_named_dimensions_of_more_than_64_raise(call: str) -> None:
    x = torch.ones([1] * 65)
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        getattr(x, call)(64)
    getattr(torch.ones([1] * 64), call)(63)


def test_all_of_more_than_64_dimensions_reduce() -> None:
    x = torch.full([1] * 65 + [3], 2.0)
    assert x.sum() == 6
    assert x.mean() == 2
    assert x.max() == 2
    assert x.norm() == 12**0.5


def test_a_repetition_of_many_dimensions_has_a_gradient() -> None:
    x = torch.ones([1] * 40 + [3], requires_grad=True)
    x.repeat([2] + [1] * 40 + [2]).sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [4.0, 4.0, 4.0]
