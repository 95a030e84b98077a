"""Sends large tensors between processes in pieces.

While one is under way, the next is copied to where MPI reads it, from a GPU or out of another type,
and the one before back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ._buffers import write

__all__ = ["PIECE", "Staged", "pieces", "started"]

# Bytes; with smaller ones what needs no copy takes longer. Processes that call together cut alike,
# wherever their tensors lie.
PIECE = 32 << 20


def pieces(count: int, size: int) -> list[tuple[int, int]]:
    """Return where the pieces of `count` elements of `size` bytes begin and end."""
    step = PIECE // size
    return [(a, min(a + step, count)) for a in range(0, count, step)] or [(0, 0)]


def started(ask: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
    """Return MPI's requests for each part, asked for while those before are under way."""
    requests: list[Any] = []
    for part in parts:
        requests.append(ask(part))
        for earlier in requests[-2:]:
            earlier.Test()  # lets MPI move data
    return requests


class Staged:
    """A tensor that is read, and written to, piece by piece.

    Parameters
    ----------
    tensor : Tensor
        On any device, of any strides.
    host : callable
        Returns, for a piece of it in one dimension, a tensor on the CPU and the memory MPI uses.
    """

    def __init__(self, tensor: Any, host: Callable[[Any], tuple[Any, np.ndarray]]) -> None:
        self.tensor, self._host = tensor, host
        self._flat = tensor.detach().reshape(-1)
        self.parts = self._flat.split(PIECE // tensor.element_size())
        self.hosts: list[Any] = []

    def start(self, request: Callable[[np.ndarray], Any]) -> list[Any]:
        """Ask MPI for each piece as soon as it is there."""

        def ask(part: Any) -> Any:
            x, own = self._host(part)
            self.hosts.append(x)
            return request(own)

        return started(ask, self.parts)

    def finish(self, _: Any) -> None:
        """Let the tensor have what the pieces have, where these are a copy."""
        if not self.tensor.is_contiguous():
            write(self.tensor, self._flat.view(self.tensor.shape))
