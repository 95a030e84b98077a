"""Loading: each process reads what it needs, however many wrote the checkpoint."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from . import metadata as meta
from ._flat import flat, put
from ._gathered import alike, among
from .filesystem import FileSystemReader
from .state_dict_saver import _folder, _told, asked

__all__ = ["load", "load_state_dict"]


class Source:
    """A checkpoint that is read; parts that several rows come of are read once."""

    def __init__(self, reader: FileSystemReader) -> None:
        self.reader, self.index = reader, reader.read_metadata()
        self.last: tuple[Any, Any] = (None, None)

    def part(self, index: Any) -> Any:
        """Return a part by its name."""
        if self.last[0] != index:
            self.last = (index, self.reader.read(self.index.storage_data[index]))
        return self.last[1]

    def fill(self, name: str, target: Any) -> None:
        """Let a tensor have what the checkpoint holds of its rows."""
        known = self.index.state_dict_metadata[name]
        _, whole, first, shape, _ = _told(target)
        if not isinstance(known, meta.TensorStorageMetadata) or tuple(known.size) != whole:
            size = list(getattr(known, "size", ["no tensor"]))
            raise ValueError(
                f"Size mismatch between saved {size} and current: {list(whole)} for {name}"
            )
        filled = 0
        for chunk in known.chunks:
            begin = [max(a, b) for a, b in zip(first, chunk.offsets)]
            end = [
                min(a + n, b + m) for a, n, b, m in zip(first, shape, chunk.offsets, chunk.sizes)
            ]
            if any(b >= e for b, e in zip(begin, end)):
                continue
            part = self.part(meta.MetadataIndex(name, chunk.offsets))
            here = tuple(slice(b - f, e - f) for b, e, f in zip(begin, end, first))
            there = tuple(slice(b - f, e - f) for b, e, f in zip(begin, end, chunk.offsets))
            with pt.no_grad():
                target.detach()[here].copy_(part[there])
            count = 1
            for b, e in zip(begin, end):
                count *= e - b
            filled += count
        if filled != target.numel():
            raise ValueError(f"{name}: the checkpoint holds {filled} of {target.numel()} elements")


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load a checkpoint into a nested state, in place: every process must call this.

    Parameters
    ----------
    state_dict : dict
        Its tensors are written to, its other values replaced. Objects with a ``load_state_dict``
        get what they asked for.
    checkpoint_id : str or Path, optional
        The folder.
    storage_reader : FileSystemReader, optional
        Instead of `checkpoint_id`.
    planner : object, optional
        Must be None.
    process_group : ProcessGroup, optional
        All processes by default.
    no_dist : bool, default False
        This process alone.

    Raises
    ------
    CheckpointException
        On some process a name or rows are missing, a size differs, or a file is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"step": 3}, checkpoint_id=folder)
    ...     state = {"step": 0}
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'step': 3}
    """
    if planner is not None:
        raise ValueError("checkpoint.load: planners are not here")
    reader = storage_reader or FileSystemReader(_folder("load", checkpoint_id))
    group = among(process_group, no_dist)
    states = {key: asked(value) for key, value in state_dict.items()}
    error: Exception | None = None
    try:
        source = Source(reader)
        for name, (path, value) in flat(states).items():
            if name not in source.index.state_dict_metadata:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            if isinstance(value, pt.Tensor):
                source.fill(name, value)
            else:
                put(states, path, source.part(meta.MetadataIndex(name)))
    except Exception as e:
        error = e
    alike(group, f"cannot load from {reader.checkpoint_id}", error)
    for key, state in states.items():
        if state is not state_dict[key] and hasattr(state_dict[key], "load_state_dict"):
            state_dict[key].load_state_dict(state)
        else:
            state_dict[key] = state


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: FileSystemReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """Load as `load` does, by its older name.

    Parameters
    ----------
    state_dict, storage_reader, process_group, no_dist, planner : optional
        As of `load`.
    coordinator_rank : int, default 0
        Not used.

    Examples
    --------
    >>> from pytensorlib.distributed import checkpoint
    >>> callable(checkpoint.load_state_dict)
    True
    """
    load(
        state_dict,
        storage_reader=storage_reader,
        process_group=process_group,
        no_dist=no_dist,
        planner=planner,
    )
