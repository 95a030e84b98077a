"""Every choice that depends on the processor can be forced, and no path differs in what it gives.

Each test runs a script in a process of its own: the processor is looked at once.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from typing import Any

import child
import pytest

import pytensorlib as torch

LEVELS = ["portable"]
if torch._C._machine()["level"] != "portable" and platform.machine() in ("x86_64", "AMD64"):
    LEVELS += ["avx2", "amx-model"]
if torch._C._machine()["level"] == "neon":
    LEVELS += ["neon"]
# Everything is written past the caches, lines in parts or, with AVX-512, whole.
STREAMED = [{"PYTENSORLIB_CPU": level, "PYTENSORLIB_VENDOR": "intel"} for level in LEVELS[:2]]
STREAMED += [{"PYTENSORLIB_VENDOR": vendor} for vendor in ("amd", "intel")]


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    ours = {k: None for k in os.environ if k.startswith("PYTENSORLIB_")}
    return child.python("-c", "import json, pytensorlib as torch\n" + code, **(ours | env))


def result(code: str, **env: str) -> Any:
    done = run(code, **env)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout)


def machine(**env: str) -> dict[str, Any]:
    found: dict[str, Any] = result("print(json.dumps(torch._C._machine()))", **env)
    return found


def test_machine_as_it_is_has_caches_in_order() -> None:
    found = machine()
    assert 4 << 10 <= found["l1"] <= found["l2"] <= found["last"]
    assert 16 << 20 <= found["large"] <= 64 << 20


@pytest.mark.parametrize("level", LEVELS)
def test_machine_level_can_be_forced(level: str) -> None:
    found = machine(PYTENSORLIB_CPU=level)
    if level == "amx-model":
        assert found["amx"] == "model" and found["level"] != "portable"
    else:
        assert (found["level"], found["amx"]) == (level, "never")


def test_machine_caches_maker_and_threads_can_be_forced() -> None:
    env = {"PYTENSORLIB_L1_KB": "48", "PYTENSORLIB_L2_KB": "128", "PYTENSORLIB_LAST_KB": "3"}
    found = machine(**env)
    assert [found[k] for k in ("l1", "l2", "last", "large")] == [48 << 10, 128 << 10, 3072, 3072]
    for vendor in ("amd", "intel"):
        assert machine(PYTENSORLIB_VENDOR=vendor)["is_amd"] == (vendor == "amd")
    threads = "print(torch.get_num_threads())"
    assert result(threads, PYTENSORLIB_NUM_THREADS="3", OMP_NUM_THREADS="2") == 3
    assert result(threads, PYTENSORLIB_NUM_THREADS="", OMP_NUM_THREADS="2,1") == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CPU", "avx3"),
        ("CPU", "AVX2"),
        ("VENDOR", "arm"),
        ("L1_KB", "0"),
        ("L2_KB", "big"),
        ("LAST_KB", "-1"),
        ("NUM_THREADS", "0"),
        ("NUM_THREADS", "two"),
        ("CACHE_MB", "1GB"),
    ],
)
def test_machine_refuses_what_it_does_not_know(name: str, value: str) -> None:
    done = run("", **{f"PYTENSORLIB_{name}": value})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ValueError: environment variable PYTENSORLIB_{name} must be ")
    assert last.endswith(f"got '{value}'")


@pytest.mark.parametrize("level", ["neon", "avx2", "avx512"])
def test_machine_refuses_a_level_that_it_lacks(level: str) -> None:
    best = torch._C._machine()["level"]
    if level in {best, "avx2" if best == "avx512" else best}:
        pytest.skip(f"the machine has {level}")
    done = run("", PYTENSORLIB_CPU=level)
    assert done.returncode == 1
    assert f"asks for {level}, but this machine has {best}" in done.stderr


DRAWS = """
from zlib import crc32
torch.manual_seed(3)
F = torch.nn.functional
draws = [f(torch.empty(5003, dtype=d)) for d in (torch.float32, torch.float64, torch.bfloat16)
         for f in (torch.rand_like, torch.randn_like, lambda x: F.dropout(x.fill_(1.0), 0.3))]
draws += [torch.randint(0, 1000, (5003,)), torch.randperm(5003)]
draws += [torch.empty(5003).bernoulli_(0.3), torch.empty(5003).exponential_()]
print(json.dumps([crc32(x.contiguous().view(torch.uint8).numpy().tobytes()) for x in draws]))
"""


def test_random_numbers_are_the_same_bits_on_every_level() -> None:
    native = result(DRAWS)
    for level in LEVELS:
        assert result(DRAWS, PYTENSORLIB_CPU=level) == native, level
    for env in STREAMED:
        assert result(DRAWS, PYTENSORLIB_LAST_KB="0", **env) == native, env


PRODUCTS = """
from zlib import crc32
torch.manual_seed(3)
bits = []
for dtype in (torch.float32, torch.float64, torch.float16):
    for m, k, n in ((110, 90, 120), (20, 1100, 70)):
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        for x in (a, a.t().contiguous().t()):
            for y in (b, b.t().contiguous().t()):
                z = torch.addmm(torch.ones(n, dtype=dtype), x, y)
                assert torch.allclose(z.double(), x.double() @ y.double() + 1, 1e-2, 1e-1)
                bits.append(crc32(z.view(torch.uint8).numpy().tobytes()))
