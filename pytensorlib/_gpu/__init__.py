"""Names and kinds of GPUs: which device of PyTorch's a GPU answers as.

The core's table says the name (`rust/base/src/device.rs`); all else asks here.
"""

from __future__ import annotations

import os
from typing import Any

from .. import _C

__all__ = ["OWN", "Kind", "is_here", "memory", "name", "placed", "shown", "title"]

# The name that always works.
OWN = "wgpu"

name = _C._gpu_name


def title() -> str:
    """Return the name as headings have it."""
    return "GPU" if name() == OWN else name().upper()


def placed(kind: Any) -> Any:
    """Return a kind of device as tables have it: there GPUs have their own name."""
    return OWN if kind == name() else kind


def shown(kind: Any) -> Any:
    """Return what programs call a kind of device that is as `placed` gives it."""
    return name() if kind == OWN else kind


def is_here(kind: str) -> bool:
    """Tell whether tensors can be computed with on a kind of device.

    By its own name a GPU may be asked for before anyone has looked whether there is one.
    """
    if kind == "cpu":
        return True
    return kind == name() and (kind == OWN or _C._wgpu_available())


def memory(index: int) -> int:
    """Return the bytes of a GPU's memory: its own, or the host's where the driver does not tell.

    A GPU whose memory the driver does not tell shares the host's as a rule.
    """
    found = _C._wgpu_info(index)["memory"]
    if found is None:
        try:
            found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):  # Windows
            found = _C._wgpu_info(index)["limits"]["max_buffer_size"]
    return int(found)


class Kind:
    """One of PyTorch's kinds of devices, which is here where GPUs answer as it.

    Parameters
    ----------
    name : str
        Such as "cuda".
    why : str
        What is said where they do not.
    """

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why

    def is_named(self) -> bool:
        """Tell whether GPUs answer as this kind."""
        return name() == self.name

    def is_available(self) -> bool:
        """Tell whether there is such a device."""
        return self.is_named() and _C._wgpu_available()

    def count(self) -> int:
        """Return the number of such devices."""
        return _C._wgpu_count() if self.is_available() else 0

    def need_name(self, what: str) -> None:
        """Raise where GPUs do not answer as this kind, for a function of PyTorch's.

        Raises
        ------
        NotImplementedError
            They do not.
        """
        if not self.is_named():
            raise NotImplementedError(f"torch.{self.name}.{what}: {self.why}")

    def need(self, what: str) -> None:
        """Raise where there is no such device, for a function of PyTorch's.

        Raises
        ------
        NotImplementedError
            GPUs do not answer as this kind.
        RuntimeError
            There is no GPU; the text says what to do.
        """
        self.need_name(what)
        if not _C._wgpu_available():
            _C._wgpu_info(0)  # raises, and says why there is none

    def index(self, device: Any, what: str) -> int:
        """Return the number of the device that a number, a name, a device or None means.

        Raises
        ------
        ValueError
            It is of another kind.
        RuntimeError
            There is no such device.
        """
        self.need(what)
        if device is None:
            return _C._wgpu_current()
        if isinstance(device, int):
            found = device if device >= 0 else _C._wgpu_current()
        else:
            device = _C.device(device)
            if not device._is_gpu:
                raise ValueError(f"Expected a {self.name} device, but got: {device}")
            found = _C._wgpu_current() if device.index is None else device.index
        if found >= _C._wgpu_count():
            raise RuntimeError(
                f"{title()} error: invalid device ordinal: torch.{self.name}.{what} asks for "
                f"{self.name}:{found}, and torch.{self.name}.device_count() is {_C._wgpu_count()}"
            )
        return found
