"""Softmax over many classes by clusters of their frequency."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from ..module import Module
from .container import ModuleList, Sequential
from .linear import Linear

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes, of which the rare ones share small projections.

    Classes are ordered by frequency, the most frequent first. The call takes (N, in_features)
    and classes (N,), and returns the log-probability of each and the loss, minus their mean.

    Parameters
    ----------
    in_features, n_classes : int
        The width of the input, and how many classes there are.
    cutoffs : sequence of int
        Where each cluster of classes begins, rising, behind the first.
    div_value : float, default 4.0
        By how much each cluster is narrower than the one before.
    head_bias : bool, default False
        Learn an offset for the frequent classes and the clusters.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Raises
    ------
    ValueError
        The cut-offs do not rise or are out of range.

    References
    ----------
    Grave et al. 2016, arXiv:1609.04309.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> loss = nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> loss(torch.ones(3, 16), torch.tensor([0, 6, 19])).output.shape
    torch.Size([3])
    >>> loss.predict(torch.ones(3, 16)).shape
    torch.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        fits = ends == sorted(set(ends)) and min(ends) > 0 and max(ends) <= n_classes - 1
        if not fits or any(int(c) != c for c in ends):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **made),
                    Linear(width, size, bias=False, **made),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """The log-probability of each target, and minus their mean."""
        batched = target_.dim() > 0
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != (2 if batched else 1):
            raise RuntimeError(
                f"{'2' if batched else '1'}D target needs an input of {2 if batched else 1} "
                f"dimensions, got {input_.dim()}"
            )
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        x = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not (0 <= target.min() and target.max() < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        every = self._full_log_prob(x, self.head(x))
        output = every.gather(1, target.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output if batched else output.squeeze(0), (-output).mean())

    def _full_log_prob(self, x: Tensor, head: Tensor) -> Tensor:
        head = F.log_softmax(head, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(x), dim=1) + cluster)
        return pt.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        return self._full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each sample."""
        return self.log_prob(input).argmax(dim=1)
