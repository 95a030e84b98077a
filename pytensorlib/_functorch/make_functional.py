"""Modules as functions of their parameters: the older way, before `torch.func.functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import nn

from ..nn.utils.stateless import _reparametrize_module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "extract_buffers",
    "extract_weights",
    "functional_init",
    "functional_init_with_buffers",
    "load_buffers",
    "load_state",
    "load_weights",
    "make_functional",
    "make_functional_deprecated_v1",
    "make_functional_with_buffers",
    "make_functional_with_buffers_deprecated_v1",
    "transpose_stack",
]

Names = tuple[str, ...]
# The first name of a tensor -> all its names.
NamesMap = dict[str, list[str]]


def owner(module: Any, name: str) -> tuple[Any, str]:
    """Return the module inside `module` that has a name, and the name's last part."""
    path, _, leaf = name.rpartition(".")
    return module.get_submodule(path), leaf


def grouped(named: Iterable[tuple[str, Any]]) -> tuple[list[Any], NamesMap]:
    """Return the tensors, each once, and the names of each under its first."""
    tensors: dict[int, tuple[Any, list[str]]] = {}
    for name, tensor in named:
        tensors.setdefault(id(tensor), (tensor, []))[1].append(name)
    found = tensors.values()
    return [t for t, _ in found], {names[0]: names for _, names in found}


def _swap_state(mod: Any, names_map: NamesMap, elems: Iterable[Any]) -> list[Any]:
    """Put tensors into the places of a module's tables, as they are; return what was there."""
    before = []
    for group, tensor in zip(names_map.values(), elems, strict=True):
        for name in group:
            place, leaf = owner(mod, name)
            table = place._parameters if leaf in place._parameters else place._buffers
            old, table[leaf] = table[leaf], tensor
        before.append(old)
    return before


def create_names_map(named_params: Any, tied_named_params: Any) -> NamesMap:
    """Return, for each name of a tensor, all names that the tensor has.

    Parameters
    ----------
    named_params : dict, or iterable of pairs
        Each tensor once.
    tied_named_params : dict, or iterable of pairs
        Each tensor by all its names.

    Returns
    -------
    dict
        Lists of names.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import create_names_map
    >>> x = torch.ones(1)
    >>> create_names_map({"a": x}, {"a": x, "b": x})
    {'a': ['a', 'b']}
    """
    named, tied = dict(named_params), dict(tied_named_params)
    groups = [[n for n, t in tied.items() if t is tensor] for tensor in named.values()]
    if sorted(name for group in groups for name in group) != sorted(tied):
        raise ValueError("tied_named_params must have the tensors of named_params, and no others")
    return dict(zip(named, groups, strict=True))


def without(tensor: Any) -> Any:
    """Return a tensor of the same kind that has no memory."""
    empty = pt.empty_like(tensor, device="meta")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(empty, tensor.requires_grad)
    return empty


def extract_weights(mod: Any) -> tuple[tuple[Any, ...], Names, NamesMap]:
    """Take the parameters out of a module, which keeps their shapes.

    Parameters
    ----------
    mod : Module
        Changed: it can only be run again after `load_weights`.

    Returns
    -------
    tuple
        The parameters, the first name of each, and all names of each.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import extract_weights
    >>> net = torch.nn.Linear(2, 1)
    >>> extract_weights(net)[1], net.weight.device.type
    (('weight', 'bias'), 'meta')
    """
    params, names = grouped(mod.named_parameters(remove_duplicate=False))
    _swap_state(mod, names, map(without, params))
    return tuple(params), tuple(names), names


def extract_buffers(mod: Any) -> tuple[tuple[Any, ...], Names, NamesMap]:
    """Take the buffers out of a module, which keeps their shapes.

    Parameters
    ----------
    mod : Module
        Changed: it can only be run again after `load_buffers`.

    Returns
    -------
    tuple
        The buffers, the first name of each, and all names of each.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import extract_buffers
    >>> extract_buffers(torch.nn.BatchNorm1d(2))[1]
    ('running_mean', 'running_var', 'num_batches_tracked')
    """
    buffers, names = grouped(mod.named_buffers(remove_duplicate=False))
    _swap_state(mod, names, map(without, buffers))
    return tuple(buffers), tuple(names), names


