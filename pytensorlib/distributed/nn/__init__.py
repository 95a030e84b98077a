"""Calls between processes that have derivatives."""

from __future__ import annotations

from ..._absent.modules import fill, tell_missing
from ..._absent.table import BY_MPI
from .functional import *

fill(globals(), BY_MPI, "RemoteModule[init_from_module_rref]")
tell_missing(globals(), BY_MPI)
