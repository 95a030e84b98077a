"""How tensors and storages travel between processes: their memory is shared, not copied."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

from .. import _C, nn
from ._shared import rebuild_storage, rebuild_tensor, reduce_storage, reduce_tensor

__all__ = [
    "init_reductions",
    "rebuild_storage",
    "rebuild_tensor",
    "reduce_storage",
    "reduce_tensor",
]


def init_reductions() -> None:
    """Let queues, pipes and the arguments of processes share the memory of tensors.

    Examples
    --------
    >>> from pytensorlib.multiprocessing import reductions
    >>> reductions.init_reductions()
    """
    ForkingPickler.register(_C.UntypedStorage, reduce_storage)
    for cls in (_C.Tensor, nn.Parameter, nn.Buffer):
        ForkingPickler.register(cls, reduce_tensor)
