"""How ``Module.to`` and its relatives change parameters."""

from __future__ import annotations

from .nn._convert import conversion

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Say whether converting a module makes new parameters instead of changing the old ones.

    Parameters
    ----------
    value : bool
        At first False: who holds a parameter, as optimizers do, sees it converted.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
    >>> net = torch.nn.Linear(1, 1)
    >>> weight = net.weight
    >>> net.double().weight is weight
    False
    >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    conversion.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return what `set_overwrite_module_params_on_conversion` set.

    Returns
    -------
    bool
        At first False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return conversion.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Keep whether PyTorch would exchange tensors to convert a module.

    A converted parameter is the same object here either way.

    Parameters
    ----------
    value : bool
        At first False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Return what `set_swap_module_params_on_conversion` set.

    Returns
    -------
    bool
        At first False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap
