"""Least squares, eigenvalues of any matrix, and reflectors: their results, limits and refusals."""

import math

import numpy as np
import pytest

import pytensorlib as torch

linalg = torch.linalg


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_eig_gives_unit_vectors_of_numpys_eigenvalues(n: int, dtype: torch.dtype) -> None:
    a = randn(2, n, n, seed=n).to(dtype)
    w, v = linalg.eig(a)
    assert w.dtype == v.dtype == (torch.complex64 if dtype == torch.float32 else torch.complex128)
    near = 1e-4 if dtype == torch.float32 else 1e-11
    np.testing.assert_allclose(a.numpy() @ v.numpy(), (v * w.unsqueeze(-2)).numpy(), atol=near * n)
    np.testing.assert_allclose(v.norm(dim=-2).numpy(), 1, rtol=near)
    top = np.take_along_axis(v.numpy(), v.abs().argmax(-2, keepdim=True).numpy(), -2)
    np.testing.assert_allclose(top.imag, 0, atol=near)
    for found in (w, linalg.eigvals(a)):
        for ours, want in zip(found.numpy(), np.linalg.eigvals(a.double().numpy())):
            # Each is near one of the other's.
            gaps = np.abs(ours[:, None] - want)
            assert gaps.min(0).max() < near * 10 * n
            assert gaps.min(1).max() < near * 10 * n


def test_eig_of_far_scales_defective_and_empty_matrices() -> None:
    for scale in (1e-300, 1e300):
        w = linalg.eigvals(torch.tensor([[0.0, -2.0], [2.0, 0.0]]).double() * scale)
        assert sorted((w.imag / scale).tolist()) == pytest.approx([-2, 2])
    w, v = linalg.eig(torch.tensor([[2.0, 1.0], [0.0, 2.0]]))
    assert w.tolist() == [2, 2]
    assert v.abs()[0].tolist() == pytest.approx([1, 1])
    w, v = linalg.eig(torch.zeros(3, 0, 0))
    assert (w.shape, v.shape) == ((3, 0), (3, 0, 0))
    w, v = linalg.eig(torch.zeros(2, 2))
    assert torch.equal(v, torch.eye(2) + 0j)


def test_eig_of_a_symmetric_matrix_has_the_gradient_of_eigh() -> None:
    a = randn(4, 4)
    a = (a + a.mT).requires_grad_()
    (g,) = torch.autograd.grad((linalg.eigvals(a) ** 3).sum().real, a)
    np.testing.assert_allclose(g.numpy(), 3 * np.linalg.matrix_power(a.detach().numpy(), 2))


A = randn(2, 3, 3)
C = torch.complex(A, randn(2, 3, 3, seed=1))
PHASES = {
    "eig of real": (A, lambda a: linalg.eig(a)[1]),
    "eig": (C, lambda a: linalg.eig(a)[1]),
    "eigh": (C + C.mH, lambda a: linalg.eigh(a)[1]),
    "U": (C, lambda a: linalg.svd(a)[0]),
    "V": (C, lambda a: linalg.svd(a)[2]),
    "V of tall": (C[..., :2], lambda a: linalg.svd(a, full_matrices=False)[2]),
    "torch.svd": (C[:, :2], lambda a: torch.svd(a)[0]),
}


@pytest.mark.parametrize("name", PHASES)
def test_decomposition_of_complex_numbers_refuses_a_loss_of_phases(name: str) -> None:
    a, vectors = PHASES[name]
    v = vectors(a.requires_grad_())
    weights = torch.arange(1.0, 1 + v[0].numel()).view(v[0].shape) * (1 + 2j)
    (v.abs() * weights.abs()).sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="multiplication by e.{i phi}"):
        (v * weights).sum().real.backward(retain_graph=True)
    # What is as weak as rounding is let pass.
    (v * weights * 1e-6).sum().real.backward()


