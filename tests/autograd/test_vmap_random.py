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


FILLS = {
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "bernoulli_": lambda x: x.bernoulli_(),
    "bernoulli_(p)": lambda x: x.bernoulli_(0.3),
    "exponential_": lambda x: x.exponential_(),
    "cauchy_": lambda x: x.cauchy_(),
    "geometric_": lambda x: x.geometric_(0.5),
    "log_normal_": lambda x: x.log_normal_(),
    "random_": lambda x: x.random_(),
    "random_(to)": lambda x: x.random_(1000),
    "of a view": lambda x: (x.view(4, 4)[1:3].uniform_(), x)[1],
}
fills = pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)


@fills
@pytest.mark.parametrize("dim", [0, 1])
def test_numbers_in_the_place_of_slices_are_those_of_one_or_of_all(fill, dim):
    torch.manual_seed(0)
    one = fill(torch.ones(16))
    torch.manual_seed(0)
    same = torch.vmap(fill, in_dims=dim, randomness="same")(torch.ones(3, 16).movedim(0, dim))
    assert all(row.equal(one) for row in same)
    torch.manual_seed(0)
    x = torch.ones(3, 16).movedim(0, dim)
    different = torch.vmap(fill, in_dims=dim, out_dims=dim, randomness="different")(x)
    assert different is x  # written where it lies
    rows = x.movedim(dim, 0)
    assert not rows[0].equal(rows[1])
    torch.manual_seed(0)
    if fill is FILLS["of a view"]:
        assert rows[:, 4:12].equal(torch.ones(3, 8).uniform_())
        assert (rows != 1).sum() == 24
    else:
        assert rows.equal(fill(torch.ones(3, 16)))


@fills
def test_numbers_in_the_place_of_what_all_slices_share(fill):
    def shared(made):
        y = torch.ones(16)
        return lambda x: fill(torch.ones(16) if made else y) + 0 * x

    x = torch.ones(3, 1)
    torch.manual_seed(0)
    one = fill(torch.ones(16))
    for made in (True, False):
        torch.manual_seed(0)
        drawn = torch.vmap(shared(made), randomness="same")(x)
        assert all(row.equal(one) for row in drawn)
        with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched"):
            torch.vmap(shared(made), randomness="different")(x)
        with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
            torch.vmap(shared(made))(x)
    with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
        torch.vmap(fill)(torch.ones(3, 16))


def test_probabilities_that_are_mapped():
    def fill(x, p):
        return x.bernoulli_(p)

    x, p = torch.ones(3, 50), torch.tensor([[0.0], [0.5], [1.0]])
    drawn = torch.vmap(fill, randomness="different")(x, p)
    assert (drawn.sum(1) == 50 * p[:, 0]).tolist()[::2] == [True, True]
    assert 0 < drawn[1].sum() < 50
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        torch.vmap(fill, randomness="same")(x, p)
    with pytest.raises(RuntimeError, match="inplace bernoulli.* is not possible because"):
        torch.vmap(lambda p: fill(torch.ones(50), p), randomness="different")(p)
    torch.manual_seed(0)
    same = torch.vmap(lambda x: fill(x, torch.full((50,), 0.5)), randomness="same")(x)
    torch.manual_seed(0)
    assert same[2].equal(fill(torch.ones(50), torch.full((50,), 0.5)))


@pytest.mark.parametrize("outer", ["same", "different"])
def test_numbers_of_nested_slices_differ_where_they_are_asked_to(outer):
    def fill(inner):
        once = torch.vmap(lambda x: x.normal_(), randomness=inner)
        return torch.vmap(once, randomness=outer)(torch.ones(3, 2, 16))

    drawn = fill("different")
    assert drawn[0].equal(drawn[1]) == (outer == "same")
    assert not drawn[0, 0].equal(drawn[0, 1])
    if outer == "same":
        drawn = fill("same")
        assert all(row.equal(drawn[0, 0]) for row in drawn.flatten(0, 1))
        return
    # All inner slices share what is drawn once, and that is no tensor of outer slices.
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched"):
        fill("same")
