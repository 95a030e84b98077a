"""Reductions that every second call reads from the end: the same bits, whatever the direction."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

# Inputs of a megabyte and more: whole ones, rows, columns, pairs, planes, half types, long vectors.
READS: dict[str, tuple[tuple[int, ...], str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": ((1_100_003,), "float32", lambda x: x.sum(), lambda a: a.sum()),
    "sum of float64": ((600_001,), "float64", lambda x: x.sum(), lambda a: a.sum()),
    "sum of int64": ((600_001,), "int64", lambda x: x.sum(), lambda a: a.sum()),
    "sum of halves": ((900_001,), "float16", lambda x: x.float().sum(), lambda a: a.sum()),
    "sum of pairs": ((700_001, 2), "float32", lambda x: x.sum(0), lambda a: a.sum(0)),
    "sum of complex numbers": (
        (700_001, 2),
        "float32",
        lambda x: torch.view_as_real(torch.view_as_complex(x).sum()),
        lambda a: a.sum(0),
    ),
    "rows": ((1500, 700), "float32", lambda x: x.sum(1), lambda a: a.sum(1)),
    "short rows": ((40_000, 33), "float32", lambda x: x.sum(1), lambda a: a.sum(1)),
    "columns": ((1500, 700), "float32", lambda x: x.sum(0), lambda a: a.sum(0)),
    "a plane of each": ((64, 9, 1031), "float32", lambda x: x.sum((0, 2)), lambda a: a.sum((0, 2))),
    "largest": ((1500, 700), "float32", lambda x: x.amax(1), lambda a: a.max(1)),
    "variance": ((700, 1500), "float32", lambda x: x.var(0), lambda a: a.var(0, ddof=1)),
    "product of vectors": (
        (2, 1_100_003),
        "float32",
        lambda x: torch.dot(x[0], x[1]),
        lambda a: a[0] @ a[1],
    ),
    "product of float64": (
        (2, 300_001),
        "float64",
        lambda x: torch.dot(x[0], x[1]),
        lambda a: a[0] @ a[1],
    ),
}


@pytest.mark.parametrize("name", READS)
def test_every_second_call_reads_from_the_end_with_the_same_bits(name: str) -> None:
    shape, dtype, read, plain = READS[name]
    a = (np.random.default_rng(3).standard_normal(shape) * 30).astype(dtype)
    x = torch.from_numpy(a)
    before = torch.get_num_threads()
    try:
        got = []
        for threads in (1, 1, 1, 2, 2, 3, 3):
            torch.set_num_threads(threads)
            got.append(read(x).numpy())
    finally:
        torch.set_num_threads(before)
    for other in got[1:]:
        np.testing.assert_array_equal(got[0], other)
    exact = plain(a.astype(np.float64) if a.dtype.kind == "f" else a)
    size = plain(np.abs(a.astype(np.float64)))
    # 64 additions in a row and a tree's are 2e-6 of the terms where half of their errors cancel; a
    # block that is lost or comes twice is 3e-3 of them.
    bound = {"float64": 1e-14, "int64": 0}.get(dtype, 2e-6)
    assert np.all(np.abs(got[0] - exact) <= bound * size)
