"""Operators that a program defined, on a GPU and on the host: `torch.wgpu.check_against`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt

from .. import _C

__all__ = ["backward", "is_wanted", "kernel"]


def is_wanted(tensors: Sequence[Any]) -> bool:
    """Return whether what is computed from these tensors is to be compared with the host."""
    return _C._is_comparing() and any(_is_there(t) for t in tensors)


def _is_there(t: Any) -> bool:
    dense = isinstance(t, pt.Tensor) and t.layout == pt.strided
    return dense and t._is_gpu


def _tensors(value: Any) -> list[Any]:
    """Return the tensors on a GPU in a value, each once."""
    if isinstance(value, (tuple, list)):
        found = [t for item in value for t in _tensors(item)]
    elif isinstance(value, dict):
        found = _tensors(list(value.values()))
    else:
        found = [value] if _is_there(value) else []
    return list({id(t): t for t in found}.values())


def _replaced(value: Any, copies: dict[int, Any]) -> Any:
    """Return a value with copies in the place of its tensors."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(item, copies) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_replaced(item, copies) for item in value)
    if isinstance(value, dict):
        return {key: _replaced(item, copies) for key, item in value.items()}
    return copies.get(id(value), value)


def _copied(value: Any) -> Any:
    tensors = _tensors(value)
    return _replaced(
        value, dict(zip(map(id, tensors), _C._copied_to_compare(tensors), strict=True))
    )


def _on_host(run: Callable[[], Any]) -> Any:
    """Return what a function gives, in a tuple; None where there is nothing to compare with."""
    state = pt.get_rng_state()
    try:
        with pt.no_grad():
            found = (run(),)
    except (NotImplementedError, RuntimeError):
        found = None  # only the GPU can compute it
    if not pt.equal(pt.get_rng_state(), state):
        # Random numbers are other ones on each device.
        pt.set_rng_state(state)
        return None
    return found


def _flat(value: Any) -> list[Any]:
    return (
        [v for item in value for v in _flat(item)] if isinstance(value, (tuple, list)) else [value]
    )


def _compare(name: str, modules: str, given: list[Any], got: Any, want: Any) -> None:
    """Raise where results differ; `given` is what they were computed from, on the host."""
    got, want = _flat(got), _flat(want)
    if len(got) != len(want):
        raise AssertionError(
            f"{name} gives {len(got)} results on wgpu and {len(want)} on the CPU; both must be as "
            "many"
        )
    pairs = []
    for i, (here, there) in enumerate(zip(got, want, strict=True)):
        if isinstance(here, pt.Tensor) != isinstance(there, pt.Tensor):
            raise AssertionError(
                f"{name} gives another result on wgpu than on the CPU: result {i} is "
                f"{type(here).__name__} instead of {type(there).__name__}"
            )
        if isinstance(here, pt.Tensor) and here.layout == there.layout == pt.strided:
            pairs.append((here, there))
    _C._compare(name, modules, given, [g for g, _ in pairs], [w for _, w in pairs])


def kernel(op: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel of an operator that also computes it on the host, from copies.

    Parameters
    ----------
    op : CustomOpDef
        The operator.
    run : callable
        What computes it where the tensors are.
    """

    def compared(*args: Any, **kwargs: Any) -> Any:
        given = _tensors([args, kwargs])
        copies = _C._copied_to_compare(given)
        own = _replaced([args, kwargs], dict(zip(map(id, given), copies, strict=True)))
        kept = [t.clone() for t in copies]
        result = run(*args, **kwargs)
        want = _on_host(lambda: op._kernel(copies)(*own[0], **own[1]))
        if want is not None:
            # What it writes to is a result too.
            written = "!" in op._schema
            got, more = ([result, given], [want[0], copies]) if written else (result, want[0])
            _compare(op._qualname, _C._modules_at_work(), kept, got, more)
        return result

    return compared


class _Context:
    """The context of a call, with copies on the host in place of its saved tensors."""

    def __init__(self, ctx: Any) -> None:
        object.__setattr__(self, "_of", ctx)

    def __getattr__(self, name: str) -> Any:
        return _copied(getattr(self._of, name))


def backward(ctx: Any, grads: tuple[Any, ...], found: Any) -> None:
    """Compare the gradients that an operator's derivative gave with what it gives on the host.

    Parameters
    ----------
    ctx : object
        Of the call, as the derivative gets it.
    grads : tuple
        Of the results.
    found : tuple
        What the derivative gave.
    """
    grads = _copied(grads)
    want = _on_host(lambda: ctx.op._backward(_Context(ctx), *grads))
    if want is not None:
        (there,) = want
        there = there if isinstance(there, tuple) else (there,)
        given = [g for g in grads if isinstance(g, pt.Tensor)]
        _compare(f"the derivative of {ctx.op._qualname}", ctx.compared_in, given, found, there)
