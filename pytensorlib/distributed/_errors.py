"""The errors of communication between processes."""

from __future__ import annotations

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "QueueEmptyError",
]


class DistError(RuntimeError):
    """What communication between processes raises.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistError, RuntimeError)
    True
    """


class DistBackendError(DistError):
    """MPI failed, or another process did not do its part in time.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistBackendError, torch.distributed.DistError)
    True
    """


class DistNetworkError(DistError):
    """A connection could not be made, or broke.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistNetworkError, torch.distributed.DistError)
    True
    """


class DistStoreError(DistError):
    """A store of shared keys failed, or a key did not come in time.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.DistStoreError, torch.distributed.DistError)
    True
    """


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing to give, and was not to be waited for.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.distributed.QueueEmptyError, torch.distributed.DistStoreError)
    True
    """