def load_weights(
    mod: Any, names: Sequence[str], params: Sequence[Any], as_params: bool = False
) -> None:
    """Put parameters into a module from which `extract_weights` took them.

    Parameters
    ----------
    mod : Module
        Changed.
    names : sequence of str
        Of its parameters.
    params : sequence of Tensor
        One for each name.
    as_params : bool, default False
        Whether they become parameters, instead of plain tensors with a history.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import extract_weights, load_weights
    >>> net = torch.nn.Linear(2, 1)
    >>> params, names, _ = extract_weights(net)
    >>> load_weights(net, names, params)
    >>> net.weight is params[0]
    True
    """
    for name, p in zip(names, params, strict=True):
        place, leaf = owner(mod, name)
        place._parameters[leaf] = nn.Parameter(p) if as_params else p


def load_buffers(
    mod: Any, names: Sequence[str], buffers: Sequence[Any], as_params: bool = False
) -> None:
    """Put buffers into a module from which `extract_buffers` took them.

    Parameters
    ----------
    mod : Module
        Changed.
    names : sequence of str
        Of its buffers.
    buffers : sequence of Tensor
        One for each name.
    as_params : bool, default False
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import extract_buffers, load_buffers
    >>> norm = torch.nn.BatchNorm1d(2)
    >>> buffers, names, _ = extract_buffers(norm)
    >>> load_buffers(norm, names, buffers)
    >>> norm.running_mean is buffers[0]
    True
    """
    for name, buffer in zip(names, buffers, strict=True):
        place, leaf = owner(mod, name)
        place._buffers[leaf] = buffer


def load_state(
    model: Any,
    weights: Sequence[Any],
    weight_names: Sequence[str],
    buffers: Sequence[Any] = (),
    buffer_names: Sequence[str] = (),
) -> Any:
    """Put parameters and buffers into a module; return it.

    Parameters
    ----------
    model : Module
        Changed.
    weights : sequence of Tensor
        One for each name.
    weight_names : sequence of str
        Of its parameters.
    buffers : sequence of Tensor, default ()
        One for each name.
    buffer_names : sequence of str, default ()
        Of its buffers.

    Returns
    -------
    Module
        `model`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import load_state
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> load_state(net, [torch.ones(1, 2)], ["weight"])(torch.ones(2)).item()
    2.0
    """
    load_weights(model, weight_names, weights)
    load_buffers(model, buffer_names, buffers)
    return model


