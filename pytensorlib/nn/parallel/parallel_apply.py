"""Modules on their parts of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Any:
    """Return a tensor within lists, tuples and dicts.

    Parameters
    ----------
    obj : object
        Anything.

    Returns
    -------
    Tensor or None
        The first one, keys of dicts before their values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.parallel.parallel_apply import get_a_var
    >>> get_a_var({"a": [1, (torch.ones(1),)]})
    tensor([1.])
    """
    if isinstance(obj, pt.Tensor):
        return obj
    parts = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    found = (get_a_var(part) for part in parts)
    return next((t for t in found if t is not None), None)


def parallel_apply(
    modules: Sequence[Any],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Any = None,
) -> list[Any]:
    """Call each module with its part of a batch.

    Calls of GPUs only submit work, so that several compute at the same time; on the CPU every
    operator uses all cores.

    Parameters
    ----------
    modules : sequence of Module
        One for each part.
    inputs : sequence
        Positional arguments of each; what is no tuple is one argument.
    kwargs_tup : sequence of dict, optional
        Arguments by name of each.
    devices : sequence of device, optional
        Not used: tensors know where they are.

    Returns
    -------
    list
        What each module returned.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> nets = [torch.nn.ReLU(), torch.nn.Tanh()]
    >>> torch.nn.parallel.parallel_apply(nets, [torch.ones(1), torch.zeros(1)])
    [tensor([1.]), tensor([0.])]
    """
    named = kwargs_tup or [{}] * len(modules)
    if not len(modules) == len(inputs) == len(named):
        raise AssertionError(
            f"parallel_apply: {len(modules)} modules, {len(inputs)} inputs, {len(named)} kwargs"
        )
    args = [(i,) if isinstance(i, pt.Tensor) or not isinstance(i, tuple) else i for i in inputs]
    return [m(*a, **k) for m, a, k in zip(modules, args, named, strict=True)]
