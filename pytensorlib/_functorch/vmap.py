"""Private parts of `torch.vmap` that libraries and tests call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._absent.modules import fill
from ..func import _vmap
from ..utils import _pytree, _pytree_spec

__all__ = ["get_chunk_sizes", "vmap_impl"]

_get_name = _vmap.called
_check_randomness_arg = _vmap.check_randomness
_check_out_dims_is_int_or_int_pytree = _vmap.check_out_dims
_broadcast_to_and_flatten = _pytree_spec._broadcast_to_and_flatten
Tensor, tree_flatten, tree_unflatten = _C.Tensor, _pytree.tree_flatten, _pytree.tree_unflatten

INSIDE = "the core makes and takes apart the tensors that stand for slices. Call torch.vmap itself."
fill(
    globals(),
    INSIDE,
    "restore_vmap wrap_batched unwrap_batched vmap_increment_nesting _create_batched_inputs "
    "_unwrap_batched _flat_vmap _maybe_remove_batch_dim _add_batch_dim _remove_batch_dim",
)


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[Any], list[Any], Any]:
    """Return the number of slices, each leaf's dimension of them, the leaves and their form."""
    size, dims, flat, spec = _vmap.mapped(func, in_dims, args)
    dims = [
        d % x.dim() if isinstance(d, int) and d < 0 else d for d, x in zip(dims, flat, strict=True)
    ]
    return size, dims, flat, spec


def _validate_and_get_batch_size(flat_in_dims: list[Any], flat_args: list[Any]) -> int:
    """Return the number of slices that all arguments have."""
    pairs = zip(flat_in_dims, flat_args, strict=True)
    sizes = [x.size(dim) for dim, x in pairs if dim is not None]
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _num_outputs(batched_outputs: Any) -> int:
    """Return how many outputs a function gave."""
    return len(batched_outputs) if isinstance(batched_outputs, tuple) else 1


def _as_tuple(value: Any, num_elements: int, error_message_lambda: Callable[[], str]) -> Any:
    """Return a tuple of this length, of a tuple or of one value."""
    if not isinstance(value, tuple):
        return (value,) * num_elements
    if len(value) != num_elements:
        raise ValueError(error_message_lambda())
    return value


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """Return the sizes of chunks that together have a number of elements.

    Parameters
    ----------
    total_elems : int
        Of all chunks.
    chunk_size : int
        Of each but the last.

    Returns
    -------
    list of int
        They add up to `total_elems`.

    Examples
    --------
    >>> from pytensorlib._functorch.vmap import get_chunk_sizes
    >>> get_chunk_sizes(7, 3)
    [3, 3, 1]
    """
    whole, rest = divmod(total_elems, chunk_size)
    return [chunk_size] * whole + [rest] * (rest > 0)


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call `func` for each slice of its arguments, as `torch.vmap` does.

    Parameters
    ----------
    func : callable
        Of one slice.
    in_dims, out_dims, randomness, chunk_size
        As in `torch.vmap`.
    *args, **kwargs
        What the mapped function is called with.

    Returns
    -------
    object
        What it returns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.vmap import vmap_impl
    >>> vmap_impl(torch.sum, 0, 0, "error", None, torch.ones(2, 3))
    tensor([3., 3.])
    """
    return _vmap.vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)
