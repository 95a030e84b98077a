"""Fuzz: random calls against laws, random calls and random graphs beside PyTorch.

    python -m fuzz laws   --count 2000                 no PyTorch needed
    python -m fuzz calls  --count 10000 --keep c.jsonl
    python -m fuzz graphs --count 5000
    python -m fuzz compiled --count 20000              no PyTorch needed
    python -m fuzz one calls 1234                      replay one seed in this process
    python -m fuzz report c.jsonl --category VALUE

`tests` must be on the path, as `make fuzz` arranges. PyTorch is looked for in this Python, then in
the one that TORCH_PYTHON names (of the same version: its packages are put last on this one's path).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import compiled, graphs, laws, replay
from .accepted import corrupts
from .calls import Call
from .compare import Finding, differences, is_complex
from .corpus import Corpus
from .libraries import Library
from .mutate import sampled
from .runner import JUDGE, OURS, PEER, Job, Limits, run

WHERE_TORCH = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)"


class Calls:
    """Calls, alone or beside PyTorch."""

    def __init__(self, ours: Library, peer: Library | None, pattern: str, complexes: bool) -> None:
        self.ours, self.peer, self.complexes = ours, peer, complexes
        self.corpus = Corpus()
        self.names = [n for n in self.corpus.names if re.search(pattern, n) and self.has(n)]

    def has(self, name: str) -> bool:
        """Say whether there is such an operator."""
        return self.ours.function(Call(name, self.corpus.path(name), (), {})) is not None

    def call(self, seed: int) -> Call:
        return sampled(self.corpus, self.names, seed)

    def shown(self, seed: int) -> tuple[str, str]:
        call = self.call(seed)
        return call.op, str(call)

    def findings(self, seed: int, phase: Callable[[int], None]) -> tuple[str, str, list[Finding]]:
        call = self.call(seed)
        phase(OURS)
        if self.peer is None:
            found = list(laws.broken(call, self.ours))
            return call.op, "run", found
        if is_complex(call) and not self.complexes:
            return call.op, "complex", []
        ours = self.ours.run(call)
        if corrupts(call):
            return call.op, "unsafe", []
        phase(PEER)
        theirs = self.peer.run(call)
        phase(JUDGE)
        end = ours.kind if ours.kind == theirs.kind else "differs"
        return call.op, end, differences(call, ours, theirs, self.peer)


class Graphs:
    """Programs, beside PyTorch."""

    def __init__(self, ours: Any, peer: Any) -> None:
        self.ours, self.peer = ours, peer

    def shown(self, seed: int) -> tuple[str, str]:
        return "graph", "; ".join(graphs.program(seed, self.peer))

    def findings(self, seed: int, phase: Callable[[int], None]) -> tuple[str, str, list[Finding]]:
        phase(PEER)
        writer = graphs.Writer(seed, self.peer)
        lines, theirs = writer.written(), writer.trace
        theirs.finish()
        phase(OURS)
        ours = replay.replayed(lines, self.ours)
        phase(JUDGE)
        found = replay.differences(lines, ours, theirs, self.peer)
        if found:
            lines, best = replay.shrunk(lines, found[0].category, self.ours, self.peer)
            found = [Finding(best.category, f"{best.detail} | {'; '.join(lines)}")]
        return "graph", theirs.end(), found


class Compiled:
    """Programs with effects of Python, compiled and as they are."""

    def __init__(self, ours: Any) -> None:
        self.ours = ours
        ours._C._Matched.set_tiny(0)  # these tensors are small, and their work is to wait

    def shown(self, seed: int) -> tuple[str, str]:
        return "compiled", compiled.Program(seed, self.ours).source

    def findings(self, seed: int, phase: Callable[[int], None]) -> tuple[str, str, list[Finding]]:
        phase(OURS)
        return "compiled", "ok", compiled.findings(seed, self.ours)


def torch_module() -> Any:
    """Return PyTorch, or stop."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        python = os.environ.get("TORCH_PYTHON")
        done = subprocess.run(
            [python or "false", "-c", WHERE_TORCH], capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit("no PyTorch: set TORCH_PYTHON to a Python that has it") from None
        sys.path.append(done.stdout.strip())
        return importlib.import_module("torch")


def job(options: argparse.Namespace, what: str) -> Job:
    """Return the job that the command line asks for."""
    ours = importlib.import_module("pytensorlib")
    ours.set_num_threads(1)
    if what == "laws":
        ours.set_num_threads(2)
        return Calls(Library(ours), None, options.ops, complexes=True)
    if what == "compiled":
        return Compiled(ours)
    peer = torch_module()
    peer.set_num_threads(1)
    if what == "graphs":
        return Graphs(ours, peer)
    return Calls(Library(ours), Library(peer), options.ops, options.complex)


def campaign(options: argparse.Namespace) -> int:
    """Run a range of seeds, print a report and return how many findings are new."""
    seeds = range(options.start, options.start + options.count)
    limits = Limits(options.seconds, options.gigabytes, options.batch)
    records, began = [], time.monotonic()
    with Path(options.keep or os.devnull).open("a", buffering=1) as keep:
        for record in run(job(options, options.what), seeds, limits):
            records.append(record)
            keep.write(json.dumps(record) + "\n")
    print(f"seeds {seeds.start} to {seeds.stop - 1} in {time.monotonic() - began:.0f} s")
    return report(records, options)


def report(records: list[dict[str, Any]], options: argparse.Namespace) -> int:
    """Print counts, then findings by category and operator."""
    counts: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for record in records:
        for key, n in record.get("counts", {}).items():
            op, end = key.split("\t")
            counts[op] += n
            ends[end] += n
    found = [r for r in records if "category" in r]
    new = [r for r in found if not r["accepted"]]
    print(f"{counts.total()} run over {len(counts)} operators: {dict(ends)}")
    print("accepted:", dict(Counter(r["category"] for r in found if r["accepted"]).most_common()))
    print("new:", dict(Counter(r["category"] for r in new).most_common()))
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for r in new:
        text = f"{r['detail']} {r['call']}"
        if (
            re.fullmatch(options.category, r["category"])
            and re.search(options.ops, r["op"])
            and re.search(options.text, text)
        ):
            groups[r["category"], r["op"]].append(r)
    for (category, op), rows in sorted(groups.items(), key=lambda g: (g[0][0], -len(g[1]))):
        print(f"== {category} {op}: {len(rows)} of {counts[op]}")
        for r in rows[: options.show]:
            print(f"   {r['seed']}: {r['detail'][: options.width]}")
            print(f"      {r['call'][: options.width]}")
    return len(new)


def one(options: argparse.Namespace) -> int:
    """Replay a seed in this process and print what was found."""
    what, seed = options.files[0], int(options.files[1])
    chosen = job(options, what)
    print(*chosen.shown(seed), sep="\n")
    _, end, found = chosen.findings(seed, lambda _: None)
    print(end, *found, sep="\n")
    return len(found)


def main() -> int:
    assert __doc__ is not None
    p = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("what", choices=["laws", "calls", "graphs", "compiled", "one", "report"])
    p.add_argument("files", nargs="*", help="of `report`: files; of `one`: what and the seed")
    p.add_argument("--start", type=int, default=0, help="the first seed")
    p.add_argument("--count", type=int, default=1000, help="how many seeds")
    p.add_argument("--ops", default="", help="a regular expression on the operator's name")
    p.add_argument("--complex", action="store_true", help="complex numbers too")
    p.add_argument("--keep", help="append every finding to this file")
    p.add_argument("--category", default=".*", help="show findings of these categories only")
    p.add_argument("--text", default="", help="show findings whose text has this only")
    p.add_argument("--show", type=int, default=2, help="findings shown of each operator")
    p.add_argument("--width", type=int, default=300)
    p.add_argument("--batch", type=int, default=1000, help="seeds run by one child")
    p.add_argument("--seconds", type=float, default=40, help="after which a seed hangs")
    p.add_argument("--gigabytes", type=float, default=6, help="address space of a child")
    options = p.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "one":
        return min(one(options), 1)
    if options.what == "report":
        lines = [line for f in options.files for line in Path(f).read_text().splitlines()]
        return min(report([json.loads(line) for line in lines], options), 1)
    return min(campaign(options), 1)


if __name__ == "__main__":
    sys.exit(main())
