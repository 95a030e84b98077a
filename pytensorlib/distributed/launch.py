"""The older name of ``pytensorlib.distributed.run``."""

from __future__ import annotations

from collections.abc import Sequence

from . import run
from .run import parse_args

__all__ = ["launch", "main", "parse_args"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command.

    Parameters
    ----------
    args : list of str, optional
        Those of the process by default.

    Examples
    --------
    >>> from pytensorlib.distributed import launch
    >>> callable(launch.main)
    True
    """
    run.main(args)


launch = run.run

if __name__ == "__main__":
    main()
