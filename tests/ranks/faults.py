"""One rank of two does what its argument says; a script as for PyTorch's launcher."""

import datetime as dt
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

what = sys.argv[1]
if what == "early" and os.environ["RANK"] == "1":
    raise ValueError("bad arguments")
if "FAR" in os.environ and os.environ["RANK"] == "1":
    os.environ["PYTENSORLIB_RUN_FOLDER"] = "/not/here"  # as on a machine with other files
dist.init_process_group("gloo", timeout=dt.timedelta(seconds=2))
rank = dist.get_rank()
assert int(os.environ["RANK"]) == rank
assert rank % int(os.environ["LOCAL_WORLD_SIZE"]) == dist.get_node_local_rank()
assert int(os.environ["WORLD_SIZE"]) == dist.get_world_size() == 2
assert dist.is_torchelastic_launched()
x = torch.ones(2)
sys.stdout.write(f"at {time.monotonic()}\n")
sys.stdout.flush()
if what == "pids":
    sys.stdout.write(f"pid {os.getpid()}\n")
    time.sleep(60)


def told(width: int) -> None:
    """Reduce, and write the error."""
    try:
        dist.all_reduce(torch.ones(width))
    except dist.DistBackendError as error:
        sys.stdout.write(f"rank {rank}: {error}\n")
        sys.stdout.flush()


if what == "sizes":
    told(2 + rank)
    told(100_000 + 7 * rank)
    time.sleep(1)  # until the other rank has told its errors
    sys.exit(1)
if rank == 1:
    if what == "raise":
        raise ValueError("bad batch")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(60)
    if what == "exit":
        sys.exit(3)
    if what == "leave":
        os._exit(0)
    if what == "other":
        dist.broadcast(x, 0)  # another call
    if what == "shape":
        dist.all_reduce(torch.ones(3))
dist.all_reduce(x)  # the call
dist.barrier()
sys.stdout.write(f"rank {rank} of {torch.__name__}: {x.tolist()}\n")
