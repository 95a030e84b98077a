"""Histograms, slopes, powers and exponentials: PyTorch's answers, NumPy's, and what is exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

inf, nan = math.inf, math.nan
A = torch.tensor([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.1, 0.7), (-3.0, 5.0)])
def test_values_on_edges_are_counted_above_them(dtype: Any, low: float, high: float) -> None:
    for bins in (7, 10, 49, 100):
        x = torch.linspace(low, high, bins + 1, dtype=dtype)
        want = [1.0] * (bins - 1) + [2.0]
        assert torch.histogram(x, bins).hist.tolist() == want
        assert torch.histogram(x, bins, range=(low, high)).hist.tolist() == want
        pairs = torch.stack([x, x], 1)
        assert torch.histogramdd(pairs, bins).hist.diagonal().tolist() == want


@pytest.mark.parametrize("edges", [np.linspace(-2, 2, 41), np.array([-1.0, -0.9, 0.3, 2.0]) ** 3])
def test_many_values_are_counted_and_weighed_as_numpys(edges: Any) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(100_003), rng.random(100_003)
    before = torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        given = (torch.tensor(x), torch.tensor(edges))
        counts = torch.histogram(*given).hist.numpy()
        sums = torch.histogram(*given, weight=torch.tensor(w)).hist.numpy()
        torch.set_num_threads(before)
        np.testing.assert_array_equal(counts, np.histogram(x, edges)[0])
        np.testing.assert_allclose(sums, np.histogram(x, edges, weights=w)[0], rtol=1e-12)


def test_histc_counts_in_the_type_of_its_input() -> None:
    # In float64, 0.7 in float32 times 10 is less than 7; as PyTorch has it, it is 7.
    x = torch.arange(11, dtype=torch.float32) / 10
    assert torch.histc(x, 10, 0, 1).tolist() == [1] * 9 + [2]
    assert torch.histc(torch.tensor([0.1]), 2, 0, 0.1).tolist() == [0, 1]
    assert torch.histc(torch.tensor([0.1]), 2, 0.1, 0.3).tolist() == [1, 0]


def test_range_of_a_histogram_that_is_a_point_is_its_middle() -> None:
    x = torch.tensor([0.0, 1, 2, 2.5])
    assert [t.tolist() for t in torch.histogram(x, 2, range=(1.0, 1.0))] == [[0, 1], [0.5, 1, 1.5]]
    assert [t.tolist() for t in torch.histogram(x, 2, range=(0.0, 0.0))] == [
        [0, 1],
        [-0.5, 0, 0.5],
    ]
    with pytest.raises(RuntimeError, match="min should not exceed max"):
        torch.histogram(x, 2, range=(3.0, 1.0))


def test_histogramdd_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 8, 3)), rng.uniform(size=(5, 8))
    flat, points, weight = x.reshape(-1, 3), torch.from_numpy(x), torch.from_numpy(w)
    edges = [np.array(e) for e in ([-2.0, -1, 0.5, 2], [-1.0, 0, 1], [-3.0, 3])]
    cases = [([3, 4, 2], None), ([3, 4, 2], [(-1.0, 1.0), (0.0, 2.0), (-2.0, 0.5)]), (edges, None)]
    for bins, span in cases:
        ours = bins if span or bins is not edges else [torch.from_numpy(e) for e in edges]
        given = None if span is None else [v for pair in span for v in pair]
        for density in (False, True):
            for ww, tw in ((None, None), (w.reshape(-1), weight)):
                hist, found = np.histogramdd(flat, bins, span, density, ww)
                got = torch.histogramdd(points, ours, given, weight=tw, density=density)
                np.testing.assert_allclose(got.hist.numpy(), hist, rtol=1e-12)
                for e, f in zip(got.bin_edges, found, strict=True):
                    np.testing.assert_allclose(e.numpy(), f, rtol=1e-12, atol=1e-15)


def test_histogramdd_of_nothing_and_of_points_has_edges() -> None:
    got = torch.histogramdd(torch.zeros(0, 2), [2, 1], density=True)
    assert [e.tolist() for e in got.bin_edges] == [[0, 0.5, 1], [0, 1]]
    assert got.hist.isnan().all()
    got = torch.histogramdd(torch.ones(4, 2), 2)
    assert [e.tolist() for e in got.bin_edges] == [[0.5, 1, 1.5]] * 2
    assert got.hist.tolist() == [[0, 0], [0, 4]]
    assert torch.histogramdd(torch.ones(4, 0), []).hist.tolist() == 0
    assert torch.histogramdd(torch.tensor([[nan, 0.0], [inf, 0.0]]), 1, [0.0, 1, 0, 1]).hist == 0


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((torch.ones(3), [2]), RuntimeError, "at least 2 dimensions"),
        ((torch.ones(3, 2), [2]), RuntimeError, "size of bins must be equal"),
        ((torch.ones(3, 2), [2, 0]), RuntimeError, "bins must be > 0, but got 0 for dimension 1"),
        ((torch.ones(3, 2), [2, 2], [0.0, 1.0]), RuntimeError, "should have 4 elements, but got 2"),
        ((torch.ones(3, 2) * nan, [2, 2]), RuntimeError, "not finite"),
        ((torch.ones(3, 2), [torch.ones(2)] * 2, None, torch.ones(2)), RuntimeError, "weight"),
        ((torch.ones(3, 2), [torch.ones(2).double()] * 2), RuntimeError, "input's dtype"),
        ((torch.ones(3, 2), [torch.ones(1)] * 2), RuntimeError, "at least 2 elements"),
        ((torch.ones(3, 2).half(), [2, 2]), NotImplementedError, "not implemented for 'Half'"),
        ((torch.ones(3, 2), "a"), TypeError, "invalid combination"),
    ],
)
def test_histogramdd_refuses_what_does_not_fit(args: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        torch.histogramdd(*args)


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_is_that_of_numpy(order: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 5))
    at = [np.cumsum(rng.uniform(0.5, 2, n)) for n in x.shape]
    points = [torch.from_numpy(c) for c in at]
    want = np.gradient(x, *at, edge_order=order)
    got = torch.gradient(torch.from_numpy(x), spacing=points, edge_order=order)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-10, atol=1e-12)
    whole = rng.integers(-9, 9, 6)
    (got,) = torch.gradient(torch.from_numpy(whole), spacing=2, edge_order=order)
    assert got.dtype == torch.float32
    assert got.tolist() == np.gradient(whole, 2, edge_order=order).tolist()
    assert torch.gradient(torch.zeros(4).half())[0].dtype == torch.float16
    (g,) = torch.gradient(torch.tensor([1.0, 2.0]), spacing=2j)
    assert g.tolist() == [-0.5j, -0.5j]


@pytest.mark.parametrize(
    ("x", "options", "error", "text"),
    [
        (torch.ones(1), {}, RuntimeError, r"at least edge_order\+1"),
        (torch.ones(2), {"edge_order": 2}, RuntimeError, r"at least edge_order\+1"),
        (torch.ones(4), {"edge_order": 3}, RuntimeError, "only supports edge_order=1"),
        (torch.ones(4, 4), {"dim": (0, -2)}, RuntimeError, "multiple times"),
        (torch.ones(4, 4), {"dim": 2}, IndexError, "out of range"),
        (torch.ones(4, 4), {"spacing": [1.0]}, RuntimeError, r"list of length .* = 2'"),
        (torch.ones(4), {"spacing": [torch.ones(3)]}, RuntimeError, "for each of the 4"),
        (torch.ones(4), {"spacing": [torch.ones(1, 4)]}, RuntimeError, "one dimension"),
        (torch.ones(4).to(torch.uint8), {}, RuntimeError, "uint8"),
        (torch.ones(4).bool(), {}, RuntimeError, "Subtraction"),
    ],
)
def test_gradient_refuses_what_does_not_fit(x: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        torch.gradient(x, **options)


def test_gradient_of_no_dimension_is_nothing() -> None:
    assert torch.gradient(torch.tensor(1.0)) == ()
    assert torch.gradient(torch.ones(2, 2), dim=()) == ()


def test_matrix_exponentials_of_all_sizes_and_norms_are_those_of_scipy() -> None:
    from scipy.linalg import expm

    rng = np.random.default_rng(2)
    batch = rng.normal(size=(4, 3, 3)) * np.array([1e-9, 0.1, 3, 40])[:, None, None]
    want = np.stack([expm(a) for a in batch])
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 3e-6)):
        given = torch.from_numpy(batch).to(dtype)
        got = torch.matrix_exp(given[:3]).double().numpy()
        exact = np.stack([expm(a) for a in given[:3].double().numpy()])
        np.testing.assert_allclose(got, exact, rtol=close, atol=close)
    error = np.abs(torch.matrix_exp(torch.from_numpy(batch)).numpy() - want).max((1, 2))
    assert (error < 1e-11 * np.abs(want).max((1, 2))).all()
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    for angle in (1e-3, 1.0, 100.0):
        c, s = math.cos(angle), math.sin(angle)
        got = torch.matrix_exp(turn * angle).numpy()
        np.testing.assert_allclose(got, [[c, -s], [s, c]], atol=1e-12)
    phase = torch.matrix_exp(torch.tensor([[1j, 0], [0, -2j]], dtype=torch.complex128))
    np.testing.assert_allclose(phase.numpy(), np.diag(np.exp([1j, -2j])), atol=1e-14)


def test_matrix_exponential_beyond_the_type_is_infinite_and_of_nan_nan() -> None:
    assert torch.matrix_exp(torch.tensor([[-inf]])).item() == 0
    assert torch.matrix_exp(torch.tensor([[89.0, 0], [0, -80]])).tolist() == [
        [inf, 0],
        [0, pytest.approx(math.exp(-80), rel=1e-6)],
    ]
    for bad in (nan, inf):
        assert torch.matrix_exp(torch.tensor([[bad, 0.0], [0.0, 1.0]])).isnan().all()
    for shape in ((0, 0), (0, 2, 2), (3, 0, 0)):
        assert torch.matrix_exp(torch.zeros(shape)).shape == shape
    for dtype in (torch.float16, torch.bfloat16):
        got = torch.linalg.matrix_exp(torch.zeros(2, 2, dtype=dtype))
        assert got.tolist() == [[1, 0], [0, 1]]
        assert got.dtype == dtype
    with pytest.raises(RuntimeError, match="at least 2 dim"):
        torch.matrix_exp(torch.ones(3))
    with pytest.raises(RuntimeError, match="batches of square"):
        torch.matrix_exp(torch.ones(3, 4))
    with pytest.raises(RuntimeError, match="floating point or complex.*Long"):
        torch.matrix_exp(torch.ones(3, 3, dtype=torch.int64))


def test_complex_matrix_exponential_has_a_gradient() -> None:
    x = torch.tensor([[0.3 + 0.1j, 1.0], [-0.5j, 0.2]], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(torch.matrix_exp, (x,))


def test_powers_of_small_integers_are_in_64_bits() -> None:
    x = torch.tensor([100, 3], dtype=torch.uint8)
    assert torch.linalg.vander(x, N=4)[0].tolist() == [1, 100, 10_000, 1_000_000]
    assert torch.vander(x.bool(), 3).dtype == torch.int64
    assert torch.vander(torch.zeros(0)).shape == (0, 0)
    assert torch.vander(torch.ones(3), 0).shape == (3, 0)
    assert torch.vander(torch.zeros(2), 1).tolist() == [[1], [1]]
    assert torch.linalg.vander(torch.zeros(2, 0), N=3).shape == (2, 0, 3)
    assert torch.linalg.vander(torch.tensor(2.0), N=3).tolist() == [[1, 2, 4]]
    for bad in (1, 0):
        with pytest.raises(RuntimeError, match="greater than 1"):
            torch.linalg.vander(torch.ones(3), N=bad)
    for x in (torch.ones(2).bool(), torch.ones(2).half()):
        with pytest.raises(RuntimeError, match="linalg.vander supports"):
            torch.linalg.vander(x)
    with pytest.raises(RuntimeError, match="one-dimensional"):
        torch.vander(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.vander(torch.ones(2), -1)


def test_tensorsolve_moves_dimensions_and_tells_what_does_not_fit() -> None:
    a, b = torch.randn(2, 6, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    x = torch.linalg.tensorsolve(a, b, dims=(1,))
    np.testing.assert_allclose(
        torch.tensordot(a.movedim(1, -1), x, x.dim()).numpy(), b.numpy(), atol=1e-9
    )
    with pytest.raises(RuntimeError, match="to satisfy the requirement"):
        torch.linalg.tensorsolve(a, b)
    with pytest.raises(RuntimeError, match="repeated dim"):
        torch.linalg.tensorsolve(a, b, dims=(0, 0))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.tensorsolve(torch.zeros(2, 3, 6), torch.ones(2, 3))
    assert torch.linalg.tensorsolve(torch.tensor(2.0), torch.tensor(4.0)).item() == 2
    assert torch.linalg.tensorsolve(torch.zeros(0, 0), torch.zeros(0)).shape == (0,)


def test_norm_except_dim_counts_dimensions_as_pytorch_does() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.norm_except_dim(x, 2, -3).shape == (2, 1, 1)
    assert torch.norm_except_dim(x, 2, -1).item() == pytest.approx(4324**0.5)  # of all
    assert torch.norm_except_dim(torch.tensor([-1.0, 2.0])).tolist() == [1, 2]
    assert torch.norm_except_dim(x[:, :0]).tolist() == [[[0]], [[0]]]
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        torch.norm_except_dim(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="floating point or complex"):
        torch.norm_except_dim(x.long())


def test_functional_has_the_functions_of_the_top_level() -> None:
    for name in torch.functional.__all__:
        assert getattr(torch.functional, name) is getattr(torch, name)
    assert torch.functional.norm(torch.tensor([3.0, 4.0])).item() == 5


@pytest.mark.parametrize("name", ["cumsum_", "cumprod_"])
def test_scan_in_place_keeps_the_type(name: str) -> None:
    for dtype in (torch.float16, torch.float64, torch.int64):
        with pytest.raises(RuntimeError, match="Bad in-place call: input tensor dtype float"):
            getattr(torch.ones(3), name)(0, dtype=dtype)
    x = torch.ones(3, dtype=torch.int32)
    assert getattr(x, name)(0, dtype=torch.int32) is x
    assert getattr(x, name)(0).dtype == torch.int32


def test_threshold_is_compared_as_wide_as_it_is_computed() -> None:
    x = torch.ones(2).half()
    assert torch.nn.functional.threshold(x, 1e30, 0.5).tolist() == [0.5, 0.5]
    for threshold, value in ((0.0, 1e30), (1e39, 0.0)):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.nn.functional.threshold(x, threshold, value)


def test_one_power_alone_is_not_cut_before_it_is_taken() -> None:
    assert torch.logspace(4.3, 0, 1, dtype=torch.int64).tolist() == [19952]
    assert torch.logspace(4.3, 0, 3, dtype=torch.int64).tolist() == [10_000, 100, 1]
    assert torch.linspace(4.7, 0, 1, dtype=torch.int64).tolist() == [4]


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.int16])
def test_lu_solve_refuses_pivots_of_another_type(dtype: Any) -> None:
    lu, pivots = torch.linalg.lu_factor(A)
    for solve in (
        lambda p: torch.linalg.lu_solve(lu, p, torch.ones(2, 1)),
        lambda p: torch.lu_solve(torch.ones(2, 1), lu, p),
    ):
        with pytest.raises(
            RuntimeError, match="pivots should be a Tensor of scalar type torch.int"
        ):
            solve(pivots.to(dtype))


@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.pinv,
        torch.linalg.cond,
        torch.linalg.matrix_rank,
        torch.cholesky,
        torch.cholesky_inverse,
        lambda x, **k: torch.linalg.tensorinv(x, 1, **k),
        lambda x, **k: torch.linalg.tensorsolve(x, x[0], **k),
    ],
)
def test_results_of_matrices_go_into_out_of_another_floating_type(function: Any) -> None:
    want = function(A)
    out = torch.zeros(want.shape, dtype=torch.float64)
    assert function(A, out=out) is out
    assert out.tolist() == want.double().tolist()
    if want.is_floating_point():
        with pytest.raises(RuntimeError, match="can't be cast|safely castable"):
            function(A, out=torch.zeros(want.shape, dtype=torch.int64))


def test_frobenius_norm_wants_its_dimensions() -> None:
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "dim"'):
        torch.frobenius_norm(A)
