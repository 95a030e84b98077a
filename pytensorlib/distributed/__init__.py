"""Several processes that train together: not here, and `is_available` says so.

Every name that libraries import is there. Questions about the one process there is are answered;
what would talk to another process raises and says what to do.
"""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

from .._named import fill, tell_missing
from .._named_modules import ONE_PROCESS

__all__ = [
    "Backend",
    "DebugLevel",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "Work",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "default_pg_timeout",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "reduce_op",
    "supports_complex",
]

default_pg_timeout = dt.timedelta(minutes=30)

fill(
    globals(),
    ONE_PROCESS,
    """
    AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions
    BroadcastOptions BuiltinCommHookType{ALLREDUCE FP16_COMPRESS} DeviceMesh FileStore
    GatherOptions GradBucket HashStore Join Logger P2POp PrefixStore ProcessGroup ProcessGroupGloo
    ProcessGroupMPI ProcessGroupNCCL ProcessGroupUCC ReduceOptions ReduceScatterOptions Reducer
    ScatterOptions Store TCPStore Work
    all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_gather_single
    all_reduce all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv
    broadcast broadcast_object_list gather gather_object get_group_rank init_device_mesh
    init_process_group irecv isend monitored_barrier new_group new_subgroups
    new_subgroups_by_enumeration record_comm recv recv_object_list reduce reduce_scatter
    reduce_scatter_single reduce_scatter_tensor register_rendezvous_handler rendezvous scatter
    scatter_object_list send send_object_list shrink_group split_group _broadcast_coalesced
    _all_gather_base _reduce_scatter_base
    """,
)


class DistError(RuntimeError):
    """What communication between processes would raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistError, RuntimeError)
    True
    """


class DistBackendError(DistError):
    """What a library for communication would raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistBackendError, torch.distributed.DistError)
    True
    """


class DistNetworkError(DistError):
    """What a broken connection would raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistNetworkError, torch.distributed.DistError)
    True
    """


class DistStoreError(DistError):
    """What a store of shared keys would raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistStoreError, torch.distributed.DistError)
    True
    """


class ReduceOp(enum.IntEnum):
    """How values of several processes would become one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9


class reduce_op:
    """The old name of `ReduceOp`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.reduce_op.SUM is torch.distributed.ReduceOp.SUM
    True
    """

    SUM, PRODUCT, MIN, MAX = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX


class DebugLevel(enum.IntEnum):
    """How much would be checked and told.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.get_debug_level() is torch.distributed.DebugLevel.OFF
    True
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


class Backend(str):
    """The name of a library for communication, in small letters.

    Parameters
    ----------
    name : str
        Any.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.Backend("NCCL") == torch.distributed.Backend.NCCL
    True
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map: dict[str, str] = {}  # noqa: RUF012  (PyTorch's, a plain dict)
    backend_capability: dict[str, list[str]] = {}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        """Return the name in small letters."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return super().__new__(cls, name.lower())


class GroupMember:
    """Groups of processes: there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.GroupMember.WORLD is None
    True
    """

    WORLD: Any = None
    NON_GROUP_MEMBER: Any = -100


class group:
    """The group of all processes: there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.group.WORLD is None
    True
    """

    WORLD: Any = None


def is_available() -> bool:
    """Return False: processes do not communicate here.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Return False: there is no group of processes.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_initialized()
    False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Return False: there is no library for communication.

    Parameters
    ----------
    backend : str
        Such as "gloo".

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_backend_available("gloo")
    False
    """
    return False


def is_nccl_available() -> bool:
    """Return False: there is no library for communication.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_nccl_available()
    False
    """
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_torchelastic_launched() -> bool:
    """Return False: PyTorch's launcher did not start this process.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_torchelastic_launched()
    False
    """
    return False


def supports_complex(reduceOp: Any) -> bool:  # noqa: N803  (PyTorch's name)
    """Return whether a reduction has a meaning for complex numbers.

    Parameters
    ----------
    reduceOp : ReduceOp
        A way to make one of several values.

    Returns
    -------
    bool
        False for extremes and for operations on bits.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.MAX)
    False
    """
    op = ReduceOp
    return reduceOp not in (op.MAX, op.MIN, op.PRODUCT, op.BAND, op.BOR, op.BXOR)


def get_debug_level() -> DebugLevel:
    """Return how much is checked: nothing."""
    return DebugLevel.OFF


def _no_group() -> ValueError:
    return ValueError(
        "Default process group has not been initialized, please make sure to call "
        f"init_process_group. It is not in this library: {ONE_PROCESS}"
    )


def get_rank(group: Any = None) -> int:
    """Raise: without a group of processes none has a number in it.

    Parameters
    ----------
    group : ProcessGroup, optional
        Not used.

    Raises
    ------
    ValueError
        Always, as PyTorch's where no group was initialised.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> rank = dist.get_rank() if dist.is_initialized() else 0
    """
    raise _no_group()


def get_world_size(group: Any = None) -> int:
    """Raise: without a group of processes it has no size.

    Parameters
    ----------
    group : ProcessGroup, optional
        Not used.

    Raises
    ------
    ValueError
        Always, as PyTorch's where no group was initialised.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> dist = torch.distributed
    >>> size = dist.get_world_size() if dist.is_initialized() else 1
    """
    raise _no_group()


def get_backend(group: Any = None) -> str:
    """Raise: without a group of processes it has no library.

    Parameters
    ----------
    group : ProcessGroup, optional
        Not used.

    Raises
    ------
    ValueError
        Always, as PyTorch's where no group was initialised.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     backend = torch.distributed.get_backend()
    """
    raise _no_group()


get_global_rank = get_process_group_ranks = get_node_local_rank = get_rank
get_backend_config = get_backend


def destroy_process_group(group: Any = None) -> None:
    """Raise: there is none to destroy.

    Parameters
    ----------
    group : ProcessGroup, optional
        Not used.

    Raises
    ------
    ValueError
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.distributed.is_initialized():
    ...     torch.distributed.destroy_process_group()
    """
    raise _no_group()


tell_missing(globals(), ONE_PROCESS)
