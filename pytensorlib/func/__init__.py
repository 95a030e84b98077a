"""Functions of functions: derivatives, maps over slices, and calls with given parameters.

Derivatives nest to any depth, on the one graph that there is. What a function computes under
``no_grad`` is a constant to `grad`, `vjp` and `jacrev`, and is differentiated by `jvp`, `jacfwd`
and `linearize`; where they are nested, the innermost decides for all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt

from .. import _alias
from ..nn.utils import stateless
from . import _shown as _shown
from ._forward import hessian, jacfwd, jvp, linearize
from ._rearrange import rearrange
from ._reverse import grad, grad_and_value, jacrev, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

_alias.adopt(
    globals(),
    "grad grad_and_value hessian jacfwd jacrev jvp linearize rearrange vjp vmap".split(),
)


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
        Tensors by name, as in ``state_dict``, or of any attribute; None is no tensor. A name is in
        one of them only.
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
    return stateless._functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stacked_leaf(tensors: Sequence[Any], name: str) -> Any:
    """Return tensors stacked to a leaf, which needs a gradient if they do."""
    needs = tensors[0].requires_grad
    if any(t.requires_grad is not needs for t in tensors):
        raise RuntimeError(
            f"Expected {name} from each model to have the same .requires_grad in all models"
        )
    return pt.stack(list(tensors)).detach().requires_grad_(needs)


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

    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return tuple(
        {name: stacked_leaf([one[name] for one in each], name) for name in each[0]}
        for each in (params, buffers)
    )  # type: ignore[return-value]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let all batch normalizations in a module use the statistics of each batch alone, in place.

    What keeps running statistics writes to itself, which functions that are mapped or
    differentiated must not do.

    Parameters
    ----------
    root : Module
        Changed.

    Returns
    -------
    Module
        `root`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    >>> torch.func.replace_all_batch_norm_modules_(net)[1].running_mean is None
    True
    """
    from .._functorch.batch_norm_replacement import batch_norm_without_running_stats

    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that gives what `func` gives.

    PyTorch's keeps writes and views from whoever records the operations of `func`, and gives the
    same results. Nobody records operations here, so that `func` runs as it is.

    Parameters
    ----------
    func : callable
        Any function of tensors.
    remove : {"mutations", "mutations_and_views"}
        What a record would not show.

    Returns
    -------
    callable
        Takes and gives what `func` takes and gives; what `func` writes to its arguments is seen.

    Raises
    ------
    RuntimeError
        `remove` is something else.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are: remove='mutations', remove='mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """Return `tensor`: what transforms hand to their functions are tensors like all others.

    Parameters
    ----------
    tensor : Tensor
        Any.
    recurse : bool, default True
        Not needed, for want of wrappers.

    Returns
    -------
    Tensor
        The same object.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1)
    >>> torch.func.debug_unwrap(x) is x
    True
    """
    return tensor
