"""Streams and events of any device: wgpu's queue keeps the order of calls, so there are none."""

from __future__ import annotations

from ._named import refusing
from ._named_modules import NO_CUDA

__all__ = ["Event", "Stream"]

Event = refusing("Event", __package__ or "", NO_CUDA)
Stream = refusing("Stream", __package__ or "", NO_CUDA)
