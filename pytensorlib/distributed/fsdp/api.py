"""Options of `FullyShardedDataParallel`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ..._absent.modules import fill
from ..._absent.table import BY_MPI

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictType",
]


class ShardingStrategy(enum.Enum):
    """What is shared out: with FULL_SHARD gathered rows are freed after the forward pass.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import ShardingStrategy
    >>> ShardingStrategy.FULL_SHARD.name
    'FULL_SHARD'
    """

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(enum.Enum):
    """When the backward pass gathers: when it needs to, whatever this says.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import BackwardPrefetch
    >>> BackwardPrefetch.BACKWARD_PRE.name
    'BACKWARD_PRE'
    """

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """What a state holds: whole tensors, or this process's rows.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import StateDictType
    >>> StateDictType.FULL_STATE_DICT.name
    'FULL_STATE_DICT'
    """

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass
class MixedPrecision:
    """The types in which a module computes and sums gradients.

    Parameters
    ----------
    param_dtype : dtype, optional
        Of the gathered parameters.
    reduce_dtype : dtype, optional
        In which gradients are summed.
    buffer_dtype : dtype, optional
        Not used: buffers keep their type.
    keep_low_precision_grads : bool, default False
        Not used.
    cast_forward_inputs : bool, default False
        Cast inputs of modules inside.
    cast_root_forward_inputs : bool, default True
        Cast inputs to `param_dtype`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp import MixedPrecision
    >>> MixedPrecision(param_dtype=torch.bfloat16).cast_root_forward_inputs
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Where shards live.

    Parameters
    ----------
    offload_params : bool, default False
        Must be False: on the parameters' device.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import CPUOffload
    >>> CPUOffload().offload_params
    False
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How a state is made.

    Parameters
    ----------
    offload_to_cpu : bool, default False
        Bring its tensors to the CPU.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import StateDictConfig
    >>> StateDictConfig().offload_to_cpu
    False
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How a state of whole tensors is made.

    Parameters
    ----------
    offload_to_cpu : bool, default False
        Bring its tensors to the CPU.
    rank0_only : bool, default False
        Only the first process gets it.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import FullStateDictConfig
    >>> FullStateDictConfig(rank0_only=True).rank0_only
    True
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """How a state of rows is made.

    Parameters
    ----------
    offload_to_cpu : bool, default False
        Bring its tensors to the CPU.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import LocalStateDictConfig
    >>> LocalStateDictConfig().offload_to_cpu
    False
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How a state of rows is made.

    Parameters
    ----------
    offload_to_cpu : bool, default False
        Bring its tensors to the CPU.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import ShardedStateDictConfig
    >>> ShardedStateDictConfig().offload_to_cpu
    False
    """


fill(
    globals(),
    BY_MPI,
    "OptimStateDictConfig FullOptimStateDictConfig LocalOptimStateDictConfig "
    "ShardedOptimStateDictConfig StateDictSettings OptimStateKeyType{PARAM_NAME PARAM_ID}",
)
