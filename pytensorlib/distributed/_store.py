"""Stores of small values by key, which processes share to find each other."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ._errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

FIRST, LONGEST = 1e-3, 0.05  # seconds between questions for a key


class Table:
    """The values of a store, and what can be done with them in one step."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = {} if values is None else values

    def ask(self, op: str, key: str, args: Sequence[bytes]) -> list[bytes]:
        """Do one step; returns its results."""
        return list(getattr(self, f"_{op}")(key, *args))

    def _set(self, key: str, value: bytes) -> list[bytes]:
        self.values[key] = value
        return []

    def _get(self, key: str) -> list[bytes]:
        return [self.values[key]] if key in self.values else []

    def _add(self, key: str, amount: bytes) -> list[bytes]:
        total = int(self.values.get(key, b"0")) + int(amount)
        self.values[key] = str(total).encode()
        return [self.values[key]]

    def _swap(self, key: str, expected: bytes, desired: bytes) -> list[bytes]:
        here = self.values.get(key)
        if here == expected or (here is None and not expected):
            self.values[key] = here = desired
        return [expected if here is None else here]

    def _append(self, key: str, value: bytes) -> list[bytes]:
        self.values[key] = self.values.get(key, b"") + value
        return []

    def _delete(self, key: str) -> list[bytes]:
        return [b"1"] if self.values.pop(key, None) is not None else []

    def _keys(self, _: str) -> list[bytes]:
        return [k.encode() for k in self.values]

    def _take(self, key: str) -> list[bytes]:
        """Take the first of a queue, whose ends are kept beside it."""
        first, last = (int(self.values.get(f"{key}/{end}", b"0")) for end in ("first", "last"))
        if first == last:
            return []
        self.values[f"{key}/first"] = str(first + 1).encode()
        return [self.values.pop(f"{key}/{first}")]

    def _push(self, key: str, value: bytes) -> list[bytes]:
        last = int(self.values.get(f"{key}/last", b"0"))
        self.values[f"{key}/{last}"] = value
        self.values[f"{key}/last"] = str(last + 1).encode()
        return []


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Values by key, which several processes or threads share.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.HashStore, torch.distributed.Store)
    True
    """

    def __init__(self) -> None:
        self._limit = dt.timedelta(seconds=300)

    def _ask(self, op: str, key: str, *args: bytes) -> list[bytes]:
        raise NotImplementedError("Store: use one of TCPStore, FileStore, HashStore, PrefixStore")

    @property
    def timeout(self) -> dt.timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._limit

    def set_timeout(self, timeout: dt.timedelta) -> None:
        """Set how long `get` and `wait` wait.

        Parameters
        ----------
        timeout : timedelta
            300 seconds before.
        """
        self._limit = timeout

    def _until(self, there: Callable[[], Any], what: str, limit: dt.timedelta | None) -> Any:
        seconds = (limit or self._limit).total_seconds()
        end, pause = time.monotonic() + seconds, FIRST
        while True:
            found = there()
            if found:
                return found
            if time.monotonic() >= end:
                raise DistStoreError(f"wait timeout after {seconds * 1e3:g}ms, keys: {what}")
            time.sleep(pause)
            pause = min(LONGEST, pause * 1.5)

    def set(self, key: str, value: Any) -> None:
        """Set a key's value.

        Parameters
        ----------
        key : str
            Any.
        value : str or bytes
            Replaces what was there.
        """
        self._ask("set", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Return a key's value; waits until it is there.

        Parameters
        ----------
        key : str
            Any.
        """
        return self._until(lambda: self._ask("get", key), key, None)[0]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first; returns the sum.

        Parameters
        ----------
        key : str
            Any.
        amount : int
            What is added.
        """
        return int(self._ask("add", key, str(int(amount)).encode())[0])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a key's value if it is what is expected; returns what is there then.

        Parameters
        ----------
        key : str
            Any.
        expected_value : str or bytes
            An empty one also stands for a key that is not there.
        desired_value : str or bytes
            The new value.
        """
        return self._ask("swap", key, _bytes(expected_value), _bytes(desired_value))[0]

    def append(self, key: str, value: Any) -> None:
        """Add bytes to the end of a key's value.

        Parameters
        ----------
        key : str
            Any.
        value : str or bytes
            What is added.
        """
        self._ask("append", key, _bytes(value))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are there.

        Parameters
        ----------
        keys : list of str
            Any number.
        """
        return all(self._ask("get", key) for key in keys)

    def wait(self, keys: Sequence[str], timeout: dt.timedelta | None = None) -> None:
        """Wait until all keys are there.

        Parameters
        ----------
        keys : list of str
            Any number.
        timeout : timedelta, optional
            For how long; the store's by default.
        """
        self._until(lambda: self.check(keys), ", ".join(keys), timeout)

    def delete_key(self, key: str) -> bool:
        """Take a key away; returns whether it was there.

        Parameters
        ----------
        key : str
            Any.
        """
        return bool(self._ask("delete", key))

    def list_keys(self) -> list[str]:
        """Return all keys."""
        return [key.decode() for key in self._ask("keys", "")]

    def num_keys(self) -> int:
        """Return how many keys there are."""
        return len(self._ask("keys", ""))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys.

        Parameters
        ----------
        keys : list of str
            Any number.
        """
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Set the values of several keys.

        Parameters
        ----------
        keys : list of str
            Any number.
        values : list of str or bytes
            As many.
        """
        for key, value in zip(keys, values):
            self.set(key, value)

    def queue_push(self, key: str, value: Any) -> None:
        """Add a value to the end of a queue.

        Parameters
        ----------
        key : str
            The queue's name.
        value : str or bytes
            What is added.
        """
        self._ask("push", key, _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue.

        Parameters
        ----------
        key : str
            The queue's name.
        block : bool, default True
            Wait for one.
        """
        if block:
            return self._until(lambda: self._ask("take", key), key, None)[0]
        found = self._ask("take", key)
        if not found:
            raise QueueEmptyError(f"queue {key} is empty")
        return found[0]

    def queue_len(self, key: str) -> int:
        """Return how many values a queue has.

        Parameters
        ----------
        key : str
            The queue's name.
        """
        ends = [self._ask("get", f"{key}/{end}") for end in ("last", "first")]
        last, first = (int(e[0]) if e else 0 for e in ends)
        return last - first

    def has_extended_api(self) -> bool:
        """Return True: there are `append`, `multi_get` and `multi_set`."""
        return True


