"""Finding each other: what an address gives a process to join with."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlparse

from ._store import FileStore
from ._tcp_store import TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

LIMIT = dt.timedelta(minutes=30)
_handlers: dict[str, Callable[..., Iterator[Any]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Any]]) -> None:
    """Let addresses of a kind be answered by a function.

    Parameters
    ----------
    scheme : str
        What stands before ``://``.
    handler : callable
        Gets the address and yields a store, a rank and a world size.

    Raises
    ------
    RuntimeError
        The kind has one already.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.register_rendezvous_handler("mine", lambda url, **kw: iter(()))
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Any]:
    """Return what a process joins with: a store, its rank, and the world size.

    Parameters
    ----------
    url : str
        ``env://``, ``tcp://host:port`` or ``file:///path``.
    rank, world_size : int, optional
        As far as the address does not tell them.
    **kwargs
        ``timeout``.

    Returns
    -------
    iterator
        Of one such tuple.

    Raises
    ------
    RuntimeError
        Nothing answers addresses of this kind.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> found = torch.distributed.rendezvous("tcp://127.0.0.1:0", 0, 1)
    """
    parts = urlparse(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    given = {k: v[0] for k, v in parse_qs(parts.query).items()}
    if rank != -1:
        given["rank"] = str(rank)
    if world_size != -1:
        given["world_size"] = str(world_size)
    query = "&".join(f"{k}={v}" for k, v in given.items())
    return _handlers[parts.scheme](parts._replace(query=query).geturl(), **kwargs)


def _numbers(url: str) -> tuple[Any, int, int]:
    parts = urlparse(url)
    given = {k: v[0] for k, v in parse_qs(parts.query).items()}
    for name in ("rank", "world_size"):
        if name not in given:
            raise ValueError(
                f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: "
                f"{name.replace('_', ' ')} parameter missing"
            )
    return parts, int(given["rank"]), int(given["world_size"])


def _by_tcp(url: str, timeout: dt.timedelta = LIMIT, **kwargs: Any) -> Iterator[Any]:
    parts, rank, size = _numbers(url)
    if parts.port is None:
        raise ValueError(
            "Error initializing torch.distributed using tcp:// rendezvous: port number missing"
        )
    yield TCPStore(parts.hostname, parts.port, size, rank == 0, timeout), rank, size


def _by_file(url: str, timeout: dt.timedelta = LIMIT, **kwargs: Any) -> Iterator[Any]:
    parts, rank, size = _numbers(url)
    if not parts.path:
        raise ValueError(
            "Error initializing torch.distributed using file:// rendezvous: path missing"
        )
    yield FileStore(parts.path, size), rank, size


def _by_environment(url: str, timeout: dt.timedelta = LIMIT, **kwargs: Any) -> Iterator[Any]:
    given = {k: v[0] for k, v in parse_qs(urlparse(url).query).items()}

    def told(name: str) -> str:
        if name not in os.environ:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: environment "
                f"variable {name} expected, but not set"
            )
        return os.environ[name]

    rank = int(given.get("rank") or told("RANK"))
    size = int(given.get("world_size") or told("WORLD_SIZE"))
    store = TCPStore(told("MASTER_ADDR"), int(told("MASTER_PORT")), size, rank == 0, timeout)
    yield store, rank, size


register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("file", _by_file)
register_rendezvous_handler("env", _by_environment)
