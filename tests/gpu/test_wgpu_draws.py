"""Numbers that are drawn until one is accepted, on the GPU itself: they fit SciPy's laws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

N = 20_000
FLOATS = ["float32", "float64"]


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    wgpu.set_fallback_error(True)
    torch.manual_seed(5)
    yield
    wgpu.set_fallback_error(False)


def whole_numbers_fit(x: np.ndarray, law) -> None:
    """Compare counts of some 30 ranges with what a distribution of whole numbers gives them."""
    assert (x == np.floor(x)).all()
    edges = np.unique(law.ppf(np.linspace(0.001, 0.999, 30)))
    shares = np.diff(np.r_[0, law.cdf(edges), 1])
    found = np.bincount(np.searchsorted(edges, x), minlength=len(shares))
    kept = shares * len(x) > 5
    want = shares[kept] * len(x)
    p = stats.chi2.sf(((found[kept] - want) ** 2 / want).sum(), max(kept.sum() - 1, 1))
    assert p > 1e-4, p
    assert found[~kept].sum() < 30


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rate", [0.1, 3.0, 9.9, 10.1, 60.0, 3000.0, 2e5])
def test_numbers_of_events_are_poissons(rate: float, dtype: str) -> None:
    x = torch.poisson(torch.full((N,), rate, dtype=getattr(torch, dtype), device="wgpu"))
    whole_numbers_fit(
        x.cpu().numpy().astype(np.float64), stats.poisson(float(np.dtype(dtype).type(rate)))
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("count", "p"),
    [(1, 0.3), (9, 0.5), (40, 0.05), (40, 0.9), (100, 0.5), (5000, 0.01), (1e5, 0.7)],
)
def test_numbers_of_successes_are_binomial(count: float, p: float, dtype: str) -> None:
    both = [torch.full((N,), v, dtype=getattr(torch, dtype), device="wgpu") for v in (count, p)]
    x = torch.binomial(*both).cpu().numpy().astype(np.float64)
    assert x.min() >= 0 and x.max() <= count
    whole_numbers_fit(x, stats.binom(int(count), float(np.dtype(dtype).type(p))))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 3.0, 70.0, 1e6])
def test_gamma_numbers_fit_their_shape(shape: float, dtype: str) -> None:
    x = torch._standard_gamma(torch.full((N,), shape, dtype=getattr(torch, dtype), device="wgpu"))
    x = x.cpu().numpy().astype(np.float64)
    # The least number stands for all that are below it.
    tiny = np.finfo(dtype).tiny
    assert x.min() >= tiny
    law = stats.gamma(shape)
    low, above = law.cdf(tiny), x[x > tiny]
    assert abs(1 - above.size / N - low) < 0.02
    assert stats.kstest((law.cdf(above) - low) / (1 - low), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("weights", [[1.0, 2.0, 3.0], [0.01, 0.01], [50.0, 0.5]])
def test_rows_of_dirichlet_numbers_fit_their_weights(weights: list[float]) -> None:
    w = torch.tensor(weights).to("wgpu")
    x = torch._sample_dirichlet(w.expand(N, len(weights)).contiguous()).cpu().numpy()
    np.testing.assert_allclose(x.sum(1), 1, rtol=1e-5)
    for i, a in enumerate(weights):
        law = stats.beta(a, sum(weights) - a)
        # Between the ends, where all but zero and all but one lie.
        inside = (x[:, i] > 1e-30) & (x[:, i] < 1 - 1e-6)
        share = law.cdf(1 - 1e-6) - law.cdf(1e-30)
        assert abs(inside.mean() - share) < 0.02
        low = law.cdf(1e-30)
        p = stats.kstest((law.cdf(x[inside, i].astype(np.float64)) - low) / share, "uniform").pvalue
        assert p > 1e-4


def test_parameters_at_the_ends_and_beyond() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([0.0, inf, nan]).to("wgpu")
    np.testing.assert_array_equal(torch.poisson(x).cpu().numpy(), [0, inf, nan])
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.poisson(torch.tensor([-1.0, 2.0], device="wgpu"))
    count = torch.tensor([0.0, -2.0, 5.0, 5.0, nan, inf, 5.0]).to("wgpu")
    p = torch.tensor([0.5, 0.5, 0.0, 1.0, 0.5, 0.5, nan]).to("wgpu")
    np.testing.assert_array_equal(
        torch.binomial(count, p).cpu().numpy(), [0, 0, 0, 5, nan, inf, nan]
    )
    shapes = torch.tensor([0.0, -1.0, nan, inf]).to("wgpu")
    least = np.finfo(np.float32).tiny
    np.testing.assert_array_equal(
        torch._standard_gamma(shapes).cpu().numpy(), [least, nan, nan, inf]
    )


def test_draws_are_the_seeds_and_elements_are_not_alike() -> None:
    rate = torch.full((2, 300), 50.0, dtype=torch.float16, device="wgpu")
    torch.manual_seed(1)
    first, second = torch.poisson(rate), torch.poisson(rate.mT)
    torch.manual_seed(1)
    assert torch.equal(first.cpu(), torch.poisson(rate).cpu())
    assert first.unique().numel() > 20 and not torch.equal(first.cpu(), second.mT.cpu())
    by_rate = torch.poisson(torch.tensor([[1.0], [1e4]], device="wgpu").expand(2, 300))
    assert by_rate[0].max() < 30 and by_rate[1].min() > 9e3


def test_draws_of_kept_dispatches_go_on() -> None:
    shape = torch.full((64,), 3.0, device="wgpu")
    for f in (
        torch._standard_gamma,
        lambda a: torch.binomial(a * 9, a / 4),
        torch._sample_dirichlet,
    ):
        call = torch.graph(f, fullgraph=True)
        torch.manual_seed(3)
        plain = [f(shape).cpu() for _ in range(6)]
        torch.manual_seed(3)
        found = [call(shape).cpu() for _ in range(6)]
        assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))
        assert not torch.equal(found[-1], found[-2]) and call.programs[0].kept > 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_slopes_of_numbers_are_those_of_distribution_functions(dtype: str) -> None:
    wide = dtype == "float64"
    to = getattr(torch, dtype)
    # In every part of the approximations: small numbers, large shapes near and far, and between.
    a = np.array([0.1, 0.5, 2.0, 3.0, 7.5, 7.5, 20.0, 20.0, 300.0, 300.0, 0.5, 50.0], dtype)
    x = np.array([0.02, 0.3, 1.5, 0.7, 4.0, 12.0, 20.5, 12.0, 301.0, 250.0, 5.0, 0.5], dtype)
    step = 1e-5 * a.astype(np.float64)
    low, high = (stats.gamma.cdf(x.astype(np.float64), a + s) for s in (-step, step))
    want = -(high - low) / (2 * step) / stats.gamma.pdf(x.astype(np.float64), a.astype(np.float64))
    got = torch._standard_gamma_grad(*(torch.tensor(v).to("wgpu", to) for v in (a, x)))
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=6e-3 if wide else 1e-2)
    same = torch._standard_gamma_grad(*(torch.tensor(v) for v in (a, x)))
    np.testing.assert_allclose(got.cpu().numpy(), same.numpy(), rtol=1e-9 if wide else 3e-3)
    rows = np.array(
        [[0.1, 0.8, 3.0], [0.95, 4.0, 5.0], [0.5, 20.0, 40.0], [0.3, 20.0, 50.0], [0.4, 2.0, 14.0],
         [0.7, 3.0, 9.0], [0.45, 10.0, 26.0], [0.02, 0.3, 0.9], [0.99, 0.5, 0.8]], dtype,
    ).T  # fmt: skip
    both = [
        torch._dirichlet_grad(*(torch.tensor(v.copy()).to(device) for v in rows)).cpu().numpy()
        for device in ("wgpu", "cpu")
    ]
    np.testing.assert_allclose(*both, rtol=1e-9 if wide else 3e-3)


def test_gradients_flow_through_draws() -> None:
    a = torch.full((2, 3), 2.5, device="wgpu", requires_grad=True)
    y = torch._standard_gamma(a)
    y.sum().backward()
    want = torch._standard_gamma_grad(a.detach().cpu(), y.detach().cpu())
    np.testing.assert_allclose(a.grad.cpu().numpy(), want.numpy(), rtol=3e-3)
    rows = torch.full((2, 3), 1.5, device="wgpu", requires_grad=True)
    torch._sample_dirichlet(rows).sum().backward()
    # The sum of a row is 1, whatever the weights.
    np.testing.assert_allclose(rows.grad.cpu().numpy(), 0, atol=1e-5)
