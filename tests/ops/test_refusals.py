"""What is refused, by which class of error, and that the text names the operator."""

import math
import warnings

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn

NAN, INF = math.nan, math.inf
LINALG = torch.linalg.LinAlgError

C = torch.tensor([1 + 1j, 2, 3])
BOOL = torch.tensor([True, False])
VEC, MAT, WIDE = torch.ones(3), torch.ones(3, 2), torch.ones(2, 3)
HALF = torch.eye(2).half()
INT = torch.tensor([1, 2])


def at(*i, dtype=torch.int64):
    return torch.tensor(list(i), dtype=dtype)


def needs_grad(*values):
    return torch.tensor(values, requires_grad=True)


REFUSED = [
    # Reductions.
    (lambda: C.nansum(), RuntimeError, "nansum"),
    (lambda: VEC.nansum(dtype=torch.complex64), NotImplementedError, "nansum"),
    (lambda: torch.nanmean(VEC, dtype=torch.int64), RuntimeError, "nanmean"),
    (lambda: torch.norm(VEC, "abc"), RuntimeError, "norm"),
    (lambda: torch.norm(INT, dtype=torch.float64), RuntimeError, "norm"),
    (lambda: torch.linalg.vector_norm(INT, dtype=torch.float64), RuntimeError, "vector_norm"),
    (lambda: torch.linalg.norm(C, dtype=torch.float64), RuntimeError, "linalg.vector_norm"),
    (lambda: torch.linalg.norm(VEC, dtype=torch.complex64), RuntimeError, "linalg.vector_norm"),
    (lambda: torch.frobenius_norm(torch.ones(2, 2, 2), (0, 1, 2)), RuntimeError, "frobenius"),
    (lambda: torch.corrcoef(torch.ones(2, 2, 2)), RuntimeError, "corrcoef"),
    # Order.
    (lambda: BOOL.argmax(), RuntimeError, "argmax"),
    (lambda: C.argmin(), RuntimeError, "argmin"),
    (lambda: C.max(0), RuntimeError, "max"),
    (lambda: C.max(), NotImplementedError, '"max_all" not implemented'),
    (lambda: C.amax(), NotImplementedError, '"max_values_cpu" not implemented'),
    (lambda: torch.aminmax(C), NotImplementedError, '"aminmax_cpu" not implemented'),
    (lambda: C.cummax(0), NotImplementedError, '"cummax_cpu" not implemented'),
    (lambda: torch.maximum(C, C), RuntimeError, "maximum"),
    (lambda: torch.fmin(C, C), RuntimeError, "fmin"),
    (lambda: C.sign(), NotImplementedError, "sign"),
    (lambda: C.sort(), RuntimeError, "sort"),
    (lambda: C.argsort(), RuntimeError, "argsort"),
    (lambda: C.topk(1), RuntimeError, "topk"),
    (lambda: C.median(), NotImplementedError, "median"),
    (lambda: C.kthvalue(1), NotImplementedError, "kthvalue"),
    (lambda: torch.isin(C, C), RuntimeError, "isin"),
    (lambda: torch.searchsorted(C, C), NotImplementedError, "searchsorted"),
    (lambda: torch.bucketize(C, C), NotImplementedError, "bucketize"),
    (lambda: torch.ones(2, 0).kthvalue(1), IndexError, "kthvalue.*non-zero size"),
    (lambda: torch.ones(0, 2).kthvalue(1, 0), IndexError, "kthvalue.*non-zero size"),
    # Indices.
    (lambda: torch.unravel_index(at(4), (0, 3)), RuntimeError, "unravel_index.*ZeroDivision"),
    (lambda: VEC.put(at(0, 1), VEC), IndexError, "put"),
    (lambda: VEC.index_reduce(0, at(5), torch.ones(1), "prod"), IndexError, "out of bounds"),
    (lambda: MAT.index_reduce(0, at(-1), torch.ones(1, 2), "amax"), IndexError, "out of bounds"),
    (lambda: VEC.index_reduce(0, torch.ones(1), torch.ones(1), "prod"), RuntimeError, "_reduce"),
    (lambda: VEC.index_add(0, at(5), torch.ones(1)), IndexError, "out of bounds"),
    (lambda: MAT.index_add(0, at(5), torch.ones(1, 2)), RuntimeError, "out of bounds"),
    (lambda: MAT.index_add(1, at(-1), torch.ones(3, 1)), RuntimeError, "out of bounds"),
    (lambda: VEC.index_fill(0, at([1]), 2), RuntimeError, "index_fill"),
    (lambda: VEC.index_fill(0, at(1, dtype=torch.int32), 2), IndexError, "index_fill"),
    (lambda: VEC.index_copy(0, at(1, dtype=torch.int32), VEC[:1]), RuntimeError, "index_copy"),
    (lambda: C.index_reduce(0, at(0), C[:1], "prod"), NotImplementedError, "index_reduce"),
    (lambda: C.scatter_reduce(0, at(0), C, "amax"), NotImplementedError, "scatter_reduce"),
    (lambda: C.scatter_reduce(0, at(0), C, "amin"), NotImplementedError, "scatter_reduce"),
    # Matrices.
    (lambda: torch.linalg.tensorinv(torch.zeros(2, 2), 1), LINALG, "tensorinv"),
    (lambda: torch.linalg.svd(MAT, driver="gesvd"), RuntimeError, "linalg.svd.*driver"),
    (lambda: torch.linalg.svdvals(MAT, driver="gesvd"), RuntimeError, "linalg.svdvals.*driver"),
    (lambda: torch.matrix_power(torch.ones(2, 2, dtype=torch.int64), -1), RuntimeError, "inv"),
    (lambda: torch.matrix_power(MAT, 2), RuntimeError, "matrix_power.*square"),
    *(
        (lambda name=name: getattr(torch.linalg, name)(HALF), NotImplementedError, name)
        for name in ("det", "svd", "svdvals", "qr", "eigh", "eigvalsh", "cholesky", "lu", "cond")
    ),
    (
        lambda: torch.lu_unpack(torch.eye(3), at(1, 2, dtype=torch.int32)),
        *(RuntimeError, "lu_unpack.*pivots"),
    ),
    # Einstein summation by lists of subscripts.
    (lambda: torch.einsum(VEC, [52], VEC, [0]), ValueError, "einsum"),
    (lambda: torch.einsum(VEC, [0], VEC), TypeError, "einsum"),
    (lambda: torch.einsum(VEC), ValueError, "einsum"),
    # Others.
    (lambda: torch.int64.to_complex(), RuntimeError, "to_complex.*Long"),
    (lambda: VEC.type(5), TypeError, "dtype must be"),
    (lambda: VEC.type("abc"), ValueError, "abc"),
    (
        lambda: torch.autograd.graph.register_multi_grad_hook([VEC], print),
        *(AssertionError, "require grad"),
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_refused_calls_raise_their_class_and_name_the_operator(call, error, match):
    with pytest.raises(error, match=match) as raised:
        call()
    assert raised.type is error


# Each call, and what PyTorch gives for it.
GIVEN = [
    (lambda: torch.nansum(torch.tensor([1.7, NAN, 2.9]), dtype=torch.int64), 3),
    (lambda: torch.nansum(torch.tensor([[NAN, 1.0]]), 0, dtype=torch.int32), [0, 1]),
    (lambda: torch.nansum(at(1, 2), dtype=torch.float64), 3.0),
    (lambda: list(torch.tensor([1.0, NAN, NAN]).mode()), [1.0, 0]),
    (lambda: list(torch.tensor([2.0, 1.0, 2.0]).mode()), [2.0, 2]),
    (lambda: torch.tensor([NAN, NAN]).mode()[1], 0),
    (lambda: torch.tensor([1, 2]).index_add(0, at(0), at(2), alpha=1.5), [3, 2]),
    (lambda: torch.tensor([[1, 2]]).index_add(0, at(0), at([3, 3]), alpha=2.7), [[7, 8]]),
    (lambda: torch.unravel_index(at(), (0, 3))[1], []),
    (lambda: torch.linalg.inv_ex(torch.tensor([[1.0, 2], [2, 4]]))[0], [[-INF, INF], [INF, -INF]]),
    (lambda: torch.linalg.inv_ex(torch.tensor([[1.0, 2], [2, 4]]))[1], 2),
    (lambda: torch.matrix_power(torch.tensor([[1, 2], [3, 4]]), 3), [[37, 54], [81, 118]]),
    (lambda: torch.matrix_power(torch.tensor([[1, 2], [3, 4]]), 0), [[1, 0], [0, 1]]),
    (lambda: torch.matrix_power(torch.tensor([[2.0, 1], [1, 3]]).half(), 2), [[5, 5], [5, 10]]),
    (lambda: torch.corrcoef(torch.tensor([1.0, 2, 3])), 1.0),
    (lambda: torch.nuclear_norm(torch.ones(2, 2)), 2.0),
    (lambda: torch.nuclear_norm(torch.ones(2, 2), True), [[2.0]]),
    (lambda: torch.nuclear_norm(torch.ones(2, 3, 8), (0, 2)), [4.0, 4.0, 4.0]),
    (lambda: torch.einsum(INT, [0], INT, [0], []), 5),
    (lambda: torch.einsum(INT, [0], INT, [1]), [[1, 2], [2, 4]]),
    (lambda: torch.einsum(INT, [30], INT, [2], [30, 2]), [[1, 2], [2, 4]]),
    (lambda: torch.einsum(torch.ones(2, 3), [..., 0], VEC, [0], [...]), [3.0, 3.0]),
]


@pytest.mark.parametrize(("call", "want"), GIVEN)
def test_calls_give_what_pytorch_gives(call, want):
    got = call()
    plain = [t.item() for t in got] if isinstance(got, list) else got.tolist()
    np.testing.assert_allclose(plain, want, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.bincount(at(0, 1), weights=x),
        lambda x: torch.histogram(x, 3)[0],
        lambda x: torch.histogram(x, 3).bin_edges,
        lambda x: torch.histogram(torch.ones(2), 3, weight=x)[0],
        lambda x: torch.histogram(torch.ones(2), x)[0],
        lambda x: torch.unique(x),
    ],
)
def test_results_without_a_derivative_raise_in_backward(make):
    y = make(needs_grad(1.0, 2.0))
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match="derivative for '(bincount|histogram|_unique2)'"):
        y.sum().backward()
    assert not make(torch.tensor([1.0, 2.0])).requires_grad


