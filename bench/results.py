"""What was measured, one file for each family of processors, and the tables made of these files.

`python bench/results.py` writes the tables of bench/README.md and of bench/pages/, one page for
each family, from bench/results/*.json and instructions.json; `--check` says whether they are up to
date.

A file holds one run for each number of threads: when, of which commit and versions, and of each row
the figures of every round (`unit` says of what), with our error against float64 and PyTorch's.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import instructions
from cases import CASES

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "results"
PAGES = HERE / "pages"
LIBRARIES = ("pytensorlib", "torch", "numpy")
NOT_COUNTED = "size"  # of wheel and files: no speed
GOAL = 1.05  # no case is to take more of PyTorch's time, in the best of the rounds
Row = dict[str, Any]  # figures of each library; unit; errors
Run = dict[str, Any]  # rows, and what they were measured with
LEAST = {c.id: (c.bytes, c.flops) for c in CASES}
HEAD = ("", "ours", "PyTorch", "NumPy", "ratio", "median", "roofline", "error", "PyTorch's error")


def shown(value: float, unit: str) -> str:
    """Write a value with three digits and the unit that suits it."""
    if unit == "ns":
        for larger in ("us", "ms", "s"):
            if value < 1000:
                break
            value, unit = value / 1e3, larger
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def ratio(label: str, row: Row, of: Any = min) -> float | None:
    """Return ours over PyTorch's: of the best figures, or of what else `of` takes of several."""
    if "torch" not in row or "pytensorlib" not in row or label.endswith(NOT_COUNTED):
        return None
    return of(row["pytensorlib"]) / of(row["torch"])


def ratios(run: Run) -> dict[str, float]:
    """Return every row's ratio, where it has one."""
    found = {label: ratio(label, row) for label, row in run["rows"].items()}
    return {label: r for label, r in found.items() if r is not None}


def mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def means(run: Run) -> dict[str, float]:
    """Return the mean ratio of each group of rows, and of all; where only these were kept, them."""
    if "rows" not in run:
        return run["means"]
    groups: dict[str, list[float]] = defaultdict(list)
    for label, r in ratios(run).items():
        groups[label.split(":")[0]].append(r)
        groups["all"].append(r)
    order = sorted(groups, key=lambda group: group == "all")
    return {group: mean(groups[group]) for group in order}


def worst(run: Run, count: int) -> list[tuple[str, float]]:
    """Return the rows with the largest ratios."""
    return sorted(ratios(run).items(), key=lambda item: -item[1])[:count]


def error(value: float) -> str:
    """Write an error with two digits: 1.2e-7."""
    return re.sub(r"e-0", "e-", f"{value:.1e}") if value else "0"


def cells(label: str, row: Row, run: Run) -> list[str]:
    """Return a row of the table, under HEAD."""
    ours = min(row["pytensorlib"]) if "pytensorlib" in row else None
    several = len(row.get("torch", ())) > 1 and len(row.get("pytensorlib", ())) > 1
    each = [ratio(label, row), ratio(label, row, median) if several else None]
    moved, computed = LEAST.get(label, (0, 0))
    least = max(moved / run["peaks"]["bytes"], computed / run["peaks"]["flops"]) * 1e9
    errors = row.get("errors", [])
    return [
        label,
        *(shown(min(row[lib]), row["unit"]) if lib in row else "" for lib in LIBRARIES),
        *("" if r is None else f"{r:.2f}" for r in each),
        f"{least / ours:.0%}" if ours and least else "",
        *(map(error, errors) if any(errors) else ("", "")),
    ]


