"""Named tuples for ops with several results."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

_made: dict[tuple[str, ...], type] = {}


def make(name: str, fields: list[str]) -> Any:
    """The class of an op's results: a tuple whose items also have names."""
    key = (name, *fields)
    if key not in _made:
        _made[key] = _build(name, fields)
    return _made[key]


def _build(name: str, fields: list[str]) -> type:
    def show(self: Any) -> str:
        items = ",\n".join(f"{f}={x!r}" for f, x in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{items})"

    def reduce(self: Any) -> Any:
        return _restore, (name, fields, tuple(self))

    space: dict[str, Any] = {f: property(itemgetter(i)) for i, f in enumerate(fields)}
    space.update(
        __slots__=(),
        __module__="torch.return_types",
        __repr__=show,
        __reduce__=reduce,
        n_fields=len(fields),
        _fields=tuple(fields),
        __match_args__=tuple(fields),
    )
    return type(name, (tuple,), space)


def _restore(name: str, fields: list[str], items: tuple[Any, ...]) -> Any:
    return make(name, fields)(items)
