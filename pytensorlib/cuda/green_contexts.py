"""Parts of a GPU for a context: not here."""

from __future__ import annotations

from .._absent.modules import refusing

__all__ = ["GreenContext"]

SUPPORTED = False
GreenContext = refusing(
    "GreenContext",
    __name__,
    "wgpu gives a program the whole GPU, which has one queue; several processes may share it.",
    members="Stream create max_workqueue_concurrency pop_context set_context",
)
