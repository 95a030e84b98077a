"""``finfo`` and ``iinfo``: the limits of element types."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["finfo", "iinfo"]

# bits, eps, largest, smallest normal, decimal resolution
_FLOATS = {
    "float16": (16, 2.0**-10, 65504.0, 2.0**-14, 1e-3),
    "bfloat16": (16, 2.0**-7, 2.0**127 * (2 - 2.0**-7), 2.0**-126, 1e-2),
    "float32": (32, 2.0**-23, 2.0**127 * (2 - 2.0**-23), 2.0**-126, 1e-6),
    "float64": (64, 2.0**-52, 1.7976931348623157e308, 2.0**-1022, 1e-15),
    "float8_e4m3fn": (8, 2.0**-3, 448.0, 2.0**-6, 1.0),
    "float8_e4m3fnuz": (8, 2.0**-3, 240.0, 2.0**-7, 1.0),
    "float8_e5m2": (8, 2.0**-2, 57344.0, 2.0**-14, 1.0),
    "float8_e5m2fnuz": (8, 2.0**-3, 57344.0, 2.0**-15, 1.0),
    "float8_e8m0fnu": (8, 1.0, 2.0**127, 2.0**-127, 1.0),
}
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_INTS = {"uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}
_INTS |= {"uint16": 16, "uint32": 32, "uint64": 64}


def _name(function: str, given: Any) -> str:
    if not isinstance(given, _C.dtype):
        kind = type(given).__name__
        raise TypeError(
            f"{function}(): argument 'type' (position 1) must be torch.dtype, not {kind}"
        )
    return str(given).removeprefix("torch.")


class finfo:  # noqa: N801  (PyTorch's name)
    """Limits of a floating-point type.

    Parameters
    ----------
    type : dtype, optional
        Floating point or complex, whose parts count; the default dtype if not given.

    Attributes
    ----------
    bits : int
        The size of a number.
    eps : float
        The distance from 1 to the next number.
    max, min : float
        The largest number, and its negative.
    smallest_normal, tiny : float
        The smallest positive number of full precision.
    resolution : float
        The decimal precision near 1.
    dtype : str
        The name of the type.

    Raises
    ------
    TypeError
        The type is one of integers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.finfo(torch.float16).max
    65504.0
    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        name = _name("finfo", _C.get_default_dtype() if type is None else type)
        name = _PARTS.get(name, name)
        if name == "float4_e2m1fn_x2":
            raise NotImplementedError(f"torch.finfo() has no limits of 'torch.{name}'")
        if name not in _FLOATS:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'torch.{name}'"
            )
        self.bits, self.eps, self.max, self.tiny, self.resolution = _FLOATS[name]
        self.min, self.smallest_normal, self.dtype = -self.max, self.tiny, name
        if name == "float8_e8m0fnu":  # powers of two, without a sign
            self.min = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:  # noqa: N801  (PyTorch's name)
    """Limits of an integer type.

    Parameters
    ----------
    type : dtype
        One of integers.

    Attributes
    ----------
    bits : int
        The size of a number.
    max, min : int
        The largest and the smallest number.
    dtype : str
        The name of the type.

    Raises
    ------
    TypeError
        The type is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.iinfo(torch.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: Any) -> None:
        name = _name("iinfo", type)
        if name not in _INTS:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                f"'torch.{name}'"
            )
        self.bits, self.dtype = _INTS[name], name
        signed = not name.startswith("u")
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
