"""Hooks that measure what communication costs."""

from __future__ import annotations

from typing import Any

from ....futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: Any) -> Future:
    """Leave each process its own gradients.

    Parameters
    ----------
    bucket : GradBucket
        The gradients.

    Returns
    -------
    Future
        They themselves.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    ...     net.register_comm_hook(None, noop_hook)
    """
    future: Future[Any] = Future()
    future.set_result(bucket.buffer())
    return future
