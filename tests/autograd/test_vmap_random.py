"""Random numbers of slices, in parts and for tensors that have slices."""

from __future__ import annotations

import pytest

import pytensorlib as torch


@pytest.mark.parametrize("chunk_size", [1, 2, 3])
def test_same_numbers_are_the_same_in_each_part(chunk_size):
    x = torch.zeros(5, 3)
    torch.manual_seed(0)
    drawn = torch.vmap(lambda x: x + torch.rand(3), randomness="same", chunk_size=chunk_size)(x)
    torch.manual_seed(0)
    assert all(row.equal(torch.rand(3)) for row in drawn[:1])
    assert all(row.equal(drawn[0]) for row in drawn)


def test_different_numbers_differ_in_each_part():
    torch.manual_seed(0)
    drawn = torch.vmap(lambda x: x + torch.rand(3), randomness="different", chunk_size=2)(
        torch.zeros(5, 3)
    )
    assert not any(row.equal(drawn[0]) for row in drawn[1:])


def test_same_numbers_for_a_tensor_that_has_slices():
    torch.manual_seed(0)
    means = torch.zeros(4, 50)
    drawn = torch.vmap(lambda x: torch.normal(x, 1.0), randomness="same")(means)
    assert all(row.equal(drawn[0]) for row in drawn)
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        torch.vmap(torch.bernoulli, randomness="same")(means + 0.5)
