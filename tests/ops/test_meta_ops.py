"""Operators on ``meta``: results are the CPU's in everything but their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from op_calls import differentiable_calls, gradients, leaves, mapped, named, scalars_fit, tensors
from op_db import OPS, Op
from op_row import Sample
from test_ops import LAYOUT_MATTERS, LAYOUTS

import pytensorlib as torch

# What reads data: it tells the shape of the result, or is the result, or the row itself reads it.
READ = frozenset(
    """
    Tensor.cpu Tensor.nonzero_numpy allclose argwhere bincount equal histogram linalg.ldl_factor
    linalg.ldl_factor_ex masked_select nn.functional.gaussian_nll_loss nonzero repeat_interleave
    unique unique_consecutive unique_dim
    """.split()
)


def reads(op: Op, call: Sample) -> bool:
    counted = op.name == "repeat_interleave" and isinstance(call.args[1], int)
    return op.name in READ and not counted


def on_meta(value: Any) -> Any:
    """Return the same with tensors of the same strides on meta in the place of others."""

    def alike(t: Any) -> Any:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")

    return mapped(value, alike)


def described(value: Any) -> list[Any]:
    """Return all that is known of tensors without their elements; other values as they are."""
    if not isinstance(value, (torch.Tensor, list, tuple, dict)):
        return [value]
    return [(tuple(t.shape), t.stride(), t.dtype) for t in leaves(value)]


def compare(function: Callable[..., Any], call: Sample) -> None:
    args, kwargs = on_meta(call.args), on_meta(call.kwargs)
    want = function(*call.args, **call.kwargs)
    # Those that make tensors of numbers alone take the default device.
    with torch.device("meta"):
        got = function(*args, **kwargs)
    assert described(got) == described(want)
    assert all(t.is_meta for t in leaves(got))


@pytest.mark.parametrize("op", named(OPS))
def test_results_are_those_of_the_cpu_without_elements(op: Op) -> None:
    for dtype in op.dtypes:
        for sample in op.samples():
            if not scalars_fit(sample, dtype):
                continue
            call = tensors(sample, dtype)
            if reads(op, call):
                with pytest.raises(NotImplementedError, match="meta tensor"):
                    op.function(torch)(*on_meta(call.args), **on_meta(call.kwargs))
            else:
                compare(op.function(torch), call)


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda f: f.__name__)
@pytest.mark.parametrize("op", named([op for op in OPS if op.name not in READ]))
def test_results_are_those_of_the_cpu_in_any_layout(op: Op, layout: Callable[[Any], Any]) -> None:
    if op.name in LAYOUT_MATTERS:
        pytest.skip("the layout decides whether it is possible")
    function = op.function(torch)

    def laid(t: Any) -> Any:
        return layout(t) if t.dim() else t

    for sample in op.samples():
        call = tensors(sample, "float32" if "float32" in op.dtypes else op.dtypes[0])
        compare(function, Sample(mapped(call.args, laid), mapped(call.kwargs, laid)))


@pytest.mark.parametrize(
    "op", named([op for op in OPS if op.differentiable and op.name not in READ])
)
def test_gradients_are_those_of_the_cpu_without_elements(op: Op) -> None:
    here, there = differentiable_calls(op), differentiable_calls(op, on_meta)
    for (function, inputs), (same, _) in zip(here, there, strict=True):
        want = gradients(function, inputs, list(inputs))
        x = tuple(on_meta(t.detach()).requires_grad_() for t in inputs)
        got = gradients(same, x, list(x))
        assert described(got) == described(want)
        assert all(t.is_meta for t in leaves(got))


@pytest.mark.parametrize("op", named([op for op in OPS if op.out or op.inplace]))
def test_results_written_to_tensors_are_checked_and_leave_nothing(op: Op) -> None:
    function = op.function(torch)
    for sample in op.samples():
        call = tensors(sample, "float64")
        want = function(*call.args, **call.kwargs)
        args, kwargs = on_meta(call.args), on_meta(call.kwargs)
        if op.out and op.name not in READ:
            out = torch.empty(0, dtype=want.dtype, device="meta")
            got = function(*args, **kwargs, out=out)
            assert got is out
            assert got.shape == want.shape
            assert got.is_meta
        x, *rest = args
        if op.inplace and want.shape == x.shape:
            y = x.clone()
            z = op.in_place(torch)(y, *rest, **kwargs)
            assert z is y
            assert described(z) == described(x.clone())
