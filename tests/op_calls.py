"""Calls of rows of the operator table: samples as tensors, and functions to differentiate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from op_row import Op, Sample

import pytensorlib as torch

GRADIENT_ELEMENTS = 40


def named(ops: list[Op]) -> list[Any]:
    """Return parameters with readable names; a second row of an operator gets a number."""
    seen: dict[str, int] = {}
    result = []
    for op in ops:
        count = seen[op.name] = seen.get(op.name, 0) + 1
        result.append(pytest.param(op, id=op.name if count == 1 else f"{op.name}-{count}"))
    return result


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to every array or tensor of nested arguments."""
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (np.ndarray, torch.Tensor, np.generic)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))


def to_tensor(dtype: str) -> Callable[[np.ndarray], Any]:
    def convert(array: np.ndarray) -> Any:
        if array.dtype != np.float64:
            # NumPy's own integers have 32 bits on Windows until its version 2.
            kind = "int64" if array.dtype == np.dtype(int) else str(array.dtype)
            return torch.tensor(array.tolist(), dtype=getattr(torch, kind)).reshape(array.shape)
        if not dtype.startswith(("float", "bfloat")):
            array = np.abs(array * 4) if dtype == "uint8" else array * 4
            array = np.round(array)
        return torch.from_numpy(np.array(array, order="C")).to(getattr(torch, dtype))

    return convert


def tensors(sample: Sample, dtype: str) -> Sample:
    convert = to_tensor(dtype)
    return Sample(mapped(sample.args, convert), mapped(sample.kwargs, convert))


def scalars_fit(sample: Sample, dtype: str) -> bool:
    """Tell whether Python floats among the arguments would promote an integer tensor."""
    return dtype.startswith(("float", "bfloat")) or not any(
        isinstance(v, float) for v in (*sample.args, *sample.kwargs.values())
    )


def small(op: Op) -> list[Sample]:
    """Return the samples whose Jacobians are small, at least the smallest one."""
    samples = [s for s in op.samples() if 0 < s.elements()]
    samples = [s for s in samples if all(a.size for a in leaves((s.args, s.kwargs)))]
    samples.sort(key=Sample.elements)
    return [s for s in samples if s.elements() <= GRADIENT_ELEMENTS] or samples[:1]


def differentiable_calls(
    op: Op, place: Callable[[Any], Any] = lambda t: t
) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions of tensors that move and such tensors; `place` puts all others somewhere."""
    function = op.function(torch)
    for sample in small(op):
        call = tensors(sample, "float64")
        places = {**dict(enumerate(call.args)), **call.kwargs}
        moving = [value for place, value in places.items() if place not in op.fixed]
        inputs = [t for t in leaves(moving) if t.is_floating_point()]

        def of_inputs(*given: Any, call: Sample = call, ids: Any = tuple(map(id, inputs))) -> Any:
            swap = dict(zip(ids, given, strict=True))
            args, kwargs = (
                mapped(v, lambda t: swap[id(t)] if id(t) in swap else place(t))
                for v in (call.args, call.kwargs)
            )
            results = function(*args, **kwargs)
            return tuple(r for r in leaves(results) if r.is_floating_point())

        yield of_inputs, tuple(t.clone().requires_grad_() for t in inputs)


def gradients(
    function: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[Any], change: Any = None
) -> list[Any]:
    """Return gradients of what the function gives, after a change of one of its inputs."""
    results = [y for y in function(*inputs) if y.requires_grad]
    if change is not None:
        with torch.no_grad():
            change.mul_(3).add_(1)
    ones = [torch.ones_like(y) for y in results]
    return list(torch.autograd.grad(results, wanted, ones, allow_unused=True)) if results else []


def has_wgpu() -> bool:
    try:
        torch.zeros(1, device="wgpu")
    except (RuntimeError, AssertionError, TypeError, ValueError):
        return False
    return True
