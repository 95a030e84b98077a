"""Cases that random programs of views, writes and hooks found; the expectations are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F


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


def test_repeat_interleave_once_is_a_copy() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for dim in (0, 1, None):
        y = torch.repeat_interleave(x, 1, dim)
        y.zero_()
    assert torch.repeat_interleave(x.t(), 2, 1).tolist() == [
        [0.0, 0.0, 3.0, 3.0],
        [1.0, 1.0, 4.0, 4.0],
        [2.0, 2.0, 5.0, 5.0],
    ]
    with pytest.raises(RuntimeError, match="negative"):
        torch.repeat_interleave(x, -1)


def test_index_put_of_its_own_elements_is_refused() -> None:
    x = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.index_put_((torch.tensor([1]),), x[3])
    assert x.index_put_((torch.tensor([1]),), x[3].clone()).tolist() == [0.0, 3.0, 2.0, 3.0]


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_inverse_of_a_singular_matrix_is_refused(upper: bool) -> None:
    for one, where in ((torch.eye(3), ""), (torch.eye(3).expand(2, 3, 3), "Batch element 1")):
        singular = one.clone()
        singular[..., 1, 1][-1 if one.dim() > 2 else ...] = 0
        with pytest.raises(torch.linalg.LinAlgError, match=f"{where}.*diagonal element 2 is zero"):
            torch.cholesky_inverse(singular, upper=upper)
    assert torch.equal(torch.cholesky_inverse(torch.eye(3)), torch.eye(3))
