"""Communication between processes: ours over MPI beside PyTorch's Gloo, and what it costs.

``python bench/distributed.py`` (in an environment with the extra `distributed`) times an all-reduce
of four sizes and a training step on two ranks, one thread each; with ``TORCH_PYTHON`` naming a
Python that has PyTorch, the same there, in turn. ``--fit`` times 2 to 8 ranks, fits the cost model
below and predicts how training scales.

An all-reduce of n bytes on p ranks takes ``a * log2(p) + b * n * 2 (p - 1) / p`` seconds: a message
for each halving of the ranks, and each byte there and back (Thakur et al. 2005,
doi:10.1177/1094342005051521); where ranks share cores, as many times longer as share one. What a
backward pass hides of that is measured, not modelled.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"4 KB": 4096, "1 MB": 1 << 20, "25 MB": 25 << 20, "400 MB": 400 << 20}
WIDTH, BATCH = 512, 64  # of the step: four layers, 4 MiB of gradients


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
    """Measure a training step, with and without the reduction of its gradients."""
    found: dict[str, float] = {}
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)]
    net = torch.nn.Sequential(*layers)
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    data = torch.randn(BATCH, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    def alone() -> None:
        optimizer.zero_grad()
        net_loss = net(data).square().mean()
        net_loss.backward()
        optimizer.step()

    for name, call in (("step", step), ("step without communication", alone)):
        if name == "step":
            call()
            found[name] = min(timed(call, dist.barrier) for _ in range(10))
        else:
            with model.no_sync():
                call()
                found[name] = min(timed(call, dist.barrier) for _ in range(10))
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


def fitted(times: dict[int, dict[str, float]], sizes: list[int]) -> tuple[float, float]:
    """Return the seconds of a message and of a byte, by least squares of relative errors."""
    rows, weights = [], []
    for ranks, found in times.items():
        for n in sizes:
            t = found[str(n)]
            rows.append([predicted(1, 0, ranks, n) / t, predicted(0, 1, ranks, n) / t])
            weights.append(1.0)
    (a, b), *_ = np.linalg.lstsq(np.array(rows), np.array(weights), rcond=None)
    return max(float(a), 0.0), max(float(b), 0.0)


def predicted(a: float, b: float, ranks: int, n: int, cores: int = os.cpu_count() or 1) -> float:
    """Return the seconds of an all-reduce."""
    sharing = max(1.0, ranks / cores)
    return sharing * (a * math.log2(ranks) + b * n * 2 * (ranks - 1) / ranks)


def fit(seconds: float) -> None:
    """Fit the model, and predict how the step scales."""
    sizes = [SIZES[name] for name in ("4 KB", "1 MB", "25 MB")]
    # The step's own cost is that of one rank to a core, so it is measured on two.
    times = {ranks: measure("ours", ranks, sizes, seconds, ranks == 2) for ranks in (2, 3, 4, 6, 8)}
    a, b = fitted(times, sizes)
    print(f"\na message takes {a * 1e6:.1f} us, a byte {b * 1e9:.3f} ns ({1e-9 / b:.2f} GB/s)")
    print("ranks     bytes  measured ms  model ms  measured/model")
    for ranks, found in times.items():
        for n in sizes:
            t, model = found[str(n)], predicted(a, b, ranks, n)
            print(f"{ranks:5} {n:9} {t * 1e3:12.3f} {model * 1e3:9.3f} {t / model:15.2f}")
    two = times[2]
    own = two["step without communication"]
    size = 4 * (WIDTH + 1) * WIDTH * 4
    visible = max(0.0, two["step"] - own) / predicted(a, b, 2, size)
    print(f"\na step of {own * 1e3:.1f} ms; {1 - min(1.0, visible):.0%} of the reduction is hidden")
    print("on a core for each rank, the model gives")
    print("ranks  efficiency")
    for ranks in (2, 4, 8, 16, 32, 64):
        shown = min(1.0, visible) * predicted(a, b, ranks, size, cores=ranks)
        print(f"{ranks:5} {own / (own + shown):11.0%}")


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
    print(f"{'':28} {'ours':>10} {'Gloo':>10} {'ratio':>6}")
    shown = {f"all-reduce of {label}": str(n) for label, n in SIZES.items() if n in sizes}
    for title, name in (shown | {s: s for s in ("step", "step without communication")}).items():
        ours = best["ours"][name]
        line = f"{title:28} {ours * 1e3:10.3f}"
        if "torch" in best:
            theirs = best["torch"][name]
            line += f" {theirs * 1e3:10.3f} {ours / theirs:6.2f}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
