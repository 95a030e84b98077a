"""Pointwise kernels that run as one give bit for bit what they give one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import op_db
import pytest

import pytensorlib as torch
from pytensorlib import _C, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

SHAPES = [(6, 35), (4, 5, 8), (257,), (1,), (3, 1, 7)]
TYPES = ["float32", "float16", "bfloat16", "int32", "uint8", "bool", "int64", "int16", "float64"]
# Every pointwise row: its name, how many tensors it takes, and what else.
ROWS = [
    (row, sum(isinstance(a, np.ndarray) for a in sample.args), sample)
    for row in op_db.POINTWISE + op_db.ACTIVATIONS
    for sample in [row.samples()[0]]
    if "channel" not in row.name and not row.name.endswith(("glu", "prelu"))
]


@contextmanager
def fused(on: bool) -> Iterator[None]:
    before = _C._wgpu_set_fuse(0, on)
    try:
        yield
    finally:
        _C._wgpu_set_fuse(0, before)


def bits(t: Any) -> bytes:
    """Return a tensor's memory; a NaN has one sign here, since drivers choose that as they like."""
    t = t.detach().cpu().clone(memory_format=torch.contiguous_format)
    if t.dtype.is_floating_point:
        t[t.isnan()] = float("nan")
    return bytes(t.reshape(-1).view(torch.uint8).numpy().tobytes()) if t.numel() else b""


def launched(f: Callable[[], Any]) -> tuple[int, Any]:
    """Return how many kernels a call launches, and what it returns."""
    before = wgpu.memory_stats()["dispatches"]
    y = f()
    return wgpu.memory_stats()["dispatches"] - before, y


def tensors(rng: random.Random, shape: tuple[int, ...]) -> list[Any]:
    """Return tensors of several types and layouts whose shape is this."""
    data = np.random.default_rng(rng.randrange(1 << 30))
    out = []
    for kind in rng.sample(TYPES, 4):
        x = torch.tensor(data.normal(0, 3, shape), dtype=torch.float32)
        x.flatten()[:: rng.choice([3, 50])] = rng.choice([0.0, -0.0, float("nan"), float("inf")])
        x = x.abs() if kind == "uint8" else x
        x = torch.nan_to_num(x, 0.0, 2.0, 2.0) if not kind.startswith(("f", "bf")) else x
        out.append(x.to(getattr(torch, kind)).to("wgpu"))
    wide = torch.tensor(data.normal(0, 3, (*shape, 2)), dtype=torch.float32).to("wgpu")
    turned = torch.tensor(data.normal(0, 3, shape[::-1]), dtype=torch.float32).to("wgpu")
    return [*out, wide[..., 1], turned.permute(*range(len(shape))[::-1])]


