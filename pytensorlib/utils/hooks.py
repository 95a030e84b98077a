"""What registering a hook returns."""

from ..nn._hooks import BackwardHook, RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle"]
