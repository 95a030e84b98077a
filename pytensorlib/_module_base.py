"""What the extension does of ``nn.Module``: calls, and attributes found among its parameters."""

from ._C import _make_module_base as make_module_base
from ._C import _quick_attributes as quick_attributes

__all__ = ["make_module_base", "quick_attributes"]
