"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam whose weight decay leaves the moments alone.

    ``p = p - lr * weight_decay * p`` before the step of `Adam`.

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
    weight_decay : float, default 0.01
        The share of each parameter that is taken off, times `lr`.
    amsgrad : bool, default False
        Divide by the largest mean square so far.
    maximize, differentiable : bool
        Climb instead of descend; record the step itself for autograd.
    foreach, capturable, fused : bool, optional
        Accepted as PyTorch does; by default one fused call updates a group.

    Raises
    ------
    ValueError
        An option is out of range.

    References
    ----------
    Loshchilov and Hutter 2017, arXiv:1711.05101.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.AdamW([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.8990, -1.8980])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
