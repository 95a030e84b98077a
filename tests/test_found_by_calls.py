"""Faults that random calls beside PyTorch found. Expected numbers are PyTorch's or exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pytensorlib as pt
import pytensorlib.nn.functional as F

INF, NAN = math.inf, math.nan


def values(t: pt.Tensor) -> list[float]:
    return t.detach().reshape(-1).tolist()


@pytest.mark.parametrize("bounds", [(NAN, 1.0), (-1.0, NAN)])
def test_hardtanh_of_a_bound_that_is_nan_is_nan(bounds: tuple[float, float]) -> None:
    assert all(map(math.isnan, values(F.hardtanh(pt.tensor([1.0, -2.0, INF]), *bounds))))


def test_take_along_dim_of_flat_elements_refuses_what_counts_from_the_end() -> None:
    x = pt.arange(4.0).reshape(2, 2)
    for index in (-1, -(2**63), 4):
        with pytest.raises(RuntimeError, match="out of bounds"):
            pt.take_along_dim(x, pt.tensor([[index]]))
    assert values(pt.take_along_dim(x, pt.tensor([[-1]]), dim=1)) == [1, 3]


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_loss_of_nan_is_nan(zero_infinity: bool) -> None:
    # Class 1 is the first label: no path avoids it.
    p = pt.full((4, 1, 3), math.log(1 / 3))
    p[:, 0, 1] = NAN
    args = (pt.tensor([[1, 2]]), pt.tensor([4]), pt.tensor([2]))
    assert math.isnan(F.ctc_loss(p, *args, zero_infinity=zero_infinity).item())


def test_addr_scales_in_the_promoted_type() -> None:
    c, a, b = pt.tensor([[0.3007]]).bfloat16(), pt.tensor([1.2345]), pt.tensor([1.777])
    want = 0.6 * 0.30078125 + 0.2 * 1.2345 * 1.777
    assert pt.addr(c, a, b, beta=0.6, alpha=0.2).item() == pytest.approx(want, rel=1e-6)


def test_trapezoid_of_bytes_wraps_only_where_neighbours_are_added() -> None:
    y = pt.tensor([100, 120, 90, 103], dtype=pt.uint8)
    assert pt.trapezoid(y, dx=1).item() == 311.5
    assert values(pt.cumulative_trapezoid(y, dx=3)) == [330, 645, 934.5]
    assert pt.trapezoid(y.to(pt.int8), dx=1).item() == 439.5  # 100 + 103 is -53


def test_trapezoid_of_points_with_more_dimensions_goes_along_the_same_one() -> None:
    x = pt.tensor([[[1.0], [2.0], [4.0]]])
    assert pt.trapezoid(pt.ones(2, 3), x).tolist() == [[3, 3]]
    assert pt.cumulative_trapezoid(pt.ones(2, 3), x).tolist() == [[[1, 1], [3, 3]]]
    with pytest.raises(RuntimeError, match="must match the size"):
        pt.trapezoid(pt.ones(3, 3), pt.ones(3, 3, 1), dim=-2)


def test_cumulative_trapezoid_of_nothing_has_a_graph() -> None:
    assert pt.cumulative_trapezoid(pt.zeros(2, 0, requires_grad=True)).requires_grad


def test_prod_of_a_number_has_slope_one_also_at_infinity() -> None:
    x = pt.tensor(INF, requires_grad=True)
    assert pt.autograd.grad(x.prod(), x)[0].item() == 1


def test_native_norms_give_statistics_in_the_type_of_any_parameter() -> None:
    x, one = pt.ones(1, 2).bfloat16(), pt.ones(2)
    single = [pt.bfloat16, pt.float32, pt.float32]
    for w, b in ((one, one), (None, one), (one, None)):
        assert [t.dtype for t in pt.native_layer_norm(x, (2,), w, b, 1e-5)] == single
        assert [t.dtype for t in pt.native_group_norm(x, w, b, 1, 2, 1, 1, 1e-5)] == single
        y = pt.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)
        assert [t.dtype for t in y] == single


def test_triangular_solve_gives_back_coefficients_of_every_system() -> None:
    a = pt.tensor([[[2.0, 1.0], [0.0, 4.0]]], requires_grad=True)
    c = pt.triangular_solve(pt.ones(3, 2, 1), a)[1]
    assert c.shape == (3, 2, 2)
    (g,) = pt.autograd.grad(c.sum(), a)
    assert g.tolist() == [[[3, 3], [3, 3]]]


def test_solve_ex_reports_each_matrix_once() -> None:
    a = pt.stack([pt.eye(2), pt.zeros(2, 2)])
    assert pt.linalg.solve_ex(a, pt.ones(3, 2, 2, 1))[1].tolist() == [0, 1]
    assert pt.linalg.solve_ex(pt.eye(2), pt.ones(3, 2, 1))[1].tolist() == 0
    assert pt.linalg.solve_ex(pt.eye(2), pt.ones(0, 2, 1))[1].tolist() == 0
    assert pt.linalg.solve_ex(pt.eye(2)[None], pt.ones(3, 2, 1))[1].tolist() == [0]


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(pt.float32, s) for s in (2e38, 1e30, 1e-30, 1e-42)]
    + [(pt.float64, 1e307)]
    + [(pt.float64, 1e-290)],
)
def test_decompositions_near_the_ends_of_the_type_hold(dtype: pt.dtype, scale: float) -> None:
    a = np.array([[1.0, 0.25, 0.5], [0.125, 0.5, 0.25], [0.25, 0.0, 0.75]])
    x = pt.tensor(a * scale, dtype=dtype)
    a = x.double().numpy() / scale  # what the type holds
    loose = 3e-3 if scale == 1e-42 else 1e-5
    want = np.linalg.svd(a, compute_uv=False)
    u, s, vh = (t.double().numpy() for t in pt.linalg.svd(x))
    np.testing.assert_allclose(s / scale, want, rtol=loose)
    np.testing.assert_allclose((u * (s / scale)) @ vh, a, atol=loose)
    np.testing.assert_allclose(pt.linalg.svdvals(x).double().numpy() / scale, want, rtol=loose)
    low = np.tril(a) + np.tril(a, -1).T
    got = pt.linalg.eigvalsh(x).double().numpy() / scale
    np.testing.assert_allclose(got, np.linalg.eigvalsh(low), atol=loose)
    w, v = (t.double().numpy() for t in pt.linalg.eigh(x))
    np.testing.assert_allclose((v * (w / scale)) @ v.T, low, atol=loose)


@pytest.mark.parametrize("f", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d])
def test_dropout_of_everything_takes_integers(f: object) -> None:
    x = pt.ones((2, 3, 2) if f is F.dropout1d else (2, 3, 2, 2), dtype=pt.int32)
    y = f(x, p=1.0, training=True)  # type: ignore[operator]
    assert y.dtype == pt.int32 and not y.any()


def test_sizes_may_hold_a_bool_behind_the_first() -> None:
    assert pt.zeros((3, True, 2)).shape == (3, 1, 2)
    assert pt.ones(2, 3).expand(4, 2, 3).permute((2, True, 0)).shape == (3, 2, 4)
    assert pt.tile(pt.ones(2), (2, True)).shape == (2, 2)
    with pytest.raises(TypeError):
        pt.zeros((True, 3))


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((10, 2, 1), True), ((10, 2), True), ((10, 1, 3), True), ((1,), False), ((2, 3), False)]
    + [((1, 1), False), ((), False), ((1, 2, 1), False), ((10, 2, 3), True)],
)
def test_gaussian_nll_loss_takes_variances_that_lack_one_dimension(
    shape: tuple[int, ...], fits: bool
) -> None:
    args = (pt.ones(10, 2, 3), pt.zeros(10, 2, 3), pt.ones(shape))
    if fits:
        assert F.gaussian_nll_loss(*args).item() == 0.5
    else:
        with pytest.raises(ValueError, match="var is of incorrect size"):
            F.gaussian_nll_loss(*args)


def rows_of(m: int, n: int) -> np.ndarray:
    return np.random.default_rng(m * 31 + n).standard_normal((2, m, n))


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3), (1, 4), (4, 1), (0, 2), (2, 0)])
def test_lu_of_any_shape_has_its_gradient(shape: tuple[int, int]) -> None:
    x = pt.tensor(rows_of(*shape), requires_grad=True)
    assert pt.autograd.gradcheck(lambda x: pt.linalg.lu(x)[1:], x)
    assert pt.autograd.gradcheck(lambda x: pt.linalg.lu_factor(x)[0], x)
    if min(shape) > 1:
        assert pt.autograd.gradgradcheck(lambda x: pt.linalg.lu_factor(x)[0], x)


@pytest.mark.parametrize("dim", [0, -1])
def test_cumprod_of_complex_numbers_is_numpys_and_has_its_gradient(dim: int) -> None:
    rng = np.random.default_rng(5)
    a = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    a[1, 1] = 0
    x = pt.tensor(a, requires_grad=True)
    np.testing.assert_allclose(pt.cumprod(x, dim).detach().numpy(), np.cumprod(a, dim))
    assert pt.cumprod(x.to(pt.complex64), dim).dtype == pt.complex64
    assert pt.autograd.gradcheck(lambda x: pt.cumprod(x, dim), x)
    assert pt.autograd.gradgradcheck(lambda x: pt.cumprod(x, dim), x)


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_logsumexp_of_complex_numbers_is_the_logarithm_of_the_sum(dim: int) -> None:
    rng = np.random.default_rng(6)
    a = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    x = pt.tensor(a, requires_grad=True)
    want = np.log(np.exp(a).sum(dim, keepdims=True))
    np.testing.assert_allclose(pt.logsumexp(x, dim, keepdim=True).detach().numpy(), want)
    far = pt.logsumexp(x + 800, dim).detach().numpy()
    np.testing.assert_allclose(far, want.reshape(far.shape) + 800)
    assert pt.autograd.gradcheck(lambda x: pt.logsumexp(x, dim), x)


def test_fill_diagonal_writes_where_numpy_does() -> None:
    for shape in ((3, 3), (5, 3), (7, 3), (3, 7), (10, 2), (4, 1), (0, 3), (3, 0), (2, 2, 2)):
        for wrap in (False, True):
            want = np.zeros(shape, np.float32)
            if min(shape) and (len(shape) == 2 or not wrap):
                np.fill_diagonal(want, 5, wrap)
            elif min(shape):
                np.fill_diagonal(want, 5)
            x = pt.zeros(shape)
            assert x.fill_diagonal_(5, wrap) is x
            np.testing.assert_array_equal(x.numpy(), want, err_msg=f"{shape} {wrap}")
            stepped = pt.zeros((*shape, 2))[..., 1]
            np.testing.assert_array_equal(stepped.fill_diagonal_(5, wrap).numpy(), want)
            reversed_strides = pt.zeros(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
            np.testing.assert_array_equal(reversed_strides.fill_diagonal_(5, wrap).numpy(), want)
    x = pt.ones(2, 3, requires_grad=True)
    (g,) = pt.autograd.grad((x * 2).fill_diagonal_(5).sum(), x)
    assert g.tolist() == [[0, 2, 2], [2, 0, 2]]
    for shape in ((3,), (2, 2, 3)):
        with pytest.raises(RuntimeError, match="dimensions"):
            pt.zeros(shape).fill_diagonal_(5)
    with pytest.raises(RuntimeError, match="without overflow"):
        pt.zeros(2, 2, dtype=pt.uint8).fill_diagonal_(300)


@pytest.mark.parametrize("p", [1, 2, 0.5, 3, INF])
def test_renorm_scales_slices_down_to_the_norm(p: float) -> None:
    a = rows_of(3, 4) * [[[0.1]], [[4.0]]]
    for dim in (0, 1, -1):
        others = tuple(d for d in range(3) if d != dim % 3)
        size = np.abs(a)
        norm = size.max(others, keepdims=True)
        if p != INF:
            norm = (size**p).sum(others, keepdims=True) ** (1 / p)
        want = a * np.where(norm > 1.5, 1.5 / (norm + 1e-7), 1)
        x = pt.tensor(a, requires_grad=True)
        np.testing.assert_allclose(pt.renorm(x, p, dim, 1.5).detach().numpy(), want)
        np.testing.assert_allclose(x.detach().clone().renorm_(p, dim, 1.5).numpy(), want)
        assert pt.autograd.gradcheck(lambda x, dim=dim: pt.renorm(x, p, dim, 1.5), x)
    assert pt.renorm(pt.ones(2, 3).half(), p, 0, 1).dtype == pt.float16
    for bad in ((-1, 0, 1), (p, 0, -1)):
        with pytest.raises(RuntimeError, match="renorm"):
            pt.renorm(pt.ones(2, 3), *bad)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        pt.renorm(pt.ones(3), p, 0, 1)


def test_range_warns() -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        pt.range(0, 4)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_range_includes_its_end() -> None:
    assert pt.range(0, 4).tolist() == [0, 1, 2, 3, 4]
    assert pt.range(5, 1, -2).tolist() == [5, 3, 1]
    assert pt.range(0, 4.5).tolist() == [0, 1, 2, 3, 4]
    assert pt.range(2.5, 4.5, dtype=pt.int32).tolist() == [2, 3, 4]
    assert len(pt.range(0.0, 1, 0.1)) == 11
    assert pt.range(1, 1).dtype == pt.float32
    for bad in ((0, 4, 0), (4, 0), (0, INF)):
        with pytest.raises(RuntimeError):
            pt.range(*bad)


def test_deterministic_algorithms_are_what_was_asked_for() -> None:
    try:
        for mode, warn, number in ((True, False, 2), (True, True, 1), (False, True, 0)):
            pt.use_deterministic_algorithms(mode, warn_only=warn)
            assert pt.are_deterministic_algorithms_enabled() is mode
            assert pt.is_deterministic_algorithms_warn_only_enabled() is (mode and warn)
            assert pt.get_deterministic_debug_mode() == number
        for name, number in (("error", 2), ("warn", 1), ("default", 0), (2, 2)):
            pt.set_deterministic_debug_mode(name)
            assert pt.get_deterministic_debug_mode() == number
        for bad in ("bogus", 3, -1):
            with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
                pt.set_deterministic_debug_mode(bad)
        with pytest.raises(TypeError):
            pt.use_deterministic_algorithms(1)
    finally:
        pt.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [pt.uint16, pt.uint32, pt.uint64])
def test_wide_unsigned_integers_round_to_themselves_and_run_in_int64(dtype: pt.dtype) -> None:
    top = 2 ** (8 * dtype.itemsize) - 1
    x = pt.tensor([1, 2, top], dtype=dtype)
    for f in (pt.round, pt.floor, pt.ceil, pt.trunc, pt.fix):
        assert f(x).dtype == dtype and f(x).tolist() == [1, 2, top]
    assert pt.signbit(x).tolist() == [False] * 3
    small = pt.tensor([1, 2, 65535], dtype=dtype)
    for f, want in ((pt.cumsum, [1, 3, 65538]), (pt.cumprod, [1, 2, 131070])):
        y = f(small, 0)
        assert y.dtype == pt.int64 and y.tolist() == want
        assert f(small, 0, dtype=pt.float32).tolist() == want
        with pytest.raises(NotImplementedError, match=f.__name__):
            f(pt.tensor([1, 2]), 0, dtype=dtype)
    # 64 bits wrap, as PyTorch's do
    assert pt.cumsum(pt.tensor([2**64 - 1, 3], dtype=pt.uint64), 0).tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (IndexError, lambda: pt.zeros(0).put_(pt.tensor(0), pt.zeros(0))),
        (IndexError, lambda: pt.kthvalue(pt.zeros(2, 0), 1)),
        (IndexError, lambda: pt.tensor(1.0)[0:1]),
        (RuntimeError, lambda: pt.zeros(3).index_fill(0, pt.zeros(1, 1).long(), 1)),
        (ValueError, lambda: pt.pixel_shuffle(pt.zeros(1, 4, 1, 1), 2**40)),
        (pt.linalg.LinAlgError, lambda: pt.linalg.tensorinv(pt.zeros(4, 2, 2), ind=1)),
        (RuntimeError, lambda: pt.linalg.tensorinv(pt.tensor(1.0), ind=2)),
        (RuntimeError, lambda: pt.unique(pt.zeros(0, 0, 2), dim=0)),
        (RuntimeError, lambda: pt.unique(pt.zeros(3, 0), dim=0)),
    ],
)
def test_error_has_pytorchs_class(error: type[Exception], call: object) -> None:
    with pytest.raises(error) as caught:
        call()  # type: ignore[operator]
    assert type(caught.value) is error


@pytest.mark.parametrize("loss", [F.smooth_l1_loss, F.huber_loss])
def test_slope_of_a_loss_at_nan_is_nan(loss: object) -> None:
    x = pt.tensor([0.5, NAN, 3.0], requires_grad=True)
    y = loss(x, pt.zeros(3), reduction="sum")  # type: ignore[operator]
    slopes = pt.autograd.grad(y, x)[0].tolist()
    assert slopes[0] == 0.5 and math.isnan(slopes[1]) and slopes[2] == 1


def test_complex_numbers_pass_where_they_were_refused() -> None:
    z = pt.tensor([[3 + 4j, 0j], [1j, 2 + 0j]])
    out = pt.zeros(2, 2, dtype=pt.complex64)
    assert pt.abs(z, out=out).tolist() == [[5, 0], [1, 2]]
    near = F.pairwise_distance(z, pt.zeros_like(z), eps=0)
    assert near.tolist() == pytest.approx([5, math.sqrt(5)])
    x = pt.tensor([1 + 1j, 2 - 1j, 3j], dtype=pt.complex128, requires_grad=True)
    assert pt.autograd.gradcheck(lambda x: x.as_strided((2, 2), (1, 1)), x)


def test_unique_along_a_dimension_wants_one() -> None:
    for f in (pt.unique, pt.unique_consecutive):
        assert f(pt.tensor(1.0)).tolist() == [1]
        with pytest.raises(IndexError, match="no dimensions"):
            f(pt.tensor(1.0), dim=-1)


def test_instance_norm_wants_both_statistics_or_none() -> None:
    with pytest.raises(ValueError, match="both"):
        F.instance_norm(pt.ones(1, 2, 3), running_var=pt.ones(2))
