"""Events of a GPU that answers as "mps"."""

from __future__ import annotations

from .. import _C
from .._gpu import streams as _streams
from ._kind import GPU

__all__: list[str] = []


class Event(_streams.Event):
    """A point in the work of the GPU: whether it was reached, and when.

    Parameters
    ----------
    enable_timing : bool, default False
        Whether it has a time, by the GPU's own clock.

    Raises
    ------
    RuntimeError
        There is no GPU that answers as "mps".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     event = torch.mps.Event(enable_timing=True)
    ...     event.record()
    ...     event.synchronize()
    """

    def __init__(self, enable_timing: bool = False) -> None:
        index = GPU.index(None, "Event")
        super().__init__(_C.device(GPU.name, index), enable_timing=enable_timing)
