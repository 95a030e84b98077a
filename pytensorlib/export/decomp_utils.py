"""The table of decompositions that a program can change."""

from __future__ import annotations

from typing import Any

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict[Any, Any]):
    """The functions that compute operators with core operators; take some out to keep those.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> table = torch.export.default_decompositions()
    >>> _ = table.pop(torch.ops.aten.linear.default)
    >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    >>> kept = program.run_decompositions(table)
    >>> [str(node.target) for node in kept.graph.nodes if node.op == "call_function"]
    ['aten.linear.default']
    """

    def __init__(self) -> None:
        from ._decompositions import table

        super().__init__(table())

    def copy(self) -> CustomDecompTable:
        """Return a table of its own with the same functions."""
        made = CustomDecompTable()
        made.clear()
        made.update(self)
        return made

    def materialize(self) -> dict[Any, Any]:
        """Return the table as a dictionary."""
        return dict(self)
