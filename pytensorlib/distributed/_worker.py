"""The process that the launcher starts for each rank: sets PyTorch's variables, runs the script.

An error goes to the launcher's folder, so that the first one is told once instead of by each rank.
"""

from __future__ import annotations

import os
import runpy
import sys

from .. import _alias
from . import _faults, _mpi
from ._board import FOLDER, Board

__all__ = ["main"]


def set_variables() -> int:
    """Set what PyTorch's launcher sets, from what MPI's told; returns the rank."""
    told = _mpi.launched_as()
    if told is None:
        raise SystemExit("pytensorlib.distributed.run: MPI's launcher did not tell the rank")
    rank, size, local, locals_ = told
    node = rank // locals_ if locals_ else 0
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(size),
        LOCAL_RANK=str(local),
        LOCAL_WORLD_SIZE=str(locals_),
        GROUP_RANK=str(node),
        GROUP_WORLD_SIZE=str(max(1, size // max(1, locals_))),
        ROLE_RANK=str(rank),
        ROLE_WORLD_SIZE=str(size),
    )
    os.environ.setdefault("TORCHELASTIC_RUN_ID", os.environ.get("SLURM_JOB_ID", "none"))
    return rank


def main(argv: list[str]) -> None:
    """Run ``[-m module | script] arguments``, or another program after ``--no-python``."""
    rank = set_variables()
    folder = os.environ.get(FOLDER, "")
    if argv[0] == "--no-python":
        os.execvp(argv[1], argv[1:])
    board = Board(folder, rank) if os.path.isdir(folder) else None
    _alias.install()
    try:
        if argv[0] == "-m":
            sys.argv, sys.path[0] = argv[1:], os.getcwd()
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = argv, os.path.dirname(os.path.abspath(argv[0]))
            runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            end(rank, error)
        if board is not None:
            board.done()
        raise
    except KeyboardInterrupt:
        end(rank, None)
    except BaseException as error:
        end(rank, error)
    if board is not None:
        board.done()


def end(rank: int, error: BaseException | None) -> None:
    """End all ranks."""
    code = 130 if error is None else 1
    if error is not None:
        trace = error.__traceback__
        while trace is not None and own(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        if not _faults.tell(rank, type(error), error.with_traceback(trace), trace):
            sys.__excepthook__(type(error), error, trace)
        if isinstance(error, SystemExit) and isinstance(error.code, int):
            code = error.code
    _faults.deliver()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.COMM_WORLD.Abort(code)
    os._exit(code)


def own(filename: str) -> bool:
    """Return whether a frame at the beginning of a traceback is the launcher's."""
    here = os.path.dirname(filename) == os.path.dirname(__file__)
    return here or filename.startswith("<frozen runpy") or "runpy" in filename


if __name__ == "__main__":
    main(sys.argv[1:])
