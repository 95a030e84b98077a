"""What a difference that stays is: a pattern of findings, and the reason."""

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
            and re.search(self.text, text, re.DOTALL) is not None
        )


FACTORS = r"linalg|qr|svd|lu|chol|geqrf|triangular|solve|eig|inverse|pinv|^det$"