MATRIX = np.array([[1 + 2j, 2, 1j], [3, 4 - 1j, -2]])


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_norms_of_complex_matrices_are_numpys(order, dtype):
    x = torch.tensor(MATRIX, dtype=dtype)
    want = np.linalg.norm(MATRIX, order)
    close = {"rtol": 1e-5 if dtype == torch.complex64 else 1e-12}
    got = torch.linalg.norm(x, order)
    assert got.dtype == torch.empty(0, dtype=dtype).real.dtype
    np.testing.assert_allclose(got.item(), want, **close)
    if order is not None:
        got = torch.linalg.matrix_norm(torch.stack([x, 2 * x]), order)
        np.testing.assert_allclose(got.tolist(), [want, 2 * want], **close)


def test_norms_and_singular_values_of_complex_numbers():
    x = torch.tensor(MATRIX)
    want = np.abs(MATRIX)
    for order in (0, 0.5, 1, 2, 3, INF):
        np.testing.assert_allclose(
            torch.linalg.norm(x, order, dim=0).tolist(),
            [np.linalg.norm(column, order) for column in want.T],
        )
    np.testing.assert_allclose(
        torch.linalg.svdvals(x).tolist(), np.linalg.svd(MATRIX, compute_uv=False)
    )
    assert torch.linalg.svdvals(torch.ones(2, 0, 3, dtype=torch.complex64)).shape == (2, 0)


