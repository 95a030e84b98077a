"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    add_times,
    check,
    check_lr,
    decayed,
    new_step,
    number,
    rate_of,
)

__all__ = ["ASGD"]


class ASGD(GradientOptimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992).

    ``p = (1 - lambd * eta) * p - eta * g`` with ``eta = lr / (1 + lambd * lr * t)**alpha``; the
    state's ``ax`` is the running mean of ``p`` from step `t0` on.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 0.01
        Learning rate, at least 0.
    lambd : float, default 1e-4
        How fast the rate and the parameters decay.
    alpha : float, default 0.75
        The power of the rate's decay.
    t0 : float, default 1e6
        The step from which on averages are taken.
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
    >>> optimizer = optim.ASGD([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.8000, -1.6000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        step = new_step(p, group)
        return {
            "step": step,
            "eta": (step + number(group["lr"])).detach(),
            "mu": step + 1,
            "ax": pt.zeros_like(p),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        g = decayed(p, g, group["weight_decay"])
        t, lr, lambd, ax = state["step"].item(), rate_of(group), group["lambd"], state["ax"]
        eta = state["eta"].item()
        p.mul_(1 - lambd * eta)
        add_times(p, g, -eta)
        # Until then the mean's newest weight is 1.
        if t - 1 - group["t0"] > 1:
            add_times(ax, p - ax, state["mu"].item())
        else:
            ax.copy_(p)
        state["eta"].fill_(lr / (1 + lambd * lr * t) ** group["alpha"])
        state["mu"].fill_(1 / max(1, t - group["t0"]))
