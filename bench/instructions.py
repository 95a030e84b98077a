"""How many instructions kernels execute, and what they move past a cache: counted, not timed.

`python bench/instructions.py` counts the cases below under valgrind's callgrind, one process for
each instruction set, prints them and says where they differ from what was recorded by more than a
margin, as `tests/house/test_instructions.py` does; `--record` writes instructions.json and its
table.

Caches and the number of threads are forced, and valgrind's own processor has no AVX-512, so that
every x86-64 counts the same, however busy. `bytes` are those of the lines that a simulated second
cache of 512 KB fetches: what the blocking of a kernel is about.
"""

import argparse
import ctypes
import gc
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "instructions.json"
LEVELS = ("avx2", "portable")
FORCED = {
    "PYTENSORLIB_VENDOR": "amd",
    "PYTENSORLIB_L1_KB": "32",
    "PYTENSORLIB_L2_KB": "512",
    "PYTENSORLIB_LAST_KB": "16384",
    "PYTENSORLIB_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
VALGRIND = (
    "valgrind -q --tool=callgrind --instr-atstart=no --cache-sim=yes --dump-line=no "
    "--separate-threads=yes --I1=32768,8,64 --D1=32768,8,64 --LL=524288,8,64"
).split()
# The share by which a count may differ, and that many bytes beside it.
MARGIN, BYTES_MARGIN, BYTES = 0.05, 0.10, 0.1
PYTHON = ".".join(platform.python_version_tuple()[:2])
PYTHONS = {"call", "import", "dispatch"}  # what depends on Python's version
Counts = dict[str, list[float]]  # of each case: instructions, and bytes but of those two
CALLS = 400  # of a small call, in a loop whose own instructions are taken off
DISPATCHES = 14  # on the GPU, behind another one, whose driver gets none before they are counted


# What statements see: few numbers are made, which takes long under valgrind, and many views.
SETUP = """
a, b, r = t.ones(1), t.ones(1), t.ones(1, 4)
g = t.ones(1, requires_grad=True)
linear = t.nn.Linear(4, 4)
x, y = t.randn(512, 512), t.randn(512, 512)
index = t.arange(512).flip(0)
rows, line = x.view(256, 1024), x.view(-1)[:65536]
weight, bias = t.ones(1024), t.zeros(1024)
left, right = x[:256, :256].contiguous(), y[:256, :256].contiguous()
left64, right64 = left.double(), right.double()
left16, right16 = left.bfloat16(), right.bfloat16()
q, k, v = x.view(4, 2, 4, 128, 64)[:3]
image = x.view(-1)[: 2 * 64 * 28 * 28].view(2, 64, 28, 28)
kernel = y.view(-1)[: 64 * 64 * 9].view(64, 64, 3, 3)
"""
# Where there is an adapter, software or not.
SETUP_GPU = f"""
on_gpu, times = t.full((8, 8), 0.1, device="wgpu"), range({DISPATCHES})
program = t.graph(lambda x: [x := x @ x for _ in range({DISPATCHES})][-1], fullgraph=True)
for _ in range(5): program(on_gpu)
"""
RECORD = "kept = {}; t._C._wgpu_set_fuse(0, True)"  # also what waits for kernels that follow
OPEN = "kept = None; t.wgpu.synchronize(); first = on_gpu.amax(0); t._C._wgpu_set_fuse(0, True)"


@dataclass(frozen=True)
class Case:
    """A statement, and how much it does."""

    label: str
    run: str
    count: int  # of `per`
    per: str = "element"


N = 512 * 512
DO = "multiply-add"
NOTHING = Case("nothing", "None", 1, "call")
ATTENTION = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
CASES = [
    Case("import pytensorlib", "", 1, "import"),  # from compiled files
    Case("a + b", "a + b", 1, "call"),
    Case("a * b with a graph node", "g * b", 1, "call"),
    Case("nn.Linear(4, 4)(x)", "linear(r)", 1, "call"),
    Case("add", "x + y", N),
    Case("add a transposed matrix", "x + y.T", N),
    Case("copy of a transposed matrix", "x.T.contiguous()", N),
    Case("copy of every second element", "x[::2, ::2].contiguous()", N // 4),
    Case("cat, dim 1", "t.cat([x, y], 1)", 2 * N),
    Case("exp", "x.exp()", N),
    Case("gelu", "F.gelu(x)", N),
    Case("float32 to bfloat16", "x.bfloat16()", N),
    Case("sum", "x.sum()", N),
    Case("sum, dim 0", "x.sum(0)", N),
    Case("sum of rows of 100", "x[:, :100].sum(1)", 512 * 100),
    Case("amax of rows of 100", "x[:, :100].amax(1)", 512 * 100),
    Case("argmax, dim 1", "x.argmax(1)", N),
    Case("softmax", "F.softmax(rows, 1)", N),
    Case("layer_norm", "F.layer_norm(rows, (1024,), weight, bias)", N),
    Case("sort", "line.sort()", 65536),
    Case("x[i]", "x[index]", N),
    Case("matmul 256, float32", "left @ right", 256**3, DO),
    Case("matmul 256, float64", "left64 @ right64", 256**3, DO),
    Case("matmul 256, bfloat16", "left16 @ right16", 256**3, DO),
    Case("matmul 8x512 by 512x512", "x[:8] @ y", 8 * N, DO),
    Case("attention, causal", ATTENTION, 8 * 128 * 128 * 64, DO),
    Case("convolution 3x3", "F.conv2d(image, kernel, padding=1)", 2 * 784 * 64 * 64 * 9, DO),
    Case("max_pool2d 2", "F.max_pool2d(image, 2)", 2 * 64 * 784),
    Case("wgpu: x @ x", "[on_gpu @ on_gpu for _ in times]", DISPATCHES, "dispatch"),
    Case("wgpu: softmax", "[on_gpu.softmax(0) for _ in times]", DISPATCHES, "dispatch"),
    Case("wgpu: sum, dim 0", "[on_gpu.sum(0) for _ in times]", DISPATCHES, "dispatch"),
    Case("wgpu: x @ x of a graph", "program(on_gpu)", DISPATCHES, "dispatch"),
]

# --- under valgrind -------------------------------------------------------------------------------

# Valgrind acts on this sequence, which does nothing elsewhere: rotations by 128 bits in all and an
# exchange of a register with itself. The request's address is in rax, the answer in rdx.
REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
CALLGRIND = ord("C") << 24 | ord("T") << 16
ZERO, DUMP, START, STOP = (CALLGRIND + i for i in (1, 3, 4, 5))


def child() -> None:
    """Run every case twice: so that memory and Python are warm, and to be counted."""
    prot = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=prot)
    page.write(REQUEST)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)

    # Made before, for what makes them would be counted.
    said = {
        case.label: ctypes.create_string_buffer(case.label.encode()) for case in (NOTHING, *CASES)
    }
    words = (ctypes.c_uint64 * 6)()

    def request(code: int, label: str = "") -> None:
        words[:2] = code, ctypes.addressof(said[label]) if label else 0
        call(ctypes.byref(words))

    gc.disable()  # it would come now and then
    request(START)
    import pytensorlib as t

    request(DUMP, CASES[0].label)
    request(STOP)
    from pytensorlib.nn import functional

    t.manual_seed(0)
    names: dict[str, Any] = {"t": t, "F": functional}

    def run(cases: list[Case], form: str, before: str = "", warm: int = 1) -> None:
        ready = []
        for case in cases:
            text = (form if case.per in PYTHONS else "{}").format(case.run)
            ready.append((case.label, compile(text, case.label, "exec")))
            for _ in range(warm):
                exec(before, names)
                exec(ready[-1][1], names)
        request(START)
        for label, code in ready:
            exec(before, names)
            request(ZERO)
            exec(code, names)
            request(DUMP, label)
        request(STOP)

    exec(SETUP, names)
    on_cpu = [case for case in CASES[1:] if case.per != "dispatch"]
    run([NOTHING, *on_cpu], f"for _ in range({CALLS}): {{}}")
    if t.wgpu.is_available():
        exec(SETUP_GPU, names)
        run([case for case in CASES if case.per == "dispatch"], RECORD, OPEN, warm=5)


