"""``DistributedDataParallel``: needs several processes, which do not communicate here."""

from __future__ import annotations

from typing import Any

from ..module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Averages gradients over processes: making one raises, since there is one process here.

    Parameters
    ----------
    module : Module
        What would be trained; train it as it is.
    *args, **kwargs
        Not used.

    Raises
    ------
    RuntimeError
        Always: no group of processes can be initialised.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(1, 1)
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(net)
    """

    module: Any

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel: Default process group has not been initialized. Processes do "
            "not communicate here: train the module as it is in one process, which uses all cores; "
            "torch.nn.DataParallel uses several GPUs."
        )
