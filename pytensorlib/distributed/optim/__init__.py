"""Optimizers for several processes."""

from __future__ import annotations

from ..._absent.modules import fill, tell_missing
from ..._absent.table import BY_MPI
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]

fill(
    globals(),
    BY_MPI,
    "DistributedOptimizer PostLocalSGDOptimizer _NamedOptimizer _apply_optimizer_in_backward "
    "as_functional_optim",
)
tell_missing(globals(), BY_MPI)
