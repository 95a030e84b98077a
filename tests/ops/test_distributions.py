"""Distributions: PyTorch's numbers for the same seed, SciPy's for the rest, and laws."""

import importlib
import inspect
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as ss

import pytensorlib as torch
from pytensorlib import distributions as dist
from pytensorlib.distributions import kl_divergence

NAMES = {n: getattr(dist, n) for n in dist.__all__}


def t(*v: Any) -> torch.Tensor:
    return torch.tensor(v[0] if len(v) == 1 else v, dtype=torch.float64)


def made(text: str) -> Any:
    return eval(text, {**NAMES, "t": t})


def close(got: Any, want: Any, tol: float = 1e-8) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tol, atol=tol)


DATA = json.loads((Path(__file__).parents[1] / "data/distributions.json").read_text())
# A sample after `manual_seed(3)`, its log_prob, the entropy, and the number that `rand` then gives.
RECORDED = [tuple(row.values()) for row in DATA["samples"]]
# One pair for each row of PyTorch's table whose divergence is finite here.
DIVERGENCES = DATA["divergences"]


@pytest.mark.parametrize(("text", "sample", "log_prob", "entropy", "after"), RECORDED)
def test_sample_density_and_entropy_are_those_recorded(
    text: str, sample: Any, log_prob: Any, entropy: Any, after: float
) -> None:
    d = made(text)
    tol = 2e-6 if "float" in text else 1e-8
    torch.manual_seed(3)
    got = d.sample()
    assert not got.requires_grad
    close(got.reshape(-1), sample, tol)
    close(torch.rand(1).item(), after)
    close(d.log_prob(got).reshape(-1), log_prob, 30 * tol)
    if entropy is None:
        with pytest.raises(NotImplementedError):
            d.entropy()
    else:
        # PyTorch takes a multinomial's logarithms of factorials in float32, whatever its type.
        close(d.entropy().reshape(-1), entropy, 1e-6 if "Multinomial" in text else tol)


@pytest.mark.parametrize("n", [1, 5, 200])
def test_entropy_of_multinomial_is_that_of_its_sum_to_the_last_digits(n: int) -> None:
    p = [0.2, 0.5, 0.3]
    want = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            counts = (a, b, n - a - b)
            log = math.lgamma(n + 1) + sum(
                k * math.log(q) - math.lgamma(k + 1) for k, q in zip(counts, p, strict=True)
            )
            want -= math.exp(log) * log
    d = dist.Multinomial(n, torch.tensor(p, dtype=torch.float64))
    assert d.entropy().item() == pytest.approx(want, rel=1e-11)
    assert d.entropy().dtype == torch.float64


@pytest.mark.parametrize("text", [row[0] for row in RECORDED])
def test_expanded_distribution_is_the_same_for_each_of_the_batch(text: str) -> None:
    d = made(text)
    e = d.expand((2, *d.batch_shape))
    assert e.batch_shape == (2, *d.batch_shape)
    assert e.event_shape == d.event_shape
    x = d.sample()
    shape = (2, *x.shape)
    assert e.sample((3,)).shape == (3, *shape)
    close(e.log_prob(x.expand(shape)), np.stack([d.log_prob(x)] * 2))
    assert d.support.check(e.sample((5,))).all()


@pytest.mark.parametrize(("p", "q", "want"), DIVERGENCES)
def test_divergence_is_that_recorded(p: str, q: str, want: float) -> None:
    close(kl_divergence(made(p), made(q)), want)


def test_divergence_is_infinite_where_it_was_recorded() -> None:
    made_of = {p.split("(")[0]: p for p, *_ in DIVERGENCES}
    other_of = {q.split("(")[0]: q for _, q, _ in DIVERGENCES}
    pairs = [(p, q) for p, others in DATA["infinite"].items() for q in others]
    for p, q in pairs:
        assert kl_divergence(made(made_of[p]), made(other_of[q])) == math.inf, (p, q)


