"""Files that a GPU reads by itself: not here."""

from __future__ import annotations

from .._absent.modules import fill

__all__: list[str] = []

fill(
    globals(),
    "a GPU reads no files here; torch.load(..., mmap=True, map_location=...) reads them for it.",
    "GdsFile[deregister_handle load_storage register_handle save_storage] "
    "gds_deregister_buffer gds_register_buffer",
)
