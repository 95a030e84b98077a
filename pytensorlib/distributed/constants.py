"""How long a process would wait for others."""

from __future__ import annotations

from . import default_pg_timeout

__all__ = ["default_pg_timeout"]
