"""Files that a GPU reads by itself: not here."""

from __future__ import annotations

from .._named import fill

__all__ = ["GdsFile", "gds_deregister_buffer", "gds_register_buffer"]

fill(
    globals(),
    "a GPU reads no files here; torch.load(..., mmap=True, map_location=...) reads them for it.",
    "GdsFile gds_deregister_buffer gds_register_buffer",
)
