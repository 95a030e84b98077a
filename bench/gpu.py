"""What a GPU does with it: memory, products, convolutions, attention, indices, training steps.

``python bench/gpu.py`` times the cases of `gpu_cases.py` on the first adapter, in at most
``--minutes``, and prints a table beside the card's own peaks, which two small kernels measure; with
``TORCH_PYTHON`` naming a Python whose PyTorch has CUDA, beside it. ``--keep`` writes the figures to
``results/gpu/`` and the tables to pages/gpu.md. A figure is the least time of three runs of enough
calls, with the card waited for at the end of each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import results  # noqa: E402
from gpu_cases import Case, cases  # noqa: E402

FOLDER = HERE / "results" / "gpu"
LONG = 0.5  # seconds of a call after which the larger ones of its family are left out
HEAD = ("", "size", "ours", "TFLOP/s", "GB/s", "of peak", "PyTorch", "ratio")


def seconds_of(call: Any, record: Any, wait: Any, limit: float) -> float:
    """Return the seconds of a call: the least of three runs, within a limit of seconds.

    `record` has what waits for others recorded while its result is there: else it is left out.
    """

    def run(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            kept = call()
            record()
            del kept
        wait()
        return (time.perf_counter() - begin) / count

    wait()
    one = min(run(1), run(1))
    if one > limit:
        return one
    count = max(1, min(1000, int(min(0.12, limit / 5) / max(one, 1e-7))))
    return min(one, run(count), run(count), run(count))


def wake(t: Any, device: Any, wait: Any, seconds: float = 0.2) -> None:
    """Keep the card busy for a while: it slows down while the host compiles."""
    a, end = t.ones(2048, 2048).to(device), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(8):
            kept = a @ a
        wait()
        del kept


def work(library: str, minutes: float) -> dict[str, Any]:
    """Time all cases with one library; returns seconds, or why there are none, by case."""
    end = time.monotonic() + 60 * minutes
    t = __import__(library)
    device = "cuda" if library == "torch" else "wgpu"
    wait = t.cuda.synchronize if library == "torch" else t.wgpu.synchronize
    # What waits for others is recorded where that is switched, which takes the least time.
    record = (lambda: None) if library == "torch" else lambda: t._C._wgpu_set_fuse(0, True)
    soft = library != "torch" and t.wgpu.get_device_properties()["software"]
    found: dict[str, Any] = {}
    over: dict[str, str] = {}
    todo = cases()
    for i, case in enumerate(todo):
        key = f"{case.family} | {case.name}"
        left = end - time.monotonic()
        if case.family in over or left <= 0:
            found[key] = over.get(case.family, "the time was over")
            continue
        try:
            call = case.make(t, device)
            if not soft:
                wake(t, device, wait, 0.1)
            for _ in range(4):  # among them that in which ways are timed
                call()
                wait()
            if not soft:
                wake(t, device, wait)
            taken = seconds_of(call, record, wait, max(left / (len(todo) - i), 0.2))
        except (RuntimeError, MemoryError, NotImplementedError) as error:
            found[key] = over[case.family] = " ".join(str(error).split())[:120]
            continue
        found[key] = taken
        if taken > LONG:
            over[case.family] = f"{case.name} takes {taken:.1f} s"
        del call
        if library != "torch":
            t.wgpu.empty_cache()
    return found


def host_costs() -> dict[str, float]:
    """Return the seconds of the host for a recorded dispatch, and of the first step of a GPT."""
    import models

    import pytensorlib as t

    x, found = t.ones(8, 8, device="wgpu"), {}
    best = float("inf")
    for _ in range(20):
        t.wgpu.synchronize()
        before, begin = t.wgpu.memory_stats()["dispatches"], time.perf_counter()
        kept = [x @ x for _ in range(15)]  # fewer than are sent together
        # What waits is recorded when someone asks how many there were.
        recorded = t.wgpu.memory_stats()["dispatches"] - before
        best = min(best, (time.perf_counter() - begin) / recorded)
        del kept
    found["host, a recorded dispatch"] = best
    found |= replay_costs()
    begin = time.perf_counter()
    with t.device("wgpu"):
        step = models.gpt(t, 2, 32, 64, 4)
    step()
    t.wgpu.synchronize()
    found["first step of a small GPT"] = time.perf_counter() - begin
    return found


def replay_costs() -> dict[str, float]:
    """Return the host's seconds for a dispatch that is kept: where none is sent, and with that."""
    import pytensorlib as t

    x, n = t.ones(64, device="wgpu"), 60
    call = t.graph(lambda x: [x := x @ x for _ in range(n)][-1], fullgraph=True)
    x = x.reshape(8, 8) / 8
    for _ in range(20):
        call(x)
    alone, before = float("inf"), t.wgpu.memory_stats()
    begin = time.thread_time()
    for _ in range(400):
        sent, start = t.wgpu.memory_stats()["submissions"], time.thread_time()
        call(x)
        taken = (time.thread_time() - start) / n
        if t.wgpu.memory_stats()["submissions"] == sent:
            alone = min(alone, taken)
    taken = time.thread_time() - begin
    dispatches = t.wgpu.memory_stats()["dispatches"] - before["dispatches"]
    return {"host, a kept dispatch": alone, "host, the same, sent": taken / dispatches}


