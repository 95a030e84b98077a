"""How long a process waits for others."""

from __future__ import annotations

from ._process_group import default_pg_timeout

__all__ = ["default_pg_timeout"]
