"""Selecting from long lines: what a stable sort would put there, without the memory of one."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from test_order import order

import pytensorlib as torch


def long_line(dtype: str, values: str) -> np.ndarray:
    """Return a line too long to be selected from as a whole: without ties, with many, or all."""
    rng = np.random.default_rng(5)
    n = 5001
    if values == "one":
        return np.full(n, 3).astype(dtype)
    if values == "few":
        line = rng.integers(0, 100, n)
    else:
        line = rng.permutation(n) - n // 2
    line = line.astype(dtype)
    if dtype.startswith("float") and values != "distinct":
        line[::700] = np.nan
        line[1::900] = -np.inf
        line[2::800] = -0.0
    return line


@pytest.mark.parametrize("values", ["distinct", "few", "one"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8"])
def test_long_lines_give_what_a_stable_sort_puts_there(dtype, values):
    line = long_line(dtype, values)
    n = len(line)
    up, down = (order(line, descending=d) for d in (False, True))
    x = torch.tensor(line)
    # The same line between others, along a dimension that is not the last.
    wide = torch.stack([x.flip(0), x, x], 1)
    for k in (300, 1000, n):
        for largest, places in ((True, down), (False, up)):
            v, i = x.topk(k, largest=largest)
            np.testing.assert_array_equal(i.numpy(), places[:k])
            np.testing.assert_array_equal(v.numpy(), line[places[:k]])
            v, i = wide.topk(k, 0, largest)
            np.testing.assert_array_equal(i[:, 1].numpy(), places[:k])
            np.testing.assert_array_equal(v[:, 2].numpy(), line[places[:k]])
    sorted_ = line[up]
    for k in (1, 17, n // 2, n):
        v, i = x.kthvalue(k)
        np.testing.assert_array_equal(v.numpy(), sorted_[k - 1])
        np.testing.assert_array_equal(line[i], sorted_[k - 1])
        assert wide.kthvalue(k, 0)[1][1] == i
    missing = int(np.isnan(line).sum()) if np.issubdtype(line.dtype, np.floating) else 0
    for median, k in (
        (torch.median, n - missing if missing else (n - 1) // 2),
        (torch.nanmedian, (n - missing - 1) // 2),
    ):
        v, i = median(x, 0)
        assert i == up[k]
        np.testing.assert_array_equal(v.numpy(), line[up[k]])
        np.testing.assert_array_equal(median(x).numpy(), line[up[k]])
    found, counts = np.unique(line, return_counts=True)
    v, i = x.mode()
    most = found[counts.argmax()]
    np.testing.assert_array_equal(v.numpy(), most)
    same = np.isnan(line) if np.isnan(np.float64(most)) else line == most
    assert i == np.flatnonzero(same)[-1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and forks as in Linux")
def test_selecting_from_a_long_line_takes_little_memory():
    n = 1 << 21
    x = torch.randperm(n).float()
    calls = [
        (lambda: x.topk(1000)[0][-1], n - 1000, 5),
        (lambda: x.topk(100, largest=False)[0][-1], 99, 5),
        (lambda: x.kthvalue(12345)[0], 12344, 5),
        (lambda: x.median(), (n - 1) // 2, 5),
        (lambda: x.nanmedian(0)[0], (n - 1) // 2, 5),
        (lambda: (x % 1000).mode()[0], 0, 24),
    ]
    import resource

    torch._C._empty_cache()
    for call, want, more in calls:
        child = os.fork()
        if not child:
            with open("/proc/self/statm") as file:
                now = int(file.read().split()[0]) * resource.getpagesize()
            torch.set_num_threads(1)
            resource.setrlimit(resource.RLIMIT_AS, (now + (more << 20),) * 2)
            try:
                os._exit(0 if call().item() == want else 2)
            except BaseException as e:
                os.write(2, f"{type(e).__name__}: {e}\n".encode())
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, want
