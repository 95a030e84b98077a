"""Adam for parameters whose gradients are sparse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytensorlib as pt

from .. import _C
from .optimizer import GradientOptimizer, check, check_betas, check_lr, number

__all__ = ["SparseAdam"]


class SparseAdam(GradientOptimizer):
    """Adam (Kingma and Ba 2015) that updates the rows alone which a sparse gradient has.

    The running means of a row stay as they are while it has no gradient.

    Parameters
    ----------
    params : iterable
        Dense parameters, or groups of them, with sparse gradients.
    lr : float or Tensor, default 1e-3
        Learning rate, more than 0.
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the running means of the gradient and its square, in [0, 1).
    eps : float, default 1e-8
        Added to the denominator.
    maximize : bool, default False
        Climb instead of descend.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> table = torch.nn.Embedding(3, 1, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight.detach() - before).round(decimals=3)
    tensor([[ 0.0000],
            [-0.1000],
            [ 0.0000]])
    """

    _takes_sparse = True
    _counts = ()

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        check(bool(lr > 0.0), "learning rate", lr)
        check(eps > 0.0, "epsilon value", eps)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            ([i, j], p)
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
        ]
        if sparse := [at for at, p in places if p.is_sparse]:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        if of_complex := [at for at, p in places if p.is_complex()]:
            raise ValueError(
                f"Complex params at indices {of_complex}: SparseAdam does not support complex "
                "parameters"
            )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": 0,
            "exp_avg": pt.zeros_like(p).detach(),
            "exp_avg_sq": pt.zeros_like(p).detach(),
        }

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not g.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state["step"] += 1
        g = g.coalesce()
        values, size = g.values(), tuple(g.shape)
        if values.numel() == 0:
            return

        def placed(rows: Any) -> Any:
            return _C._sparse_coo_tensor(g.indices(), rows, size, is_coalesced=True)

        means = []
        terms = (values, values * values)
        for name, beta, term in zip(("exp_avg", "exp_avg_sq"), group["betas"], terms, strict=True):
            old = state[name].sparse_mask(g).values()
            change = (term - old) * (1 - beta)
            state[name].add_(placed(change))
            means.append(old + change)
        first, second = (1 - beta ** state["step"] for beta in group["betas"])
        step = number(group["lr"]) * second**0.5 / first
        p.add_(placed(means[0] / (means[1].sqrt() + group["eps"])), alpha=-step)
