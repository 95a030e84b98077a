"""Operators that a GPU computes by itself, against NumPy and SciPy; running on the CPU raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def close(got: Any, want: Any, tol: float) -> None:
    found = got.cpu().numpy().astype(np.float64)
    np.testing.assert_allclose(found, want, rtol=tol, atol=tol)


LINE = np.concatenate(
    [rng().uniform(-12, 12, 300), rng(1).uniform(0, 90, 100), [0.0, 1, -1, 2, 8, -8, np.nan]]
)
POSITIVE = np.concatenate([rng(2).uniform(0, 20, 300), 10.0 ** rng(3).uniform(-6, 2, 100)])
SPECIAL: dict[str, tuple[Callable[..., Any], np.ndarray, float]] = {
    "i0e": (special.i0e, LINE, 2e-6),
    "i1e": (special.i1e, LINE, 2e-6),
    "bessel_j0": (special.j0, LINE, 2e-6),
    "bessel_j1": (special.j1, LINE, 2e-6),
    "bessel_y0": (special.y0, POSITIVE, 1e-5),
    "bessel_y1": (special.y1, POSITIVE, 1e-5),
    "scaled_modified_bessel_k0": (special.k0e, POSITIVE, 2e-6),
    "scaled_modified_bessel_k1": (special.k1e, POSITIVE, 2e-6),
    "modified_bessel_k0": (special.k0, POSITIVE, 2e-6),
    "erfcx": (special.erfcx, np.concatenate([POSITIVE, -POSITIVE[:50] / 4]), 3e-6),
    "log_ndtr": (special.log_ndtr, LINE, 3e-6),
    "airy_ai": (lambda x: special.airy(x)[0], LINE, 2e-5),
    "ndtri": (special.ndtri, rng(4).uniform(0, 1, 300), 2e-6),
    "digamma": (special.digamma, POSITIVE, 3e-6),
    "gammaln": (special.gammaln, POSITIVE, 3e-6),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_function_equals_scipy(name: str, dtype: Any) -> None:
    function, x, tol = SPECIAL[name]
    x = x.astype(np.float32).astype(np.float64)
    got = getattr(torch.special, name)(torch.tensor(x, dtype=dtype, device="wgpu"))
    close(got, function(x), tol if dtype == torch.float32 else 1e-11)


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 3e-5), (torch.float64, 1e-10)])
def test_functions_of_two_numbers_equal_scipy(dtype: Any, tol: float) -> None:
    there = lambda x: torch.tensor(x, dtype=dtype, device="wgpu")  # noqa: E731
    a = np.float32(np.concatenate([rng().uniform(0.1, 40, 300), rng(1).uniform(100, 5e4, 100)]))
    x = np.float32(a * rng(2).uniform(0.5, 1.6, 400))
    x[300:] = a[300:] + np.sqrt(a[300:]) * rng(3).uniform(-2, 2, 100)
    wide = a.astype(float), x.astype(float)
    close(torch.igamma(there(a), there(x)), special.gammainc(*wide), tol)
    close(torch.igammac(there(a), there(x)), special.gammaincc(*wide), tol)
    s, q = np.float32(rng(4).uniform(1.1, 12, 200)), np.float32(rng(5).uniform(0.1, 30, 200))
    want = special.zeta(s.astype(float), q.astype(float))
    got = torch.special.zeta(there(s), there(q)).cpu().numpy()
    np.testing.assert_allclose(got, want, rtol=tol)
    for n in (1, 2, 4):
        got = torch.polygamma(n, there(q)).cpu().numpy()
        np.testing.assert_allclose(got, special.polygamma(n, q.astype(float)), rtol=tol)
    t, n = np.float32(rng(6).uniform(-1, 1, 200)), rng(7).integers(0, 25, 200).astype(np.float32)
    for name, scipy in {
        "chebyshev_polynomial_t": special.eval_chebyt,
        "chebyshev_polynomial_u": special.eval_chebyu,
        "laguerre_polynomial_l": special.eval_laguerre,
        "legendre_polynomial_p": special.eval_legendre,
    }.items():
        got = getattr(torch.special, name)(there(t), there(n))
        close(got, [scipy(int(k), float(v)) for k, v in zip(n, t, strict=True)], tol)
    # What overflows in float32 has its sign.
    got = torch.special.hermite_polynomial_he(there([9.0, -9.0, 3.0]), there([200.0, 201.0, 202.0]))
    want = [special.eval_hermitenorm(200 + k, x) for k, x in enumerate([9.0, -9.0, 3.0])]
    assert got.isinf().tolist() == [dtype == torch.float32] * 3
    assert got.sign().tolist() == list(np.sign(want))


@pytest.mark.parametrize("n", [1, 40, 3000])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float32])
def test_distinct_elements_equal_numpys(dtype: Any, n: int) -> None:
    x = rng(n).integers(0, 12, n).astype(dtype)
    there = torch.tensor(x, device="wgpu")
    for got, want in zip(
        there.unique(return_inverse=True, return_counts=True),
        np.unique(x, return_inverse=True, return_counts=True),
        strict=True,
    ):
        np.testing.assert_array_equal(got.cpu().numpy(), want)
    heads = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    values, run, lengths = there.unique_consecutive(return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.cpu().numpy(), x[heads])
    np.testing.assert_array_equal(lengths.cpu().numpy(), np.diff([*heads, n]))
    np.testing.assert_array_equal(
        run.cpu().numpy(), np.searchsorted(heads, np.arange(n), "right") - 1
    )
    some = torch.tensor(np.array([3, 7, 200], dtype), device="wgpu")
    np.testing.assert_array_equal(torch.isin(there, some).cpu().numpy(), np.isin(x, [3, 7, 200]))
    np.testing.assert_array_equal(there.nonzero().cpu().numpy(), np.argwhere(x))
    np.testing.assert_array_equal(there[there > 4].cpu().numpy(), x[x > 4])


def test_distinct_nans_each_count() -> None:
    x = torch.tensor([np.nan, 1.0, np.nan, 1.0], device="wgpu")
    values, counts = x.unique(return_counts=True)
    assert counts.tolist() == [2, 1, 1] and values[0].item() == 1 and values[1:].isnan().all()


def test_places_and_counts_equal_numpys() -> None:
    edges = np.sort(rng().standard_normal((2, 9)), axis=1).astype(np.float32)
    v = rng(1).standard_normal((2, 50)).astype(np.float32)
    for right in (False, True):
        got = torch.searchsorted(
            torch.tensor(edges, device="wgpu"), torch.tensor(v, device="wgpu"), right=right
        )
        side = "right" if right else "left"
        want = [np.searchsorted(e, x, side) for e, x in zip(edges, v, strict=True)]
        np.testing.assert_array_equal(got.cpu().numpy(), want)
    x = rng(2).integers(0, 30, 4000)
    there = torch.tensor(x, device="wgpu")
    np.testing.assert_array_equal(
        there.bincount(minlength=40).cpu().numpy(), np.bincount(x, minlength=40)
    )
    w = rng(3).standard_normal(4000).astype(np.float32)
    close(there.bincount(torch.tensor(w, device="wgpu")), np.bincount(x, w), 1e-4)
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.tensor([1, -1], device="wgpu").bincount()
    t = torch.tensor(w, device="wgpu")
    np.testing.assert_array_equal(t.histc(10, -1, 1).cpu().numpy(), np.histogram(w, 10, (-1, 1))[0])
    np.testing.assert_array_equal(t.histc(10).cpu().numpy(), np.histogram(w, 10)[0])


DRAWS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "exponential": (lambda y: y.exponential_(2.0), stats.expon(scale=0.5)),
    "log_normal": (lambda y: y.log_normal_(0.0, 0.5), stats.lognorm(0.5)),
    "cauchy": (lambda y: y.cauchy_(1.0, 2.0), stats.cauchy(1, 2)),
    "normal": (lambda y: y.normal_(1.0, 2.0), stats.norm(1, 2)),
    "uniform": (lambda y: y.uniform_(1.0, 3.0), stats.uniform(1, 2)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_their_distribution(name: str, dtype: Any) -> None:
    draw, want = DRAWS[name]
    torch.manual_seed(3)
    y = draw(torch.empty(4000, dtype=dtype, device="wgpu")).cpu().numpy()
    # Of draws that are right one in a thousand is refused, and the seed is given.
    assert stats.kstest(y, want.cdf).pvalue > 1e-3
    assert len(np.unique(y)) > 3900


def test_discrete_draws_have_their_distribution() -> None:
    torch.manual_seed(4)
    n = 8000

    def fits(y: Any, chances: Any) -> None:
        seen = np.bincount(y.cpu().numpy().astype(np.int64), minlength=len(chances))
        assert len(seen) == len(chances)
        used = np.array(chances) > 0
        assert not seen[~used].any()
        assert stats.chisquare(seen[used], n * np.array(chances)[used]).pvalue > 1e-3

    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float32, torch.float64):
        fits(torch.randint(0, 7, (n,), dtype=dtype, device="wgpu"), [1 / 7] * 7)
        fits(
            torch.empty(n, dtype=dtype, device="wgpu").geometric_(0.5).clamp(max=3) - 1,
            [0.5, 0.25, 0.25],
        )
    fits(torch.bernoulli(torch.full((n,), 0.3, device="wgpu")), [0.7, 0.3])
    w = torch.tensor([0.0, 1, 3, 0, 4, 0], device="wgpu")
    fits(torch.multinomial(w, n, replacement=True), [0, 1 / 8, 3 / 8, 0, 1 / 2, 0])
    fits(torch.multinomial(w.expand(n, 6), 1)[:, 0], [0, 1 / 8, 3 / 8, 0, 1 / 2, 0])
    assert sorted(torch.multinomial(w, 3).tolist()) == [1, 2, 4]
    order = torch.randperm(n, device="wgpu").cpu().numpy()
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 0.05
    wide = torch.randint(-(2**40), 2**40, (n,), device="wgpu").cpu().numpy() / 2.0**40
    assert stats.kstest(wide, stats.uniform(-1, 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("weights", [[-1.0, 1], [0.0, 0], [np.nan, 1], [np.inf, 1]])
def test_multinomial_refuses_weights(weights: list[float]) -> None:
    with pytest.raises(RuntimeError, match="multinomial"):
        torch.multinomial(torch.tensor(weights, device="wgpu"), 1)


def test_bernoulli_refuses_what_is_no_probability() -> None:
    for p in (-0.5, 1.5, np.nan):
        with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
            torch.bernoulli(torch.tensor([0.5, p], device="wgpu"))


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 2e-4), (torch.float64, 1e-11)])
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (6, 4), (4, 6), (30, 30), pytest.param(170, 150, marks=pytest.mark.slow)]
)
def test_orthogonal_factors_make_the_matrix(m: int, n: int, dtype: Any, tol: float) -> None:
    a = rng(m).standard_normal((2, m, n))
    a[1, :, -1] = a[1, :, 0]  # of deficient rank
    there = torch.tensor(a, dtype=dtype, device="wgpu")
    want = np.linalg.svd(a, compute_uv=False)
    close(torch.linalg.svdvals(there), want, tol * want.max())
    for full in (False, True):
        u, s, v = torch.linalg.svd(there, full_matrices=full)
        close(s, want, tol * want.max())
        k = s.shape[-1]
        close((u[..., :k] * s[:, None]) @ v[:, :k], a, tol * want.max())
        close(u.mT @ u, np.broadcast_to(np.eye(u.shape[-1]), (2, *[u.shape[-1]] * 2)), tol)
        close(v @ v.mT, np.broadcast_to(np.eye(v.shape[-2]), (2, *[v.shape[-2]] * 2)), tol)
    q, r = torch.linalg.qr(there)
    close(q @ r, a, tol * want.max())
    close(q[0].mT @ q[0], np.eye(min(m, n)), tol)
    assert (r.cpu().numpy() == np.triu(r.cpu().numpy())).all()
    p, low, up = torch.linalg.lu(there)
    close(p @ low @ up, a, tol * want.max())


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("n", [1, 2, 9, 40, pytest.param(150, marks=pytest.mark.slow)])
def test_eigenvalues_of_symmetric_matrices_equal_numpys(n: int, dtype: Any, tol: float) -> None:
    a = rng(n).standard_normal((2, n, n))
    a[0] = a[0] + a[0].T
    a[1] = np.eye(n) * 2  # all alike
    w, v = torch.linalg.eigh(torch.tensor(a, dtype=dtype, device="wgpu"))
    want = np.linalg.eigvalsh(a)
    scale = np.abs(want).max()
    close(w, want, tol * scale)
    close((v * w[:, None]) @ v.mT, np.stack([a[0], a[1]]), 20 * tol * scale)
    close(v.mT @ v, np.broadcast_to(np.eye(n), (2, n, n)), 20 * tol)
    up = torch.linalg.eigvalsh(torch.tensor(np.triu(a), dtype=dtype, device="wgpu"), UPLO="U")
    close(up, want, tol * scale)


@pytest.mark.slow
@pytest.mark.parametrize("n", [512])
def test_large_factorisations_run_on_the_gpu(n: int) -> None:
    a = rng().standard_normal((n, n)) / n**0.5
    spd = a @ a.T + np.eye(n)
    t, s = (torch.tensor(v, dtype=torch.float64, device="wgpu") for v in (a, spd))
    low = torch.linalg.cholesky(s)
    close(low @ low.mT, spd, 1e-10)
    close(torch.linalg.solve(t, t), np.eye(n), 1e-8)
    close(torch.linalg.inv(s) @ s, np.eye(n), 1e-9)
    p, lower, upper = torch.linalg.lu(t)
    close(p @ lower @ upper, a, 1e-10)
    q, r = torch.linalg.qr(t)
    close(q @ r, a, 1e-10)
    close(torch.linalg.svdvals(t), np.linalg.svd(a, compute_uv=False), 1e-10)
    close(torch.linalg.eigvalsh(s), np.linalg.eigvalsh(spd), 1e-10)
    assert torch.linalg.slogdet(s).logabsdet.item() == pytest.approx(np.linalg.slogdet(spd)[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_dropout_is_one_kernel(dtype: Any) -> None:
    for n in (1, 2, 5, 1023, 4000):
        x = torch.full((n,), 3.0, dtype=dtype, device="wgpu")
        torch.nn.functional.dropout(x, 0.25)
        before = wgpu.memory_stats()["dispatches"]
        y, mask = torch.native_dropout(x, 0.25, True)
        assert wgpu.memory_stats()["dispatches"] - before == 1
        kept = mask.cpu().numpy()
        np.testing.assert_array_equal(
            y.cpu().numpy(), np.where(kept, 4, 0).astype(y.cpu().numpy().dtype)
        )
    assert stats.binomtest(int(kept.sum()), n, 0.75).pvalue > 1e-3
    nan = torch.full((64,), float("nan"), dtype=dtype, device="wgpu")
    assert torch.nn.functional.dropout(nan, 0.5).isnan().all()


def test_results_of_no_elements_are_no_fallback() -> None:
    x = torch.zeros(0, 0, device="wgpu")
    before = wgpu.fallbacks()
    assert torch.linalg.det(x).item() == 1 and torch.linalg.slogdet(x)[1].item() == 0
    assert torch.linalg.vector_norm(torch.zeros(0, device="wgpu")).item() == 0
    assert wgpu.fallbacks() == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_isin_finds_what_stands_beside_nan(dtype):
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([1.0, nan, inf, -inf, 0, 2], dtype=dtype, device="wgpu")
    for some in ([1.0, nan], [nan, nan, 1, -inf], [nan], [inf, nan, 2], [nan, -inf]):
        tests = torch.tensor(some, dtype=dtype, device="wgpu")
        want = np.isin(x.cpu().numpy(), np.array(some))
        assert torch.isin(x, tests).tolist() == want.tolist()
        assert torch.isin(x, tests, invert=True).tolist() == (~want).tolist()


def test_gammaincc_of_small_a_keeps_the_digits_of_float32():
    a = torch.tensor([1e-6, 1e-3, 0.05, 0.2, 0.45])[:, None]
    x = torch.tensor([1e-5, 1e-2, 0.3, 0.9, 1.0, 1.3])
    got = torch.special.gammaincc(a.to("wgpu"), x.to("wgpu")).cpu()
    want = special.gammaincc(a.double().numpy(), x.double().numpy())
    np.testing.assert_allclose(got.numpy(), want, rtol=4e-6)
