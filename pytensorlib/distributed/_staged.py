"""Large tensors go between processes in pieces.

While one is under way, the next is copied to where MPI reads it, from a GPU or out of another type,
and the one before back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._buffers import write

__all__ = ["PIECE", "Staged"]

# Bytes; with smaller ones what needs no copy takes longer. Processes that call together cut alike,
# wherever their tensors lie.
PIECE = 32 << 20


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
        requests: list[Any] = []
        for part in self.parts:
            x, own = self._host(part)
            self.hosts.append(x)
            for earlier in requests[-2:]:
                earlier.Test()  # lets MPI move data
            requests.append(request(own))
        return requests

    def finish(self, _: Any) -> None:
        """Let the tensor have what the pieces have, where these are a copy."""
        if not self.tensor.is_contiguous():
            write(self.tensor, self._flat.view(self.tensor.shape))
