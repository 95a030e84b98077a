"""`svd_lowrank`, `pca_lowrank` and `lobpcg` against full decompositions."""

import numpy as np
import pytest
from scipy import linalg

import pytensorlib as torch


def fading(m: int, n: int, seed: int = 0) -> np.ndarray:
    """Return a matrix whose singular values are 1, 1/4, 1/16 and so on."""
    rng = np.random.default_rng(seed)
    k = min(m, n)
    u = np.linalg.qr(rng.standard_normal((m, k)))[0]
    v = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return (u * 0.25 ** np.arange(k)) @ v.T


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (8, 8)])
def test_svd_lowrank_finds_the_largest_singular_values(shape) -> None:
    x = np.stack([fading(*shape), fading(*shape, seed=1)])
    torch.manual_seed(0)
    u, s, v = torch.svd_lowrank(torch.tensor(x), q=5)
    assert (u.shape, s.shape, v.shape) == ((2, shape[0], 5), (2, 5), (2, shape[1], 5))
    np.testing.assert_allclose(s.numpy(), np.tile(0.25 ** np.arange(5), (2, 1)), atol=1e-6)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mT).numpy(), x, atol=0.25**5 * 2)
    for basis in (u, v):
        np.testing.assert_allclose(
            (basis.mT @ basis).numpy(), np.tile(np.eye(5), (2, 1, 1)), atol=1e-12
        )
    mean = torch.tensor(x).mean(-2, keepdim=True)
    torch.manual_seed(3)
    less = torch.svd_lowrank(torch.tensor(x), q=3, M=mean)[1]
    torch.manual_seed(3)
    assert torch.equal(less, torch.svd_lowrank(torch.tensor(x) - mean, q=3)[1])


def test_svd_lowrank_has_a_gradient() -> None:
    x = torch.tensor(fading(6, 5)).requires_grad_()
    (g,) = torch.autograd.grad(torch.svd_lowrank(x, q=5)[1].sum(), x)
    u, _, vh = np.linalg.svd(x.detach().numpy(), full_matrices=False)
    np.testing.assert_allclose(g.numpy(), u @ vh, atol=1e-6)


def test_pca_lowrank_centers_samples() -> None:
    x = np.random.default_rng(0).standard_normal((50, 4)) * [4, 2, 1, 0.5] + 7
    u, s, v = torch.pca_lowrank(torch.tensor(x))
    assert u.shape == (50, 4)
    want = np.linalg.svd(x - x.mean(0), full_matrices=False)
    np.testing.assert_allclose(s.numpy(), want[1])
    np.testing.assert_allclose(np.abs(v.numpy()), np.abs(want[2].T), atol=1e-10)
    raw = torch.pca_lowrank(torch.tensor(x), q=2, center=False)[1]
    np.testing.assert_allclose(raw[0].item(), np.linalg.svd(x)[1][0], rtol=1e-6)
    with pytest.raises(ValueError, match="not greater than 4"):
        torch.pca_lowrank(torch.tensor(x), q=5)
    with pytest.raises(ValueError, match="niter"):
        torch.pca_lowrank(torch.tensor(x), niter=-1)


def symmetric(m: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((m, m))
    return x + x.T


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("method", [None, "basic", "ortho"])
def test_lobpcg_finds_extreme_eigenvalues(largest, method) -> None:
    a = np.stack([symmetric(30), symmetric(30, seed=1)])
    torch.manual_seed(0)
    w, x = torch.lobpcg(torch.tensor(a), k=3, largest=largest, method=method)
    want = np.linalg.eigvalsh(a)
    np.testing.assert_allclose(
        w.numpy(), want[:, ::-1][:, :3] if largest else want[:, :3], rtol=1e-6
    )
    np.testing.assert_allclose((x.mT @ x).numpy(), np.tile(np.eye(3), (2, 1, 1)), atol=1e-8)
    # Residuals are at most the tolerance, 1.5e-8, of the size.
    np.testing.assert_allclose(a @ x.numpy(), x.numpy() * w.numpy()[:, None], atol=3e-6)


def test_lobpcg_of_a_pencil_with_a_preconditioner() -> None:
    a = np.diag(np.arange(1.0, 41)) + 0.01 * symmetric(40)
    b = symmetric(40, seed=2) * 0.02 + 2 * np.eye(40)
    want = linalg.eigh(a, b)[0]
    seen = []
    inverse = torch.tensor(np.linalg.inv(a))
    start = torch.tensor(np.random.default_rng(5).standard_normal((40, 2)))
    w, x = torch.lobpcg(torch.tensor(a), B=torch.tensor(b), X=start, iK=inverse, largest=False,
                        tol=1e-10, tracker=seen.append)  # fmt: skip
    np.testing.assert_allclose(w.numpy(), want[:2], rtol=1e-10)
    np.testing.assert_allclose((x.mT @ torch.tensor(b) @ x).numpy(), np.eye(2), atol=1e-10)
    assert [s.istep for s in seen] == list(range(len(seen)))
    assert seen[-1].converged
    assert len(seen) < 20
    few = torch.lobpcg(torch.tensor(a), X=start, niter=1)[0]
    assert abs(few[0] - np.linalg.eigvalsh(a)[-1]) > 1e-3


def test_lobpcg_has_the_gradient_of_eigh() -> None:
    a = symmetric(9)
    c = torch.tensor(symmetric(9, seed=3))
    grads = []
    for find in (
        lambda t: torch.lobpcg(t, k=2, tol=1e-13),
        lambda t: [p[..., -2:].flip(-1) for p in torch.linalg.eigh(t)],
    ):
        t = torch.tensor(a, requires_grad=True)
        torch.manual_seed(0)
        w, x = find(t)
        loss = (w * torch.tensor([1.0, 3.0])).sum() + ((c @ x) ** 2).sum(0) @ torch.tensor(
            [2.0, 5.0]
        ).double()
        loss.backward()
        grads.append((t.grad + t.grad.mT).numpy())
    np.testing.assert_allclose(*grads, atol=1e-6)


def test_lobpcg_refuses() -> None:
    a = torch.tensor(symmetric(9))
    for kwargs in ({"k": 4}, {"k": 0}, {"k": 2, "n": 1}, {"method": "x"}, {"X": torch.ones(8, 1)}):
        with pytest.raises(ValueError):
            torch.lobpcg(a, **kwargs)
    with pytest.raises(ValueError, match="square"):
        torch.lobpcg(torch.ones(3, 4))
    with pytest.raises(ValueError, match="dependent"):
        torch.lobpcg(a, X=torch.ones(9, 2).double())
    with pytest.raises(RuntimeError, match="B"):
        torch.lobpcg(a, B=torch.eye(9).double().requires_grad_())
    w, _ = torch.lobpcg(a.clone().requires_grad_(), B=torch.eye(9).double())
    with pytest.raises(NotImplementedError, match="B"):
        w.sum().backward()
