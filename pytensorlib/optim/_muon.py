"""Muon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import (
    GradientOptimizer,
    add_scaled,
    check,
    check_lr,
    rate_of,
)

__all__ = ["Muon"]


class Muon(GradientOptimizer):
    """Muon (Jordan et al. 2024): momentum made orthogonal by a Newton-Schulz iteration.

    For the hidden matrices of a network; train embeddings, biases and heads with `AdamW`.

    Parameters
    ----------
    params : iterable
        Matrices, or groups of them.
    lr, weight_decay, momentum : float
        `weight_decay` is decoupled.
    nesterov : bool
        Look one step ahead along the momentum.
    ns_coefficients : (float, float, float)
        Of the quintic polynomial iterated `ns_steps` times, in bfloat16.
    eps : float
        Lower bound of the norm that the iteration divides by.
    ns_steps : int, default 5
        Below 100.
    adjust_lr_fn : {"original", "match_rms_adamw"}, optional
        Scale `lr` by ``sqrt(max(1, rows / columns))`` (default) or ``0.2 * sqrt(max(rows,
        columns))``.

    Raises
    ------
    ValueError
        If a parameter is not a matrix.

    References
    ----------
    Jordan et al. 2024, Muon: an optimizer for hidden layers in neural networks.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.eye(2, requires_grad=True)
    >>> optimizer = optim.Muon([w], lr=0.1)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        check(momentum >= 0.0, "momentum value", momentum)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        check(ns_steps < 100, "ns_steps (must be below 100)", ns_steps)
        check(len(ns_coefficients) == 3, "ns_coefficients (three numbers)", ns_coefficients)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for p in self._all_params():
            if p.dim() != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{p.size()}"
                )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": pt.zeros_like(p.grad)}

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        buffer, lr, momentum = state["momentum_buffer"], rate_of(group), group["momentum"]
        buffer.lerp_(g, 1 - momentum)
        update = g.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * max(rows, columns) ** 0.5
        else:
            scale = max(1, rows / columns) ** 0.5
        p.mul_(1 - lr * group["weight_decay"])
        add_scaled(p, update.to(p.dtype), -lr * scale)


def _orthogonal(g: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Return a matrix with the singular vectors of `g` and singular values near 1."""
    a, b, c = coefficients
    x = g.bfloat16()
    tall = g.size(0) > g.size(1)
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = pt.addmm(x, pt.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