def text(run: Run) -> str:
    """Return the run for a terminal: every row, the means, the five worst rows."""
    table = [HEAD, *(cells(label, row, run) for label, row in run["rows"].items())]
    widths = (52, 9, 9, 9, 6, 6, 8, 8, 15)
    cell = "  ".join(f"{{:{'<' if i == 0 else '>'}{w}}}" for i, w in enumerate(widths))
    lines = [cell.format(*each).rstrip() for each in table]
    found = ratios(run)
    if not found:
        return "\n".join([*lines, "\nPyTorch was not found: set TORCH_PYTHON to a Python with it."])
    lines += ["\nGeometric mean of ours over PyTorch:\n"]
    lines += [f"- {group}: {m:.2f}" for group, m in means(run).items()]
    lines += [f"\nWorst of {len(found)}:\n", *(f"- {label}: {r:.2f}" for label, r in worst(run, 5))]
    return "\n".join(lines)


def markdown(rows: list[Any]) -> str:
    """Return a table of figures; the first row is its head."""
    head, *rest = (re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(row)} |") for row in rows)
    return "\n".join([head, "|---|" + "---:|" * (len(rows[0]) - 1), *rest])


def threads(number: str) -> str:
    """Return `1 thread`, `2 threads`."""
    return f"{number} thread{'' if number == '1' else 's'}"


def runs_of(result: dict[str, Any]) -> dict[str, Run]:
    """Return the runs by their number of threads, most threads first."""
    return dict(sorted(result["runs"].items(), key=lambda item: -int(item[0])))


def said(number: str, run: Run) -> str:
    """Return what a run was measured with."""
    parts = [f"{threads(number)}: {run['date']}, commit {run['commit']}"]
    parts += [", ".join(f"{name} {v}" for name, v in run["versions"].items())]
    parts += [f"{run['rounds']} round{'s' * (run['rounds'] != 1)}"]
    if "peaks" in run:
        moved, computed = (run["peaks"][k] / 1e9 for k in ("bytes", "flops"))
        parts += [f"peaks {moved:.0f} GB/s, {computed:.0f} GFLOP/s"]
    return "; ".join(parts)


def section(result: dict[str, Any]) -> str:
    """Return one family's page."""
    machine, runs = result["machine"], runs_of(result)
    first = next(run for run in runs.values() if "rows" in run)
    has = ", ".join(f"{name} {size}" for name, size in machine.get("caches", {}).items())
    about = [f"{machine['name']}, {machine['cores']} cores"]
    about += ["virtual"] * machine.get("virtual", False) + [f"caches {has}"] * bool(has)
    groups = [["", *map(threads, runs)]]
    by_run = [means(run) for run in runs.values()]
    groups += [
        [group, *(f"{m[group]:.2f}" if group in m else "" for m in by_run)] for group in by_run[0]
    ]
    others = {n: run for n, run in runs.items() if run is not first and "rows" in run}
    rows = [[*HEAD, *map(threads, others)]]
    for label, row in first["rows"].items():
        more = (ratio(label, run["rows"].get(label, {})) for run in others.values())
        rows.append(cells(label, row, first) + ["" if r is None else f"{r:.2f}" for r in more])
    used = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])]
    return "\n\n".join(
        [
            f"# {result['family']}",
            "`python bench/results.py` writes this page.",
            ", ".join(about) + ".",
            "\n".join(f"- {said(n, run)}." for n, run in runs.items()),
            *([result["note"]] if "note" in result else []),
            "Geometric mean of ours over PyTorch:",
            markdown(groups),
            "Every row:",
            markdown([[row[i] for i in used] for row in rows]),
        ]
    )


def brief(results: list[dict[str, Any]]) -> str:
    """Return the means and the worst rows of each family."""
    rows = [["processor", "cases", "ours over PyTorch", "worst"]]
    for result in results:
        runs = runs_of(result)
        first = next(run for run in runs.values() if "rows" in run)
        overall = (f"{means(run)['all']:.2f} with {threads(n)}" for n, run in runs.items())
        last = "; ".join(f"{label} {r:.2f}" for label, r in worst(first, 3))
        rows.append([result["family"], str(len(ratios(first))), ", ".join(overall), last])
    return markdown(rows).replace("|---:|\n", "|---|\n", 1)


def summary(results: list[dict[str, Any]]) -> str:
    """Return the mean of each group of rows, family by family: with most threads, and with one."""
    columns = {result["family"]: runs_of(result) for result in results}
    rows = [["", *(f"{family}, {'/'.join(runs)}" for family, runs in columns.items())]]
    by_run = {family: [means(run) for run in runs.values()] for family, runs in columns.items()}
    for group in next(iter(by_run.values()))[0]:
        cells = (" / ".join(f"{m[group]:.2f}" for m in found) for found in by_run.values())
        rows.append([group, *cells])
    return markdown(rows)


def behind(results: list[dict[str, Any]]) -> str:
    """Return the rows above the goal, family by family."""
    rows = [["case", "processor", "threads", "best", "median"]]
    for result in results:
        for number, run in runs_of(result).items():
            if "rows" not in run:
                continue
            for label, r in worst(run, len(run["rows"])):
                if r > GOAL:
                    row = run["rows"][label]
                    middle = ratio(label, row, median)
                    rows.append([label, result["family"], number, f"{r:.2f}", f"{middle:.2f}"])
    return markdown(rows).replace("|---:|", "|---|", 1)


def load() -> list[dict[str, Any]]:
    """Return what was measured, family by family."""
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]


def dumps(result: dict[str, Any]) -> str:
    """Return a result as JSON with one row a line."""
    flat: list[str] = []

    def keep(row: object) -> str:
        flat.append(json.dumps(row))
        return f"@{len(flat) - 1}@"

    runs = {
        n: {
            k: {label: keep(row) for label, row in v.items()} if k == "rows" else v
            for k, v in run.items()
        }
        for n, run in result["runs"].items()
    }
    whole = json.dumps(result | {"runs": runs}, indent=1)
    return re.sub(r'"@(\d+)@"', lambda m: flat[int(m[1])], whole) + "\n"


def save(machine: dict[str, Any], number: int, run: Run) -> Path:
    """Put a run into the file of this machine's family, beside those with other threads."""
    family = machine["family"]
    path = FOLDER / f"{family}.json"
    old = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    about = {k: v for k, v in machine.items() if k != "family"}
    runs = old["runs"] if old.get("machine") == about else {}
    FOLDER.mkdir(exist_ok=True)
    path.write_text(dumps({"family": family, "machine": about, "runs": runs | {str(number): run}}))
    return path


def between(name: str, page: str, table: str) -> str:
    """Return a page with the table between its markers."""
    pattern = rf"(<!-- {name}:[^>]*-->\n).*?(<!-- end of {name} -->)"
    return re.sub(pattern, lambda m: f"{m[1]}\n{table}\n\n{m[2]}", page, flags=re.DOTALL)


def pages() -> dict[Path, tuple[str, str]]:
    """Return each page with tables: as it is, and as it should be."""
    kept = load()
    tables = {
        "summary": summary(kept),
        "worst": brief(kept),
        "behind": behind(kept),
        "instructions": markdown(instructions.table(instructions.recorded())),
    }
    found = {}
    for path in (HERE / "README.md", PAGES / "instructions.md"):
        new = old = path.read_text()
        for name, table in tables.items():
            new = between(name, new, table)
        found[path] = old, new
    for result in kept:
        path = PAGES / f"{result['family']}.md"
        found[path] = path.read_text() if path.exists() else "", section(result) + "\n"
    return found


def write() -> None:
    """Write the tables anew."""
    for path, (old, new) in pages().items():
        if old != new:
            path.write_text(new)


def main() -> int:
    """Write the tables, or return 1 where they are stale."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--check", action="store_true")
    if not ap.parse_args().check:
        write()
        return 0
    stale = [
        str(path.relative_to(HERE.parent)) for path, (old, new) in pages().items() if old != new
    ]
    print(f"stale: {', '.join(stale)}; run python bench/results.py" if stale else "up to date")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