def refuse_buffers(model: Any, name: str, instead: str) -> None:
    """Refuse a module with buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            f"{name}(model): `model` has buffers. Please use {instead}(model) instead."
        )


def make_functional_deprecated_v1(model: Any) -> tuple[Any, Callable[..., Any], Names]:
    """Return the parameters of a module, it as a function of them, and their names.

    Parameters
    ----------
    model : Module
        Without buffers; its parameters are taken out of it.

    Returns
    -------
    tuple
        Parameters; a function of these and of a tuple of inputs; names.

    Raises
    ------
    RuntimeError
        There are buffers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import make_functional_deprecated_v1
    >>> weights, run, names = make_functional_deprecated_v1(torch.nn.Linear(2, 1))
    >>> run(weights, (torch.ones(3, 2),)).shape
    torch.Size([3, 1])
    """
    refuse_buffers(
        model, "make_functional_deprecated_v1", "make_functional_with_buffers_deprecated_v1"
    )
    weights, names, _ = extract_weights(model)

    def run(weights: Any, data: Any) -> Any:
        return load_state(copy.deepcopy(model), weights, names)(*data)

    return weights, run, names


def make_functional_with_buffers_deprecated_v1(model: Any) -> tuple[Any, ...]:
    """Return parameters and buffers of a module, it as a function of them, and their names.

    Parameters
    ----------
    model : Module
        Its parameters and buffers are taken out of it.

    Returns
    -------
    tuple
        Parameters; buffers; a function of both and of a tuple of inputs; the names of parameters;
        the names of buffers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch import make_functional
    >>> made = make_functional.make_functional_with_buffers_deprecated_v1(torch.nn.BatchNorm1d(2))
    >>> made[2](made[0], made[1], (torch.ones(3, 2),)).shape
    torch.Size([3, 2])
    """
    weights, names, _ = extract_weights(model)
    buffers, buffer_names, _ = extract_buffers(model)

    def run(weights: Any, buffers: Any, data: Any) -> Any:
        return load_state(copy.deepcopy(model), weights, names, buffers, buffer_names)(*data)

    return weights, buffers, run, names, buffer_names


def taken(model: Any, disable_autograd_tracking: bool) -> tuple[Any, Any]:
    """Return a copy of a module without its parameters, and what `extract_weights` gives."""
    model = copy.deepcopy(model)
    weights = extract_weights(model)
    if disable_autograd_tracking:
        for p in weights[0]:
            p.requires_grad_(False)
    return model, weights


class FunctionalModuleWithBuffers(nn.Module):
    """A module as a function of its parameters and buffers, from `make_functional_with_buffers`.

    Parameters
    ----------
    stateless_model : Module
        Without parameters and buffers of its own.
    param_names, buffer_names : tuple of str
        In the order in which they are given to a call.
    param_names_map, buffer_names_map : dict
        All names of each.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.functorch import FunctionalModuleWithBuffers
    >>> run, params, buffers = FunctionalModuleWithBuffers._create_from(torch.nn.BatchNorm1d(2))
    >>> run(params, buffers, torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        stateless_model: Any,
        param_names: Names,
        buffer_names: Names,
        param_names_map: NamesMap,
        buffer_names_map: NamesMap,
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any, Any]:
        model, (params, names, names_map) = taken(model, disable_autograd_tracking)
        buffers, buffer_names, buffer_map = extract_buffers(model)
        made = FunctionalModuleWithBuffers(model, names, buffer_names, names_map, buffer_map)
        return made, params, buffers

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters and buffers."""
        given = dict(zip(self.all_names_map, (*params, *buffers), strict=True))
        with _reparametrize_module(self.stateless_model, given, tie_weights=True):
            return self.stateless_model(*args, **kwargs)


class FunctionalModule(nn.Module):
    """A module as a function of its parameters, from `make_functional`.

    Parameters
    ----------
    stateless_model : Module
        Without parameters of its own.
    param_names : tuple of str
        In the order in which they are given to a call.
    names_map : dict
        All names of each.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.functorch import FunctionalModule
    >>> run, params = FunctionalModule._create_from(torch.nn.Linear(2, 1))
    >>> run(params, torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """

    def __init__(self, stateless_model: Any, param_names: Names, names_map: NamesMap) -> None:
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
        model, (params, names, names_map) = taken(model, disable_autograd_tracking)
        return FunctionalModule(model, names, names_map), params

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters."""
        given = dict(zip(self.names_map, params, strict=True))
        with _reparametrize_module(self.stateless_model, given, tie_weights=True):
            return self.stateless_model(*args, **kwargs)


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
    """Return a module as a function of its parameters, and these.

    Parameters
    ----------
    model : Module
        Without buffers. It stays as it is: the parameters are copies.
    disable_autograd_tracking : bool, default False
        Whether the copies need no gradients.

    Returns
    -------
    tuple of FunctionalModule and tuple of Parameter
        The function takes the parameters, then what the module takes.

    Raises
    ------
    RuntimeError
        There are buffers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import make_functional
    >>> run, params = make_functional(torch.nn.Linear(2, 1))
    >>> run(params, torch.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    refuse_buffers(model, "make_functional", "make_functional_with_buffers")
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[Any, Any, Any]:
    """Return a module as a function of its parameters and buffers, and these.

    Parameters
    ----------
    model : Module
        It stays as it is: parameters and buffers are copies.
    disable_autograd_tracking : bool, default False
        Whether the copies of the parameters need no gradients.

    Returns
    -------
    tuple
        A function of parameters, of buffers and of what the module takes; parameters; buffers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import make_functional_with_buffers
    >>> run, params, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(2))
    >>> run(params, buffers, torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def transpose_stack(tuple_of_tuple_of_tensors: Any) -> tuple[Any, ...]:
    """Return, for each place, the tensors that the tuples have there, stacked.

    Parameters
    ----------
    tuple_of_tuple_of_tensors : tuple of tuple of Tensor
        Tuples of one length.

    Returns
    -------
    tuple of Tensor
        Leaves of the graph.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import transpose_stack
    >>> transpose_stack(((torch.zeros(2), torch.ones(1)), (torch.zeros(2), torch.ones(1))))[0].shape
    torch.Size([2, 2])
    """
    columns = zip(*tuple_of_tuple_of_tensors, strict=True)
    return tuple(pt.stack(column).detach() for column in columns)


def combine_state_for_ensemble(models: Any) -> tuple[Any, Any, Any]:
    """Return several modules as one function, and their parameters and buffers, stacked.

    Parameters
    ----------
    models : sequence of Module
        Of one class, all in training mode or none.

    Returns
    -------
    tuple
        A function of one module's parameters, its buffers and what it takes, for `vmap`; the
        parameters of all, which are leaves without gradients until asked; the buffers of all.

    Raises
    ------
    RuntimeError
        There is no module, or they differ in class or mode.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import combine_state_for_ensemble
    >>> nets = [torch.nn.Linear(2, 1) for _ in range(3)]
    >>> run, params, buffers = combine_state_for_ensemble(nets)
    >>> torch.vmap(run, (0, 0, None))(params, buffers, torch.ones(4, 2)).shape
    torch.Size([3, 4, 1])
    """
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    made, params, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    return made[0], transpose_stack(params), transpose_stack(buffers)


def initial(
    made: Callable[[Any], tuple[Any, ...]], states: int, cls: Any, ensemble_shape: Any, device: Any
) -> Callable[..., tuple[Any, ...]]:
    """Return what makes modules and gives `made` of them, the first `states` results stacked."""

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        if len(ensemble_shape) >= 2:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if not ensemble_shape:
            return made(cls(*args, **kwargs).to(device))
        count = ensemble_shape[0]
        if count <= 0:
            raise ValueError(f"num_models {count} should be > 0")
        each = [made(cls(*args, **kwargs).to(device)) for _ in range(count)]
        stacked = [transpose_stack([one[i] for one in each]) for i in range(states)]
        return (*stacked, *each[0][states:])

    return wrapped


def functional_init(
    model_class: Any, ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[Any, ...]]:
    """Return what makes a module, or several, as `make_functional_deprecated_v1` gives it.

    Parameters
    ----------
    model_class : type
        Of modules without buffers.
    ensemble_shape : sequence of int, default ()
        The number of modules, whose parameters are then stacked.
    device : device, default "cpu"
        Where the parameters are.

    Returns
    -------
    callable
        Takes what the class takes.

    Raises
    ------
    ValueError
        Where that is called: the shape has several numbers, or one that is not positive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import functional_init
    >>> weights, run, names = functional_init(torch.nn.Linear, (3,))(2, 1)
    >>> torch.vmap(run, (0, None))(weights, (torch.ones(4, 2),)).shape
    torch.Size([3, 4, 1])
    """
    return initial(make_functional_deprecated_v1, 1, model_class, ensemble_shape, device)


def functional_init_with_buffers(
    model_class: Any, ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[Any, ...]]:
    """Return what makes a module as `make_functional_with_buffers_deprecated_v1` gives it.

    Parameters
    ----------
    model_class : type
        Of modules.
    ensemble_shape : sequence of int, default ()
        The number of modules, whose parameters and buffers are then stacked.
    device : device, default "cpu"
        Where they are.

    Returns
    -------
    callable
        Takes what the class takes.

    Raises
    ------
    ValueError
        Where that is called: the shape has several numbers, or one that is not positive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.make_functional import functional_init_with_buffers
    >>> functional_init_with_buffers(torch.nn.BatchNorm1d, (3,))(2)[1][0].shape
    torch.Size([3, 2])
    """
    made = make_functional_with_buffers_deprecated_v1
    return initial(made, 2, model_class, ensemble_shape, device)
