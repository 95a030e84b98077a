"""Logs of PyTorch's compiler, which writes none here; the rest is Python's `logging`."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "trace_structured", "warning_once"]

_told: set[tuple[str, str]] = set()


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:  # noqa: N802
    """Return the logger of a module for one kind of messages.

    Parameters
    ----------
    module_qname : str
        The module.
    artifact_name : str
        The kind.

    Returns
    -------
    Logger
        Python's.

    Examples
    --------
    >>> from pytensorlib._logging import getArtifactLogger
    >>> getArtifactLogger("mine", "graph").name
    'mine.__graph'
    """
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def set_logs(**levels: Any) -> None:
    """Do nothing: the parts of PyTorch that this makes talk are not here.

    Parameters
    ----------
    **levels : int or bool
        By part.

    Examples
    --------
    >>> import logging
    >>> from pytensorlib._logging import set_logs
    >>> set_logs(dynamo=logging.DEBUG)
    """


def trace_structured(name: str, *args: Any, **kwargs: Any) -> None:
    """Do nothing: no trace is kept.

    Parameters
    ----------
    name : str
        What happened.
    *args, **kwargs
        About it.

    Examples
    --------
    >>> from pytensorlib._logging import trace_structured
    >>> trace_structured("mine")
    """


def warning_once(logger: logging.Logger, msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a warning, once for each text.

    Parameters
    ----------
    logger : Logger
        Where.
    msg : str
        The text.
    *args, **kwargs
        As of `Logger.warning`.

    Examples
    --------
    >>> import logging
    >>> from pytensorlib._logging import warning_once
    >>> warning_once(logging.getLogger("mine"), "once")
    """
    if (logger.name, msg) not in _told:
        _told.add((logger.name, msg))
        logger.warning(msg, *args, **kwargs)


def _init_logs(log_file_name: str | None = None) -> None:
    """Do nothing: there are no logs to begin."""
