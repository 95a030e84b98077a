"""Adafactor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    check,
    check_lr,
    new_step,
    rate_of,
)

__all__ = ["Adafactor"]


class Adafactor(GradientOptimizer):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): the memory of two vectors a matrix.

    The running mean of the squared gradient of a matrix is kept as the product of its row and
    column means. The step is relative to the size of the parameter.

    Parameters
    ----------
    params : iterable
        Parameters or groups of them; no complex ones.
    lr : float or Tensor, default 1e-2
        Bound of the relative step, which is ``min(lr, 1 / sqrt(t))``.
    beta2_decay : float, default -0.8
        The weight of the newest squared gradient is ``t**beta2_decay``.
    eps : (float or None, float)
        Lower bounds of the squared gradient (None: the dtype's epsilon) and of the parameter's
        root mean square.
    d : float, default 1
        Bound of the root mean square of an update.
    weight_decay : float, default 0
        Decoupled, as in `AdamW`.
    foreach, maximize : bool
        As PyTorch has them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adafactor([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.8419, -1.8419])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        check(beta2_decay <= 0.0, "beta2_decay value (must be at most 0)", beta2_decay)
        check(eps[0] is None or eps[0] >= 0.0, "epsilon1 value", eps[0])
        check(eps[1] >= 0.0, "epsilon2 value", eps[1])
        check(d >= 1.0, "clipping threshold d (must be at least 1)", d)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = {"step": new_step(p, group)}
        if p.dim() > 1:
            state["row_var"] = p.new_zeros((*p.shape[:-1], 1))
            state["col_var"] = p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            state["variance"] = pt.zeros_like(p)
        return state

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        t, lr = state["step"].item(), rate_of(group)
        wide = pt.float64 if p.dtype == pt.float64 else pt.float32
        eps1, eps2 = group["eps"]
        eps1 = pt.finfo(p.dtype).eps if eps1 is None else eps1
        newest = pt.tensor(t ** group["beta2_decay"], dtype=wide)
        root_size = max(p.numel(), 1) ** 0.5
        # Norms stay where they are computed: nothing waits for them.
        alpha = (p.norm(2).to(wide) / root_size).clamp(min=eps2)
        alpha = alpha * -min(lr, 1 / t**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        square = g * g
        if g.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(square.mean(-1, keepdim=True), newest)
            columns.lerp_(square.mean(-2, keepdim=True), newest)
            v = rows @ columns / rows.mean(-2, keepdim=True).clamp(min=eps1)
        else:
            v = state["variance"]
            v.lerp_(square, newest)
        update = v.clamp(min=eps1 * eps1).rsqrt() * g
        clip = (update.norm(2).to(wide) / (root_size * group["d"])).clamp(min=1)
        p.addcmul_(update, alpha / clip)
