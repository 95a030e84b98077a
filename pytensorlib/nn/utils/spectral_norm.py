"""The older spectral normalisation, by a hook before each call."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..parameter import Parameter, check_initialized

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


class SpectralNormStateDictHook:
    """Writes into a state dict which version of the hook it is of.

    Parameters
    ----------
    fn : SpectralNorm
        The hook.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.spectral_norm(nn.Linear(2, 3))
    >>> net.state_dict()._metadata[""]["spectral_norm"]
    {'weight.version': 1}
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(self, module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        """Write it."""
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Adds to an old state dict what it lacks: before version 1 one vector was not kept.

    Parameters
    ----------
    fn : SpectralNorm
        The hook.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.spectral_norm(nn.Linear(2, 3))
    >>> net.load_state_dict(net.state_dict())
    <All keys matched successfully>
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(
        self,
        state: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Add it."""
        name = prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        if version is not None and version >= 1:
            return
        whole = all(name + end in state for end in ("_orig", "_u", "_v"))
        if version is None and whole and name not in state:
            return  # new, and only the note of its version is lost
        needed = [name + end for end in ("_orig", "", "_u")]
        missing = [key for key in needed if key not in state]
        if missing:
            missing_keys += missing if strict else []
            return
        with pt.no_grad():
            original, weight, u = state[f"{name}_orig"], state.pop(name), state[f"{name}_u"]
            sigma = (original / weight).mean()
            # u is the normalized product of the matrix and v, and u M v the norm.
            matrix = self.fn.reshape_weight_to_matrix(original)
            v = pt.linalg.pinv(matrix) @ u
            state[f"{name}_v"] = v * (sigma / pt.dot(u, pt.mv(matrix, v)))


class SpectralNorm:
    """The hook that computes the weight.

    Parameters
    ----------
    name : str, default "weight"
        The weight.
    n_power_iterations : int, default 1
        Steps of the estimate at each call in training mode.
    dim : int, default 0
        The dimension of the outputs.
    eps : float, default 1e-12
        Kept away from in divisions.

    Examples
    --------
    >>> from pytensorlib.nn.utils.spectral_norm import SpectralNorm
    >>> SpectralNorm().n_power_iterations
    1
    """

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return a weight as a matrix, with a row for each output.

        Parameters
        ----------
        weight : Tensor
            Of any dimensions.
        """
        rows = weight.movedim(self.dim, 0) if self.dim else weight
        return rows.reshape(rows.shape[0], -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """Return the weight divided by its largest singular value.

        Parameters
        ----------
        module : Module
            Has the weight and the estimate.
        do_power_iteration : bool
            Whether to improve the estimate.
        """
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with pt.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(pt.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(pt.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # a later call changes them in place
        return weight / pt.dot(u, pt.mv(matrix, v))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again.

        Parameters
        ----------
        module : Module
            Changed in place.
        """
        with pt.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for end in ("_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        """Set the weight before a call."""
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value, estimated a little better at each call.

    `nn.utils.parametrizations.spectral_norm` is the newer way.

    Parameters
    ----------
    module : Module
        Changed in place: ``weight_orig`` is its parameter.
    name : str, default "weight"
        The parameter.
    n_power_iterations : int, default 1
        Steps of the estimate at each call in training mode.
    eps : float, default 1e-12
        Kept away from in divisions.
    dim : int, optional
        The dimension of the outputs; by default 1 for transposed convolutions, else 0.

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
    >>> from pytensorlib import nn
    >>> net = nn.utils.spectral_norm(nn.Linear(20, 40))
    >>> net.weight_u.shape
    torch.Size([40])
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
    dim = (1 if isinstance(module, TRANSPOSED) else 0) if dim is None else dim
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    check_initialized(module, name, "SpectralNorm", "spectral normalization")
    with pt.no_grad():
        h, w = hook.reshape_weight_to_matrix(weight).shape
        u = F.normalize(weight.new_empty(h).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(weight.new_empty(w).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(SpectralNormStateDictHook(hook))
    module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
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
        It has no spectral normalisation.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.spectral_norm(nn.Linear(2, 3))
    >>> sorted(dict(nn.utils.remove_spectral_norm(net).named_parameters()))
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for hooks, kind in (
                (module._state_dict_hooks, SpectralNormStateDictHook),
                (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
            ):
                for number, other in list(hooks.items()):
                    other = getattr(other, "hook", other)
                    if isinstance(other, kind) and other.fn is hook:
                        del hooks[number]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
