"""Cases that random calls found; the expectations are PyTorch's or the mathematics'."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

inf, nan = float("inf"), float("nan")


def test_rrelu_draws_a_number_for_each_element_below_zero_only() -> None:
    torch.manual_seed(0)
    x = torch.tensor([1.0, -1.0, 2.0, -1.0, -1.0], requires_grad=True)
    y = F.rrelu(x, training=True)
    want = [1.0, -0.3271, 2.0, -0.2725, -0.2207]  # PyTorch 2.13 under this seed
    torch.testing.assert_close(y.detach(), torch.tensor(want), rtol=0, atol=1e-4)
    y.sum().backward()
    slopes = [1.0, 0.3271, 1.0, 0.2725, 0.2207]
    torch.testing.assert_close(x.grad, torch.tensor(slopes), rtol=0, atol=1e-4)


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


@pytest.mark.parametrize("index", [[[4, 0], [5, -3]], [[0, 0], [1, 1]], [[-2, -2], [-1, 3]]])
def test_take_along_dim_counts_on_past_both_ends(index: list[list[int]]) -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    want = np.take_along_axis(x.numpy(), np.array(index) % 2, 0)
    assert torch.take_along_dim(x, torch.tensor(index), 0).tolist() == want.tolist()


def test_roll_of_a_number_has_no_dimension_to_roll() -> None:
    with pytest.raises(IndexError, match="no dimensions"):
        torch.roll(torch.tensor(1.0), 1, 0)
    assert torch.roll(torch.tensor(1.0), 1).item() == 1


def test_view_copy_takes_strides_that_no_view_can_take() -> None:
    x = torch.arange(12).reshape(3, 4).t()
    assert torch.view_copy(x, (2, 6)).tolist() == x.reshape(2, 6).tolist()


def test_cumulative_trapezoid_of_no_integers_is_floating() -> None:
    assert torch.cumulative_trapezoid(torch.ones(0, 0, dtype=torch.int16), dx=3.0).dtype == (
        torch.float32
    )


def test_sum_to_size_of_a_number_is_no_alias() -> None:
    x = torch.tensor(2.0)
    y = x.sum_to_size(())
    y.fill_(5)
    assert x.item() == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_logcumsumexp_gradient_of_halves_is_near_that_of_doubles(dtype: torch.dtype) -> None:
    x = torch.linspace(-4, 8, 40).to(dtype)
    grads = []
    for t in (x, x.double()):
        leaf = t.clone().requires_grad_()
        torch.logcumsumexp(leaf, 0).sum().backward()
        grads.append(leaf.grad.double())
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(grads[0], grads[1], rtol=2 * eps, atol=eps)


def test_multilabel_soft_margin_loss_divides_by_the_classes_of_the_input() -> None:
    x, y = torch.ones(5, 1), torch.tensor([1.0, 0, 1, 0, 1])
    assert F.multilabel_soft_margin_loss(x, y).item() == pytest.approx(3.5663, abs=1e-4)


def test_gradient_that_nobody_computes_is_refused() -> None:
    """Without an error it would silently be missing."""
    w = torch.ones(3, requires_grad=True)
    scores, target = torch.ones(2, 3), torch.tensor([0, 1])
    for loss in (F.cross_entropy, F.nll_loss):
        with pytest.raises(RuntimeError, match="not differentiable with respect to .*weight"):
            loss(scores, target, w)
        with torch.no_grad():
            loss(scores, target, w)
    with pytest.raises(RuntimeError, match="not differentiable with respect to .*weight"):
        F.multi_margin_loss(scores, target, weight=w)
    for training in (True, False):
        with pytest.raises(RuntimeError, match="not differentiable with respect to .*running_mean"):
            F.batch_norm(scores, w, torch.ones(3), training=training)


@pytest.mark.parametrize("a", [50.0, 1e5, 2e7, 1e10, 1e30])
@pytest.mark.parametrize("steps", [-1.0, 0.0, 1.0, 6.0])
def test_incomplete_gamma_of_large_numbers_is_near_the_normal_distribution(
    a: float, steps: float
) -> None:
    special = pytest.importorskip("scipy.special")
    x = a + steps * a**0.5
    pair = [torch.tensor(v, dtype=torch.float64) for v in (a, x)]
    got = [f(*pair).item() for f in (torch.igamma, torch.igammac)]
    want = [f(a, x) for f in (special.gammainc, special.gammaincc)]
    assert got == pytest.approx(want, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("a", [2e7, 1e10])
def test_incomplete_gamma_far_below_a_large_number_is_the_normal_tail(a: float) -> None:
    special = pytest.importorskip("scipy.special")  # its own gammainc is wrong there
    pair = [torch.tensor(v, dtype=torch.float64) for v in (a, a - 6 * a**0.5)]
    assert torch.igamma(*pair).item() == pytest.approx(special.ndtr(-6.0), rel=0.03)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, inf, -inf])
def test_norm_of_one_element_is_its_size(p: float) -> None:
    x = torch.tensor([[1e30], [-1e-30], [0.0]], requires_grad=True)
    y = torch.linalg.vector_norm(x, p, dim=1)
    assert y.tolist() == x.detach().abs().squeeze(1).tolist()
    y.sum().backward()
    assert x.grad.squeeze(1).tolist() == [1, -1, 0]


def test_margin_losses_take_infinite_scores() -> None:
    target = torch.tensor(0)
    assert F.multi_margin_loss(torch.tensor([1.0, inf, 2.0]), target).item() == inf
    assert F.multi_margin_loss(torch.tensor([inf, 1.0, 2.0]), target).item() == 0
    x, labels = torch.tensor([1.0, inf, 2.0]), torch.tensor([0, 1, -1])
    # Only the last class is no target: (1 - 1 + 2) + 0, over three classes.
    assert F.multilabel_margin_loss(x, labels).item() == pytest.approx(2 / 3)


def test_einsum_sums_small_integers_in_int64() -> None:
    x = torch.full((1, 2, 3), 100, dtype=torch.int8)
    y = torch.einsum("...ik,...j->ij", x, torch.ones(3, dtype=torch.int8))
    assert y.dtype == torch.int64
    assert y.tolist() == [[300] * 3] * 2


def test_matrix_transpose_of_a_number_is_the_number() -> None:
    assert torch.tensor(2.0).mT.item() == 2


def test_rot90_of_a_dimension_that_is_not_there_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.rot90(torch.ones(3, 3), 1, (1, 5))


def test_gradients_kept_of_two_tensors_share_no_memory() -> None:
    x = torch.ones(3, requires_grad=True)
    a = x * 1
    b = a + 0
    for t in (a, b):
        t.retain_grad()
    b.sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1, 1]
    c = x * 1
    c.retain_grad()
    (g,) = torch.autograd.grad(c.sum(), [c])
    g.zero_()
    assert c.grad.tolist() == [1, 1, 1]


def test_backward_to_a_tensor_that_is_no_leaf_retains_its_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    z.backward(inputs=[y], retain_graph=True)
    assert y.retains_grad
    assert y.grad.tolist() == [4, 4, 4]
    assert x.grad is None
    z.backward(inputs=[x, y])
    assert y.grad.tolist() == [8, 8, 8]
    assert x.grad.tolist() == [8, 8, 8]


def test_leaf_that_no_longer_requires_grad_gets_none() -> None:
    x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    y, z = (x * w).sum(), (x @ w).sum()
    w.grad = torch.zeros(2, 2)
    w.requires_grad_(False)
    y.backward()
    z.backward()
    assert w.grad.tolist() == [[0, 0], [0, 0]]
    assert x.grad.tolist() == [[3, 3], [3, 3]]


def test_write_to_a_view_of_a_leaf_that_is_a_view_is_refused() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    for write in (lambda: x.view(-1).add_(1), lambda: x[0].mul_(2), lambda: x.t().zero_()):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            write()
    with torch.no_grad():
        x[0].mul_(2)
    (x.view(-1) * 1).mul_(2)


def test_number_in_a_gradients_graph_keeps_its_precision() -> None:
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (2.0, 3.0))
    first = torch.autograd.grad(torch.lerp(a, b, 0.3), [a, b], create_graph=True)
    assert [g.item() for g in first] == [0.7, 0.3]


def test_view_taken_without_recording_leads_nowhere() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        v = y.view(-1)
    (v @ v).backward()
    assert x.grad is None
    assert torch.autograd.grad((v * v).sum(), [v], allow_unused=True) == (None,)
    assert x.grad is None
    ((v * y).sum()).backward()
    assert x.grad.tolist() == [4, 4, 4]


@pytest.mark.parametrize("create_graph", [False, True])
def test_materialized_gradient_requires_grad_in_a_graph_only(create_graph: bool) -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    options = {"materialize_grads": True, "create_graph": create_graph}
    (g,) = torch.autograd.grad((x * 2).sum(), [y], **options)
    assert g.tolist() == [0, 0]
    assert g.requires_grad == create_graph


def test_more_results_than_a_mask_has_bits_all_have_gradients() -> None:
    x = torch.arange(70.0, requires_grad=True)
    parts = x.unbind(0)
    assert all(p.requires_grad for p in parts)
    sum(p * i for i, p in enumerate(parts)).backward()
    assert x.grad.tolist() == list(range(70))


def test_class_weights_of_probabilities_have_a_gradient() -> None:
    w = torch.ones(3, requires_grad=True)
    scores, target = torch.zeros(1, 3), torch.tensor([[0.0, 1.0, 0.0]])
    F.cross_entropy(scores, target, w).backward()
    # The loss is w[1] * log 3.
    assert w.grad.tolist() == pytest.approx([0, np.log(3), 0])


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ([1, (2, 3)], TypeError, "'tuple' object cannot be interpreted as an integer"),
        ([[1], [[2]]], TypeError, "'list' object cannot be interpreted as an integer"),
        ([1, np.array([1, 2])], TypeError, "'ndarray' object cannot be interpreted as an integer"),
        ([[1], 2], TypeError, "not a sequence"),
        ([1, 2j], TypeError, "'complex' object cannot be interpreted as an integer"),
        ([1, b"a"], TypeError, "invalid data type 'bytes'"),
        ([None, 3], RuntimeError, "Could not infer dtype of NoneType"),
        ([1, slice(1)], RuntimeError, "Could not infer dtype of slice"),
    ],
)
def test_index_list_of_what_is_no_number_is_refused(index, error, text: str) -> None:
    x = torch.zeros(5, 5, 5)
    for use in (lambda: x[(index,)], lambda: x.__setitem__((index,), 1)):
        with pytest.raises(error, match=text):
            use()


def test_index_list_takes_what_a_tensor_is_made_of() -> None:
    x = torch.arange(5)
    assert x[([torch.tensor([3]), 2],)].tolist() == [3, 2]
    assert x[([[torch.tensor(1)], [torch.tensor([2])]],)].tolist() == [[1], [2]]
    assert x[([1, 2.5],)].tolist() == [1, 2]
    assert x[([True, np.False_, True, False, False],)].tolist() == [0, 2]
    assert x[([True, 0],)].tolist() == [1, 0]
    assert x[([],)].tolist() == []


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (torch.float32, "must be real number, not NoneType"),
        (torch.complex64, "must be real number, not NoneType"),
        (torch.int64, "'NoneType' object cannot be interpreted as an integer"),
        (torch.bool, "'NoneType' object cannot be interpreted as an integer"),
    ],
)
def test_data_that_is_no_number_of_the_type_asked_for_is_refused(dtype, text: str) -> None:
    for data in ([1, None], None):
        with pytest.raises(TypeError, match=text):
            torch.tensor(data, dtype=dtype)
    with pytest.raises(TypeError, match="must be real number, not NoneType"):
        torch.Tensor([None])


def test_norm_of_bytes_tells_of_their_type_before_dimensions() -> None:
    x = torch.zeros(2, 2, dtype=torch.uint8)
    for norm in (torch.frobenius_norm, lambda x, dim: torch.linalg.vector_norm(x, 2, dim)):
        for dim in (5, (0, 0), (0, 1)):
            with pytest.raises(RuntimeError, match="Expected a floating point or complex.*Byte"):
                norm(x, dim)


def test_bilinear_refuses_a_bias_that_is_no_vector_and_tells_its_shape() -> None:
    args = torch.ones(3), torch.ones(4), torch.ones(5, 3, 4)
    with pytest.raises(RuntimeError, match=r"does not match weight size: got \[5, 1\]"):
        torch.nn.functional.bilinear(*args, torch.ones(5, 1))
    assert torch.nn.functional.bilinear(*args, torch.ones(5)).tolist() == [13] * 5


def test_differences_of_nothing_are_nothing_with_out_too() -> None:
    out = torch.zeros(3)[:0]
    for n in (1, 2):
        assert torch.diff(torch.zeros(0), n=n, out=out).shape == (0,)


def test_normal_of_means_gives_out_the_shape_of_any_out() -> None:
    mean = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    out = torch.zeros(0)
    assert torch.normal(mean, 0.0, out=out) is out
    assert out.tolist() == mean.tolist()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
def test_matrix_norms_of_no_elements_are_zero_or_there_is_no_least(shape: tuple[int, ...]) -> None:
    x, batch = torch.ones(shape), shape[:-2]
    for order in (inf, 1, 2, "fro", "nuc"):
        y = torch.linalg.matrix_norm(x, order, keepdim=True)
        assert y.shape == (*batch, 1, 1)
        assert not y.any()
    columns, rows = -1, -inf  # norms of them: sums of each, of which there may be some
    for order in {columns, rows, -2} - {columns if shape[-1] else 0, rows if shape[-2] else 0}:
        with pytest.raises(IndexError, match="non-zero size"):
            torch.linalg.matrix_norm(x, order)


@pytest.mark.parametrize("order", [None, 1, -1, 2, -2, inf, -inf])
def test_condition_number_of_no_elements_is_zero(order: float | None) -> None:
    for shape in ((0, 0), (0, 3), (2, 0, 3)):
        y = torch.linalg.cond(torch.ones(shape, dtype=torch.complex128), order)
        assert y.dtype == torch.float64
        assert y.tolist() == np.zeros(shape[:-2]).tolist()
    with pytest.raises(RuntimeError, match="invalid norm type: 3"):
        torch.linalg.cond(torch.ones(0, 0), 3)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "fft2", "ifftn"])
def test_one_value_is_its_own_transform_infinite_or_not(name: str) -> None:
    for value in (inf, -inf, 3.0):
        y = getattr(torch.fft, name)(torch.tensor([[value]]))
        assert (y.real.item(), y.imag.item()) == (value, 0)


def test_hash_of_a_number_takes_its_dimension_and_is_no_view_of_it() -> None:
    for x in (torch.tensor(3), torch.tensor(1.5, dtype=torch.float64)):
        want = x.clone().view(torch.int64).item()
        for dim in (0, -1, (), (0,)):
            y = torch.hash_tensor(x, dim, keepdim=True)
            assert (y.shape, y.item()) == ((), want)
            y.zero_()
        assert x.clone().view(torch.int64).item() == want


CROSS = [((5, 3, 4), (5, 3, 4), 1), ((3, 7), (3, 7), 0), ((1, 3), (6, 3), 1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
@pytest.mark.parametrize(("a", "b", "dim"), CROSS)
def test_cross_along_any_dimension_of_any_type(
    a: tuple[int, ...], b: tuple[int, ...], dim: int, dtype: torch.dtype
) -> None:
    generator = np.random.default_rng(1)
    x, y = (torch.tensor(generator.integers(-9, 9, shape)).to(dtype) for shape in (a, b))
    want = np.cross(*(np.moveaxis(v.numpy(), dim, -1) for v in (x, y)))
    got = torch.linalg.cross(x, y, dim=dim)
    assert got.is_contiguous()
    assert got.tolist() == np.moveaxis(want, -1, dim).tolist()
    # As it lies in memory across, and with gradients.
    across = x.mT.contiguous().mT
    assert torch.linalg.cross(across, y, dim=dim).tolist() == got.tolist()
    if dtype == torch.float64:
        leaves = [x.requires_grad_(), y.requires_grad_()]
        assert torch.autograd.gradcheck(lambda u, v: torch.linalg.cross(u, v, dim=dim), leaves)


def test_results_with_names_are_of_one_class_for_each_function() -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
    assert type(x.max(0)) is type(torch.max(x, 1)) is torch.return_types.max
    assert type(x.min(0)) is torch.return_types.min
    assert type(torch.linalg.qr(x)) is torch.return_types.linalg_qr
    assert x.max(0).indices.tolist() == [1, 0]


@pytest.mark.parametrize("device", ["cpu", "wgpu"])
@pytest.mark.parametrize("large", [1e2, 1e4, 1e8, 3e38])
def test_cross_entropy_of_large_scores_keeps_the_logarithm(large: float, device: str) -> None:
    if device == "wgpu" and not torch.wgpu.is_available():
        pytest.skip("no GPU")
    scores = torch.tensor([[large, large, 0.0], [large, large, large]], device=device)
    target, want = torch.tensor([0, 2], device=device), torch.tensor([np.log(2), np.log(3)]).float()
    slopes = torch.tensor([[-1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, -2 / 3]])
    for shape in ((2, 3), (2, 3, 1, 4)):  # positions of their own, and beside each other
        x = scores.reshape(2, 3, *[1] * (len(shape) - 2)).repeat(1, 1, *shape[2:]).requires_grad_()
        y = target.reshape(2, *[1] * (len(shape) - 2)).repeat(1, *shape[2:])
        for graph in (False, True):
            loss = F.cross_entropy(x, y, reduction="none")
            (g,) = torch.autograd.grad(loss.sum(), x, create_graph=graph)
            flat = loss.detach().cpu().reshape(2, -1)
            torch.testing.assert_close(flat, want[:, None].expand_as(flat), rtol=1e-6, atol=0)
            g = g.detach().cpu().reshape(2, 3, -1)
            torch.testing.assert_close(g, slopes[..., None].expand_as(g), rtol=1e-6, atol=1e-7)
        smooth = F.cross_entropy(x, y, label_smoothing=0.25, reduction="none")
        assert smooth[1].flatten()[0].item() == pytest.approx(np.log(3), rel=1e-6)
