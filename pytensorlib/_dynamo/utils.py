"""Names of PyTorch's compiler that libraries call."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Return False: programs run eagerly on every device."""
    return False


def is_parameter_freezing() -> bool:
    """Return False: nothing is compiled."""
    return False


def clear_compilation_metrics() -> None:
    """Do nothing: there are none."""


counters: dict[str, dict[str, Any]] = {}


@functools.lru_cache(None)
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn, once for each text."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """Do nothing for a block: there is no limit."""
    yield


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """Return a copy of a tensor, a leaf where it is one."""
    y = x.detach().clone() if dtype is None else x.detach().to(dtype, copy=True)
    return y.requires_grad_(x.requires_grad)


class LazyString:
    """A text that is made when it is shown."""

    def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return str(self.func(*self.args, **self.kwargs))
