"""Resilient backpropagation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    check_lr,
    new_step,
    number,
)

__all__ = ["Rprop"]


class Rprop(GradientOptimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993): only the sign of the gradient counts.

    Each element has a step size, times ``etas[1]`` while its gradient keeps its sign and times
    ``etas[0]`` when it changes (that step is skipped), kept within `step_sizes`.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 0.01
        The first size of every step.
    etas : (float, float), default (0.5, 1.2)
        The factors where a gradient changes its sign and where it does not.
    step_sizes : (float, float), default (1e-6, 50)
        The least and the largest step.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Rprop([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        lr = number(group["lr"])
        start = complex(lr, lr) if p.is_complex() else lr
        return {
            "step": new_step(p, group),
            "prev": pt.zeros_like(p),
            "step_size": pt.full_like(p, start).detach(),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        down, up = group["etas"]
        prev, size = state["prev"], state["step_size"]
        sign = (g * prev.clone()).sign()
        rises, falls, rests = sign > 0, sign < 0, sign == 0
        factor = sign.masked_fill(rises, up).masked_fill(falls, down).masked_fill(rests, 1.0)
        size.mul_(factor).clamp_(*group["step_sizes"])
        g = g.masked_fill(falls, 0)
        p.addcmul_(g.sign(), size.clone() if group["differentiable"] else size, value=-1)
        prev.copy_(g)
