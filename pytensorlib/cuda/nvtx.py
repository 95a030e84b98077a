"""Marks for NVIDIA's profiler: it is not here, and `torch.profiler.record_function` is nearest."""

from __future__ import annotations

from .._named import fill

fill(
    globals(),
    "NVIDIA's profiler is not used here; torch.profiler.record_function marks a range.",
    "mark range range_end range_pop range_push range_start",
)
