"""Which modules inside a model are shared out on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..._absent.modules import fill
from ..._absent.table import BY_MPI

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
]


class _Policy:
    """Says of a module whether it is shared out on its own."""

    def __call__(self, module: Any, recurse: bool, nonwrapped_numel: int) -> bool:
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """Modules of some classes.

    Parameters
    ----------
    module_classes : iterable of type
        The classes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp.wrap import ModuleWrapPolicy
    >>> ModuleWrapPolicy({torch.nn.Linear})(torch.nn.Linear(1, 1), False, 0)
    True
    """

    def __init__(self, module_classes: Iterable[type[Any]]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Any, recurse: bool, nonwrapped_numel: int = -1) -> bool:
        """Return whether to look inside, or to share the module out.

        Parameters
        ----------
        module : Module
            The module.
        recurse : bool
            True asks whether to look inside.
        nonwrapped_numel : int
            Not used.
        """
        return recurse or isinstance(module, self._module_classes)


class CustomPolicy(_Policy):
    """Modules of which a function says so.

    Parameters
    ----------
    lambda_fn : callable
        Gets a module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp.wrap import CustomPolicy
    >>> CustomPolicy(lambda m: False)(torch.nn.Linear(1, 1), False, 0)
    False
    """

    def __init__(self, lambda_fn: Callable[[Any], bool]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Any, recurse: bool, nonwrapped_numel: int = -1) -> bool:
        """Return whether to look inside, or to share the module out.

        Parameters
        ----------
        module : Module
            The module.
        recurse : bool
            True asks whether to look inside.
        nonwrapped_numel : int
            Not used.
        """
        return recurse or bool(self._lambda_fn(module))


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Return True: every module.

    Parameters
    ----------
    *args, **kwargs
        Not used.

    Returns
    -------
    bool
        True.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp.wrap import always_wrap_policy
    >>> always_wrap_policy()
    True
    """
    return True


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """Return whether to look inside a module, or what a function says of it.

    Parameters
    ----------
    module : Module
        The module.
    recurse : bool
        True asks whether to look inside.
    nonwrapped_numel : int
        Not used.
    lambda_fn : callable
        Gets the module.

    Returns
    -------
    bool
        The answer.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp.wrap import lambda_auto_wrap_policy
    >>> lambda_auto_wrap_policy(torch.nn.ReLU(), False, 0, lambda m: False)
    False
    """
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Any]]
) -> bool:
    """Return whether to look inside a module, or whether it is of some classes.

    Parameters
    ----------
    module : Module
        The module.
    recurse : bool
        True asks whether to look inside.
    nonwrapped_numel : int
        Not used.
    transformer_layer_cls : set of type
        The classes.

    Returns
    -------
    bool
        The answer.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp.wrap import transformer_auto_wrap_policy
    >>> transformer_auto_wrap_policy(torch.nn.ReLU(), False, 0, {torch.nn.ReLU})
    True
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: Any = None,
    exclude_wrap_modules: Any = None,
) -> bool:
    """Return whether a module has enough parameters.

    Parameters
    ----------
    module : Module
        The module.
    recurse : bool
        True asks whether to look inside.
    nonwrapped_numel : int
        How many elements are not shared out yet.
    min_num_params : int, default 100,000,000
        How many are enough.
    force_leaf_modules, exclude_wrap_modules : set of type, optional
        Not to be looked into; not to be shared out on their own.

    Returns
    -------
    bool
        The answer.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp.wrap import size_based_auto_wrap_policy
    >>> size_based_auto_wrap_policy(torch.nn.Linear(2, 2), False, 6, min_num_params=5)
    True
    """
    enough = nonwrapped_numel >= min_num_params
    if recurse:
        return enough and not isinstance(module, tuple(force_leaf_modules or ()))
    return enough and not isinstance(module, tuple(exclude_wrap_modules or ()))


fill(globals(), BY_MPI, "enable_wrap wrap _or_policy _module_wrap_policy _recursive_wrap")
