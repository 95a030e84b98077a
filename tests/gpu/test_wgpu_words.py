"""Invocations of several words, copies by squares, rows that are kept: what large tensors get.

Here all are large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import _C, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

NEVER = (1 << 63) - 1
TYPES = ["float32", "float16", "uint8", "int64", "bool"]


def wide(from_words: int, f: Callable[[], Any]) -> Any:
    before = _C._wgpu_set_wide(0, from_words)
    try:
        return f()
    finally:
        _C._wgpu_set_wide(0, before)


def bits(t: Any) -> bytes:
    t = t.detach().cpu().contiguous()
    return bytes(t.view(torch.uint8).numpy().tobytes())


def both(f: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    """Return what a call gives without and with what is for large tensors."""
    return wide(NEVER, f), wide(1, f)


def some(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    x = torch.tensor(np.random.default_rng(seed).normal(0, 3, shape), dtype=torch.float32)
    if dtype.startswith(("u", "bool")):
        x = x.abs()
    return x.to(getattr(torch, dtype)).to("wgpu")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [5, 16387])
def test_pointwise_kernels_of_several_words_change_no_bit(n: int, dtype: str) -> None:
    y = some(n, dtype=dtype, seed=1)
    row = some(1, n, dtype=dtype).expand(3, n)
    for offset in (0, 1):
        x = some(n + offset, dtype=dtype)[offset:]

        def results(x: Any = x) -> list[Any]:
            chain = (x.float() * y.float() + 1).relu()
            rows = (row.float() * y.float()).half()
            made = [x.clone(), x.half(), x.float(), x == y, chain.bfloat16(), rows, row + 0.5]
            made += [x.clone().fill_(1), x.bool(), F.gelu(x.float()), torch.where(x == y, x, y)]
            if dtype != "bool":
                made += [x + y, x.clone().mul_(2), x.double() + y if n < 10 else x]
                part = torch.cat([x, x])
                part[:n].add_(y)
                made.append(part)
            return [bits(t) for t in made]

        plain, words = both(results)
        assert plain == words


def test_a_single_kernel_of_several_words_is_one_dispatch() -> None:
    x = some(5000, dtype="float16")

    def dispatches() -> int:
        before = wgpu.memory_stats()["dispatches"]
        (x * 2 + 1).cpu()
        return wgpu.memory_stats()["dispatches"] - before

    plain, words = both(lambda: [dispatches()])
    assert plain == words


@pytest.mark.parametrize("fuse", [False, True])
def test_profiles_see_kernels_of_several_words(fuse: bool) -> None:
    before = _C._wgpu_set_fuse(0, fuse)
    try:
        x = some(5000)
        plain, words = both(lambda: [bits(F.gelu(x)), bits(x + 1)])
        assert plain == words
    finally:
        _C._wgpu_set_fuse(0, before)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "complex64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((130, 70), (1, 0)),
        ((128, 96), (1, 0)),
        ((33, 17), (1, 0)),
        ((3, 40, 52), (2, 0, 1)),
        ((4, 6, 36, 20), (0, 2, 3, 1)),
        ((2, 3, 2, 3, 20, 24), (5, 1, 0, 3, 2, 4)),
    ],
)
def test_transposed_copies_move_all_elements(
    shape: tuple[int, ...], order: tuple[int, ...], dtype: str
) -> None:
    # Whole, and parts that begin between words.
    whole = some(*shape, dtype=dtype)
    part = whole[tuple(slice(n % 3 if n > 9 else 0, None) for n in shape)]
    for x in (whole, part):
        turned = x.permute(*order)
        want = bits(turned.cpu())
        wider = torch.zeros([n + 4 for n in turned.shape], dtype=turned.dtype, device="wgpu")

        def results(turned: Any = turned, wider: Any = wider) -> list[Any]:
            y = wider.clone()
            y[tuple(slice(2, 2 + n) for n in turned.shape)] = turned
            return [bits(turned.contiguous()), bits(y)]

        plain, squares = both(results)
        assert plain == squares
        assert squares[0] == want


ROWS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, w: torch.softmax(x, -1),
    "log_softmax": lambda x, w: torch.log_softmax(x, -1),
    "softmax of columns": lambda x, w: torch.softmax(x, 0),
    "layer_norm": lambda x, w: F.layer_norm(x, w.shape, w, w),
    "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w),
    "group_norm": lambda x, w: F.group_norm(x[:, None], 1),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, w, w, training=True),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("length", [9, 64, 1030])
def test_rows_that_are_kept_match_the_cpu(length: int, name: str, dtype: str) -> None:
    x, w = some(5, length, dtype=dtype).cpu(), some(length, dtype=dtype, seed=1).cpu()
    g = some(5, length, dtype=dtype, seed=2).cpu()
    if name.startswith(("soft", "log")):
        x[2, 3] = float("-inf")

    def run(device: str) -> list[Any]:
        a, b = (t.to(device).detach().clone().requires_grad_() for t in (x, w))
        y = ROWS[name](a, b)
        y.backward(g.to(device).reshape(y.shape))
        made = [y, a.grad] + ([b.grad] if b.grad is not None else [])
        return [t.detach().cpu().float().numpy() for t in made]

    want = run("cpu")
    tolerance = {"float32": 2e-5, "float16": 4e-3}[dtype]
    for got in both(lambda: run("wgpu")):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_of_which_kernels_take_the_end_change_no_bit(dtype: str) -> None:
    x = some(7, 130, dtype=dtype)
    for f in (lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, (130,))):

        def results(f: Callable[..., Any] = f) -> list[Any]:
            y = f(x)
            z = torch.relu(y) * 2
            return [bits(z), bits(y)]

        for words in (NEVER, 1):
            before = _C._wgpu_set_fuse(0, False)
            apart = wide(words, results)
            _C._wgpu_set_fuse(0, before)
            assert wide(words, results) == apart


@pytest.mark.parametrize("length", [9, 64, 1030])
def test_cross_entropies_of_halves_match_the_cpu(length: int) -> None:
    x, at = some(5, length, dtype="float16").cpu(), torch.tensor([0, 7, -100, 3, 8])

    def slope(device: str) -> Any:
        a = x.to(device).detach().clone().requires_grad_()
        F.cross_entropy(a, at.to(device), label_smoothing=0.1).backward()
        return a.grad.cpu().float().numpy()

    np.testing.assert_allclose(slope("wgpu"), slope("cpu"), 4e-3, 1e-4)
