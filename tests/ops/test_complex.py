"""Complex numbers: their parts as views, arithmetic with Python's, products, gradients."""

from typing import Any

import child
import numpy as np
import pytest

import pytensorlib as torch

A = np.array([[1 + 2j, 3 - 1j], [0.5j, 2]], dtype=np.complex128)
B = np.array([[1j, 2.0], [3, 1 - 1j]], dtype=np.complex128)


def t(array, grad=False):
    return torch.from_numpy(array.copy()).requires_grad_(grad)


def close(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12, atol=1e-12)


def test_every_pointwise_function_writes_real_results_to_complex_out():
    x = torch.tensor([0.25, 0.5])
    count = 0
    for name in dir(torch):
        function = getattr(torch, name)
        if type(function).__name__ != "builtin" or name.endswith("_"):
            continue
        for args in ((x,), (x, x)):
            try:
                torch.manual_seed(0)
                want = function(*args)
                assert isinstance(want, torch.Tensor)
                assert want.shape == x.shape
                assert not want.is_complex()
            except (AssertionError, TypeError, RuntimeError, ValueError, IndexError):
                continue
            out = torch.full((2,), 7.0, dtype=torch.complex64)
            try:
                torch.manual_seed(0)
                function(*args, out=out)
            except (TypeError, RuntimeError) as e:
                assert "panic" not in str(e)  # noqa: PT017
                continue
            assert torch.allclose(out.real, want.to(out.real.dtype), 0, 0, equal_nan=True), name
            assert not out.imag.any(), name
            count += 1
    assert count > 90  # without those that want an `out=` of their own type


def test_numbers_with_imaginary_parts_are_operands():
    x = torch.ones(2)
    assert (1j * x).tolist() == [1j, 1j]
    assert (x * 2j).dtype == torch.complex64
    assert (x + (1 + 2j)).tolist() == [2 + 2j] * 2
    assert (torch.ones(2, dtype=torch.float64) / 2j).dtype == torch.complex128
    assert (torch.tensor([1j, 2]) == 1j).tolist() == [True, False]
    assert torch.tensor(1 + 2j).item() == 1 + 2j
    assert complex(torch.tensor(1j)) == 1j
    assert torch.tensor(1j)
    assert float(torch.tensor(3 + 0j)) == 3
    with pytest.raises(RuntimeError, match="without overflow"):
        float(torch.tensor(1j))


def test_full_and_assignment_take_complex_numbers():
    assert torch.full((2,), 1j).dtype == torch.complex64
    z = torch.zeros(3, dtype=torch.complex64)
    z[0], z[1:2] = 2j, 1 - 1j
    assert z.tolist() == [2j, 1 - 1j, 0]
    assert torch.full_like(z, 3j).tolist() == z.new_full((3,), 3j).tolist() == [3j] * 3
    assert z.fill_(1 + 1j).tolist() == [1 + 1j] * 3
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((2,), 1j, dtype=torch.float32)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(2)[0] = 1j


def test_parts_are_views_through_which_gradients_pass():
    z = t(A)
    z.real.mul_(2)
    z.imag = torch.zeros(2, 2, dtype=torch.float64)
    close(z, 2 * A.real)
    pairs = torch.view_as_real(t(A))
    close(pairs, np.stack([A.real, A.imag], -1))
    close(torch.view_as_complex(pairs), A)

    z = t(A, grad=True)
    (z.real**2 * z.imag).sum().backward()
    close(z.grad, 2 * A.real * A.imag + 1j * A.real**2)


def test_in_place_change_of_a_part_reaches_the_gradient_of_the_whole():
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    w = z * 1
    w.real.mul_(3)
    w.imag.add_(w.real)
    # |w|^2 = (3 a)^2 + (b + 3 a)^2
    (w * w.conj()).real.sum().backward()
    assert z.grad.tolist() == [18 + 30 + 10j, 54 + 48 + 16j]

    r = torch.tensor([[1.0, 2], [3, 4]], requires_grad=True)
    w = r * 1
    torch.view_as_complex(w).mul_(1j)
    assert w.tolist() == [[-2, 1], [-4, 3]]
    (w * torch.tensor([[1.0, 2], [3, 5]])).sum().backward()
    assert r.grad.tolist() == [[2, -1], [5, -3]]


