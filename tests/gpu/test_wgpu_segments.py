"""Tensors larger than a GPU's largest buffer are several buffers: the same as on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from child import run
from test_wgpu_cuts import IMAGES, LINES, PLACES, PRODUCTS, PROGRAM, RECURRENT, ROWS, STEPS, TELL
from test_wgpu_runtime import HOSTED, every_operator

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

# Buffers end within rows: 300 x 100 float32 are two, the first of 72,960 bytes.
SMALL = {
    "PYTENSORLIB_WGPU_MAX_BUFFER": "73000",
    "PYTENSORLIB_WGPU_MAX_BINDING": "65536",
    "PYTENSORLIB_WGPU_FALLBACK": "error",
}
MOVED = """
    import numpy as np
    import pytensorlib as torch

    rng = np.random.default_rng(0)
    for dtype in ("float32", "int64", "uint8", "float16", "bool", "complex64"):
        a = rng.integers(0, 2 if dtype == "bool" else 100, (3, 1000, 91)).astype(dtype)
        x = torch.from_numpy(a).to("wgpu")
        # Whole, turned round, with gaps, and over a seam at an odd byte.
        parts = [np.s_[:], np.s_[1:2, 3:997], np.s_[:, 1::3, 5:77], np.s_[0, 787:815, 7]]
        same = [np.array_equal(x[p].cpu().numpy(), a[p]) for p in parts]
        turned = x.transpose(0, 2).contiguous().cpu().numpy()
        same.append(np.array_equal(turned, a.transpose(2, 1, 0)))
        for p in parts:
            new = rng.integers(0, 2, a[p].shape).astype(dtype)
            x[p] = torch.from_numpy(new)
            a[p] = new
            same.append(np.array_equal(x.cpu().numpy(), a))
        y = torch.zeros_like(x)
        same.append(not y.cpu().numpy().any())
        y.copy_(x)
        same.append(np.array_equal(y.clone().cpu().numpy(), a))
        x.fill_(1)
        same.append(bool((x.cpu().numpy() == 1).all()))
        print(dtype, all(same), len(same))
"""


def test_elements_over_several_buffers_are_copied_both_ways() -> None:
    names = ("float32", "int64", "uint8", "float16", "bool", "complex64")
    assert run(MOVED, **SMALL) == "".join(f"{name} True 12\n" for name in names)


@pytest.mark.parametrize(
    ("calls", "count"),
    [(PRODUCTS, 15), (ROWS, 34), (PLACES, 21), (IMAGES, 12), (RECURRENT, 16), (LINES, 13)],
)
def test_calls_on_several_buffers_equal_the_cpu(calls: str, count: int) -> None:
    assert run(PROGRAM + calls + TELL, **SMALL) == f"{count}\n"


POINTWISE = """
    for op in ("mul", "atan2", "maximum"):
        check(op, getattr(torch, op), (300, 100), (300, 100))
    check("broadcast", lambda a, b: a + b, (300, 100), (100,))
    check("column", lambda a, b: a * b, (300, 100), (300, 1))
    check("turned", lambda a, b: a.t() * b, (300, 200), (200, 300))
    check("shifted", lambda a: a[1:] * a[:-1], (400, 100))
    check("where", lambda a, b: torch.where(a > b, a, b), (300, 100), (300, 100))
    check("gelu", torch.nn.functional.gelu, (3, 200, 100))
    check("cast", lambda a: (a * 100).to(torch.int64), (300, 100))
    check("integers", lambda a: a * a + 1, below(100, 300, 100))
    check("double", lambda a: a.double() * 2, (300, 100))
    for dims in (0, 1, (0, 1), (0, 2), (1, 2), ()):
        for op in ("sum", "mean", "amax", "var"):
            check(f"{op} {dims}", lambda a: getattr(a, op)(dims), (9, 100, 91), tolerance=1e-4)
    check("argmax", lambda a: a.argmax(1), (300, 100))
    check("many sums", lambda a: a.sum(0), (2, 300, 100))
    check("any", lambda a: (a > 3).any(0), (300, 100))
    check("in place", lambda a, b: a.clone().add_(b).mul_(2), (300, 100), (300, 100))
    check("one line", lambda a, b: a @ b, (1, 30_000), (30_000, 4), tolerance=1e-3)
"""


def test_pointwise_ops_and_sums_of_several_buffers_equal_the_cpu() -> None:
    assert run(PROGRAM + POINTWISE + TELL, **SMALL) == "41\n"


def test_optimizers_of_parameters_of_several_buffers_equal_the_cpu() -> None:
    assert run(STEPS, **SMALL) == "True\n" * 3


GRAPHS = """
    import pytensorlib as torch
    step = torch.graph(lambda x: (x.sigmoid() * 3, x.sum(0)))
    kept = []
    for seed in range(9):
        torch.manual_seed(seed)
        x = torch.randn(300, 100)
        y, total = step(x.to("wgpu"))
        kept.append((y, x))  # so that results and, with what was in the pool, inputs lie elsewhere
        print((total.cpu().double() - x.double().sum(0)).abs().max().item() < 1e-3)
    print(all((y.cpu() - x.sigmoid() * 3).abs().max().item() < 1e-5 for y, x in kept))
    print(step.programs[0].kept > 0)
"""


def test_a_recorded_function_of_several_buffers_keeps_its_dispatches() -> None:
    assert run(GRAPHS, **SMALL) == "True\n" * 11


REUSED = """
    import pytensorlib as torch
    for _ in range(3):
        x = torch.full((300, 100), 2.0, device="wgpu")
        y = x * x
        del x
        print((y.cpu() == 4).all().item())
    stats = torch.wgpu.memory_stats()
    print(stats["reserved"] <= 4 * 300 * 100 * 4, stats["allocated"] >= 300 * 100 * 4)
    del y
    torch.wgpu.empty_cache()
    print(torch.wgpu.memory_stats()["allocated"])
"""


def test_several_buffers_go_back_to_the_pool_with_their_tensor() -> None:
    assert run(REUSED, **SMALL) == "True\n" * 3 + "True True\n0\n"


@pytest.mark.slow
def test_every_operator_with_buffers_of_four_kilobytes_equals_the_cpu(tmp_path: Path) -> None:
    # The least that can be forced: no more runs on the CPU than without it.
    found = every_operator(tmp_path / "report.xml", PYTENSORLIB_WGPU_MAX_BUFFER="4096")
    assert found == HOSTED
