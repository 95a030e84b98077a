"""The older place of a part of `torch._functorch.vmap`."""

from __future__ import annotations

from ..._C import _functorch
from ..._functorch import vmap

__all__: list[str] = []

_add_batch_dim, _remove_batch_dim = _functorch._add_batch_dim, _functorch._remove_batch_dim
_broadcast_to_and_flatten, _get_name = vmap._broadcast_to_and_flatten, vmap._get_name
_process_batched_inputs = vmap._process_batched_inputs
_validate_and_get_batch_size = vmap._validate_and_get_batch_size
_create_batched_inputs = vmap._create_batched_inputs  # type: ignore[attr-defined]
_unwrap_batched = vmap._unwrap_batched  # type: ignore[attr-defined]
