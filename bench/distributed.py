"""Communication between processes: ours over MPI beside PyTorch's Gloo, and what it costs.

``python bench/distributed.py`` (in an environment with the extra `distributed`) times an all-reduce
of four sizes and the training steps of two networks on two ranks, one thread each; with
``TORCH_PYTHON`` naming a Python that has PyTorch, the same there, in turn. ``--fit`` times 2, 3 and
4 ranks, fits the cost model below, holds it to 6 and 8 ranks, and predicts how a step scales.

An all-reduce of n bytes on p ranks, a power of two, takes ``a * log2(p)`` seconds for its messages,
one for each halving of the ranks, and ``b(n) * 2 (p - 1) / p`` for its bytes, each there and back;
on other numbers of ranks those beyond the power send what they have before, and get it after: two
messages and n bytes more (Thakur et al. 2005, doi:10.1177/1094342005051521). ``b(n)`` has one slope
for bytes that stay in caches and another for those beyond. Where s ranks share a core, bytes take s
times as long, and a message waits ``w * s`` for its receiver's turn. What a backward pass hides of
all that is measured on two ranks.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import models
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"4 KB": 4096, "1 MB": 1 << 20, "25 MB": 25 << 20, "400 MB": 400 << 20}
FITTED = {"4 KB": 4096, "64 KB": 65536, "1 MB": 1 << 20, "4 MB": 4 << 20, "25 MB": 25 << 20}
KNEES = (64 << 10, 256 << 10, 1 << 20, 4 << 20)  # bytes that may stay in caches
STEPS = ("MLP", "GPT")
# Seconds of a message and bytes a second: line rates, and latencies as their makers state them.
LINKS = {"25 Gb/s Ethernet": (20e-6, 2.9e9), "200 Gb/s InfiniBand": (2e-6, 24e9)}


def timed(call: Any, barrier: Any) -> float:
    """Return the seconds of one run that all ranks begin together."""
    barrier()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def work(library: str, sizes: list[int], seconds: float, step_too: bool) -> dict[str, float]:
    """Measure on this rank; returns seconds by name."""
    if library == "torch":
        import torch
        import torch.distributed as dist
    else:
        import pytensorlib as torch
        import pytensorlib.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=dt.timedelta(minutes=5))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    found: dict[str, float] = {}
    for n in sizes:
        x = torch.zeros(n // 4)
        # All ranks must make as many calls: the first one says how many.
        count = torch.tensor([3])
        one = timed(lambda x=x: dist.all_reduce(x), dist.barrier)
        one = min(one, timed(lambda x=x: dist.all_reduce(x), dist.barrier))
        count[0] = max(3, min(200, int(seconds / max(one, 1e-6))))
        dist.broadcast(count, 0)
        times = [
            timed(lambda x=x: dist.all_reduce(x), dist.barrier) for _ in range(int(count.item()))
        ]
        found[str(n)] = min(times)
        assert x[0].item() == 0
        del x
    if step_too:
        found |= steps(torch, dist)
    dist.barrier()
    dist.destroy_process_group()
    return found if rank == 0 else {"ranks": ranks}


def steps(torch: Any, dist: Any) -> dict[str, float]:
    """Measure training steps, with and without the reduction of their gradients."""
    found: dict[str, float] = {}
    for name in STEPS:
        torch.manual_seed(0)
        wrapped: list[Any] = []

        def wrap(model: Any, wrapped: list[Any] = wrapped) -> Any:
            wrapped.append(torch.nn.parallel.DistributedDataParallel(model))
            return wrapped[0]

        if name == "GPT":
            step = models.gpt(torch, batch=2, wrap=wrap)
        else:
            sizes = (512,) * 5
            step = models.mlp(torch, sizes, 64, "SGD", lr=1e-3, wrap=wrap)
        step()
        found[f"{name} step"] = min(timed(step, dist.barrier) for _ in range(20))
        with wrapped[0].no_sync():
            step()
            alone = min(timed(step, dist.barrier) for _ in range(20))
        found[f"{name} step without communication"] = alone
        count = sum(p.numel() * p.element_size() for p in wrapped[0].parameters())
        found[f"{name} bytes"] = count
    return found


def measure(
    library: str, ranks: int, sizes: list[int], seconds: float, step_too: bool = True
) -> dict[str, float]:
    """Measure a library on some ranks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "times.json"
        options = ["--work", library, "--out", str(out), "--seconds", str(seconds), "--sizes"]
        script = [str(Path(__file__).resolve()), *options, ",".join(map(str, sizes))]
        script += [] if step_too else ["--no-step"]
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTENSORLIB_NUM_THREADS": "1"}
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        if library == "torch":
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = str(s.getsockname()[1])
            given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
            python = os.environ["TORCH_PYTHON"]
            all_of_them = [
                subprocess.Popen([python, *script], env=env | given | {"RANK": str(r)})
                for r in range(ranks)
            ]
            codes = [p.wait() for p in all_of_them]
            assert not any(codes)
        else:
            env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            run = [sys.executable, "-m", "pytensorlib.distributed.run"]
            subprocess.run([*run, f"--nproc-per-node={ranks}", *script], env=env, check=True)
        return json.loads(out.read_text())


