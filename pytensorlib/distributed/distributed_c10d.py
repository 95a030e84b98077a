"""PyTorch's place of the functions of ``torch.distributed``."""

from __future__ import annotations

from typing import Any

from .. import distributed as _public
from .._named import fill
from .._named_modules import ONE_PROCESS
from . import *  # noqa: F403

_pg_map: dict[Any, Any] = {}
fill(globals(), ONE_PROCESS, "_get_default_group _get_default_store _new_process_group_helper")


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
