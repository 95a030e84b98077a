"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    add_scaled,
    check,
    check_lr,
    decayed,
    new_step,
    rate_of,
)

__all__ = ["Adadelta"]


class Adadelta(GradientOptimizer):
    """Adadelta (Zeiler 2012, arXiv:1212.5701): steps in the units of the parameter.

    ``v = rho * v + (1 - rho) * g * g``, ``d = sqrt(u + eps) / sqrt(v + eps) * g``,
    ``u = rho * u + (1 - rho) * d * d``, then ``p = p - lr * d``.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 1.0
        Factor of the step, at least 0.
    rho : float, default 0.9
        The decay of both running means, in [0, 1].
    eps : float, default 1e-6
        Added under both roots.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable : bool, optional
        Accepted as PyTorch does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adadelta([w])
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9968, -1.9968])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 <= rho <= 1.0, "rho value", rho)
        check(eps >= 0.0, "epsilon value", eps)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(p, group),
            "square_avg": pt.zeros_like(p),
            "acc_delta": pt.zeros_like(p),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        g = decayed(p, g, group["weight_decay"])
        rho, eps = group["rho"], group["eps"]
        v, u = state["square_avg"], state["acc_delta"]
        v.mul_(rho).add_(g * g * (1 - rho))
        delta = (u + eps).sqrt() / (v + eps).sqrt() * g
        u.mul_(rho).add_(delta * delta * (1 - rho))
        add_scaled(p, delta, -rate_of(group))
