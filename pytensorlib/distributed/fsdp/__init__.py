"""Modules whose parameters are shared out over the processes, in a simple form.

Parameters are cut along their first dimension, and a module's are gathered by one call when it
runs. Nothing is gathered ahead of time, and there are no shards on the CPU of a GPU's module.
"""

from __future__ import annotations

from ..._absent.modules import fill, tell_missing
from ..._absent.table import BY_MPI
from ._fully_shard import *
from .api import *
from .fully_sharded_data_parallel import FullyShardedDataParallel

fill(
    globals(),
    BY_MPI,
    "OptimStateDictConfig FullOptimStateDictConfig LocalOptimStateDictConfig "
    "ShardedOptimStateDictConfig StateDictSettings OptimStateKeyType{PARAM_NAME PARAM_ID} "
    "share_comm_ctx DataParallelMeshDims",
)
tell_missing(globals(), BY_MPI)
