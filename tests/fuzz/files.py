"""Checkpoints that mean harm: mutated ones by the million, and bombs.

    python -m fuzz.files mutate --count 100000 --seed 0 --jobs 2
    python -m fuzz.files bombs [NAME ...]
    python -m fuzz.files one 1234              load what one seed makes, in this process

`tests` must be on the path. Each file is loaded in a forked child that may take two seconds of the
processor, and memory of ten times the file's size and a constant. It loads, or raises one of the
errors that `load` promises; all else is a finding.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import mmap
import os
import pickle
import pickletools
import random
import resource
import signal
import struct
import sys
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytensorlib as torch
from pytensorlib.serialization import CorruptCheckpointError

from .bombs import BOMBS

RECORDED = Path(__file__).resolve().parent.parent / "conformance" / "files"
SECONDS, RATIO, CONSTANT = 2.0, 10, 160 << 20
# What is no damage: a RuntimeError of its own.
SAID = (
    "cannot be mapped",
    "mmap can only",
    "CUDA",
    "don't know how to restore",
    "maximum supported version",
    "TorchScript",
    "tar format",
)
BATCH = 2000


# ----------------------------------------------------------------------------- one file


def touched(obj: Any) -> None:
    """Read the first tensors of what was loaded, as far as that is quick."""
    left = [obj]
    for _ in range(60):
        if not left:
            return
        obj = left.pop()
        if isinstance(obj, torch.Tensor):
            if obj.numel() < 1000:
                obj.tolist()
        elif isinstance(obj, dict):
            left.extend(list(obj.values())[:50])
        elif isinstance(obj, (list, tuple)):
            left.extend(list(obj)[:50])


def loaded(data: bytes, way: int) -> Any:
    """Load a file from memory, from a descriptor, or mapped."""
    if way == 0:
        return torch.load(io.BytesIO(data))
    with os.fdopen(os.memfd_create("x"), "r+b", buffering=0) as f:
        f.write(data)
        return torch.load(f"/proc/self/fd/{f.fileno()}", mmap=way == 2)


def outcome(data: bytes, way: int = 0) -> str:
    """Load a file; return "loaded" or the class of a promised error, or raise what is neither."""
    try:
        touched(loaded(data, way))
    except (pickle.UnpicklingError, CorruptCheckpointError) as e:
        if len(str(e)) > 2000:
            raise AssertionError(f"a text of {len(str(e))} characters") from None
        return type(e).__name__
    except RuntimeError as e:
        if not any(text in str(e) for text in SAID):
            raise
        return "RuntimeError"
    return "loaded"


def virtual() -> int:
    """Return this process's address space in bytes."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


def limit(size: int) -> None:
    """Hold this process to what the loading of one file of that size may take."""
    most = virtual() + RATIO * size + CONSTANT
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)


def forked(work: Callable[[Callable[[str], None]], None]) -> tuple[str, int]:
    """Run `work` in a child; return what it wrote and how it ended."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            work(lambda text: (os.write(write, text.encode(errors="replace")), None)[1])
            code = 0
        except BaseException:  # whatever it is, it is reported
            os.write(write, traceback.format_exc()[-1500:].encode(errors="replace"))
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        text = f.read().decode(errors="replace")
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def bombed(name: str) -> tuple[str, bool]:
    """Load one bomb in a child; return what came of it, and whether that is allowed."""
    data = BOMBS[name]()

    def work(say: Callable[[str], None]) -> None:
        limit(len(data))
        say(outcome(data))

    text, code = forked(work)
    return (text if code >= 0 else f"killed by {signal.Signals(-code).name}"), code == 0


# ----------------------------------------------------------------------------- mutations


class Seed:
    """One good file: its records, or none if it is a legacy file, and where its opcodes lie."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self.records: dict[str, bytes] = {}
        if data.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(data)) as z:
                self.records = {i.filename: z.read(i) for i in z.infolist()}
            self.key = next(n for n in self.records if n.endswith("/data.pkl"))
            self.pickle = self.records[self.key]
        else:
            self.pickle = data
        self.ops = operations(self.pickle)