SCIPY = [
    ("Beta(t(2.0), t(3.0))", ss.beta(2, 3)),
    ("Cauchy(t(1.0), t(2.0))", ss.cauchy(1, 2)),
    ("Chi2(t(3.0))", ss.chi2(3)),
    ("Exponential(t(2.0))", ss.expon(scale=0.5)),
    ("FisherSnedecor(t(3.0), t(9.0))", ss.f(3, 9)),
    ("Gamma(t(2.5), t(2.0))", ss.gamma(2.5, scale=0.5)),
    ("GeneralizedPareto(t(1.0), t(2.0), t(0.2))", ss.genpareto(0.2, 1, 2)),
    ("Gumbel(t(1.0), t(2.0))", ss.gumbel_r(1, 2)),
    ("HalfCauchy(t(2.0))", ss.halfcauchy(scale=2)),
    ("HalfNormal(t(2.0))", ss.halfnorm(scale=2)),
    ("InverseGamma(t(3.5), t(2.0))", ss.invgamma(3.5, scale=2)),
    ("Laplace(t(1.0), t(2.0))", ss.laplace(1, 2)),
    ("LogNormal(t(0.5), t(0.7))", ss.lognorm(0.7, scale=math.exp(0.5))),
    ("Normal(t(1.0), t(2.0))", ss.norm(1, 2)),
    ("Pareto(t(2.0), t(3.5))", ss.pareto(3.5, scale=2)),
    ("StudentT(t(5.0), t(1.0), t(2.0))", ss.t(5, 1, 2)),
    ("Uniform(t(1.0), t(3.0))", ss.uniform(1, 2)),
    ("Weibull(t(2.0), t(1.5))", ss.weibull_min(1.5, scale=2)),
]


@pytest.mark.parametrize(("text", "other"), SCIPY)
def test_continuous_family_agrees_with_scipy(text: str, other: Any) -> None:
    d, u = made(text), np.linspace(0.05, 0.95, 7)
    x = other.ppf(u)
    close(d.log_prob(t(x)), other.logpdf(x), 1e-7)
    if "Cauchy" not in text:
        close(d.mean, other.mean(), 1e-6)
        close(d.variance, other.var(), 1e-6)
        close(d.stddev, other.std(), 1e-6)
    for got, want in [(lambda: d.cdf(t(x)), u), (lambda: d.icdf(t(u)), x)]:
        try:
            value = got()
        except NotImplementedError:
            continue
        close(value, want, 1e-7)
    if "FisherSnedecor" not in text:
        close(d.entropy(), other.entropy(), 1e-6)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Bernoulli(t(0.3))", ss.bernoulli(0.3)),
        ("Binomial(6, t(0.3))", ss.binom(6, 0.3)),
        ("Geometric(t(0.3))", ss.geom(0.3, loc=-1)),
        ("NegativeBinomial(t(4.0), t(0.3))", ss.nbinom(4, 0.7)),
        ("Poisson(t(2.5))", ss.poisson(2.5)),
    ],
)
def test_discrete_family_agrees_with_scipy(text: str, other: Any) -> None:
    d, k = made(text), np.arange(2.0 if "Bern" in text else 6.0)
    close(d.log_prob(t(k)), other.logpmf(k))
    close(d.mean, other.mean())
    close(d.variance, other.var())


