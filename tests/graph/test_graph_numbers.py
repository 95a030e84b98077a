"""Compiled calls that read numbers, and recorded ones, which cannot."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_step_that_returns_its_loss_as_a_number_has_the_bits_of_the_step(device: str) -> None:
    def run(compiled: bool) -> Any:
        torch.manual_seed(0)
        net = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            out = net(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            number = loss.item()
            return {"loss": number, "half": 0.5, "most": [out.max().item(), out.argmax(1)]}

        call = torch.compile(step) if compiled else step
        x, y = torch.randn(6, 4).to(device), torch.tensor([0, 1, 2, 0, 1, 2]).to(device)
        found = [call(x * i, y) for i in range(1, 9)]
        return [(f["loss"], f["half"], f["most"][0], f["most"][1].tolist()) for f in found], call

    (plain, _), (found, call) = run(False), run(True)
    assert found == plain and call.counts["runs"] > 0


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_that_are_only_returned_are_those_of_the_call(device: str) -> None:
    torch.manual_seed(0)
    w = torch.randn(8, 8, requires_grad=True, device=device)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss, norm = (w @ x).square().sum(), w.norm()
        loss.backward()
        optimizer.step()
        first = loss.item()
        return first, {"norm": norm.item(), "one": 1.5}, [x]

    before = w.detach().clone()
    xs = [torch.randn(8, device=device) for _ in range(8)]
    want = [step(x)[:2] for x in xs]
    with torch.no_grad():
        w.copy_(before)
    call = torch.compile(step)
    found = [call(x) for x in xs]
    assert call.counts["runs"] > 0
    assert [f[:2] for f in found] == want
    assert all(f[2][0] is x and type(f[0]) is float for f, x in zip(found, xs, strict=True))


def more(x: Any) -> Any:
    """Compute with the number."""
    return 2 * x.sum().item()


def decides(x: Any) -> Any:
    """Let it decide."""
    total = x.sum().item()
    return 1.0 if total > 2 else total


def tells(x: Any) -> Any:
    """Make a text of it."""
    total = x.sum().item()
    return f"{total}"


def calls(x: Any) -> Any:
    """Hand it to a function."""
    total = x.sum().item()
    return max(total, 1.0)


def returns(x: Any) -> Any:
    """Return it."""
    return x.sum().item()


def prints(x: Any) -> Any:
    """Print it with others."""
    return str(x)


@pytest.mark.parametrize("function", [more, decides, tells, calls, returns, prints])
def test_number_that_python_reads_is_that_of_the_call(function: Any) -> None:
    xs = [torch.full((2,), float(i)) for i in (0, 0, 0, 0, 1, 2, 3)]
    want = [function(x) for x in xs]
    compiled, graph = torch.compile(function), torch.graph(function)
    assert [compiled(x) for x in xs] == want
    with pytest.warns(UserWarning, match="elements of a tensor are read by the program"):
        found = [graph(x) for x in xs]
    assert found == want and not graph.programs
