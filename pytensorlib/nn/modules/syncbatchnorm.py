"""Batch normalisation over several processes, of which there is one."""

from __future__ import annotations

from typing import Any

from ... import Tensor
from .batchnorm import _BatchNorm


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with the statistics of all processes: here those of the one there is.

    Parameters
    ----------
    num_features : int
        The size of dimension 1.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The weight of a batch in the running statistics; None for a plain average.
    affine : bool, default True
        Whether there are a weight and a bias.
    track_running_stats : bool, default True
        Whether there are running statistics, for evaluation.
    process_group : ProcessGroup, optional
        Kept; nothing communicates.
    device : device, optional
        Where the parameters live.
    dtype : dtype, optional
        Their type.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2))).__name__
    'SyncBatchNorm'
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Return a module in which this class has the place of other batch normalisations.

        Parameters
        ----------
        module : Module
            Changed in place, unless it is a batch normalisation itself.
        process_group : ProcessGroup, optional
            Kept; nothing communicates.
        """
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                made._buffers[name] = module._buffers[name]
            made.training = module.training
        for name, child in list(module.named_children()):
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
