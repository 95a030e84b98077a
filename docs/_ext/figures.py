"""Draws the figures from what was measured (bench/results), and writes the tables beside them.

Nothing here is a number of its own: every figure comes from a file of the repository.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INK = "#7d8794"  # readable on white and on black
OURS, THEIRS = "#2f81d6", "#e0803a"


def _module(path: Path) -> ModuleType:
    """Return a program of the repository as a module."""
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(path.parent))


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "pytensorlib",
            "font.family": "sans-serif",
            "font.size": 10,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def groups(results: ModuleType, found: dict[str, Any], path: Path) -> None:
    """Draw every case of a processor beside PyTorch, group by group."""
    plt = _pyplot()
    runs = results.runs_of(found)
    run = next(run for run in runs.values() if "rows" in run)
    cases: dict[str, list[float]] = defaultdict(list)
    for label, ratio in results.ratios(run).items():
        cases[label.split(":")[0]].append(ratio)
    means = results.means(run)
    order = sorted(cases, key=lambda name: -means[name])
    figure, axes = plt.subplots(figsize=(7.2, 0.32 * len(order) + 1.0), layout="constrained")
    for k, name in enumerate(order):
        axes.scatter(cases[name], [k] * len(cases[name]), s=14, color=OURS, alpha=0.45, linewidth=0)
        axes.plot([means[name]] * 2, [k - 0.35, k + 0.35], color=OURS, linewidth=2.5)
    axes.axvline(1, color=INK, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(order)), order)
    axes.set_xscale("log")
    ticks = (0.01, 0.03, 0.1, 0.3, 1)
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("our time over PyTorch's (left is faster; the bar is the geometric mean)")
    axes.tick_params(axis="y", length=0)
    _save(plt, figure, path)


def peaks(cards: list[dict[str, Any]], path: Path) -> None:
    """Draw which share of a card's own peak the large cases reach."""
    plt = _pyplot()
    cases = {
        **{f"{name} | 256 MB": k for name, k in _MOVED.items()},
        "matmul float32 | 4096": 0,
    }
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    high = 0.8 / len(cards)
    for n, card in enumerate(cards):
        moved, computed = card["peaks"]
        shares = []
        for case, times in cases.items():
            seconds = card["ours"][case]
            work = times * 2**28 / moved if times else 2 * 4096**3 / computed
            shares.append(100 * work / seconds)
        places = [k + (n - (len(cards) - 1) / 2) * high for k in range(len(cases))]
        color = (OURS, THEIRS)[n % 2]
        axes.barh(places, shares, high * 0.9, color=color, label=card["adapter"]["name"])
    axes.set_yticks(range(len(cases)), [case.replace(" | ", ", ") for case in cases])
    axes.invert_yaxis()
    axes.axvline(100, color=INK, linewidth=1, linestyle=":")
    axes.set_xlabel("percent of the card's own peak, as two small kernels measure it")
    axes.tick_params(axis="y", length=0)
    axes.legend(
        frameon=False, fontsize=9, labelcolor=INK, loc="lower left", bbox_to_anchor=(0, 1), ncols=2
    )
    _save(plt, figure, path)


_MOVED = {"copy": 2, "add": 3, "gelu": 2, "transpose": 2, "sum": 1, "softmax": 2, "layer_norm": 2}


