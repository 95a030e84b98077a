"""Starting processes that train together: not here."""

from __future__ import annotations

from ...._named import fill
from ...._named_modules import ONE_PROCESS
from . import errors

__all__ = ["errors"]

fill(globals(), ONE_PROCESS, "DefaultLogsSpecs LogsSpecs Std start_processes")
