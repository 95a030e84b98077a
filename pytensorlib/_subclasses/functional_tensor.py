"""Tensors whose writes PyTorch's compiler records as functions; nothing is recorded so here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _C
from .._absent.modules import fill, refusing
from .._absent.table import EAGER

__all__: list[str] = []

fill(globals(), EAGER, "FunctionalTensorMode dispatch_functionalize")
FunctionalTensor = refusing("FunctionalTensor", __name__, EAGER, (_C.Tensor,))


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """Return the tensor: it is behind no other."""
    return tensor


@contextlib.contextmanager
def disable_functional_mode() -> Iterator[None]:
    """Do without the mode for a block."""
    yield
