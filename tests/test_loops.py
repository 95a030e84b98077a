"""The loops of matrix products need no more than their multiplications: what llvm-mca says of a
Cascade Lake (four operations a cycle, two of them multiplications), on whatever machine this runs.
`LOOPS_OF` names another file than the extension to look at.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter, deque

import pytest

import pytensorlib as torch

TOOLS = ("objdump", "llvm-mca", "nm")
FILE = os.environ.get("LOOPS_OF", str(torch._C.__file__))
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*([^#<]*)")
LONGEST = 180
ROUNDS = 200

# What a loop over the depth has: multiplications, numbers of A spread over a vector, and loads of
# B; and the cycles that it may take. A row of the table is a kernel and the steps of a round.
KERNELS = {
    "8x48, four steps": ("zmm", 96, 32, 12, 48.5),
    "14x32 in place or packed": ("zmm", 28, 14, 2, 16.5),
    "6x16, four steps": ("ymm", 48, 24, 8, 26.5),
}

Loop = list[tuple[str, str]]


def counted(body: Loop) -> tuple[str, int, int, int]:
    """The widest register, and how many multiplications, spreads and loads there are."""
    register = "zmm" if any("zmm" in args for _, args in body) else "ymm"
    kinds: Counter[str] = Counter()
    for op, args in body:
        if re.fullmatch(r"vfmadd\d+p[sd]", op):
            kinds["multiply"] += 1
        elif op in ("vbroadcastss", "vbroadcastsd", "vmovddup") and "PTR" in args:
            kinds["spread"] += 1
        elif re.fullmatch(r"vmov[ua]p[sd]", op) and re.match(r"[yz]mm\d+[^,]*,.*PTR", args):
            kinds["load"] += 1
    return register, kinds["multiply"], kinds["spread"], kinds["load"]


def loops() -> dict[str, list[Loop]]:
    """The loops of the file that are those of a kernel, with one way out more at most."""
    wanted = {row[:4]: name for name, row in KERNELS.items()}
    found: dict[str, list[Loop]] = {name: [] for name in KERNELS}
    last: deque[tuple[int, str, str]] = deque(maxlen=LONGEST)
    command = ["objdump", "-d", "--no-show-raw-insn", "-M", "intel", FILE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        for text in tool.stdout:
            if (line := LINE.match(text)) is None:
                continue
            at, op, args = int(line[1], 16), line[2], line[3].strip()
            last.append((at, op, args))
            if not op.startswith("j") or not re.fullmatch(r"[0-9a-f]+", args):
                continue
            first = int(args, 16)
            if not last[0][0] <= first < at:
                continue
            body = [(op, args) for place, op, args in last if place >= first]
            jumps = sum(op.startswith("j") for op, _ in body)
            if jumps <= 2 and (name := wanted.get(counted(body))) is not None:
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
def test_loops_of_products_are_bound_by_their_multiplications() -> None:
    if torch._C._machine()["level"] not in ("avx2", "avx512"):
        pytest.skip("the loops are those of x86-64")
    symbols = subprocess.run(["nm", FILE], capture_output=True, text=True, check=False).stdout
    if symbols and "LOOPS_OF" not in os.environ:
        pytest.skip("the extension is a build for debugging: only releases have no symbols")
    for name, found in loops().items():
        assert found, f"no loop of {name}"
        assert max(map(cycles, found)) <= KERNELS[name][4], name
