"""Starts processes for the tests of `torch.distributed`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytensorlib.distributed as dist
from pytensorlib.distributed import run as launcher

HERE = Path(__file__).resolve().parent
RANKS = HERE / "ranks"
needs_mpi = pytest.mark.skipif(
    not dist.is_available(),
    reason="MPI is not installed (pip install 'pytensorlib[distributed]'): make distributed",
)


def environment(**more: str) -> dict[str, str]:
    paths = [str(HERE.parent), str(RANKS), os.environ.get("PYTHONPATH", "")]
    # One thread for each rank: the machine may have fewer cores than ranks.
    given = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    return (
        os.environ
        | given
        | {"OMPI_ALLOW_RUN_AS_ROOT": "1"}
        | more
        | {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    )


def mpiexec(ranks: int, *words: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a script on some ranks by MPI's own launcher."""
    path, is_open = launcher.find_mpiexec()
    more = ["--oversubscribe", "--bind-to", "none"] if is_open else []
    command = [path, "-n", str(ranks), *more, sys.executable, *words]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=seconds, check=False
    )


def launched(*words: str, seconds: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the package's launcher with these arguments."""
    command = [sys.executable, "-m", "pytensorlib.distributed.run", *words]
    return subprocess.run(
        command,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def check(module: str, ranks: int) -> None:
    """Run all checks of a module in `ranks`."""
    done = mpiexec(ranks, str(RANKS / "check.py"), module)
    passed = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert done.returncode == 0, f"{passed}\n{done.stderr[-6000:]}"
    assert passed