def test_multivariate_families_agree_with_scipy() -> None:
    cov, mean = np.array([[2.0, 0.3], [0.3, 1.5]]), np.array([0.2, 1.0])
    x = np.array([[0.0, 1.0], [2.0, -1.0]])
    want = ss.multivariate_normal(mean, cov)
    inverse = t(np.linalg.inv(cov))
    for d in [
        dist.MultivariateNormal(t(mean), t(cov)),
        dist.MultivariateNormal(t(mean), precision_matrix=inverse),
        dist.MultivariateNormal(t(mean), scale_tril=t(np.linalg.cholesky(cov))),
    ]:
        close(d.log_prob(t(x)), want.logpdf(x))
        close(d.entropy(), want.entropy())
        close(d.covariance_matrix, cov)
        close(d.precision_matrix, inverse)
    w, diagonal = np.array([[1.0], [0.5]]), np.array([0.5, 2.0])
    low = dist.LowRankMultivariateNormal(t(mean), t(w), t(diagonal))
    whole = w @ w.T + np.diag(diagonal)
    close(low.log_prob(t(x)), ss.multivariate_normal(mean, whole).logpdf(x))
    close(low.precision_matrix, np.linalg.inv(whole))
    close(low.scale_tril @ low.scale_tril.mT, whole)
    rows = np.array([[0.2, 0.3, 0.5]])
    alpha = np.array([0.5, 2.0, 3.0])
    close(dist.Dirichlet(t(alpha)).log_prob(t(rows)), ss.dirichlet(alpha).logpdf(rows[0]))
    wishart = dist.Wishart(t(4.0), covariance_matrix=t(cov))
    close(wishart.log_prob(t(cov)), ss.wishart(4, cov).logpdf(cov))
    close(wishart.entropy(), ss.wishart(4, cov).entropy())


def test_batch_of_matrices_is_solved_for_each_value() -> None:
    # The batches (3, 1) of the matrices and (2, 3, 4) of the values broadcast.
    trils = torch.eye(2, dtype=torch.float64) * t([[1.0], [2.0], [3.0]])[..., None, None]
    d = dist.MultivariateNormal(torch.zeros(3, 4, 2, dtype=torch.float64), scale_tril=trils)
    x = torch.arange(48, dtype=torch.float64).reshape(2, 3, 4, 2) / 10
    scale = t([[1.0], [2.0], [3.0]])[..., None].expand(3, 4, 2)
    close(d.log_prob(x), dist.Normal(torch.zeros(3, 4, 2).double(), scale).log_prob(x).sum(-1))


