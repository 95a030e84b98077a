"""Functions of the top-level module that are written in Python."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["broadcast_shapes", "resize_as_", "split", "tensordot"]


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that tensors of these shapes broadcast to.

    Raises
    ------
    RuntimeError
        If they do not broadcast.
    """
    from ._size import Size

    out: list[int] = []
    for shape in shapes:
        sizes = [shape] if isinstance(shape, int) else list(shape)
        for i, n in enumerate(reversed(sizes)):
            if n < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({n}): ({sizes})"
                )
            if i == len(out):
                out.append(n)
            elif out[i] == 1:
                out[i] = n
            elif n not in (1, out[i]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"{[tuple(s) if not isinstance(s, int) else (s,) for s in shapes]}"
                )
    return Size(reversed(out))


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Cut a tensor into views along `dim`: of one size, or of each of the sizes listed."""
    return _C.Tensor.split(tensor, split_size_or_sections, dim)


def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Change the shape of `input` in place to that of another tensor."""
    return input.resize_as_(the_template, memory_format=memory_format)


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum products over pairs of dimensions.

    Parameters
    ----------
    a, b : Tensor
    dims : int or two lists of int
        The last `dims` dimensions of `a` against the first of `b`, or a list for each.

    Raises
    ------
    RuntimeError
        If `dims` is out of range, or the sizes do not match.
    """
    if isinstance(dims, _C.Tensor):
        dims = dims.item() if dims.numel() == 1 else dims.tolist()
    if isinstance(dims, (tuple, list)) and len(dims) == 2:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        n = dims[0] if isinstance(dims, (tuple, list)) else dims
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if n > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-n, 0)), list(range(n))
    return _C._tensordot(a, b, left, right, out=out)
