"""complex64 on the GPU by real and imaginary parts, beside the CPU; nothing falls back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]
F = torch.nn.functional
Call = Callable[..., Any]


def index(x: Any, *shape: int) -> Any:
    """Places below 4, some of them several times."""
    n = int(np.prod(shape))
    return (torch.arange(n) * 7 % 4).reshape(shape).to(x.device)


def again(parts: Any) -> Any:
    """A matrix of its singular vectors and values."""
    u, s, v = parts
    return (u * s) @ v


# Of a (4, 5), b (5, 4), c (2, 4, 5) and d (2, 5, 3).
CALLS: dict[str, Call] = {
    "sum": lambda a, b, c, d: a.sum(),
    "sum_of_rows": lambda a, b, c, d: c.sum((0, 2)),
    "sum_of_columns": lambda a, b, c, d: c.transpose(0, 2).sum(1, keepdim=True),
    "mean": lambda a, b, c, d: c.mean(1),
    "sum_of_real": lambda a, b, c, d: a.real.sum(0, dtype=torch.complex64),
    "norm": lambda a, b, c, d: torch.linalg.vector_norm(c, dim=1),
    "var": lambda a, b, c, d: c.var(1),
    "prod": lambda a, b, c, d: a.prod(1),
    "cumsum": lambda a, b, c, d: c.cumsum(1),
    "mm": lambda a, b, c, d: a @ b,
    "mm_of_views": lambda a, b, c, d: a.t() @ b.t(),
    "adjoint": lambda a, b, c, d: a.mH @ a,
    "addmm": lambda a, b, c, d: torch.addmm(b, b, a @ b, beta=2, alpha=-0.5),
    "addbmm": lambda a, b, c, d: torch.addbmm(a[:, :3], c, d, beta=2, alpha=3),
    "baddbmm": lambda a, b, c, d: torch.baddbmm(a[:, :3], c, d),
    "bmm": lambda a, b, c, d: torch.bmm(c, d),
    "broadcast_matmul": lambda a, b, c, d: torch.matmul(a, d),
    "mv": lambda a, b, c, d: torch.mv(a, b[:, 0]),
    "dot": lambda a, b, c, d: torch.dot(a[0], b[:, 0]),
    "vdot": lambda a, b, c, d: torch.vdot(a[0], b[:, 0]),
    "einsum": lambda a, b, c, d: torch.einsum("bij,bjk,i->bk", c, d, a[:, 0]),
    "outer": lambda a, b, c, d: torch.outer(a[0], b[0]),
    "kron": lambda a, b, c, d: torch.kron(a, b),
    "linear": lambda a, b, c, d: F.linear(c, a, b[0]),
    "conv1d": lambda a, b, c, d: F.conv1d(c, d.permute(2, 0, 1)[:, :, :4].mT[:, :4], b[0, :3]),
    "conv2d": lambda a, b, c, d: F.conv2d(c[None], d[None, :, :2], stride=2, padding=1),
    "conv_transpose2d": lambda a, b, c, d: F.conv_transpose2d(c[None], d[:, None], stride=2),
    "qr": lambda a, b, c, d: torch.cat([*torch.linalg.qr(c.mT)], 1),
    "qr_of_wide": lambda a, b, c, d: torch.linalg.qr(a)[1].abs(),
    "svd": lambda a, b, c, d: torch.linalg.svd(c, full_matrices=False)[0].abs(),
    "svd_of_tall": lambda a, b, c, d: torch.linalg.svd(d, full_matrices=False)[2].abs(),
    "svd_again": lambda a, b, c, d: again(torch.linalg.svd(a, full_matrices=False)),
    "eigh": lambda a, b, c, d: torch.linalg.eigh(c @ c.mH)[1].abs(),
    "eigh_of_upper": lambda a, b, c, d: torch.linalg.eigh(a @ a.mH, "U")[0],
    "lstsq": lambda a, b, c, d: torch.linalg.lstsq(b, a.mT[:, :3])[0],
    "lstsq_of_wide": lambda a, b, c, d: torch.linalg.lstsq(a, b.mT[:, :3])[0],
    "pinv": lambda a, b, c, d: torch.linalg.pinv(c),
    "gather": lambda a, b, c, d: a.gather(0, index(a, 3, 5)),
    "scatter": lambda a, b, c, d: a.scatter(0, index(a, 1, 5), b.t()),
    "scatter_number": lambda a, b, c, d: a.scatter(0, index(a, 2, 5), 2.5),
    "scatter_add": lambda a, b, c, d: a.scatter_add(0, index(a, 4, 5), b.t()),
    "index_add": lambda a, b, c, d: a.index_add(0, index(a, 5), b[:, :1].expand(5, 5), alpha=2),
    "index_put": lambda a, b, c, d: a.index_put((index(a, 6),), b[0, 0], accumulate=True),
    "index_fill": lambda a, b, c, d: a.index_fill(1, index(a, 2), 1.5),
    "index": lambda a, b, c, d: a[index(a, 6)],
    "masked": lambda a, b, c, d: a[a.real > 0],
    "masked_fill": lambda a, b, c, d: a.masked_fill(a.imag > 0, 2.0),
    "take": lambda a, b, c, d: a.take(index(a, 7)),
    "cat": lambda a, b, c, d: torch.cat([a, b.t()], 1),
    "flip": lambda a, b, c, d: c.flip(1).roll(1, 2),
    "triangles": lambda a, b, c, d: c.triu(1) + 2 * c.tril(-1),
    "diagonal": lambda a, b, c, d: a.diagonal().diag_embed(),
    "strided": lambda a, b, c, d: a.as_strided((3, 3), (5, 1), 1) * a.as_strided((3, 3), (2, 2), 0),
    "repeat": lambda a, b, c, d: a.repeat(2, 3).repeat_interleave(2, 0),
    "constant_pad": lambda a, b, c, d: F.pad(a, (1, 2, -1, 1)),
    "replicate": lambda a, b, c, d: F.pad(c, (2, 1), mode="replicate"),
    "reflect": lambda a, b, c, d: F.pad(c, (2, 1, 1, 0), mode="reflect"),
    "circular": lambda a, b, c, d: F.pad(c, (2, 1), mode="circular"),
    "solve": lambda a, b, c, d: torch.linalg.solve(a @ b, a),
    "inv": lambda a, b, c, d: torch.linalg.inv(c @ c.mH + torch.eye(4, device=c.device)),
    "solve_triangular": lambda a, b, c, d: torch.linalg.solve_triangular(a @ b, a, upper=True),
    "unit_triangle": lambda a, b, c, d: torch.linalg.solve_triangular(
        (a @ b) / 4, a, upper=False, unitriangular=True
    ),
    "det": lambda a, b, c, d: torch.linalg.det(c @ d[:, :, :1] @ c[:, :1, :4] + 2 * (a @ b)),
    "sign_of_slogdet": lambda a, b, c, d: torch.linalg.slogdet(a @ b).sign,
    "slogdet": lambda a, b, c, d: torch.linalg.slogdet(c @ c.mT + a @ b).logabsdet,
    "cholesky": lambda a, b, c, d: torch.linalg.cholesky(c @ c.mH + torch.eye(4, device=c.device)),
    "lu_factor": lambda a, b, c, d: torch.linalg.lu_factor(a @ b)[0],
    "cross": lambda a, b, c, d: torch.linalg.cross(c[:, :3], d.mT, dim=1),
}


def numbers() -> list[Any]:
    rng = np.random.default_rng(3)
    shapes = [(4, 5), (5, 4), (2, 4, 5), (2, 5, 3)]
    return [rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in shapes]


def computed(name: str, dtype: str, device: str) -> list[Any]:
    """The result, and the gradients of a sum of it with weights."""
    leaves = [torch.from_numpy(x.astype(dtype)).to(device).requires_grad_() for x in numbers()]
    y = CALLS[name](*leaves)
    weights = np.array(np.cos(np.arange(y.numel())).reshape(y.shape) - 0.5j)
    weights = weights.astype(dtype) if y.is_complex() else weights.astype(dtype).real.copy()
    total = (y * torch.from_numpy(weights).to(device)).sum()
    (total.real if total.is_complex() else total).backward()
    return [y.detach(), *(x.grad for x in leaves)]


@pytest.mark.parametrize("name", CALLS)
def test_results_and_gradients_are_those_of_the_cpu(name: str) -> None:
    found, expected = computed(name, "complex64", "wgpu"), computed(name, "complex128", "cpu")
    for x, y in zip(found, expected, strict=True):
        assert (x is None) == (y is None)
        if x is None:
            continue
        assert x.device.type == "wgpu" and x.shape == y.shape
        size = max(1.0, float(y.abs().max()) if y.numel() else 0.0)
        np.testing.assert_allclose(x.cpu().numpy(), y.numpy(), atol=2e-5 * size)


def test_random_numbers_have_parts_of_their_own() -> None:
    z = torch.randn(200_000, dtype=torch.complex64, device="wgpu").cpu().numpy()
    # Both parts have half of the variance, and nothing to do with each other.
    assert abs(z.mean()) < 0.01 and abs(np.var(z.real) - 0.5) < 0.01
    assert abs(np.var(z.imag) - 0.5) < 0.01 and abs(np.mean(z.real * z.imag)) < 0.005
    u = torch.rand(1000, 3, dtype=torch.complex64, device="wgpu").t().contiguous().cpu().numpy()
    assert 0 <= u.real.min() and u.imag.max() < 1 and abs(u.mean() - 0.5 - 0.5j) < 0.03


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_values_and_factors_of_matrices_are_those_of_the_cpu(dtype: str) -> None:
    c = torch.from_numpy(numbers()[2].astype(dtype))
    square = c @ c.mH
    calls: list[Callable[[Any], Any]] = [
        torch.linalg.svdvals,
        lambda x: torch.linalg.eigvalsh(x @ x.mH),
        lambda x: torch.linalg.cholesky_ex(x @ x.mH - 3 * torch.eye(4, device=x.device)).info,
        lambda x: torch.linalg.lu_factor(x.mT).pivots,
        lambda x: torch.linalg.lu(x)[1],
        lambda x: torch.linalg.matrix_norm(x, 2),
        lambda x: torch.linalg.det(x @ x.mH),
    ]
    tolerance = 2e-5 if dtype == "complex64" else 1e-12
    for call in calls:
        got, want = call(c.to("wgpu")), call(c)
        assert got.device.type == "wgpu"
        size = max(1.0, float(want.abs().max()))
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), atol=tolerance * size)
    # All vectors, and phases by which a vector begins with a real number.
    u, s, v = (t.cpu().numpy() for t in torch.linalg.svd(c[0].mT.to("wgpu")))
    np.testing.assert_allclose(u.conj().T @ u, np.eye(5), atol=tolerance)
    np.testing.assert_allclose((u[:, :4] * s) @ v, c[0].mT.numpy(), atol=100 * tolerance)
    vectors = torch.linalg.eigh(square.to("wgpu"))[1].cpu().numpy()
    np.testing.assert_allclose(vectors[:, 0].imag, 0, atol=tolerance)
    low = torch.linalg.cholesky(square.to("wgpu") + torch.eye(4, device="wgpu"))
    np.testing.assert_allclose(
        (low @ low.mH).cpu().numpy(), (square + torch.eye(4)).numpy(), atol=100 * tolerance
    )
    assert low.triu(1).abs().max().item() == 0


@pytest.mark.parametrize(("dtype", "tol"), [("complex64", 3e-5), ("complex128", 1e-12)])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_vectors_of_hermitian_and_other_matrices_equal_numpys(
    n: int, dtype: str, tol: float
) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((3, n, n + 3)) + 1j * rng.standard_normal((3, n, n + 3))
    even = a[:, :, :n] + a[:, :, :n].conj().transpose(0, 2, 1)
    # All alike, and two alike ones of which the smaller is zero.
    even[1] = 2 * np.eye(n)
    even[2] = a[2, :, :1] @ a[2, :, :1].conj().T
    a[1, :, n // 2 :] = 0
    a[2, 1:] = a[2, :1]

    def there(x: Any) -> Any:
        return torch.from_numpy(x.astype(dtype)).to("wgpu")

    def close(x: Any, y: Any, scale: float) -> None:
        np.testing.assert_allclose(x, y, atol=scale * tol)

    w, v = (t.cpu().numpy() for t in torch.linalg.eigh(there(even)))
    want = np.linalg.eigvalsh(even)
    scale = np.abs(want).max()
    close(w, want, scale)
    close((v * w[:, None]) @ v.conj().transpose(0, 2, 1), even, 20 * scale)
    close(v.conj().transpose(0, 2, 1) @ v, np.broadcast_to(np.eye(n), (3, n, n)), 20)
    for x in (a, a.transpose(0, 2, 1)):
        parts = torch.linalg.svd(there(x), full_matrices=False)
        u, s, vh = (t.cpu().numpy() for t in parts)
        size = s.max()
        close(s, np.linalg.svd(x, compute_uv=False), size)
        close((u * s[:, None]) @ vh, x, 20 * size)
        eye = np.broadcast_to(np.eye(n), (3, n, n))
        close(u.conj().transpose(0, 2, 1) @ u, eye, 20)
        close(vh @ vh.conj().transpose(0, 2, 1), eye, 20)
        q, r = (t.cpu().numpy() for t in torch.linalg.qr(there(x)))
        close(q @ r, x, 20 * size)
        close(q.conj().transpose(0, 2, 1) @ q, eye, 20)
    b = rng.standard_normal((n + 3, 2)) + 1j
    found = torch.linalg.lstsq(there(a[0].T), there(b))[0].cpu().numpy()
    close(found, np.linalg.lstsq(a[0].T, b, rcond=None)[0], 100)


def test_singular_systems_name_the_dependent_column() -> None:
    a = np.triu(numbers()[0][:, :4])
    a[2, 2] = 0
    x = torch.from_numpy(a.astype("complex64")).to("wgpu")
    assert torch.linalg.inv_ex(x).info.item() == torch.linalg.inv_ex(x.cpu()).info.item() == 3
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.solve(x, x)
