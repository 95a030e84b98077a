"""Products of matrices in groups of different sizes, and of float8 in units of a scale."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pytensorlib as pt

__all__ = ["grouped_mm", "scaled_mm"]


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


class ScalingType(IntEnum):
    """Which elements of a matrix share a scale: all, those of a row, or those of a block.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.functional.ScalingType.RowWise.value
    1
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(IntEnum):
    """In which order scales of blocks lie in memory.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.functional.SwizzleType.NO_SWIZZLE.value
    0
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


ScalingType.__name__ = ScalingType.__qualname__ = "_ScalingType"
SwizzleType.__name__ = SwizzleType.__qualname__ = "_SwizzleType"
# Pickles find them by these names.
_ScalingType, _SwizzleType = ScalingType, SwizzleType


def scaled_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    output_dtype: Any = pt.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Any:
    """Multiply matrices of float8 whose elements count in units of a scale.

    The result is ``(mat_a @ mat_b) * scale_a * scale_b + bias``, computed in float32 and rounded
    once. What has a scale for each block is not supported, as on PyTorch's CPU.

    Parameters
    ----------
    mat_a : Tensor
        (rows, k), of float8.
    mat_b : Tensor
        (k, columns), of float8.
    scale_a : Tensor
        float32: one element, or (rows, 1) where each row has a scale.
    scale_recipe_a, scale_recipe_b : ScalingType
        TensorWise or RowWise, both the same.
    scale_b : Tensor
        float32: one element, or (1, columns) where each column has a scale.
    swizzle_a, swizzle_b : SwizzleType, optional
        NO_SWIZZLE: scales lie in order.
    bias : Tensor, optional
        (columns,).
    output_dtype : dtype, default bfloat16
        The element type of the result; with None that of `mat_a`.
    contraction_dim : sequence of int
        Empty: the last dimension of `mat_a` and the first of `mat_b`.
    use_fast_accum : bool, default False
        Accepted without an effect.

    Returns
    -------
    Tensor
        (rows, columns).

    Raises
    ------
    ValueError
        Types, recipes or shapes of the scales are others.
    RuntimeError
        The matrices do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.functional import ScalingType, scaled_mm
    >>> a = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(torch.float8_e4m3fn)
    >>> one, kind = torch.tensor(0.5), ScalingType.TensorWise
    >>> scaled_mm(a, a.t(), one, kind, one, kind)
    tensor([[1.2500, 2.7500],
            [2.7500, 6.2500]], dtype=torch.bfloat16)
    """
    scale_a, scale_b = _only(scale_a), _only(scale_b)
    recipe = _only(scale_recipe_a)
    swizzles = {_only(s) for s in (swizzle_a, swizzle_b)} - {None, SwizzleType.NO_SWIZZLE}
    if mat_a.dim() != 2 or mat_b.dim() != 2 or mat_a.shape[1] != mat_b.shape[0]:
        raise RuntimeError(
            "scaled_mm: mat_a and mat_b must be matrices that fit, got shapes "
            f"{tuple(mat_a.shape)} and {tuple(mat_b.shape)}"
        )
    rows, columns = mat_a.shape[0], mat_b.shape[1]
    if recipe == ScalingType.RowWise:
        fits = tuple(scale_a.shape) == (rows, 1) and tuple(scale_b.shape) == (1, columns)
    else:
        fits = recipe == ScalingType.TensorWise and scale_a.numel() == scale_b.numel() == 1
    small = all(m.dtype.is_floating_point and m.dtype.itemsize == 1 for m in (mat_a, mat_b))
    same = recipe == _only(scale_recipe_b) and scale_a.dtype == scale_b.dtype == pt.float32
    if not (fits and small and same) or swizzles or len(contraction_dim):
        raise ValueError(
            "scaled_mm: Invalid scaling configuration: matrices of float8 take float32 scales of "
            f"one element (TensorWise), or of shapes ({rows}, 1) and (1, {columns}) (RowWise), got "
            f"matrices of {mat_a.dtype} and {mat_b.dtype}, and scales of {scale_a.dtype} and "
            f"{scale_b.dtype} with shapes {tuple(scale_a.shape)} and {tuple(scale_b.shape)}"
        )
    if recipe == ScalingType.TensorWise:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    y = (mat_a.float() @ mat_b.float()) * scale_a * scale_b
    if bias is not None:
        y = y + bias.float()
    return y.to(output_dtype or mat_a.dtype)


def _scaled_mm(
    input: Any,
    mat2: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any = None,
    scale_result: Any = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Any:
    """As `scaled_mm`, with the recipe that the shapes of the scales say."""
    del scale_result  # without a meaning on the CPU
    recipe = (
        ScalingType.TensorWise if scale_a.numel() == 1 == scale_b.numel() else ScalingType.RowWise
    )
    return scaled_mm(
        input, mat2, scale_a, recipe, scale_b, recipe, bias=bias, output_dtype=out_dtype
    )


def _only(value: Any) -> Any:
    """Return what a list of one holds, or what is no list."""
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) != 1:
        raise ValueError(f"scaled_mm: one level of scales is supported, got {len(value)}")
    return value[0]
