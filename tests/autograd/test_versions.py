"""Changes in place: versions, retained gradients, and what backward may still read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_db import OPS
from op_row import Op

import pytensorlib as torch


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.mul_(2),
        lambda y: y.unsqueeze_(0).mul_(2),
        lambda y: y.squeeze_().mul_(2),
        lambda y: y.t_().mul_(2),
        lambda y: y.mul_(2).relu_(),
        lambda y: torch.nn.functional.relu(y.mul_(2), inplace=True),
    ],
)
def test_retained_gradient_is_that_of_the_changed_tensor(change: Any) -> None:
    x = leaf()
    y = (x * 3).view(1, 3)
    y = y.clone()
    y.retain_grad()
    change(y)
    (y * 5).sum().backward()
    assert y.grad.shape == y.shape
    assert y.grad.flatten().tolist() == [5, 5, 5]
    assert x.grad.tolist() == [30, 30, 30]


def test_retained_gradient_of_a_view_is_that_of_the_changed_view() -> None:
    x = leaf(1.0, 1.0, 1.0, 1.0)
    y = x * 2
    v = y[:2]
    v.retain_grad()
    v.mul_(3)
    (v * 5).sum().backward()
    assert v.grad.tolist() == [5, 5]
    assert x.grad.tolist() == [30, 30, 0, 0]


def test_data_assignment_keeps_the_version_counter() -> None:
    x = torch.randn(1, 2)
    view, before = x[:], x._version
    other = torch.randn(2, 3)
    x.data = other
    assert x._version == before
    x.add_(1)
    assert x._version == view._version == before + 1
    view.add_(1)
    assert x._version == view._version == before + 2
    assert other._version == 0


def test_data_assignment_does_not_hide_a_later_change() -> None:
    w = leaf()
    x = leaf(4.0, 5.0, 6.0)
    w.data = torch.zeros(3)
    with torch.no_grad():
        w.add_(1)
    z = x * w
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_resize_changes_the_version_and_only_other_shapes() -> None:
    x = torch.empty(1)
    x.resize_(3)
    assert x._version == 1
    x.resize_(3)
    assert x._version == 1
    y = torch.arange(6.0).view(2, 3).t()
    for same in (y.resize_(3, 2), y.resize_as_(torch.empty(3, 2))):
        assert same is y
        assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
        assert y.stride() == (1, 3)


def test_copy_of_itself_changes_the_version() -> None:
    x = torch.ones(2)
    x.copy_(x)
    assert x._version == 1


def test_detach_in_place_keeps_the_gradient() -> None:
    x = leaf()
    (x * 2).sum().backward()
    assert x.detach_() is x
    assert x.grad.tolist() == [2, 2, 2]
    assert not x.requires_grad
    y = leaf() * 2
    y.retain_grad()
    y.sum().backward()
    y.detach_()
    assert y.is_leaf
    assert y.grad.tolist() == [1, 1, 1]


def test_detach_in_place_leaves_what_was_saved() -> None:
    # PyTorch raises for the first; the gradient is known, so it is given.
    x = leaf(0.0)
    a = x.clone()
    b = a.sin()
    a.detach_()
    b.backward()
    assert x.grad.tolist() == [1]


def test_transposing_a_leaf_in_place_leaves_a_leaf() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    x.grad = torch.ones(2, 3)
    with torch.no_grad():
        x.t_()
    assert x.is_leaf
    assert x.shape == (3, 2)
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.shape == (3, 2)


def test_view_in_inference_mode_is_what_its_base_is() -> None:
    x = torch.ones(3)
    with torch.inference_mode():
        view, alias, fresh = x[:2], x.detach(), x + 1
        part = fresh[:1]
        x.add_(1)
    assert not view.is_inference()
    assert not alias.is_inference()
    assert fresh.is_inference()
    assert part.is_inference()
    assert fresh[:1].is_inference()
    view.add_(1)
    assert x.tolist() == [3, 3, 2]


def test_pack_hook_that_changes_its_input_raises() -> None:
    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        with pytest.raises(RuntimeError, match="modifying its input in place"):
            (x * 1).exp()


def test_saved_tensor_hooks_see_no_numbers() -> None:
    seen: list[Any] = []
    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        for y in (x * 2, x / 2, x + 2, x - 1, x**2, torch.where(x > 0, x, 0.0)):
            assert not any(t.dim() == 0 for t in seen), y.grad_fn
            seen.clear()


@pytest.mark.parametrize(
    ("name", "value", "first", "second"),
    [
        ("exp_", np.exp, np.exp, np.exp),
        ("tanh_", np.tanh, lambda x: 1 - np.tanh(x) ** 2,
         lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
        ("sqrt_", np.sqrt, lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
        ("reciprocal_", lambda x: 1 / x, lambda x: -(x**-2), lambda x: 2 * x**-3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("keep_view", [True, False])
def test_second_derivative_passes_an_in_place_op_on_a_view(
    name: str, value: Any, first: Any, second: Any, keep_view: bool
) -> None:
    at = np.array([0.1, 0.2, 0.3, 0.4])
    x = torch.tensor(at, requires_grad=True)
    y = x * 1
    view = y[1:3]
    getattr(view, name)()
    if not keep_view:
        del view
    (g,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    want = 6 * at
    f, d, dd = (fn(at[1:3]) for fn in (value, first, second))
    want[1:3] = 6 * f * d * d + 3 * f * f * dd
    assert np.allclose(gg.numpy(), want, rtol=1e-10)


def test_unique_values_are_in_the_graph_without_a_derivative() -> None:
    x = leaf()
    for y in (torch.unique(x), torch.unique(x, dim=0), torch.unique_consecutive(x)):
        assert y.requires_grad
        with pytest.raises(NotImplementedError, match="derivative for '_?unique"):
            y.sum().backward()
    assert not torch.unique(x, return_inverse=True)[1].requires_grad


def arguments(op: Op) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a row's largest sample of the first kind as float32 tensors."""

    def cast(v: Any) -> Any:
        if isinstance(v, np.ndarray):
            return torch.tensor(v.astype(np.float32) if v.dtype == np.float64 else v)
        if isinstance(v, (tuple, list)):
            return type(v)(cast(item) for item in v)
        return v

    sample = max(op.samples(), key=lambda s: s.elements() if s.elements() < 200 else -1)
    return [cast(v) for v in sample.args], {k: cast(v) for k, v in sample.kwargs.items()}


