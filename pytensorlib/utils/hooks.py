"""What registering a hook returns."""

from .. import _alias
from ..nn._hooks import BackwardHook, RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle"]
_alias.adopt(globals(), __all__)
