"""Named sizes of exported programs hold for all of their range; modules that share a part."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib._dynamo.exc import UserError
from pytensorlib.export import Dim, export, unflatten
from pytensorlib.nn import functional as F  # noqa: N812


class Called(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: Any) -> Any:
        return self.function(a)


# What PyTorch 2.13 says of each: whether the size may be any from 2 on.
TAKEN = {
    "same": lambda a: F.conv1d(a, torch.ones(4, 3, 5), padding=2),
    "last": lambda a: a[:, :, -1],
    "least": lambda a: a * 2 if a.shape[2] >= 1 else a,
    "variance": lambda a: a.var(2),
    "adaptive": lambda a: F.adaptive_avg_pool1d(a, 3),
    "one": lambda a: a.topk(1)[0],
}
REFUSED = {
    "above": lambda a: a * 2 if a.shape[2] > 3 else a + 1,
    "below": lambda a: a * 2 if a.shape[2] < 100 else a + 1,
    "valid": lambda a: F.conv1d(a, torch.ones(4, 3, 5)),
    "reflected": lambda a: F.pad(a, (2, 2), mode="reflect"),
    "fourth": lambda a: a[:, :, 3],
    "narrow": lambda a: a.narrow(2, 0, 4),
    "three": lambda a: a.topk(3)[0],
    "windows": lambda a: a.unfold(2, 4, 1),
    "pieces": lambda a: [t.sum() for t in a.split(3, 2)],
}


@pytest.mark.parametrize("name", TAKEN)
def test_programs_for_all_sizes(name: str) -> None:
    module = Called(TAKEN[name])
    program = export(module, (torch.randn(2, 3, 9),), dynamic_shapes={"a": {2: Dim("n")}})
    for n in (2, 5, 200):
        a = torch.randn(2, 3, n)
        torch.testing.assert_close(program.module()(a), module(a))


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_hold_for_some_sizes_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"Constraints violated \(n\)"):
        export(Called(REFUSED[name]), (torch.randn(2, 3, 9),), dynamic_shapes={"a": {2: Dim("n")}})


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("above", 4, 50), ("below", 2, 99), ("reflected", 3, 50), ("three", 3, 40), ("fourth", 4, 90)],
)
def test_a_range_with_ends_is_enough(name: str, low: int, high: int) -> None:
    module = Called(REFUSED[name])
    shapes = {"a": {2: Dim("n", min=low, max=high)}}
    program = export(module, (torch.randn(2, 3, 9),), dynamic_shapes=shapes)
    for n in (low, high):
        a = torch.randn(2, 3, n)
        torch.testing.assert_close(program.module()(a), module(a))


def test_a_size_of_the_data_that_is_checked() -> None:
    def function(a: Any) -> Any:
        n = a.max().item()
        torch._check_is_size(n)
        torch._check(n < 10)
        return torch.zeros(n) + 1

    program = export(Called(function), (torch.tensor([1, 3]),)).module()
    assert program(torch.tensor([4, 2])).tolist() == [1.0] * 4
    with pytest.raises(RuntimeError, match="u0 >= 0"):
        program(torch.tensor([-4, -2]))


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(3, 3)
        self.two = self.one
        self.all = nn.Sequential(self.one, nn.ReLU())

    def forward(self, a: Any) -> Any:
        return self.all(self.two(self.one(a)))


def test_parts_that_modules_share_are_unflattened() -> None:
    torch.manual_seed(0)
    module, a = Shared(), torch.randn(2, 3)
    again = unflatten(export(module, (a,)))
    torch.testing.assert_close(again(a), module(a))


def test_a_program_keeps_its_mode() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).eval()
    module = export(net, (torch.ones(1, 2),)).module()
    for call in (module.eval, module.train):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            call()
    assert nn.Sequential(net).train().training


def test_a_program_is_traced_again() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    traced = torch.fx.symbolic_trace(export(net, (torch.ones(1, 2),)).module())
    x = torch.randn(3, 2)
    torch.testing.assert_close(traced(x), net(x))
