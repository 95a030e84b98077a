"""Starting processes that train together: not here."""

from __future__ import annotations

from ...._absent.modules import fill
from ...._absent.table import BY_MPI
from . import errors

__all__ = ["errors"]

fill(globals(), BY_MPI, "DefaultLogsSpecs LogsSpecs Std start_processes")
