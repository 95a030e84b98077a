"""Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt
from pytensorlib import _C

from .optimizer import (
    GradientOptimizer,
    add_quotient,
    can_fuse,
    check,
    check_betas,
    check_lr,
    decayed,
    may_fuse,
    new_step,
    number,
    sqrt,
    step_value,
)

__all__ = ["Adam"]


class Adam(GradientOptimizer):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980).

    ``m = b1 * m + (1 - b1) * g``, ``v = b2 * v + (1 - b2) * g * g``, then
    ``p = p - lr * (m / (1 - b1**t)) / (sqrt(v / (1 - b2**t)) + eps)``.

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
        Added as ``weight_decay * p`` to the gradient, or taken off the parameter itself with
        `decoupled_weight_decay`.
    amsgrad : bool
        Divide by the largest ``v`` so far (Reddi et al. 2018).
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, fused, capturable : bool, optional
        Accepted as PyTorch does; by default one fused call updates a group.
    decoupled_weight_decay : bool, default False
        Decay as `AdamW` does.

    Raises
    ------
    ValueError
        An option is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adam([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr)
        if isinstance(lr, pt.Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check(eps >= 0.0, "epsilon value", eps)
        check_betas(betas)
        tensors = [isinstance(beta, pt.Tensor) for beta in betas]
        if tensors[0] != tensors[1]:
            raise ValueError("betas must be either both floats or both Tensors")
        if tensors[0] and foreach and not capturable:
            raise ValueError(
                "betas[0] as a Tensor is not supported for capturable=False and foreach=True"
            )
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        if fused and differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        state = {
            "step": new_step(p, group),
            "exp_avg": pt.zeros_like(p),
            "exp_avg_sq": pt.zeros_like(p),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = pt.zeros_like(p)
        return state

    def _fused_group(self, group: dict[str, Any]) -> bool:
        if not may_fuse(group):
            return False
        params = group["params"]
        names = _STATE_AMSGRAD if group["amsgrad"] else _STATE
        lists = _C._fused_lists(params, self.state, names)
        if lists is None:
            return False
        _call(params, lists, group)
        return True

    def _update_group(self, params: list[Any], group: dict[str, Any]) -> None:
        if not can_fuse(params, group):
            return super()._update_group(params, group)
        states = [self.state[p] for p in params]
        names = _STATE_AMSGRAD if group["amsgrad"] else _STATE
        lists = [[p.grad for p in params], *([s[name] for s in states] for name in names)]
        _call(params, lists, group)
        return None

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        lr, (beta1, beta2) = group["lr"], group["betas"]
        if not (group["differentiable"] or group["capturable"]):
            lr, beta1, beta2 = number(lr), number(beta1), number(beta2)
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                g = decayed(p, g, group["weight_decay"])
        m, v = state["exp_avg"], state["exp_avg_sq"]
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).add_(g * g * (1 - beta2))
        t = step_value(state["step"], group)
        if group["amsgrad"]:
            top = state["max_exp_avg_sq"]
            top.copy_(pt.maximum(top.clone() if group["differentiable"] else top, v))
            v = top
        below = v.sqrt() / sqrt(1 - beta2**t) + group["eps"]
        add_quotient(p, m, below, -lr / (1 - beta1**t))


_STATE = ("step", "exp_avg", "exp_avg_sq")
_STATE_AMSGRAD = (*_STATE, "max_exp_avg_sq")


def _call(params: list[Any], lists: Any, group: dict[str, Any]) -> None:
    grads, steps, means, squares, *largest = lists
    _C._foreach_add_(steps, 1)
    beta1, beta2 = group["betas"]
    fused = _C._fused_adamw_ if group["decoupled_weight_decay"] else _C._fused_adam_
    fused(
        params,
        grads,
        means,
        squares,
        largest[0] if largest else [],
        steps,
        lr=float(number(group["lr"])),
        beta1=float(number(beta1)),
        beta2=float(number(beta2)),
        weight_decay=float(group["weight_decay"]),
        eps=float(group["eps"]),
        amsgrad=group["amsgrad"],
        maximize=group["maximize"],
    )
