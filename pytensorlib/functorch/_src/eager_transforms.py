"""The older place of a part of `torch._functorch.eager_transforms`."""

from __future__ import annotations

from ..._C import _functorch

__all__: list[str] = []

_assert_wrapped_functional = _functorch._assert_wrapped_functional
_unwrap_functional_tensor = _functorch._unwrap_functional_tensor
