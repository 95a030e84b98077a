"""Any Python objects, pickled, between processes that trust each other."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ._point_to_point import _check_tag
from ._process_group import ProcessGroup, member

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _pickled(value: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8)


def _sizes(call: str, pg: ProcessGroup, size: int) -> list[int]:
    """Return how many bytes each process has."""
    mine, all_sizes = np.array([size], np.int64), np.zeros(pg.size(), np.int64)
    pg._run(
        call,
        lambda _: "object",
        lambda comm: [comm.Iallgather(mine, all_sizes)],
        None,
        [],
        False,
        keep=(mine, all_sizes),
    )
    return all_sizes.tolist()


def _unpickled(flat: np.ndarray, sizes: list[int]) -> list[Any]:
    ends = np.cumsum(sizes).tolist()
    return [pickle.loads(flat[e - n : e].data) for e, n in zip(ends, sizes)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give all processes the objects of all.

    Parameters
    ----------
    object_list : list
        Written to: as long as there are processes.
    obj : object
        What this process gives; anything that can be pickled.
    group : ProcessGroup, optional
        All processes by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     found = [None] * dist.get_world_size()
    ...     dist.all_gather_object(found, {"rank": dist.get_rank()})
    """
    call = "all_gather_object"
    pg = member(call, group)
    if pg is None:
        return
    mine = _pickled(obj)
    sizes = _sizes(call, pg, mine.nbytes)
    flat = np.empty(sum(sizes), np.uint8)
    pg._run(
        call,
        lambda _: "bytes",
        lambda comm: [comm.Iallgatherv(mine, [flat, sizes])],
        None,
        [],
        False,
        flat.nbytes,
        (mine, flat),
    )
    for i, value in enumerate(_unpickled(flat, sizes)):
        object_list[i] = value


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give one process the objects of all.

    Parameters
    ----------
    obj : object
        What this process gives; anything that can be pickled.
    object_gather_list : list, optional
        On `dst`, and only there: written to, as long as there are processes.
    dst : int, optional
        The process that gets them, by its number in the world; 0 by default.
    group : ProcessGroup, optional
        All processes by default.
    group_dst : int, optional
        Instead of `dst`, the number in the group.

    Raises
    ------
    ValueError
        The list is missing on `dst`, or given elsewhere.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     n = dist.get_world_size() if dist.get_rank() == 0 else 0
    ...     dist.gather_object("a", [None] * n or None)
    """
    call = "gather_object"
    pg = member(call, group)
    if pg is None:
        return
    root = pg._place(call, "dst", dst, group_dst)
    here = root == pg.rank()
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    mine = _pickled(obj)
    sizes = _sizes(call, pg, mine.nbytes)
    flat = np.empty(sum(sizes) if here else 0, np.uint8)
    pg._run(
        call,
        lambda _: f"dst={root}",
        lambda comm: [comm.Igatherv(mine, [flat, sizes] if here else None, root)],
        None,
        [],
        False,
        sum(sizes),
        (mine, flat),
    )
    if object_gather_list:
        object_gather_list[:] = _unpickled(flat, sizes)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give all processes the objects of one.

    Parameters
    ----------
    object_list : list
        Read on `src`, written to elsewhere; as long everywhere.
    src : int, optional
        The process that has them, by its number in the world; 0 by default.
    group : ProcessGroup, optional
        All processes by default.
    device : device, optional
        Not used.
    group_src : int, optional
        Instead of `src`, the number in the group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     dist.broadcast_object_list(["a", 1], src=0)
    """
    call = "broadcast_object_list"
    pg = member(call, group)
    if pg is None:
        return
    root = pg._place(call, "src", src, group_src)
    here = root == pg.rank()
    data = _pickled(list(object_list)) if here else np.empty(0, np.uint8)
    size = np.array([data.nbytes], np.int64)
    told = lambda _: f"src={root}, {len(object_list)} objects"  # noqa: E731
    pg._run(call, told, lambda comm: [comm.Ibcast(size, root)], None, [], False, keep=size)
    # What is sent must be writable memory for MPI's types, though it is only read.
    data = data.copy() if here else np.empty(int(size[0]), np.uint8)
    pg._run(call, told, lambda comm: [comm.Ibcast(data, root)], None, [], False, data.nbytes, data)
    if not here:
        object_list[:] = pickle.loads(data.data)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give each process one of the objects that one has.

    Parameters
    ----------
    scatter_object_output_list : list
        Its first place is written to.
    scatter_object_input_list : list, optional
        On `src`: one for each process.
    src : int, optional
        The process that has them, by its number in the world; 0 by default.
    group : ProcessGroup, optional
        All processes by default.
    group_src : int, optional
        Instead of `src`, the number in the group.

    Raises
    ------
    ValueError
        The output has no place, or the input another length.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     out = [None]
    ...     dist.scatter_object_list(out, list(range(dist.get_world_size())))
    """
    call = "scatter_object_list"
    pg = member(call, group)
    if pg is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = pg._place(call, "src", src, group_src)
    here = root == pg.rank()
    if here and len(scatter_object_input_list or []) != pg.size():
        raise ValueError(
            f"{call}: scatter_object_input_list must have one object for each of {pg.size()} "
            "processes on the source rank"
        )
    given = [_pickled(value) for value in scatter_object_input_list or []] if here else []
    sizes = np.array([g.nbytes for g in given] or [0] * pg.size(), np.int64)
    told = lambda _: f"src={root}"  # noqa: E731
    pg._run(call, told, lambda comm: [comm.Ibcast(sizes, root)], None, [], False, keep=sizes)
    flat = np.concatenate(given) if here else np.empty(0, np.uint8)
    mine = np.empty(int(sizes[pg.rank()]), np.uint8)
    pg._run(
        call,
        told,
        lambda comm: [comm.Iscatterv([flat, sizes.tolist()] if here else None, mine, root)],
        None,
        [],
        False,
        int(sizes.sum()),
        (flat, mine),
    )
    scatter_object_output_list[0] = pickle.loads(mine.data)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to another process.

    Parameters
    ----------
    object_list : list
        What is sent.
    dst : int
        To whom, by its number in the world.
    group : ProcessGroup, optional
        All processes by default.
    device : device, optional
        Not used.
    group_dst : int, optional
        Instead of `dst`, the number in the group.
    use_batch : bool, default False
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized() and dist.get_rank() == 0:
    ...     dist.send_object_list(["a"], dst=1)
    """
    call = "send_object_list"
    pg = member(call, group)
    if pg is None:
        return
    to = pg._place(call, "dst", dst, group_dst)
    if to == pg.rank():
        raise ValueError(f"{call}: Invalid destination rank: it is the process itself")
    data = _pickled(list(object_list))
    size = np.array([data.nbytes], np.int64)
    pg._run(
        f"{call} to rank {pg._ranks[to]}",
        lambda _: "",
        lambda comm: [comm.Isend(size, to, 0), comm.Isend(data, to, 0)],
        None,
        [],
        False,
        data.nbytes,
        (size, data),
        compare=False,
    )


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects from another process.

    Parameters
    ----------
    object_list : list
        Written to: as long as what is sent.
    src : int, optional
        From whom, by its number in the world; from anyone by default.
    group : ProcessGroup, optional
        All processes by default.
    device : device, optional
        Not used.
    group_src : int, optional
        Instead of `src`, the number in the group.
    use_batch : bool, default False
        Not used.

    Returns
    -------
    int
        Who sent them; -1 outside of the group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized() and dist.get_rank() == 1:
    ...     source = dist.recv_object_list([None], src=0)
    """
    call = "recv_object_list"
    pg = member(call, group)
    if pg is None:
        return -1
    _check_tag(call, 0, pg)
    anyone = src is None and group_src is None
    at = pg._mpi.ANY_SOURCE if anyone else pg._place(call, "src", src, group_src)
    name = f"{call} from {'anyone' if anyone else f'rank {pg._ranks[at]}'}"
    size, sources = np.zeros(1, np.int64), []
    pg._run(
        name,
        lambda _: "",
        lambda comm: [comm.Irecv(size, at, 0)],
        lambda statuses: sources.append(statuses[-1].Get_source()),
        [],
        False,
        keep=size,
        compare=False,
    )
    data, source = np.empty(int(size[0]), np.uint8), sources[0]
    pg._run(
        name,
        lambda _: "",
        lambda comm: [comm.Irecv(data, source, 0)],
        None,
        [],
        False,
        data.nbytes,
        data,
        compare=False,
    )
    object_list[:] = pickle.loads(data.data)
    return pg._ranks[source]
