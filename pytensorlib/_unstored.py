"""Element types and layouts that have a name, but no tensors yet.

Libraries compare with them, hold them in tables and ask `finfo` for their limits; a function that
is asked for a tensor of one refuses, as for anything that is no dtype or layout.
"""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = [
    "chalf",
    "complex32",
    "float4_e2m1fn_x2",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "jagged",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
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
        return _C.float16 if self.is_complex else self

    def to_complex(self) -> Any:
        """Return the complex type of such parts, where there is one."""
        if self.is_complex:
            return self
        raise RuntimeError(f"there is no complex type of parts of torch.{self.name}")


class MemoryLayout(Named):
    """A layout of which there are no tensors."""

    kind = _C.layout


def named(base: Any, name: str, nearest: str, **facts: Any) -> Any:
    """Return the one object of a class of its own, whose name is what errors show."""
    shown = f"torch.{name}, of which there are no tensors here (nearest: {nearest})"
    return type(shown, (base,), facts | {"name": name})()


float8_e4m3fn = named(ElementType, "float8_e4m3fn", "torch.bfloat16")
float8_e4m3fnuz = named(ElementType, "float8_e4m3fnuz", "torch.bfloat16")
float8_e5m2 = named(ElementType, "float8_e5m2", "torch.bfloat16")
float8_e5m2fnuz = named(ElementType, "float8_e5m2fnuz", "torch.bfloat16")
float8_e8m0fnu = named(ElementType, "float8_e8m0fnu", "torch.bfloat16", is_signed=False)
float4_e2m1fn_x2 = named(ElementType, "float4_e2m1fn_x2", "torch.bfloat16")
complex32 = chalf = named(
    ElementType,
    "complex32",
    "torch.complex64",
    itemsize=4,
    is_floating_point=False,
    is_complex=True,
)
sparse_coo = named(MemoryLayout, "sparse_coo", "torch.strided")
sparse_csr = named(MemoryLayout, "sparse_csr", "torch.strided")
sparse_csc = named(MemoryLayout, "sparse_csc", "torch.strided")
sparse_bsr = named(MemoryLayout, "sparse_bsr", "torch.strided")
sparse_bsc = named(MemoryLayout, "sparse_bsc", "torch.strided")
_mkldnn = named(MemoryLayout, "_mkldnn", "torch.strided")
jagged = named(MemoryLayout, "jagged", "torch.nn.utils.rnn.pad_sequence")
