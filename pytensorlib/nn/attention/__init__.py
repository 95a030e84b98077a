"""Which of PyTorch's kernels attention may use: there is one here, for all of them."""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Callable, Iterator
from typing import Any

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

# Whether to warn where attention has no kernel of its own: it always has one here.
WARN_FOR_UNFUSED_KERNELS = False


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


_kernels: dict[str, Callable[..., Any]] = {}
_active: tuple[str, Any] | None = None


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Make a way of computing attention known, which `activate_flash_attention_impl` turns on.

    Parameters
    ----------
    impl : str
        Its name.
    register_fn : callable
        Called without arguments to turn it on: it replaces what is to be replaced, and may return
        an object whose ``remove()`` undoes that.

    Examples
    --------
    >>> from pytensorlib.nn import attention
    >>> attention.register_flash_attention_impl("none", register_fn=lambda: None)
    >>> "none" in attention.list_flash_attention_impls()
    True
    """
    _kernels[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Turn a way of computing attention on that `register_flash_attention_impl` made known.

    Parameters
    ----------
    impl : str
        Its name.

    Raises
    ------
    ValueError
        There is none of that name.

    Examples
    --------
    >>> from pytensorlib.nn import attention
    >>> attention.activate_flash_attention_impl("FA9")
    Traceback (most recent call last):
        ...
    ValueError: Unknown flash attention impl 'FA9'. Available implementations: ...
    """
    global _active
    _restore()
    if impl not in _kernels:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    handle = _kernels[impl]()
    if handle is not None:
        _active = impl, handle


def list_flash_attention_impls() -> list[str]:
    """Return the names that `register_flash_attention_impl` was given.

    Returns
    -------
    list of str
        In order; none at first, as the kernel that is here needs no name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.nn.attention.list_flash_attention_impls(), list)
    True
    """
    return sorted(_kernels)


def current_flash_attention_impl() -> str | None:
    """Return which registered way of computing attention is on.

    Returns
    -------
    str or None
        Its name; None for the kernel that is here.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.attention.current_flash_attention_impl() is None
    True
    """
    return None if _active is None else _active[0]


def restore_flash_attention_impl() -> None:
    """Turn off what `activate_flash_attention_impl` turned on, with a warning if that is nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.nn.attention.restore_flash_attention_impl()
    """
    if not _restore():
        logging.getLogger(__name__).warning(
            "Trying to restore the attention that is here, and no other was activated"
        )


def _restore() -> bool:
    global _active
    if _active is None:
        return False
    _active[1].remove()
    _active = None
    return True
