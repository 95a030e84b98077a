"""The functions of the package `functorch`: those of `torch.func`, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import func
from . import make_functional as modules

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def get_warning(api: str, new_api: str | None = None, replace_newlines: bool = False) -> str:
    """Return what the old name of a function says.

    Parameters
    ----------
    api : str
        The old name.
    new_api : str, optional
        The new one, of `torch.func` where not given.
    replace_newlines : bool, default False
        Not needed: the text is one line.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> from pytensorlib._functorch.deprecated import get_warning
    >>> "torch.func.grad" in get_warning("grad")
    True
    """
    return (
        f"`functorch.{api}` is deprecated as of PyTorch 2.0. Please use "
        f"`{new_api or f'torch.func.{api}'}` instead"
    )


def warn_deprecated(api: str, new_api: str | None = None) -> None:
    """Warn that a name is old.

    Parameters
    ----------
    api : str
        The old name.
    new_api : str, optional
        The new one.

    Examples
    --------
    >>> import warnings
    >>> from pytensorlib._functorch.deprecated import warn_deprecated
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("grad")
    >>> seen[0].category is FutureWarning
    True
    """
    warnings.warn(get_warning(api, new_api), FutureWarning, stacklevel=3)


def old(function: Callable[..., Any], new_api: str | None = None) -> Any:
    """Return the function under its old name, which warns."""
    name = function.__name__

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        warn_deprecated(name, new_api)
        return function(*args, **kwargs)

    wrapped.__module__ = __name__
    return wrapped


vmap = old(func.vmap, "torch.vmap")
grad, grad_and_value, hessian = old(func.grad), old(func.grad_and_value), old(func.hessian)
vjp, jvp, jacrev, jacfwd = old(func.vjp), old(func.jvp), old(func.jacrev), old(func.jacfwd)
functionalize = old(func.functionalize)
make_functional = old(modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = old(
    modules.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = old(
    modules.combine_state_for_ensemble, "torch.func.stack_module_state"
)
