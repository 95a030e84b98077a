"""What the extension does of ``nn.Module``: calls, and attributes found among its parameters."""

from .._C import _fast_attributes as fast_attributes
from .._C import _make_module_base as make_module_base

__all__ = ["make_module_base", "fast_attributes"]
