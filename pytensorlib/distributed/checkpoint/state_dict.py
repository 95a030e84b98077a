"""The states of models and optimizers, with whole tensors or with the rows of this process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytensorlib as pt

from .._places import place_of

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """How states are made and loaded.

    Parameters
    ----------
    full_state_dict : bool, default False
        Whole tensors instead of this process's rows.
    cpu_offload : bool, default False
        Bring them to the CPU.
    ignore_frozen_params : bool, default False
        Leave parameters out that require no grad.
    keep_submodule_prefixes : bool, default True
        Must be True.
    strict : bool, default True
        When loading, all names must be there, and no others.
    broadcast_from_rank0 : bool, default False
        Must be False.
    flatten_optimizer_state_dict : bool, default False
        Must be False.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint.state_dict import StateDictOptions
    >>> StateDictOptions(full_state_dict=True).strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 or options.flatten_optimizer_state_dict:
        raise ValueError(
            "StateDictOptions: broadcast_from_rank0 and flatten_optimizer_state_dict are not here"
        )
    if not options.keep_submodule_prefixes:
        raise ValueError("StateDictOptions: keep_submodule_prefixes must be True")
    return options


def _own(model: Any) -> Any:
    """Return the module inside one that only makes it parallel."""
    while type(model).__name__ in ("DistributedDataParallel", "DataParallel"):
        model = model.module
    return model


def _shown(value: Any, options: StateDictOptions) -> Any:
    if not isinstance(value, pt.Tensor):
        return value
    if options.full_state_dict:
        from ..fsdp._shards import whole

        # A copy in any case: a state of whole tensors outlives the steps that follow.
        value = value.detach().clone() if place_of(value) is None else whole(value)
    return value.cpu() if options.cpu_offload else value


def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return a model's state, with the names that it has without wrappers.

    Parameters
    ----------
    model : Module
        Also one in `DistributedDataParallel`.
    submodules : set of Module, optional
        Must be None.
    options : StateDictOptions, optional
        How it is made.

    Returns
    -------
    dict
        By name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(torch.nn.Linear(1, 1)))
    ['weight', 'bias']
    """
    if submodules is not None:
        raise ValueError("get_model_state_dict: submodules is not here")
    options, inner = _checked(options), _own(model)
    frozen = {n for n, p in inner.named_parameters() if not p.requires_grad}
    leave = frozen if options.ignore_frozen_params else set()
    return {n: _shown(v, options) for n, v in inner.state_dict().items() if n not in leave}


def _names(model: Any) -> dict[int, str]:
    inner = _own(model)
    return {
        id(p): name.replace("_fsdp_wrapped_module.", "") for name, p in inner.named_parameters()
    }


def _list(optimizers: Any) -> list[Any]:
    return [optimizers] if hasattr(optimizers, "param_groups") else list(optimizers)


def get_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Return the state of a model's optimizers, by the parameters' names instead of numbers.

    Parameters
    ----------
    model : Module
        Whose parameters they step.
    optimizers : Optimizer or list of Optimizer
        Those.
    submodules : set of Module, optional
        Must be None.
    options : StateDictOptions, optional
        How it is made.

    Returns
    -------
    dict
        ``state`` by name, and ``param_groups``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> net = torch.nn.Linear(1, 1)
    >>> found = get_optimizer_state_dict(net, torch.optim.SGD(net.parameters(), lr=0.1))
    >>> found["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    if submodules is not None:
        raise ValueError("get_optimizer_state_dict: submodules is not here")
    options, names = _checked(options), _names(model)
    result: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _list(optimizers):
        if not optimizer.state:
            _begin(optimizer)
        known = optimizer.state_dict()
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        for number, values in known["state"].items():
            shown = {k: _shown(v, options) for k, v in values.items()}
            result["state"][order[number]] = shown
        for group in known["param_groups"]:
            result["param_groups"].append(
                {**group, "params": [order[number] for number in group["params"]]}
            )
    return result


def _begin(optimizer: Any) -> None:
    """Let an optimizer make its state, by a step that changes nothing."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for p in parameters:
        if p.requires_grad:
            p.grad = pt.zeros_like(p)
    for group in optimizer.param_groups:
        group["lr"] = pt.zeros_like(group["lr"]) if pt.is_tensor(group["lr"]) else 0.0
    optimizer.step()
    for values in optimizer.state.values():
        if "step" in values:
            values["step"] = values["step"] * 0
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
    optimizer.zero_grad()


