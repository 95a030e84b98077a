"""Differences from PyTorch that stay, each with its reason. A report counts them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Accepted:
    """A pattern of findings: expressions on the category, the operator, and detail and call."""

    category: str
    op: str
    text: str
    reason: str

    def covers(self, category: str, op: str, text: str) -> bool:
        return (
            re.fullmatch(self.category, category) is not None
            and re.search(self.op, op) is not None
            and re.search(self.text, text) is not None
        )


ACCEPTED: tuple[Accepted, ...] = ()


def reason(category: str, op: str, text: str) -> str | None:
    """Return why a difference is accepted, or None."""
    return next((a.reason for a in ACCEPTED if a.covers(category, op, text)), None)
