"""Measure ours, PyTorch and NumPy in turn, each in its own process, and print one table.

compare.py [--rounds N] [--threads N] [--keep FILE] [pytest arguments such as -k sort]

`ratio` is of the best figures, `median` of their medians. The first round measures every row in one
library after the other. Beside PyTorch the others measure in turns of some 60 ms, so that both meet
the machine in the same state (turns.py): the second round every row anew, later ones those in which
ours is not clearly ahead. PyTorch is looked for in this Python, then in the one that TORCH_PYTHON
names (of the same version: its packages are put last on this one's path). `roofline` is the time
that the least work would take at the machine's measured peaks, over ours. `error` is the distance
from float64, measured after the timing (errors.py).

A run of every row beside PyTorch is written to results/, into the file of this processor's family.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median

import results
from cases import CASES
from machine import this_machine
from turns import Library

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WHERE_TORCH = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)"
COSTS = "costs"
# Ratios of the best figures and of the medians above these are measured again, so often in a round.
CLOSE, SLOWER, TURNS = 0.8, 1.0, 3


def torch_site() -> str | None:
    """Return the folder that holds PyTorch, or None."""
    for python in filter(None, (sys.executable, os.environ.get("TORCH_PYTHON"))):
        done = subprocess.run([python, "-c", WHERE_TORCH], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def rounded(figure: float) -> float:
    """Return what is kept of a figure."""
    return float(f"{figure:.4g}")


def build_wheel() -> None:
    """Build the wheel whose size the table shows (the release build is reused)."""
    command = ["maturin", "build", "--release", "-q", "-i", sys.executable]
    subprocess.run(command, cwd=ROOT, check=True)


def peaks(threads: int) -> tuple[float, float]:
    """Return this machine's bytes and float32 operations per second."""
    program = ROOT / "target" / "roofline"
    program.parent.mkdir(exist_ok=True)
    subprocess.run(["rustc", "-O", HERE / "roofline.rs", "-o", program], check=True)
    done = subprocess.run([program, str(threads)], capture_output=True, text=True, check=True)
    _, moved, computed = done.stdout.split()
    return float(moved), float(computed)


def rows_of(report: dict) -> Iterator[tuple[str, float, str]]:
    """Yield label, value and unit of each benchmark in pytest-benchmark's report."""
    for entry in report["benchmarks"]:
        info = entry["extra_info"]
        if "wheel" in info:
            yield f"{COSTS}: wheel size", info["wheel"], "MB"
        if "value" in info:
            yield info["label"], info["value"], info["unit"]
        else:
            yield info["label"], entry["stats"]["median"] / info["calls"] * 1e9, "ns"


def measure(lib: str, site: str, threads: int, more: list[str]) -> list[tuple[str, float, str]]:
    """Run the suite against one library in a process of its own."""
    with tempfile.TemporaryDirectory() as d:
        out = Path(d) / "out.json"
        command = [sys.executable, "-m", "pytest", str(HERE), "-q", "-c", str(HERE / "pytest.ini")]
        command += ["--lib", lib, "--site", site, f"--benchmark-json={out}", *more]
        number = str(threads)
        env = {**os.environ, "OMP_NUM_THREADS": number, "OPENBLAS_NUM_THREADS": number}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        if done.returncode not in {0, 5}:  # 5: nothing selected
            print(f"{lib}: some benchmarks failed\n{done.stdout}{done.stderr}", file=sys.stderr)
        written = out.exists() and out.stat().st_size
        return list(rows_of(json.loads(out.read_text()))) if written else []


def is_close(label: str, row: results.Row) -> bool:
    """Whether ours is not clearly ahead of PyTorch."""
    best, middle = (results.ratio(label, row, of) or 0.0 for of in (min, median))
    return best > CLOSE or middle > SLOWER


