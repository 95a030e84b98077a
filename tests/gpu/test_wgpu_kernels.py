"""Ops that run on the GPU itself: an op without a kernel raises here."""

from __future__ import annotations

import pytest

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_of_integers_stay_on_the_gpu(dtype) -> None:
    info = torch.iinfo(dtype)
    numbers = [info.min, info.min + 1, 0, 1, 3, 77, info.max]
    by = [0, 1, 5, info.bits - 1, info.bits, info.bits + 1, -1]
    by = [n for n in by if n >= info.min]
    for n in by:
        inside = 0 <= n < info.bits
        left = [(x << n) % 2**info.bits if inside else 0 for x in numbers]
        left = [v - 2**info.bits if v > info.max else v for v in left]
        right = [x >> n if inside else (0 if x >= 0 else -1) for x in numbers]
        x = torch.tensor(numbers, dtype=dtype, device="wgpu")
        shift = torch.full_like(x, n)
        assert (x << shift).cpu().tolist() == (x << n).cpu().tolist() == left, n
        assert (x >> shift).cpu().tolist() == (x >> n).cpu().tolist() == right, n


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool], ids=str)
def test_integers_are_finite_numbers_on_the_gpu(dtype) -> None:
    x = torch.tensor([0, 1, 100], device="wgpu").to(dtype)
    for f in (torch.isnan, torch.isinf, torch.isposinf, torch.isneginf):
        assert f(x).cpu().tolist() == [False] * 3
    assert torch.isfinite(x).cpu().tolist() == [True] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_nansum_runs_on_the_gpu(dtype) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, 2.0], [nan, nan, nan], [-0.5, inf, 3.0]], dtype=dtype)
    y = x.to("wgpu")
    assert torch.nansum(y, 1).cpu().tolist() == [3.0, 0.0, inf]
    assert torch.nansum(y, 0).cpu().tolist() == [0.5, inf, 5.0]
    assert torch.nansum(y[:2]).item() == 3.0
    long = torch.ones(100_000, device="wgpu")
    long[::2] = nan
    assert torch.nansum(long).item() == 50_000.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_nanmean_runs_on_the_gpu(dtype) -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, 2.0], [nan, nan, nan], [-0.5, inf, 3.0]], dtype=dtype)
    y = x.to("wgpu")
    rows, columns = y.nanmean(1).cpu().tolist(), y.nanmean(0, keepdim=True).cpu().tolist()
    assert (rows[0], rows[2], columns) == (1.5, inf, [[0.25, inf, 2.5]])
    assert rows[1] != rows[1]
    assert y[:2].nanmean().item() == 1.5
    assert y[:0].nanmean(0).isnan().all().item()
    long = torch.full((300_000,), 3.0, device="wgpu", dtype=dtype)
    long[::2] = nan
    assert long.nanmean().item() == 3.0
    assert long.nanmean(dtype=torch.float32).item() == 3.0
    assert long.view(100, 3000).nanmean(0).float().nansum().item() == 4500.0