def operations(data: bytes) -> list[bytes]:
    """Cut one pickle, or as many as follow each other, into opcodes with their arguments."""
    ops, at = [], 0
    while data[at : at + 1] == b"\x80":
        starts = []
        for _, _, where in pickletools.genops(data[at:]):
            starts.append(at + where)
        end = starts[-1] + 1
        ops += [data[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)]
        at = end
    return [*ops, data[at:]] if at < len(data) else ops


def corpus() -> list[Seed]:
    """Return small files of ours and what was recorded of PyTorch's."""
    x = torch.arange(6.0).reshape(2, 3)
    things: dict[str, Any] = {
        "plain": {"a": [1, 2.5, "s", b"\x00", None, True, 1 << 70], ("k", 1): {3}, 2: 1j},
        "tensors": {"v": x.t(), "b": x, "e": torch.zeros(0, 3), "i": torch.tensor([1, -2])},
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "state": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict(),
        "kinds": [x.shape, torch.int8, torch.device("cpu"), collections.Counter("a"), x.storage()],
    }  # fmt: skip
    seeds = []
    for name, obj in things.items():
        for new in (True, False):
            buffer = io.BytesIO()
            torch.save(obj, buffer, _use_new_zipfile_serialization=new)
            seeds.append(Seed(f"{name}.{'zip' if new else 'legacy'}", buffer.getvalue()))
    recorded = sorted(RECORDED.glob("*.pt")) if RECORDED.is_dir() else []
    small = [p for p in recorded if p.stat().st_size < 8000 and p.stem != "whole_module"]
    return seeds + [Seed(p.stem, p.read_bytes()) for p in small]


NUMBERS = [0, 1, 2, 3, 127, 128, 255, 256, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
           1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]  # fmt: skip
CODES = [
    bytes([c]) for c in b".(Nt)]}abceQRsu\x81\x85\x86\x87\x88\x89\x8f\x93\x94\x95012DdFgIilopPST"
]


def grown(rng: random.Random) -> bytes:
    """Return an opcode of its own making."""
    n = rng.choice(NUMBERS)
    pick = rng.randrange(9)
    if pick == 0:
        return b"K" + bytes([n & 255])
    if pick == 1:
        return b"J" + struct.pack("<I", n & 0xFFFFFFFF)
    if pick == 2:
        raw = n.to_bytes(9, "little")[: rng.randrange(1, 10)]
        return b"\x8a" + bytes([len(raw)]) + raw
    if pick == 3:
        return rng.choice([b"h", b"q"]) + bytes([rng.randrange(30)])
    if pick == 4:
        return rng.choice([b"j", b"r"]) + struct.pack("<I", n & 0xFFFFFFFF)
    if pick == 5:
        word = rng.choice([b"0", b"cpu", b"cuda", b"storage", b"latin1", b"\xff", b"", b"wgpu:0"])
        return b"X" + struct.pack("<I", len(word)) + word
    if pick == 6:
        name = rng.choice(NAMES)
        return b"c" + name + b"\n"
    if pick == 7:
        return b"G" + struct.pack(">Q", n & (2**64 - 1))
    return rng.choice(CODES)


NAMES = [n.encode() for n in (
    "torch._utils\n_rebuild_tensor_v2", "torch._utils\n_rebuild_tensor_v3", "torch\nFloatStorage",
    "torch._utils\n_rebuild_tensor", "torch._utils\n_rebuild_parameter", "torch\nDoubleStorage",
    "torch._utils\n_rebuild_parameter_with_state", "torch._tensor\n_rebuild_from_type_v2",
    "torch\nSize", "torch\ndevice", "torch\nfloat32", "torch\nTensor",
    "torch.nn.parameter\nParameter", "torch.storage\nUntypedStorage",
    "collections\nOrderedDict", "collections\nCounter",
    "__builtin__\nset", "__builtin__\nbytearray", "__builtin__\ncomplex", "_codecs\nencode",
    "os\nsystem", "builtins\neval",
)]  # fmt: skip


