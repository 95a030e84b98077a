"""The error of checkpoints."""

from __future__ import annotations

from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(Exception):
    """A checkpoint could not be written or read on some processes.

    Parameters
    ----------
    msg : str
        What happened.
    failures : dict
        The error of each process.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint import CheckpointException
    >>> CheckpointException("no disk", {}).failures
    {}
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """The error of each process."""
        return self._failures

    def __str__(self) -> str:
        told = "; ".join(f"rank {r}: {e}" for r, e in self._failures.items())
        return f"{self.args[0]}: {told}" if told else str(self.args[0])
