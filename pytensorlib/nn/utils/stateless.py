"""Calling a module with other tensors in the place of its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..parallel import DataParallel
from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def _groups(module: Any, tie_weights: bool) -> dict[str, list[str]]:
    """Return the names that mean one tensor, for each of them."""
    if not tie_weights:
        return {}
    names: dict[int, list[str]] = {}
    for kind in (module.named_parameters, module.named_buffers):
        for name, tensor in kind(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    return {name: group for group in names.values() for name in group}


def _check(
    module: Any,
    accessor: NamedMemberAccessor,
    given: dict[str, Any],
    tied: dict[str, list[str]],
    strict: bool,
) -> None:
    for name, value in given.items():
        others = [n for n in tied.get(name, []) if n in given and given[n] is not value]
        if others:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted([name, *others])}, which "
                "are tied. Consider using tie_weights=False"
            )
    if not strict:
        return
    reached = {n for name in given for n in tied.get(name, [name])}
    missing, unexpected = accessor.check_keys(reached)
    lines = [
        f"{what} key(s): {', '.join(map(repr, names))}."
        for what, names in (("Unexpected", unexpected), ("Missing", missing))
        if names
    ]
    if lines:
        text = "\n\t".join([f"Error(s) in reparametrizing for {module._get_name()}:", *lines])
        raise RuntimeError(text)


@contextlib.contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Put tensors in the place of a module's for a block.

    What the module assigns meanwhile is in `parameters_and_buffers` afterwards.
    """
    given = parameters_and_buffers
    tied = _groups(module, tie_weights)
    accessor = NamedMemberAccessor(module)
    _check(module, accessor, given, tied, strict)
    everything = {n: v for name, v in given.items() for n in tied.get(name, [name])} | given
    old, _ = accessor.swap_tensors_dict(everything, allow_missing=True)
    try:
        yield
    finally:
        if stack_weights:  # the first tensor to be replaced is the last to come back
            old = dict(reversed(old.items()))
        new, _ = accessor.swap_tensors_dict(old, allow_missing=True)
        given.update((name, value) for name, value in new.items() if name in given)


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Parameters
    ----------
    module : Module
        Stays as it is.
    parameters_and_buffers : dict of str to Tensor
        By name, as in ``state_dict``, or of any attribute; None is no tensor. Others are the
        module's own.
    args : object or tuple, optional
        What it is called with by position.
    kwargs : dict, optional
        What it is called with by name.
    tie_weights : bool, default True
        Whether one name is enough for a tensor that has several.
    strict : bool, default False
        Whether all names must be given, and no others.

    Returns
    -------
    object
        What the module returns.

    Raises
    ------
    RuntimeError
        With `strict`, names are missing or unexpected.
    TypeError
        A value is no tensor, or what it would replace is none.
    ValueError
        The names of one tensor have different values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> zeros = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    >>> torch.func.functional_call(net, zeros, torch.ones(2)).item()
    0.0
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its own."""
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    given = parameters_and_buffers
    with _reparametrize_module(module, given, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
