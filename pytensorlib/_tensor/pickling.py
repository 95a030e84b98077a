"""What is pickled of a tensor and of its attributes, and how a tensor is made of it."""

from __future__ import annotations

import copyreg
from typing import Any

from .. import _C
from .._serialization.sparse import sparse_tensor


def _as_class(cls: type, data: Any, requires_grad: bool) -> Any:
    """Return `data` as a tensor of class `cls`."""
    if cls is not _C.Tensor:
        data = data.as_subclass(cls)
    return data.requires_grad_(requires_grad)


def _rebuilt(cls: type, data: Any, requires_grad: bool, state: Any) -> Any:
    """Return `data` as a tensor of class `cls` with the state of the one it replaces."""
    data = _as_class(cls, data, requires_grad)
    own = getattr(cls, "__setstate__", None)
    if own is not None and own is not getattr(_C.Tensor, "__setstate__", None):
        data.__setstate__(state)
        return data
    return _set_obj_state(data, state)


def _attributes(x: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in slots of its class too."""
    slots = {name for name in copyreg._slotnames(type(x)) if hasattr(x, name)}  # type: ignore[attr-defined]
    return {name: getattr(x, name) for name in slots} | x.__dict__


def _get_obj_state(x: Any) -> Any:
    """Return what an object says that its state is: by default all attributes it has."""
    own = getattr(type(x), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return x.__getstate__()
    return _attributes(x)


def _set_obj_state(x: Any, state: Any) -> Any:
    """Give an object the attributes of another's state, and return it."""
    for values in state if isinstance(state, tuple) else (state,):
        for name, value in (values or {}).items():
            setattr(x, name, value)
    return x


def _wraps(x: Any) -> bool:
    """Return whether a tensor has no memory, and its class answers for it."""
    if type(x).__torch_dispatch__ is _C._disabled_torch_dispatch_impl:
        return False
    try:
        _C._untyped_storage(x)
    except RuntimeError:
        return True
    return False


def _wrapper_parts(x: Any) -> tuple[Any, ...]:
    """Return of what `torch._utils._rebuild_wrapper_subclass` makes such a tensor."""
    sizes = (tuple(x.size()), x.stride(), x.storage_offset())
    return (type(x), x.dtype, *sizes, x.layout, x.device, x.requires_grad)


def _unpickled(
    cls: type,
    raw: bytes,
    dtype: str,
    shape: tuple[int, ...],
    requires_grad: bool,
    attributes: dict[str, Any],
    place: str = "cpu",
) -> Any:
    """Make the tensor that `__reduce_ex__` took apart: where it was, as `load` has it."""
    wanted = getattr(_C, dtype.rpartition(".")[2])
    if raw:
        data = _C.frombuffer(bytearray(raw), dtype=_C.uint8).view(wanted)
        data = data.reshape(shape)
    else:
        data = _C.empty(shape, dtype=wanted, device="cpu")
    if place != "cpu":
        data = data.to(_restored(place))
    return _rebuilt(cls, data, requires_grad, attributes)


def _restored(place: str) -> Any:
    """Return the device for a tensor that was on a GPU: the CPU where its own name had none."""
    from .._serialization.options import device_of

    device = device_of(place)
    if device is None:
        raise RuntimeError(
            f"don't know how to restore a tensor of device {place!r}; torch.load takes map_location"
        )
    return device if _C._wgpu_available() else "cpu"


def _unpickled_meta(
    cls: type,
    dtype: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """Make the tensor without memory that `__reduce_ex__` took apart."""
    wanted = getattr(_C, dtype.rpartition(".")[2])
    data = _C.empty_strided(shape, stride, dtype=wanted, device="meta")
    return _rebuilt(cls, data, requires_grad, attributes)


def _unpickled_sparse(cls: Any, parts: Any, requires_grad: bool, attributes: Any) -> Any:
    """Make the sparse tensor that `__reduce_ex__` took apart."""
    layout, made_of, size, known = parts
    data = sparse_tensor(layout, made_of, size, known, check=True)
    return _rebuilt(cls, data, requires_grad, attributes)
