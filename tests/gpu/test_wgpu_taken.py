"""Softmax, norms and products compute what nobody else reads of their operand as they read it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from child import run
from test_wgpu_fuse import bits, fused, launched, x
from test_wgpu_words import NEVER, wide

import pytensorlib as torch
from pytensorlib import wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

TYPES = [torch.float32, torch.float16, torch.bfloat16]
# Kernels of an operand of 6 x 34, and of weights.
HEADS: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda t, w: torch.softmax(t, -1),
    "columns": lambda t, w: torch.softmax(t, 0),
    "log_softmax": lambda t, w: F.log_softmax(t, -1),
    "wider": lambda t, w: torch.softmax(t, -1, dtype=torch.float32),
    "layer_norm": lambda t, w: F.layer_norm(t, (34,)),
    "affine": lambda t, w: F.layer_norm(t, (34,), w[0], w[1]),
    "rms_norm": lambda t, w: F.rms_norm(t, (34,), w[0]),
    "group_norm": lambda t, w: F.group_norm(t, 2),
    "instance_norm": lambda t, w: F.instance_norm(t.reshape(2, 3, 34)),
    "left": lambda t, w: t @ w.t(),
    "right": lambda t, w: w[:, :6] @ t,
    "linear": lambda t, w: F.linear(t, w, w[:, 3]),
    "baddbmm": lambda t, w: torch.baddbmm(t[None, :, 2:3], t[None], w.t()[None]),
    "ends": lambda t, w: torch.relu(F.linear(t, w)) * 2,
}
# These read it twice.
TWICE = ["baddbmm"]


def numbers(*shape: int) -> Any:
    """Return normal numbers, with NaN, infinities and zeros of both signs among them."""
    t = x(*shape).cpu()
    t[0, :3] = torch.tensor([0.0, -0.0, 1e30])
    t[1, 1] = float("nan")
    t[2, 0], t[3, 2] = float("inf"), -float("inf")
    return t.to("wgpu")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("head", HEADS)
def test_heads_begin_with_what_makes_their_operand(head: str, dtype: Any) -> None:
    a, c, row = (t.to(dtype) for t in (numbers(6, 34), numbers(6, 34) - 1, x(34)))
    column, turned = x(6, 1).to(dtype), numbers(34, 6).to(dtype).t()
    part = numbers(9, 40).to(dtype)[2:8, 3:37]
    whole = (x(6, 34) * 3).int()
    w = x(17, 34).to(dtype)
    chains: dict[str, Callable[[], Any]] = {
        "one": lambda: a * 2,
        "rows and columns": lambda: a * row + column,
        "turned": lambda: (a - turned).abs(),
        "part": lambda: torch.relu(part),
        "integers": lambda: (whole + 1).to(dtype),
        "truths": lambda: (a > c).to(dtype),
        "rounded": lambda: a.half().float().to(dtype),
        "masked": lambda: a.masked_fill(c > 0, -10.0),
    }
    for i, (name, chain) in enumerate(chains.items()):
        # Of float32 all pairs; of the other types each head and each chain, with a third of theirs.
        if dtype is not torch.float32 and (i + list(HEADS).index(head)) % 3 != TYPES.index(dtype):
            continue
        # Once as large rows, which are read once.
        for words in (NEVER, 1) if name == "rows and columns" else (NEVER,):

            def call(chain: Callable[[], Any] = chain) -> Any:
                with torch.no_grad():
                    return launched(lambda: HEADS[head](chain(), w))

            with fused(False):
                _, want = wide(words, call)
            with fused(True):
                count, got = wide(words, call)
            assert bits(got) == bits(want), (name, words)
            assert count == 1 + (head in TWICE), (name, words, count)


def test_operand_is_there_for_whoever_holds_it() -> None:
    a, r, w = x(6, 34), x(34, 6).t(), x(17, 34)
    for head in HEADS.values():
        for late in (False, True):
            with fused(True), torch.no_grad():
                s = a + r
                y = head(s, w)
                z = s * 2 if late else s
                assert torch.equal(s.cpu(), a.cpu() + r.cpu())
                assert torch.equal(z.cpu(), (a.cpu() + r.cpu()) * (2 if late else 1))
            with fused(False), torch.no_grad():
                assert bits(y) == bits(head(a + r, w))


def test_memory_of_what_is_taken_is_used_again() -> None:
    a, w = x(64, 64), x(64, 64)
    for head in (lambda t: torch.softmax(t, -1), lambda t: t @ w, lambda t: F.rms_norm(t, (64,))):
        with fused(False):
            want = bits(head(a * 3) + 1)
        with fused(True):
            # What follows lies where the operand would have been, and runs in the same kernel.
            count, y = launched(lambda head=head: head(a * 3) + 1)
            other = torch.full((64, 64), 7.0).to("wgpu")
            assert (count, bits(y)) == (1, want)
            # What the operand is made of changes.
            b = a.clone()
            y = head(b * 3) + 1
            b.zero_()
            assert bits(y) == want
            assert other.min().item() == 7


def test_operands_of_one_group_come_before() -> None:
    a, b, long = x(32, 32), x(32, 32), x(32, 2048)
    calls: list[tuple[int, Callable[[], Any]]] = [
        (2, lambda: (a * 2) @ (b + 1)),
        (2, lambda: (lambda t: t @ t)(a * 2)),
        (2, lambda: (lambda t: t @ t.t())(a * 2)),
        (2, lambda: (lambda t: torch.addmm(t, t, b))(a * 2)),
        (2, lambda: F.layer_norm(a * 2, (32,), (b * 2)[0])),
        (1, lambda: torch.softmax((a * 2)[3:9], -1)),
        (1, lambda: torch.relu(a - b).t() @ b),
        (1, lambda: (a * 2)[None].expand(3, 32, 32) @ b),
        # In parts along k, whose sum ends with what follows.
        (2, lambda: torch.relu((long * 2) @ long.t())),
        (1, lambda: torch.softmax(a / 3, 0)),
        (1, lambda: (a / 3) @ b),
        # Its own loops are within those of the head.
        (2, lambda: torch.softmax(torch.special.zeta(a.abs() + 2, 3), 0)),
    ]
    for i, (most, call) in enumerate(calls):
        with fused(False):
            alone, want = launched(call)
        with fused(True):
            count, got = launched(call)
        assert bits(got) == bits(want), i
        assert count == most <= alone, (i, count, alone)


def test_operands_that_are_made_of_nothing() -> None:
    def call() -> list[Any]:
        torch.manual_seed(0)
        drawn = torch.softmax(torch.rand((6, 34), device="wgpu") * 2, -1)
        filled = F.layer_norm(torch.full((6, 34), 2.0, device="wgpu") * 3, (34,), x(34))
        counted = torch.arange(34, device="wgpu").float().reshape(2, 17) @ x(17, 3)
        dropped = F.linear(F.dropout(x(6, 34), 0.5), x(3, 34))
        empty = (x(5, 0) * 2) @ (x(0, 7) + 1)
        return [bits(t) for t in (drawn, filled, counted, dropped, empty)]

    with fused(False):
        want = call()
    with fused(True):
        assert call() == want


def test_products_take_what_costs_little() -> None:
    a, r, w = x(20, 32), x(20, 32), x(32, 900)
    counts = {}
    chains = {
        "one": lambda: a * 2,
        "two": lambda: a + r,
        "dear": lambda: torch.exp(torch.sigmoid(a)),
    }
    for name, chain in chains.items():
        for columns in (60, 120, 900):
            b = w[:, :columns].contiguous()
            with fused(False):
                want = bits(chain() @ b)
            with fused(True):
                counts[name, columns], got = launched(lambda chain=chain, b=b: chain() @ b)
            assert bits(got) == want
    assert counts == {
        **{(name, columns): 1 for name in chains for columns in (60, 120, 900)},
        # What it reads and computes again for each column of tiles is more than it spares.
        ("two", 120): 2,
        ("two", 900): 2,
        ("dear", 120): 2,
        ("dear", 900): 2,
    }


def test_training_keeps_what_it_saves() -> None:
    def step() -> list[Any]:
        a, w = x(6, 34).requires_grad_(), x(34, 34).requires_grad_()
        h = F.layer_norm(a * 2 + x(34), (34,), w[0])
        h = h + torch.relu(h) @ w
        y = torch.softmax(h * 0.5 + 1, -1)
        (y * F.log_softmax(h.half().float() / 3, -1)).sum().backward()
        return [bits(t) for t in (y, a.grad, w.grad)]

    with fused(False):
        want = step()
    with fused(True):
        assert step() == want


@pytest.mark.parametrize("dtype", TYPES)
def test_recorded_calls_take_the_same(dtype: Any) -> None:
    w, bias = x(34, 34).to(dtype), x(34).to(dtype)

    def f(a: Any, scale: Any) -> Any:
        h = F.layer_norm(a * scale + bias, (34,), bias)
        h = a + F.relu(h * 2) @ w
        return torch.softmax(h * 0.5 + bias, -1) + F.rms_norm(F.silu(h), (34,))

    inputs = [(numbers(6, 34).to(dtype) * k, x(6, 1).to(dtype) + k) for k in range(5)]
    with torch.no_grad():
        with fused(False):
            want = [bits(f(*i)) for i in inputs]
        with fused(True):
            for way in (torch.graph, torch.compile):
                recorded = way(f)
                assert [bits(recorded(*i)) for i in inputs] == want


def test_recorded_calls_are_as_few_kernels() -> None:
    w, bias = x(34, 34), x(34)
    calls = [
        lambda a: torch.softmax(a * 0.5 + bias, -1) * 2,
        lambda a: a + torch.relu(a * 2) @ w,
        lambda a: F.rms_norm(F.silu(a), (34,)),
    ]
    with torch.no_grad(), fused(True):
        for call, way in itertools.product(calls, (torch.graph, torch.compile)):
            recorded = way(call)
            inputs = [x(6, 34) * k for k in range(5)]
            assert all(t.isfinite().all().item() for t in inputs)
            counts = [launched(lambda t=t, recorded=recorded: recorded(t))[0] for t in inputs]
            assert counts == [1] * 5
            assert way is not torch.graph or len(recorded.programs) == 1


CUT = """
    import pytensorlib as torch
    import pytensorlib.nn.functional as F
    from pytensorlib import _C

    torch.manual_seed(0)
    made = {n: torch.randn(n, 100).to("wgpu") for n in (30, 300)}
    w, row = torch.randn(100, 100).to("wgpu"), torch.randn(100).to("wgpu")
    calls = [
        lambda a: torch.softmax(a * 2 + row, -1),
        lambda a: F.log_softmax((a * 2).half(), 0),
        lambda a: F.layer_norm(a - row, (100,), row) + 1,
        lambda a: torch.relu(torch.relu(a) @ w),
        lambda a: w @ (a * 2).t(),
    ]
    with torch.no_grad():
        for call in calls:
            for a in made.values():
                found = []
                for on in (False, True):
                    _C._wgpu_set_fuse(0, on)
                    found.append(call(a).cpu())
                assert torch.equal(*found)
    print("cut")
"""


def test_operands_larger_than_a_binding_are_made_first() -> None:
    small = {"PYTENSORLIB_WGPU_MAX_BINDING": "65536", "PYTENSORLIB_WGPU_FALLBACK": "error"}
    assert run(CUT, **small).split() == ["cut"]
