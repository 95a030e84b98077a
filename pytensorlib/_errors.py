"""Exception classes that Python does not have."""

__all__ = ["LinAlgError", "OutOfMemoryError"]


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or otherwise unfit for a factorisation."""

    __module__ = "pytensorlib.linalg"


class OutOfMemoryError(RuntimeError, MemoryError):
    """An allocation is too large for the device."""

    __module__ = "pytensorlib"