class HashStore(Store):
    """A store for the threads of one process.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> store = torch.distributed.HashStore()
    >>> store.set("key", "value")
    >>> store.get("key")
    b'value'
    """

    def __init__(self) -> None:
        super().__init__()
        self._table, self._lock = Table(), threading.Lock()

    def _ask(self, op: str, key: str, *args: bytes) -> list[bytes]:
        with self._lock:
            return self._table.ask(op, key, args)


class FileStore(Store):
    """A store in a file that all processes can write to.

    Parameters
    ----------
    file_name : str
        Made if it is not there.
    world_size : int, optional
        Not used: the file stays until it is deleted.

    Examples
    --------
    >>> import tempfile
    >>> import pytensorlib as torch
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     store = torch.distributed.FileStore(file.name, 1)
    ...     store.add("count", 2)
    2
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = os.fspath(file_name)

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def _ask(self, op: str, key: str, *args: bytes) -> list[bytes]:
        try:
            import fcntl
        except ImportError as error:
            raise DistStoreError(
                "FileStore: this system cannot lock files; use TCPStore"
            ) from error
        with open(self._path, "a+b") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            f.seek(0)
            text = f.read()
            coded = json.loads(text) if text else {}
            table = Table({k: base64.b64decode(v) for k, v in coded.items()})
            before = dict(table.values)
            found = table.ask(op, key, args)
            if table.values != before:
                f.truncate(0)
                coded = {k: base64.b64encode(v).decode() for k, v in table.values.items()}
                f.write(json.dumps(coded).encode())
                f.flush()
            return found


class PrefixStore(Store):
    """A store whose keys begin with a prefix in another one.

    Parameters
    ----------
    prefix : str
        What keys begin with, before a slash.
    store : Store
        The other one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> whole = torch.distributed.HashStore()
    >>> torch.distributed.PrefixStore("a", whole).set("key", "1")
    >>> whole.get("a/key")
    b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self._store = prefix, store
        self._limit = store.timeout

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    def _ask(self, op: str, key: str, *args: bytes) -> list[bytes]:
        return self._store._ask(op, key if op == "keys" else f"{self._prefix}/{key}", *args)
