"""Random numbers: those that PyTorch gives for a seed, and their distributions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pytensorlib as torch

N = 4000

# What PyTorch 2.13 gives on the CPU after `manual_seed(7)`.
PYTORCH: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "rand": (lambda: torch.rand(3), [0.534923, 0.198803, 0.659212]),
    "randn": (lambda: torch.randn(3), [-0.146795, 0.786141, 0.946822]),
    "randint": (lambda: torch.randint(100, (3,)), [15, 92, 21]),
    "randperm": (lambda: torch.randperm(5), [0, 1, 3, 2, 4]),
    "rand_like": (lambda: torch.rand_like(torch.ones(3)), [0.534923, 0.198803, 0.659212]),
    "randn_like": (lambda: torch.randn_like(torch.ones(3)), [-0.146795, 0.786141, 0.946822]),
    "randint_like": (lambda: torch.randint_like(torch.ones(3), 50), [15, 42, 21]),
    "normal": (lambda: torch.normal(2.0, 3.0, (3,)), [1.559615, 4.358424, 4.840465]),
    "bernoulli": (lambda: torch.bernoulli(torch.full((6,), 0.4)), [0, 1, 0, 0, 1, 0]),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 5, replacement=True),
        [1, 1, 2, 2, 2],
    ),
    "poisson": (lambda: torch.poisson(torch.full((4,), 3.0)), [3, 6, 1, 0]),
    "uniform_": (lambda: torch.empty(3).uniform_(-1, 2), [0.604768, -0.40359, 0.977635]),
    "normal_": (lambda: torch.empty(3).normal_(1, 2), [0.70641, 2.572283, 2.893643]),
    "exponential_": (lambda: torch.empty(3).exponential_(1.5), [0.218429, 0.213189, 1.320784]),
    "cauchy_": (lambda: torch.empty(3).cauchy_(), [-0.830556, -0.861203, 2.161892]),
    "geometric_": (lambda: torch.empty(3).geometric_(0.3), [4, 4, 1]),
    "log_normal_": (lambda: torch.empty(3).log_normal_(), [2.026702, 13.095682, 18.058983]),
    "bernoulli_": (lambda: torch.empty(6).bernoulli_(0.4), [1, 1, 0, 0, 0, 0]),
    "random_": (lambda: torch.empty(3).random_(10), [5, 2, 1]),
    "rrelu": (
        lambda: torch.rrelu(-torch.ones(3), 0.1, 0.9, True),
        [-0.323504, -0.318955, -0.789674],
    ),
}


@pytest.mark.parametrize("name", PYTORCH)
def test_numbers_of_a_seed_are_pytorchs(name: str) -> None:
    call, want = PYTORCH[name]
    torch.manual_seed(7)
    np.testing.assert_allclose(call().tolist(), want, atol=2e-6)


CONTINUOUS = {
    "rand": (lambda: torch.rand(N), stats.uniform()),
    "randn": (lambda: torch.randn(N), stats.norm()),
    "normal": (lambda: torch.normal(2.0, 3.0, (N,)), stats.norm(2, 3)),
    "uniform_": (lambda: torch.empty(N).uniform_(-1, 2), stats.uniform(-1, 3)),
    "exponential_": (lambda: torch.empty(N).exponential_(1.5), stats.expon(scale=1 / 1.5)),
    "cauchy_": (lambda: torch.empty(N).cauchy_(1, 2), stats.cauchy(1, 2)),
    "log_normal_": (lambda: torch.empty(N).log_normal_(1, 0.5), stats.lognorm(0.5, scale=np.e)),
    "rrelu": (lambda: -torch.rrelu(-torch.ones(N), 0.1, 0.9, True), stats.uniform(0.1, 0.8)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_follow_the_distribution(name: str) -> None:
    call, distribution = CONTINUOUS[name]
    torch.manual_seed(0)
    assert stats.kstest(call().numpy(), distribution.cdf).pvalue > 1e-3


DISCRETE = {
    "randint": (lambda: torch.randint(2, 9, (N,)), stats.randint(2, 9)),
    "bernoulli": (lambda: torch.bernoulli(torch.full((N,), 0.4)), stats.bernoulli(0.4)),
    "bernoulli_": (lambda: torch.empty(N).bernoulli_(0.4), stats.bernoulli(0.4)),
    "geometric_": (lambda: torch.empty(N).geometric_(0.3), stats.geom(0.3)),
    "poisson": (lambda: torch.poisson(torch.full((N,), 3.0)), stats.poisson(3)),
    "random_": (lambda: torch.empty(N).random_(7), stats.randint(0, 7)),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor([1.0, 2, 7]), N, replacement=True),
        stats.rv_discrete(values=([0, 1, 2], [0.1, 0.2, 0.7])),
    ),
    # Which elements stay; what stays is scaled.
    "dropout": (lambda: torch.dropout(torch.ones(N), 0.3, True) > 0, stats.bernoulli(0.7)),
    "native_dropout": (
        lambda: torch.native_dropout(torch.ones(N), 0.3, True)[1],
        stats.bernoulli(0.7),
    ),
    "alpha_dropout": (
        lambda: torch.alpha_dropout(torch.ones(N), 0.3, True) > 0,
        stats.bernoulli(0.7),
    ),
    "feature_dropout": (
        lambda: torch.feature_dropout(torch.ones(1, N, 2), 0.3, True)[0, :, 1] > 0,
        stats.bernoulli(0.7),
    ),
    "feature_alpha_dropout": (
        lambda: torch.feature_alpha_dropout(torch.ones(1, N, 2), 0.3, True)[0, :, 1] > 0,
        stats.bernoulli(0.7),
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_follow_the_distribution(name: str) -> None:
    call, distribution = DISCRETE[name]
    torch.manual_seed(0)
    values, counts = np.unique(np.asarray(call().tolist(), float), return_counts=True)
    want = N * distribution.pmf(values)
    often = want > 5
    rest = max(N - counts[often].sum(), 0), max(N - want[often].sum(), 1e-9)
    statistic = ((counts - want)[often] ** 2 / want[often]).sum()
    statistic += (rest[0] - rest[1]) ** 2 / max(rest[1], 1)
    assert stats.chi2.sf(statistic, max(often.sum() - 1, 1)) > 1e-3
