"""Helpers of ``torch.distributed`` that libraries import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._absent.modules import fill
from .._absent.table import BY_MPI
from ._same_module import sync_tensors, verify_shapes

fill(globals(), BY_MPI, "filter_dist_store")


def _sync_module_states(
    module: Any,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Sequence[str] = (),
    broadcast_buffers: bool = True,
) -> None:
    """Give all processes one's parameters and buffers."""
    ignored = set(params_and_buffers_to_ignore)
    named = list(module.named_parameters())
    named += list(module.named_buffers()) if broadcast_buffers else []
    tensors = [t for name, t in named if name not in ignored]
    sync_tensors(process_group, tensors, src, broadcast_bucket_size)


def _sync_params_and_buffers(
    process_group: Any, module_states: Sequence[Any], broadcast_bucket_size: int, src: int
) -> None:
    """Give all processes one's tensors."""
    sync_tensors(process_group, module_states, src, broadcast_bucket_size)


def _verify_param_shape_across_processes(
    process_group: Any, tensors: Sequence[Any], logger: Any = None
) -> None:
    """Raise where the processes' parameters differ in shape or type."""
    verify_shapes(process_group, [(str(i), t) for i, t in enumerate(tensors)])