def get_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and its optimizers.

    Parameters
    ----------
    model, optimizers, submodules, options : optional
        As of `get_model_state_dict` and `get_optimizer_state_dict`.

    Returns
    -------
    tuple of dict
        Both.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint.state_dict import get_state_dict
    >>> net = torch.nn.Linear(1, 1)
    >>> model, optim = get_state_dict(net, torch.optim.SGD(net.parameters(), lr=0.1))
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def _cut(value: Any, like: Any, full: bool) -> Any:
    """Return this process's rows of a whole tensor."""
    place = place_of(like)
    if not full or place is None or not isinstance(value, pt.Tensor):
        return value
    return value[place.first : place.first + len(like)] if value.shape == place.shape else value


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a state of `get_model_state_dict`, made with the same options.

    Parameters
    ----------
    model : Module
        What is loaded.
    model_state_dict : dict
        By name.
    options : StateDictOptions, optional
        With which it was made.

    Returns
    -------
    object
        The names that are missing, and those that are too many.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint import state_dict as states
    >>> net = torch.nn.Linear(1, 1)
    >>> states.set_model_state_dict(net, states.get_model_state_dict(net))
    <All keys matched successfully>
    """
    options, inner = _checked(options), _own(model)
    if hasattr(inner, "_state_kind"):  # FullyShardedDataParallel cuts by itself
        return inner.load_state_dict(model_state_dict, strict=options.strict)
    own = dict(inner.named_parameters())
    given = {n: _cut(v, own.get(n), options.full_state_dict) for n, v in model_state_dict.items()}
    return inner.load_state_dict(given, strict=options.strict)


def set_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load a state of `get_optimizer_state_dict`, made with the same options.

    Parameters
    ----------
    model : Module
        Whose parameters they step.
    optimizers : Optimizer or list of Optimizer
        What is loaded.
    optim_state_dict : dict
        The state.
    options : StateDictOptions, optional
        With which it was made.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint import state_dict as states
    >>> net = torch.nn.Linear(1, 1)
    >>> adam = torch.optim.Adam(net.parameters())
    >>> states.set_optimizer_state_dict(net, adam, states.get_optimizer_state_dict(net, adam))
    """
    options, names = _checked(options), _names(model)
    groups = list(optim_state_dict["param_groups"])
    for optimizer in _list(optimizers):
        order = [(names[id(p)], p) for group in optimizer.param_groups for p in group["params"]]
        numbers = {name: i for i, (name, _) in enumerate(order)}
        mine, groups = groups[: len(optimizer.param_groups)], groups[len(optimizer.param_groups) :]
        state = {
            i: {
                k: _cut(v, p, options.full_state_dict)
                for k, v in optim_state_dict["state"][name].items()
            }
            for i, (name, p) in enumerate(order)
            if name in optim_state_dict["state"]
        }
        packed = [{**g, "params": [numbers[name] for name in g["params"]]} for g in mine]
        optimizer.load_state_dict({"state": state, "param_groups": packed})


def set_state_dict(
    model: Any,
    optimizers: Iterable[Any] | Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load the states of `get_state_dict`, made with the same options.

    Parameters
    ----------
    model, optimizers : Module, Optimizer or list of Optimizer
        What is loaded.
    model_state_dict, optim_state_dict : dict
        The states.
    options : StateDictOptions, optional
        With which they were made.

    Returns
    -------
    object
        The names that are missing, and those that are too many.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint import state_dict as states
    >>> net = torch.nn.Linear(1, 1)
    >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> model, optim = states.get_state_dict(net, sgd)
    >>> states.set_state_dict(net, sgd, model_state_dict=model, optim_state_dict=optim)
    <All keys matched successfully>
    """
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
