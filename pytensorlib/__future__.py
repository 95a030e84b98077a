"""How ``Module.to`` and its relatives change parameters."""

from __future__ import annotations

from .nn._convert import conversion

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


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
    """Say whether converting a module exchanges its parameters with new ones.

    A converted parameter is the same object either way; exchanged, it can become a tensor of
    another class, and its gradient stays the same object too.

    Parameters
    ----------
    value : bool
        At first False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    conversion.swap = value


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
    return conversion.swap
