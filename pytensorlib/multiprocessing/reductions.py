"""How tensors and storages travel between processes: their memory is shared, not copied."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from .. import _C, nn
from ._shared import rebuild_storage, rebuild_tensor, reduce_storage, reduce_tensor

__all__ = [
    "StorageWeakRef",
    "init_reductions",
    "rebuild_storage",
    "rebuild_tensor",
    "reduce_storage",
    "reduce_tensor",
]


class StorageWeakRef:
    """A storage that is kept by others, or no longer.

    Parameters
    ----------
    storage : storage
        While this is there, no other gets its number.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.multiprocessing.reductions import StorageWeakRef
    >>> x = torch.ones(2)
    >>> known = StorageWeakRef(x.untyped_storage())
    >>> known == StorageWeakRef(x[1:].untyped_storage()), known.expired()
    (True, False)
    >>> del x
    >>> known.expired()
    True
    """

    __slots__ = ("_handle", "cdata")

    def __init__(self, storage: Any) -> None:
        memory = getattr(storage, "_untyped_storage", storage)
        self.cdata, self._handle = memory._cdata, memory._weak()

    def expired(self) -> bool:
        """Return whether nobody keeps the storage."""
        return self._handle() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


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
