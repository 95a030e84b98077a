"""How results lie in memory, over many functions and orders: as PyTorch's."""

import json

import pytest
from stride_cases import RECORDED, functions, layouts, strides

import pytensorlib as torch

WANT = json.loads(RECORDED.read_text())
GIVEN, CALLS = layouts(torch), functions(torch)


@pytest.mark.parametrize("name", WANT)
def test_strides_of_the_result_are_those_recorded_of_pytorch(name):
    rank, call = name.split(" ", 1)
    wrong = {}
    for want, orders in WANT[name].items():
        for order in orders.split(", "):
            got = strides(CALLS[int(rank)][call](GIVEN[int(rank)][order]))
            if got != want:
                wrong[order] = (got, want)
    assert not wrong


def test_to_a_format_leaves_what_suggests_it_and_moves_what_lies_so_by_chance():
    # Recorded of PyTorch 2.13.
    last = torch.channels_last
    chance = torch.rand(512).as_strided((1, 8, 8, 8), (8, 1, 64, 8))
    assert chance.is_contiguous(memory_format=last)
    assert chance.contiguous(memory_format=last) is chance
    assert chance.to(memory_format=last).stride() == (512, 1, 64, 8)
    part = torch.rand(2, 8, 6, 6).to(memory_format=last)[:, :4]
    assert part.to(memory_format=last) is part
    one = torch.rand(2, 1, 4, 4)
    assert one.to(memory_format=last).stride() == (16, 1, 4, 1)
    assert one.contiguous(memory_format=last) is one
    empty = torch.zeros(0, 4, 6, 6)
    assert not empty.is_contiguous(memory_format=last)
    assert empty.to(memory_format=last).stride() == (144, 1, 24, 4)


def test_numbers_drawn_for_a_batch_of_one_in_an_odd_order_are_pytorchs():
    # Recorded of PyTorch 2.13: the order of the result decides which number goes where.
    x = torch.arange(512.0).sin().as_strided((1, 8, 8, 8), (8, 1, 64, 8))
    torch.manual_seed(0)
    y = torch.randn_like(torch.nn.functional.group_norm(x, 4))
    assert y.flatten()[:3].tolist() == pytest.approx([-1.12584, -1.15236, -0.250579], abs=1e-6)
    torch.manual_seed(0)
    kept = torch.nn.functional.dropout(x + 2, 0.5) != 0
    assert kept[0, :3, 0].int().tolist() == [
        [0, 0, 1, 1, 1, 1, 0, 0],
        [0, 1, 1, 0, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 0, 0, 1],
    ]


def test_dimensions_of_one_that_expand_adds_have_the_strides_of_unsqueeze():
    x = torch.arange(6.0).view(2, 3)
    # Strides that PyTorch 2.13 gives.
    assert x.expand(1, 2, 3).stride() == (6, 3, 1)
    assert x.expand(1, 1, 2, 3).stride() == (6, 6, 3, 1)
    assert x.expand(1, 4, 1, 2, 3).stride() == (0, 0, 6, 3, 1)
    assert x.t().expand(1, 3, 2).stride() == (3, 1, 3)
    assert x.broadcast_to(1, 2, 3).stride() == (6, 3, 1)
    assert x[:1].expand(1, 5, 3).stride() == (0, 0, 1)
    assert torch.ones(0, 3).expand(1, 0, 3).stride() == (0, 3, 1)
    assert torch.tensor(1.0).expand(1, 1).stride() == (0, 0)
