"""Reduction operations, and the types that they are computed in."""

from __future__ import annotations

import enum
from typing import Any

import pytensorlib as pt

__all__ = ["ReduceOp", "Reduction", "reduce_op", "reduction", "supports_complex"]


class ReduceOp(enum.IntEnum):
    """How values of several processes become one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class Premultiplied:
    """A sum of values that are multiplied by a factor first."""

    def __init__(self, factor: Any) -> None:
        self.factor = factor


def _make_nccl_premul_sum(factor: Any) -> Any:
    """Return the operation that multiplies by `factor` and sums up."""
    return Premultiplied(factor)


class reduce_op:
    """The old name of `ReduceOp`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.reduce_op.SUM is torch.distributed.ReduceOp.SUM
    True
    """

    SUM, PRODUCT, MIN, MAX = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX


def supports_complex(reduceOp: Any) -> bool:  # noqa: N803  (PyTorch's name)
    """Return whether a reduction has a meaning for complex numbers.

    Parameters
    ----------
    reduceOp : ReduceOp
        A way to make one of several values.

    Returns
    -------
    bool
        False for products, extremes and operations on bits.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.MAX)
    False
    """
    op = ReduceOp
    return reduceOp not in (op.MAX, op.MIN, op.PRODUCT, op.BAND, op.BOR, op.BXOR)


_MPI = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PREMUL_SUM: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
# A bool is a byte of 0 or 1: a sum or the like is there where any is, a product where all are.
_OF_BOOLS = {"SUM": "MAX", "PROD": "MIN", "BAND": "MIN", "BOR": "MAX"}


class Reduction:
    """An operation for tensors of one type.

    Attributes
    ----------
    name : str
        MPI's name of it.
    dtype : dtype
        The type it is done in: half types are summed in float32, and rounded once.
    """

    def __init__(self, op: Any, dtype: Any, members: int) -> None:
        self.op = ReduceOp.PREMUL_SUM if isinstance(op, Premultiplied) else op
        self.factor = op.factor if isinstance(op, Premultiplied) else None
        self.name = _MPI[self.op]
        self.members = members
        self.dtype = dtype
        if dtype == pt.bool:
            self.dtype, self.name = pt.uint8, _OF_BOOLS.get(self.name, self.name)
        elif dtype.is_floating_point and dtype.itemsize < 4:
            self.dtype = pt.float32
        elif dtype.is_complex and dtype.itemsize < 8:
            self.dtype = pt.complex64
        self.changes = self.dtype != dtype or self.factor is not None

    def before(self, x: Any) -> Any:
        """Return contiguous numbers on the CPU to reduce: the tensor itself where it is that."""
        x = x.detach()
        if x.dtype == pt.bool:
            x = x.cpu().contiguous().view(pt.uint8)
        x = x.to(device="cpu", dtype=self.dtype)
        if self.factor is not None:
            x = x * self.factor.detach().cpu() if pt.is_tensor(self.factor) else x * self.factor
            x = x.to(self.dtype)
        return x.contiguous()

    def after(self, x: Any) -> Any:
        """Return what the reduction of all members' numbers means."""
        return x.div_(self.members) if self.op == ReduceOp.AVG else x


def reduction(call: str, op: Any, dtype: Any, members: int) -> Reduction:
    """Return how `op` reduces numbers of a type.

    Raises
    ------
    ValueError
        Complex numbers do not have it.
    RuntimeError
        The type does not have it.
    """
    if not isinstance(op, (ReduceOp, Premultiplied)) or op == ReduceOp.UNUSED:
        try:
            op = ReduceOp(op)
        except (ValueError, TypeError):
            raise ValueError(f"{call}: op must be a ReduceOp, got {op!r}") from None
        if op == ReduceOp.UNUSED:
            raise ValueError(f"{call}: ReduceOp.UNUSED reduces nothing")
    if op == ReduceOp.PREMUL_SUM:
        raise ValueError(f"{call}: PREMUL_SUM needs its factor: _make_nccl_premul_sum(factor)")
    if dtype.is_complex and not supports_complex(op):
        raise ValueError(f"{call} does not support {op!s} on complex tensors")
    numbers = dtype.is_floating_point or dtype.is_complex
    if op in _BITS and numbers:
        raise RuntimeError(f"{call}: Cannot use ReduceOp.{op.name} with non-integral dtype {dtype}")
    if op == ReduceOp.AVG and not numbers:
        raise RuntimeError(
            f"{call}: result type Float can't be cast to the desired output type {dtype}; sum up "
            "and divide, or average floats"
        )
    return Reduction(op, dtype, members)
