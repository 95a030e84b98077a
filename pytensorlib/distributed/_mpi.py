"""Where MPI is: whether it can be used, and what its launchers tell a process."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["INSTALL", "is_there", "launched_as", "load", "only_process"]

INSTALL = "pip install 'pytensorlib[distributed]' (mpi4py and an MPI library)"
# What launchers tell each process: its number among all, how many there are, its number among
# those of its machine, and how many those are. MPICH and its relatives, Open MPI, any with PMIx.
LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE"),
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

    return find_library("mpi") is not None


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
            n = int(os.environ[size])
            return (
                int(os.environ[rank]),
                n,
                int(os.environ.get(local, os.environ[rank])),
                int(os.environ.get(locals_, n)),
            )
    return None


def only_process() -> str:
    """Return what to do where several processes were wanted and no launcher made them one job."""
    return (
        "start the script with `python -m pytensorlib.distributed.run --nproc-per-node N "
        "script.py`, or `mpiexec -n N python script.py`: MPI, which moves the data, joins only "
        "processes that its launcher started"
    )
