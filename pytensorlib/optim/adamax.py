"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    add_quotient,
    add_times_quotient,
    check,
    check_betas,
    check_lr,
    decayed,
    new_step,
    number,
    rate_of,
)

__all__ = ["Adamax"]


class Adamax(GradientOptimizer):
    """Adamax (Kingma and Ba 2015): Adam with the infinity norm.

    ``m = b1 * m + (1 - b1) * g``, ``u = max(b2 * u, |g| + eps)``, then
    ``p = p - lr / (1 - b1**t) * m / u``.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 2e-3
        Learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the mean and of the largest gradient, in [0, 1).
    eps : float, default 1e-8
        Added to the gradient's size.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable : bool, optional
        Accepted as PyTorch does.

    References
    ----------
    Kingma and Ba 2014, arXiv:1412.6980.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adamax([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
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
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(p, group),
            "exp_avg": pt.zeros_like(p),
            "exp_inf": pt.zeros_like(p),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        g = decayed(p, g, group["weight_decay"])
        beta1, beta2 = group["betas"]
        m, u = state["exp_avg"], state["exp_inf"]
        m.lerp_(g, 1 - beta1)
        u.copy_(pt.maximum(u * beta2, g.abs() + group["eps"]))
        if group["differentiable"] or group["capturable"]:
            lr = group["lr"] if group["differentiable"] else number(group["lr"])
            below = u.clone() if group["differentiable"] else u
            add_quotient(p, m, below, -lr / (1 - beta1 ** state["step"]))
            return
        add_times_quotient(p, m, u, -rate_of(group) / (1 - beta1 ** state["step"].item()))
