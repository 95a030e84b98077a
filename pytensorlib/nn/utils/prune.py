"""Setting parts of a module's tensors to zero, and keeping them there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ._pruning_methods import (  # noqa: F401  (what is private here is imported by libraries)
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    _compute_norm,
    _compute_nparams_toprune,
    _validate_pruning_amount,
    _validate_pruning_amount_init,
    _validate_pruning_dim,
    _validate_structured_pruning,
)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

for _class in (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
):
    _class.__module__ = __name__  # where PyTorch's pickles look for it


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Set elements of a parameter to zero, chosen at random.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.
    amount : int or float
        How many, or which part.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.random_unstructured(nn.Linear(2, 3), "weight", amount=2)
    >>> int(net.weight_mask.sum())
    4
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Set the elements of a parameter that are nearest to zero to zero.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.
    amount : int or float
        How many, or which part.
    importance_scores : Tensor, optional
        Says how important elements are, in the place of the parameter.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=2)
    >>> int(net.weight_mask.sum())
    4
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Set slices of a parameter to zero, chosen at random.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.
    amount : int or float
        How many, or which part.
    dim : int
        The dimension.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.random_structured(nn.Linear(2, 3), "weight", amount=1, dim=0)
    >>> int(net.weight_mask.sum())
    4
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Set the slices of a parameter that have the least norm to zero.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.
    amount : int or float
        How many, or which part.
    n : int, float or str
        The norm, as of `torch.norm`.
    dim : int
        The dimension.
    importance_scores : Tensor, optional
        Says how important elements are, in the place of the parameter.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.ln_structured(nn.Linear(2, 3), "weight", amount=1, n=2, dim=0)
    >>> int(net.weight_mask.sum())
    4
    """
    LnStructured.apply(
        module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
    )
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Set elements of a parameter to zero where a mask is 0.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.
    mask : Tensor
        Of its shape.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.custom_from_mask(nn.Linear(2, 3), "weight", torch.eye(3, 2))
    >>> int(net.weight_mask.sum())
    2
    """
    CustomFromMask.apply(module, name, mask=mask)
    return module


def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask that keeps everything.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.identity(nn.Linear(2, 3), "weight")
    >>> int(net.weight_mask.sum())
    6
    """
    Identity.apply(module, name)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters as if they were one.

    Parameters
    ----------
    parameters : iterable of (Module, str)
        Modules, changed in place, and the names of their parameters.
    pruning_method : type
        A subclass of `BasePruningMethod`, unstructured.
    importance_scores : dict, optional
        By pair, how important elements are.
    **kwargs
        What the method is made with.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> pairs = [(a, "weight"), (b, "weight")]
    >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
    >>> int(a.weight_mask.sum() + b.weight_mask.sum())
    5
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    given = {} if importance_scores is None else importance_scores
    scores = pt.cat([given.get((m, n), getattr(m, n)).detach().reshape(-1) for m, n in pairs])
    default = pt.cat(
        [
            getattr(m, f"{n}_mask", pt.ones_like(getattr(m, n))).detach().reshape(-1)
            for m, n in pairs
        ]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask, start = container.compute_mask(scores, default), 0
    for module, name in pairs:
        tensor = getattr(module, name)
        custom_from_mask(module, name, mask[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def remove(module: Any, name: str) -> Any:
    """Make a pruned tensor a parameter again, with its zeros.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str
        The parameter.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ValueError
        It is not pruned.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import prune
    >>> net = prune.remove(prune.l1_unstructured(nn.Linear(2, 3), "weight", 2), "weight")
    >>> int((net.weight == 0).sum()), prune.is_pruned(net)
    (2, False)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Return whether a module, or one inside it, is pruned.

    Parameters
    ----------
    module : Module
        Any.

    Returns
    -------
    bool
        Until `remove`.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.utils.prune.is_pruned(nn.Linear(1, 1))
    False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for inner in module.modules()
        for hook in inner._forward_pre_hooks.values()
    )