def bent(rng: random.Random, ops: list[bytes], others: list[bytes]) -> list[bytes]:
    """Return opcodes of which a few were dropped, doubled, swapped, replaced or added."""
    ops = list(ops)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        i = rng.randrange(len(ops))
        what = rng.randrange(7)
        if what == 0:
            del ops[i : i + rng.choice((1, 1, 1, 2, 5))]
        elif what == 1:
            ops[i:i] = [ops[i]] * rng.choice((1, 1, 2, 50))
        elif what == 2:
            j = rng.randrange(len(ops))
            ops[i], ops[j] = ops[j], ops[i]
        elif what == 3:
            ops[i] = grown(rng)
        elif what == 4:
            ops.insert(i, grown(rng))
        elif what == 5:
            j = rng.randrange(len(others))
            ops[i:i] = others[j : j + rng.randrange(1, 12)]
        else:
            ops[i] = ops[i][:1] + scrambled(rng, ops[i][1:])
        ops = ops or [b"N"]
    return ops


def scrambled(rng: random.Random, data: bytes) -> bytes:
    """Return bytes in which a few were flipped, set, dropped, doubled, or hold another number."""
    if not data:
        return data
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        i, what = rng.randrange(len(out)), rng.randrange(6)
        if what == 0:
            out[i] ^= 1 << rng.randrange(8)
        elif what == 1:
            out[i] = rng.randrange(256)
        elif what == 2:
            n = rng.choice((1, 2, 4, 8))
            value = (rng.choice(NUMBERS) - rng.choice((0, 0, 1))) % (1 << 8 * n)
            out[i : i + n] = value.to_bytes(n, "little")
        elif what == 3:
            del out[i : i + rng.choice((1, 2, 8, 64))]
        elif what == 4:
            out[i:i] = out[i : i + rng.choice((1, 4, 32))]
        else:
            j, n = rng.randrange(len(out)), rng.randrange(1, 40)
            out[i : i + n] = out[j : j + n]
        if not out:
            break
    return bytes(out)


def packed(rng: random.Random, records: dict[str, bytes], squeeze: float, lie: float) -> bytes:
    """Return a zip archive, some of it compressed, some of its numbers false."""
    body, directory, n = bytearray(), bytearray(), 0
    for name, data in records.items():
        raw, crc, size, method = name.encode(), zlib.crc32(data), len(data), 0
        if rng.random() < squeeze:
            packer = zlib.compressobj(rng.choice((1, 9)), zlib.DEFLATED, -15)
            data, method = packer.compress(data) + packer.flush(), 8
            if rng.random() < lie:
                data = scrambled(rng, data)
        numbers = [crc, len(data), size, len(body)]
        if rng.random() < lie:
            numbers[rng.randrange(4)] = rng.choice(NUMBERS) & 0xFFFFFFFF
        crc, short, long, at = numbers
        head = (len(raw), 0)
        directory += struct.pack(
            "<4s6H3I5H2I", b"PK\x01\x02", 0, 0, 0x800, method, 0, 0, crc, short, long, *head,
            0, 0, 0, 0, at,
        ) + raw  # fmt: skip
        body += struct.pack(
            "<4s5H3I2H", b"PK\x03\x04", 0, 0x800, method, 0, 0, crc, short, long, *head
        )
        body += raw + data
        n += 1
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, n, n, len(directory), len(body), 0)
    return bytes(body + directory + end)


