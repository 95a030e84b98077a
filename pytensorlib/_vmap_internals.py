"""The first `vmap` of PyTorch, whose private parts libraries and tests call."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from . import _C
from ._functorch.vmap import (
    _as_tuple,
    _check_out_dims_is_int_or_int_pytree,
    _get_name,
    _num_outputs,
    _validate_and_get_batch_size,
)
from .func import vmap as _map
from .utils import _pytree as pytree

__all__ = ["vmap"]

_check_out_dims_is_int_or_int_tuple = _check_out_dims_is_int_or_int_pytree


def _validate_outputs(outputs: Any, func: Callable[..., Any]) -> None:
    """Refuse outputs that are no tensors."""
    name = _get_name(func)
    for y in outputs if isinstance(outputs, tuple) else (outputs,):
        if not isinstance(y, _C.Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)} as the "
                "return."
            )


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Return what `torch.vmap` returns, and warn that this is its old name.

    Parameters
    ----------
    func : callable
        Of one slice.
    in_dims, out_dims
        As in `torch.vmap`.

    Returns
    -------
    callable
        Takes what `func` takes, with one dimension more in what is mapped.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> from pytensorlib._vmap_internals import vmap
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     vmap(torch.sum)(torch.ones(2, 3))
    tensor([3., 3.])
    """
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.",
        FutureWarning,
        stacklevel=2,
    )
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """Return what `torch.vmap` returns; an output may be None for all slices where that is said."""

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        if not allow_none_pass_through:
            return _map(func, in_dims, out_dims, "different")(*args)
        form: list[Any] = []

        def tensors(*slices: Any) -> Any:
            flat, spec = pytree.tree_flatten(func(*slices))
            form[:] = [[y is None for y in flat], spec]
            return tuple(y for y in flat if y is not None)

        dims = out_dims
        if isinstance(out_dims, tuple):
            # The dimensions of what is no None are known once the function has run.
            dims = 0
        given = iter(_map(tensors, in_dims, dims, "different")(*args))
        none, spec = form
        outputs = [None if no else next(given) for no in none]
        if isinstance(out_dims, tuple):
            pairs = zip(outputs, _as_tuple(out_dims, len(outputs), lambda: "out_dims"), strict=True)
            outputs = [None if y is None else y.movedim(0, dim) for y, dim in pairs]
        return spec.unflatten(outputs)

    return wrapped


# Names that only tests ask for.
_ = (_num_outputs, _validate_and_get_batch_size)
