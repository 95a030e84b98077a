"""Calling a module with other tensors in the place of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ... import Tensor

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


def _check(module: Any, given: dict[str, Any], tied: dict[str, list[str]], strict: bool) -> None:
    known = {n for n, _ in module.named_parameters(remove_duplicate=False)}
    known |= {n for n, _ in module.named_buffers(remove_duplicate=False)}
    for name, value in given.items():
        others = [n for n in tied.get(name, []) if n in given and given[n] is not value]
        if others:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted([name, *others])}, which "
                "are tied. Consider using tie_weights=False"
            )
    if strict:
        unexpected = sorted(set(given) - known)
        reached = {n for name in given for n in tied.get(name, [name])}
        missing = sorted(known - reached)
        if unexpected or missing:
            raise RuntimeError(
                f"Error(s) in functional_call for {type(module).__name__}: unexpected keys "
                f"{unexpected}, missing keys {missing}"
            )


@contextlib.contextmanager
def _reparametrize_module(
    module: Any, given: dict[str, Any], *, tie_weights: bool = True, strict: bool = False
) -> Iterator[None]:
    """Put tensors in the place of a module's for a block."""
    tied = _groups(module, tie_weights)
    _check(module, given, tied, strict)
    everything = {n: v for name, v in given.items() for n in tied.get(name, [name])} | given
    undo: list[tuple[str, dict[str, Any], str, Any]] = []
    try:
        for name, value in everything.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{name} must be a Tensor, got {type(value).__name__}")
            path, _, leaf = name.rpartition(".")
            owner = module.get_submodule(path)
            table = next((t for t in (owner._parameters, owner._buffers) if leaf in t), None)
            if table is None:
                raise AttributeError(f"{type(owner).__name__} has no attribute `{leaf}`")
            undo.append((name, table, leaf, table[leaf]))
            table[leaf] = value
        yield
    finally:
        for name, table, leaf, old in reversed(undo):
            if name in given:  # the module may have assigned another buffer
                given[name] = table[leaf]
            table[leaf] = old


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
        By name, as in ``state_dict``; others are the module's own.
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

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> zeros = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    >>> torch.func.functional_call(net, zeros, torch.ones(2)).item()
    0.0
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    given = parameters_and_buffers
    with _reparametrize_module(module, given, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
