"""A mode of PyTorch's that compares tensors with those without memory."""

from __future__ import annotations

from .._absent.modules import fill
from .fake_tensor import NO_FAKES

__all__: list[str] = []

fill(globals(), NO_FAKES, "CrossRefFakeMode outputs_alias_inputs outputs_are_inputs")
