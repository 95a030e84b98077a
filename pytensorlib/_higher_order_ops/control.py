"""Branches and loops as functions: they run as the program does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .. import _C

__all__ = ["cond", "while_loop"]


class _Recording(threading.local):
    """The tracer of `torch.export` that is active on each thread."""

    tracer: Any = None


recording = _Recording()


def _truth(caller: str, value: Any) -> bool:
    """Return a condition as a bool."""
    if isinstance(value, bool):
        return value
    if isinstance(value, _C.Tensor) and value.numel() == 1:
        return bool(value)
    if not isinstance(value, _C.Tensor):
        raise RuntimeError(f"{caller}: Expected pred to be bool or tensor, but got {value}.")
    got = f"a tensor of {value.numel()} elements"
    raise RuntimeError(
        f"{caller}: the condition must be a bool, or a tensor of one element, got {got}"
    )


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """Return ``true_fn(*operands)`` or ``false_fn(*operands)``; only that one is called.

    Parameters
    ----------
    pred : bool or Tensor
        Of one element.
    true_fn, false_fn : callable
        What is called where `pred` is true, and where it is not.
    operands : tuple or list, default ()
        The arguments.

    Returns
    -------
    object
        What the function returns; gradients flow through it.

    Raises
    ------
    RuntimeError
        `pred` is something else, a branch cannot be called, or the operands are no tuple or list.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.cond(x.sum() > 2, torch.sin, torch.square, (x,))
    tensor([0.8415, 0.9093])
    """
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("cond: Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond: Expect operands to be a tuple or a list, got {type(operands)}")
    tracer = recording.tracer
    if tracer is not None and not isinstance(pred, bool):
        from ..export._control_flow import record_cond

        return record_cond(tracer, pred, true_fn, false_fn, operands)
    return (true_fn if _truth("cond", pred) else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: tuple[Any, ...] | list[Any],
) -> tuple[Any, ...]:
    """Return what is left once ``carried = body_fn(*carried)`` ran while ``cond_fn(*carried)``.

    Parameters
    ----------
    cond_fn : callable
        Takes what is carried, returns a bool or a tensor of one element.
    body_fn : callable
        Takes what is carried, returns as much.
    carried_inputs : tuple or list
        What is carried first.

    Returns
    -------
    tuple
        What is carried last; gradients flow through it.

    Raises
    ------
    RuntimeError
        A condition is something else, or the body returns another number of values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> start = torch.tensor(0), torch.tensor(1.0)
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2 * x), start)
    (tensor(3), tensor(8.))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("while_loop: cond_fn and body_fn must be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"while_loop: carried_inputs must be a tuple or a list, got {type(carried_inputs)}"
        )
    tracer = recording.tracer
    if tracer is not None:
        from ..export._control_flow import record_while

        return record_while(tracer, cond_fn, body_fn, tuple(carried_inputs))
    carried = tuple(carried_inputs)
    while _truth("while_loop", cond_fn(*carried)):
        result = body_fn(*carried)
        result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(result) != len(carried):
            raise RuntimeError(
                f"while_loop: body_fn must return as many values as it takes, {len(carried)}, got "
                f"{len(result)}"
            )
        carried = result
    return carried