def mutated(rng: random.Random, seeds: list[Seed]) -> bytes:
    """Return a damaged file."""
    seed, other = rng.choice(seeds), rng.choice(seeds)
    what = rng.randrange(10)
    if what < 2:
        return scrambled(rng, seed.data)
    if what == 2:
        i, j = rng.randrange(len(seed.data)), rng.randrange(len(other.data))
        return seed.data[:i] + other.data[j:]
    if not seed.records:
        return b"".join(bent(rng, seed.ops, other.ops))
    records = dict(seed.records)
    if what == 3:
        name = rng.choice(list(records))
        records[name] = scrambled(rng, records[name])
    elif what == 4:
        name, stem = rng.choice(list(records)), next(iter(records)).partition("/")[0]
        content = records.pop(name)
        places = ["x", f"{name}x", f"{stem}/data/{rng.randrange(4)}", f"{stem}/constants.pkl",
                  f"{stem}/../{name}", name.partition("/")[2]]  # fmt: skip
        records[rng.choice(places)] = content
    else:
        records[seed.key] = b"".join(bent(rng, seed.ops, other.ops))
    return packed(rng, records, rng.choice((0, 0, 1)), rng.choice((0, 0, 0.3)))


# ----------------------------------------------------------------------------- many files


def swept(first: int, count: int, seeds: list[Seed]) -> Iterator[tuple[int, str]]:
    """Load what `count` seeds make, many in one child; yield findings as (seed, text)."""
    where = mmap.mmap(-1, 8)
    at, end = first, first + count
    while at < end:
        stop = min(at + BATCH, end)

        def work(say: Callable[[str], None], at: int = at, stop: int = stop) -> None:
            limit(0)
            tally: collections.Counter[str] = collections.Counter()
            for i in range(at, stop):
                where[:] = struct.pack("<q", i)
                data = mutated(random.Random(i), seeds)
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                try:
                    tally[outcome(data, (i % 16 < 2) + (i % 16 == 1))] += 1
                except BaseException as e:
                    line = traceback.extract_tb(e.__traceback__)[-1]
                    text = f"{type(e).__name__}: {e}"[:300] + f" ({line.filename}:{line.lineno})"
                    say(json.dumps(["found", i, text]) + "\n")
            say(json.dumps(["tally", stop, tally]) + "\n")

        text, code = forked(work)
        for line in text.splitlines():
            kind, n, what = json.loads(line) if line.startswith("[") else ("found", at, line)
            if kind == "found":
                yield n, what
            else:
                for key, times in what.items():
                    TALLY[key] += times
        if code == 0:
            at = stop
        else:
            last = struct.unpack("<q", where[:])[0]
            how = signal.Signals(-code).name if code < 0 else f"exit {code}"
            yield last, f"the process ended: {how}"
            at = last + 1


TALLY: collections.Counter[str] = collections.Counter()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("mutate", "bombs", "one"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    bad = 0
    if args.what == "bombs":
        for name in args.names or BOMBS:
            start = time.perf_counter()
            text, good = bombed(name)
            bad += not good
            print(f"{'' if good else 'FOUND '}{name}: {text} ({time.perf_counter() - start:.2f} s)")
        print(f"{len(args.names or BOMBS)} bombs, {bad} findings")
        return bad != 0
    seeds = corpus()
    if args.what == "one":
        data = mutated(random.Random(int(args.names[0])), seeds)
        Path("one.pt").write_bytes(data)
        print(len(data), "bytes in one.pt:", outcome(data))
        return 0
    start, share = time.perf_counter(), -(-args.count // args.jobs)
    children = []
    for job in range(1, args.jobs):
        pid = os.fork()
        if pid == 0:
            args.seed, args.jobs, children = args.seed + job * share, 1, []
            break
        children.append(pid)
    for seed, text in swept(args.seed, share, seeds):
        bad += 1
        print(f"FOUND seed {seed}: {text}", flush=True)
    seconds = time.perf_counter() - start
    print(
        f"seeds {args.seed} to {args.seed + share - 1}: {dict(TALLY)}, {bad} findings, "
        f"{share / seconds:.0f} files a second",
        flush=True,
    )
    for pid in children:
        bad += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