def test_svd_of_complex_numbers_takes_a_loss_of_phases_that_cancel() -> None:
    a = C.detach().clone().requires_grad_()
    u, _, vh = linalg.svd(a)
    (u @ vh * torch.arange(1.0, 10).view(3, 3)).sum().abs().backward()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: linalg.eig(torch.ones(2, 3)), RuntimeError, "square"),
        (lambda: linalg.eig(torch.full((2, 2), math.inf)), RuntimeError, "infs or NaNs"),
        (lambda: linalg.eigvals(torch.ones(2, 2).half()), RuntimeError, "Low precision"),
        (lambda: linalg.lstsq(torch.ones(2), torch.ones(2)), RuntimeError, "at least 2 dim"),
        (lambda: linalg.lstsq(torch.ones(2, 2), torch.tensor(1.0)), RuntimeError, "1 dimension"),
        (lambda: linalg.lstsq(torch.ones(3, 2), torch.ones(2, 2)), RuntimeError, "size"),
        (lambda: linalg.lstsq(torch.ones(4, 5, 3), torch.ones(5, 2)), RuntimeError, "greater or"),
        (lambda: linalg.lstsq(torch.ones(2, 2).double(), torch.ones(2, 2)), RuntimeError, "dtype"),
        (lambda: linalg.lstsq(torch.ones(2, 2), torch.ones(2, 2), driver="x"), RuntimeError, "one"),
        (lambda: linalg.lstsq(torch.ones(3, 2), torch.ones(3, 1), driver="gels"), RuntimeError,
         "full rank"),
        (lambda: linalg.householder_product(torch.ones(2, 3), torch.ones(2)), RuntimeError,
         "greater than or equal"),
        (lambda: linalg.householder_product(torch.ones(3, 2), torch.ones(3)), RuntimeError, "tau"),
        (lambda: linalg.householder_product(torch.ones(2), torch.ones(1)), RuntimeError, "2 dim"),
        (lambda: torch.orgqr(torch.ones(2, 3, 2), torch.ones(3, 2)), RuntimeError, "batch"),
        (lambda: torch.ormqr(torch.ones(3, 2), torch.ones(2), torch.ones(2, 3)), RuntimeError,
         "other"),
        (lambda: torch.geqrf(torch.ones(3)), RuntimeError, "at least 2"),
        (lambda: torch.geqrf(torch.ones(3, 2, requires_grad=True))[0].sum().backward(),
         NotImplementedError, "geqrf"),
    ],
)  # fmt: skip
def test_wrong_arguments_raise(call, error, match) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_lstsq_fields_are_those_of_the_driver(driver) -> None:
    a, b = randn(2, 5, 3), randn(2, 5, 2, seed=1)
    y = linalg.lstsq(a, b, driver=driver)
    assert y._fields == ("solution", "residuals", "rank", "singular_values")
    wide = linalg.lstsq(a.mT, b[:, :3], driver=driver)
    for i in range(2):
        want, rest, rank, s = np.linalg.lstsq(a[i].numpy(), b[i].numpy(), rcond=None)
        np.testing.assert_allclose(y.solution[i].numpy(), want, atol=1e-12)
        if driver in ("gels", "gelsd", "gelss"):
            np.testing.assert_allclose(y.residuals[i].numpy(), rest, atol=1e-12)
        if driver in ("gelsd", "gelss"):
            np.testing.assert_allclose(y.singular_values[i].numpy(), s, atol=1e-12)
        if driver != "gels":
            assert y.rank[i] == rank == 3
        want = np.linalg.lstsq(a[i].numpy().T, b[i, :3].numpy(), rcond=None)[0]
        np.testing.assert_allclose(wide.solution[i].numpy(), want, atol=1e-12)
    all_of_them = [(2, 2), (2,), (2, 3)]
    shapes = {"gels": [(2, 2), (0,), (0,)], "gelsd": all_of_them, "gelss": all_of_them}
    shapes = shapes.get(driver, [(0,), (2,), (0,)])
    assert [tuple(t.shape) for t in y[1:]] == shapes
    assert wide.residuals.shape == (0,)


