"""Contexts that also decorate functions, generators and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import decorated

__all__ = ["context_decorator"]


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs in a context of its own each time.

    Parameters
    ----------
    ctx : context manager or callable
        Entered for each call; what is callable is called for a new one.
    func : callable
        What runs in it; a generator runs in it between its values.

    Returns
    -------
    callable
        Takes and gives what `func` takes and gives.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils._contextlib import context_decorator
    >>> context_decorator(torch.no_grad, torch.is_grad_enabled)()
    False
    """
    if callable(ctx) and hasattr(ctx, "__enter__") and not isinstance(ctx, type):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), "
            "making it ambiguous which interface to use"
        )
    return decorated(ctx if callable(ctx) else lambda: ctx, func)


class _DecoratorContextManager:
    """A context manager that is a decorator too: each call runs in a clone of it."""

    def __call__(self, orig_func: Any) -> Any:
        return decorated(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a fresh manager; one with settings must say how."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without settings, which may decorate without being called first."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