@pytest.mark.parametrize("family", ["gamma", "beta", "dirichlet"])
def test_gradient_of_samples_is_that_of_their_mean(family: str) -> None:
    # The mean of the gradients is the gradient of the mean, up to 1 / sqrt(n).
    torch.manual_seed(0)
    a = t(0.6, 2.5, 12.0).requires_grad_()
    n = 20000
    if family == "gamma":
        dist.Gamma(a, t(1.0)).rsample((n,)).mean(0).sum().backward()
        want = np.ones(3)
    elif family == "beta":
        b = t(2.0, 3.0, 4.0)
        dist.Beta(a, b).rsample((n,)).mean(0).sum().backward()
        want = (b / (a + b) ** 2).detach().numpy()
    else:
        dist.Dirichlet(a).rsample((n,)).mean(0)[0].backward()
        s = 15.1
        want = np.array([(s - 0.6) / s**2, -0.6 / s**2, -0.6 / s**2])
    assert a.grad is not None
    np.testing.assert_allclose(a.grad.numpy(), want, rtol=0.03, atol=3e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rejected_samples_are_of_every_type_and_layout(dtype: str) -> None:
    kind = getattr(torch, dtype)
    shape = torch.tensor([[0.5, 2.0, 30.0], [1.0, 9.0, 0.1]]).to(kind)
    for x in (shape, shape.t(), shape[:, ::2], shape[0, 0], shape[:0], shape.expand(2, 2, 3)):
        for f, dense in [(torch._standard_gamma, x), (torch._sample_dirichlet, x)]:
            torch.manual_seed(1)
            got = f(dense)
            torch.manual_seed(1)
            want = f(dense.contiguous())
            assert got.dtype is kind
            assert got.shape == x.shape
            assert got.is_contiguous()
            np.testing.assert_array_equal(got.double().numpy(), want.double().numpy())
            assert (got > 0).all()
        n = (x * 20).floor()
        drawn = torch.binomial(n, torch.full_like(n, 0.75))
        assert ((drawn >= 0) & (drawn <= n) & (drawn % 1 == 0)).all()


def test_parameters_that_are_no_numbers_give_none() -> None:
    bad = torch.tensor([math.nan, -1.0])
    assert torch._standard_gamma(bad).isnan().all()
    assert torch._sample_dirichlet(bad).isnan().all()
    n = torch.tensor([math.nan, 5.0, math.inf, 0.0])
    p = torch.tensor([0.5, math.nan, 0.5, 0.5])
    np.testing.assert_array_equal(torch.binomial(n, p), [math.nan, math.nan, math.inf, 0.0])


def test_rejected_samples_refuse_what_has_no_distribution() -> None:
    whole = torch.tensor([1, 2])
    with pytest.raises(NotImplementedError, match="gamma_cpu.*Long"):
        torch._standard_gamma(whole)
    with pytest.raises(NotImplementedError, match="dirichlet.*Long"):
        torch._sample_dirichlet(whole)
    with pytest.raises(ValueError, match="floating-point dtypes for count, got: Long"):
        torch.binomial(whole, torch.ones(2))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.binomial(torch.ones(2), torch.ones(2).double())
    n = torch.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, NotImplementedError), match="binomial is not implemented"):
        torch.binomial(n, torch.ones(2)).sum().backward()
    a = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(torch._standard_gamma(a).sum(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="_standard_gamma_grad"):
        g.sum().backward()


def test_is_all_true_takes_bools_alone() -> None:
    assert torch._is_all_true(torch.tensor([True, True]))
    assert not torch._is_all_true(torch.tensor([True, False]))
    assert torch._is_any_true(torch.tensor([True, False]))
    with pytest.raises(RuntimeError, match="bools"):
        torch._is_all_true(torch.ones(2))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: dist.Normal(0.0, -1.0),
            "Expected parameter scale (Tensor of shape ()) of distribution Normal(loc: 0.0, scale: "
            "-1.0) to satisfy the constraint GreaterThan(lower_bound=0.0), but found invalid "
            "values:\n-1.0",
        ),
        (
            lambda: dist.Exponential(torch.ones(2)).log_prob(torch.tensor([1.0, -1.0])),
            "Expected value argument (Tensor of shape (2,)) to be within the support "
            "(GreaterThanEq(lower_bound=0.0)) of the distribution Exponential(rate: "
            "torch.Size([2])), but found invalid values:\ntensor([ 1., -1.])",
        ),
        (
            lambda: dist.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)),
            "Value is not broadcastable with batch_shape+event_shape: torch.Size([3]) vs "
            "torch.Size([2]).",
        ),
        (
            lambda: dist.Dirichlet(torch.ones(2)).log_prob(torch.zeros(3)),
            "The right-most size of value must match event_shape: torch.Size([3]) vs "
            "torch.Size([2]).",
        ),
        (
            lambda: dist.Normal(0.0, 1.0).log_prob(1.0),  # type: ignore[arg-type]
            "The value argument to log_prob must be a Tensor",
        ),
        (
            lambda: dist.Bernoulli(0.5, 0.5),
            "Either `probs` or `logits` must be specified, but not both.",
        ),
        (
            lambda: dist.Normal("a", 1.0),
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__.",
        ),
    ],
)
def test_bad_argument_is_refused_in_pytorchs_words(call: Any, text: str) -> None:
    with pytest.raises(ValueError) as e:
        call()
    assert str(e.value) == text


def test_nothing_is_checked_where_nobody_asked() -> None:
    d = dist.Normal(0.0, -1.0, validate_args=False)
    assert d.log_prob(torch.tensor(math.nan)).isnan()
    try:
        dist.Distribution.set_default_validate_args(False)
        assert dist.Exponential(-1.0).rate == -1.0
    finally:
        dist.Distribution.set_default_validate_args(True)


