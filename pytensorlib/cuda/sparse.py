"""Classes of sparse tensors on GPUs that answer as "cuda", from before layouts."""

from __future__ import annotations

from ..sparse._old import on_kind
from ._kind import GPU

__all__: list[str] = []

globals().update(on_kind(GPU.name, __name__))