def test_modulus_angle_polar_and_complex_agree_with_numpy():
    close(t(A).abs(), np.abs(A))
    close(t(A).angle(), np.angle(A))
    close(torch.polar(t(np.abs(A)), t(np.angle(A))), A)
    close(torch.complex(t(A.real), t(A.imag)), A)
    with pytest.raises(RuntimeError, match="Float"):
        torch.complex(torch.ones(1), torch.ones(1, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_products_agree_with_numpy(dtype):
    a, b = t(A).to(dtype), t(B).to(dtype)
    tolerance = {"rtol": 1e-5 if dtype == torch.complex64 else 1e-12}
    cases = {
        "matmul": (a @ b, A @ B),
        "transposed": (a.T @ b, A.T @ B),
        "mv": (a @ b[0], A @ B[0]),
        "bmm": (torch.bmm(a[None], b[None])[0], A @ B),
        "dot": (torch.dot(a[0], b[0]), A[0] @ B[0]),
        "vdot": (torch.vdot(a[0], b[0]), np.vdot(A[0], B[0])),
        "addmm": (torch.addmm(b[0], a, b, beta=2, alpha=3), 2 * B[0] + 3 * A @ B),
        "einsum": (torch.einsum("ij,kj->ik", a, b), A @ B.T),
    }
    for name, (got, want) in cases.items():
        np.testing.assert_allclose(got.numpy(), want, err_msg=name, **tolerance)


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
def test_reductions_agree_with_numpy(dim):
    z = np.array([[1 + 2j, 3 - 1j, 0.5], [0.5j, 2, -1 - 1j]])
    x, args = t(z), () if dim is None else (dim,)
    close(x.sum(*args), z.sum(dim))
    close(x.mean(*args), z.mean(dim))
    close(x.var(*args, correction=0) if args else x.var(correction=0), z.var(dim))
    close(x.std(*args, correction=1) if args else x.std(), z.std(dim, ddof=1))
    if not isinstance(dim, tuple):
        close(x.prod(*args), z.prod(dim))
        close(x.cumsum(dim or 0), z.cumsum(dim or 0))
    flat = z.reshape(-1) if dim is None else z
    for p in (1, 2, 3, np.inf):
        want = (np.abs(flat) ** p).sum(dim) ** (1 / p) if p < np.inf else np.abs(flat).max(dim)
        close(torch.linalg.vector_norm(x, p, dim), want)
    assert torch.ones(3, 0, dtype=torch.complex64).prod(1).tolist() == [1, 1, 1]


def test_truth_looks_at_both_parts():
    z = torch.tensor([0, 1j, 1, 0])
    assert z.bool().tolist() == [False, True, True, False]
    assert z.any()
    assert not z.all()
    assert z[1:3].all()
    assert z.nonzero().tolist() == [[1], [2]]
    assert torch.count_nonzero(z) == 2


def test_elements_are_written_where_indices_say():
    z = np.arange(12.0).reshape(3, 4) * (1 + 2j)
    x, v = t(z), np.array([5j, 6, 7 - 1j, 8])
    w = z.copy()
    w[[2, 0]] = v
    y = x.clone()
    y[torch.tensor([2, 0])] = t(v)
    close(y, w)
    w[w == v[1]] = 9j
    y[y == 6] = 9j
    close(y, w)
    close(y.masked_fill(y == 9j, 1 - 1j), np.where(w == 9j, 1 - 1j, w))
    rows = torch.tensor([[0, 1, 2, 0]])
    close(x.scatter(0, rows, t(v)[None])[[0, 1, 2, 0], range(4)], v)
    close(x.scatter_add(0, rows, t(v)[None])[1, 1], z[1, 1] + v[1])
    close(
        x.index_add(1, torch.tensor([0, 0]), x[:, 2:]), z + z[:, 2:].sum(1)[:, None] * [1, 0, 0, 0]
    )
    close(torch.nn.functional.pad(x, (1, 0), value=0)[:, 1:], z)


def test_powers_agree_with_numpy():
    for e in (2, 3, -1, 0.5, 1.7, 1j, 2 - 1j):
        close(t(A) ** e, A**e)
    close(2j ** t(B), 2j**B)
    close(t(A) ** t(B), A**B)


def test_adjoint_is_the_conjugate_transpose():
    close(t(A).mH, A.conj().T)
    close(t(A).H, A.conj().T)
    close(t(A).adjoint(), A.conj().T)
    close(t(A).mT, A.T)


def test_conversion_to_real_warns_that_imaginary_parts_are_dropped():
    code = """
import warnings
import pytensorlib as torch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.tensor([1j]).bool()
    assert not caught
    assert torch.tensor([2 + 1j]).float().tolist() == [2]
    torch.ones(1).copy_(torch.tensor([1j]))
    assert [str(w.message)[:22] for w in caught] == ["Casting complex values"]
"""
    child.run(code)


def real_gradient(f, arrays, i):
    """dL/dRe + i dL/dIm by central differences, PyTorch's convention."""
    out = np.zeros_like(arrays[i])
    for at in np.ndindex(arrays[i].shape):
        for step in (1e-6, 1e-6j):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[i][at] += sign * step
                ends.append(f(*map(t, moved)).item())
            out[at] += step / 1e-6 * (ends[0] - ends[1]) / 2e-6
    return out


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: (a @ b).abs().sum(),
        lambda a, b: torch.addmm(a, a, b).real.pow(2).sum(),
        lambda a, b: (a / b).imag.sum(),
        lambda a, b: (a * b.conj()).exp().abs().sum(),
        lambda a, b: torch.vdot(a[0], b[1]).abs(),
        lambda a, b: (a.angle() * b.real).sum(),
        lambda a, b: torch.view_as_real(a * b).pow(3).sum(),
        lambda a, b: (a.prod() * b.prod(0).sum()).abs(),
        lambda a, b: a.var() + b.std(0).sum(),
        lambda a, b: torch.linalg.vector_norm(a @ b.mH),
        lambda a, b: (a.cumsum(1) * b.mean()).imag.sum(),
        lambda a, b: a.index_put((torch.tensor([1]),), b[0]).abs().pow(2).sum(),
        lambda a, b: a.scatter_add(0, torch.tensor([[1, 1]]), b).abs().pow(2).sum(),
        lambda a, b: a.masked_fill(b.real > 1, 2j).abs().pow(2).sum(),
    ],
)
def test_gradients_are_those_of_the_real_and_imaginary_parts(f):
    a, b = t(A, grad=True), t(B, grad=True)
    f(a, b).backward()
    for i, x in enumerate((a, b)):
        if x.grad is None:
            continue
        np.testing.assert_allclose(x.grad.numpy(), real_gradient(f, [A, B], i), atol=1e-6)


