"""`vmap`, `grad` and `grad_and_value` at PyTorch's private path."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..func import grad, grad_and_value, vmap
from ..func._vmap import mapped

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """Return a function as `vmap` does, whose slices are worked off in so many chunks.

    Slices run one after the other in any case, so that chunks change no result and no memory.

    Parameters
    ----------
    func : callable
        Of one slice.
    in_dims, out_dims, randomness
        As in `torch.vmap`.
    chunks : int, default 2
        How many.

    Returns
    -------
    callable
        Takes and gives what `torch.vmap` of `func` takes and gives.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.functorch.experimental import chunk_vmap
    >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 4))
    tensor([4., 4., 4.])
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size = mapped(func, in_dims, args)[0]
        chunk_size = max(1, -(-size // chunks)) if chunks > 1 else None
        return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)

    return wrapped
