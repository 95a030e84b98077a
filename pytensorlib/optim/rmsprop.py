"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt
from pytensorlib import _C

from .optimizer import (
    GradientOptimizer,
    add_quotient,
    add_scaled,
    can_fuse,
    check,
    check_lr,
    decayed,
    new_step,
    number,
    rate_of,
)

__all__ = ["RMSprop"]


class RMSprop(GradientOptimizer):
    """RMSprop (Hinton 2012): divide by a running root mean square of the gradient.

    ``v = alpha * v + (1 - alpha) * g * g``, then ``p = p - lr * g / (sqrt(v) + eps)``; `centered`
    takes the square of the running mean off ``v``, `momentum` accumulates the quotients.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 0.01
        Learning rate, at least 0.
    alpha : float, default 0.99
        The decay of the running mean of squares.
    eps : float, default 1e-8
        Added to the root.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    momentum : float, default 0
        Of the steps.
    centered : bool, default False
        Divide by the standard deviation: take the mean's square off.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.RMSprop([w], lr=0.01)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(eps >= 0.0, "epsilon value", eps)
        check(momentum >= 0.0, "momentum value", momentum)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check(alpha >= 0.0, "alpha value", alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": new_step(p, group), "square_avg": pt.zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = pt.zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = pt.zeros_like(p)
        return state

    def _update_group(self, params: list[Any], group: dict[str, Any]) -> None:
        if not can_fuse(params, group) or params[0].device.type != "cpu":
            return super()._update_group(params, group)
        states = [self.state[p] for p in params]
        _C._foreach_add_([s["step"] for s in states], 1)
        momentum, centered = float(group["momentum"]), group["centered"]
        _C._fused_rmsprop_(
            params,
            [p.grad for p in params],
            [s["square_avg"] for s in states],
            [s["grad_avg"] for s in states] if centered else [],
            [s["momentum_buffer"] for s in states] if momentum > 0 else [],
            lr=float(number(group["lr"])),
            alpha=float(group["alpha"]),
            eps=float(group["eps"]),
            weight_decay=float(group["weight_decay"]),
            momentum=momentum,
            centered=centered,
            maximize=group["maximize"],
        )
        return None

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        g = decayed(p, g, group["weight_decay"])
        alpha, v = group["alpha"], state["square_avg"]
        lr = rate_of(group)
        v.mul_(alpha).add_(g * g * (1 - alpha))
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(g, 1 - alpha)
            v = v - mean * mean
        below = v.sqrt() + group["eps"]
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(g, below)
            add_scaled(p, buffer, -lr)
        else:
            add_quotient(p, g, below, -lr)
