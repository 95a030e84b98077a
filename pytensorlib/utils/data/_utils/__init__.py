"""The parts of the DataLoader at PyTorch's paths."""

import sys

from ...._utils import ExceptionWrapper
from . import collate, fetch, pin_memory, signal_handling, worker
from ._status import MP_STATUS_CHECK_INTERVAL

__all__ = [
    "HAS_NUMPY",
    "IS_WINDOWS",
    "MP_STATUS_CHECK_INTERVAL",
    "ExceptionWrapper",
    "collate",
    "fetch",
    "pin_memory",
    "signal_handling",
    "worker",
]

IS_WINDOWS = sys.platform == "win32"
HAS_NUMPY = True
python_exit_status = False  # loaders of the program's own ask whether Python is ending
