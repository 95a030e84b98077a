"""What the extension does of ``nn.Module``: calls, and attributes found among its parameters."""

from ._C import _ModuleBase as ModuleBase
from ._C import _quick_attributes as quick_attributes

__all__ = ["ModuleBase", "quick_attributes"]
