"""Recorded calls that are made again as they are, for gradients that have a graph."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from . import _C, _deterministic


class Read:
    """Stands, in what a function returns, for a number that is read of a tensor at the end."""


def modes() -> Any:
    """Return the modes and settings that tell calls apart, as what a dictionary can hold."""
    amp = sys.modules.get("pytensorlib.amp.autocast_mode")
    state = amp._state if amp else None
    cast: Any = ()
    if state is not None and any(state.enabled.values()):
        cast = tuple(state.enabled.items()), tuple(state.dtypes.items()), state.caches
    flags = pt.is_grad_enabled(), pt.is_inference_mode_enabled(), pt.is_anomaly_enabled()
    # Where a tensor is made that names no device, or "wgpu" without a number.
    places = pt.get_default_device(), _C._wgpu_current()
    settings = pt._precision, _deterministic._mode, _deterministic._fills
    return flags, pt.get_default_dtype(), places, settings, cast


def replaced(x: Any, given: Iterator[Any]) -> Any:
    """Return arguments with other tensors, in the order in which `_graph._kind` finds them."""
    if isinstance(x, pt.Tensor):
        return x if isinstance(x, pt.nn.Parameter) else next(given)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[replaced(v, given) for v in x])
    if type(x) in (tuple, list):
        return type(x)(replaced(v, given) for v in x)
    if type(x) is dict:
        return {k: replaced(v, given) for k, v in x.items()}
    return x


def parts(x: Any, spec: Any) -> list[Any]:
    """Return the tensors of a result in the order in which `_graph._spec` finds them."""
    if spec is pt.Tensor or spec is Read:
        return [x]
    kind, *inner = spec
    if kind is dict:
        return [t for k, part in inner for t in parts(x[k], part)]
    if kind is list or (issubclass(kind, tuple) and kind is not pt.Size):
        return [t for v, part in zip(x, inner, strict=True) for t in parts(v, part)]
    return []


def _same_bits(a: Any, b: Any) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = (t.detach().contiguous().reshape(-1).view(pt.uint8) for t in (a, b))
    return bool(pt.equal(a, b))


@contextlib.contextmanager
def _as_then(then: Any) -> Iterator[None]:
    """Put the default type, the default device and autocast of a call in force again."""
    _, dtype, (device, _), _, cast = then
    before = pt.get_default_dtype(), pt.get_default_device()
    with contextlib.ExitStack() as stack:
        if cast != modes()[-1]:
            enabled, types = (dict(part) for part in cast[:2]) if cast else ({}, {})
            for kind in ("cpu", "wgpu"):
                options = {"enabled": enabled.get(kind, False), "dtype": types.get(kind)}
                stack.enter_context(pt.autocast(kind, **options))
        pt.set_default_dtype(dtype)
        pt.set_default_device(device)
        try:
            yield
        finally:
            pt.set_default_dtype(before[0])
            pt.set_default_device(before[1])


def called(function: Callable[..., Any], args: Any, kwargs: Any, then: Any, state: Any) -> Any:
    """Return what a function gave in modes and with random numbers that there were then."""
    now = pt.get_rng_state()
    with _as_then(then):
        try:
            if state is not None:
                pt.set_rng_state(state)
            return function(*args, **kwargs)
        finally:
            pt.set_rng_state(now)


def gradients(
    found: list[Any],
    inputs: list[Any],
    results: list[tuple[int, Any]],
    grads: list[Any],
    ends: list[Any],
) -> list[Any] | None:
    """Return gradients with a graph; None where a result is not what it was.

    Parameters
    ----------
    found, inputs : list of Tensor
        The results of the call made again, and the arguments that it had.
    results : list
        Pairs of a result's number and what it was, None where that has been written to since.
    grads : list of Tensor or None
        The gradient of each of these results.
    ends : list
        Where gradients are asked for: numbers of arguments, and leaves.
    """
    if not all(was is None or _same_bits(found[i], was) for i, was in results):
        return None
    roots = [(found[i], g) for (i, _), g in zip(results, grads, strict=True) if g is not None]
    targets = [inputs[end] if isinstance(end, int) else end for end in ends]
    outputs, seeds = [y for y, _ in roots], [g for _, g in roots]
    return list(pt.autograd.grad(outputs, targets, seeds, create_graph=True, allow_unused=True))
