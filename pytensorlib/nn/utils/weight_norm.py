"""The older weight normalisation, by a hook before each call."""

from __future__ import annotations

import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..parameter import Parameter, check_initialized

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """Return the norms of slices along one dimension, which stays; of all of it for -1."""
    if dim == -1:
        return pt.linalg.vector_norm(v)
    return pt.linalg.vector_norm(v, dim=[d for d in range(v.dim()) if d != dim], keepdim=True)


class WeightNorm:
    """The hook that computes the weight.

    Parameters
    ----------
    name : str
        The weight.
    dim : int
        The dimension of its slices; -1 for one norm of all.

    Examples
    --------
    >>> from pytensorlib.nn.utils.weight_norm import WeightNorm
    >>> WeightNorm("weight", 0).name
    'weight'
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """Return the weight.

        Parameters
        ----------
        module : Module
            Has its norms and directions.
        """
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except_dim(v, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        """Set the weight before a call."""
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Train the norms of a weight's slices apart from their directions.

    `nn.utils.parametrizations.weight_norm` is the newer way.

    Parameters
    ----------
    module : Module
        Changed in place: ``weight_g`` and ``weight_v`` are its parameters.
    name : str, default "weight"
        The parameter.
    dim : int or None, default 0
        The dimension of the slices; None for one norm of all.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    RuntimeError
        The parameter has it already.

    Examples
    --------
    >>> import warnings
    >>> from pytensorlib import nn
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     net = nn.utils.weight_norm(nn.Linear(2, 3))
    >>> net.weight_g.shape
    torch.Size([3, 1])
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
    check_initialized(module, name, "WeightNorm", "weight normalization")
    hook = WeightNorm(name, dim)
    weight = module._parameters.pop(name)
    g = norm_except_dim(weight.detach(), hook.dim)
    module.register_parameter(f"{name}_g", Parameter(g))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Make a weight a parameter again.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str, default "weight"
        The weight.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ValueError
        It has no weight normalisation.

    Examples
    --------
    >>> import warnings
    >>> from pytensorlib import nn
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     net = nn.utils.weight_norm(nn.Linear(2, 3))
    >>> sorted(dict(nn.utils.remove_weight_norm(net).named_parameters()))
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module).detach()
            delattr(module, name)
            del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
            setattr(module, name, Parameter(weight))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
