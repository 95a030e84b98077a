"""`replace_all_batch_norm_modules_` at PyTorch's private path."""

from __future__ import annotations

from typing import Any

from ..func import replace_all_batch_norm_modules_

__all__ = ["batch_norm_without_running_stats", "replace_all_batch_norm_modules_"]


def batch_norm_without_running_stats(module: Any) -> None:
    """Let one batch normalization use the statistics of each batch alone; others stay.

    Parameters
    ----------
    module : Module
        Changed in place.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.batch_norm_replacement import batch_norm_without_running_stats
    >>> norm = torch.nn.BatchNorm1d(2)
    >>> batch_norm_without_running_stats(norm)
    >>> norm.track_running_stats
    False
    """
    from ..nn.modules.batchnorm import _BatchNorm

    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.running_mean = module.running_var = module.num_batches_tracked = None
        module.track_running_stats = False