def tensors(values: Any) -> list[Any]:
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [t for v in values for t in tensors(v)]
    return []


@pytest.mark.parametrize("op", OPS, ids=str)
def test_every_form_that_writes_changes_the_version(op: Op) -> None:
    args, kwargs = arguments(op)
    function = op.function(torch)
    result = function(*args, **kwargs)
    assert all(t._version == 0 for t in tensors([args, list(kwargs.values())])), "functional"
    if op.out and isinstance(result, torch.Tensor):
        out = torch.empty_like(result)
        function(*args, **kwargs, out=out)
        assert out._version > 0, "out="
    if op.inplace and isinstance(args[0], torch.Tensor):
        x = args[0].clone()
        if result.shape == x.shape and result.dtype == x.dtype:
            before = x._version
            op.in_place(torch)(x, *args[1:], **kwargs)
            assert x._version > before, "in place"


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__setitem__(torch.tensor([0]), 1.0),
        lambda x: x.__setitem__(x > 0, 1.0),
        lambda x: x.__setitem__(slice(0, 0), 1.0),
        lambda x: x.fill_(1),
        lambda x: x.zero_(),
        lambda x: x.normal_(),
        lambda x: x.uniform_(),
        lambda x: x.random_(3),
        lambda x: x.bernoulli_(0.5),
        lambda x: x.exponential_(),
        lambda x: x.copy_(torch.ones(3)),
        lambda x: x.set_(torch.ones(3)),
        lambda x: x.resize_(5),
        lambda x: x.__iadd__(1),
        lambda x: torch.nn.init.ones_(x),
        lambda x: torch.nn.functional.relu(x, inplace=True),
        lambda x: torch.nn.functional.dropout(x, inplace=True),
        lambda x: torch.nn.utils.vector_to_parameters(torch.ones(3), [x]) or x.add_(0),
        lambda x: torch.arange(3, out=x),
        lambda x: torch.rand(3, out=x),
        lambda x: torch.autograd.graph.increment_version(x),
    ],
)
def test_every_writer_changes_the_version(write: Any) -> None:
    x = torch.ones(3)
    write(x)
    assert x._version > 0


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta"])
def test_optimizer_steps_change_the_version(kind: str) -> None:
    x = torch.ones(3, requires_grad=True)
    optimizer = getattr(torch.optim, kind)([x], lr=0.1)
    for _ in range(3):
        x.grad = torch.ones(3)
        before = x._version
        optimizer.step()
        assert x._version > before


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_view_from_without_recording_is_not_tied_to_a_changed_base(mode: Any) -> None:
    x = leaf()
    with mode():
        view = x[:2]
        x.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been"):
        (view * 2).sum().backward()
    assert view.detach().tolist() == [2, 4]


def test_view_of_a_leaf_that_stopped_asking_is_not_written_to() -> None:
    x = leaf()
    view = x[:2]
    x.requires_grad_(False)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)


def test_swapped_tensors_exchange_everything() -> None:
    x, y = leaf(), leaf(4.0) * 2
    x.note = "x"
    x.grad = torch.ones(3)
    torch.utils.swap_tensors(x, y)
    assert (x.tolist(), y.tolist()) == ([8], [1, 2, 3])
    assert (x.is_leaf, y.is_leaf, y.note) == (False, True, "x")
    assert y.grad.tolist() == [1, 1, 1]
    assert not hasattr(x, "note")
    (y * 2).sum().backward()
    assert y.grad.tolist() == [3, 3, 3]
    torch.utils.swap_tensors(x, y)
    assert x.tolist() == [1, 2, 3]
    assert y.grad_fn.name() == "MulBackward0"


def test_function_may_mark_a_view_of_its_input_where_nothing_is_recorded() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            view = x.view(-1)
            view.mul_(2)
            ctx.mark_dirty(view)
            return view

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    assert Twice.apply(torch.ones(2, 2)).tolist() == [2, 2, 2, 2]
    with pytest.raises(RuntimeError):
        Twice.apply(torch.ones(2, 2, requires_grad=True) * 1)


def test_gradients_end_at_a_view_from_without_recording() -> None:
    x = leaf()
    with torch.no_grad():
        view = x.view(3, 1)
    (view.squeeze() * 2 + x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert view.grad is None


def test_leaf_that_stopped_asking_gets_no_gradient() -> None:
    for stop in (lambda x: x.detach_(), lambda x: x.requires_grad_(False)):
        x, w = leaf(), leaf()
        y = (x * w).sum()
        stop(x)
        y.backward()
        assert x.grad is None
        assert w.grad.tolist() == [1, 2, 3]


def test_data_assignment_leaves_the_leaf_in_its_graph() -> None:
    x = leaf()
    y = (x * 3).sum()
    x.data = torch.zeros(3)
    (g,) = torch.autograd.grad(y, x)
    assert g.tolist() == [3, 3, 3]
