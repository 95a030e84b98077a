"""Rectified Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    add_times,
    add_times_quotient,
    check,
    check_betas,
    check_lr,
    decayed,
    new_step,
    rate_of,
)

__all__ = ["RAdam"]


class RAdam(GradientOptimizer):
    """RAdam (Liu et al. 2020, arXiv:1908.03265): Adam that warms itself up.

    Until the variance of the adaptive rate is tractable (about five steps) it is momentum alone,
    then Adam's step times a rectification that grows towards 1.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 1e-3
        Learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the running means of the gradient and its square, in [0, 1).
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    decoupled_weight_decay : bool, default False
        Decay as `AdamW` does.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.RAdam([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.8000, -1.6000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(eps >= 0.0, "epsilon value", eps)
        check_betas(betas)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(p, group),
            "exp_avg": pt.zeros_like(p),
            "exp_avg_sq": pt.zeros_like(p),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        lr = rate_of(group)
        if group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        else:
            g = decayed(p, g, group["weight_decay"])
        beta1, beta2 = group["betas"]
        m, v = state["exp_avg"], state["exp_avg_sq"]
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).add_(g * g * (1 - beta2))
        t = state["step"].item()
        # The length of the mean's window, from which its variance is known.
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
        # A later step changes the mean in place.
        m = m.clone() if group["differentiable"] else m
        size = lr / (1 - beta1**t)
        if rho <= 5.0:
            add_times(p, m, -size)
            return
        rectify = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
        size = size * (1 - beta2**t) ** 0.5 * rectify
        add_times_quotient(p, m, v.sqrt() + group["eps"], -size)
