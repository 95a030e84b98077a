"""Ways to reduce the gradients of `DistributedDataParallel`."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from . import debugging_hooks, default_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _plain(model: Any, state: Any, hook: Any) -> None:
    model.register_comm_hook(state, hook)


class DDPCommHookType(enum.Enum):
    """The hooks by name.

    Examples
    --------
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
    >>> DDPCommHookType.BF16_COMPRESS.name
    'BF16_COMPRESS'
    """

    ALLREDUCE = partial(_plain, hook=default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_plain, hook=default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_plain, hook=default_hooks.bf16_compress_hook)
    NOOP = partial(_plain, hook=debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let one of the hooks reduce a module's gradients.

    Parameters
    ----------
    comm_hook_type : DDPCommHookType
        Which.
    model : DistributedDataParallel
        The module.
    state : object, optional
        The hook's state.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.algorithms import ddp_comm_hooks as hooks
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    ...     hooks.register_ddp_comm_hook(hooks.DDPCommHookType.BF16_COMPRESS, net)
    """
    comm_hook_type.value(model=model, state=state)
