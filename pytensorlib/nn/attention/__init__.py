"""Which of PyTorch's kernels attention may use: there is one here, for all of them."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of attention.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.attention.SDPBackend.MATH.value
    0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_allowed: tuple[SDPBackend, ...] = tuple(SDPBackend)[1:]


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Say for a block which of PyTorch's kernels may be used: nothing changes.

    ``scaled_dot_product_attention`` has one kernel here, which keeps scores in tiles and gives what
    each of PyTorch's gives.

    Parameters
    ----------
    backends : SDPBackend or list of SDPBackend
        Any.
    set_priority : bool, default False
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.attention import SDPBackend, sdpa_kernel
    >>> q = torch.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    global _allowed
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    for backend in chosen:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(f"Backend must be an instance of SDPBackend, got {type(backend)}")
    old, _allowed = _allowed, tuple(chosen)
    try:
        yield
    finally:
        _allowed = old


def _cur_sdpa_kernel_backends() -> list[SDPBackend]:
    """Return what `sdpa_kernel` was given."""
    return list(_allowed)
