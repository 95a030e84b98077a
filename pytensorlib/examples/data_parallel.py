"""
Several processes: one model, shared batches
============================================

Each process has a copy of the model and a part of every batch. Gradients are averaged, so the
copies stay the same.

It needs MPI: ``pip install 'pytensorlib[distributed]'``. ``python -m pytensorlib.examples
data_parallel --ranks 2`` runs this page as a program.
"""

# %%
# The program is the one that you would write for ``torchrun``: it asks which process it is (its
# *rank*), wraps the model in ``DistributedDataParallel``, and trains.

import copy
import os
import sys

import pytensorlib as torch
from pytensorlib import distributed as dist
from pytensorlib import nn
from pytensorlib.examples import _common as common
from pytensorlib.nn import functional as F

BATCH = 64


def network():
    """Return a small classifier of digits."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def work(args):
    """Train as one of several processes; all of them run this."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, y, test_x, test_y = (part.to(args.device) for part in common.digits())
    model = network().to(args.device)
    alone = copy.deepcopy(model)
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    single = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    run = common.Run(args, "images", BATCH, model=model, alone=alone, optimizer=optimizer, s=single)
    share = BATCH // ranks
    output = print if rank == 0 else (lambda *words: None)
    for _ in steps(run, rank):
        # Every process draws the same batch, and takes its part of it.
        chosen = torch.randint(0, len(x), (BATCH,)).to(args.device)
        mine = chosen[rank * share : (rank + 1) * share]
        loss = F.cross_entropy(parallel(x[mine]), y[mine])
        optimizer.zero_grad()
        loss.backward()  # averages the gradients of all processes
        optimizer.step()
        # To see that it is right, each process also trains a model alone on the whole batch.
        whole = F.cross_entropy(alone(x[chosen[: share * ranks]]), y[chosen[: share * ranks]])
        single.zero_grad()
        whole.backward()
        single.step()
        run.note(whole)
    pairs = zip(model.parameters(), alone.parameters(), strict=True)
    apart = max((a - b).abs().max().item() for a, b in pairs)
    score = (model(test_x).argmax(1) == test_y).float().mean().item()
    output(f"{ranks} processes; accuracy on unseen digits {score:.1%}")
    output(f"largest difference from one process on the whole batch {apart:.1e}")


def steps(run, rank):
    """Return the steps of a run; only the first process prints."""
    if rank == 0:
        return run.steps()
    return range(len(run.losses), run.args.steps)


# %%
# Starting them
# -------------
#
# ``python -m pytensorlib.distributed.run --nproc-per-node 2 program.py`` starts two processes. This
# program calls that itself. Where one fails, all of them end, and the first traceback is printed.


def main(argv=None):
    """Start the processes, or be one of them."""
    options = common.parser("data_parallel", __doc__, steps=300, small=5)
    options.add_argument("--ranks", type=int, default=2, help="processes, default %(default)s")
    args = common.parse(options, argv)
    if dist.is_torchelastic_launched():
        dist.init_process_group()
        work(args)
        return
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        print("needs MPI: pip install 'pytensorlib[distributed]'", file=sys.stderr)
        return
    import subprocess

    words = [f"--steps={args.steps}", f"--device={args.device}", f"--out={args.out}"]
    words += [f"--seed={args.seed}"] + ["--resume"] * args.resume
    command = [sys.executable, "-m", "pytensorlib.distributed.run"]
    command += [f"--nproc-per-node={args.ranks}", "-m", "pytensorlib.examples.data_parallel"]
    done = subprocess.run(
        [*command, *words], check=False, capture_output=True, text=True, env=dict(os.environ)
    )
    print(done.stdout.rstrip())
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise SystemExit(done.returncode)
    losses = torch.load(args.out / "checkpoint.pt")["losses"]
    with common.figure(args, "data_parallel.png", width=6) as axes:
        if axes is not None:
            axes[0].plot(losses, linewidth=0.7)
            axes[0].set(xlabel="step", ylabel="loss")


if __name__ == "__main__":
    main()
