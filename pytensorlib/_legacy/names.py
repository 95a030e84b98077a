"""The names of the storage classes, by element type."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytensorlib as pt

__all__ = ["QUANTIZED", "STORED"]

# The storages that have a class, by their elements; checkpoints name them so.
STORED = {
    pt.float64: "DoubleStorage",
    pt.float32: "FloatStorage",
    pt.float16: "HalfStorage",
    pt.int64: "LongStorage",
    pt.int32: "IntStorage",
    pt.int16: "ShortStorage",
    pt.int8: "CharStorage",
    pt.uint8: "ByteStorage",
    pt.bool: "BoolStorage",
    pt.bfloat16: "BFloat16Storage",
    pt.complex128: "ComplexDoubleStorage",
    pt.complex64: "ComplexFloatStorage",
}
# Those of types of which there are no tensors, and what their elements are read as.
QUANTIZED = {
    "qint32": ("QInt32Storage", pt.int32),
    "qint8": ("QInt8Storage", pt.int8),
    "quint2x4": ("QUInt2x4Storage", pt.uint8),
    "quint4x2": ("QUInt4x2Storage", pt.uint8),
    "quint8": ("QUInt8Storage", pt.uint8),
}


@cache
def _dtype_to_storage_type_map() -> dict[Any, str]:
    """Return the name of the storage class of each dtype that has one."""
    return STORED | {getattr(pt, name): storage for name, (storage, _) in QUANTIZED.items()}


@cache
def _storage_type_to_dtype_map() -> dict[str, Any]:
    """Return the dtype of each storage class, by its name."""
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type: str) -> Any:
    """Return the dtype of the storage class of a name."""
    try:
        return _storage_type_to_dtype_map()[pickle_storage_type]
    except KeyError:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized') from None


def _read_as(dtype: Any) -> Any:
    """Return the dtype of tensors over memory of elements of `dtype`."""
    known = QUANTIZED.get(getattr(dtype, "name", ""))
    return dtype if known is None else known[1]
