"""The public names of operators, as the type stub declares them."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from pytensorlib import _C

PLACES = {"torch": "", "nn": "nn.functional."}
PLACES |= {name: f"{name}." for name in ("fft", "linalg", "special")}


class Form(NamedTuple):
    """One signature of a name: all after the name, its summary, and what forms it has."""

    signature: str
    summary: str
    method: bool
    inplace: bool
    out: bool


def declared() -> dict[str, list[Form]]:
    found = defaultdict(list)
    for schema, place, *rest in _C._schemas():
        name, form = schema.split("(", 1)
        summary = rest.pop()
        full = PLACES.get(place, "Tensor.") + name.partition(".")[0]
        found[full].append(Form(form, summary, *rest))
    return dict(found)


NAMES = declared()


def bare(name: str) -> str:
    return name.rpartition(".")[2]