def changed(rng: random.Random, pool: list[Any]) -> None:
    """Do one thing to the tensors of a pool."""
    pick = lambda: rng.choice(pool)  # noqa: E731
    kind = rng.randrange(18)
    x = pick()
    if kind > 14:
        pool.extend(reduced(rng, x, pick()))
    elif kind < 5:
        row, count, sample = rng.choice(ROWS)
        args = [pick() if isinstance(a, np.ndarray) else a for a in sample.args]
        if count > 1 and rng.random() < 0.3:
            args[count - 1] = args[count - 1].float().mean().to(x.dtype)
        pool.append(row.function(torch)(*args, **sample.kwargs))
    elif kind == 5:
        pool.append(x.to(getattr(torch, rng.choice(TYPES))))
    elif kind == 6:
        rng.choice([x.add_, x.mul_, x.sub_])(rng.choice([2, 3, pick()]))
    elif kind == 7:
        part = x.flatten()[rng.randrange(3) :: rng.choice([1, 2])]
        rng.choice([lambda: part.mul_(2), lambda: part.fill_(1), lambda: part.neg_()])()
    elif kind == 8:
        views = [x.flip(0), x.contiguous(), x.clone(), x[..., :1].expand(x.shape)]
        pool.append(rng.choice(views))
    elif kind == 9 and x.dtype.is_floating_point:
        leaf = x.detach().clone().requires_grad_()
        y = F.gelu(leaf) * torch.sigmoid(leaf.float()) + leaf
        y.sum().backward()
        pool.append(leaf.grad)
    elif kind == 10:
        torch.add(x, rng.choice([1, pick()]), out=pick())
    elif kind == 11:
        # What the halves are written to lies between each other.
        whole = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), device="wgpu")
        left, right = whole.chunk(2, -1)
        left.copy_(x)
        right.copy_(left * 2)
        left.add_(right)
        pool.append(rng.choice([left, right]))
    elif kind > 11:
        y = headed(rng, x.float())
        z = rng.choice([F.gelu, torch.exp, torch.Tensor.half, lambda y: y + pick()])(y)
        pool.extend(rng.choice([[z], [y, z], [z, y.relu_()]]))
    else:
        torch.manual_seed(rng.randrange(100))
        mask = torch.rand(x.shape, device="wgpu") < 0.5
        pool.append(torch.where(mask, x, torch.zeros_like(x)))
    # Some die unread.
    if len(pool) > 6:
        pool.pop(rng.randrange(len(pool)))


def headed(rng: random.Random, x: Any) -> Any:
    """Return what a kernel gives that others may run at the end of; its shape is that of `x`."""
    n = x.shape[-1]
    makes = [lambda: x, lambda: x * 2, lambda: torch.relu(x) + x, lambda: x.half().float() / 3]
    x = rng.choice(makes)()
    flat = x.reshape(-1, n)
    square = torch.ones((n, n), device="wgpu") / n
    dtype = rng.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
    x, square = x.to(dtype), square.to(dtype)
    kind = rng.randrange(6)
    if kind == 0:
        return (flat @ square).reshape(x.shape)
    if kind == 1:
        return F.linear(x, square, square[0])
    if kind == 2:
        return torch.softmax(x, rng.randrange(x.dim()))
    if kind == 3:
        return F.layer_norm(x, (n,), square[0], square[-1])
    if kind == 4:
        image = x.reshape(1, 1, -1, n)
        return F.conv2d(image, image[..., :1, :1] * 2).reshape(x.shape)
    leaf = x.clone().requires_grad_()
    (F.layer_norm(leaf, (n,)) * torch.softmax(leaf, -1)).sum().backward()
    return leaf.grad


def reduced(rng: random.Random, x: Any, other: Any) -> list[Any]:
    """Return what a reduction gives of what may be made as it is read, and sometimes that too."""
    makes = [
        lambda: x * 2,
        lambda: x + other,
        lambda: (x.float() - 1).abs(),
        lambda: x.to(getattr(torch, rng.choice(TYPES))),
        lambda: torch.where(x > 1, x, other),
        lambda: torch.erfinv(torch.tanh(x.float())) * other,
        lambda: torch.lgamma(x.float()),
    ]
    y = rng.choice(makes)()
    kept = [y] if rng.random() < 0.2 else []
    if rng.random() < 0.2:
        y = y.mul_(other.to(y.dtype)) if y.dtype != torch.bool else y
    views = [y, y, y, y.flip(0), y[..., -1:], y[:1]]
    if y.dim() > 1 and y.shape[0] == y.shape[-1]:
        views.append(y.transpose(0, -1))
    y = rng.choice(views)
    dims = rng.sample(range(y.dim()), rng.randint(1, y.dim()))
    if y.dtype.is_floating_point:
        z = rng.choice([torch.sum, torch.mean, torch.amax, torch.linalg.vector_norm])(
            y, dim=dims, keepdim=True
        )
    else:
        z = rng.choice([torch.sum, torch.any, torch.all, torch.amin])(y, dim=dims, keepdim=True)
    after = [lambda: z.expand(x.shape).clone(), lambda: x.float() * z, lambda: (z * 2 + 1) * other]
    return [*kept, rng.choice(after)()]


