"""Ranks of a group, and this process's rank."""

from __future__ import annotations

import os
from typing import Any

from .. import _gpu
from . import _mpi
from ._process_group import NOT_IN, ProcessGroup, State, member

__all__ = [
    "get_backend",
    "get_backend_config",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "is_initialized",
]


def is_initialized() -> bool:
    """Return whether this process has joined the others.

    Returns
    -------
    bool
        True between `init_process_group` and `destroy_process_group`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_initialized()
    False
    """
    return State.world is not None


def _ranks_of(group: Any) -> ProcessGroup | None:
    return None if group == NOT_IN else member("get_rank", group)


def get_rank(group: Any = None) -> int:
    """Return the number of this process in a group.

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    int
        From 0; -1 outside of the group.

    Raises
    ------
    ValueError
        The process has joined none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> rank = dist.get_rank() if dist.is_initialized() else 0
    """
    found = _ranks_of(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """Return how many processes are in a group.

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    int
        How many; -1 outside of the group.

    Raises
    ------
    ValueError
        The process has joined none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> size = dist.get_world_size() if dist.is_initialized() else 1
    """
    found = _ranks_of(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """Return the name that a group was made with: "mpi" or "gloo".

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    str
        The name.

    Raises
    ------
    ValueError
        The process is not in it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     backend = torch.distributed.get_backend()
    """
    found = _ranks_of(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found._backend


def get_backend_config(group: Any = None) -> str:
    """Return which library serves which devices.

    Parameters
    ----------
    group : ProcessGroup, optional
        All processes by default.

    Returns
    -------
    str
        Such as "cpu:mpi,wgpu:mpi".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     config = torch.distributed.get_backend_config()
    """
    name = get_backend(group)
    return f"cpu:{name},{_gpu.name()}:{name}"


def get_pg_count() -> int:
    """Return how many groups this process is in.

    Returns
    -------
    int
        0 before `init_process_group`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.get_pg_count()
    0
    """
    return len(State.groups)


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the numbers in the world of a group's processes.

    Parameters
    ----------
    group : ProcessGroup or None
        None means all processes.

    Returns
    -------
    list of int
        By their number in the group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> ranks = dist.get_process_group_ranks(None) if dist.is_initialized() else [0]
    """
    found = member("get_process_group_ranks", group)
    return [] if found is None else list(found._ranks)


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the number in a group of a process given by its number in the world.

    Parameters
    ----------
    group : ProcessGroup
        The group.
    global_rank : int
        The number in the world.

    Returns
    -------
    int
        The number in the group.

    Raises
    ------
    ValueError
        The process is not in it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     first = dist.get_group_rank(dist.group.WORLD, 0)
    """
    found = member("get_group_rank", group)
    if found is None:
        raise ValueError("Group -100 is not registered, please create group with new_group API")
    return found._place("get_group_rank", "rank", global_rank, None)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the number in the world of a process given by its number in a group.

    Parameters
    ----------
    group : ProcessGroup
        The group.
    group_rank : int
        The number in the group.

    Returns
    -------
    int
        The number in the world.

    Raises
    ------
    ValueError
        The group has no such number.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> if dist.is_initialized():
    ...     first = dist.get_global_rank(dist.group.WORLD, 0)
    """
    found = member("get_global_rank", group)
    if found is None:
        raise ValueError("Group -100 is not registered, please create group with new_group API")
    return found._ranks[found._place("get_global_rank", "rank", None, group_rank)]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process among those of its machine.

    Parameters
    ----------
    fallback_rank : int, optional
        What to return where no launcher told one.

    Returns
    -------
    int
        ``LOCAL_RANK``, or what MPI's launcher told.

    Raises
    ------
    RuntimeError
        Nothing tells it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.get_node_local_rank(fallback_rank=0)
    0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    told = _mpi.launched_as()
    if told is not None:
        return told[2]
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead."
    )