def variables(python: str) -> dict[str, str]:
    """Return the environment for a Python: another one has packages and libraries of its own."""
    ours = {"PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"} if python != sys.executable else set()
    return {k: v for k, v in os.environ.items() if k not in ours}


def in_process(what: str, python: str, minutes: float, **environment: str) -> Any:
    """Run a part in a process of its own; returns what it found."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        words = [python, __file__, "--part", what, "--out", str(out), "--minutes", str(minutes)]
        done = subprocess.run(words, env=variables(python) | environment, check=False)
        return json.loads(out.read_text()) if done.returncode == 0 else None


def has_cuda(python: str) -> bool:
    """Return whether a Python's PyTorch can use a GPU."""
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    words = [python, "-c", code]
    done = subprocess.run(words, env=variables(python), capture_output=True, check=False)
    return done.returncode == 0


def measure(minutes: float) -> dict[str, Any]:
    """Return what was measured."""
    import pytensorlib as t

    python = os.environ.get("TORCH_PYTHON", "")
    beside = bool(python) and has_cuda(python)
    about = t.wgpu.get_device_properties()
    kept = ("name", "backend", "driver", "software", "features", "cooperative_matrices")
    found: dict[str, Any] = {"adapter": {k: about[k] for k in kept}, "date": time.strftime("%F")}
    found["peaks"] = t.wgpu.peaks()
    with tempfile.TemporaryDirectory() as folder:  # of compiled pipelines
        for state in ("cold", "warm"):
            host = in_process("host", sys.executable, 1, XDG_CACHE_HOME=folder) or {}
            found |= {"host": found.get("host", {}) | {f"{k}, {state}": v for k, v in host.items()}}
    share = (minutes - 0.5) / (1 + beside)
    found["ours"] = in_process("pytensorlib", sys.executable, share)
    if beside:
        found["torch"] = in_process("torch", python, share)
    return found


def row(case: Case, found: dict[str, Any]) -> list[str]:
    """Return a row of the table, under HEAD."""
    key = f"{case.family} | {case.name}"
    ours, theirs = found["ours"].get(key, ""), (found.get("torch") or {}).get(key, "")
    if isinstance(ours, str):
        return [case.family, case.name, f"not run: {ours}" if ours else "", *[""] * 5]
    moved, computed = found["peaks"] or (0, 0)
    least = max(case.bytes / moved if moved else 0, case.flops / computed if computed else 0)
    return [
        case.family,
        case.name,
        results.shown(ours * 1e9, "ns"),
        f"{case.flops / ours / 1e12:.3g}" if case.flops else "",
        f"{case.bytes / ours / 1e9:.3g}" if case.bytes else "",
        f"{least / ours:.0%}" if least else "",
        results.shown(theirs * 1e9, "ns") if isinstance(theirs, float) else "",
        f"{ours / theirs:.2f}" if isinstance(theirs, float) else "",
    ]


def section(found: dict[str, Any]) -> str:
    """Return an adapter's part of pages/gpu.md."""
    adapter, peaks = found["adapter"], found["peaks"]
    lines = [f"## {adapter['name']}", ""]
    soft = ", in software: it says what runs, not how fast a card is" * adapter["software"]
    lines += [f"{adapter['backend']}, {adapter['driver']}{soft}; {found['date']}."]
    if peaks:
        lines[-1] += f" Peaks {peaks[0] / 1e9:.3g} GB/s, {peaks[1] / 1e12:.3g} TFLOP/s of float32."
    lines += ["", *(f"- {name}: {t * 1e6:,.1f} us" for name, t in found["host"].items()), ""]
    rows = [list(HEAD), *(row(case, found) for case in cases())]
    used = [i for i in range(len(HEAD)) if i < 2 or any(r[i] for r in rows[1:])]
    lines += [results.markdown([[r[i] for i in used] for r in rows])]
    return "\n".join(lines)


def write_tables() -> None:
    """Write the tables of pages/gpu.md from the files."""
    page = results.PAGES / "gpu.md"
    kept = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    page.write_text(results.between("gpu", page.read_text(), "\n\n".join(map(section, kept))))


def main() -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=8.0, help="for all")
    parser.add_argument("--keep", action="store_true", help="write results/gpu/ and pages/gpu.md")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "wgpu: .* runs on the CPU")
    if args.part:
        found = host_costs() if args.part == "host" else work(args.part, args.minutes)
        args.out.write_text(json.dumps(found))
        return 0
    import pytensorlib as t

    if not t.wgpu.is_available():
        print("no GPU adapter was found", file=sys.stderr)
        return 1
    found = measure(args.minutes)
    print(section(found))
    if args.keep:
        FOLDER.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", found["adapter"]["name"].lower()).strip("-")
        (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        write_tables()
    return 0


if __name__ == "__main__":
    sys.exit(main())
