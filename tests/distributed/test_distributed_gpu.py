"""Scripts for several CUDA devices and "nccl", where GPUs answer as "cuda" and MPI is there."""

from __future__ import annotations

import pytest
from ranks_run import RANKS, launched, needs_mpi

from pytensorlib import wgpu

pytestmark = [
    needs_mpi,
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_for_nccl_trains_over_mpi(ranks: int) -> None:
    done = launched(
        f"--nproc-per-node={ranks}", str(RANKS / "cuda_style.py"), PYTENSORLIB_GPU_AS="cuda"
    )
    assert done.returncode == 0, done.stderr
    told = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
    assert told == [f"rank {r} on cuda:0" for r in range(ranks)]
