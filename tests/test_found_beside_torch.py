"""Cases in which random calls differed from PyTorch 2.13, whose answers they expect."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

inf, nan = float("inf"), float("nan")


# Statistics that share memory


def test_instance_norm_with_one_tensor_for_both_statistics_writes_the_variance() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    for use in (torch.float32, torch.float64):
        both = torch.tensor([1.0, 2.0, 3.0], dtype=use)
        old = both.clone()
        F.instance_norm(x.to(use), both, both, momentum=0.25, use_input_stats=True)
        variance = x.to(use).var(2, unbiased=True).mean(0)
        torch.testing.assert_close(both, 0.75 * old + 0.25 * variance)


def test_instance_norm_with_overlapping_statistics_computes_from_what_was() -> None:
    memory = torch.tensor([1.0, 2.0, 3.0, 4.0])
    mean, variance = memory[:3], memory[1:]
    x = torch.arange(24.0).reshape(2, 3, 4)
    want = 0.5 * memory[1:].clone() + 0.5 * x.var(2, unbiased=True).mean(0)
    F.instance_norm(x, mean, variance, momentum=0.5, use_input_stats=True)
    torch.testing.assert_close(memory[1:], want)


# Numbers


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16])
def test_logit_with_eps_nan_bounds_nothing(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1], dtype=dtype)
    assert torch.logit(x, nan).tolist() == [-inf, inf]
    y = torch.tensor([0.25], requires_grad=True)
    torch.logit(y, nan).backward()
    assert y.grad is not None
    assert y.grad.item() == pytest.approx(1 / (0.25 * 0.75))


def test_functions_of_integers_are_as_exact_as_of_their_float32() -> None:
    # SciPy's, in float64; PyTorch's are wrong in the second digit.
    got = torch.special.airy_ai(torch.tensor([-32768], dtype=torch.int16))
    assert got.item() == pytest.approx(-0.03453066, rel=1e-4)
    got = torch.special.bessel_y1(torch.tensor([1_000_000], dtype=torch.int32))
    assert got.item() == pytest.approx(-3.31043377e-04, rel=1e-4)


def test_correlation_of_large_integers_does_not_wrap() -> None:
    x = torch.tensor([[1, 2**63 - 1, 9], [50, 2, 5]])
    want = np.corrcoef(x.double().numpy())[0, 1]
    strided = torch.zeros(2, 6, dtype=torch.int64)[:, ::2].copy_(x)
    for t in (x, strided):
        assert torch.corrcoef(t)[0, 1].item() == pytest.approx(want, rel=1e-5)


def test_hardtanh_passes_the_gradient_of_nan_everywhere() -> None:
    # PyTorch's vector code stops it, its code for the last elements does not.
    x = torch.full((99,), nan, requires_grad=True)
    F.hardtanh(x).sum().backward()
    assert x.grad is not None
    assert x.grad.eq(1).all()


def test_incomplete_gamma_function_of_nan_is_nan() -> None:
    # PyTorch looks at the 0 first.
    for f in (torch.igamma, torch.igammac):
        assert f(torch.tensor(nan), torch.tensor(0)).isnan()
        assert f(torch.tensor(0.5), torch.tensor(nan)).isnan()


def test_margin_losses_of_nothing_are_defined() -> None:
    # PyTorch's are never written.
    x = torch.zeros(0, 5)
    for f, target in (
        (F.multilabel_margin_loss, torch.zeros(0, 5, dtype=torch.int64)),
        (F.multi_margin_loss, torch.zeros(0, dtype=torch.int64)),
    ):
        assert f(x, target).isnan()
        assert f(x, target, reduction="sum").item() == 0
        assert f(x, target, reduction="none").shape == (0,)


def test_gradient_of_repeated_eigenvalues_keeps_their_sum() -> None:
    # Which vectors belong to equal eigenvalues is open; their projection is not.
    x = torch.ones(5, 5, dtype=torch.float64, requires_grad=True)
    for uplo in ("U", "L"):
        values = torch.linalg.eigvalsh(x, UPLO=uplo)
        (g,) = torch.autograd.grad(values[:4].sum(), x)
        torch.testing.assert_close(g, torch.eye(5, dtype=torch.float64) - 0.2)


@pytest.mark.parametrize("sign", [1, -1])
def test_lp_pool_of_an_infinite_norm_is_an_extreme(sign: int) -> None:
    rng = np.random.default_rng(0)
    for n, pool in ((1, F.lp_pool1d), (2, F.lp_pool2d), (3, F.lp_pool3d)):
        x = rng.standard_normal((2, *(5,) * n))
        got = pool(torch.from_numpy(x), sign * inf, 2, stride=3, ceil_mode=True)
        for at in np.ndindex(2, *(2,) * n):
            window = np.abs(x[(at[0], *(slice(3 * i, 3 * i + 2) for i in at[1:]))])
            assert got[at].item() == (window.max() if sign > 0 else window.min())


# Complex numbers


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_nan_to_num_replaces_each_part(dtype: torch.dtype) -> None:
    top = torch.finfo(dtype).max
    x = torch.tensor([1 + 2j, complex(nan, 1), complex(inf, -inf), complex(0, nan)], dtype=dtype)
    assert torch.nan_to_num(x).tolist() == [1 + 2j, 1j, complex(top, -top), 0]
    want = [1 + 2j, 7 + 1j, 2 - 3j, 7j]
    assert torch.nan_to_num(x, nan=7.0, posinf=2.0, neginf=-3.0).tolist() == want
    out = torch.empty(0, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.nan_to_num(x, 7.0, 2.0, -3.0, out=out)
    assert out.tolist() == want
    assert x[::2].nan_to_num_(7.0, 2.0, -3.0).tolist() == want[::2]
    z = torch.tensor([1 + 2j, complex(nan, 1)], dtype=dtype, requires_grad=True)
    torch.nan_to_num(z).abs().sum().backward()
    assert z.grad is not None
    assert z.grad[0].item() == pytest.approx((1 + 2j) / math.sqrt(5), rel=1e-6)
    assert z.grad[1].item() == 0


def test_complex_ldexp_and_logaddexp_are_their_formulas() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2, 40)) + 1j * rng.uniform(-1, 1, (2, 40))).reshape(2, 40)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_allclose(torch.ldexp(x, y).numpy(), a * 2**b, rtol=1e-12)
    n = torch.arange(40) % 7 - 3
    np.testing.assert_allclose(torch.ldexp(x, n).numpy(), a * 2.0 ** n.numpy(), rtol=1e-12)
    want = np.log(np.exp(a) + np.exp(b))
    np.testing.assert_allclose(torch.logaddexp(x, y).numpy(), want, rtol=1e-12)
    big = torch.tensor([1000 + 1j, inf, -inf], dtype=torch.complex128)
    got = torch.logaddexp(big, big)
    assert got[0].item() == pytest.approx(1000 + math.log(2) + 1j)
    assert got[1:].tolist() == [inf, -inf]
    out = torch.empty(40, dtype=torch.complex128)
    torch.logaddexp(x, y, out=out)
    assert out.equal(torch.logaddexp(x, y))
    for f in (torch.ldexp, torch.logaddexp):
        inputs = [t[:4].clone().requires_grad_() for t in (x, y)]
        assert torch.autograd.gradcheck(f, inputs)
        assert torch.autograd.gradgradcheck(f, inputs)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_sinc_is_its_formula(dtype: torch.dtype) -> None:
    z = [0.3 + 0.2j, -1.5 + 1j, 2j, 0.01 - 0.01j, 0, 1]
    x = torch.tensor(z, dtype=dtype, requires_grad=dtype == torch.complex128)
    want = [np.sin(np.pi * v) / (np.pi * v) if v else 1 for v in z]
    rtol = 1e-5 if dtype == torch.complex64 else 1e-12
    np.testing.assert_allclose(torch.sinc(x).detach().numpy(), want, rtol=rtol, atol=rtol)
    if x.requires_grad:
        assert torch.autograd.gradcheck(torch.sinc, [x])
        assert torch.autograd.gradgradcheck(torch.sinc, [x])


# Gradients of gradients


@pytest.mark.parametrize("e", [1, 1.0, 2, -1, 0.5, 3])
def test_gradient_of_a_power_depends_on_its_base(e: float) -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad((x**e).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == pytest.approx([e * (e - 1) * v ** (e - 2) for v in (2.0, 3.0)], abs=1e-6)


def test_what_one_operator_computes_is_one_node() -> None:
    # PyTorch's has other names (RsubBackward1), two nodes for a reciprocal times a number, and
    # edges to nowhere for weights that were not given.
    x = torch.tensor([[2.0, 3.0]], requires_grad=True)
    for y, name, edges in (
        (2 - x, "SubBackward0", 2),
        (2 / x, "DivBackward0", 2),
        (F.layer_norm(x, (2,)), "NativeLayerNormBackward0", 1),
    ):
        node = y.grad_fn
        assert node is not None
        assert (node.name(), len(node.next_functions)) == (name, edges)
        assert node.next_functions[-1][0].variable is x


# Where results go


@pytest.mark.parametrize("given", [torch.float32, torch.uint8, torch.bool, torch.int64])
@pytest.mark.parametrize("to", [torch.uint8, torch.bool])
def test_any_and_all_write_bytes_and_bools(given: torch.dtype, to: torch.dtype) -> None:
    x = torch.tensor([[0.0, 0.5], [0.25, 2.0]]).mul(4).to(given)
    for f, want in ((torch.any, [1, 1]), (torch.all, [0, 1])):
        out = torch.full((2,), 3, dtype=torch.uint8).to(to)
        assert f(x, 0, out=out) is out
        assert out.dtype == to
        assert out.tolist() == want
        whole = torch.zeros((), dtype=to)
        f(x, out=whole)
        assert whole.item() == (max(want) if f is torch.any else min(want))
    half = torch.tensor([0.5, 0.25])  # no byte, but not zero
    assert torch.all(half, out=torch.zeros((), dtype=torch.uint8)).item() == 1
    for other in (torch.float32, torch.int64):
        with pytest.raises(RuntimeError, match="only supports bool tensor for result"):
            torch.any(x, out=torch.zeros((), dtype=other))


def test_out_whose_elements_share_memory_is_refused() -> None:
    x = torch.ones(1).as_strided((2, 2), (0, 0))
    index, five = torch.tensor([0]), torch.tensor(5.0)
    for out in (x, torch.zeros(1).expand(2, 2)):
        for write in (
            lambda o=out: torch.index_fill(x, 0, index, 5.0, out=o),
            lambda o=out: torch.masked_fill(x, x > 0, five, out=o),
            lambda o=out: torch.index_copy(x, 0, index, torch.ones(1, 2), out=o),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                write()
        assert out.unique().numel() == 1
    assert x.index_fill_(0, index, 5.0).tolist() == [[5, 5], [5, 5]]


# What is refused


def test_soft_margin_loss_of_a_larger_target_raises() -> None:
    for reduction in ("none", "sum", "mean"):
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            F.soft_margin_loss(torch.zeros(3), torch.ones(2, 3), reduction=reduction)
    got = F.soft_margin_loss(torch.zeros(2, 3), torch.ones(3), reduction="none")
    torch.testing.assert_close(got, torch.full((2, 3), math.log(2)))


def test_reflected_operator_without_its_operand_raises() -> None:
    # PyTorch's gives NotImplemented for any wrong call.
    for name in ("__radd__", "__rsub__", "__rtruediv__", "__rpow__"):
        with pytest.raises(TypeError, match="argument"):
            getattr(torch.ones(2), name)()


def test_label_smoothing_below_zero_raises() -> None:
    with pytest.raises(RuntimeError, match="label_smoothing must be between 0"):
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), label_smoothing=-1.0)


@pytest.mark.parametrize("pivots", [[1], [1, 2], [1, 2, 3, 3], []])
def test_lu_solve_with_too_many_or_too_few_pivots_raises(pivots: list[int]) -> None:
    at = torch.tensor(pivots, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="Number of pivots"):
        torch.linalg.lu_solve(torch.eye(3), at, torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="Number of pivots"):
        torch.lu_solve(torch.ones(3, 2), torch.eye(3), at)


def test_nuclear_norm_of_many_matrices_wants_its_dimensions() -> None:
    x = torch.ones(2, 2, 2)
    for f in (lambda: torch.norm(x, "nuc"), lambda: x.norm("nuc")):
        with pytest.raises(RuntimeError, match="dim must be a 2-tuple"):
            f()
    torch.testing.assert_close(torch.norm(x, "nuc", dim=(1, 2)), torch.tensor([2.0, 2.0]))


def test_conv_tbc_with_immense_padding_raises() -> None:
    x, w = torch.ones(5, 2, 3), torch.ones(3, 3, 4)
    for pad in (2**63 - 1, 2**62, -1):
        with pytest.raises(RuntimeError, match="overflow|negative padding"):
            torch.conv_tbc(x, w, torch.ones(4), pad)


def test_immense_sizes_neither_wrap_nor_panic() -> None:
    x = torch.zeros(4, 2, 3).log_softmax(2)
    most = torch.tensor([2**63 - 1, 2**63 - 1])
    for targets in (torch.ones(4, dtype=torch.int64), torch.ones(2, 2, dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="Expected tensor to have size"):
            F.ctc_loss(x, targets, torch.tensor([4, 4]), most)
    ones = torch.ones(1, 1, 5, 5)
    y = F.conv2d(ones, torch.ones(1, 1, 3, 3), stride=(2**62, 2), padding=1)
    assert y.tolist() == [[[[4, 6, 4]]]]


def test_cov_of_one_number_leaves_it_alone() -> None:
    # PyTorch subtracts the mean in its argument.
    x = torch.tensor(3.0)
    assert torch.cov(x, fweights=torch.tensor([2])).item() == 0
    assert x.item() == 3


LISTS: dict[str, Callable[[Any], Any]] = {
    "hstack": lambda x: torch.hstack(x, x),
    "vstack": lambda x: torch.vstack(x),
    "dstack": lambda x: torch.dstack(x, x),
    "column_stack": lambda x: torch.column_stack(x),
    "row_stack": lambda x: torch.row_stack(x, x),
    "multi_dot": lambda x: torch.linalg.multi_dot(x, x),
    "reshape": lambda x: torch.reshape(x, 4, 1),
    "reshape to one": lambda x: torch.reshape(x, 4),
    "permute": lambda x: torch.permute(x, 1, 0),
    "tile": lambda x: torch.tile(x, 2),
    "flip": lambda x: torch.flip(x, 0),
    "std": lambda x: torch.std(x, 0, 1),
    "randint": lambda _: torch.randint(2, 10),
    "randint from": lambda _: torch.randint(2, 10, 5),
    "normal": lambda _: torch.normal(0.0, 1.0, 3),
    "unflatten": lambda x: x.unflatten(0, 2, 1),
    "broadcast_to": lambda x: torch.broadcast_to(x, 2, 2, 2),
}


@pytest.mark.parametrize("name", LISTS)
def test_list_that_is_not_the_only_argument_must_be_one(name: str) -> None:
    with pytest.raises(TypeError):
        LISTS[name](torch.ones(2, 2))


def test_list_that_is_the_only_argument_may_be_written_out() -> None:
    x = torch.arange(4.0).reshape(2, 2)
    assert x.reshape(4, 1).shape == x.view(4, 1).shape == (4, 1)
    assert x.permute(1, 0).equal(x.t())
    assert x.flip(0, 1).tolist() == [[3, 2], [1, 0]]
    assert x.tile(2, 1).shape == x.repeat(2, 1).shape == (4, 2)
    assert x.expand(3, 2, 2).shape == torch.zeros(3, 2, 2).shape
    assert torch.block_diag(x, x).shape == (4, 4)
    assert len(torch.broadcast_tensors(x, x, x)) == len(torch.atleast_3d(x, x, x)) == 3
    assert torch.cartesian_prod(x[0], x[1]).shape == (4, 2)
    assert torch.einsum("ij,jk->ik", x, x).equal(x @ x)
    assert torch.chain_matmul(x, x).equal(x @ x)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        torch.einsum("ii")


# Raw functions


def test_raw_losses_reduce_nothing_unless_told() -> None:
    # So PyTorch's parser reads their defaults; `nn.functional` says what it wants.
    x, y = torch.tensor([[0.2, 0.3], [0.5, 0.9]]), torch.tensor([[0.6, 0.4], [0.5, 0.1]])
    sign = torch.tensor([1, -1])
    calls = (
        (torch.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, (x, y)),
        (torch.kl_div, F.kl_div, (x, y)),
        (torch.hinge_embedding_loss, F.hinge_embedding_loss, (x, sign)),
        (torch.margin_ranking_loss, F.margin_ranking_loss, (x, y, sign[None])),
        (torch.cosine_embedding_loss, F.cosine_embedding_loss, (x, y, sign)),
        (torch.triplet_margin_loss, F.triplet_margin_loss, (x, y, x + 1)),
    )
    for raw, named, args in calls:
        torch.testing.assert_close(raw(*args), named(*args, reduction="none"))
        torch.testing.assert_close(raw(*args, reduction=1).mean(), raw(*args).mean())
    lengths = torch.tensor([3]), torch.tensor([2])
    args = (torch.zeros(3, 1, 4).log_softmax(2), torch.tensor([[1, 2]]), *lengths)
    torch.testing.assert_close(torch.ctc_loss(*args), F.ctc_loss(*args, reduction="none"))


# What repeats


@pytest.fixture
def asked() -> Any:
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


def test_what_pytorch_leaves_open_raises_where_determinism_is_asked_for(asked: Any) -> None:
    x, at = torch.zeros(3), torch.tensor([0, 0])
    v, plane = torch.tensor([1.0, 2.0]), torch.ones(1, 1, 2, 2)
    first = torch.zeros(1, 1, 2, 2, dtype=torch.int64)
    calls = (
        ("put_", lambda: x.put_(at, v)),
        ("put_", lambda: x.put(at, v)),
        ("max_unpooling2d_forward_out", lambda: F.max_unpool2d(plane, first, 2)),
        ("max_unpooling2d_forward_out", lambda: F.max_unpool1d(plane[0], first[0], 2)),
        ("max_unpooling3d_forward_out", lambda: F.max_unpool3d(plane, first, 2)),
    )
    for _, call in calls:
        call()
    asked(True, warn_only=True)
    for name, call in calls:
        with pytest.warns(UserWarning, match=f"{name} does not have a deterministic impl"):
            call()
    asked(True)
    x.zero_()
    for name, call in calls:
        with pytest.raises(RuntimeError, match=rf"{name} does .* but you set 'torch\.use_determ"):
            call()
    assert not x.any()
    assert x.put_(at, v, accumulate=True).tolist() == [3, 0, 0]
    x.index_put_((at,), v)
    x.index_add_(0, at, v).scatter_(0, at, v)
    asked(False)
    torch.set_deterministic_debug_mode("error")
    with pytest.raises(RuntimeError, match="deterministic"):
        x.put_(at, v)
    torch.set_deterministic_debug_mode(0)
    many = torch.zeros(100_000, dtype=torch.int64)
    assert x.put_(many, torch.arange(100_000.0))[0].item() == 99_999


def test_memory_that_nothing_was_written_to_is_known_where_determinism_is_asked_for(
    asked: Any,
) -> None:
    asked(True)
    x = torch.zeros(2, 3)
    made = (
        torch.empty(2),
        torch.empty_like(x.t()),
        torch.empty_strided((2, 2), (1, 2)),
        torch.empty_permuted((2, 3), (1, 0)),
        x.new_empty(2),
        x.new_empty_strided((2,), (3,)),
        torch.zeros(2).resize_(5)[2:],
        torch.empty(3, dtype=torch.bfloat16),
    )
    assert all(t.isnan().all() for t in made)
    assert torch.view_as_real(torch.empty(2, dtype=torch.complex64)).isnan().all()
    assert torch.zeros(2).resize_(5)[:2].tolist() == [0, 0]
    assert torch.empty(2, dtype=torch.bool).all()
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint64):
        assert torch.empty(1, dtype=dtype).item() == torch.iinfo(dtype).max
    assert torch.utils.deterministic.fill_uninitialized_memory is True
    torch.empty(1000).fill_(7)
    try:
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert not torch.empty(1000).isnan().all()
        with pytest.raises(TypeError, match="expected bool"):
            torch.utils.deterministic.fill_uninitialized_memory = 1
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(1).isnan()
    asked(False)
    torch.empty(1000).fill_(7)
    assert not torch.empty(1000).isnan().all()
