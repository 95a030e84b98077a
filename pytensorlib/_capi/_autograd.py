"""`torch._C._autograd`: kinds of devices, and whether a profile is at work."""

from __future__ import annotations

import enum

from .._absent.modules import fill

__all__ = ["DeviceType"]

fill(
    globals(),
    "profiles are made by torch.profiler.profile, whose events are Python objects here.",
    "_KinetoEvent ProfilerEvent _ProfilerResult _enable_profiler _disable_profiler "
    "_prepare_profiler _add_metadata_json _supported_activities _get_sequence_nr "
    "_enable_profiler_legacy _disable_profiler_legacy _enable_record_function "
    "_set_empty_test_observer _unsafe_set_version_counter _push_saved_tensors_default_hooks "
    "_pop_saved_tensors_default_hooks",
)


class DeviceType(enum.IntEnum):
    """Kinds of devices, as PyTorch numbers them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.autograd.DeviceType.CPU.name
    'CPU'
    """

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


def _profiler_enabled() -> bool:
    """Return whether a profile is at work on this thread."""
    from ..autograd.profiler import _here

    return bool(_here.profiles)


def _kineto_step() -> None:
    """Do nothing: steps are counted by `torch.profiler.profile`."""


def kineto_available() -> bool:
    """Return False: profiles do not go through Kineto."""
    return False