@pytest.mark.parametrize("order", ["fro", "nuc", 2, -2, 1])
def test_gradients_of_complex_matrix_norms_are_right(order):
    x = torch.tensor(MATRIX, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.matrix_norm(x, order), [x])


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 4), (3, 3)])
def test_complete_qr_of_wide_matrices_has_a_gradient(shape):
    rng = np.random.default_rng(3)
    x = torch.tensor(rng.normal(size=shape), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.qr(x, "complete"), [x])


@pytest.mark.parametrize("complex_", [False, True])
def test_corrcoef_is_numpys(complex_):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3, 7))
    if complex_:
        x = x + 1j * rng.normal(size=(3, 7))
    np.testing.assert_allclose(torch.corrcoef(torch.tensor(x)).numpy(), np.corrcoef(x))
    assert torch.tensor(x).corrcoef().shape == (3, 3)
    if not complex_:
        leaf = torch.tensor(x, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: torch.corrcoef(x)[0, 1:], [leaf])


@pytest.mark.parametrize("f", [lambda x: 2 * x, lambda x: 2 + x, lambda x: x * 2, lambda x: 2j * x])
def test_a_number_is_the_second_operand_of_a_node(f):
    x = needs_grad(1.0, 2.0)
    first, second = f(x).grad_fn.next_functions
    assert first[0] is not None
    assert second == (None, 0)