def test_covariance_and_inner_products_conjugate_as_numpy_does():
    close(torch.cov(t(A)), np.cov(A))
    close(torch.linalg.vecdot(t(A), t(B)), (A.conj() * B).sum(-1))


def test_complex_numbers_are_refused_where_they_mean_nothing():
    x = torch.ones(2)
    for call in (
        lambda: x.clamp(1j),
        lambda: x.norm(1j),
        lambda: torch.add(x, x, alpha=1j),
        lambda: torch.nn.functional.threshold(x, 1j, 0),
    ):
        with pytest.raises((TypeError, RuntimeError), match="complex|imaginary"):
            call()
    with pytest.raises(RuntimeError, match="In-place abs"):
        t(A).abs_()


def test_finite_and_infinite_ask_each_part():
    x = torch.tensor(
        [complex(1.7e308, 1.7e308), complex(np.inf, np.nan), complex(1, np.nan)],
        dtype=torch.complex128,
    )
    assert torch.isfinite(x).tolist() == [True, False, False]
    assert torch.isinf(x).tolist() == [False, True, False]


def test_silu_of_complex_numbers_has_a_value_and_no_derivative():
    z = torch.tensor([1 + 2j, -0.5 + 0.25j], requires_grad=True)
    want = z.detach().numpy() / (1 + np.exp(-z.detach().numpy().astype(complex)))
    y = torch.nn.functional.silu(z)
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="complex"):
        y.backward(torch.ones_like(y.detach()))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_convolutions_are_sums_of_products(dtype):
    rng = np.random.default_rng(8)
    make = lambda *s: (rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(dtype)  # noqa: E731
    x, w, b = make(2, 4, 9), make(6, 2, 3), make(6)
    expected = np.zeros((2, 6, 4), "complex128")
    for o in range(6):
        for i in range(4):
            window = x[:, 2 * (o // 3) : 2 * (o // 3) + 2, 2 * i : 2 * i + 3]
            expected[:, o, i] = (window * w[o]).sum((1, 2)) + b[o]
    found = torch.conv1d(t(x), t(w), t(b), stride=2, groups=2)
    np.testing.assert_allclose(
        found.numpy(), expected, atol=1e-5 if dtype == "complex64" else 1e-12
    )
    leaves = [t(v.astype("complex128")).requires_grad_() for v in (x, w, b)]
    F = torch.nn.functional
    assert torch.autograd.gradcheck(lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2), leaves)
    up = lambda x, w: F.conv_transpose1d(x, w.mT.reshape(4, 3, 3), stride=2)  # noqa: E731
    assert torch.autograd.gradcheck(up, leaves[:2])
    with pytest.raises(RuntimeError, match="one type"):
        torch.conv1d(t(x), t(w).real)


# ---- factors with an imaginary part -------------------------------------------------------------

FACTOR, OTHER = 0.5 - 2j, 1j
Z = np.array([[1 + 2j, 3 - 1j], [0.5j, 2]])
V = np.array([1j, 2 + 1j])
I = np.array([1, 0])  # noqa: E741
# What is called with tensors of Z, V and I, and what it means.
FACTORS: dict[str, tuple[Any, Any]] = {
    "add": (lambda z, v, i: torch.add(z, v, alpha=FACTOR), Z + FACTOR * V),
    "add of a number": (lambda z, v, i: torch.add(z, 2, alpha=FACTOR), Z + FACTOR * 2),
    "add of real numbers": (
        lambda z, v, i: torch.add(z, v.real, alpha=FACTOR),
        Z + FACTOR * V.real,
    ),
    "add_": (lambda z, v, i: z.clone().add_(z, alpha=FACTOR), Z + FACTOR * Z),
    "sub": (lambda z, v, i: torch.sub(z, v, alpha=FACTOR), Z - FACTOR * V),
    "rsub": (lambda z, v, i: torch.rsub(z, v, alpha=FACTOR), V - FACTOR * Z),
    "addcmul": (lambda z, v, i: torch.addcmul(v, z, z, value=FACTOR), V + FACTOR * Z * Z),
    "addcdiv": (lambda z, v, i: torch.addcdiv(v, z, z + 5, value=FACTOR), V + FACTOR * Z / (Z + 5)),
    "addmm": (
        lambda z, v, i: torch.addmm(v, z, z, beta=FACTOR, alpha=OTHER),
        FACTOR * V + OTHER * Z @ Z,
    ),
    "addmm_": (
        lambda z, v, i: z.clone().addmm_(z, z, beta=FACTOR, alpha=OTHER),
        FACTOR * Z + OTHER * Z @ Z,
    ),
    "addmm out": (
        lambda z, v, i: torch.addmm(v, z, z, alpha=OTHER, out=torch.empty_like(z)),
        V + OTHER * Z @ Z,
    ),
    "addmm without self": (
        lambda z, v, i: torch.addmm(v * float("nan"), z, z, beta=0j, alpha=OTHER),
        OTHER * Z @ Z,
    ),
    "addmv": (
        lambda z, v, i: torch.addmv(v, z, v, beta=FACTOR, alpha=OTHER),
        FACTOR * V + OTHER * Z @ V,
    ),
    "addr": (
        lambda z, v, i: torch.addr(z, v, v, beta=FACTOR, alpha=OTHER),
        FACTOR * Z + OTHER * np.outer(V, V),
    ),
    "baddbmm": (
        lambda z, v, i: torch.baddbmm(z, z[None], z[None], beta=FACTOR, alpha=OTHER)[0],
        FACTOR * Z + OTHER * Z @ Z,
    ),
    "addbmm": (
        lambda z, v, i: torch.addbmm(z, torch.stack([z, z]), torch.stack([z, z]), alpha=OTHER),
        Z + 2 * OTHER * Z @ Z,
    ),
    "index_add": (lambda z, v, i: z.index_add(0, i, z, alpha=FACTOR), Z + FACTOR * Z[I]),
    "scatter": (
        lambda z, v, i: z.scatter(1, i[:, None], FACTOR),
        [[Z[0, 0], FACTOR], [FACTOR, Z[1, 1]]],
    ),
    "scatter times": (
        lambda z, v, i: z.scatter(1, i[:, None], FACTOR, reduce="multiply"),
        [[Z[0, 0], FACTOR * Z[0, 1]], [FACTOR * Z[1, 0], Z[1, 1]]],
    ),
    "constant_pad_nd": (
        lambda z, v, i: torch.constant_pad_nd(v, (1, 2), FACTOR),
        np.pad(V, (1, 2), constant_values=FACTOR),
    ),
    "float_power": (lambda z, v, i: torch.float_power(z, FACTOR), Z**FACTOR),
    "float_power of a number": (lambda z, v, i: torch.float_power(FACTOR, z), FACTOR**Z),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", FACTORS)
def test_numbers_with_an_imaginary_part(name: str, dtype: Any) -> None:
    call, want = FACTORS[name]
    got = call(torch.tensor(Z, dtype=dtype), torch.tensor(V, dtype=dtype), torch.tensor(I))
    assert got.dtype == (torch.complex128 if name.startswith("float_power") else dtype)
    near = 1e-5 if dtype == torch.complex64 else 1e-12
    np.testing.assert_allclose(got.numpy(), want, near, near)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
@pytest.mark.parametrize(
    "name", [n for n in FACTORS if n != "scatter times" and not n.startswith("float_power")]
)
def test_numbers_with_an_imaginary_part_on_a_gpu(name: str, no_fallback: None) -> None:
    call, want = FACTORS[name]
    z, v = (torch.tensor(x, dtype=torch.complex64, device="wgpu") for x in (Z, V))
    got = call(z, v, torch.tensor(I, device="wgpu"))
    np.testing.assert_allclose(got.cpu().numpy(), want, 1e-5, 1e-5)


def test_a_complex_factor_has_its_conjugate_in_the_gradient() -> None:
    """The gradient of Re(c y) by y is the conjugate of c."""
    x, y = (torch.zeros(2, dtype=torch.complex64, requires_grad=True) for _ in range(2))
    torch.add(x, y, alpha=FACTOR).real.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])
    np.testing.assert_array_equal(y.grad.numpy(), [FACTOR.conjugate()] * 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.add(x, x, alpha=FACTOR),
        lambda x: torch.addmm(x, x, x, beta=FACTOR),
        lambda x: torch.addcmul(x, x, x, value=FACTOR),
        lambda x: x.index_add(0, torch.tensor([0, 1]), x, alpha=FACTOR),
        lambda x: x.scatter(0, torch.tensor([[0, 1]]), FACTOR),
        lambda x: torch.constant_pad_nd(x, (1, 1), FACTOR),
        lambda x: torch.linspace(0, FACTOR, 3, dtype=torch.float32),
    ],
)
def test_real_numbers_take_no_complex_factor(call: Any) -> None:
    with pytest.raises(RuntimeError, match=r"complex|Complex|without overflow"):
        call(torch.ones(2, 2))


