"""What ``torch.Tensor(...)`` makes, and the names of types that old constructors go by."""

from __future__ import annotations

import re
from typing import Any

from .. import _C
from .size import Size

_SCALARS = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float8_e4m3fn": "Float8_e4m3fn",
    "float8_e5m2": "Float8_e5m2",
    "float8_e4m3fnuz": "Float8_e4m3fnuz",
    "float8_e5m2fnuz": "Float8_e5m2fnuz",
    "float8_e8m0fnu": "Float8_e8m0fnu",
    "complex32": "ComplexHalf",
}


def _scalar_name(dtype: Any) -> str:
    return _SCALARS[dtype._name]


# Where the tensors of an old type are, in its name.
_PLACE = re.compile(r"^torch\.(?:(cuda|mps|xpu|wgpu)\.)(?:sparse\.)?")


def _placed_type(kind: Any) -> tuple[str | None, Any]:
    """Return the kind of device and the dtype that an old type or its name stands for.

    A dtype says nothing of the device, and the device of one on the CPU is "cpu".
    """
    dtype = _dtype_of(kind)
    if (
        isinstance(kind, _C.dtype)
        or not isinstance(kind, (str, type))
        or kind in (float, int, bool)
    ):
        return None, dtype
    if isinstance(kind, str):
        found = _PLACE.match(kind)
        return found[1] if found else "cpu", dtype
    return getattr(kind, "kind", "cpu"), dtype


def _dtype_of(kind: Any) -> Any:
    """Return the dtype that a dtype, a class such as `FloatTensor` or its name stands for."""
    if isinstance(kind, _C.dtype):
        return kind
    if kind in (float, int, bool):
        return {float: _C.float64, int: _C.int64, bool: _C.bool}[kind]
    if not isinstance(kind, (str, type)):
        raise TypeError(f"dtype must be a type, str, or dtype object, got {kind!r}")
    name = kind if isinstance(kind, str) else f"torch.{kind.__name__}"
    name = _PLACE.sub("torch.", name.replace("torch.sparse.", "torch."))
    for dtype, scalar in _SCALARS.items():
        if name == f"torch.{scalar}Tensor":
            return getattr(_C, dtype)
    if name == "torch.Tensor":
        return _C.get_default_dtype()
    raise ValueError(f"invalid type: {name!r}")


def _check_legacy_device(device: Any, kind: str) -> None:
    """Raise for another kind of device than that of the constructor's type."""
    if device is not None and (got := _C.device(device).type) != kind:
        raise RuntimeError(
            f"legacy constructor expects device type: {kind} but device type: {got} was passed; "
            f"torch.empty and torch.tensor take any device"
        )


def _constructed(*args: Any, device: Any = None, **kwargs: Any) -> Any:
    """Make what ``torch.Tensor(...)`` does, which is for the CPU alone."""
    _check_legacy_device(device, "cpu")
    if device is not None and args and isinstance(args[0], _C.Tensor):
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not "
            "supported.  Use torch.tensor(...) or torch.as_tensor(...) instead."
        )
    return _legacy_new(*args, device=device, **kwargs)


def _legacy_new(
    *args: Any, dtype: Any = None, device: Any = None, size: Any = None, data: Any = None
) -> Any:
    """Make a tensor from sizes, data or another tensor, as ``torch.Tensor(...)`` does."""
    wanted, dtype = dtype, dtype or _C.get_default_dtype()
    if size is not None:
        args = (_sizes(size),)
    if data is not None:
        args = (data,)
    if not args:
        return _C.empty((0,), dtype=dtype, device=device)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, _C.Tensor):
            if wanted is not None and first.dtype != wanted:
                raise TypeError(f"expected {_scalar_name(dtype)} (got {_scalar_name(first.dtype)})")
            return first.detach()
        if isinstance(first, _C.UntypedStorage) or hasattr(first, "_untyped_storage"):
            return _C.empty((0,), dtype=dtype, device=device).set_(first)
        if isinstance(first, Size):
            return _C.empty(first, dtype=dtype, device=device)
        if not isinstance(first, int):
            if isinstance(first, (str, bytes)):
                raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
            if isinstance(first, float) or not hasattr(first, "__len__"):
                raise TypeError(
                    "new(): data must be a sequence, or sizes must be ints "
                    f"(got {type(first).__name__})"
                )
            return _C.tensor(first, dtype=dtype, device=device)
    for n in args:
        if not isinstance(n, int):
            raise TypeError(
                f"new() received an invalid combination of arguments - got {type(n).__name__} "
                "where sizes are ints"
            )
    return _C.empty(args, dtype=dtype, device=device)


def _sizes(size: Any) -> Any:
    return size if isinstance(size, Size) else Size((size,) if isinstance(size, int) else size)
