"""Versions: of PyTorch's interface, with this package's own behind the plus sign."""

from __future__ import annotations

from . import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
# What PyTorch can be built for besides the CPU.
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"
