"""Functions of the top-level module that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from ._C import (
        atleast_1d,
        atleast_2d,
        atleast_3d,
        block_diag,
        broadcast_tensors,
        cartesian_prod,
        cdist,
        chain_matmul,
        meshgrid,
        norm,
        unique_consecutive,
        unravel_index,
    )

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "histogramdd",
    "meshgrid",
    "norm",
    "resize_as_",
    "split",
    "tensordot",
    "unique_consecutive",
    "unravel_index",
]

# Operators that are functions of Python's here, as in PyTorch.
_OPERATORS = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul
    meshgrid norm unique_consecutive unravel_index
""".split()
# What PyTorch also has here, and the package itself holds.
_ALSO = "istft lu pca_lowrank stft svd_lowrank unique".split()


def __getattr__(name: str) -> Any:
    if name in _ALSO:
        import pytensorlib as pt

        return getattr(pt, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that tensors of these shapes broadcast to.

    Shapes are aligned at their ends; sizes are equal, or 1 where they are stretched.

    Parameters
    ----------
    *shapes : int, tuple of int or Size
        A number is a shape of one dimension.

    Returns
    -------
    Size
        The common shape.

    Raises
    ------
    RuntimeError
        The shapes do not broadcast, or a size is negative.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.broadcast_shapes((2, 1), (3,), (1, 1, 3))
    torch.Size([1, 2, 3])
    """
    from ._tensor.size import Size

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


def einsum(*args: Any, **kwargs: Any) -> _C.Tensor:
    """Return sums of products of the operands' elements, as subscripts say.

    Each letter names a dimension; equal letters have equal sizes. Products are summed over letters
    that are not behind ``->``; without ``->`` those that occur once remain, in alphabetic order. A
    letter twice in one operand takes its diagonal, ``...`` stands for dimensions that broadcast.

    Parameters
    ----------
    *args : str and Tensor
        The letters of each operand, separated by commas, and of the result; then as many operands.
        Or each operand followed by the list of its subscripts, numbers from 0 to 51 in place of
        letters and ``Ellipsis`` in place of ``...``, and at the end the list of the result's.

    Returns
    -------
    Tensor
        As the subscripts say.

    Raises
    ------
    RuntimeError
        The equation is malformed, names another number of operands or dimensions, or sizes differ.
    ValueError
        A number is not that of a subscript, or there is no operand.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> a, b = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0])
    >>> torch.einsum("ij,j->i", a, b)
    tensor([21., 43.])
    >>> torch.einsum(a, [0, 1], b, [1], [0])
    tensor([21., 43.])
    >>> torch.einsum("ii", a)
    tensor(5.)
    """
    if args and not isinstance(args[0], str):
        if len(args) < 2:
            raise ValueError("einsum(): expected each operand to be followed by its subscripts")
        pairs = len(args) // 2 * 2
        equation = ",".join(map(_letters, args[1:pairs:2]))
        if pairs < len(args):
            equation += "->" + _letters(args[-1])
        args = (equation, *args[:pairs:2])
    return _C.einsum(*args, **kwargs)


def _letters(subscripts: Any) -> str:
    """Letters for numbers from 0 on, in alphabetic order: capital ones come first."""
    if not isinstance(subscripts, (list, tuple)):
        kind = type(subscripts).__name__
        raise TypeError(f"einsum(): subscripts of an operand must be a list, got {kind}")
    return "".join("..." if s is ... else _letter(s) for s in subscripts)


def _letter(number: int) -> str:
    if not 0 <= number < 52:
        raise ValueError(
            f"einsum(): a subscript must be Ellipsis or lie in the range [0, 52), got {number}"
        )
    return chr(ord("A") + number if number < 26 else ord("a") + number - 26)


def histogramdd(
    input: Any,
    bins: Any,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
) -> Any:
    """Count points of n coordinates, or sum their weights, in boxes.

    Boxes hold their lower edges, and the last ones along each dimension their upper edges, too.

    Parameters
    ----------
    input : Tensor
        (..., n), at least two dimensions; float32 or float64. Each row is a point.
    bins : int, list of int or list of Tensor
        How many even parts along all or each of the dimensions, or their edges, ascending.
    range : list of float, optional
        The least and largest coordinate along each dimension, 2 n numbers; by default those of the
        points. Edges that are given stay.
    weight : Tensor, optional
        (...). What each point counts.
    density : bool, default False
        Whether to divide by the sum of all, and by the size of each box.

    Returns
    -------
    hist : Tensor
        A dimension for each coordinate.
    bin_edges : tuple of Tensor
        One more along each dimension than there are boxes.

    Raises
    ------
    RuntimeError
        Sizes or dtypes do not fit, a number of bins is not positive, or a range is not finite.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [2.0, 2.0]])
    >>> hist, edges = torch.histogramdd(points, bins=[2, 2])
    >>> hist
    tensor([[0., 1.],
            [1., 2.]])
    >>> edges
    (tensor([0., 1., 2.]), tensor([0., 1., 2.]))
    """
    from ._ops.results import make

    if isinstance(bins, int):
        bins = [bins] * (input.shape[-1] if input.dim() else 1)
    hist, *edges = _C._histogramdd(input, bins, range, weight, density)
    return make("histogramdd", ["hist", "bin_edges"])((hist, tuple(edges)))


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Cut a tensor into views along `dim`: of one size, or of each of the sizes listed.

    Parameters
    ----------
    tensor : Tensor
        At least one dimension.
    split_size_or_sections : int or list of int
        The size of every part but the last, which may be smaller; or all sizes, whose sum is
        the size of `dim`.
    dim : int, default 0
        Along what to cut.

    Returns
    -------
    tuple of Tensor
        Views, in order.

    Raises
    ------
    RuntimeError
        A size is negative, or the sizes do not add up.
    IndexError
        `dim` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> torch.split(torch.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return _C.Tensor.split(tensor, split_size_or_sections, dim)


def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Change the shape of `input` in place to that of another tensor.

    Elements keep their order in memory; those that come new are not initialised.

    Parameters
    ----------
    input : Tensor
        Without a gradient.
    the_template : Tensor
        Of the shape wanted.
    memory_format : memory_format, optional
        The order of the elements in memory.

    Returns
    -------
    Tensor
        `input`.

    Raises
    ------
    RuntimeError
        `input` requires a gradient, or its memory cannot grow.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.resize_as_(torch.arange(6), torch.empty(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return input.resize_as_(the_template, memory_format=memory_format)


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum products over pairs of dimensions.

    What is left of `a` comes before what is left of `b`. Sizes of 1 broadcast.

    Parameters
    ----------
    a, b : Tensor
        Of one dtype.
    dims : int, two lists of int or Tensor, default 2
        The last `dims` dimensions of `a` against the first of `b`, or a list for each; 0 gives
        the outer product.
    out : Tensor, optional
        Where the result is written, which is then returned.

    Returns
    -------
    Tensor
        The dimensions of both that are not summed over.

    Raises
    ------
    RuntimeError
        `dims` is negative or too large, its lists differ in length, or sizes do not match.
    IndexError
        A dimension in a list is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5)).shape
    torch.Size([2, 5])
    >>> a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.tensordot(a, a, dims=([0], [0]))
    tensor([[10., 14.],
            [14., 20.]])
    """
    if isinstance(dims, _C.Tensor):
        dims = dims.item() if dims.numel() == 1 else dims.tolist()
    if isinstance(dims, (tuple, list)) and len(dims) == 2:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        n = dims[0] if isinstance(dims, (tuple, list)) and len(dims) == 1 else dims
        if not hasattr(n, "__index__"):
            raise RuntimeError(
                "tensordot expects dims to be int or tuple[list[int], list[int]] or "
                f"list[list[int]] containing two lists, but got dims={dims}"
            )
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if n > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-n, 0)), list(range(n))
    return _C._tensordot(a, b, left, right, out=out)


