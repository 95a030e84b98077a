"""Variances, standard deviations, covariances and correlations: PyTorch's answers, or NumPy's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.profiler import profile


@pytest.mark.parametrize("correction", [-5, -1, -0.5, 0, 1])
@pytest.mark.parametrize("root", [False, True])
def test_spread_of_nothing_is_nan_whatever_the_correction(correction: float, root: bool) -> None:
    f = torch.std if root else torch.var
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(torch.zeros(0), correction=correction).isnan()
        assert f(torch.zeros(2, 0, dtype=torch.float64), 1, correction=correction).isnan().all()
        assert f(torch.zeros(2, 0), 0, correction=correction).shape == (0,)
    assert torch.var(torch.tensor([1.0, 3.0]), correction=-2).item() == 0.5


def test_correlation_of_large_integers_does_not_wrap() -> None:
    x = torch.tensor([[1, 2**63 - 1, 9], [50, 2, 5]])
    want = np.corrcoef(x.double().numpy())[0, 1]
    strided = torch.zeros(2, 6, dtype=torch.int64)[:, ::2].copy_(x)
    for t in (x, strided):
        assert torch.corrcoef(t)[0, 1].item() == pytest.approx(want, rel=1e-5)


def test_cov_of_one_number_leaves_it_alone() -> None:
    # PyTorch subtracts the mean in its argument.
    x = torch.tensor(3.0)
    assert torch.cov(x, fweights=torch.tensor([2])).item() == 0
    assert x.item() == 3


inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_spread_of_large_numbers_does_not_overflow(dtype: torch.dtype) -> None:
    x = torch.tensor([[1e30, -1e30, 2e30], [1.0, 2.0, 4.0]], dtype=dtype)
    want = np.std(x.double().numpy(), axis=1, ddof=1)
    got = torch.std(x, 1)
    torch.testing.assert_close(got.double(), torch.tensor(want), rtol=1e-2, atol=0)
    assert torch.isinf(torch.var(x, 1)[0])  # the square of it is out of range


def test_spread_keeps_nan_and_inf() -> None:
    assert torch.std(torch.tensor([1.0, inf])).isnan()
    assert torch.var(torch.tensor([1.0, nan, 2.0])).isnan()


GAPS = [[1.0, nan, 2.0, nan], [nan] * 4, [-0.5, inf, 3.0, 1.0], [inf, -inf, nan, 1.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_mean_of_what_is_not_nan(dtype: torch.dtype) -> None:
    x = torch.tensor(GAPS, dtype=dtype)
    y = x.nanmean(1)
    assert y.dtype is dtype
    np.testing.assert_array_equal(y.float().numpy(), [1.5, nan, inf, nan])
    np.testing.assert_array_equal(x[:3].nanmean(0).float().numpy(), [0.25, inf, 2.5, 1])
    assert x[:2].nanmean().item() == 1.5
    assert x.nanmean((0, 1), keepdim=True).shape == (1, 1)
    assert torch.tensor(3.0, dtype=dtype).nanmean().item() == 3
    assert torch.tensor(nan, dtype=dtype).nanmean().isnan()


def test_mean_of_what_is_not_nan_of_nothing_is_nan() -> None:
    assert torch.zeros(0).nanmean().isnan()
    assert torch.zeros(3, 0).nanmean(1).isnan().all()
    assert torch.zeros(3, 0).nanmean(0).shape == (0,)
    x = torch.zeros(2, 0, requires_grad=True)
    x.nanmean(1).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == (2, 0)


@pytest.mark.parametrize("shape", [(3, 200_000), (200_000, 3), (2000, 300), (300, 2, 1000)])
@pytest.mark.parametrize("dim", [0, 1, (0, 1), None])
def test_mean_of_what_is_not_nan_of_many(shape: tuple[int, ...], dim: object) -> None:
    rng = np.random.default_rng(0)
    wide = rng.standard_normal(shape) + 5
    wide[rng.random(shape) < 0.2] = nan
    x = wide.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy tells of results without a number
        want = np.nanmean(x.astype(np.float64), axis=dim)
    np.testing.assert_allclose(torch.from_numpy(x).nanmean(dim).numpy(), want, rtol=1e-6)
    turned = torch.from_numpy(np.ascontiguousarray(x.T)).permute(*range(len(shape))[::-1])
    np.testing.assert_allclose(turned.nanmean(dim).numpy(), want, rtol=1e-6)


def test_mean_of_what_is_not_nan_is_summed_in_the_type_asked_for() -> None:
    x = torch.full((100_000,), 2.0, dtype=torch.float16)  # a float16 ends at 65,504
    x[::2] = nan
    assert x.nanmean().item() == 2
    y = torch.tensor([1.0, nan, 2.0**-30]).nanmean(dtype=torch.float64)
    assert y.item() == (1 + 2.0**-30) / 2
    assert torch.tensor([3.0, nan], dtype=torch.float64).nanmean(dtype=torch.float16).item() == 3
    with pytest.raises(NotImplementedError, match='"nansum" not implemented'):
        x.nanmean(dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="floating point or complex dtype but got Int"):
        torch.tensor([1], dtype=torch.int32).nanmean()


def test_gradient_of_a_mean_is_shared_by_what_is_not_nan() -> None:
    x = torch.tensor(GAPS[:3], dtype=torch.float64, requires_grad=True)
    x.nanmean(1).backward(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64))
    want = [[0.5, 0, 0.5, 0], [0] * 4, [1] * 4]
    assert x.grad is not None
    assert x.grad.tolist() == want
    tangents = torch.tensor([[1.0, 9, 3, 9], [9] * 4, [1, 2, 3, 6]], dtype=torch.float64)
    _, d = torch.func.jvp(lambda x: x.nanmean(1), (x.detach(),), (tangents,))
    assert d[0].item() == 2
    assert d[2].item() == 3
    half = torch.tensor([[1.0, nan, 2.0]], dtype=torch.float16, requires_grad=True)
    half.nanmean().backward()
    assert half.grad is not None
    assert half.grad.dtype is torch.float16
    assert half.grad.tolist() == [[0.5, 0, 0.5]]


def test_mean_of_what_is_not_nan_under_vmap() -> None:
    x = torch.tensor(GAPS)
    both = torch.func.vmap(lambda x: x.nanmean())(x)
    np.testing.assert_array_equal(both.numpy(), x.nanmean(1).numpy())
    g = torch.func.vmap(torch.func.grad(lambda x: x.nanmean()))(x[:1])
    assert g.tolist() == [[0.5, 0, 0.5, 0]]


def test_mean_of_what_is_not_nan_is_one_operation_and_five_for_those_who_call_by_name() -> None:
    x = torch.tensor(GAPS)
    with profile() as p:
        x.nanmean(1)
    assert [e.count for e in p.key_averages()] == [1]
    graph = make_fx(lambda x: x.nanmean(1))(x)
    names = [n.name for n in graph.graph.nodes if n.op == "call_function"]
    assert names == ["isnan", "logical_not", "sum_1", "nansum", "div"]
    np.testing.assert_array_equal(graph(x[:, 1:]).numpy(), x[:, 1:].nanmean(1).numpy())


# PyTorch 2.13, of arange(26.): the product of 0.8 and 25 is 20 in float32, more in float64.
RANKS = {
    "lower": [2.0, 7.0, 17.0, 20.0, 22.0],
    "higher": [3.0, 8.0, 18.0, 20.0, 23.0],
    "midpoint": [2.5, 7.5, 17.5, 20.0, 22.5],
    "nearest": [2.0, 8.0, 18.0, 20.0, 22.0],
}


@pytest.mark.parametrize("mode", RANKS)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_ranks_of_quantiles_are_computed_in_the_type_of_the_elements(name, mode):
    q = torch.tensor([0.1, 0.3, 0.7, 0.8, 0.9])
    y = getattr(torch, name)(torch.arange(26.0), q, interpolation=mode)
    assert y.tolist() == RANKS[mode]