@pytest.mark.parametrize(
    "name",
    ["qr", "svd", "eigh", "slogdet", "inv_ex", "cholesky_ex", "lu", "lu_factor", "lu_factor_ex"],
)
def test_results_of_linalg_are_named_after_it(name):
    results = getattr(torch.linalg, name)(torch.eye(2))
    assert repr(results).startswith(f"torch.return_types.linalg_{name}(\n")
    assert type(results).__name__ == f"linalg_{name}"
    again = getattr(torch.linalg, name)(torch.eye(2), out=tuple(map(torch.empty_like, results)))
    assert type(again) is type(results)


def test_results_outside_of_linalg_keep_their_names():
    assert type(torch.svd(torch.eye(2))).__name__ == "svd"


def test_complex_dtypes_are_their_own():
    for dtype in (torch.complex64, torch.complex128):
        assert dtype.to_complex() is dtype


def test_nansum_of_integers_takes_a_complex_dtype():
    y = torch.nansum(INT, dtype=torch.complex64)
    assert (y.dtype, y.item()) == (torch.complex64, 3)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_products_scattered_to_complex_numbers_are_complex(dtype):
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)) for _ in range(2))
    index = rng.integers(0, 3, size=(2, 4))
    want = a.copy()
    for i, j in np.ndindex(2, 4):
        want[index[i, j], j] *= b[i, j]
    x, y = torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)
    for x_, y_ in [(x, y), (x.T.contiguous().T, y.T.contiguous().T)]:
        for got in (
            x_.scatter_reduce(0, torch.tensor(index), y_, "prod"),
            x_.scatter(0, torch.tensor(index), y_, reduce="multiply"),
            x_.clone().scatter_reduce_(0, torch.tensor(index), y_, "prod"),
        ):
            np.testing.assert_allclose(got.tolist(), want, rtol=1e-5)
    z = torch.tensor([1 + 2j, 3], dtype=dtype).scatter(0, at(0), 2.0, reduce="multiply")
    assert z.tolist() == [2 + 4j, 3]
    mean = torch.tensor([1 + 2j, 3], dtype=dtype).scatter_reduce(0, at(0), z[:1], "mean")
    assert mean.tolist() == [1.5 + 3j, 3]
    with pytest.raises(RuntimeError, match="out of bounds"):
        z.scatter_reduce(0, at(2), z, "prod")


def test_set_state_returns_the_generator():
    g = torch.Generator()
    assert g.set_state(g.get_state()) is g


class Unseekable:
    def read(self, n=-1):
        return b""


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: torch.load(Unseekable()),
            AttributeError,
            "has no attribute 'seek'. You can only torch.load from a file that is seekable. Please "
            "pre-load the data into a buffer like io.BytesIO and try to load from it instead.",
        ),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(torch.zeros(0, 0), []),
            RuntimeError,
            "Cannot pack empty tensors",
        ),
        (
            lambda: nn.utils.spectral_norm(nn.LazyLinear(2)),
            ValueError,
            "The module passed to `SpectralNorm` can't have uninitialized parameters.",
        ),
        (
            lambda: nn.utils.stateless.functional_call(
                nn.Linear(1, 1), {"weight": torch.ones(1, 1)}, torch.ones(1, 1), strict=True
            ),
            RuntimeError,
            "Missing key(s): 'bias'.",
        ),
        (
            lambda: nn.utils.stateless.functional_call(
                nn.Linear(1, 1, bias=False),
                {"weight": torch.ones(1, 1), "more": torch.ones(1)},
                torch.ones(1, 1),
                strict=True,
            ),
            RuntimeError,
            "Unexpected key(s): 'more'.",
        ),
        (
            lambda: torch.autograd.functional.jacobian(
                lambda x: x * 2, torch.ones(2), create_graph=True, strict=True
            ),
            RuntimeError,
            "jacobian of the user-provided function is independent of input 0.",
        ),
    ],
)
def test_functions_in_python_refuse_in_pytorchs_words(call, kind, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with pytest.raises(kind) as caught:
            call()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("drop", "dims", "text"),
    [
        (nn.functional.dropout2d, 2, "Received a 2-D input to dropout2d"),
        (nn.functional.dropout2d, 3, "assuming that channel-wise 1D dropout behavior is desired"),
        (nn.functional.dropout2d, 5, "Received a 5-D input to dropout2d"),
        (nn.functional.dropout3d, 3, "Received a 3-D input to dropout3d"),
        (nn.functional.dropout3d, 6, "Received a 6-D input to dropout3d"),
    ],
)
def test_dropout_of_channels_warns_of_other_dimensions(drop, dims, text):
    with pytest.warns(UserWarning, match=text):
        assert drop(torch.ones([1] * dims), 0.5).dim() == dims