def result(seed: int, steps: int) -> list[Any]:
    """Run a program, and return what is left and what it raised."""
    rng = random.Random(seed)
    pool = tensors(rng, rng.choice(SHAPES))
    log: list[Any] = []
    for _ in range(steps):
        # What a step that fails had drawn must not change the next.
        step = random.Random(rng.randrange(1 << 30))
        try:
            changed(step, pool)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as e:
            log.append(type(e).__name__)
        if rng.random() < 0.02:
            log.append(bits(rng.choice(pool)))
    return [*log, *((str(t.dtype), tuple(t.shape), bits(t)) for t in pool)]


def check(seeds: range, steps: int) -> None:
    wgpu.set_fallback("silent")
    try:
        for seed in seeds:
            with fused(False):
                want = result(seed, steps)
            with fused(True):
                got = result(seed, steps)
            assert got == want, f"seed {seed}"
    finally:
        wgpu.set_fallback(None)


def test_random_programs_fused_equal_unfused_bit_for_bit() -> None:
    check(range(5), 20)


@pytest.mark.slow
def test_many_random_programs_fused_equal_unfused_bit_for_bit() -> None:
    check(range(100, 400), 40)
    # Programs have thousands of kernels: those used last are kept, beside what other tests record.
    stats = wgpu.memory_stats()
    assert stats["kept_pipelines"] < 1200 < stats["pipelines"]


