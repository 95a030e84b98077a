"""The part of ``nn.Module`` in the extension: calls, and look-up of parameters."""

from .._C import _fast_attributes as fast_attributes
from .._C import _make_module_base as make_module_base

__all__ = ["make_module_base", "fast_attributes"]
