"""Hooks that average the gradients, as they are or in half as many bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ..._process_group import member
from ..._reductions import all_reduce

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _averaged(process_group: Any, buffer: Any, dtype: Any) -> Any:
    """Return a future of the mean of a buffer, which travels in a type."""
    group: Any = member("communication hook", process_group)
    sent = buffer.to(dtype).div_(group.size()) if dtype != buffer.dtype else buffer
    if sent is buffer:
        sent.div_(group.size())
    future = all_reduce(sent, group=group, async_op=True).get_future()  # type: ignore[union-attr]
    return future.then(lambda f: f.value()[0].to(buffer.dtype))


def allreduce_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients, as without a hook.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        All processes by default.
    bucket : GradBucket
        The gradients.

    Returns
    -------
    Future
        Of the averaged buffer.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    ...     net.register_comm_hook(None, default_hooks.allreduce_hook)
    """
    return _averaged(process_group, bucket.buffer(), bucket.buffer().dtype)


def fp16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients as float16.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        All processes by default.
    bucket : GradBucket
        The gradients.

    Returns
    -------
    Future
        Of the averaged buffer, in its own type.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    ...     net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    """
    return _averaged(process_group, bucket.buffer(), pt.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients as bfloat16.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        All processes by default.
    bucket : GradBucket
        The gradients.

    Returns
    -------
    Future
        Of the averaged buffer, in its own type.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    ...     net.register_comm_hook(None, default_hooks.bf16_compress_hook)
    """
    return _averaged(process_group, bucket.buffer(), pt.bfloat16)


def _wrapped(hook: Callable[[Any, Any], Any], dtype: Any) -> Callable[[Any, Any], Any]:
    def shorter(state: Any, bucket: Any) -> Any:
        # What the hook sees is rounded; it travels in the buffer's own type again.
        kept = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype).to(kept))
        return hook(state, bucket).then(lambda f: _first(f.value()).to(dtype).to(kept))

    return shorter


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


def fp16_compress_wrapper(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a hook that rounds to float16 what another one gets and gives.

    Parameters
    ----------
    hook : callable
        The other one.

    Returns
    -------
    callable
        The hook.

    Examples
    --------
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> hook = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    """
    return _wrapped(hook, pt.float16)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a hook that rounds to bfloat16 what another one gets and gives.

    Parameters
    ----------
    hook : callable
        The other one.

    Returns
    -------
    callable
        The hook.

    Examples
    --------
    >>> from pytensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> hook = default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
    """
    return _wrapped(hook, pt.bfloat16)