def test_complex_lines() -> None:
    got = torch.linspace(1j, 2 - 3j, 7)
    np.testing.assert_allclose(got.numpy(), np.linspace(1j, 2 - 3j, 7), 1e-6)
    assert got.dtype == torch.complex64
    wide = torch.linspace(1, 2, 3, dtype=torch.complex128)
    np.testing.assert_array_equal(wide.numpy(), [1, 1.5, 2])
    for base in (10.0, 0.5, -2.0):
        got = torch.logspace(1j, 2 - 3j, 5, base, dtype=torch.complex128)
        want = np.power(complex(base), np.linspace(1j, 2 - 3j, 5))
        np.testing.assert_allclose(got.numpy(), want, 1e-12)
    np.testing.assert_allclose(torch.logspace(0, 2, 3, dtype=torch.complex64).numpy(), [1, 10, 100])
    assert torch.linspace(0, 1j, 4, device="meta").dtype == torch.complex64


@pytest.mark.parametrize("device", ["cpu", "wgpu"])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_logcumsumexp_of_complex_numbers_is_pytorchs(dtype, device) -> None:
    if device == "wgpu" and not torch.wgpu.is_available():
        pytest.skip("no GPU adapter")
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([1 + 2j, -3 + 1j, 0.5 - 7j, complex(-inf, 0)], dtype=dtype, device=device)
    y = x.requires_grad_().logcumsumexp(0)
    y.backward(torch.ones_like(y))
    # Recorded from PyTorch 2.13, to four decimals.
    last = 0.3627 + 1.4742j
    want = torch.tensor([1 + 2j, 1.01 + 1.9847j, last, last], dtype=dtype)
    torch.testing.assert_close(y.detach().cpu(), want, rtol=1e-4, atol=1e-4)
    want = torch.tensor([5.2618 - 1.9139j, 0.0717 + 0.0467j, -1.3335 + 1.8672j, 0], dtype=dtype)
    torch.testing.assert_close(x.grad.cpu(), want, rtol=1e-4, atol=1e-4)
    ends = torch.tensor([complex(-inf, 0), 1 + 1j, complex(inf, 0), 2], dtype=dtype, device=device)
    assert ends.logcumsumexp(0).cpu().tolist() == [-inf, 1 + 1j, inf, inf]
    lost = torch.tensor([1 + 1j, complex(1, nan), 2], dtype=dtype, device=device).logcumsumexp(0)
    assert lost.isnan().cpu().tolist() == [False, True, True]
    # Lines of any length, and a derivative that has one.
    long = torch.randn(3, 70, dtype=torch.complex128).to(device, dtype)
    near = {torch.complex64: 1e-4, torch.complex128: 1e-10}[dtype]
    for dim, z in ((1, long), (0, long.mT)):
        sums = z.exp().cumsum(dim)
        got = z.logcumsumexp(dim).exp()
        torch.testing.assert_close(got, sums, rtol=near, atol=near)
    if dtype == torch.complex128 and device == "cpu":
        z = torch.randn(2, 5, dtype=dtype, requires_grad=True)
        assert torch.autograd.gradcheck(lambda t: t.logcumsumexp(1), (z,))
        assert torch.autograd.gradgradcheck(lambda t: t.logcumsumexp(1), (z,))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_sums_of_exponentials_of_nothing_are_nothing(dtype) -> None:
    inf = float("inf")
    x = torch.tensor(
        [complex(-inf, 4), complex(-inf, 1), 1 + 2j, complex(-inf, 3), 1j], dtype=dtype
    )
    # Recorded of PyTorch 2.13: what is nothing has no angle.
    got = x.logcumsumexp(0)
    assert got[:4].tolist() == [complex(-inf, 0), complex(-inf, 0), 1 + 2j, 1 + 2j]
    assert abs(got[4].item() - (1.213570 + 1.747289j)) < 1e-5
    pair = (
        torch.tensor([complex(-inf, 4)], dtype=dtype),
        torch.tensor([complex(-inf, 1)], dtype=dtype),
    )
    assert torch.logaddexp(*pair).tolist() == [complex(-inf, 1)]
    one = torch.tensor([1 + 1j], dtype=dtype)
    assert (
        torch.logaddexp(pair[0], one).tolist() == torch.logaddexp(one, pair[0]).tolist() == [1 + 1j]
    )


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("n", [1, 16])
def test_functions_of_complex_ends_are_those_of_their_limits(dtype, n) -> None:
    nan = float("nan")

    def at(z: complex) -> torch.Tensor:
        return torch.tensor([z] * n, dtype=dtype)

    got = torch.acosh(at(complex(0, nan)))
    assert got.real.isnan().all()
    np.testing.assert_allclose(got.imag.numpy(), np.pi / 2, rtol=1e-6)
    # e^800 overflows, and the logistic function goes to nothing.
    for z in (-800 - 2j, -800 + 2j, complex(-float("inf"), 1)):
        assert torch.sigmoid(at(z)).tolist() == [0j] * n
    for z in (-3 + 2j, 3 - 2j, -40 + 1j, 0.5j, 40 - 1j):
        np.testing.assert_allclose(torch.sigmoid(at(z)).numpy(), 1 / (1 + np.exp(-z)), rtol=2e-6)