def test_kernels_end_with_what_follows() -> None:
    a, w, b, c = x(6, 33), x(17, 33), x(17), x(6, 17)
    conv = torch.nn.Conv2d(2, 3, 3).to("wgpu")
    image = x(1, 2, 9, 9)
    calls = {
        "linear": lambda: torch.relu(F.linear(a, w, b)) + c,
        "matmul": lambda: F.gelu(a @ w.t()),
        "softmax": lambda: torch.log(torch.softmax(a, -1)) * 2,
        "layer_norm": lambda: F.silu(F.layer_norm(a, (33,))),
        "conv2d": lambda: torch.relu(conv(image)),
        "sum": lambda: torch.sqrt(a.square().sum(0)) + 1,
    }
    counts = {}
    with torch.no_grad():
        for name, call in calls.items():
            with fused(False):
                want = bits(call())
            with fused(True):
                counts[name], got = launched(call)
            assert bits(got) == want, name
    assert counts == dict.fromkeys(calls, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_kernels_of_half_types_end_with_what_follows(dtype: Any) -> None:
    # Of an odd number of elements: two share a word, and something lies behind the last.
    a, w, b = x(5, 33).to(dtype), x(17, 33).to(dtype), x(17).to(dtype)
    c, wide = x(5, 17).to(dtype), x(5, 17)
    image, kernel = x(1, 2, 9, 9).to(dtype), x(3, 2, 3, 3).to(dtype)
    calls = {
        "linear": lambda: torch.relu(F.linear(a, w, b)) * c,
        "wide": lambda: F.linear(a, w).float() + wide,
        "in place": lambda: F.linear(a, w).mul_(c).add_(1),
        "softmax": lambda: torch.log(torch.softmax(a, -1)) * 2,
        "layer_norm": lambda: F.silu(F.layer_norm(a, (33,))),
        "conv2d": lambda: torch.tanh(F.conv2d(image, kernel)),
        "sum": lambda: torch.sqrt(a.square().sum(0)) + 1,
    }
    with torch.no_grad():
        for name, call in calls.items():
            with fused(False):
                alone, want = launched(call)
            with fused(True):
                count, got = launched(call)
            assert bits(got) == bits(want), name
            assert count == 1 < alone, (name, count)

        # Two results whose elements share words are written by two kernels, each once.
        def both() -> tuple[Any, Any, Any]:
            y = F.linear(a, w, b)
            z = torch.relu(y) * c
            return y, z, z.float()

        with fused(False):
            want = [bits(t) for t in both()]
        with fused(True):
            count, got = launched(both)
        assert [bits(t) for t in got] == want
        assert count == 2


def test_result_of_a_kernel_that_ends_with_others_is_there_too() -> None:
    a, w = x(6, 33), x(17, 33)
    with fused(True):
        y = a @ w.t()
        z = torch.relu(y)
        y.add_(1)
        a.zero_()
        w *= 2
    want = x(6, 33).cpu() @ x(17, 33).cpu().t()
    assert y.cpu().numpy() == pytest.approx((want + 1).numpy(), abs=1e-4)
    assert z.cpu().numpy() == pytest.approx(want.relu().numpy(), abs=1e-4)


def test_reductions_begin_with_what_makes_their_operand() -> None:
    a, c, row, many = x(6, 33), x(6, 33), x(33), x(300, 1001)
    rows = many[:, :1000].half()
    calls: dict[str, tuple[int, Callable[[], Any], Callable[[Any], Any]]] = {
        "rows": (1, lambda: (a * row + 1).sum(1), lambda t: (t(a) * t(row) + 1).sum(1)),
        "columns": (1, lambda: (a - c).abs().amax(0), lambda t: (t(a) - t(c)).abs().amax(0)),
        "all": (1, lambda: ((a - c) * 3).mean(), lambda t: ((t(a) - t(c)) * 3).mean()),
        "turned": (1, lambda: (a * 2).t().sum(0), lambda t: (t(a) * 2).sum(1)),
        "a part": (1, lambda: (a * c)[1:3].sum(1), lambda t: (t(a) * t(c))[1:3].sum(1)),
        "truths": (1, lambda: (a > c).sum(1), lambda t: (t(a) > t(c)).sum(1)),
        "wide": (1, lambda: a.double().sum(1), lambda t: t(a).sum(1)),
        "whole": (1, lambda: (a * 9).long().sum(), lambda t: t((a * 9).cpu().long()).sum()),
        # In two passes.
        "parts": (2, lambda: (many - 1).sum(), lambda t: (t(many) - 1).sum()),
        "halves": (2, lambda: (rows * 0.5).float().sum(), lambda t: (t(rows) * 0.5).sum()),
        # What follows runs at its end.
        "both": (1, lambda: (a * a).mean(1).add(1).rsqrt(), lambda t: (t(a) ** 2).mean(1) + 1),
        # Its own loops are within those of the sum.
        "quotient": (1, lambda: (a / row).sum(1), lambda t: (t(a) / t(row)).sum(1)),
        "loops": (2, lambda: torch.special.zeta(row.abs() + 2, 3).sum(), lambda t: None),
    }
    for name, (count, call, exact) in calls.items():
        with fused(False):
            alone, want = launched(call)
        with fused(True):
            found, got = launched(call)
        assert bits(got) == bits(want), name
        assert found == count <= alone - (name != "loops"), (name, found, alone)
        y = exact(lambda t: t.cpu().double())
        if y is not None:
            y = y.rsqrt() if name == "both" else y
            torch.testing.assert_close(got.cpu().double(), y.double(), rtol=1e-4, atol=1e-3)


def test_operand_of_a_reduction_is_there_for_whoever_holds_it() -> None:
    a = x(6, 33)
    with fused(True):
        y = a * 2
        s = y.sum(1)
        z = y + 1
        want = a.cpu() * 2
        assert torch.equal(y.cpu(), want) and torch.equal(z.cpu(), want + 1)
        assert s.cpu().numpy() == pytest.approx(want.sum(1).numpy(), abs=1e-4)
        # What the operand is made of changes, goes, and its memory is another tensor's.
        y = a * 3
        s = y.sum(0)
        a.zero_()
        del y
        z = torch.full((6, 33), 7.0, device="wgpu") + 1
        assert s.cpu().numpy() == pytest.approx((want * 1.5).sum(0).numpy(), abs=1e-4)
        assert z.min().item() == 8


def test_parts_of_one_tensor_are_written_by_one_kernel() -> None:
    a = [x(5, 7) for _ in range(3)]
    with fused(True):
        count, y = launched(lambda: torch.cat(a, 1))
        assert count <= 2
        assert torch.equal(y.cpu(), torch.cat([t.cpu() for t in a], 1))


def x(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to("wgpu")


def test_chain_of_one_shape_is_one_kernel() -> None:
    a, row = x(4, 33), x(33)

    def chain() -> Any:
        y = a
        for k in range(5):
            y = torch.tanh(y * row + k)
        return y

    with fused(True):
        count, got = launched(chain)
    with fused(False):
        alone, want = launched(chain)
    assert (count, alone) == (1, 15)
    assert bits(got) == bits(want)


def test_difference_and_quotient_of_a_value_with_itself_keep_nan() -> None:
    a = torch.tensor([1.0, 0.0, float("inf"), float("nan")]).repeat(50).to("wgpu")
    calls = [
        lambda a: a - a,
        lambda a: a / a,
        lambda a: a.sub_(a) + 1,
        lambda a: (a - a).half(),
        lambda a: torch.softmax(a.reshape(4, -1), 0).sub_(a.reshape(4, -1)).mul_(2),
        lambda a: (lambda b: (b - b).sum(0))(a.reshape(50, 4) * 1),
    ]
    for call in calls:
        with fused(True):
            got = call(a * 2).cpu()
        torch.testing.assert_close(got, call(a.cpu() * 2), equal_nan=True)


def test_results_that_died_unread_launch_nothing() -> None:
    a = x(4, 33)
    with fused(True):
        count, _ = launched(lambda: (torch.exp(a) + 1, None)[1])
    assert count == 0


def test_half_types_round_between_kernels_that_run_as_one() -> None:
    a = torch.tensor([2049.0, 1.0], dtype=torch.float32)
    with fused(True):
        count, y = launched(lambda: a.to("wgpu").half().float() * 2)
    # 2049 is no float16; the nearest even one is 2048.
    assert (count, y.tolist()) == (1, [4096.0, 2.0])


def test_views_of_what_waits_are_read_as_they_were_written() -> None:
    with fused(True):
        a = x(5, 7) + 1
        turned = a.t() * 2
        part = a[1:3]
        part.mul_(0)
        whole = a + 0
        assert torch.equal(turned.cpu(), (x(5, 7).cpu() + 1).t() * 2)
        assert whole[1:3].abs().max().item() == 0
        assert torch.equal(whole[3:].cpu(), x(5, 7).cpu()[3:] + 1)


def test_memory_used_again_keeps_what_was_read_before() -> None:
    with fused(True):
        a = x(64, 64)
        y = a.t() + 1
        want = a.cpu().t() + 1
        del a
        # Takes the memory that `y` reads.
        for _ in range(3):
            z = torch.full((64, 64), 7.0).to("wgpu")
        assert torch.equal(y.cpu(), want)
        assert z.min().item() == 7


def test_error_in_between_leaves_what_waits_right() -> None:
    with fused(True):
        a = x(3, 4) + 1
        with pytest.raises(RuntimeError, match="size"):
            a.add_(x(5))
        a *= 2
        assert torch.equal(a.cpu(), (x(3, 4).cpu() + 1) * 2)


def test_profile_tells_each_operator() -> None:
    from pytensorlib import profiler

    a = x(4, 33)
    with fused(True), profiler.profile() as prof:
        y = torch.tanh(a * 2) + 1
    del y
    names = {e.key for e in prof.key_averages()}
    assert {"aten::mul", "aten::tanh", "aten::add"} <= names
