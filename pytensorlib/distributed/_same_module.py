"""Compares a module across processes, and copies the state of one to all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ._collectives import MiB, _broadcast_coalesced
from ._objects import all_gather_object
from ._process_group import ProcessGroup

__all__ = ["sync_tensors", "verify_shapes"]


def verify_shapes(group: ProcessGroup, named: Sequence[tuple[str, Any]]) -> None:
    """Raise where the processes' parameters differ in name, shape or type.

    Raises
    ------
    RuntimeError
        With the first difference to the first process.
    """
    mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in named]
    found: list[Any] = [None] * group.size()
    all_gather_object(found, mine, group)
    for rank, other in zip(group._ranks, found):
        if len(other) != len(found[0]):
            raise RuntimeError(
                "DDP expects same model across all ranks, but Rank "
                f"{group._ranks[0]} has {len(found[0])} params, while rank {rank} has "
                f"inconsistent {len(other)} params."
            )
        for i, (a, b) in enumerate(zip(other, found[0])):
            if a[1:] != b[1:]:
                raise RuntimeError(
                    f"DDP expects same model across all ranks: params[{i}] ({a[0]}) on rank {rank} "
                    f"with sizes {list(a[1])} of {a[2]} appears not to match sizes of the same "
                    f"param on rank {group._ranks[0]}: {b[0]}, {list(b[1])} of {b[2]}"
                )


def sync_tensors(
    group: ProcessGroup, tensors: Iterable[Any], src: int = 0, size: int = 250 * MiB
) -> None:
    """Give all processes one's tensors."""
    some = [t for t in tensors if t is not None]
    if some:
        _broadcast_coalesced(group, some, size, src)
