"""`torch._C._functions`: nodes of a graph that PyTorch has classes for."""

from __future__ import annotations

from .._absent.modules import fill

__all__: list[str] = []

fill(
    globals(),
    "nodes of the graph are made by operators here, and not by their classes.",
    "AccumulateGrad CopyBackwards CopySlices DelayedError Error UndefinedGrad",
)
