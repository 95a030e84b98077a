"""Inner loops need no more than their arithmetic: what llvm-mca says of a Cascade Lake (four
operations a cycle, two of them multiplications), on whatever machine this runs. `LOOPS_OF` names
another file than the extension to look at.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter, deque
from itertools import islice

import pytest

import pytensorlib as torch

TOOLS = ("objdump", "llvm-mca", "nm")
FILE = os.environ.get("LOOPS_OF", str(torch._C.__file__))
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*([^#<]*)")
JUMP = re.compile(r" *([0-9a-f]+):\tj\w+ +([0-9a-f]+)")
LONGEST = 180
ROUNDS = 200

# What instructions of a loop are.
KINDS = {
    "multiply": r"vfn?m(add|sub)\d+p[sd] ",
    # Of a number over a vector, as an instruction of its own.
    "spread": r"(vbroadcasts[sd]|vmovddup) .*PTR",
    "load": r"vmov[ua]p[sd] +[yz]mm\d+[^,]*,.*PTR",
    "store": r"vmov[ua]p[sd] +[^,]*PTR",
    "power": r"vscalefps ",
    "least": r"vminps ",
    "compare": r"vcmp\w*ps ",
    "permute": r"vperm[it]2ps ",
    "edges": r"vfixupimmps ",
}

# Loops by their register and how often they have what; and the cycles that a round may take. Those
# of products are 0.5 to 2.5 above their multiplications. exp and gelu have what was measured of a
# prototype and of the processor's ports: 34.1 for four vectors, and 11.1 for one, whose five
# permutations share a port with half of the arithmetic.
KERNELS = {
    "8x48, four steps": ("zmm", {"multiply": 96, "spread": 32, "load": 12}, 48.5),
    "14x32 in place or packed": ("zmm", {"multiply": 28, "spread": 14, "load": 2}, 16.5),
    "6x16, four steps": ("ymm", {"multiply": 48, "spread": 24, "load": 8}, 26.5),
    "exp of four vectors": ("zmm", {"multiply": 36, "power": 4, "compare": 4, "least": 4}, 34.5),
    "weights of four vectors": ("zmm", {"multiply": 36, "power": 4, "least": 0}, 34.5),
    "gelu of a vector": ("zmm", {"multiply": 6, "permute": 5, "compare": 0, "store": 1}, 11.5),
    "log of four vectors": ("zmm", {"multiply": 44, "edges": 4}, 51.0),
    "6x64 of attention": ("zmm", {"multiply": 24, "spread": 6, "load": 4}, 13.0),
}

Loop = list[tuple[str, str]]


def counted(body: Loop) -> tuple[str, Counter[str]]:
    """The widest register, and how many instructions there are of each kind."""
    register = "zmm" if any("zmm" in args for _, args in body) else "ymm"
    texts = [f"{op} {args}" for op, args in body]
    kinds = {name: sum(bool(re.match(kind, t)) for t in texts) for name, kind in KINDS.items()}
    return register, Counter(kinds)


def loops() -> dict[str, list[Loop]]:
    """The loops of the file that are those of a kernel, with one way out more at most."""
    found: dict[str, list[Loop]] = {name: [] for name in KERNELS}
    last: deque[str] = deque(maxlen=LONGEST)
    command = ["objdump", "-d", "--no-show-raw-insn", "-M", "intel", FILE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        for text in tool.stdout:
            last.append(text)
            # Most of the lines are only kept: there are millions.
            if (jump := JUMP.match(text)) is None:
                continue
            first, at = int(jump[2], 16), int(jump[1], 16)
            if not first < at < first + 16 * LONGEST:
                continue
            head = f"{first:x}:"
            start = next((i for i, line in enumerate(last) if line.lstrip().startswith(head)), None)
            if start is None:
                continue
            lines = list(islice(last, start, None))
            # Few loops are worth a closer look.
            if sum("\tvf" in line for line in lines) < 6:
                continue
            parts = [m for m in map(LINE.match, lines) if m is not None]
            body = [(m[2], m[3].strip()) for m in parts]
            if sum(op.startswith("j") for op, _ in body) > 2:
                continue
            register, kinds = counted(body)
            for name, (wide, wanted, _) in KERNELS.items():
                if register == wide and all(kinds[k] == n for k, n in wanted.items()):
                    found[name].append(body)
    return found


def cycles(body: Loop) -> float:
    """What a round takes: by llvm-mca, or by four operations a cycle where that is more."""
    code = [f"{op} {'.L0' if op.startswith('j') else args}" for op, args in body]
    told = subprocess.run(
        ["llvm-mca", "-mcpu=cascadelake", f"-iterations={ROUNDS}"],
        input="\n".join([".intel_syntax noprefix", ".L0:", *code, ""]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    total = re.search(r"Total Cycles:\s+(\d+)", told)
    assert total is not None, told
    return max(int(total[1]) / ROUNDS, (len(body) - 1) / 4)


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason="needs objdump, nm and llvm-mca (Debian: llvm)"
)
def test_inner_loops_are_bound_by_their_arithmetic() -> None:
    if torch._C._machine()["level"] not in ("avx2", "avx512"):
        pytest.skip("the loops are those of x86-64")
    symbols = subprocess.run(["nm", FILE], capture_output=True, text=True, check=False).stdout
    if symbols and "LOOPS_OF" not in os.environ:
        pytest.skip("the extension is a build for debugging: only releases have no symbols")
    for name, found in loops().items():
        assert found, f"no loop of {name}"
        assert max(map(cycles, found)) <= KERNELS[name][2], name
