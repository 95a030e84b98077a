"""Runs all functions `check_*` of a module on each rank: ``mpiexec -n N python check.py module``.

A check gets this rank and how many there are. Modules stand beside this file.
"""

import datetime as dt
import importlib
import sys

import pytensorlib.distributed as dist

LIMIT = dt.timedelta(seconds=60)


def main(name: str, wanted: list[str]) -> None:
    dist.init_process_group("mpi", timeout=LIMIT)
    rank, size = dist.get_rank(), dist.get_world_size()
    module = importlib.import_module(name)
    checks = {n: f for n, f in vars(module).items() if n.startswith("check_")}
    for check in wanted or checks:
        if size >= getattr(checks[check], "least", 1):
            checks[check](rank, size)
            dist.barrier()
            if rank == 0:
                print("ok", check, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