def test_lstsq_of_low_rank_is_the_shortest_and_rcond_decides() -> None:
    a, b = torch.ones(4, 2), randn(4, 2).float()
    y = linalg.lstsq(a, b, driver="gelsd")
    assert (y.rank, y.residuals.shape) == (1, (0,))
    np.testing.assert_allclose(y.solution.numpy(), b.sum(0).expand(2, 2).numpy() / 8, rtol=1e-5)
    d = torch.diag(torch.tensor([1.0, 0.5, 0.1]))
    assert [int(linalg.lstsq(d, d, rcond=r).rank) for r in (0.0, 0.2, 0.7)] == [3, 2, 1]
    assert linalg.lstsq(d, d, 0.2).solution.diagonal().tolist() == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [3, 20, 150])
def test_lstsq_counts_singular_values_above_rcond(n: int, dtype: torch.dtype) -> None:
    u, v = (torch.linalg.qr(randn(n, n, seed=s))[0] for s in (1, 2))
    for least in (1e-1, 1e-3):
        s = torch.linspace(1, least, n, dtype=torch.float64)
        a, b = (u * s @ v).to(dtype), randn(n, 2).to(dtype)
        for rcond in (least * 0.5, least * 0.9, least * 1.1):
            y = linalg.lstsq(a, b, rcond=rcond)
            assert y.rank == int((s > rcond).sum()), (least, rcond)
            want = np.linalg.lstsq(a.double().numpy(), b.double().numpy(), rcond=rcond)[0]
            scale = abs(want).max() * (1e-4 if dtype == torch.float32 else 1e-10) / least
            np.testing.assert_allclose(y.solution.double().numpy(), want, rtol=0, atol=scale)


def test_unpacked_factors_keep_to_their_triangle_whatever_the_other_holds() -> None:
    lu = torch.tensor([[torch.inf, torch.nan], [2.0, torch.inf]])
    _, lower, upper = torch.lu_unpack(lu, torch.tensor([1, 2], dtype=torch.int32))
    assert lower.tolist() == [[1, 0], [2, 1]]
    assert upper.isfinite().tolist() == [[False, False], [True, False]]


def test_lstsq_takes_vectors_and_broadcasts() -> None:
    a, b = randn(4, 5, 3), randn(5, seed=2)
    y = linalg.lstsq(a[0], b, driver="gelsd")
    assert (y.solution.shape, y.residuals.shape) == ((3,), (1,))
    assert linalg.lstsq(a, b.expand(4, 5)).solution.shape == (4, 3)
    both = linalg.lstsq(a[:1], randn(4, 5, 2))
    assert (both.solution.shape, both.rank.shape) == ((4, 3, 2), (1,))


def test_lstsq_of_nothing() -> None:
    for m, n in ((0, 2), (2, 0), (0, 0)):
        y = linalg.lstsq(torch.zeros(m, n), torch.zeros(m, 3))
        assert y.solution.tolist() == [[0.0] * 3] * n
        assert y.rank == 0
    assert linalg.lstsq(torch.zeros(0, 4, 2), torch.zeros(0, 4, 3)).solution.shape == (0, 2, 3)


def test_lstsq_residuals_have_a_gradient() -> None:
    a, b = randn(5, 2).requires_grad_(), randn(5, 1, seed=1).requires_grad_()

    def rest(a, b):
        return linalg.lstsq(a, b, driver="gelsd").residuals

    assert torch.autograd.gradcheck(rest, (a, b))
    assert linalg.lstsq(a, b).solution.grad_fn.name() == "LinalgLstsqBackward0"
    assert linalg.lstsq(a, b).residuals.requires_grad


def test_geqrf_packs_as_lapack_does() -> None:
    a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]], dtype=torch.float64))
    # The first column is turned onto -5 e_1; x - beta = 8, so v = (1, 4 / 8).
    np.testing.assert_allclose(a.numpy(), [[-5, -2.2], [0.5, 0.4]], atol=1e-15)
    np.testing.assert_allclose(tau.numpy(), [1.6, 0], atol=1e-15)


def test_reflectors_read_below_the_diagonal_alone() -> None:
    a, tau = torch.geqrf(randn(4, 3))
    q = linalg.householder_product(a, tau)
    a[0, 1], a[1, 2], a[0, 0] = math.nan, math.inf, math.nan
    assert torch.equal(linalg.householder_product(a, tau), q)


