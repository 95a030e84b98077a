"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .. import _C
from .optimizer import (
    GradientOptimizer,
    add_quotient,
    add_times_quotient,
    check,
    check_lr,
    decayed,
    new_step,
    number,
    rate_of,
    step_value,
)

__all__ = ["Adagrad"]


class Adagrad(GradientOptimizer):
    """Adagrad (Duchi et al. 2011): steps shrink where gradients have been large.

    ``sum = sum + g * g``, then ``p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(sum) + eps)``.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 0.01
        Learning rate, at least 0.
    lr_decay : float, default 0
        Divides the rate by ``1 + (t - 1) * lr_decay``.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    initial_accumulator_value : float, default 0
        Where the sums of squares begin.
    eps : float, default 1e-10
        Added to the root.
    fused : bool, optional
        Accepted as PyTorch does.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adagrad([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(lr_decay >= 0.0, "lr_decay value", lr_decay)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check(
            initial_accumulator_value >= 0.0,
            "initial_accumulator_value value",
            initial_accumulator_value,
        )
        check(eps >= 0.0, "epsilon value", eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._new_state(p, group)

    def share_memory(self) -> None:
        """Move the sums to shared memory."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        start = complex(start, start) if p.is_complex() else start
        return {"step": new_step(p, group), "sum": pt.full_like(p, start).detach()}

    _takes_sparse = True

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        if g.is_sparse and group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        g = decayed(p, g, group["weight_decay"])
        if g.is_sparse:
            t, lr = state["step"].item(), number(group["lr"])
            g = g.coalesce()
            state["sum"].add_(g * g)
            below = state["sum"].sparse_mask(g).values().sqrt() + group["eps"]
            step = g.values() / below
            step = _C._sparse_coo_tensor(g.indices(), step, tuple(g.shape), is_coalesced=True)
            p.add_(step, alpha=-lr / (1 + (t - 1) * group["lr_decay"]))
            return
        state["sum"].add_(g * g)
        below = state["sum"].sqrt() + group["eps"]
        if group["differentiable"]:
            t, lr = step_value(state["step"], group), group["lr"]
            add_quotient(p, g, below, -lr / (1 + (t - 1) * group["lr_decay"]))
            return
        t, lr = state["step"].item(), rate_of(group)
        add_times_quotient(p, g, below, -lr / (1 + (t - 1) * group["lr_decay"]))