print(json.dumps(bits))
"""


def test_products_are_the_same_bits_whatever_the_caches_and_threads() -> None:
    native = result(PRODUCTS)
    for kb, threads in (("32", "1"), ("32", "3"), ("64", "1")):
        env = {"PYTENSORLIB_L1_KB": kb, "PYTENSORLIB_NUM_THREADS": threads}
        assert result(PRODUCTS, **env, PYTENSORLIB_L2_KB="64") == native, env


STORES = """
import itertools, numpy as np
names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
types = [getattr(torch, n) for n in names]
bad = []
def same(what, got, want):
    if not np.array_equal(got.double().numpy(), want):
        bad.append(str(what))
for n in (1, 63, 700, 5000):
    base = np.arange(n) * 7 % 120
    for a, b in itertools.product(types, types):
        x = torch.from_numpy(base).to(a)
        now = x.double().numpy()
        want = now != 0 if b == torch.bool else now
        same((n, a, b, "to"), x.to(b), want)
        same((n, a, b, "copy_"), torch.zeros(n, dtype=b).copy_(x), want)
        wide = torch.from_numpy(np.repeat(base, 3)).to(a)[::3]
        same((n, a, b, "strided"), wide.to(b), want)
        out = torch.zeros(2 * n, dtype=b)[::2]
        same((n, a, b, "into strides"), out.copy_(x), want)
    for a, b in itertools.product(types, types[5:]):
        if torch.can_cast((torch.ones(1, dtype=a) + 1).dtype, b) and a != torch.bool:
            x = torch.from_numpy(base).to(a)
            out = torch.add(x, 1, out=torch.empty(n, dtype=b))
            same((n, a, b, "out"), out, ((x + 1).double().numpy()))
    x = torch.linspace(-1, 1, n)
    wide = torch.sin(x, out=torch.empty(n, dtype=torch.float64))
    same((n, "sin"), wide, x.sin().double().numpy())
# Enough for the loops that threads share.
for a in types[5:]:
    x, y = (torch.from_numpy(np.arange(40_000) % m).to(a) for m in (7, 5))
    want = (np.arange(40_000) % 7 + np.arange(40_000) % 5).astype(float)
    same((a, "add"), x + y, want)
    same((a, "add of strides"), torch.add(x[::2], y[::2]), want[::2])
    same((a, "add to strides"), torch.add(x, y, out=torch.empty(80_000, dtype=a)[::2]), want)
    same((a, "compare"), x > y, np.arange(40_000) % 7 > np.arange(40_000) % 5)
    rows = (np.arange(40_000) % 7).reshape(200, 200) + np.arange(200) % 5
    same((a, "rows"), x.view(200, 200) + y[:200], rows.astype(float))
    same((a, "fill"), torch.empty(40_000, dtype=a).fill_(3), np.full(40_000, 3.0))
for shape in ((40, 70), (7, 33, 65)):
    base = np.arange(np.prod(shape)).reshape(shape) * 7 % 120
    for a, b in itertools.product(types, types):
        x = torch.from_numpy(base).to(a)
        want = x.double().numpy().swapaxes(-1, 0)
        want = want != 0 if b == torch.bool else want
        same((shape, a, b, "transposed"), x.transpose(-1, 0).to(b), want)
        y = torch.empty(shape[::-1], dtype=b).copy_(x.transpose(-1, 0)) if x.ndim == 2 else None
        if y is not None:
            same((shape, a, b, "transposed copy_"), y, want)
        same((shape, a, b, "full"), torch.full(shape, 1, dtype=b), np.ones(shape))
# Joined by pieces that are copied in turn, each in lines of its own.
for dim, sizes in itertools.product((0, 1), ((1031, 2000), (4096, 4096, 5))):
    parts = [np.arange(40.0 * n).reshape((n, 40) if dim == 0 else (40, n)) for n in sizes]
    for a in (torch.float32, torch.float64):
        got = torch.cat([torch.from_numpy(p).to(a) for p in parts], dim)
        same((sizes, dim, a, "cat"), got, np.concatenate(parts, dim))
print(json.dumps(bad))
"""


@pytest.mark.parametrize("env", STREAMED)
def test_stores_past_the_caches_write_what_others_do(env: dict[str, str]) -> None:
    assert result(STORES, PYTENSORLIB_LAST_KB="0", **env) == []


def test_wide_result_larger_than_the_caches_is_whole() -> None:
    # The last part of a block of float32 numbers, as int64, once lay behind its buffer.
    code = """
x = torch.arange(3_000_000, dtype=torch.float32)
y = x.long()
print(json.dumps([bool((y == torch.arange(3_000_000)).all()), y.sum().item()]))
"""
    env = {"PYTENSORLIB_LAST_KB": "16384", "PYTENSORLIB_VENDOR": "intel"}
    assert result(code, **env) == [True, 3_000_000 * 2_999_999 // 2]


def test_cache_of_nothing_gives_each_block_its_size_and_keeps_none() -> None:
    code = """
    before = torch.cpu.memory_stats()["reserved_bytes"]
    held = [torch.ones(n, dtype=torch.uint8) for n in (1, 100, 70_001, 3_000_001)]
    stats = torch.cpu.memory_stats()
    print(stats["reserved_bytes"] - before, stats["cached_bytes"], [t.sum().item() for t in held])
    del held
    print(torch.cpu.memory_stats()["reserved_bytes"] - before, torch.zeros(9).sum().item())
    """
    done = run("\n".join(line.strip() for line in code.splitlines()), PYTENSORLIB_CACHE_MB="0")
    assert done.returncode == 0, done.stderr
    sizes = [1, 100, 70_001, 3_000_001]
    assert done.stdout.splitlines() == [f"{sum(sizes)} 0 {sizes}", "0 0.0"]