def test_module_to_takes_what_pytorch_takes() -> None:
    layer = torch.nn.Linear(1, 1)
    for args, options in [
        (("cpu",), {"copy": True}),
        (("cpu",), {"copy": False}),
        (("cpu", torch.float64, True, True), {}),
        ((torch.ones(1),), {"copy": True}),
        ((torch.ones(1), False, True), {}),
    ]:
        with pytest.raises(RuntimeError, match=r"\.to\(\) does not accept copy argument"):
            layer.to(*args, **options)
    for args, options, got in [
        ((torch.device("cpu"), True), {}, r"\(torch.device, bool\)"),
        ((torch.float64, "cpu"), {}, r"\(torch.dtype, str\)"),
        ((), {"foo": 1}, r"\(foo=int\)"),
        ((), {"dtype": "float32"}, r"\(dtype=str\)"),
        ((["cpu"],), {}, r"\(list\)"),
        ((torch.channels_last,), {}, r"\(torch.memory_format\)"),
        (("cpu",), {"device": "cpu"}, r"\(str, device=str\)"),
        ((), {}, r"\(\)"),
    ]:
        text = rf"to\(\) received an invalid combination of arguments - got {got}, but expected"
        with pytest.raises(TypeError, match=text):
            layer.to(*args, **options)
    assert layer.to("cpu", None, True).to(float).weight.dtype == torch.float64
    assert layer.to(torch.ones(1), True).weight.dtype == torch.float32
    assert layer.to(None) is layer and layer.to(device="cpu", non_blocking=True) is layer


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools_refuse_planes_without_channels(n: int) -> None:
    nn, sizes = torch.nn, (5,) * n
    text = "Expected input to have non-zero size for non-batch dimensions"
    layers = [getattr(nn, f"AdaptiveMaxPool{n}d")(3)]
    if n == 3:
        layers.append(nn.AdaptiveAvgPool3d(3))
    if n > 1:
        layers.append(getattr(nn, f"FractionalMaxPool{n}d")(2, output_size=2))
    for layer in layers:
        with pytest.raises(RuntimeError, match=text + ".* with dimension 1 being empty"):
            layer(torch.zeros(1, 0, *sizes))
        with pytest.raises(RuntimeError, match=text + ".* with dimension 0 being empty"):
            layer(torch.zeros(0, *sizes))
        assert layer(torch.zeros(0, 1, *sizes)).shape[:2] == (0, 1)
    unpool = getattr(nn, f"MaxUnpool{n}d")(2)
    with pytest.raises(RuntimeError, match=text):
        unpool(torch.zeros(1, 0, *sizes), torch.zeros(1, 0, *sizes, dtype=torch.int64))
    if n < 3:
        layer = getattr(nn, f"AdaptiveAvgPool{n}d")(3)
        assert layer(torch.zeros(1, 0, *sizes)).shape == (1, 0, *(3,) * n)


def test_old_constructors_stay_on_the_device_of_their_type() -> None:
    meta = torch.ones(2, device="meta")
    for make, kinds in [
        (lambda: torch.Tensor(3, device="meta"), "cpu but device type: meta"),
        (lambda: torch.Tensor([3], device="meta"), "cpu but device type: meta"),
        (lambda: torch.Tensor(device="meta"), "cpu but device type: meta"),
        (lambda: torch.FloatTensor(3, device="meta"), "cpu but device type: meta"),
        (lambda: torch.ones(2).new(3, device="meta"), "cpu but device type: meta"),
        (lambda: meta.new(3, device="cpu"), "meta but device type: cpu"),
    ]:
        text = f"legacy constructor expects device type: {kinds} was passed"
        with pytest.raises(RuntimeError, match=text):
            make()
    with pytest.raises(RuntimeError, match="Legacy tensor constructor of the form"):
        torch.Tensor(torch.ones(2), device="cpu")
    assert torch.Tensor(3, device="cpu").shape == (3,) and meta.new(3).is_meta


