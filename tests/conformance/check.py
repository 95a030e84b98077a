#!/usr/bin/env python3
"""Replay recorded PyTorch behaviour and compare what passes with expected.json.

    check.py                 fails when any count fell, or any case crashed or panicked
    check.py --update        the same, then raises the recorded counts; it never lowers one
    check.py --device wgpu   the same on the GPU, with the counts of expected_wgpu.json
    check.py --every 4       of every fourth operator; on the GPU beside expected_wgpu_4.json

For each suite expected.json holds how many entries pass whole and how many cases pass per dtype.
`core` is the part of the operators that core.txt names. `run.py --why` tells why a case fails.
On the GPU `native` counts the cases that pass without running any op on the CPU, of all types and
of each; the counts are those of software Vulkan, and on other adapters a lower one is told but is
no failure, nor is one of `native` where PYTENSORLIB_WGPU_WITHOUT hides features of the adapter.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
CORE = "core"
SUITES = ("ops", "modules", "optimizers", "files")
# More slices than processes, so that they end together; one on a GPU, where each process compiles
# its kernels, of which most operators have some in common.
OPS_SLICES = {"cpu": 4}


Results = dict[str, list[list[str]]]  # entry -> [label, dtype, result, why]
Counts = dict[str, dict[str, int]]


def replay(
    suite: str, names: list[str], module: str, device: str, folder: Path, number: int
) -> Results:
    """Run one part of the replay in a process of its own."""
    listed, out = folder / f"{number}.txt", folder / f"{number}.json"
    listed.write_text("\n".join(names))
    # One thread each: the processes share the cores between them.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "run.py"), "--suite", suite, "--module", module]
    command += ["--device", device]
    command += ["--json", str(out), *(["--list", str(listed)] if names else [])]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if not out.exists():
        raise SystemExit(f"{suite}: {done.stderr or done.stdout}")
    return json.loads(out.read_text())[suite]


def replay_all(module: str, device: str, processes: int, every: int) -> dict[str, Results]:
    """Run every suite, `processes` at a time, but of the operators only each `every`-th."""
    with np.load(HERE / "ops.public.npz") as z:
        ops = list(json.loads(z["__spec__"].tobytes()))[::every]
    slices = OPS_SLICES.get(device, 1)
    parts = [("ops", ops[i::slices]) for i in range(slices)]
    # Checkpoints are read on the CPU wherever tensors live.
    suites = SUITES if device == "cpu" else SUITES[:-1]
    parts += [(suite, []) for suite in suites if suite != "ops"]
    found: dict[str, Results] = {suite: {} for suite in (CORE, *suites)}
    with tempfile.TemporaryDirectory() as d, ThreadPoolExecutor(processes) as pool:
        jobs = [
            (suite, pool.submit(replay, suite, names, module, device, Path(d), i))
            for i, (suite, names) in enumerate(parts)
        ]
        for suite, job in jobs:
            found[suite] |= job.result()
    core = (HERE / "core.txt").read_text().split()
    found[CORE] = {name: found["ops"][name] for name in core if name in found["ops"]}
    return found


def count(results: Results, device: str) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """Passed and all cases per dtype (`whole` counts entries), and the cases that died."""
    passed: collections.Counter[str] = collections.Counter({"whole": 0})
    total: collections.Counter[str] = collections.Counter()
    died = []
    for name, recorded in results.items():
        # This case exists only where PyTorch is installed; counts must not depend on that.
        cases = [c for c in recorded if c[0] != "torch reads it"]
        total["whole"] += 1
        passed["whole"] += all(c[2] == "pass" for c in cases)
        for label, dtype, result, why in cases:
            total[dtype] += 1
            passed[dtype] += result == "pass"
            if device != "cpu":
                for kind in ("native", f"native {dtype}"):
                    total[kind] += 1
                    passed[kind] += result == "pass" and why != "fallback"
            if result in {"crash", "panic"}:
                died.append(f"{name} {label}: {result}: {why}")
    return dict(+passed), dict(+total), died


def adapter_name(module: str) -> str | None:
    """Return what the GPU is called, in a process of its own; None where there is none."""
    code = f"from {module} import wgpu; print(wgpu.is_available() and wgpu.get_device_name())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name = done.stdout.strip()
    return None if name == "False" else name


def main() -> int:
    """Return 0 when nothing fell and nothing died."""
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--update", action="store_true", help="raise the counts in expected.json")
    ap.add_argument("--module", default="pytensorlib", help="the library to replay against")
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--processes", type=int, default=2)
    ap.add_argument("--every", type=int, default=1, help="replay every N-th operator")
    a = ap.parse_args()

    start = time.perf_counter()
    adapter = "" if a.device == "cpu" else adapter_name(a.module)
    if adapter is None:
        print("no GPU adapter: nothing to replay")
        return 0
    of = ["expected"] + [a.device] * (a.device != "cpu") + [str(a.every)] * (a.every > 1)
    file = HERE / f"{'_'.join(of)}.json"
    expected: Counts = json.loads(file.read_text()) if file.exists() else {}
    fell, died, raised = [], [], 0
    print(f"{'suite':<11} {'cases':<17} {'passed':>7} {'of':>6} {'%':>7} {'expected':>9}")
    for suite, results in replay_all(a.module, a.device, a.processes, a.every).items():
        passed, total, dead = count(results, a.device)
        died += dead if suite != CORE else []  # its operators are counted in ops too
        floor = expected.setdefault(suite, {})
        for kind in sorted(set(total) | set(floor), key=lambda k: (k != "whole", k)):
            got, want, n = passed.get(kind, 0), floor.get(kind, 0), total.get(kind, 0)
            note = "  FELL" if got < want else f"  +{got - want}" if got > want else ""
            share = 100 * got / n if n else 0.0
            print(f"{suite:<11} {kind:<17} {got:>7} {n:>6} {share:>7.2f} {want:>9}{note}")
            if got < want:
                fell.append(f"{suite} {kind}: {got} pass, {want} did")
            raised += max(got - want, 0)
            floor[kind] = max(got, want)
    for line in [*fell, *died]:
        print(line)
    if a.update and not died:
        file.write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n")
        print(f"{file.name}: {raised} more" + (", the fallen ones kept" if fell else ""))
    elif raised:
        print(f"{raised} more than recorded: python tests/conformance/check.py --update")
    if adapter and os.environ.get("PYTENSORLIB_WGPU_WITHOUT"):
        fell = [line for line in fell if " native" not in line]
    if adapter and "llvmpipe" not in adapter:
        print(f"{adapter}: the counts are those of software Vulkan")
        fell = []
    print(f"{len(fell)} counts fell, {len(died)} cases died, {time.perf_counter() - start:.0f} s")
    return 1 if fell or died else 0


if __name__ == "__main__":
    sys.exit(main())
