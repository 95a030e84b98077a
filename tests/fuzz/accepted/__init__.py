"""Differences from PyTorch that stay, each with its reason. A report counts them apart.

A module for each kind: `memory`, `errors`, `refused`, `taken`, `values`, and `graphs` of programs.
"""

from __future__ import annotations

from ..calls import Call
from .entry import Accepted
from .errors import ERRORS
from .graphs import GRAPHS
from .memory import MEMORY
from .refused import REFUSED
from .taken import TAKEN
from .values import VALUES

ACCEPTED: tuple[Accepted, ...] = (*MEMORY, *ERRORS, *REFUSED, *TAKEN, *VALUES, *GRAPHS)


def corrupts(call: Call) -> bool:
    """Say whether PyTorch may write out of bounds and live on, so that later calls go wrong."""
    return call.op == "lu_unpack" and any(note != "layout" for note in call.notes)


def reason(category: str, op: str, text: str) -> str | None:
    """Return why a difference is accepted, or None."""
    return next((a.reason for a in ACCEPTED if a.covers(category, op, text)), None)
