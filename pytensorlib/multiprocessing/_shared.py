"""Memory that processes share: mapped by each, without a name in any folder."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor.size import Size
from . import _handles
from ._sent import sent

__all__ = ["rebuild_storage", "rebuild_tensor", "reduce_storage", "reduce_tensor", "share"]


def share(storage: Any) -> Any:
    """Move a storage to memory that other processes can map, where it is not there, and return it.

    Raises
    ------
    RuntimeError
        It is memory of a GPU, or another library's.
    """
    if storage.is_shared() or not storage.nbytes():
        return storage
    _handles.make_shared(storage)
    return storage


def _shareable(storage: Any) -> Any:
    """Return the storage in shared memory, or a copy there where it cannot be moved."""
    if storage.is_shared() or storage.resizable():
        return share(storage)
    return share(storage.cpu().clone())


# What this process mapped, by what is behind it: a storage that is sent twice is one.
_known: dict[Any, Any] = {}
MANY = 128  # so many are looked through for those that are gone


def rebuild_storage(connection: Any, size: int, name: str = "") -> Any:
    """Map a storage that another process sent."""
    if connection is None:
        return _C.UntypedStorage(0)
    handle = connection.detach()
    key = _handles.identity(handle, name)
    held = _known[key]() if key in _known else None
    if held is not None:
        _handles.close(handle)
        return held
    storage = _handles.mapped(handle, name, size)
    if len(_known) % MANY == 0:
        for gone in [known for known, handle in _known.items() if handle() is None]:
            del _known[gone]
    _known[key] = storage._weak()
    return storage


def reduce_storage(storage: Any) -> Any:
    """Return how another process maps a storage."""
    if not storage.nbytes():
        return rebuild_storage, (None, 0)
    shared = _shareable(storage)
    handle, size = shared._map_handle(), shared.nbytes()
    name = shared._map_name() if hasattr(shared, "_map_name") else ""
    return rebuild_storage, (sent(handle, name, size), size, name)


def rebuild_tensor(
    cls: Any, storage: Any, dtype: str, offset: int, size: Any, stride: Any, needs: bool, own: Any
) -> Any:
    """Make a tensor of a storage that another process sent."""
    from .._tensor.pickling import _rebuilt

    data = _C.empty((0,), dtype=getattr(_C, dtype), device="cpu")
    data.set_(storage, offset, tuple(size), tuple(stride))
    return _rebuilt(cls, data, needs, own)


def reduce_tensor(tensor: Any) -> Any:
    """Return how another process makes a tensor that shares this one's memory.

    Raises
    ------
    RuntimeError
        The tensor is a result that needs a gradient, whose graph cannot go along.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries. If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor.is_meta or tensor._is_any_sparse:
        return tensor.__reduce_ex__(2)
    data = tensor.detach()
    own = {k: v for k, v in tensor.__dict__.items() if k != "grad"}
    if not data.is_cpu:
        data = data.cpu()
    storage = _shareable(data.untyped_storage())
    where = (data.storage_offset(), Size(data.shape), data.stride())
    args = (type(tensor), storage, data.dtype._name, *where, tensor.requires_grad, own)
    return rebuild_tensor, args
