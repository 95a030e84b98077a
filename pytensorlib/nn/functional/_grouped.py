"""Products of matrices in groups of different sizes."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

__all__ = ["grouped_mm"]


def grouped_mm(
    mat_a: Any,
    mat_b: Any,
    *,
    offs: Any = None,
    bias: Any = None,
    out_dtype: Any = None,
) -> Any:
    """Multiply matrices group by group, as a mixture of experts does with its tokens.

    Of an operand with two dimensions `offs` says where each group ends; one with three has a
    matrix for each group. What lies behind the last end counts nothing and gives zeros.

    Parameters
    ----------
    mat_a : Tensor
        (rows, k) with groups of rows, (groups, rows, k), or (rows, k) with groups of k.
    mat_b : Tensor
        (groups, k, columns), (k, columns) with groups of columns, or (k, columns) with groups of k.
    offs : Tensor, optional
        Ends of the groups, integers that do not fall; needed unless both have three dimensions.
    bias : None
        Not supported, as in PyTorch.
    out_dtype : dtype, optional
        The element type of the result.

    Returns
    -------
    Tensor
        (rows, columns), or a matrix for each group where both or none of the operands have three
        dimensions.

    Raises
    ------
    RuntimeError
        Shapes or `offs` do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> experts = torch.tensor([1.0, 10.0]).reshape(2, 1, 1).expand(2, 2, 1)
    >>> nn.functional.grouped_mm(torch.ones(3, 2), experts, offs=torch.tensor([1, 3]))
    tensor([[ 2.],
            [20.],
            [20.]])
    """
    a, b = mat_a, mat_b
    if bias is not None:
        raise RuntimeError("grouped_mm: a bias is not supported, add it to the result")
    if a.dim() not in (2, 3) or b.dim() not in (2, 3):
        raise RuntimeError(
            f"grouped_mm: matrices have 2 or 3 dimensions, got {a.dim()} and {b.dim()}"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            "grouped_mm: contraction dimension of mat_a and mat_b must match, got "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    whole = a.dim() == b.dim() == 3
    if (offs is None) != whole:
        raise RuntimeError(
            "grouped_mm: offs is given exactly where an operand has 2 dimensions, got "
            f"{tuple(a.shape)} and {tuple(b.shape)} with {'no ' if offs is None else ''}offs"
        )
    dtype = out_dtype or a.dtype
    if whole:
        return pt.bmm(a, b).to(dtype)
    ends = offs.tolist()
    cut = a.shape[-1] if a.dim() == b.dim() else a.shape[0] if a.dim() == 2 else b.shape[1]
    starts = [0, *ends[:-1]]
    groups = len(a) if a.dim() == 3 else len(b) if b.dim() == 3 else len(ends)
    parts = list(zip(starts, ends, strict=True))
    if len(ends) != groups or any(not 0 <= s <= e <= cut for s, e in parts):
        raise RuntimeError(
            f"grouped_mm: offs holds {groups} ends that do not fall, at most {cut}, got {ends}"
        )
    if a.dim() == b.dim():
        return pt.stack([a[:, s:e] @ b[s:e] for s, e in parts]).to(dtype)
    dim = 0 if a.dim() == 2 else 1
    if dim == 0:
        found = [a[s:e] @ b[i] for i, (s, e) in enumerate(parts)]
    else:
        found = [a[i] @ b[:, s:e] for i, (s, e) in enumerate(parts)]
    rest = cut - (ends[-1] if ends else 0)
    shape = [a.shape[-2], b.shape[-1]]
    shape[dim] = rest
    return pt.cat([*found, a.new_zeros(shape)], dim).to(dtype)
