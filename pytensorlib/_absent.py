"""Which of PyTorch's names are not here, why, and what is nearest to them."""

from __future__ import annotations

__all__ = ["PLACES", "why"]

# A reason and what is nearest to each group of names. A line `module: names` is of names in a
# module or class; one without a colon is of modules, with all that is in them.
GROUPS: dict[tuple[str, str], str] = {}


def spelled_out(text: str) -> list[str]:
    """Return the full names of a group, without ``torch``."""
    names = []
    for line in text.strip().splitlines():
        home, colon, members = line.strip().partition(":")
        names += [f"{home}.{name}" for name in members.split()] if colon else home.split()
    return [name.partition(".")[2] for name in names]


REASONS = {name: reason for reason, text in GROUPS.items() for name in spelled_out(text)}
# Modules that lack a name, without ``torch``.
PLACES = frozenset(name.rpartition(".")[0] for name in REASONS)


def why(fullname: str) -> str | None:
    """Return why a name of PyTorch's is not here, and what is nearest; None of other names."""
    name = fullname.partition(".")[2]
    while name and name not in REASONS:
        name = name.rpartition(".")[0]
    if not name:
        return None
    reason, nearest = REASONS[name]
    return f"torch.{name} is not in pytensorlib: {reason}; nearest: {nearest}"
