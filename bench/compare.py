"""Measure ours, PyTorch and NumPy in turn, each in its own process, and print one table.

compare.py [--rounds N] [--threads N] [--markdown] [--keep FILE] [pytest arguments such as -k sort]

A figure is the best of the rounds. PyTorch is looked for in this Python, then in the one that
TORCH_PYTHON names (of the same version: its packages are put last on this one's path).
`roofline` is the time that the least work would take at the machine's measured peaks, over ours.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from math import exp, log
from pathlib import Path

from cases import CASES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WHERE_TORCH = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)"
COSTS = "costs"
NOT_COUNTED = "size"  # of wheel and files: no speed
Row = tuple[float, str]  # value, unit
Table = dict[str, dict[str, Row]]


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


def peaks(threads: int) -> tuple[float, float]:
    """Return this machine's bytes and float32 operations per second."""
    program = ROOT / "target" / "roofline"
    program.parent.mkdir(exist_ok=True)
    subprocess.run(["rustc", "-O", HERE / "roofline.rs", "-o", program], check=True)
    done = subprocess.run([program, str(threads)], capture_output=True, text=True, check=True)
    _, moved, computed = done.stdout.split()
    return float(moved), float(computed)


def rows_of(report: dict) -> Iterator[tuple[str, Row]]:
    """Yield label, value and unit of each benchmark in pytest-benchmark's report."""
    for entry in report["benchmarks"]:
        info = entry["extra_info"]
        if "wheel" in info:
            yield f"{COSTS}: wheel size", (info["wheel"], "MB")
        if "value" in info:
            yield info["label"], (info["value"], info["unit"])
        else:
            yield info["label"], (entry["stats"]["median"] / info["calls"] * 1e9, "ns")


def measure(lib: str, site: str, threads: int, more: list[str]) -> dict[str, Row]:
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
        return dict(rows_of(json.loads(out.read_text()))) if written else {}


def shown(row: Row | None) -> str:
    """Write a value with three digits and the unit that suits it."""
    if row is None:
        return ""
    value, unit = row
    if unit == "ns":
        for larger in ("us", "ms", "s"):
            if value < 1000:
                break
            value, unit = value / 1e3, larger
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def ratio(label: str, sides: dict[str, Row], peer: str = "torch") -> float | None:
    """Return ours over the peer's."""
    if peer not in sides or "pytensorlib" not in sides or label.endswith(NOT_COUNTED):
        return None
    return sides["pytensorlib"][0] / sides[peer][0]


def mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def print_table(table: Table, roof: tuple[float, float], markdown: bool) -> None:
    """Print every row, then the geometric mean of each group and of all, and the worst five."""
    widths = (52, 9, 9, 9, 6, 8)
    cell = " | ".join(f"{{:{'<' if i == 0 else '>'}{w}}}" for i, w in enumerate(widths))
    cell = f"| {cell} |" if markdown else cell.replace(" | ", "  ")
    print(cell.format("", "ours", "PyTorch", "NumPy", "ratio", "roofline"))
    if markdown:
        print("|---|---:|---:|---:|---:|---:|")
    least = {c.id: max(c.bytes / roof[0], c.flops / roof[1]) * 1e9 for c in CASES}
    groups: dict[str, list[float]] = defaultdict(list)
    ratios: dict[str, float] = {}
    for label, sides in table.items():
        ours, r = sides.get("pytensorlib"), ratio(label, sides)
        share = f"{least[label] / ours[0]:.0%}" if ours and least.get(label) else ""
        figures = (shown(sides.get(lib)) for lib in ("pytensorlib", "torch", "numpy"))
        print(cell.format(label, *figures, f"{r:.2f}" if r else "", share))
        if r:
            ratios[label] = r
            groups[label.split(":")[0]].append(r)
    if not ratios:
        print("\nPyTorch was not found: set TORCH_PYTHON to a Python that has it.")
        return
    print("\nGeometric mean of ours over PyTorch:\n")
    for group, each in groups.items():
        print(f"- {group}: {mean(each):.2f} (worst {max(each):.2f}, {len(each)} cases)")
    print(f"- all: {mean(list(ratios.values())):.2f} ({len(ratios)} cases)\n\nWorst:\n")
    for label in sorted(ratios, key=lambda label: -ratios[label])[:5]:
        print(f"- {label}: {ratios[label]:.2f}")


def main() -> None:
    """Alternate the libraries and keep the better of the rounds."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--markdown", action="store_true")
    ap.add_argument("--keep", type=Path, help="also write the figures to this file, as JSON")
    ap.add_argument("--only", nargs="*", help="of pytensorlib, torch, numpy; all by default")
    ap.add_argument("--no-build", action="store_true", help="take the extension as it is")
    a, more = ap.parse_known_args()
    site = torch_site()
    if not a.no_build:
        build_wheel()
    roof = peaks(a.threads)
    best: Table = {}
    for _ in range(a.rounds):
        for lib in a.only or ("pytensorlib", "torch", "numpy"):
            if lib == "torch" and site is None:
                continue
            found = measure(lib, site or "" if lib == "torch" else "", a.threads, more)
            for label, row in found.items():
                sides = best.setdefault(label, {})
                sides[lib] = min(sides.get(lib, row), row)
    if a.keep:
        a.keep.write_text(json.dumps(best, indent=1))
    print(f"{platform.machine()}, {os.cpu_count()} cores, {a.threads} threads, ", end="")
    print(f"best of {a.rounds}; peak {roof[0] / 1e9:.0f} GB/s, {roof[1] / 1e9:.0f} GFLOP/s\n")
    print_table(best, roof, a.markdown)


if __name__ == "__main__":
    main()
