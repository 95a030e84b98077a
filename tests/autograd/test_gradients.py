"""Which gradients are computed, and how they are added to those of leaves."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib.autograd import grad

close = torch.testing.assert_close


def test_only_gradients_that_are_asked_for_are_computed() -> None:
    # The derivative for the first argument is not implemented.
    a, x = (torch.full((3,), v, requires_grad=True) for v in (1.5, 2.0))
    y = torch.igamma(a * 1, x * 1).sum()
    for create in (False, True):
        (g,) = grad(y, x, retain_graph=True, create_graph=create)
        close(g.detach(), torch.full((3,), 2**0.5 * 0.1353352832) / 0.88622692545)
    y.backward(inputs=[x], retain_graph=True)
    assert a.grad is None and x.grad is not None
    for inputs in ([a], [x, a], []):
        with pytest.raises(NotImplementedError, match="not implemented"):
            y.backward(inputs=inputs or None, retain_graph=True)


def test_gradients_of_some_inputs_are_those_of_all() -> None:
    torch.manual_seed(0)
    F = torch.nn.functional

    def new(*shape: int) -> Any:
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    conv = [new(2, 4, 5), new(6, 4, 3), new(6)]
    cases = [
        (lambda a, b: (a @ b).tanh(), [new(3, 4), new(4, 2)]),
        (torch.addmm, [new(2), new(3, 4), new(4, 2)]),
        (F.linear, [new(2, 3, 4), new(5, 4), new(5)]),
        (lambda a, b: a / b * a.exp(), [new(3, 4), new(4)]),
        (F.conv1d, conv),
        (lambda x, w, b: F.layer_norm(x, (4,), w, b), [new(3, 4), new(4), new(4)]),
        (lambda *t: torch.cat(t, 0), [new(2, 3), new(1, 3), new(3, 3)]),
        (lambda *t: torch.stack(t).sin(), [new(1) for _ in range(70)]),
        (lambda a, b: F.cosine_similarity(a, b), [new(3, 4), new(3, 4)]),
        (lambda a, b: torch.cdist(a, b), [new(3, 4), new(2, 4)]),
        (lambda a, b: (a * 1).index_add(0, torch.tensor([0, 2]), b), [new(3), new(2)]),
        (lambda a, b: (a * 1).masked_fill(a > 0, b.sum()), [new(3), new(1)]),
        (lambda a, b: F.mse_loss(a, b), [new(3), new(3)]),
        (
            lambda a, b: F.grid_sample(a[None, None], b.tanh()[None, None], align_corners=False),
            [new(4, 4), new(3, 2)],
        ),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [new(1, 3, 4) for _ in "qkv"]),
    ]

    def slices(a: Any, b: Any) -> Any:
        y = a * 1
        y[1:].mul_(b)
        return y

    cases.append((slices, [new(3), new(2)]))
    for f, inputs in cases:
        whole = f(*[t * 1 for t in inputs])
        out = (whole * torch.randn_like(whole)).sum()
        want = grad(out, inputs, retain_graph=True)
        for i, t in enumerate(inputs):
            for create in (False, True):
                (g,) = grad(out, t, retain_graph=True, create_graph=create)
                close(g.detach(), want[i])
        last = grad(out, [inputs[-1], inputs[0]])
        close(last[0], want[-1])
        close(last[1], want[0])


def test_input_that_is_not_asked_for_must_still_be_unchanged() -> None:
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * w
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(y.sum(), w)


def saved_calls() -> dict[str, tuple[Any, list[Any]]]:
    """Return losses and norms as functions of x and of tensors that have no gradient."""
    F, target = torch.nn.functional, torch.tensor([0, 2])
    ones = [torch.ones(3), torch.ones(3)]
    return {
        "cross_entropy": (lambda x, w: F.cross_entropy(x, target, w), ones[:1]),
        "smooth": (lambda x, w: F.cross_entropy(x, target, w, label_smoothing=0.1), ones[:1]),
        "probabilities": (lambda x, p, w: F.cross_entropy(x, p, w), [torch.ones(2, 3), ones[0]]),
        "target": (lambda x, t: F.cross_entropy(x, t), [target]),
        "nll": (lambda x, w, t: F.nll_loss(x, t, w), [ones[0], target]),
        "nll2d": (
            lambda x, w: F.nll_loss(x.t()[None, :, :, None].exp(), target[None, :, None], w),
            ones[:1],
        ),
        "margin": (lambda x, w: F.multi_margin_loss(x, target, weight=w), ones[:1]),
        "labels": (
            lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w),
            [torch.ones(2, 3), *ones[:1]],
        ),
        "bce": (
            lambda x, t, w: F.binary_cross_entropy(x.sigmoid(), t, w),
            [torch.ones(2, 3), *ones[:1]],
        ),
        "logits": (
            lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p),
            [torch.ones(2, 3), *ones],
        ),
        "batch_norm": (lambda x, m, v: F.batch_norm(x, m, v), ones),
        "instance_norm": (
            lambda x, m, v: F.instance_norm(x[..., None], m, v, use_input_stats=False),
            ones,
        ),
    }


@pytest.mark.parametrize("name", saved_calls())
def test_tensor_saved_beside_the_input_must_be_unchanged(name: str) -> None:
    for i in range(len(saved_calls()[name][1])):
        f, rest = saved_calls()[name]
        x = torch.tensor([[1.0, 2.0, 0.5], [0.25, -1.0, 3.0]], requires_grad=True)
        (want,) = grad(f(x, *rest).sum(), x)
        loss = f(x, *rest).sum()
        rest[i].zero_()
        try:
            (got,) = grad(loss, x)
        except RuntimeError as e:
            assert "modified by an inplace operation" in str(e)  # noqa: PT017
        else:
            # What is multiplied outside the loss itself was copied there.
            close(got, want)


@pytest.mark.parametrize("name", ["cross_entropy", "nll", "batch_norm", "instance_norm"])
def test_weight_or_statistic_changed_after_the_call_raises(name: str) -> None:
    for i in range(len(saved_calls()[name][1])):
        f, rest = saved_calls()[name]
        loss = f(torch.ones(2, 3, requires_grad=True), *rest).sum()
        rest[i].mul_(5)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize(
    ("f", "shapes", "want"),
    [
        (torch.nn.functional.linear, [(2, 3), (4, 3), (4,)], 2.0),
        (torch.nn.functional.linear, [(3,), (4, 3), (4,)], 1.0),
        (torch.addmm, [(4,), (2, 3), (3, 4)], 2.0),
        (lambda m, v, b: torch.addmv(b, m, v, beta=3), [(4, 3), (3,), (4,)], 3.0),
        (lambda x, y, b: torch.baddbmm(b, x, y), [(5, 2, 3), (5, 3, 4), (2, 1)], 20.0),
        (lambda x, y, b: torch.addbmm(b, x, y), [(5, 2, 3), (5, 3, 4), (2, 4)], 1.0),
        (lambda x, y, b: torch.addr(b, x, y), [(2,), (4,), (2, 4)], 1.0),
        (torch.nn.functional.bilinear, [(2, 3), (2, 4), (5, 3, 4), (5,)], 2.0),
        (torch.nn.functional.conv1d, [(2, 3, 6), (4, 3, 3), (4,)], 8.0),
        (torch.nn.functional.conv_transpose1d, [(2, 3, 6), (3, 4, 3), (4,)], 16.0),
    ],
)
def test_gradient_of_the_added_term_alone(f: Any, shapes: list[Any], want: float) -> None:
    inputs = [torch.ones(*s) for s in shapes]
    last = 0 if f is torch.addmm else -1
    inputs[last].requires_grad_()
    f(*inputs).sum().backward()
    close(inputs[last].grad, torch.full(shapes[last], want))


def test_attention_layer_trains_its_biases_alone() -> None:
    layer = torch.nn.MultiheadAttention(4, 2)
    for n, p in layer.named_parameters():
        p.requires_grad_("bias" in n)
    biases = [p for p in layer.parameters() if p.requires_grad]
    x = torch.ones(3, 2, 4)
    layer(x, x, x)[0].sum().backward()
    assert all(b.grad is not None for b in biases)
    close(layer.out_proj.bias.grad, torch.full((4,), 6.0))


def test_threads_that_ask_for_different_gradients_of_one_graph() -> None:
    torch.manual_seed(0)
    w = [torch.randn(6, 6, dtype=torch.float64, requires_grad=True) for _ in range(4)]
    y = w[0]
    for t in w[1:]:
        y = (y @ t).sin()
    out = y.sum()
    want = grad(out, w, retain_graph=True)
    failed: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for i in range(100):
                k = (first + i) % 4
                (g,) = grad(out, w[k], retain_graph=True, create_graph=i % 2 == 0)
                close(g.detach(), want[k])
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def product_gradients(shape: tuple[int, ...], runs: int, **keep: bool) -> tuple[Any, Any]:
    """Gradients of a weight after some backward passes, and the sum of those of each alone."""
    w = torch.randn(6, shape[-1], dtype=torch.float64, requires_grad=True)
    b = torch.randn(6, dtype=torch.float64, requires_grad=True)
    alone = torch.zeros(6, shape[-1], dtype=torch.float64)
    for _ in range(runs):
        x = torch.randn(*shape, dtype=torch.float64)
        loss = torch.nn.functional.linear(x, w, b).square().sum() + (x @ w.t()).sum()
        alone += torch.autograd.grad(loss, w, retain_graph=True)[0]
        loss.backward(**keep)
    return w.grad, alone


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (0, 5), (70, 130)], ids=str)
def test_products_are_added_to_gradients(shape: tuple[int, ...]) -> None:
    for keep in ({}, {"retain_graph": True}, {"create_graph": True}):
        grad, alone = product_gradients(shape, 3, **keep)
        close(grad.detach(), alone)


def test_products_of_batches_are_added_to_gradients() -> None:
    x = torch.randn(3, 4, 5, dtype=torch.float64)
    v, a = torch.randn(5, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    for shape in [(3, 5, 2), (1, 5, 2), (2, 1, 5, 2), (5,)]:
        w = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        alone = torch.zeros_like(w)
        for _ in range(3):
            loss = (x @ w).square().sum() + (a @ w).sum() + (v @ w).sum()
            alone += grad(loss, w, retain_graph=True)[0]
            loss.backward()
        close(w.grad, alone)


def test_gradients_that_others_hold_are_added_to_in_place() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True)
    (x @ w).sum().backward()
    held, version, first = w.grad, w.grad._version, w.grad.clone()
    (x @ w).sum().backward()
    assert w.grad is held and held._version == version + 1
    assert torch.equal(held, 2 * first)
    # Asking for gradients leaves .grad alone.
    torch.autograd.grad((x @ w).sum(), w)
    assert torch.equal(held, 2 * first) and held._version == version + 1


def test_whoever_looks_at_a_gradient_sees_the_one_that_arrives() -> None:
    x, w = torch.ones(3, 4), torch.ones(4, 2, requires_grad=True)
    w.grad = torch.full((4, 2), 100.0)
    seen: list[Any] = []
    hook = w.register_hook(lambda g: seen.append(g.clone()) or 2 * g)
    (x @ w).sum().backward()
    assert torch.equal(seen[0], torch.full((4, 2), 3.0))
    assert torch.equal(w.grad, torch.full((4, 2), 106.0))
    hook.remove()
    hook = w.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
    (x @ w).sum().backward()
    assert torch.equal(seen[1], torch.full((4, 2), 109.0))
    hook.remove()
    y = x @ w
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[1].clone()))
    y.sum().backward()
    assert torch.equal(seen[2], torch.full((4, 2), 3.0))
    assert torch.equal(w.grad, torch.full((4, 2), 112.0))


def test_gradients_of_other_layouts_are_kept_apart() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True)
    want = x.t() @ torch.ones(3, 2)
    # A gradient by columns, one that is an operand itself, and one with a history.
    w.grad = torch.zeros(2, 4).t()
    (x @ w).sum().backward()
    close(w.grad, want)
    square = torch.randn(3, 3, requires_grad=True)
    x = torch.randn(3, 3)
    before = x.clone()
    y = x @ square
    square.grad = x.detach()
    y.sum().backward()
    close(square.grad, before + before.t() @ torch.ones(3, 3))
    past = torch.zeros(3, 3, requires_grad=True)
    square.grad = past * 1
    (before @ square).sum().backward()
    assert torch.equal(past, torch.zeros(3, 3))
    close(square.grad.detach(), before.t() @ torch.ones(3, 3))


def test_gradients_accumulate_as_pytorch_does() -> None:
    # In place where nothing is recorded, also into a gradient with a history.
    x, w = torch.ones(4, 2), torch.ones(2, 3, requires_grad=True)
    (x @ w).square().sum().backward(create_graph=True)
    held, first = w.grad, w.grad.detach().clone()
    assert held.requires_grad
    (x @ w).square().sum().backward()
    assert w.grad is held and held.requires_grad
    close(held.detach(), 2 * first)
    # The first gradient lies in memory as its leaf does.
    w = torch.ones(3, 2).t().requires_grad_()
    (x @ w).sum().backward()
    assert w.grad.stride() == w.stride() == (1, 2)
    close(w.grad, torch.full((2, 3), 4.0))


@pytest.mark.parametrize("e", [1, 1.0, 2, -1, 0.5, 3])
def test_gradient_of_a_power_depends_on_its_base(e: float) -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad((x**e).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == pytest.approx([e * (e - 1) * v ** (e - 2) for v in (2.0, 3.0)], abs=1e-6)


INF, NAN = math.inf, math.nan


def test_prod_of_a_number_has_slope_one_also_at_infinity() -> None:
    x = torch.tensor(INF, requires_grad=True)
    assert torch.autograd.grad(x.prod(), x)[0].item() == 1


def test_gradients_flow_through_detach_copy() -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch.detach_copy(x)
    assert y.requires_grad and y.data_ptr() != x.data_ptr()
    (3 * y).sum().backward()
    assert x.grad.tolist() == [3, 3]


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


def test_number_in_a_gradients_graph_keeps_its_precision() -> None:
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (2.0, 3.0))
    first = torch.autograd.grad(torch.lerp(a, b, 0.3), [a, b], create_graph=True)
    assert [g.item() for g in first] == [0.7, 0.3]


STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "relu_": lambda x: (x * 1).relu_(),
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "rrelu": F.rrelu,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25])),
    "threshold": lambda x: F.threshold(x, 0.0, 1.0),
    "hardtanh": F.hardtanh,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "hardsigmoid": F.hardsigmoid,
}


@pytest.mark.parametrize("name", STEPS)
def test_gradient_that_is_a_step_has_a_second_of_zeros(name: str) -> None:
    x = torch.tensor([-1.0, 0.4, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad(STEPS[name](x).sum(), x, create_graph=True)
    assert g.requires_grad
    g.sum().backward()
    torch.testing.assert_close(x.grad, torch.zeros(3))


PICKING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "max": lambda x: x.max(0)[0],
    "min": lambda x: x.min(0)[0],
    "sort": lambda x: x.sort(0)[0],
    "topk": lambda x: x.topk(1)[0],
    "median": lambda x: x.median(0)[0],
    "mode": lambda x: x.mode(0)[0],
    "cummax": lambda x: x.cummax(0)[0],
    "dropout": lambda x: F.dropout(x, 0.5),
}


@pytest.mark.parametrize("name", PICKING)
def test_gradient_that_reads_indices_only_needs_no_second(name: str) -> None:
    x = torch.tensor([-1.0, 0.4, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad(PICKING[name](x).sum(), x, create_graph=True)
    assert not g.requires_grad


@pytest.mark.parametrize("name", [n for n in PICKING if n != "dropout"])
def test_node_hooks_see_no_gradients_of_indices(name: str) -> None:
    x = torch.tensor([-1.0, 0.4, 2.0], requires_grad=True)
    y, seen = PICKING[name](x), []
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda g: seen.append(len(g)))
    y.grad_fn.register_hook(lambda g, outer: seen.append((len(g), len(outer))))
    y.sum().backward()
    assert seen == [1, (1, 1)]


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda x: torch.lerp(x, x + 1, 0.25), [1.0, 1.0]),
        (lambda x: torch.lerp(x, torch.zeros(2), 0.75), [0.25, 0.25]),
        (lambda x: x.repeat_interleave(3), [3.0, 3.0]),
        (lambda x: x.repeat_interleave(1, 0), [1.0, 1.0]),
    ],
)
def test_what_keeps_numbers_only_runs_backward_twice(
    make: Callable[[torch.Tensor], torch.Tensor], want: list[float]
) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = make(x).sum()
    y.backward()
    torch.testing.assert_close(x.grad, torch.tensor(want))
    y.backward()
    torch.testing.assert_close(x.grad, 2 * torch.tensor(want))


def test_settings_of_autograd_decorate_functions() -> None:
    @torch.autograd.set_multithreading_enabled(False)
    def add(x: int, y: int = 1) -> int:
        """Add."""
        return x + y

    assert (add(1), add(1, 2), add.__doc__) == (2, 3, "Add.")
