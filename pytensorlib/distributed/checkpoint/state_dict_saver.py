"""Saving: each process writes its rows of what is shared out, and its part of the rest."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import pytensorlib as pt

from .._places import place_of
from . import metadata as meta
from ._flat import flat
from ._gathered import alike, among, tell
from .api import CheckpointException
from .filesystem import FileSystemWriter

__all__ = ["async_save", "save", "save_state_dict"]


def _told(value: Any) -> Any:
    """Return what the others must know of a value: nothing, or its type, shape and part."""
    if not isinstance(value, pt.Tensor):
        return None
    place = place_of(value)
    whole = tuple(value.shape) if place is None else place.shape
    first = [0] * len(whole)
    if place is not None:
        first[0] = place.first
    return value.dtype, whole, tuple(first), tuple(value.shape), place is not None


def _plan(told: list[dict[str, Any]]) -> tuple[dict[str, int], dict[str, Any]]:
    """Return who writes each thing that all have, and what the index says of each."""
    owner: dict[str, int] = {}
    known: dict[str, Any] = {}
    names = dict.fromkeys(name for one in told for name in one)
    for n, name in enumerate(names):
        having = [(rank, one[name]) for rank, one in enumerate(told) if name in one]
        first = having[0][1]
        if first is None:
            owner[name], known[name] = having[n % len(having)][0], meta.BytesStorageMetadata()
            continue
        dtype, whole, _, _, is_part = first
        for rank, other in having:
            if other is None or other[:2] != (dtype, whole):
                raise CheckpointException(
                    f"{name} is not the same tensor on all processes: rank {having[0][0]} has "
                    f"{dtype} {list(whole)}, rank {rank} {other and (other[0], list(other[1]))}; "
                    "what differs needs a name for each process",
                    {},
                )
        if is_part:
            chunks = [(o[2], o[3]) for _, o in having if 0 not in o[3]]
        else:
            owner[name], chunks = having[n % len(having)][0], [(first[2], whole)]
        known[name] = meta.TensorStorageMetadata(
            meta.TensorProperties(dtype),
            pt.Size(whole),
            [meta.ChunkStorageMetadata(pt.Size(o), pt.Size(s)) for o, s in chunks],
        )
    return owner, known


def _items(values: dict[str, Any], owner: dict[str, int], rank: int) -> list[tuple[Any, Any]]:
    """Return what a process writes, by the names of the parts."""
    found: list[tuple[Any, Any]] = []
    for name, (_, value) in values.items():
        told = _told(value)
        if told is None:
            if owner[name] == rank:
                found.append((meta.MetadataIndex(name), copy.deepcopy(value)))
        elif (told[4] and 0 not in told[3]) or (not told[4] and owner[name] == rank):
            # A copy: of a view the whole memory would be written.
            part = value.detach().cpu().clone(memory_format=pt.contiguous_format)
            found.append((meta.MetadataIndex(name, told[2], 0), part))
    return found


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> meta.Metadata:
    """Save a nested state to a folder that all processes reach: every one must call this.

    Of tensors that are shared out each process writes its rows; what all have is written once.

    Parameters
    ----------
    state_dict : dict
        Tensors and other values, in dicts and lists; objects that have one are asked for theirs.
    checkpoint_id : str or Path, optional
        The folder.
    storage_writer : FileSystemWriter, optional
        Instead of `checkpoint_id`.
    planner : object, optional
        Must be None.
    process_group : ProcessGroup, optional
        All processes by default.
    no_dist : bool, default False
        This process alone.
    use_collectives : bool, default True
        Not used.

    Returns
    -------
    Metadata
        The index that was written.

    Raises
    ------
    CheckpointException
        A process could not write, or a tensor is not the same on all.

    Examples
    --------
    >>> import tempfile
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"x": torch.ones(2)}, checkpoint_id=folder)
    ...     state = {"x": torch.zeros(2)}
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state["x"]
    tensor([1., 1.])
    """
    if planner is not None:
        raise ValueError("checkpoint.save: planners are not here")
    writer = storage_writer or FileSystemWriter(_folder("save", checkpoint_id))
    group = among(process_group, no_dist)
    return _staged(state_dict, writer, group)(group)


def _staged(
    state_dict: dict[str, Any], writer: FileSystemWriter, group: Any
) -> Callable[[Any], meta.Metadata]:
    """Agree on who writes what, and copy it; returns what writes the copies, in some group."""
    rank = 0 if group is None else group.rank()
    values = flat({k: asked(v) for k, v in state_dict.items()})
    told = tell(group, {name: _told(value) for name, (_, value) in values.items()})
    owner, known = _plan(told)
    items, paths = _items(values, owner, rank), {n: path for n, (path, _) in values.items()}

    def written(group: Any) -> meta.Metadata:
        where, error = {}, None
        try:
            where = writer.write(rank, items)
        except Exception as e:
            error = e
        alike(group, f"cannot save to {writer.checkpoint_id}", error)
        parts = tell(group, (where, paths))
        index = meta.Metadata(
            known,
            {name: path for _, paths in parts for name, path in paths.items()},
            {i: info for infos, _ in parts for i, info in infos.items()},
            meta.StorageMeta(writer.checkpoint_id, str(uuid.uuid4())),
            "1.0.0",
        )
        if rank == 0:
            try:
                writer.finish(index)
            except OSError as e:
                error = e
        alike(group, f"cannot save to {writer.checkpoint_id}", error)
        return index

    return written


def asked(value: Any) -> Any:
    """Return an object's state, where it has one."""
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        return value.state_dict()
    return value


