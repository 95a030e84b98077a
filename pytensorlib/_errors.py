"""Exception classes that Python does not have."""

__all__ = ["AcceleratorError", "LinAlgError", "OutOfMemoryError"]


class AcceleratorError(RuntimeError):
    """The driver of a device gave up: the device is lost, with what it held.

    Tensors on the CPU and files are not; the next tensor that is made there opens the device anew.
    Other errors of GPUs are a RuntimeError, or an `OutOfMemoryError`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.AcceleratorError, RuntimeError)
    True
    """

    __module__ = "pytensorlib"


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or otherwise unfit for a factorisation.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> try:
    ...     torch.linalg.inv(torch.zeros(2, 2))
    ... except torch.linalg.LinAlgError:
    ...     print("singular")
    singular
    """

    __module__ = "pytensorlib.linalg"


class OutOfMemoryError(RuntimeError, MemoryError):
    """An allocation is too large for the device.

    It is a RuntimeError, as PyTorch's, and a MemoryError.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> try:
    ...     torch.empty(2**60)
    ... except torch.OutOfMemoryError:
    ...     print("too large")
    too large
    """

    __module__ = "pytensorlib"
