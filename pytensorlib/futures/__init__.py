"""Futures: a value that comes later."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, NoReturn, TypeVar

import pytensorlib as pt

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
FAILED = "Got the following error when running the callback: "


def _check_callback(callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"a callback must be callable, got {type(callback).__name__}")


class Future(Generic[T]):
    """A value that is set once, now or by another thread.

    Parameters
    ----------
    devices : list of device, optional
        Devices with an index, on which the value may live; they change nothing here.

    Raises
    ------
    ValueError
        A device has no index.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.wait())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Iterable[Any] | None = None) -> None:
        for device in devices or ():
            if not isinstance(device, int) and pt.device(device).index is None:
                raise ValueError(f"Expected devices to have indices, got {device}")
        self._ready = threading.Condition()
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError("Can not pickle torch.futures.Future")

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
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._result, self._error, self._is_done = result, error, True
            self._ready.notify_all()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call what waited for the value; its error concerns nobody else, so it is logged."""
        try:
            callback(self)
        except Exception as error:
            log = logging.getLogger(__name__)
            log.error("%s%s: %s", FAILED, type(error).__name__, error, exc_info=error)

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
            What it returns is dropped, and what it raises is logged.
        """
        _check_callback(callback)
        with self._ready:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return a future for what ``callback(self)`` returns.

        Where it raises, waiting for that future raises a RuntimeError that tells the error.

        Parameters
        ----------
        callback : callable
            Called once this future is done.
        """
        _check_callback(callback)
        following = self._following()

        def go_on(_: Future[T]) -> None:
            try:
                result = callback(self)
            except BaseException as error:
                told = RuntimeError(f"{FAILED}{type(error).__name__}: {error}")
                told.__cause__ = error
                following.set_exception(told)
                if not isinstance(error, Exception):  # Ctrl-C ends more than the callback
                    raise
            else:
                following.set_result(result)

        self.add_done_callback(go_on)
        return following

    def _following(self) -> Future[Any]:
        """Return the future that `then` gives its result to."""
        return Future()


def all_futures(futures: Iterable[Any]) -> list[Future[Any]]:
    """Return the futures as a list, after checking that they are some."""
    found = list(futures)
    for future in found:
        if future is None:
            raise RuntimeError("Future can't be None")
        if not isinstance(future, Future):
            raise TypeError(f"a Future is needed, got {type(future).__name__}")
    return found


def collect_all(futures: Iterable[Future[Any]]) -> Future[Any]:
    """Return a future for the list of `futures`, done when all of them are.

    Parameters
    ----------
    futures : list of Future
        Any number.

    Returns
    -------
    Future
        Its value is `futures`. Where some have errors, the first of them in the list is its error.

    Raises
    ------
    RuntimeError
        One of them is None.

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
    waited = all_futures(futures)
    all_done, left, lock = Future[Any](), len(waited), threading.Lock()

    def one_done(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            errors = [future._error for future in waited if future._error is not None]
            all_done._finish(waited, errors[0] if errors else None)

    if not waited:
        all_done.set_result([])
    for future in waited:
        future.add_done_callback(one_done)
    return all_done


def wait_all(futures: Iterable[Future[Any]]) -> list[Any]:
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
    waited = all_futures(futures)
    for future in waited:
        with contextlib.suppress(Exception):
            future.wait()
    return [future.wait() for future in waited]
