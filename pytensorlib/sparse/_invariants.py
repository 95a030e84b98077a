"""`check_sparse_tensor_invariants`: whether the parts of sparse tensors are checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class check_sparse_tensor_invariants:  # noqa: N801  (PyTorch's name)
    """A switch of checks of what sparse tensors are made of, when they are made.

    It is a ``with`` block and a decorator as well. As long as nobody says otherwise, coordinates
    are checked; where that is switched off, each use of them still does it.

    Parameters
    ----------
    enable : bool, default True
        Whether to check.

    Raises
    ------
    RuntimeError
        A block is entered that has not been left.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _enabled: bool | None = None

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._inside = False
        self._before: bool | None = None

    @staticmethod
    def _asked(given: bool | None) -> bool | None:
        """Return whether to check, of what a call says about it; None where nobody asked."""
        return check_sparse_tensor_invariants._enabled if given is None else given

    @staticmethod
    def is_enabled() -> bool:
        """Return what was asked for last.

        Returns
        -------
        bool
            False where nobody asked, too.
        """
        return bool(check_sparse_tensor_invariants._enabled)

    @staticmethod
    def enable() -> None:
        """Ask for checks."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Ask for no checks; each use still checks coordinates."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self._inside:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self._inside, self._before = True, check_sparse_tensor_invariants._enabled
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *error: object) -> None:
        self._inside = False
        check_sparse_tensor_invariants._enabled = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked
