"""`embedding_bag`: types of indices and offsets, and where its maxima are."""

from __future__ import annotations

import pytest

import pytensorlib as torch

W = torch.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "bool", "int32", "int64"])
def test_embedding_bag_takes_narrow_indices_beside_wide_offsets(dtype: str) -> None:
    at = torch.tensor([1, 0], dtype=getattr(torch, dtype))
    for of in (torch.int64, torch.int32):
        y = torch.embedding_bag(W, at, torch.tensor([0], dtype=of))[0]
        assert y.tolist() == [[2, 4]]


@pytest.mark.parametrize(("mode", "want"), [(0, [0, 0]), (1, [1, 2]), (2, [[1, 1], [3, 3]])])
def test_embedding_bag_says_where_its_maxima_are(mode: int, want: list) -> None:
    last = torch.embedding_bag(W, torch.tensor([1, 2, 3]), torch.tensor([0, 1]), False, mode)[3]
    assert last.tolist() == want and last.dtype == torch.int64