def _folder(call: str, checkpoint_id: Any) -> Any:
    if checkpoint_id is None:
        raise ValueError(f"checkpoint.{call}: checkpoint_id must name a folder")
    return checkpoint_id


@cache
def _thread() -> ThreadPoolExecutor:
    """Return the thread that writes: one, so that processes save in the same order."""
    return ThreadPoolExecutor(1, "checkpoint")


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    **options: Any,
) -> Future[Any]:
    """Copy the state, and save it as `save` does while the program goes on.

    The copies are made before the call returns, so that the state may change then.

    Parameters
    ----------
    state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist : optional
        As of `save`.
    **options
        Not used: one thread of this process writes.

    Returns
    -------
    concurrent.futures.Future
        Of the index; its ``result()`` raises what `save` would.

    Examples
    --------
    >>> import tempfile
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed import checkpoint
    >>> x = torch.ones(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     future = checkpoint.async_save({"x": x}, checkpoint_id=folder)
    ...     _ = x.zero_()
    ...     _ = future.result()
    ...     state = {"x": torch.zeros(2)}
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state["x"]
    tensor([1., 1.])
    """
    if planner is not None:
        raise ValueError("checkpoint.async_save: planners are not here")
    writer = storage_writer or FileSystemWriter(_folder("async_save", checkpoint_id))
    group = among(process_group, no_dist)
    written = _staged(state_dict, writer, group)
    aside = None if group is None else group._beside()
    if group is not None and aside is None:  # MPI serves one thread only
        done: Future[Any] = Future()
        done.set_result(written(group))
        return done
    return _thread().submit(written, aside)


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: FileSystemWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> meta.Metadata:
    """Save as `save` does, by its older name.

    Parameters
    ----------
    state_dict, storage_writer, process_group, no_dist, planner : optional
        As of `save`.
    coordinator_rank : int, default 0
        Not used.

    Returns
    -------
    Metadata
        The index that was written.

    Examples
    --------
    >>> from pytensorlib.distributed import checkpoint
    >>> callable(checkpoint.save_state_dict)
    True
    """
    return save(
        state_dict,
        storage_writer=storage_writer,
        process_group=process_group,
        no_dist=no_dist,
        planner=planner,
    )
