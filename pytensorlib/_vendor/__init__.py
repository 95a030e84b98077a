"""Packages that PyTorch ships with."""

from . import packaging
