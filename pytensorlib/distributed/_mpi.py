"""Finds MPI: whether it can be used, and what its launchers set in the environment."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from .._system import WINDOWS

__all__ = ["INSTALL", "is_there", "launched_as", "load", "only_process"]

INSTALL = "pip install 'pytensorlib[distributed]' (mpi4py and an MPI library"
INSTALL += ", on Windows after Microsoft MPI is installed)" if WINDOWS else ")"
# What launchers tell each process: its number among all, how many there are, its number among
# those of its machine, and how many those are. MPICH and its relatives, Open MPI, any with PMIx;
# Slurm's own comes last, because what MPI's launchers start in a job of it inherits its variables.
LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""),
)


def _library_folders() -> list[Path]:
    """Return where mpi4py looks for an MPI library before the system's own folders."""
    found = [Path(prefix) / "lib" for prefix in dict.fromkeys((sys.prefix, sys.base_prefix))]
    found += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
    return found


@cache
def is_there() -> bool:
    """Return whether mpi4py and an MPI library are installed; starts neither."""
    if "mpi4py.MPI" in sys.modules:
        return True
    spec = importlib.util.find_spec("mpi4py")
    if spec is None or not spec.submodule_search_locations:
        return False
    package = Path(spec.submodule_search_locations[0])
    # Made for one library, with which it was linked, instead of for any that is found.
    if any(len(p.name.split(".")) == 3 for p in package.glob("MPI.*.*") if p.suffix != ".pyi"):
        return True
    names = ("libmpi.so*", "libmpi.*dylib", "impi.dll", "msmpi.dll")
    if any(any(folder.glob(name)) for folder in _library_folders() for name in names):
        return True
    from ctypes.util import find_library

    return any(map(find_library, ("mpi", "msmpi", "impi")))


def load() -> Any:
    """Return the module ``mpi4py.MPI``, which starts MPI where nothing did yet.

    Raises
    ------
    RuntimeError
        mpi4py or the library is not installed.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"torch.distributed: MPI cannot be used ({error}); {INSTALL} makes processes "
            "communicate"
        ) from error
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    return MPI


def launched_as() -> tuple[int, int, int, int] | None:
    """Return what a launcher of MPI told: rank, size, local rank and local size; or None."""
    for rank, size, local, locals_ in LAUNCHERS:
        if rank in os.environ and size in os.environ:
            mine, n = int(os.environ[rank]), int(os.environ[size])
            if local not in os.environ and "SLURM_LOCALID" in os.environ:
                local = "SLURM_LOCALID"  # started by srun, which tells MPI only the other two
            here = _tasks_of_node() if local == "SLURM_LOCALID" else None
            found = int(os.environ.get(local, mine))
            return mine, n, found, here or int(os.environ.get(locals_, n))
    return None


def _tasks_of_node() -> int | None:
    """Return how many processes Slurm started on this machine: "2(x3),1" means 2, 2, 2 and 1."""
    counts: list[int] = []
    for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        count, _, times = part.rstrip(")").partition("(x")
        counts += [int(count)] * int(times or 1) if count else []
    node = int(os.environ.get("SLURM_NODEID", "0"))
    return counts[node] if node < len(counts) else None


def only_process() -> str:
    """Return what to do where several processes were wanted and no launcher made them one job."""
    return (
        "start the script with `python -m pytensorlib.distributed.run --nproc-per-node N "
        "script.py`, or `mpiexec -n N python script.py`: MPI, which moves the data, joins only "
        "processes that its launcher started"
    )