@pytest.mark.parametrize(
    "shape", [(40, 30), (30, 40), (3, 50, 20), (260, 200), (90, 210), (5, 0), (0, 5)]
)
def test_reflectors_of_geqrf_make_the_matrix_again(shape) -> None:
    x = randn(*shape)
    a, tau = torch.geqrf(x)
    m, n = shape[-2:]
    k = min(m, n)
    q = linalg.householder_product(a[..., :k], tau)
    r = a[..., :k, :].triu()
    np.testing.assert_allclose((q @ r).numpy(), x.numpy(), atol=1e-13)
    np.testing.assert_allclose((q.mT @ q - torch.eye(k)).numpy(), 0, atol=1e-13)
    np.testing.assert_allclose(
        torch.ormqr(a, tau, x, transpose=True)[..., :k, :].numpy(), r.numpy(), atol=1e-13
    )
    np.testing.assert_allclose(
        torch.ormqr(a, tau, x.mT, left=False)[..., :k].numpy(), r.mT.numpy(), atol=1e-13
    )


def test_ldl_packs_as_lapack_does() -> None:
    a = torch.tensor([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]], dtype=torch.float64)
    ld, pivots = linalg.ldl_factor(a)
    np.testing.assert_allclose(ld.numpy(), [[0, 0, 0], [2, 0, 0], [1.5, 0.5, -3]], atol=1e-15)
    assert pivots.tolist() == [-3, -3, 3]
    ld, pivots = linalg.ldl_factor(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))
    assert (ld.tolist(), pivots.tolist()) == ([[4, 0], [0.5, 2]], [1, 2])


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_ldl_solves_indefinite_systems(n: int) -> None:
    a = randn(3, n, n, seed=n)
    a = a + a.mT
    a[0].diagonal().zero_()
    if n == 1:
        a[0] = 2
    b = randn(n, 2, seed=1)
    ld, pivots, info = linalg.ldl_factor_ex(a)
    assert info.tolist() == [0, 0, 0]
    x = linalg.ldl_solve(ld, pivots, b)
    np.testing.assert_allclose(
        x.numpy(), np.linalg.solve(a.numpy(), b.expand(3, n, 2).numpy()), rtol=1e-8
    )


def test_ldl_of_singular_and_empty_matrices() -> None:
    ld, pivots, info = linalg.ldl_factor_ex(torch.zeros(3, 3))
    assert (info, pivots.tolist()) == (1, [1, 2, 3])
    for factor in (linalg.ldl_factor, lambda z: linalg.ldl_factor_ex(z, check_errors=True)):
        with pytest.raises(RuntimeError, match="zero"):
            factor(torch.zeros(3, 3))
    ld, pivots = linalg.ldl_factor(torch.zeros(2, 0, 0))
    assert (ld.shape, pivots.shape, pivots.dtype) == ((2, 0, 0), (2, 0), torch.int32)


@pytest.mark.parametrize("pivots", [[1, 4], [0, 1], [-1, 2], [1, -2], [-1, -2]])
def test_ldl_solve_refuses_other_pivots(pivots: list[int]) -> None:
    with pytest.raises(RuntimeError, match="pivots"):
        linalg.ldl_solve(torch.eye(2), torch.tensor(pivots), torch.ones(2, 1))