def test_grids_are_of_one_device_and_dtype() -> None:
    one, meta = torch.ones(2), torch.ones(2, device="meta")
    for f in (torch.meshgrid, torch.cartesian_prod):
        with pytest.raises(
            RuntimeError, match="meshgrid expects all tensors to have the same device"
        ):
            f(one, meta)
        with pytest.raises(
            RuntimeError, match="meshgrid expects all tensors to have the same dtype"
        ):
            f(one, one.double())


def test_functions_of_elements_take_what_has_no_history() -> None:
    z, r = torch.zeros(3), torch.zeros(3, requires_grad=True)
    for name, f in [
        ("apply_", lambda: r.apply_(lambda a: a)),
        ("map_", lambda: r.map_(z, lambda a, b: a)),
        ("map_", lambda: z.map_(r, lambda a, b: a)),
        ("map2_", lambda: r.map2_(z, z, lambda a, b, c: a)),
        ("map2_", lambda: z.map2_(r, z, lambda a, b, c: a)),
        ("map2_", lambda: z.map2_(z, r, lambda a, b, c: a)),
    ]:
        with pytest.raises(
            RuntimeError, match=rf"Can't call {name}\(\) on Variable that requires grad"
        ):
            f()
    text = r"map_: expected torch.FloatTensor for 'other' \(got torch.DoubleTensor\)"
    with pytest.raises(TypeError, match=text):
        z.map_(z.double(), lambda a, b: a)
    with pytest.raises(TypeError, match="map2_: expected torch.FloatTensor for 'y'"):
        z.map2_(z, torch.ones(3, device="meta"), lambda a, b, c: a)
    assert z.map2_(z + 1, z + 2, lambda a, b, c: a + b + c).tolist() == [3.0] * 3


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: torch.float_power(VEC, 2, out=torch.ones(3)),
            RuntimeError,
            "the output given to float_power has dtype Float but the operation's result requires "
            "dtype Double",
        ),
        (
            lambda: VEC.double().float_power_(1j),
            RuntimeError,
            "the base given to float_power_ has dtype Double but the operation's result requires "
            "dtype ComplexDouble",
        ),
        (
            lambda: torch.ones(10, 0)[:, [0, 1]],
            IndexError,
            "index is out of bounds for dimension with size 0",
        ),
        (
            lambda: torch.diff(torch.ones(1, 2), prepend=torch.ones(2, 3), dim=0),
            RuntimeError,
            "except along the differencing dimension; input.size(1) = 2, but got tensor.size(1) = "
            "3",
        ),
        (
            lambda: torch.zeros(2, dtype=torch.int64, requires_grad=True),
            RuntimeError,
            "Only Tensors of floating point and complex dtype can require gradients",
        ),
        (
            lambda: VEC.new_full((2,), 1, dtype=torch.int64, requires_grad=True),
            RuntimeError,
            "Only Tensors of floating point and complex dtype can require gradients",
        ),
        (
            lambda: nn.functional.embedding_bag(torch.tensor([[1]]), MAT, padding_idx=5),
            RuntimeError,
            "padding_idx must be within the number of embeddings, -3 through 2, but got 5",
        ),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2), [2, 0]),
            RuntimeError,
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0",
        ),
        (
            lambda: torch.autograd.functional.hessian(torch.sum, torch.rand(3), strict=True),
            RuntimeError,
            "While computing the hessian, found that the jacobian of the user-provided function "
            "with respect to input 0 is independent of the input",
        ),
        (
            lambda: torch.autograd.functional.vjp(
                lambda x: x * 2, VEC, VEC, create_graph=True, strict=True
            ),
            RuntimeError,
            "The jacobian of the user-provided function is independent of input 0",
        ),
        (
            lambda: torch.autograd.functional.jvp(
                lambda x: x * 2, VEC, VEC, create_graph=True, strict=True
            ),
            RuntimeError,
            "The jacobian of the user-provided function is independent of input 0",
        ),
    ],
)
def test_words_that_programs_look_for(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