# What PyTorch has as functions of Python's: programs look at their defaults and their code. To type
# checkers they are the operators, whose forms the stub tells apart.
if not TYPE_CHECKING:

    def atleast_1d(*tensors: Any) -> Any:
        return _C.atleast_1d(*tensors)

    def atleast_2d(*tensors: Any) -> Any:
        return _C.atleast_2d(*tensors)

    def atleast_3d(*tensors: Any) -> Any:
        return _C.atleast_3d(*tensors)

    def block_diag(*tensors: Any) -> Any:
        return _C.block_diag(*tensors)

    def broadcast_tensors(*tensors: Any) -> Any:
        return _C.broadcast_tensors(*tensors)

    def cartesian_prod(*tensors: Any) -> Any:
        return _C.cartesian_prod(*tensors)

    def cdist(
        x1: Any,
        x2: Any,
        p: float = 2.0,
        compute_mode: Any = "use_mm_for_euclid_dist_if_necessary",
    ) -> Any:
        return _C.cdist(x1, x2, p, compute_mode)

    def chain_matmul(*matrices: Any, out: Any = None) -> Any:
        return _C.chain_matmul(*matrices, out=out)

    def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
        return _C.meshgrid(*tensors, indexing=indexing)

    def norm(
        input: Any,
        p: Any = "fro",
        dim: Any = None,
        keepdim: bool = False,
        out: Any = None,
        dtype: Any = None,
    ) -> Any:
        if out is None:  # sparse tensors have a norm, but none that is given its result
            return _C.norm(input, p, dim, keepdim, dtype=dtype)
        return _C.norm(input, p, dim, keepdim, dtype=dtype, out=out)

    def unique_consecutive(
        input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
    ) -> Any:
        return _C.unique_consecutive(input, return_inverse, return_counts, dim)

    def unravel_index(indices: Any, shape: Any) -> Any:
        return _C.unravel_index(indices, shape)

    for _name in _OPERATORS:
        globals()[_name].__doc__ = getattr(_C, _name).__doc__
