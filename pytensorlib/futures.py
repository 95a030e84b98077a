"""Futures: a value that comes later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that is set once, now or by another thread.

    Parameters
    ----------
    devices : list of device, optional
        Accepted for scripts; values may live anywhere.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.wait())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._ready = threading.Condition()
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def done(self) -> bool:
        """Return whether there is a value or an error."""
        return self._is_done

    def wait(self) -> Any:
        """Wait for the value and return it; raise the error if that came instead."""
        with self._ready:
            self._ready.wait_for(lambda: self._is_done)
        if self._error is not None:
            raise self._error
        return self._result

    def value(self) -> Any:
        """Return the value, which must be there already.

        Raises
        ------
        RuntimeError
            It is not.
        """
        if not self._is_done:
            raise RuntimeError("Future.value(): there is no value yet; wait() waits for it")
        return self.wait()

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._ready:
            if self._is_done:
                raise RuntimeError("Future can only be marked completed once.")
            self._result, self._error, self._is_done = result, error, True
            self._ready.notify_all()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def set_result(self, result: Any) -> None:
        """Give the future its value.

        Parameters
        ----------
        result : object
            Anything, also another future's value.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give the future an error, which `wait` raises.

        Parameters
        ----------
        result : BaseException
            The error.
        """
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call ``callback(self)`` when there is a value or an error; at once if there is.

        Parameters
        ----------
        callback : callable
            What it returns is dropped.
        """
        with self._ready:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return a future for what ``callback(self)`` returns, or raises.

        Parameters
        ----------
        callback : callable
            Called once this future is done.
        """
        following = Future()

        def go_on(future: Future) -> None:
            try:
                result = callback(future)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(go_on)
        return following


def collect_all(futures: list[Future]) -> Future:
    """Return a future for the list of `futures`, done when all of them are.

    Parameters
    ----------
    futures : list of Future
        Any number.

    Returns
    -------
    Future
        Its value is `futures`; errors stay in them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> futures = [torch.futures.Future() for _ in range(2)]
    >>> both = torch.futures.collect_all(futures)
    >>> for i, future in enumerate(futures):
    ...     future.set_result(i)
    >>> [future.value() for future in both.wait()]
    [0, 1]
    """
    all_done, left, lock = Future(), len(futures), threading.Lock()

    def one_done(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            all_done.set_result(list(futures))

    if not futures:
        all_done.set_result([])
    for future in futures:
        future.add_done_callback(one_done)
    return all_done


def wait_all(futures: list[Future]) -> list[Any]:
    """Wait for all `futures` and return their values.

    Parameters
    ----------
    futures : list of Future
        Any number.

    Returns
    -------
    list
        The values in the same order.

    Raises
    ------
    Exception
        The first error among them, in their order.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> future = torch.futures.Future()
    >>> future.set_result("done")
    >>> torch.futures.wait_all([future])
    ['done']
    """
    return [future.wait() for future in collect_all(futures).wait()]
