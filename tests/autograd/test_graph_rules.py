"""What the graph owes to writes, views and saved tensors; the expectations are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

Step = Callable[[Any], Any]
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("source_needs", [False, True])
def test_copy_that_overwrites_all_gives_zeros_to_what_was_there(source_needs: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    source = torch.full((1,), 5.0, requires_grad=source_needs)
    y = x * 2
    y.copy_(source)
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0, 0.0]
    assert not source_needs or source.grad.tolist() == [30.0]


def test_copy_to_itself_is_recorded_and_counts_as_a_write() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.copy_(y)
    assert y._version == 1
    assert y.grad_fn is not None and y.grad_fn.name().endswith("CopyBackwards")
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.copy_(x)


HIDDEN: dict[str, Step] = {
    "norm": lambda x: x.norm(),
    "norm of one": lambda x: x[:1, :1].norm(),
    "norm along": lambda x: x.norm(2, 1),
    "matrix_norm": lambda x: torch.linalg.matrix_norm(x),
    "nuclear": lambda x: torch.linalg.norm(x, "nuc"),
    "dist": lambda x: torch.dist(x, x * 2),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x * 2),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * 2, dim=0),
    "normalize": lambda x: F.normalize(x),
    "index_select": lambda x: x.sum().index_select(0, torch.tensor([0])),
    "repeat": lambda x: x.repeat(2, 1),
    "kron": lambda x: torch.kron(x, x),
    "median": lambda x: x.median(0)[0],
    "aminmax": lambda x: torch.aminmax(x, dim=0)[0],
    "var_mean": lambda x: torch.var_mean(x, 0)[1],
}


@pytest.mark.parametrize("name", HIDDEN)
def test_result_in_memory_of_its_own_is_no_view(name: str) -> None:
    x = torch.arange(9.0).reshape(3, 3).clone().requires_grad_()
    y = HIDDEN[name](x + 1)
    assert not y._is_view()
    view = y[...]
    view.mul_(2)
    (g,) = torch.autograd.grad(view.sum(), y)
    assert g.tolist() == torch.ones_like(y).tolist()


def test_hook_on_the_node_of_a_result_outlives_a_change_of_its_shape() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x.index_select(0, torch.tensor([0]))
    y.grad_fn.register_prehook(lambda grads: tuple(g * 2 for g in grads))
    y.squeeze_()
    y.backward()
    assert x.grad.item() == 2.0


def test_node_that_leads_nowhere_checks_what_it_saved() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with torch.no_grad():
        unrecorded = x[...]
    y = unrecorded.sigmoid()
    y[0] = 0.5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (y * y).sum().backward()


def outdated() -> Any:
    base = torch.ones(3, 2, requires_grad=True) * 2
    view = base.unbind(0)[0]
    base.mul_(2)
    return view


def test_outdated_view_tells_its_gradient_and_refuses_what_needs_its_node() -> None:
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert outdated().grad is None
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        outdated().requires_grad_(False)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        outdated().sum()


def test_outdated_view_may_be_read_where_nothing_is_recorded() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with torch.no_grad():
        assert Doubled.apply(outdated()).tolist() == [8.0, 8.0]
    base = torch.ones(3, requires_grad=True) * 2
    with torch.no_grad():
        view = base[:2]
    base.mul_(2)
    assert view.requires_grad_(False) is view


CHANGES: dict[str, Step] = {
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_of_several_views_may_change_its_shape_unrecorded_and_not_be_used(name: str) -> None:
    view = (torch.ones(3, 2, requires_grad=True) * 2).unbind(0)[0]
    with torch.no_grad():
        CHANGES[name](view)
    assert view.numel() == 2
    with pytest.raises(RuntimeError, match="returns multiple views"):
        view.sum()


@pytest.mark.parametrize("op", [torch.cumprod, torch.prod, torch.logcumsumexp])
def test_scan_of_one_element_has_a_gradient_that_depends_on_nothing(op: Any) -> None:
    x = torch.tensor(1.5, requires_grad=True)
    (g,) = torch.autograd.grad(op(x, 0), x, create_graph=True)
    assert (g.item(), g.requires_grad) == (1.0, False)


def test_assignment_of_a_row_to_the_rows_around_it_reads_it_before() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    x[:] = x[1]
    assert x.tolist() == [[2.0, 3.0]] * 3


IN_PLACE: dict[str, Step] = {
    "elu_": lambda x: F.elu_(x, -2.0),
    "elu inplace": lambda x: F.elu(x, -2.0, inplace=True),
    "celu_": lambda x: F.celu_(x, -2.0),
    "leaky_relu_": lambda x: F.leaky_relu_(x, -0.5),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_activation_in_place_that_cannot_be_inverted_has_no_gradient(name: str) -> None:
    y = torch.tensor([-1.0, 0.5], requires_grad=True) * 2
    IN_PLACE[name](y)
    with pytest.raises(RuntimeError, match="call out-of-place version"):
        y.sum().backward()


def test_activation_that_falls_has_a_gradient_out_of_place() -> None:
    x = torch.tensor([-1.0, 0.5], requires_grad=True)
    F.leaky_relu(x, -0.5).sum().backward()
    assert x.grad.tolist() == [-0.5, 1.0]


def test_floor_divide_into_out_is_recorded_as_without_a_derivative() -> None:
    x = torch.tensor([7.0, -7.0], requires_grad=True)
    out = torch.empty(2)
    torch.floor_divide(x, 2, out=out)
    assert (out.tolist(), out.requires_grad) == ([3.0, -4.0], True)
    with pytest.raises(RuntimeError, match="is not implemented"):
        out.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("p", "wanted"),
    [
        (INF, [[0.0, -0.5, 0.5], [0.0, 0.0, 0.0]]),
        (-INF, [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    ],
)
def test_norm_of_the_extremes_gives_equal_shares_and_none_to_nan(
    dtype: torch.dtype, p: float, wanted: list[list[float]]
) -> None:
    values = [[1.0, -2.0, 2.0], [NAN, 1.0, 2.0]]
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    x.norm(p, 1).sum().backward()
    assert x.grad.tolist() == wanted


def test_norm_that_counts_has_no_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    x.norm(0).backward()
    assert x.grad is None


def test_norm_of_one_element_saves_its_result() -> None:
    y = torch.tensor(2.0, requires_grad=True).norm()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_power_saves_its_base_once_more_in_each_gradient() -> None:
    x = torch.tensor(5.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: 2 * x, lambda x: x):
        (g,) = torch.autograd.grad(x**3, x, create_graph=True)
    # 3 g x^2 with the base doubled in both nodes: each factor 2 is one saved tensor.
    assert g.item() == 3 * (2 * 5.0) ** 2
    g.backward()
    assert x.grad.item() == 2 * (3 * 2 * (2 * 2 * 5.0))


def test_leaf_that_requires_grad_is_not_resized() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad(), pytest.raises(RuntimeError, match="cannot resize variables"):
        x.resize_(2)


PICKED: dict[str, Step] = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "max_pool1d": lambda x: F.max_pool1d(x[0], 2),
    "avg_pool3d": lambda x: F.avg_pool3d(x, 2),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replication": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "nll_loss": lambda x: F.nll_loss(x[0, 0], torch.tensor([0, 2, 1, 3])),
    "nll_loss of images": lambda x: F.nll_loss(x, torch.zeros(1, 4, 4, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", PICKED)
def test_gradient_that_is_spread_or_picked_depends_on_its_input_by_nothing(name: str) -> None:
    x = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4).clone().requires_grad_()
    (g,) = torch.autograd.grad(PICKED[name](x).sum(), x, create_graph=True)
    assert g.requires_grad
    (second,) = torch.autograd.grad(g.sum(), x)
    assert not second.any()


def test_gradient_of_interpolation_depends_on_nothing() -> None:
    x = torch.ones(1, 2, 4, 4, requires_grad=True)
    y = F.interpolate(x, scale_factor=2, mode="bilinear")
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert not g.requires_grad


INDEX = torch.tensor([1, 0])
SEEN: dict[str, tuple[Step, int]] = {
    "std": (lambda x: x.std(), 1),
    "var": (lambda x: x.var(0), 1),
    "max": (lambda x: x.max(0)[0], 1),
    "layer_norm": (lambda x: F.layer_norm(x, (2,), torch.ones(2), torch.zeros(2)), 3),
    "median": (lambda x: x.median(), 1),
    "gather": (lambda x: x.gather(0, INDEX[None]), 1),
    "index_select": (lambda x: x.index_select(0, INDEX), 1),
    "take": (lambda x: x.take(INDEX), 1),
    "masked_select": (lambda x: x.masked_select(x > 1), 1),
    "scatter_add": (lambda x: x.scatter_add(0, INDEX[None], x[:1]), 2),
    "index_add": (lambda x: x.index_add(0, INDEX, x), 2),
    "where": (lambda x: torch.where(x > 1, x, x * 2), 2),
    "embedding": (lambda x: F.embedding(INDEX, x), 1),
    "nll_loss": (lambda x: F.nll_loss(x, INDEX), 1),
}


@pytest.mark.parametrize("name", SEEN)
def test_hook_on_a_node_sees_what_carries_gradients(name: str) -> None:
    function, inputs = SEEN[name]
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    y = function(x * 1)
    seen: list[tuple[int, int]] = []
    y.grad_fn.register_hook(lambda into, out: seen.append((len(into), len(out))))
    y.sum().backward()
    assert seen == [(inputs, 1)] and len(y.grad_fn.next_functions) == inputs


def test_hook_on_a_node_with_an_index_replaces_the_gradient() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    y = torch.where(x > 1.5, x * 1, x * 2)
    y.grad_fn.register_hook(lambda into, out: (into[0] * 10, None))
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 10.0], [10.0, 10.0]]


def test_hook_on_the_node_of_a_view_outlives_a_change_of_its_shape() -> None:
    x = torch.ones(1, 3, requires_grad=True)
    view = (x * 1).view(1, 3)
    view.grad_fn.register_prehook(lambda grads: tuple(g * 2 for g in grads))
    view.squeeze_()
    view.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0, 2.0]]


def test_assignment_of_one_element_to_itself_in_another_shape_is_a_copy() -> None:
    x = torch.tensor([3.0])
    x[None][0] = x[0]
    assert x.tolist() == [3.0]


def test_node_of_several_inputs_that_lead_nowhere_has_nothing_to_free() -> None:
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    with torch.no_grad():
        unrecorded = x[0]
    y = unrecorded * unrecorded
    for _ in range(2):
        y.sum().backward()
    assert x.grad is None


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


def test_product_with_a_view_made_without_recording_has_a_gradient() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 0.5
    with torch.no_grad():
        unrecorded = (x * 1).select(0, 0)
    (unrecorded @ y.select(0, 1)).backward()
    torch.testing.assert_close(x.grad, torch.tensor([[0.0, 0.0], [0.5, 1.0]]))


def test_leaf_that_got_a_dimension_goes_on_summing_its_gradient() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    held = x * 3
    held.backward(retain_graph=True)
    with torch.no_grad():
        x.unsqueeze_(0)
    (x * 4).sum().backward()
    assert x.grad is not None
    assert (x.grad.shape, x.grad.item()) == ((), 7.0)


def test_backward_to_a_tensor_runs_its_node_and_frees_it() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, seen = x.cumprod(0), []
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda g: seen.append("before"))
    y.grad_fn.register_hook(lambda g, outer: seen.append([i is None for i in g]))
    y.sum().backward(inputs=[y])
    assert seen == ["before", [True]]
    assert x.grad is None
    torch.testing.assert_close(y.grad, torch.ones(2))
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