def test_ldl_solve_has_a_derivative_of_the_right_side_alone() -> None:
    ld = torch.eye(2, requires_grad=True)
    x = linalg.ldl_solve(ld, torch.tensor([1, 2]), torch.ones(2, 1))
    with pytest.raises(NotImplementedError, match="LD"):
        x.sum().backward()


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [9, 64, 65, 90, 161, 200])
def test_eig_of_sizes_that_are_computed_in_other_ways(
    n: int, dtype: torch.dtype, scale: float
) -> None:
    eps = torch.finfo(dtype).eps
    x = np.random.default_rng(n).standard_normal((n, n)) * scale
    a = torch.from_numpy(x).to(dtype)
    w, v = (t.numpy().astype(np.complex128) for t in linalg.eig(a))
    exact = a.numpy().astype(np.float64)
    assert np.abs(exact @ v - v * w).max() < 30 * n**0.5 * eps * scale * n**0.5
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1, atol=10 * eps)
    # Eigenvalues alone are those that come with vectors, and NumPy's in float64.
    alone = linalg.eigvals(a).numpy().astype(np.complex128)
    want = np.linalg.eigvals(exact)
    for got in (w, alone):
        apart = np.abs(got[:, None] - want).min(1).max()
        assert apart < 2000 * eps * scale * n**0.5
    assert abs(w.sum() - np.trace(exact)) < 100 * n * eps * scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eig_of_large_matrices_with_equal_values_and_zeros(dtype: torch.dtype) -> None:
    n = 80
    jordan = torch.diag(torch.ones(n - 1, dtype=dtype), 1) + 2 * torch.eye(n, dtype=dtype)
    w, v = linalg.eig(jordan)
    assert torch.isfinite(torch.view_as_real(v)).all()
    np.testing.assert_allclose(w.numpy(), 2)
    for known in (torch.zeros(n, n, dtype=dtype), torch.eye(n, dtype=dtype)):
        np.testing.assert_array_equal(linalg.eigvals(known).numpy(), known.diagonal().numpy())
    # A rotation of n places has the roots of one.
    turn = torch.eye(n, dtype=dtype).roll(1, 0)
    angles = np.sort((np.angle(linalg.eigvals(turn).numpy()) + 0.01) % (2 * np.pi)) - 0.01
    bound = 100 * torch.finfo(dtype).eps
    assert np.abs(angles - 2 * np.pi * np.arange(n) / n).max() < bound