def in_turns(rows: dict[str, results.Row], again: bool, site: str, threads: int) -> None:
    """Measure every row in our library and PyTorch, or the close ones again."""
    found = {case.id: rows[case.id] for case in CASES if "torch" in rows.get(case.id, {})}
    with Library("pytensorlib", site, threads) as ours, Library("torch", site, threads) as peer:
        for label, row in found.items():
            if again and not is_close(label, row):
                continue
            if not again:
                row |= {ours.name: [], peer.name: []}
            for lib in (ours, peer) * TURNS:
                row[lib.name].append(rounded(lib.time(label)))


def errors(labels: list[str], site: str, threads: int) -> dict[str, list[float]]:
    """Return our error and PyTorch's against float64, for the rows that have one."""
    command = [sys.executable, HERE / "errors.py", "--site", site, "--threads", str(threads)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads)}
    text = json.dumps(labels)
    done = subprocess.run(command, cwd=ROOT, env=env, input=text, capture_output=True, text=True)
    if done.returncode:
        print(f"the errors are missing\n{done.stderr}", file=sys.stderr)
        return {}
    return json.loads(done.stdout)


def conditions(site: str | None, rounds: int, roof: tuple[float, float]) -> results.Run:
    """Return when a run is made, and of what."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    sources = ["rust", "shaders", "pytensorlib", "Cargo.toml", "Cargo.lock", "bench/*.py"]
    changed = subprocess.run([*git, "status", "--porcelain", "--", *sources], capture_output=True)
    versions = {"Python": platform.python_version(), "NumPy": version("numpy")}
    if site is not None:
        command = [sys.executable, "-c", "import torch; print(torch.__version__)"]
        env = {**os.environ, "PYTHONPATH": site}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        versions["PyTorch"] = done.stdout.strip().partition("+")[0]
    return {
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip() + " with changes" * bool(changed.stdout),
        "versions": versions,
        "rounds": rounds,
        "peaks": {"bytes": roof[0], "flops": roof[1]},
    }


def is_whole(rows: dict[str, results.Row]) -> bool:
    """Whether every row was measured in both libraries, on the processor as it is."""
    forced = [name for name in os.environ if name.startswith("PYTENSORLIB_")]
    ids = [case.id for case in CASES]
    return not forced and all({"pytensorlib", "torch"} <= rows.get(i, {}).keys() for i in ids)


def main() -> None:
    """Alternate the libraries, then look at the errors."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--keep", type=Path, help="also write the figures to this file, as JSON")
    ap.add_argument("--only", nargs="*", help="of pytensorlib, torch, numpy; all by default")
    ap.add_argument("--no-build", action="store_true", help="take the extension as it is")
    a, more = ap.parse_known_args()
    site = torch_site()
    if not a.no_build:
        build_wheel()
    roof = peaks(a.threads)
    rows: dict[str, results.Row] = {}
    libraries = [lib for lib in a.only or results.LIBRARIES if site is not None or lib != "torch"]
    beside = site is not None and not a.only
    for turn in range(a.rounds):
        if site is not None and beside and turn > 0:
            in_turns(rows, turn > 1, site, a.threads)
            continue
        for lib in libraries:
            at = (site or "") * (lib == "torch")
            for label, value, unit in measure(lib, at, a.threads, more):
                figures = rows.setdefault(label, {"unit": unit}).setdefault(lib, [])
                figures.append(rounded(value))
    if site is not None and beside:
        for label, pair in errors(list(rows), site, a.threads).items():
            rows[label]["errors"] = pair
    run = conditions(site, a.rounds, roof) | {"rows": rows}
    if a.keep:
        a.keep.write_text(json.dumps(run, indent=1))
    machine = this_machine()
    print(f"{machine['family']}; {results.said(str(a.threads), run)}\n")
    print(results.text(run))
    if is_whole(rows):
        print(f"\nkept in {results.save(machine, a.threads, run).relative_to(ROOT)}")
        results.write()


if __name__ == "__main__":
    main()
