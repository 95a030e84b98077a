"""Streams and events of CUDA: there are none."""

from __future__ import annotations

from .._named import refusing
from .._named_modules import NO_CUDA

__all__ = ["Event", "ExternalStream", "Stream"]

Event = refusing("Event", __name__, NO_CUDA)
ExternalStream = refusing("ExternalStream", __name__, NO_CUDA)
Stream = refusing("Stream", __name__, NO_CUDA)
