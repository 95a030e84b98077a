"""Errors of programs that cannot be exported."""

from __future__ import annotations

from .._absent.modules import tell_missing
from .._absent.table import EAGER

__all__ = ["TorchDynamoException", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):  # noqa: N818
    """What a tracer of programs raises.

    Examples
    --------
    >>> import pytensorlib._dynamo.exc as exc
    >>> issubclass(exc.TorchDynamoException, RuntimeError)
    True
    """


class Unsupported(TorchDynamoException):
    """Something that a tracer cannot record.

    Examples
    --------
    >>> import pytensorlib._dynamo.exc as exc
    >>> issubclass(exc.Unsupported, exc.TorchDynamoException)
    True
    """


class UserError(Unsupported):
    """Something that `torch.export.export` was asked for and cannot do.

    Examples
    --------
    >>> import pytensorlib._dynamo.exc as exc
    >>> issubclass(exc.UserError, exc.Unsupported)
    True
    """


tell_missing(globals(), EAGER)
