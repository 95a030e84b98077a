"""The table of functions by which a DataLoader joins samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.utils.data import DataLoader, default_collate
from pytensorlib.utils.data._utils.collate import collate, default_collate_fn_map


class Point:
    def __init__(self, x: float) -> None:
        self.x = x


def join(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return Point(sum(p.x for p in batch))


def test_table_of_collate_takes_types_of_its_own() -> None:
    table = {**default_collate_fn_map, Point: join}
    point, numbers = collate([(Point(1), 2), (Point(3), 4)], collate_fn_map=table)
    assert (point.x, numbers.tolist()) == (4, [2, 4])
    arrays = collate([np.ones(2, np.int8)] * 2, collate_fn_map=table)
    assert arrays.dtype == torch.int8
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        collate([1, 2])


def test_loader_knows_what_is_added_to_the_table() -> None:
    with pytest.raises(TypeError, match=r"found <class '.*Point'>"):
        default_collate([Point(1)])
    default_collate_fn_map[Point] = join
    try:
        (batch,) = DataLoader([Point(1), Point(5)], batch_size=2)
    finally:
        del default_collate_fn_map[Point]
    assert batch.x == 6
