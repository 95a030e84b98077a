"""Private names of `torch.cuda` that libraries import."""

from __future__ import annotations

from typing import Any

from .. import _C
from ._kind import GPU

__all__: list[str] = []


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of the GPU that is meant: the current one by None, if `optional`."""
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = _C.device(device)
    if isinstance(device, _C.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != GPU.name:
            raise ValueError(f"Expected a {GPU.name} device, but got: {device}")
        if device.index is not None:
            return device.index
    if device is None and not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return _C._wgpu_current()
