"""Measure ours and PyTorch in turn, each in its own process, and print one table.

compare.py [--rounds N] [--markdown] [pytest arguments such as -k import]

PyTorch is looked for in this Python, then in the one that TORCH_PYTHON names (of the same
version: its packages are put last on this one's path). Without it the table has one column.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
THREADS = "2"
WHERE_TORCH = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)"
Row = tuple[float, str]  # value, unit


def torch_site() -> str | None:
    """Return the folder that holds PyTorch, or None."""
    for python in filter(None, (sys.executable, os.environ.get("TORCH_PYTHON"))):
        done = subprocess.run([python, "-c", WHERE_TORCH], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def build_wheel() -> None:
    """Build the wheel whose size the table shows (the release build is reused)."""
    command = ["maturin", "build", "--release", "-q", "-i", sys.executable]
    subprocess.run(command, cwd=ROOT, check=True)


def rows_of(report: dict) -> Iterator[tuple[str, Row]]:
    """Yield label, value and unit of each benchmark in pytest-benchmark's report."""
    for entry in report["benchmarks"]:
        info = entry["extra_info"]
        if "wheel" in info:
            yield "wheel size", (info["wheel"], "MB")
        if "value" in info:
            yield info["label"], (info["value"], info["unit"])
        else:
            yield info["label"], (entry["stats"]["median"] / info["calls"] * 1e9, "ns")


def measure(lib: str, site: str, more: list[str]) -> dict[str, Row]:
    """Run the suite against one library in a process of its own."""
    with tempfile.TemporaryDirectory() as d:
        out = Path(d) / "out.json"
        command = [sys.executable, "-m", "pytest", str(HERE), "-q", "-c", str(HERE / "pytest.ini")]
        command += ["--lib", lib, "--site", site, f"--benchmark-json={out}", *more]
        env = {**os.environ, "OMP_NUM_THREADS": THREADS}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        if not out.exists() or not out.stat().st_size:
            raise SystemExit(f"{lib}: no result\n{done.stdout}{done.stderr}")
        if done.returncode:
            print(f"{lib}: some benchmarks failed\n{done.stdout}", file=sys.stderr)
        return dict(rows_of(json.loads(out.read_text())))


def shown(row: Row | None) -> str:
    """Write a value with three digits and the unit that suits it."""
    if row is None:
        return "-"
    value, unit = row
    if unit == "ns" and value >= 1e4:
        value, unit = value / 1e3, "us"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def main() -> None:
    """Alternate the two libraries and keep the better of the rounds."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--markdown", action="store_true")
    ap.add_argument("--module", default="pytensorlib", choices=["pytensorlib", "torch"])
    a, more = ap.parse_known_args()
    site = torch_site()
    if a.module == "pytensorlib":
        build_wheel()
    best: dict[str, dict[str, Row]] = {}
    for _ in range(a.rounds):
        for column, lib in (("ours", a.module), ("PyTorch", "torch")):
            if lib == "torch" and site is None:
                continue
            for label, row in measure(lib, site or "" if lib == "torch" else "", more).items():
                sides = best.setdefault(label, {})
                sides[column] = min(sides.get(column, row), row)
    cell = "| {:<44} | {:>10} | {:>10} | {:>14} |" if a.markdown else "{:<44} {:>10} {:>10} {:>14}"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {THREADS} threads, best of {a.rounds}\n")
    print(cell.format("", "ours", "PyTorch", "PyTorch / ours"))
    if a.markdown:
        print("|---|---:|---:|---:|")
    for label, sides in best.items():
        ours, theirs = sides.get("ours"), sides.get("PyTorch")
        ratio = f"{theirs[0] / ours[0]:.1f}" if ours and theirs and label[:5] != "empty" else "-"
        print(cell.format(label, shown(ours), shown(theirs), ratio))
    if site is None:
        print("\nPyTorch was not found: set TORCH_PYTHON to a Python that has it.")


if __name__ == "__main__":
    main()