def parts(ranks: int, n: int, knee: int, cores: int) -> list[float]:
    """Return what the costs count: messages, waits, bytes in caches and beyond."""
    sharing, halvings = max(1.0, ranks / cores), ranks.bit_length() - 1
    power = 1 << halvings
    messages = halvings + 2 * (ranks != power)
    waits = messages * sharing if ranks > cores else 0.0
    moved = sharing * (2 * (power - 1) / power + (ranks != power))
    return [messages, waits, moved * min(n, knee), moved * max(0, n - knee)]


class Model(NamedTuple):
    """Seconds of a message, of a wait, of a byte in caches and of one beyond."""

    costs: tuple[float, ...]
    knee: int

    def seconds(self, ranks: int, n: int, cores: int) -> float:
        """Return the seconds of an all-reduce."""
        return sum(c * x for c, x in zip(self.costs, parts(ranks, n, self.knee, cores)))


def fitted(times: dict[int, dict[str, float]], cores: int) -> Model:
    """Return the model with the least squares of relative errors, no cost below zero."""
    best, least = Model((0.0,) * 4, KNEES[0]), math.inf
    for knee in KNEES:
        rows = [
            np.array(parts(ranks, int(n), knee, cores)) / t
            for ranks, found in times.items()
            for n, t in found.items()
        ]
        table = np.array(rows)
        for some in itertools.product((False, True), repeat=4):
            kept = np.flatnonzero(some)
            costs = np.zeros(4)
            if len(kept):
                costs[kept] = np.linalg.lstsq(table[:, kept], np.ones(len(rows)), rcond=None)[0]
            error = float(np.square(table @ costs - 1).sum())
            if (costs >= 0).all() and error < least:
                best, least = Model(tuple(costs.tolist()), knee), error
    return best


def fit(seconds: float) -> None:
    """Fit the model, hold it to more ranks, and predict how steps scale."""
    sizes, cores = list(FITTED.values()), os.cpu_count() or 1
    # The step's own cost is that of one rank to a core, so it is measured on two.
    found = {p: measure("ours", p, sizes, seconds, p == 2) for p in (2, 3, 4, 6, 8)}
    times = {p: {str(n): one[str(n)] for n in sizes} for p, one in found.items()}
    model = fitted({p: times[p] for p in (2, 3, 4)}, cores)
    message, wait, near, far = model.costs
    print(
        f"\na message takes {message * 1e6:.1f} us, waiting for a turn {wait * 1e6:.1f} us, a byte "
        f"{near * 1e9:.3f} ns, beyond {model.knee >> 10} KB {far * 1e9:.3f} ns"
    )
    print("ranks     bytes  measured ms  model ms  measured/model")
    for ranks, one in times.items():
        for n in sizes:
            t, told = one[str(n)], model.seconds(ranks, n, cores)
            line = f"{ranks:5} {n:9} {t * 1e3:12.3f} {told * 1e3:9.3f} {t / told:15.2f}"
            print(line + ("  not fitted" if ranks > 4 else ""))
    links = {"between these processes": model}
    for name, (latency, rate) in LINKS.items():
        links[name] = Model((latency, 0.0, 1 / rate, 1 / rate), model.knee)
    for name in STEPS:
        own, size = found[2][f"{name} step without communication"], int(found[2][f"{name} bytes"])
        visible = max(0.0, found[2][f"{name} step"] - own) / model.seconds(2, size, cores)
        print(
            f"\n{name}: {own * 1e3:.1f} ms a step, {size >> 10} KB of gradients, "
            f"{1 - min(1.0, visible):.0%} of their reduction hidden; efficiency on a core for each "
            "rank, by the model"
        )
        print("ranks  " + "  ".join(links))
        for ranks in (2**k for k in range(1, 11)):
            cells = []
            for title, link in links.items():
                shown = min(1.0, visible) * link.seconds(ranks, size, cores=ranks)
                cells.append(f"{own / (own + shown):{len(title)}.0%}")
            print(f"{ranks:5}  " + "  ".join(cells))


def main() -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2, help="turns of each library")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each size")
    parser.add_argument("--fit", action="store_true", help="fit the cost model on 2 to 8 ranks")
    parser.add_argument("--largest", type=int, default=SIZES["400 MB"], help="bytes")
    for name in ("--work", "--out", "--sizes"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--no-step", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        found = work(
            args.work, [int(n) for n in args.sizes.split(",")], args.seconds, not args.no_step
        )
        if "ranks" not in found:
            Path(args.out).write_text(json.dumps(found))
        return 0
    if args.fit:
        fit(args.seconds)
        return 0
    sizes = [n for n in SIZES.values() if n <= args.largest]
    libraries = ["ours", *(["torch"] if os.environ.get("TORCH_PYTHON") else [])]
    best: dict[str, dict[str, float]] = {library: {} for library in libraries}
    for _ in range(args.rounds):
        for library in libraries:
            for name, t in measure(library, args.ranks, sizes, args.seconds).items():
                best[library][name] = min(t, best[library].get(name, math.inf))
    print(f"\n{args.ranks} ranks, one thread each; milliseconds, least of all runs")
    print(f"{'':36} {'ours':>10} {'Gloo':>10} {'ratio':>6}")
    shown = {f"all-reduce of {label}": str(n) for label, n in SIZES.items() if n in sizes}
    for step in STEPS:
        shown |= {f"{step} {s}": f"{step} {s}" for s in ("step", "step without communication")}
    for title, name in shown.items():
        ours = best["ours"][name]
        line = f"{title:36} {ours * 1e3:10.3f}"
        if "torch" in best:
            theirs = best["torch"][name]
            line += f" {theirs * 1e3:10.3f} {ours / theirs:6.2f}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
