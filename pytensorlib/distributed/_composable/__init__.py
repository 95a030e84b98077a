"""Functions that change a module in place."""

from __future__ import annotations

from ..._absent.modules import fill, tell_missing
from ..._absent.table import BY_MPI
from ..fsdp import fully_shard

__all__ = ["fully_shard"]

fill(globals(), BY_MPI, "checkpoint contract replicate")
tell_missing(globals(), BY_MPI)
