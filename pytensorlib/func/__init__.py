"""Functions of functions: calling modules with given parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from ..nn.utils import stateless

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
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
    parameter_and_buffer_dicts : dict, or sequence of dicts
        Tensors by name, as in ``state_dict``; a name is in one of them only.
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
    ValueError
        A name is in several dicts, or the names of one tensor have different values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> weights = {"weight": torch.ones(1, 2, requires_grad=True), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(net, weights, torch.ones(2)).item()
    2.0
    """
    dicts = parameter_and_buffer_dicts
    if isinstance(dicts, dict):
        given = dicts
    elif isinstance(dicts, Sequence):
        if not all(isinstance(d, dict) for d in dicts):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
            )
        names = [name for d in dicts for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional "
                "call is ambiguous"
            )
        given = {name: value for d in dicts for name, value in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    return stateless.functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of several modules, stacked by name.

    Parameters
    ----------
    models : list of Module
        Of one class, all in training mode or none.

    Returns
    -------
    tuple of dicts
        Parameters, which are leaves that need gradients, and buffers; each with a dimension for
        the modules in front.

    Raises
    ------
    RuntimeError
        There is no module, or they differ in class or mode.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape
    torch.Size([3, 1, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tensors: list[Any]) -> Any:
        needs = tensors[0].requires_grad
        if any(t.requires_grad is not needs for t in tensors):
            raise RuntimeError(
                "Expected each parameter to have the same .requires_grad in all models"
            )
        return pt.stack(tensors).detach().requires_grad_(needs)

    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return tuple(
        {name: stacked([one[name] for one in each]) for name in each[0]}
        for each in (params, buffers)
    )  # type: ignore[return-value]
