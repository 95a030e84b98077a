"""``fully_shard`` at PyTorch's path."""

from __future__ import annotations

from ...._absent.modules import fill, tell_missing
from ...._absent.table import BY_MPI
from ._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]

fill(globals(), BY_MPI, "DataParallelMeshDims share_comm_ctx")
tell_missing(globals(), BY_MPI)
