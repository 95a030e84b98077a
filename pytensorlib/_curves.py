"""Functions of samples of curves and of points: slopes, Vandermonde's matrix, histograms."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytensorlib as pt

__all__ = ["gradient", "histogramdd", "vander"]


def _steps(spacing: Any, dims: list[int], input: Any) -> list[Any]:
    """Return the distance, or the coordinates, along each dimension."""
    if isinstance(spacing, (int, float, complex)) or (
        isinstance(spacing, pt.Tensor) and spacing.dim() == 0
    ):
        return [spacing] * len(dims)
    steps = [spacing] if isinstance(spacing, pt.Tensor) else list(spacing)
    if len(steps) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            f"arguments to have the same length, but got {len(steps)} for {len(dims)} dimensions"
        )
    for step, dim in zip(steps, dims, strict=True):
        if isinstance(step, pt.Tensor) and step.dim() and step.shape != (input.shape[dim],):
            raise RuntimeError(
                "torch.gradient expected each tensor of coordinates to have as many as its "
                f"dimension, but got {tuple(step.shape)} for one of {input.shape[dim]}"
            )
    return steps


def _slope(x: Any, step: Any, dim: int, order: int) -> Any:
    """Return the derivative along a dimension."""
    n = x.shape[dim]

    first: Any
    last: Any

    def at(i: int) -> Any:
        return x.narrow(dim, i % n, 1)

    if isinstance(step, pt.Tensor) and step.dim():
        h = step.diff()
        shape = [1] * x.dim()
        shape[dim] = -1
        a: Any = h[:-1].reshape(shape)
        b: Any = h[1:].reshape(shape)
        first, last = h[:2], h[-2:].flip(0)
    else:
        a = b = step
        first = last = (step, step)
    low, mid, high = (x.narrow(dim, i, n - 2) for i in range(3))
    inner = -low * (b / (a * (a + b))) + mid * ((b - a) / (a * b)) + high * (a / (b * (a + b)))

    def edge(p: int, q: int, r: int, h: Any, sign: int) -> Any:
        if order == 1:
            return sign * (at(q) - at(p)) / h[0]
        u, v = h[0], h[1]
        return sign * (
            -at(p) * ((2 * u + v) / (u * (u + v)))
            + at(q) * ((u + v) / (u * v))
            - at(r) * (u / (v * (u + v)))
        )

    ends = edge(0, 1, 2, first, 1), edge(-1, -2, -3, last, -1)
    return pt.cat([ends[0], inner, ends[1]], dim)


def gradient(
    input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Any, ...]:
    """Estimate derivatives of a sampled function: central differences of second order.

    Parameters
    ----------
    input : Tensor
        The values.
    spacing : number, list of number, Tensor or list of Tensor, default 1
        The distance of the samples, for all dimensions or for each, or their coordinates.
    dim : int or list of int, optional
        Along which dimensions; all where it is not given.
    edge_order : {1, 2}, default 1
        The order of the differences at the ends.

    Returns
    -------
    tuple of Tensor
        The derivative along each dimension, of the shape of `input`.

    Raises
    ------
    RuntimeError
        There are not more samples than `edge_order`, or `spacing` does not fit `dim`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.gradient(torch.tensor([0.0, 1.0, 4.0, 9.0]))
    (tensor([1., 2., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and 2, got {edge_order}")
    if dim is None and isinstance(spacing, (list, tuple)):
        dim = list(range(len(spacing))) if len(spacing) == input.dim() else None
    wanted = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [d % input.dim() if -input.dim() <= d < input.dim() else d for d in wanted]
    for d in dims:
        if not 0 <= d < input.dim():
            raise IndexError(f"gradient: dimension {d} of a tensor of {input.dim()} dimensions")
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1, got "
                f"{input.shape[d]} in dimension {d}"
            )
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"gradient: a dim appears multiple times in the list of dims {list(wanted)}"
        )
    x = input
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(pt.get_default_dtype())
    found = []
    for step, d in zip(_steps(spacing, dims, input), dims, strict=True):
        if x.shape[d] == 2:  # only ends
            h = step.diff()[0] if isinstance(step, pt.Tensor) and step.dim() else step
            found.append((x.diff(dim=d) / h).expand(x.shape).clone())
        else:
            found.append(_slope(x, step, d, edge_order))
    return tuple(found)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return Vandermonde's matrix: the powers of each number in a row.

    Parameters
    ----------
    x : Tensor
        Of one dimension.
    N : int, optional
        How many powers; as many as numbers where it is not given.
    increasing : bool, default False
        Begin with the power 0; otherwise end with it.

    Returns
    -------
    Tensor
        Of shape (len(x), N).

    Raises
    ------
    RuntimeError
        `x` has more dimensions, or `N` is negative.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.dim() != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, got {x.dim()} dimensions")
    n = len(x) if N is None else N
    if n < 0:
        raise RuntimeError(f"N must be non-negative, got {n}")
    columns = [pt.ones_like(x)] if n else []
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    if not columns:
        return x.new_empty((len(x), 0))
    return pt.stack(columns if increasing else columns[::-1], 1)


class _Histogram(NamedTuple):
    hist: Any
    bin_edges: tuple[Any, ...]


def histogramdd(
    input: Any,
    bins: Any,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
) -> _Histogram:
    """Count points in boxes.

    Parameters
    ----------
    input : Tensor
        Points, of shape (..., D).
    bins : int, list of int or list of Tensor
        How many boxes along each of D dimensions, or their edges, increasing.
    range : list of float, optional
        Least and largest edge of each dimension; those of the points where it is not given.
    weight : Tensor, optional
        What each point counts, of shape (...); 1 where it is not given.
    density : bool, default False
        Divide by the sum and by the boxes' sizes.

    Returns
    -------
    hist : Tensor
        Of as many dimensions as D; a box includes its lower edge, the last one both.
    bin_edges : tuple of Tensor
        The edges along each dimension.

    Raises
    ------
    RuntimeError
        `bins` or `range` does not fit D.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    >>> torch.histogramdd(points, bins=[3, 3]).hist
    tensor([[0., 1., 0.],
            [1., 0., 0.],
            [1., 0., 1.]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, got {input.dim()}"
        )
    d = input.shape[-1]
    points = input.reshape(-1, d)
    given = [bins] * d if isinstance(bins, int) else list(bins)
    if len(given) != d:
        raise RuntimeError(f"torch.histogramdd: expected {d} bins, got {len(given)}")
    if range is not None and len(range) != 2 * d:
        raise RuntimeError(f"torch.histogramdd: range should have {2 * d} elements")
    edges, inside, places = [], points.new_ones(len(points), dtype=pt.bool), []
    for i, b in enumerate(given):
        column = points[:, i].contiguous()
        if isinstance(b, pt.Tensor):
            edge = b.to(input.dtype)
        else:
            low, high = (0.0, 1.0) if not len(points) else column.aminmax()
            if range is not None:
                low, high = range[2 * i : 2 * i + 2]
            low, high = float(low), float(high)
            if low == high:
                low, high = low - 0.5, high + 0.5
            edge = pt.linspace(low, high, b + 1, dtype=input.dtype, device=input.device)
        edges.append(edge)
        last = len(edge) - 2
        places.append((pt.searchsorted(edge, column, right=True) - 1).clamp(0, last))
        inside &= (column >= edge[0]) & (column <= edge[-1])
    shape = [len(edge) - 1 for edge in edges]
    flat = places[0]
    for place, n in zip(places[1:], shape[1:], strict=True):
        flat = flat * n + place
    counts = pt.ones_like(points[:, 0]) if weight is None else weight.reshape(-1).to(input.dtype)
    hist = points.new_zeros(int(pt.tensor(shape).prod()))
    hist = hist.index_add(0, flat[inside], counts[inside]).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for i, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1 if j == i else 1 for j, _ in enumerate(edges)])
    return _Histogram(hist, tuple(edges))
