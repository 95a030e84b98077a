"""Helpers of ``torch.distributed`` that libraries import."""

from __future__ import annotations

from .._named import fill
from .._named_modules import BY_MPI

fill(
    globals(),
    BY_MPI,
    "_sync_module_states _sync_params_and_buffers _verify_param_shape_across_processes "
    "filter_dist_store",
)
