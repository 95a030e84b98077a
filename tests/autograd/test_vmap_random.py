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


@pytest.mark.parametrize(
    "draw",
    [
        torch.rand_like,
        torch.randn_like,
        torch.bernoulli,
        lambda x: torch.bernoulli(x, 0.5),
        lambda x: torch.randint_like(x, 1000),
    ],
)
def test_each_slice_draws_its_own_numbers_like_a_shared_tensor(draw):
    torch.manual_seed(0)
    shared = torch.full((50,), 0.5)
    both = torch.vmap(lambda x, _: draw(x), in_dims=(None, 0), randomness="different")
    drawn = both(shared, torch.ones(3))
    assert drawn.shape == (3, 50)
    assert not drawn[0].equal(drawn[1])
