"""`FakeTensor` and its mode, as libraries import them; here such tensors are on `meta`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _C
from .._absent.modules import fill, refusing

__all__: list[str] = []

NO_FAKES = (
    "tensors without memory are on the device meta here: use torch.empty(..., device='meta'), or "
    "with torch.device('meta')."
)
fill(
    globals(),
    NO_FAKES,
    "_is_tensor_constructor FakeTensorMode FakeTensorConverter FakeCopyMode TensorMetadata "
    "extract_tensor_metadata "
    "run_fallback_kernel UnsupportedFakeTensorException DynamicOutputShapeException "
    "DataDependentOutputException UnsupportedOperatorException MetadataMismatchError "
    "FakeTensorDeviceMismatchError UnsupportedMutationAliasingException",
)
FakeTensor = refusing("FakeTensor", __name__, NO_FAKES, (_C.Tensor,))


def is_fake(x: Any) -> bool:
    """Return False: there is no tensor of this kind.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._subclasses.fake_tensor import is_fake
    >>> is_fake(torch.ones(1))
    False
    """
    return False


def maybe_get_fake_mode(t: Any) -> None:
    """Return None: no tensor is of a mode."""


def get_plain_tensors(subclass: Any, *, out: list[Any]) -> list[Any]:
    """Return `out` and the plain tensors inside a tensor of a class, which it tells of."""
    names, _ = subclass.__tensor_flatten__()
    for name in names:
        inner = getattr(subclass, name)
        if hasattr(inner, "__tensor_flatten__"):
            get_plain_tensors(inner, out=out)
        else:
            out.append(inner)
    return out


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """Do without the mode for a block; give it."""
    yield None
