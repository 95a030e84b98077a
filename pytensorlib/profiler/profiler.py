"""PyTorch's place of `torch.profiler`."""

from __future__ import annotations

from . import (
    ProfilerAction,
    ProfilerActivity,
    _default_schedule_fn,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "_default_schedule_fn",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
