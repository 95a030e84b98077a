"""The store that one process serves to others over TCP."""

from __future__ import annotations

import datetime as dt
import socket
import socketserver
import struct
import threading
import time
from typing import Any

from ._errors import DistNetworkError, DistStoreError
from ._store import Store, Table

__all__ = ["TCPStore"]

WORKERS = "init/"  # counts who has connected, as PyTorch's does
LARGEST = 1 << 30  # bytes of a message


def _send(to: socket.socket, parts: list[bytes]) -> None:
    lengths = struct.pack(f"<I{len(parts)}I", len(parts), *map(len, parts))
    to.sendall(lengths + b"".join(parts))


def _exactly(of: socket.socket, size: int) -> bytes:
    if size > LARGEST:
        raise ConnectionError(f"a message of {size} bytes")
    found = bytearray()
    while len(found) < size:
        some = of.recv(size - len(found))
        if not some:
            raise ConnectionError("the connection was closed")
        found += some
    return bytes(found)


def _receive(of: socket.socket) -> list[bytes]:
    (count,) = struct.unpack("<I", _exactly(of, 4))
    lengths = struct.unpack(f"<{count}I", _exactly(of, 4 * count))
    return [_exactly(of, n) for n in lengths]


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    # As many processes as connect at once.
    request_queue_size = 128

    def __init__(self, address: tuple[str, int]) -> None:
        self.table, self.lock = Table(), threading.Lock()
        super().__init__(address, _Handler)


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer one process until it closes the connection."""
        try:
            while True:
                op, key, *args = _receive(self.request)
                with self.server.lock:
                    found = self.server.table.ask(op.decode(), key.decode(), args)
                _send(self.request, found)
        except (OSError, ValueError, AttributeError, TypeError):
            return


class TCPStore(Store):
    """A store that one process serves and others connect to.

    Parameters
    ----------
    host_name : str
        Where it is served.
    port : int
        On which port; 0 for any that is free.
    world_size : int, optional
        How many processes use it.
    is_master : bool, default False
        Whether this process serves it.
    timeout : timedelta, default 300 seconds
        How long to wait for connections and keys.
    wait_for_workers : bool, default True
        Wait until `world_size` processes have connected.
    multi_tenant : bool, default False
        Use the store of this process on the port, if there is one.
    master_listen_fd : int, optional
        Not used.
    use_libuv : bool, default True
        Not used.

    Raises
    ------
    DistNetworkError
        Nothing answers there, or the port is taken.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True)
    >>> store.set("key", "value")
    >>> store.get("key")
    b'value'
    """

    served: dict[int, _Server] = {}  # noqa: RUF012

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: dt.timedelta = dt.timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._limit = timeout
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self.host, self.port, self.libuvBackend = host_name, int(port), False
        if is_master and not (multi_tenant and self.port in self.served):
            try:
                self._server = _Server(("", self.port))
            except OSError as error:
                raise DistNetworkError(
                    f"The server socket has failed to listen on any local network address: port "
                    f"{port}: {error.strerror}"
                ) from None
            self.port = self._server.server_address[1]
            self.served[self.port] = self._server
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._socket = self._connect()
        self.add(WORKERS, 1)
        if wait_for_workers and world_size is not None and world_size > 0:

            def all_here() -> bool:
                return int(self._ask("get", WORKERS)[0]) >= world_size

            self._until(all_here, f"{world_size} processes at {host_name}:{self.port}", None)

    def _connect(self) -> socket.socket:
        end = time.monotonic() + self._limit.total_seconds()
        while isinstance(made := self._try(), OSError):
            if time.monotonic() > end or isinstance(made, socket.gaierror):
                raise DistNetworkError(
                    "The client socket has failed to connect to any network address of "
                    f"({self.host}, {self.port}): {made}"
                )
            time.sleep(0.05)
        return made

    def _try(self) -> socket.socket | OSError:
        """Return a connection, or why there is none."""
        try:
            made = socket.create_connection((self.host, self.port), timeout=5)
        except OSError as error:
            return error
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _ask(self, op: str, key: str, *args: bytes) -> list[bytes]:
        try:
            with self._lock:
                _send(self._socket, [op.encode(), key.encode(), *args])
                return _receive(self._socket)
        except OSError as error:
            raise DistStoreError(f"TCPStore: {self.host}:{self.port}: {error}") from None

    def clone(self) -> TCPStore:
        """Return another connection to the same store."""
        return TCPStore(self.host, self.port, None, False, self._limit)

    def __del__(self) -> Any:
        if getattr(self, "_socket", None) is not None:
            self._socket.close()
        if getattr(self, "_server", None) is not None and self._server is not None:
            self.served.pop(self.port, None)
            self._server.shutdown()
            self._server.server_close()
