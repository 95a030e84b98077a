"""Checkpoints that keep the results of some operators and compute the others again."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from dispatch_log import Log, aten

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F  # noqa: N812


def steps(net: Any, x: Any, **options: Any) -> tuple[list[Any], list[str]]:
    """Return the gradients of a checkpointed network, and what was computed."""
    checkpoint = torch.utils.checkpoint.checkpoint
    x = x.detach().requires_grad_()
    with Log() as log:
        y = checkpoint(net, x, use_reentrant=False, **options)
        y.sum().backward()
    return [x.grad, *(p.grad for p in net.parameters())], log.names


def test_a_checkpoint_keeps_what_the_list_names() -> None:
    select = torch.utils.checkpoint.create_selective_checkpoint_contexts
    x, grads = torch.randn(2, 3), []
    counts = []
    for kept in (None, [aten.addmm.default], [aten.tanh.default]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh())
        options = {} if kept is None else {"context_fn": partial(select, kept)}
        found, names = steps(net, x, **options)
        grads.append(found)
        counts.append((names.count("aten.addmm.default"), names.count("aten.tanh.default")))
    assert counts[0] == (4, 4)
    assert counts[1] == (2, 4) and counts[2] == (4, 2)
    for other in grads[1:]:
        for a, b in zip(other, grads[0], strict=True):
            assert torch.equal(a, b)


def test_a_policy_is_told_of_operators_twice() -> None:
    module = torch.utils.checkpoint
    told = []

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        told.append((context.is_recompute, str(op)))
        return module.CheckpointPolicy.PREFER_RECOMPUTE

    x = torch.ones(2, requires_grad=True)
    contexts = lambda: module.create_selective_checkpoint_contexts(policy)  # noqa: E731
    y = module.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=contexts)
    assert told == [(False, "aten.exp.default"), (False, "aten.sin.default")]
    y.sum().backward()
    assert told[2:] == [(True, "aten.exp.default"), (True, "aten.sin.default")]


def test_what_was_kept_may_not_be_written_to() -> None:
    module = torch.utils.checkpoint

    def run(x: Any) -> Any:
        y = x.exp()
        z = y.sin()
        y.detach().add_(1)
        return z.cos()

    for allowed in (False, True):
        contexts = lambda a=allowed: module.create_selective_checkpoint_contexts(  # noqa: E731
            [aten.exp.default], allow_cache_entry_mutation=a
        )
        x = torch.ones(2, requires_grad=True)
        y = module.checkpoint(run, x, use_reentrant=False, context_fn=contexts)
        if allowed:
            y.sum().backward()
        else:
            with pytest.raises(RuntimeError, match="has been mutated"):
                y.sum().backward()


def test_numbers_drawn_after_a_kept_draw_are_the_same_again() -> None:
    module = torch.utils.checkpoint

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        # Only the first: the other is of a matrix.
        return op == aten.native_dropout.default and args[0].shape == (64,)

    def run(x: Any) -> Any:
        y = F.dropout(x, 0.5)
        return F.dropout((y * y).view(8, 8), 0.5).sin()

    def selected(x: Any) -> Any:
        contexts = lambda: module.create_selective_checkpoint_contexts(policy)  # noqa: E731
        return module.checkpoint(run, x, use_reentrant=False, context_fn=contexts)

    grads = []
    for function in (run, selected):
        torch.manual_seed(3)
        x = torch.linspace(0.1, 1, 64, requires_grad=True)
        function(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_what_is_kept_is_named_by_operators() -> None:
    select = torch.utils.checkpoint.create_selective_checkpoint_contexts
    with pytest.raises(ValueError, match=r"expected operators of type OpOverload.*\.default"):
        select([aten.mm])
    with pytest.raises(TypeError, match="must be either a function or a list of ops"):
        select(3)
