"""Packages that PyTorch brings along."""

from . import packaging
