"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt
from pytensorlib import _C

from .optimizer import (
    GradientOptimizer,
    add_scaled,
    can_fuse,
    check,
    check_lr,
    decayed,
    may_fuse,
    number,
)

__all__ = ["SGD"]


class SGD(GradientOptimizer):
    """Stochastic gradient descent, with momentum and Nesterov's variant of it.

    ``b = momentum * b + (1 - dampening) * g`` (``b = g`` at the first step), then
    ``p = p - lr * b``, or ``p - lr * (g + momentum * b)`` with `nesterov`.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them.
    lr : float or Tensor, default 1e-3
        Learning rate, at least 0.
    momentum, dampening, weight_decay : float, default 0
        `weight_decay` adds ``weight_decay * p`` to the gradient.
    nesterov : bool
        Needs a momentum and no dampening.
    maximize : bool
        Climb instead of descend.
    foreach, fused : bool, optional
        Accepted as PyTorch does; by default one fused call updates a group.
    differentiable : bool
        Record the step itself for autograd.

    Raises
    ------
    ValueError
        An option is out of range, or `nesterov` lacks a momentum.

    References
    ----------
    Sutskever et al. 2013, On the importance of initialization and momentum in deep learning,
    ICML.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.SGD([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.8000, -1.6000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(momentum >= 0.0, "momentum value", momentum)
        check(bool(weight_decay >= 0.0), "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if fused and differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    _takes_sparse = True

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": None} if group["momentum"] != 0 else {}

    def _fused_group(self, group: dict[str, Any]) -> bool:
        if not may_fuse(group):
            return False
        params = group["params"]
        names = ("momentum_buffer",) if group["momentum"] != 0 else ()
        lists = _C._fused_lists(params, self.state, names)
        if lists is None:
            return False
        grads, buffers = lists if names else (lists[0], [])
        _call(params, grads, buffers, group, False)
        return True

    def _update_group(self, params: list[Any], group: dict[str, Any]) -> None:
        if not can_fuse(params, group):
            return super()._update_group(params, group)
        fresh, warm = params, []
        if group["momentum"] != 0:
            buffers = [self.state[p].get("momentum_buffer") for p in params]
            fresh = [p for p, b in zip(params, buffers, strict=True) if b is None]
            warm = [p for p, b in zip(params, buffers, strict=True) if b is not None]
            for p in fresh:
                self.state[p]["momentum_buffer"] = pt.empty_like(p.grad)
        for chosen, first in ((fresh, group["momentum"] != 0), (warm, False)):
            if chosen:
                some = chosen if group["momentum"] != 0 else []
                buffers = [self.state[p]["momentum_buffer"] for p in some]
                _call(chosen, [p.grad for p in chosen], buffers, group, first)
        return None

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        g = decayed(p, g, group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = g.clone() if group["differentiable"] else g.clone().detach()
            else:
                buffer.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            state["momentum_buffer"] = buffer
            g = g.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        lr = group["lr"]
        keep = group["differentiable"] and isinstance(lr, pt.Tensor) and lr.requires_grad
        add_scaled(p, g, -lr if keep else -number(lr))


def _call(
    params: list[Any], grads: list[Any], buffers: list[Any], group: dict[str, Any], first: bool
) -> None:
    _C._fused_sgd_(
        params,
        grads,
        buffers,
        weight_decay=float(number(group["weight_decay"])),
        momentum=float(group["momentum"]),
        lr=float(number(group["lr"])),
        dampening=float(group["dampening"]),
        nesterov=group["nesterov"],
        maximize=group["maximize"],
        is_first_step=first,
    )