# Matrices, whether they are Hermitian, and what PyTorch 2.13 gives: LD, pivots, and the solutions
# for the right side.
RIGHT = [1 + 2j, 3, -1j, 2]
LDL = [
    (
        [[-8 + 2j, -5 + 5j, 5], [-5 + 5j, 8 - 8j, -4 + 1j], [5, -4 + 1j, 8 + 4j]],
        False,
        [
            [-8 + 2j, 0, 0],
            [0.7352941176470589 - 0.4411764705882353j, 9.470588235294118 - 13.882352941176471j, 0],
            [
                -0.5882352941176471 - 0.14705882352941177j,
                -0.41501770464486565 - 0.2698396167465112j,
                6.890231201832951 + 3.99437617163091j,
            ],
        ],
        [1, 2, 3],
        [
            -0.11602179102811229 - 0.23491687162798947j,
            0.16721560179818673 + 0.053787980783439354j,
            0.14140196828545065 - 0.042885899208285574j,
        ],
    ),
    (
        [[0, 6 - 3j, -5 - 2j], [6 + 3j, 1, 2 + 1j], [-5 + 2j, 2 - 1j, 0]],
        True,
        [
            [0, 0, 0],
            [6 + 3j, 1, 0],
            [
                0.4444444444444445 - 0.044444444444444446j,
                -0.5333333333333334 + 0.6j,
                3.9777777777777783,
            ],
        ],
        [-2, -2, 3],
        [
            0.2178770949720671 + 0.1508379888268156j,
            0.6927374301675977 + 0.005586592178770944j,
            0.2681564245810056 - 0.9162011173184356j,
        ],
    ),
    (
        [
            [0, 1 - 5j, -6 - 7j, 6 - 2j],
            [1 + 5j, 1, -3 - 2j, 3 + 3j],
            [-6 + 7j, -3 + 2j, 0, 5 + 3j],
            [6 + 2j, 3 - 3j, 5 - 3j, -3],
        ],
        True,
        [
            [0, 0, 0, 0],
            [-6 + 7j, 0, 0, 0],
            [
                0.3764705882352941 - 0.10588235294117647j,
                0.3411764705882353 - 0.4352941176470588j,
                1.3058823529411763,
                0,
            ],
            [
                -0.10588235294117643 + 0.6235294117647059j,
                -0.2588235294117647 - 0.6352941176470588j,
                -2.0588235294117645 - 5.541176470588235j,
                -4.223529411764707,
            ],
        ],
        [-3, -3, -4, -4],
        [
            0.09217795870892696 - 0.38964815353300375j,
            0.18610061064262873 + 0.5484152369874963j,
            -0.365804012794417 - 0.21779587089270136j,
            -0.31549869148008136 - 0.3527188136086071j,
        ],
    ),
]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("case", range(len(LDL)))
def test_complex_ldl_is_that_of_lapack(case: int, dtype: torch.dtype) -> None:
    rows, hermitian, packed, rows_exchanged, solution = LDL[case]
    a = torch.tensor(rows, dtype=dtype)
    limit = 50 * torch.finfo(dtype).eps
    ld, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    assert pivots.tolist() == rows_exchanged
    np.testing.assert_allclose(ld.numpy(), np.array(packed), rtol=limit, atol=limit)
    b = torch.tensor(RIGHT[: len(rows)], dtype=dtype)[:, None]
    x = linalg.ldl_solve(ld, pivots, b, hermitian=hermitian)
    np.testing.assert_allclose(x.numpy()[:, 0], np.array(solution), rtol=limit, atol=limit)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_complex_ldl_solves_systems(n: int, hermitian: bool) -> None:
    a = torch.complex(randn(3, n, n, seed=n), randn(3, n, n, seed=n + 1))
    a = a + (a.mH if hermitian else a.mT)
    a[0].diagonal()[: n // 2].zero_()
    # What is not read: the other triangle, and imaginary parts of a Hermitian matrix's diagonal.
    read = a.tril() + 9 * torch.ones(n, n).triu(1)
    if hermitian:
        read = read + 5j * torch.eye(n)
    ld, pivots, info = linalg.ldl_factor_ex(read, hermitian=hermitian)
    assert info.tolist() == [0, 0, 0] and (ld.triu(1) == 0).all()
    b = torch.complex(randn(n, 2, seed=1), randn(n, 2, seed=2)).requires_grad_()
    x = linalg.ldl_solve(ld, pivots, b, hermitian=hermitian)
    want = np.linalg.solve(a.numpy(), b.detach().expand(3, n, 2).numpy())
    np.testing.assert_allclose(x.detach().numpy(), want, rtol=1e-8)
    # The gradient of real(sum(x w)) by b is the solution of A* g = conj(w).
    w = torch.complex(randn(3, n, 2, seed=3), randn(3, n, 2, seed=4))
    (x * w).real.sum().backward()
    turned = a.numpy().conj().swapaxes(-1, -2)
    slope = np.linalg.solve(turned, w.numpy().conj()).sum(0)
    np.testing.assert_allclose(b.grad.numpy(), slope, rtol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("p", [None, 2, -2, "nuc", 1, -1, torch.inf, -torch.inf, "fro"])
def test_condition_of_matrices_with_infinities(p: object, dtype: torch.dtype) -> None:
    # As PyTorch 2.13 has it: NaN where singular values are in it, else infinite.
    a = torch.stack(
        [torch.eye(2), torch.tensor([[1.0, torch.inf], [0.0, 1.0]]), torch.full((2, 2), torch.inf)]
    )
    found = linalg.cond(a.to(dtype), p)
    size = {"fro": 2.0, "nuc": 4.0}.get(p, 1.0) if isinstance(p, str) else 1.0
    lost = torch.nan if p in (None, 2, -2, "nuc") else torch.inf
    np.testing.assert_allclose(found.numpy(), [size, lost, lost], rtol=1e-6)
    a[1, 0, 1] = torch.nan
    if p in (None, 2, -2, "nuc"):
        with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\): .* non-finite"):
            linalg.cond(a.to(dtype), p)
    else:
        assert linalg.cond(a.to(dtype), p).tolist()[1:] == [torch.inf, torch.inf]
    if dtype == torch.float64:
        for order in (2, -2, "nuc"):
            assert linalg.matrix_norm(a[2], order).isnan()


def test_gradient_of_repeated_eigenvalues_keeps_their_sum() -> None:
    # Which vectors belong to equal eigenvalues is open; their projection is not.
    x = torch.ones(5, 5, dtype=torch.float64, requires_grad=True)
    for uplo in ("U", "L"):
        values = torch.linalg.eigvalsh(x, UPLO=uplo)
        (g,) = torch.autograd.grad(values[:4].sum(), x)
        torch.testing.assert_close(g, torch.eye(5, dtype=torch.float64) - 0.2)
