"""Memory shared with other array libraries through DLPack."""

from __future__ import annotations

from typing import Any

from .. import _C, _alias
from .._C import from_dlpack
from .._tensor import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
_alias.adopt(globals(), ["DLDeviceType", "from_dlpack"])


def to_dlpack(tensor: Any) -> Any:
    """Return a DLPack capsule over the memory of `tensor`, to be consumed once.

    Parameters
    ----------
    tensor : Tensor
        Without a gradient.

    Returns
    -------
    capsule
        Whoever takes it shares the memory.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> capsule = torch.utils.dlpack.to_dlpack(torch.arange(3))
    >>> torch.from_dlpack(capsule)
    tensor([0, 1, 2])
    """
    return _C._to_dlpack(tensor)
