"""Run seeds in forked children: one that dies or hangs costs its seed, the next child goes on."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .accepted import reason
from .compare import Finding

OURS, PEER, JUDGE = 1, 2, 3  # whose code runs at the moment


class Job(Protocol):
    """What a seed means."""

    def findings(self, seed: int, phase: Callable[[int], None]) -> tuple[str, str, list[Finding]]:
        """Run a seed and return its name, how it ended and what was found."""

    def shown(self, seed: int) -> tuple[str, str]:
        """Return the seed's name and text, without running it."""


@dataclass
class Limits:
    """How long a seed may take, how much memory it may use, how many seeds share a child."""

    seconds: float = 40
    gigabytes: float = 6
    batch: int = 1000


def run(job: Job, seeds: range, limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield a record per finding, and one with counts per batch."""
    state = mmap.mmap(-1, 16)
    at = seeds.start
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        while at < seeds.stop:
            end = min(at + limits.batch, seeds.stop)
            state[:16] = struct.pack("qq", at, 0)
            out.write_text("")
            pid = os.fork()
            if pid == 0:
                _child(job, range(at, end), out, err, state, limits)
            died = _watched(pid, state, limits.seconds)
            for line in out.read_text().splitlines():
                yield json.loads(line)
            if died is None:
                at = end
                continue
            seed, phase = struct.unpack("qq", state[:16])
            name, text = _shown(job, seed, out)
            category = {OURS: died, PEER: "PEER_DIED"}.get(phase, "HARNESS")
            detail = err.read_text(errors="replace")[-600:]
            yield _record(seed, name, Finding(category, detail), text)
            at = seed + 1


def _shown(job: Job, seed: int, out: Path) -> tuple[str, str]:
    """Return a seed's name and text, asked for in a child: it may take PyTorch to write one."""
    out.write_text(json.dumps(["?", "dies while it is written"]))
    pid = os.fork()
    if pid == 0:
        try:
            out.write_text(json.dumps(job.shown(seed)))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    name, text = json.loads(out.read_text())
    return name, text


def _record(seed: int, name: str, found: Finding, text: str) -> dict[str, Any]:
    why = reason(found.category, name, f"{found.detail} {text}")
    return {
        "seed": seed,
        "op": name,
        "category": found.category,
        "detail": found.detail,
        "call": text,
        "accepted": why,
    }


def _watched(pid: int, state: mmap.mmap, seconds: float) -> str | None:
    """Wait for a child. Return None where it ended well, else how it died."""
    last, since = state[:16], time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return "CRASH" if status else None
        if state[:16] != last:
            last, since = state[:16], time.monotonic()
        elif time.monotonic() - since > seconds:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "HANG"
        time.sleep(0.02)


def _child(job: Job, seeds: range, out: Path, err: Path, state: mmap.mmap, limits: Limits) -> None:
    """Run seeds and leave by `_exit`: nothing of the parent's may run here."""
    code = 1
    try:
        os.dup2(os.open(err, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644), 2)
        faulthandler.enable()
        warnings.simplefilter("ignore")
        size = int(limits.gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        counts: Counter[str] = Counter()
        with out.open("a", buffering=1) as file:
            for seed in seeds:
                _seed(job, seed, file, state, counts)
                if seed % 50 == 0:
                    file.write(json.dumps({"counts": counts}) + "\n")
                    counts.clear()
            file.write(json.dumps({"counts": counts}) + "\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _seed(job: Job, seed: int, file: Any, state: mmap.mmap, counts: Counter[str]) -> None:
    def phase(number: int) -> None:
        state[:16] = struct.pack("qq", seed, number)

    phase(0)
    try:
        name, end, found = job.findings(seed, phase)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust's is no Exception
        name, text = job.shown(seed)
        category = "HARNESS" if isinstance(error, Exception) else "PANIC"
        detail = "".join(traceback.format_exception(error))[-500:]
        file.write(json.dumps(_record(seed, name, Finding(category, detail), text)) + "\n")
        return
    phase(0)
    counts[f"{name}\t{end}"] += 1
    if found:
        text = job.shown(seed)[1]
        for each in found:
            file.write(json.dumps(_record(seed, name, each, text)) + "\n")