def beside(card: dict[str, Any], path: Path) -> None:
    """Draw every case of a card beside PyTorch on the same card."""
    plt = _pyplot()
    pairs = {
        case: card["ours"][case] / theirs
        for case, theirs in card["torch"].items()
        if isinstance(theirs, float) and isinstance(card["ours"].get(case), float)
    }
    families: dict[str, list[float]] = defaultdict(list)
    for case, ratio in pairs.items():
        name = case.split(" | ")[0]
        name = "convolution, forward and backward" if "conv" in name and "back" in name else name
        name = "convolution" if name.startswith("conv ") else name
        name = "training steps" if name.endswith(" step") else name
        name = "memory: " + name if name in _MOVED else name
        name = (
            "matmul, other forms"
            if name.startswith(("matmul t", "matmul o", "matmul b")) and ("bfloat16" not in name)
            else name
        )
        families[name].append(ratio)
    order = sorted(families, key=lambda name: -sorted(families[name])[len(families[name]) // 2])
    figure, axes = plt.subplots(figsize=(7.2, 0.3 * len(order) + 1.0), layout="constrained")
    for k, name in enumerate(order):
        values = families[name]
        axes.scatter(values, [k] * len(values), s=18, color=OURS, alpha=0.6, linewidth=0)
    axes.axvline(1, color=INK, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(order)), order)
    axes.set_xscale("log")
    ticks = (0.1, 0.3, 1, 3, 10)
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("our time over that of PyTorch with CUDA (left is faster)")
    axes.tick_params(axis="y", length=0)
    _save(plt, figure, path)


def conformance() -> str:
    """Return a table of the recorded behaviour that passes."""
    counts = {
        device: json.loads((ROOT / f"tests/conformance/{file}.json").read_text())
        for device, file in (("CPU", "expected"), ("GPU", "expected_wgpu"))
    }
    kinds = ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "bool", "error"]
    lines = ["| what | device | " + " | ".join(kinds) + " |", "|---|---|" + "---:|" * len(kinds)]
    for part in ("ops", "modules", "optimizers", "files"):
        for device, found in counts.items():
            if part in found:
                cells = (f"{found[part][k]:,}" if k in found[part] else "" for k in kinds)
                lines.append(f"| {part} | {device} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _all(names: list[str]) -> str:
    return f"all {len(names)} names" if len(names) > 1 else "its one name"


def absent() -> str:
    """Return which of PyTorch's recorded names are not here: by the reason, then by the module."""
    names = _module(ROOT / "tests/public_names.py")
    from pytensorlib import _absent

    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for module in names.read(names.NAMES):
        lost, place = names.missing(module), module.removesuffix(names.INTERNAL)
        whole = names.owner(module) is None
        for name in lost[:1] if whole else lost:
            reason = (_absent.why(f"{place}.{name}") or "").partition(": ")[2]
            groups[reason][place].append(_all(lost) if whole else f"`{name}`")
    out = []
    for reason, places in sorted(groups.items(), key=lambda item: -len(item[1])):
        why, _, nearest = reason.partition("; nearest: ")
        if why:
            out.append(f"## {why[0].upper() + why[1:]}\n\nNearest: {nearest}.\n")
        else:
            out.append("## Names that only PyTorch's own programs use\n")
        kept = None
        for place, found in sorted(places.items()):
            family = ".".join(place.split(".")[:2])
            if family != kept:
                out.append(f"\n### `{family}`\n")
                kept = family
            out.append(f"- `{place}`: {', '.join(sorted(found))}")
        out.append("")
    return "\n".join(out)


def write(folder: Path) -> None:
    """Write figures and tables."""
    folder.mkdir(exist_ok=True)
    results = _module(ROOT / "bench/results.py")
    programs = _module(ROOT / "tests/programs/run.py")
    measured = results.load()
    for found in measured:
        groups(results, found, folder / f"{found['family']}.svg")
    cards = [json.loads(p.read_text()) for p in sorted((ROOT / "bench/results/gpu").glob("*.json"))]
    cards = [card for card in cards if card["peaks"]]
    peaks(cards, folder / "gpu-peaks.svg")
    for card in cards:
        if card.get("torch"):
            beside(card, folder / "gpu-beside.svg")
    texts = {
        "worst": results.brief(measured),
        "processors": processors(results, measured),
        "libraries": f"{programs.table()}\n\n`make programs` in the repository runs all "
        f"{len(programs.PROGRAMS)} programs; {len(programs.FEW)} are a part of every test run.",
        "programs": programs.measured(),
        "conformance": conformance(),
        "absent": absent(),
    }
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")


def processors(results: ModuleType, measured: list[dict[str, Any]]) -> str:
    """Return a section for each processor: what it is, and its figure."""
    out = []
    for found in measured:
        machine, runs = found["machine"], results.runs_of(found)
        first = next(run for run in runs.values() if "rows" in run)
        caches = ", ".join(f"{k} {v}" for k, v in machine.get("caches", {}).items())
        means = ", ".join(
            f"{results.means(run)['all']:.2f} with {results.threads(n)}" for n, run in runs.items()
        )
        kind = "a virtual machine" if machine.get("virtual") else "a machine"
        out.append(
            f"### {found['family']}\n\n{machine['name']}, {kind} of {machine['cores']} cores, "
            f"caches {caches}. Measured {first['date']} beside PyTorch "
            f"{first['versions']['PyTorch']}; {len(results.ratios(first))} cases. Geometric mean "
            f"of our time over PyTorch's: {means}.\n\n"
            f"![Every case on {found['family']}, by group](/_generated/{found['family']}.svg)\n"
        )
    return "\n".join(out)


if __name__ == "__main__":
    write(ROOT / "docs/_generated")
