"""Slopes of sampled curves, Vandermonde's matrix, histograms: beside NumPy's in float64."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch

X = np.random.default_rng(0).normal(size=(4, 5))
UNEVEN = [np.array([0.0, 1, 3, 4]), np.array([0.0, 1, 1.5, 4, 9])]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("dims", "spacing"),
    [((0, 1), (1, 1)), ((1,), (0.5,)), ((0, 1), (2.0, 3.0)), ((0, 1), UNEVEN), ((0,), UNEVEN[:1])],
)
def test_gradient_is_numpys(dims, spacing, order):
    want = np.gradient(X, *spacing, axis=dims, edge_order=order)
    given = [torch.tensor(s) if isinstance(s, np.ndarray) else s for s in spacing]
    got = torch.gradient(torch.tensor(X), spacing=given, dim=dims, edge_order=order)
    want = want if isinstance(want, (list, tuple)) else [want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-12, atol=1e-12)


def test_gradient_has_a_gradient_and_counts_integers_as_floats():
    x = torch.tensor(X[0], requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.gradient(t, edge_order=2), x)
    (slope,) = torch.gradient(torch.arange(5) ** 2)
    assert slope.tolist() == [1, 2, 4, 6, 7]
    assert torch.gradient(torch.tensor([1.0, 3.0]))[0].tolist() == [2, 2]


def test_gradient_refuses_what_does_not_fit():
    with pytest.raises(RuntimeError, match="at least edge_order"):
        torch.gradient(torch.ones(1))
    with pytest.raises(RuntimeError, match="multiple times"):
        torch.gradient(torch.ones(2, 2), dim=(0, -2))
    with pytest.raises(RuntimeError, match="edge_order=1 and edge_order=2"):
        torch.gradient(torch.ones(4), edge_order=3)
    with pytest.raises(RuntimeError, match="a coordinate for each"):
        torch.gradient(torch.ones(4), spacing=[torch.ones(3)])


@pytest.mark.parametrize("n", [None, 0, 1, 4])
@pytest.mark.parametrize("increasing", [False, True])
def test_vander_is_numpys(n, increasing):
    x = np.array([1.0, -2, 3])
    got = torch.vander(torch.tensor(x), n, increasing)
    np.testing.assert_array_equal(got.numpy(), np.vander(x, n, increasing))
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.vander(torch.tensor(x), -1)
    with pytest.raises(RuntimeError, match="one-dimensional"):
        torch.vander(torch.ones(2, 2))


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("bins", [5, [3, 4], [np.array([-1.0, 0, 1]), np.array([-2.0, 0, 0.5, 2])]])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogramdd_is_numpys(bins, density, weighted):
    rng = np.random.default_rng(1)
    points, weight = rng.normal(size=(50, 2)), rng.random(50)
    points[0] = 1, 2  # on last edges
    w = weight if weighted else None
    want, edges = np.histogramdd(points, bins, density=density, weights=w)
    given = (
        bins if isinstance(bins, int) or isinstance(bins[0], int) else list(map(torch.tensor, bins))
    )
    got = torch.histogramdd(
        torch.tensor(points), given, density=density, weight=None if w is None else torch.tensor(w)
    )
    np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)
    for g, e in zip(got.bin_edges, edges, strict=True):
        np.testing.assert_allclose(g.numpy(), e, rtol=1e-12, atol=1e-15)


def test_histogramdd_with_a_range_drops_what_is_outside():
    points = torch.tensor([[0.5, 0.5], [2.0, 0.5]])
    found = torch.histogramdd(points, [1, 1], range=[0.0, 1.0, 0.0, 1.0])
    assert found.hist.tolist() == [[1.0]]
    with pytest.raises(RuntimeError, match="bins"):
        torch.histogramdd(points, [1])


def values(t: torch.Tensor) -> list[float]:
    return t.detach().reshape(-1).tolist()


def test_trapezoid_of_bytes_wraps_only_where_neighbours_are_added() -> None:
    y = torch.tensor([100, 120, 90, 103], dtype=torch.uint8)
    assert torch.trapezoid(y, dx=1).item() == 311.5
    assert values(torch.cumulative_trapezoid(y, dx=3)) == [330, 645, 934.5]
    assert torch.trapezoid(y.to(torch.int8), dx=1).item() == 439.5  # 100 + 103 is -53


def test_trapezoid_of_points_with_more_dimensions_goes_along_the_same_one() -> None:
    x = torch.tensor([[[1.0], [2.0], [4.0]]])
    assert torch.trapezoid(torch.ones(2, 3), x).tolist() == [[3, 3]]
    assert torch.cumulative_trapezoid(torch.ones(2, 3), x).tolist() == [[[1, 1], [3, 3]]]
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.trapezoid(torch.ones(3, 3), torch.ones(3, 3, 1), dim=-2)


def test_cumulative_trapezoid_of_nothing_has_a_graph() -> None:
    assert torch.cumulative_trapezoid(torch.zeros(2, 0, requires_grad=True)).requires_grad


def test_cumulative_trapezoid_of_no_integers_is_floating() -> None:
    assert torch.cumulative_trapezoid(torch.ones(0, 0, dtype=torch.int16), dx=3.0).dtype == (
        torch.float32
    )
