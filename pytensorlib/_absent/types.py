"""Element types, layouts and schemes of quantization that have a name, but no tensors here.

Libraries compare with them, hold them in tables and ask `finfo` for their limits; a function that
is asked for a tensor of one refuses, as for anything that is no dtype or layout.
"""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = [
    "bit",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "float4_e2m1fn_x2",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "jagged",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "qint32",
    "qint8",
    "qscheme",
    "quint2x4",
    "quint4x2",
    "quint8",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
]


class Named:
    """One such name: equal to itself only, and pickled as what it is called."""

    kind: type
    name: str

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.kind  # for `isinstance`; `type` tells the truth

    @property
    def __module__(self) -> str:  # type: ignore[override]
        return _C.dtype.__module__

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return self.name

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class ElementType(Named):
    """A dtype of which there are no tensors."""

    kind = _C.dtype
    itemsize = 1
    is_floating_point = True
    is_complex = False
    is_signed = True

    def to_real(self) -> Any:
        """Return the type of the real part."""
        return self

    def to_complex(self) -> Any:
        """Raise: there is no complex type of such parts."""
        raise RuntimeError(f"there is no complex type of parts of torch.{self.name}")


class qscheme:  # noqa: N801  (PyTorch's name)
    """How a quantized tensor stands for numbers: `torch.per_tensor_affine` and its kin.

    They are compared, held in tables and pickled; there are no quantized tensors here.

    Raises
    ------
    TypeError
        It is called: there is one object for each scheme.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.per_tensor_affine, torch.qscheme)
    True
    """

    def __new__(cls) -> Any:
        raise TypeError("cannot create 'torch.qscheme' instances")


class Scheme(Named):
    """A scheme of quantization."""

    kind = qscheme


class MemoryLayout(Named):
    """A layout of which there are no tensors."""

    kind = _C.layout


def named(base: Any, name: str, nearest: str, **facts: Any) -> Any:
    """Return the one object of a class of its own, whose name is what errors show."""
    shown = f"torch.{name}, of which there are no tensors here (nearest: {nearest})"
    return type(shown, (base,), facts | {"name": name})()


def undefined(why: str) -> Any:
    """Return a fact that types lack: asking for it raises."""

    def ask(self: Any) -> Any:
        raise RuntimeError(why)

    return property(ask)


def whole(name: str, nearest: str, size: int = 1, signed: Any = True) -> Any:
    """Return the type of integers, or of bits, of this name."""
    return named(
        ElementType, name, nearest, itemsize=size, is_floating_point=False, is_signed=signed
    )


int1, int2, int3, int4, int5, int6, int7 = (whole(f"int{n}", "torch.int8") for n in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (
    whole(f"uint{n}", "torch.uint8", signed=False) for n in range(1, 8)
)
bit = uint1
bits1x8, bits2x4, bits4x2, bits8 = (
    whole(f"bits{form}", "torch.uint8", signed=undefined("Bits types are undefined"))
    for form in ("1x8", "2x4", "4x2", "8")
)
bits16 = whole("bits16", "torch.uint16", 2, undefined("Bits types are undefined"))
qint8, quint8, quint4x2, quint2x4, qint32 = (
    whole(
        name,
        "torch.fake_quantize_per_tensor_affine, or torch.int8",
        4 if name == "qint32" else 1,
        undefined("isSignedType not supported for quantized types"),
    )
    for name in ("qint8", "quint8", "quint4x2", "quint2x4", "qint32")
)
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric = (
    named(Scheme, name, "torch.fake_quantize_per_tensor_affine")
    for name in "per_tensor_affine per_channel_affine per_tensor_symmetric "
    "per_channel_symmetric".split()
)
per_channel_affine_float_qparams = named(
    Scheme, "per_channel_affine_float_qparams", "torch.fake_quantize_per_channel_affine"
)
float4_e2m1fn_x2 = named(ElementType, "float4_e2m1fn_x2", "torch.float8_e4m3fn")
_mkldnn = named(MemoryLayout, "_mkldnn", "torch.strided")
jagged = named(MemoryLayout, "jagged", "torch.nn.utils.rnn.pad_sequence")