def test_deviation_of_equal_complex_numbers_has_a_gradient_of_zero() -> None:
    x = torch.tensor([[1 + 2j, 1 + 2j], [1, 2j]], dtype=torch.complex128, requires_grad=True)
    std = torch.std(x, 1)
    assert std.grad_fn is not None and std.grad_fn.name() == "StdBackward0"
    (g,) = torch.autograd.grad(std.sum(), x)
    # Recorded of PyTorch 2.13.
    want = [[0, 0], [0.316228 - 0.632456j, -0.316228 + 0.632456j]]
    np.testing.assert_allclose(g.numpy(), want, atol=1e-6)
    std, mean = torch.std_mean(x, 1)
    (g,) = torch.autograd.grad(std.sum() + mean.sum().real, x)
    np.testing.assert_allclose(g.numpy(), np.array(want) + 0.5, atol=1e-6)
    np.testing.assert_allclose(std.detach().numpy(), np.std(x.detach().numpy(), 1, ddof=1))
    y = torch.randn(3, 4, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: (t.std(1), t.var(0)), (y,))
    assert torch.autograd.gradgradcheck(lambda t: (t.std(1), t.var(0)), (y,))
    assert torch.var(y).dtype == torch.float64
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.empty(0, dtype=torch.complex64).var().isnan()
