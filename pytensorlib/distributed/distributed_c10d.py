"""PyTorch's place of the functions of ``torch.distributed``."""

from __future__ import annotations

import os
from typing import Any

from .. import _alias
from .._absent.modules import fill, tell_missing
from .._absent.table import BY_MPI
from . import _mpi
from ._backend import (
    Backend,
    BackendConfig,
    DebugLevel,
    get_debug_level,
    get_default_backend_for_device,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from ._barrier import barrier, monitored_barrier
from ._collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    scatter,
)
from ._groups import (
    destroy_process_group,
    init_process_group,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._process_group import (
    GroupMember,
    ProcessGroup,
    State,
    default_pg_timeout,
    group,
    world,
)
from ._ranks import (
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_initialized,
)
from ._reduce import ReduceOp, _make_nccl_premul_sum, reduce_op, supports_complex
from ._reductions import (
    all_reduce,
    all_reduce_coalesced,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)
from ._store import FileStore, PrefixStore, Store
from ._together import _together
from ._work import Work

__all__ = [
    "Backend",
    "BackendConfig",
    "DebugLevel",
    "GroupMember",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "split_group",
    "supports_complex",
]

_make_premul_sum = _make_nccl_premul_sum
_all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor
_coalescing_manager = _together
_pg_map = State.groups

fill(
    globals(),
    BY_MPI,
    """
    AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions
    GatherOptions Logger ProcessGroupGloo[create_device] ProcessGroupMPI ProcessGroupNCCL[Options]
    ProcessGroupUCC
    ReduceOptions ReduceScatterOptions Reducer ScatterOptions
    record_comm shrink_group _new_process_group_helper
    """,
)
_alias.adopt(
    globals(), [n for n in __all__ if getattr(globals()[n], "__module__", None) is not None]
)


def _get_default_group() -> ProcessGroup:
    """Return the group of all processes."""
    return world()


def _get_default_store() -> Any:
    """Return the store that all processes of this machine share."""
    world()
    if State.store is None:
        if State.board is None:
            raise RuntimeError(f"there is no store between machines: {_mpi.only_process()}")
        State.store = FileStore(os.path.join(State.board.folder, "store"))
    return State.store


def _set_pg_timeout(timeout: Any, group: Any = None) -> None:
    """Set how long the calls of a group wait."""
    (world() if group is None else group)._timeout = timeout


def _get_pg_default_device(group: Any = None) -> Any:
    """Return the device of what is sent where objects are pickled."""
    import pytensorlib as pt

    return pt.device("cpu")


def _rank_not_in_group(group: Any) -> bool:
    """Return whether this process is outside of a group."""
    return group == GroupMember.NON_GROUP_MEMBER


tell_missing(globals(), BY_MPI)
