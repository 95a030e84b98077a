"""Windows for spectral analysis."""

from . import windows
from .windows import *  # noqa: F403

__all__ = windows.__all__
