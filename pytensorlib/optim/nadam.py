"""Adam with Nesterov momentum."""

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
    rate_of,
)

__all__ = ["NAdam"]


class NAdam(GradientOptimizer):
    """NAdam (Dozat 2016): Adam with Nesterov momentum.

    ``mu_t = b1 * (1 - 0.96**(t * momentum_decay) / 2)`` weighs the gradient and the running mean;
    `decoupled_weight_decay` takes the decay off the parameter, as `AdamW`.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 2e-3
        Learning rate, at least 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the running means of the gradient and its square, in [0, 1).
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    momentum_decay : float, default 4e-3
        How fast the momentum grows to its bound.
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
    >>> optimizer = optim.NAdam([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.8944, -1.8944])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(p, group),
            "mu_product": new_step(p, group) + 1,
            "exp_avg": pt.zeros_like(p),
            "exp_avg_sq": pt.zeros_like(p),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        plain = not (group["differentiable"] or group["capturable"])
        lr = rate_of(group)
        if group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        else:
            g = decayed(p, g, group["weight_decay"])
        beta1, beta2 = group["betas"]
        t = state["step"].item() if plain else state["step"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"]))
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * group["momentum_decay"]))
        state["mu_product"] *= mu
        product = state["mu_product"].item() if plain else state["mu_product"]
        m, v = state["exp_avg"], state["exp_avg_sq"]
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).add_(g * g * (1 - beta2))
        below = (v / (1 - beta2**t)).sqrt() + group["eps"]
        sizes = -lr * (1 - mu) / (1 - product), -lr * mu_next / (1 - product * mu_next)
        for above, size in zip((g, m), sizes, strict=True):
            add = add_times_quotient if plain else add_quotient
            add(p, above, below, size)