def test_most_specific_divergence_is_used_and_a_tie_warns() -> None:
    class Left(dist.Normal): ...

    class Right(dist.Normal): ...

    # Forgotten again below, whatever happens.
    from pytensorlib.distributions import kl

    known = dict(kl._KL_REGISTRY)
    try:
        dist.register_kl(Left, dist.Normal)(lambda p, q: torch.tensor(1.0))
        dist.register_kl(dist.Normal, Right)(lambda p, q: torch.tensor(2.0))
        assert kl_divergence(Left(0.0, 1.0), dist.Normal(0.0, 1.0)) == 1.0
        assert kl_divergence(dist.Normal(0.0, 1.0), Right(0.0, 1.0)) == 2.0
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\)"):
            assert kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == 1.0
    finally:
        kl._KL_REGISTRY.clear()
        kl._KL_REGISTRY.update(known)
        kl._KL_MEMOIZE.clear()
    with pytest.raises(NotImplementedError, match="No KL"):
        kl_divergence(dist.Laplace(0.0, 1.0), dist.Cauchy(0.0, 1.0))


def test_subclass_with_parameters_of_its_own_must_expand_itself() -> None:
    class Mine(dist.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Mine().expand((2,))


def test_each_class_is_in_the_module_that_pytorch_has_it_in() -> None:
    where = {"StudentT": "studentT", "LKJCholesky": "lkj_cholesky", "Normal": "normal"}
    where |= {"OneHotCategoricalStraightThrough": "one_hot_categorical", "Chi2": "chi2"}
    where |= {"RelaxedOneHotCategorical": "relaxed_categorical", "register_kl": "kl"}
    where |= {"biject_to": "constraint_registry", "ExponentialFamily": "exp_family"}
    for name, module in where.items():
        found = importlib.import_module(f"pytensorlib.distributions.{module}")
        assert getattr(found, name) is getattr(dist, name)


def test_distribution_is_pickled_with_its_parameters() -> None:
    d = dist.TransformedDistribution(dist.Normal(0.0, 2.0), [dist.ExpTransform().inv.inv])
    e = pickle.loads(pickle.dumps(d))
    assert e.base_dist.scale == 2.0
    assert e.transforms == d.transforms


def test_every_family_overrides_only_what_the_base_declares() -> None:
    # A misspelt method would silently leave the base's, which raises.
    own = {"log_survival_function", "log_cdf"}
    for name, value in NAMES.items():
        if inspect.isclass(value) and issubclass(value, dist.Distribution):
            found = {k for k, v in vars(value).items() if inspect.isfunction(v)}
            public = {k for k in found if not k.startswith("_")}
            assert public - own <= set(dir(dist.Distribution)), name


def test_subclass_expands_what_its_base_knows_and_keeps_what_is_its_own() -> None:
    class Plain(dist.Chi2): ...

    class Own(dist.LogNormal):
        def __init__(self, unit: str) -> None:
            self.unit = unit
            super().__init__(t(0.0, 1.0), t(1.0, 2.0))

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Own, _instance)
            new.unit = self.unit + "s"
            return super().expand(batch_shape, new)

    plain = Plain(t(3.0, 4.0)).expand((5, 2))
    assert type(plain) is Plain
    assert plain.df.tolist() == [[3.0, 4.0]] * 5
    own = Own("metre").expand((5, 2))
    assert own.unit == "metres"
    assert own.scale.tolist() == [[1.0, 2.0]] * 5


def test_bases_of_families_cannot_expand() -> None:
    class Bare(dist.ExponentialFamily):
        arg_constraints = {}  # noqa: RUF012

    with pytest.raises(NotImplementedError):
        Bare().expand((2,))


def test_every_moment_says_what_it_is() -> None:
    kinds = [v for v in NAMES.values() if inspect.isclass(v) and issubclass(v, dist.Distribution)]
    names = ("mean", "mode", "stddev", "variance")
    silent = [(k, n) for k in kinds for n in names if not inspect.getdoc(getattr(k, n))]
    assert silent == []
