"""What records the call that is at work, for those who must tell it something."""

from __future__ import annotations

from typing import Any

# A `pytensorlib._graph._Capture`, while a call is recorded.
current: Any = None


def refuse(why: str) -> None:
    """Let the call that is recorded, if one is, not be run again."""
    if current is not None:
        current.refuse(why)
