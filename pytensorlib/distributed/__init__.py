"""Several processes that train together: MPI moves the data.

``pip install 'pytensorlib[distributed]'`` brings it, and `is_available` says whether it is there.
``python -m pytensorlib.distributed.run --nproc-per-node 2 script.py`` starts the processes, or
MPI's own ``mpiexec -n 2 python script.py``; each of them calls `init_process_group` first.
"""

from __future__ import annotations

from .. import _alias
from .._absent.modules import fill, tell_missing
from .._absent.table import BY_MPI
from . import distributed_c10d
from ._backend import is_available, set_debug_level, set_debug_level_from_env
from ._collectives import _broadcast_coalesced
from ._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from ._reduce import _make_nccl_premul_sum
from ._reducer import GradBucket
from ._store import FileStore, HashStore
from ._tcp_store import TCPStore
from .algorithms.join import Join
from .distributed_c10d import *
from .distributed_c10d import _all_gather_base, _coalescing_manager, _reduce_scatter_base
from .rendezvous import register_rendezvous_handler, rendezvous

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "HashStore",
    "QueueEmptyError",
    "TCPStore",
    "is_available",
    "register_rendezvous_handler",
    "rendezvous",
    "set_debug_level",
    "set_debug_level_from_env",
]

_alias.adopt(globals(), [name for name in __all__ if "rendezvous" not in name])
__all__ += distributed_c10d.__all__

fill(
    globals(),
    BY_MPI,
    """
    AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions
    BuiltinCommHookType{ALLREDUCE FP16_COMPRESS} DeviceMesh GatherOptions Logger
    ProcessGroupGloo[create_device] ProcessGroupMPI ProcessGroupNCCL[Options] ProcessGroupUCC
    ReduceOptions ReduceScatterOptions Reducer ScatterOptions
    init_device_mesh record_comm shrink_group
    """,
)

tell_missing(globals(), BY_MPI)
