"""Operators that programs define, within transforms and of lists; numbers as of PyTorch 2.13."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import func, library

x = torch.arange(6.0).view(2, 3)


@library.custom_op("transformed::scaled_product", mutates_args=())
def product(a: torch.Tensor, b: torch.Tensor, k: float = 2.0) -> torch.Tensor:
    return a * b * k


def keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.k = inputs[2]


def slope(ctx: Any, g: Any) -> Any:
    a, b = ctx.saved_tensors
    return product(g, b, ctx.k), product(g, a, ctx.k), None


product.register_autograd(slope, setup_context=keep)
asked: list[Any] = []


@product.register_vmap
def _(info: Any, in_dims: Any, a: Any, b: Any, *k: float) -> Any:
    asked.append((info.batch_size, in_dims))
    a, b = (t if d is None else t.movedim(d, 0) for t, d in zip((a, b), in_dims[:2], strict=True))
    return product(a, b, *k), 0


def test_vmap_of_an_operator_calls_its_rule_once_with_the_arguments_that_were_given() -> None:
    asked.clear()
    assert torch.equal(func.vmap(product, (0, None))(x, x[1]), x * x[1] * 2)
    assert asked == [(2, (0, None))]
    assert torch.equal(func.vmap(lambda a: product(a, a, 3.0), 1)(x), (x * x * 3).T)
    assert asked[1:] == [(3, (1, 1, None))]


def test_gradients_and_slices_of_an_operator_nest() -> None:
    gradients = func.vmap(func.grad(lambda a: product(a, a, 3.0).sum()))(x)
    assert torch.equal(gradients, 6 * x)
    hessian = func.jacrev(func.jacrev(lambda a: product(a, a, 3.0).sum()))(x[0])
    assert torch.equal(hessian, 6 * torch.eye(3))
    y = x.clone().requires_grad_()
    func.vmap(lambda t: product(t, t))(y).sum().backward()
    assert torch.equal(y.grad, 4 * x)


def test_vmap_of_an_operator_without_a_rule_runs_for_each_slice_and_warns() -> None:
    @library.custom_op("transformed::both", mutates_args=())
    def both(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert a.dim() == 1
        return a + 1, a.sum().reshape(1)

    with pytest.warns(UserWarning, match="batching rule for transformed::both"):
        more, sums = func.vmap(both)(x)
    assert torch.equal(more, x + 1) and torch.equal(sums, x.sum(1, keepdim=True))


def test_vmap_of_an_operator_that_writes_needs_a_rule() -> None:
    @library.custom_op("transformed::fill_", mutates_args=("a",))
    def fill_(a: torch.Tensor, value: float) -> None:
        a.fill_(value)

    with pytest.raises(RuntimeError, match="Batching rule not implemented for transformed::fill_"):
        func.vmap(lambda t: fill_(t.clone(), 1.0))(x)


def test_operator_of_a_list_differentiates_by_a_list() -> None:
    @library.custom_op("transformed::joined", mutates_args=())
    def joined(parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(parts)

    joined.register_autograd(
        lambda ctx, g: list(g.split(ctx.sizes)),
        setup_context=lambda ctx, inputs, output: setattr(
            ctx, "sizes", [t.shape[0] for t in inputs[0]]
        ),
    )
    y = x.clone().requires_grad_()
    (joined([y, 2 * y]) * torch.arange(12.0).view(4, 3)).sum().backward()
    assert y.grad.tolist() == [[12.0, 15.0, 18.0], [21.0, 24.0, 27.0]]
    seen = []

    @joined.register_vmap
    def _(info: Any, in_dims: Any, parts: Any) -> Any:
        seen.append(in_dims)
        return torch.cat(parts, 1), 0

    assert torch.equal(func.vmap(lambda t: joined([t, 2 * t]))(x), torch.cat([x, 2 * x], 1))
    assert seen == [([0, 0],)]


def test_operator_that_gives_a_list_gets_its_gradients_in_a_list() -> None:
    kinds = []

    @library.custom_op("transformed::listed", mutates_args=())
    def listed(a: torch.Tensor) -> list[torch.Tensor]:
        return [a + 1, 2 * a]

    listed.register_autograd(
        lambda ctx, g: g[0] + 2 * g[1],
        setup_context=lambda ctx, inputs, output: kinds.append(type(output)),
    )
    y = x.clone().requires_grad_()
    first, second = made = listed(y)
    (first.sum() + second.sum()).backward()
    assert type(made) is list and kinds == [list]
    assert torch.equal(y.grad, torch.full((2, 3), 3.0))