# --- around it ------------------------------------------------------------------------------------


def missing() -> str | None:
    """Return why nothing can be counted here, or None."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "the counts are of x86-64 and Linux"
    return None if shutil.which("valgrind") else "valgrind is not installed"


def parsed(dump: str) -> tuple[str, dict[str, int]] | None:
    """Return the case and the counts of one of callgrind's files."""
    label, events, costs = (
        re.search(rf"^{key}: +(.*)$", dump, re.MULTILINE)
        for key in ("desc: Trigger: Client Request", "events", "(?:summary|totals)")
    )
    if not (label and events and costs):
        return None  # what ran after the last case
    return label[1], dict(zip(events[1].split(), map(int, costs[1].split())))


def count(level: str) -> Counts:
    """Return the instructions and the bytes of each case, for one of what it counts."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTENSORLIB_")}
        env |= FORCED | {"PYTENSORLIB_CPU": level, "PYTHONPATH": str(HERE.parent)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        warm = [sys.executable, "-c", "import pytensorlib"]  # writes the compiled files
        subprocess.run(warm, cwd=HERE.parent, env=env, check=True)
        command = [*VALGRIND, f"--callgrind-out-file={folder}/out", sys.executable, __file__]
        done = subprocess.run([*command, "--child"], env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        # Of the first thread, which has no others to work for it but a driver's.
        dumps = Path(folder).glob("out*-01")
        totals = dict(filter(None, (parsed(path.read_text()) for path in dumps)))
    found = {}
    for case in CASES:
        if case.per == "dispatch" and case.label not in totals:
            continue  # there is no adapter
        cost = totals[case.label]
        if case.per == "import":
            figures = [cost["Ir"]]
        elif case.per == "dispatch":
            figures = [cost["Ir"] / case.count]
        elif case.per == "call":
            figures = [(cost["Ir"] - totals["nothing"]["Ir"]) / CALLS]
        else:
            figures = [cost["Ir"] / case.count, 64 * (cost["DLmr"] + cost["DLmw"]) / case.count]
        found[case.label] = [round(float(f"{value:.4g}"), 4) for value in figures]
    return found


def recorded() -> dict[str, Any]:
    """Return what was recorded."""
    return json.loads(RECORDED.read_text())


def record(counts: dict[str, Counts]) -> None:
    """Write instructions.json, a case a line."""
    parts = [f' "python": "{PYTHON}"']
    for level, found in counts.items():
        rows = (f"  {json.dumps(label)}: {json.dumps(pair)}" for label, pair in found.items())
        parts.append(f' "{level}": {{\n' + ",\n".join(rows) + "\n }")
    RECORDED.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def differences(found: Counts, expected: Counts, python: str) -> list[str]:
    """Return what differs by more than the margin, in words."""
    wrong = []
    for case in CASES:
        if case.label not in expected:
            wrong.append(f"{case.label}: not recorded")
        elif (case.per in PYTHONS and python != PYTHON) or case.label not in found:
            continue
        else:
            margins = (MARGIN, 0.0), (BYTES_MARGIN, BYTES)
            rows = zip(("instructions", "bytes"), margins, found[case.label], expected[case.label])
            for what, (share, beside), got, wanted in rows:
                if abs(got - wanted) > share * wanted + beside:
                    change = f" ({got / wanted - 1:+.0%})" if wanted else ""
                    text = f"{got:g} {what} for each {case.per}, {wanted:g} recorded{change}"
                    wrong.append(f"{case.label}: {text}")
    return wrong


def shown(value: float | None) -> str:
    """Write a count with three digits at least."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(counts: dict[str, Any]) -> list[list[str]]:
    """Return the counts as rows of text under a head."""
    head = ["", "one", *(f"{level}{more}" for level in LEVELS for more in ("", ", bytes"))]
    rows = [head]
    for case in CASES:
        pairs = ((*counts[level].get(case.label, ()), None, None)[:2] for level in LEVELS)
        rows.append([case.label, case.per, *(shown(value) for pair in pairs for value in pair)])
    return rows


def main() -> int:
    """Print or record the counts; return 1 where they differ from those recorded."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--record", action="store_true", help="write instructions.json")
    ap.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.child:
        child()
        return 0
    if why := missing():
        print(why)
        return 0
    counts = {level: count(level) for level in LEVELS}
    for row in table(counts):
        print(f"{row[0]:<30}{row[1]:<14}" + "".join(f"{cell:>17}" for cell in row[2:]))
    if a.record:
        import results  # which reads the counts

        record(counts)
        results.write()
        return 0
    old = recorded()
    wrong = [f"{n}: {w}" for n in LEVELS for w in differences(counts[n], old[n], old["python"])]
    print("\n".join(["", *wrong]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
