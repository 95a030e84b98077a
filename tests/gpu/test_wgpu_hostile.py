"""Hostile shapes and layouts on a GPU give what they do on the CPU, or its class of error."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from op_calls import leaves, mapped, named, scalars_fit, tensors
from op_db import OPS
from op_row import TOLERANCE, Op

import pytensorlib as torch
from pytensorlib import wgpu

F = torch.nn.functional
pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

# What has no kernel of any shape.
HOSTED = {"linalg.eig", "linalg.eigvals"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    wgpu.set_fallback(None)


def outcome(f: Callable[[], Any]) -> Any:
    """Return the results on the host, or the class of the error."""
    try:
        found = list(leaves(f()))
    except Exception as e:
        return type(e)
    return [t.detach().cpu() for t in found]


# Sums of some hundred float32 terms in another order, some of which nearly cancel.
def same(f: Callable[[str], Any], name: str, tolerance: float = 2e-4) -> None:
    got, want = outcome(lambda: f("wgpu")), outcome(lambda: f("cpu"))
    if isinstance(got, type) or isinstance(want, type):
        assert got is want, name
        return
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(
            g, w, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda m: f"{name}: {m}"
        )


# ---- the operator table in hostile layouts ------------------------------------------------------


def offset(t: Any) -> Any:
    flat = torch.zeros(t.numel() + 5, dtype=t.dtype, device=t.device)
    return flat[5:].view(t.shape).copy_(t)


def stepped(t: Any) -> Any:
    flat = torch.zeros(2 * t.numel() + 7, dtype=t.dtype, device=t.device)
    return flat[3 : 3 + 2 * t.numel() : 2].view(t.shape).copy_(t)


def transposed(t: Any) -> Any:
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else stepped(t)


def far(t: Any) -> Any:
    if not t.numel() or not t.dim():
        return offset(t)
    wide = torch.zeros((t.shape[0], 37, *t.shape[1:]), dtype=t.dtype, device=t.device)
    return wide[:, 36].copy_(t)


def repeated(t: Any) -> Any:
    return t[:1].expand(t.shape) if t.dim() and t.shape[0] else t


def overlapping(t: Any) -> Any:
    many = t.dim() > 1 and t.numel()
    return t.reshape(-1).as_strided(t.shape, [1] * t.dim()) if many else t


LAYOUTS = [offset, stepped, transposed, far, repeated, overlapping]


def agrees(op: Op, dtype: str, samples: list[Any], layouts: list[Callable[[Any], Any]]) -> None:
    wgpu.set_fallback("silent" if op.name in HOSTED else "error")
    for i, sample in enumerate(samples):
        if not scalars_fit(sample, dtype):
            continue
        call = tensors(sample, dtype)
        for layout in layouts:
            # Values change, alike on both; positions keep theirs.
            alters = layout in (repeated, overlapping)
            if alters and op.regular:
                continue

            def there(t: Any, device: str, layout: Any = layout, alters: bool = alters) -> Any:
                t = t.to(device)
                return t if alters and not t.is_floating_point() else layout(t)

            def run(device: str, call: Any = call, there: Any = there) -> Any:
                args, kwargs = (
                    mapped(v, lambda t: there(t, device)) for v in (call.args, call.kwargs)
                )
                return op.function(torch)(*args, **kwargs)

            tolerance = 4 * op.scale * TOLERANCE.get(dtype, (1e-6,))[0]
            same(run, f"{op.name} {layout.__name__} {i}", tolerance)


# Every second one: of all that is slow, kernels are compiled for most of it.
@pytest.mark.parametrize("op", named([op for op in OPS if "float32" in op.dtypes][::2]))
def test_operators_take_hostile_layouts(op: Op) -> None:
    # One of each, chosen by the name; all of them take minutes.
    samples, chance = op.samples(), zlib.crc32(op.name.encode())
    at = chance // len(LAYOUTS) % len(samples)
    agrees(op, "float32", samples[at : at + 1], [LAYOUTS[chance % len(LAYOUTS)]])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("op", named(OPS))
def test_operators_take_every_hostile_layout(op: Op, dtype: str) -> None:
    if dtype in op.dtypes:
        agrees(op, dtype, op.samples(), LAYOUTS)


# ---- hostile shapes -----------------------------------------------------------------------------


def ramp(device: str, *shape: int) -> Any:
    """Return small numbers that floats hold exactly."""
    size = 1
    for n in shape:
        size *= n
    return (((torch.arange(size) * 7 + 3) % 23 - 11) / 4).reshape(shape).to(device)


SHAPES: dict[str, Callable[[str], Any]] = {
    "empty": lambda d: ramp(d, 0),
    "no rows": lambda d: ramp(d, 0, 3),
    "no columns": lambda d: ramp(d, 3, 0),
    "nothing inside": lambda d: ramp(d, 2, 0, 3),
    "scalar": lambda d: ramp(d, 1).reshape(()),
    "ones": lambda d: ramp(d, 1, 1, 1, 1),
    "stride 0": lambda d: ramp(d, 1).reshape(()).expand(3, 4, 5),
    "expanded": lambda d: ramp(d, 3, 1, 4).expand(3, 5, 4),
    "twelve dimensions": lambda d: (
        ramp(d, *[2] * 12).permute(11, 1, 9, 3, 7, 5, 6, 4, 8, 2, 10, 0)
    ),
    "nine dimensions": lambda d: ramp(d, *[3] * 9)[(slice(None, None, 2),) * 9].transpose(0, 8),
    "windows": lambda d: ramp(d, 6, 6).unfold(0, 3, 1).unfold(1, 3, 1),
    "far apart": lambda d: ramp(d, 3, 70_000)[:, ::69_999],
    "diagonals": lambda d: ramp(d, 3, 9, 9).diagonal(-1, 1, 2),
    "channels last": lambda d: ramp(d, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "a tile and one": lambda d: ramp(d, 65, 33).t(),
}  # fmt: skip
EDGES = {
    f"{m} x {n}": lambda d, m=m, n=n: ramp(d, m, n)
    for m, n in [
        (1, 255), (256, 1), (31, 33), (64, 64), (63, 129), (2, 4097), (4097, 2), (1, 65_537),
    ]
}  # fmt: skip


def along(name: str) -> dict[str, Callable[[Any], Any]]:
    """Return a reduction of the first, the middle and the last dimension."""
    f = getattr(torch, name)
    where = {"first": lambda x: 0, "middle": lambda x: x.dim() // 2, "last": lambda x: -1}
    return {f"{name} {k}": lambda x, at=at: f(x, at(x)) for k, at in where.items()}


def index(x: Any) -> Any:
    return torch.zeros_like(x, dtype=torch.int64)


QUICK: dict[str, Callable[[Any], Any]] = {
    **along("sum"), **along("var"), **along("logsumexp"), **along("argmax"), **along("cumsum"),
    **along("max"), "sum of some": lambda x: x.sum(tuple(range(0, x.dim(), 2))),
    "std": lambda x: x.std(), "any": lambda x: x.any(),
    "amax of some": lambda x: x.amax(tuple(range(1, x.dim(), 2)), keepdim=True),
    "softmax": lambda x: x.softmax(-1), "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "eval batch norm": lambda x: F.batch_norm(
        x, torch.ones(x.shape[1], device=x.device), torch.full((x.shape[1],), 4.0, device=x.device)
    ),
    "chain": lambda x: (x * 2 + x.abs()).relu() / 3, "half": lambda x: x.half() + x.half(),
    "bytes": lambda x: x.abs().to(torch.uint8) * 3, "long": lambda x: x.long() * 2,
    "outer": lambda x: x + torch.ones(x.shape[-1:] if x.dim() else (), device=x.device),
    "flat": lambda x: x.reshape(-1), "flip": lambda x: x.flip(tuple(range(x.dim()))),
    "cat": lambda x: torch.cat([x, x], -1), "sort": lambda x: x.sort(0, stable=True),
    "pick": lambda x: x[[0, -1]], "gather": lambda x: x.gather(-1, index(x)),
    "scatter": lambda x: torch.zeros_like(x).scatter_add(-1, index(x), x),
    "product": lambda x: x @ x.mT if x.numel() < 9000 else x, "triangle": lambda x: x.tril(),
    "masked": lambda x: x[x > 0],
    "in place": lambda x: x.clone().add_(x).mul_(x), "view in place": lambda x: x.add_(1),
}  # fmt: skip
MORE: dict[str, Callable[[Any], Any]] = {
    **along("prod"), **along("amin"), **along("softmax"), **along("median"), **along("mode"),
    **along("cumprod"), **along("logcumsumexp"), **along("cummax"), **along("log_softmax"),
    **along("argsort"), **along("count_nonzero"), **along("nansum"), **along("std"),
    "norm": lambda x: x.norm(dim=-1), "complex": lambda x: torch.complex(x, x).exp(),
    "double": lambda x: x.double().sin(), "stack": lambda x: torch.stack([x, x], -1),
    "select": lambda x: x.index_select(0, torch.tensor([0, 0], device=x.device)),
    "add rows": lambda x: x.index_add(0, index(x[:, None])[:, 0].flatten()[: x.shape[0]], x),
    "roll": lambda x: x.roll(1, 0), "nonzero": lambda x: x.nonzero(), "unique": torch.unique,
    "pad": lambda x: F.pad(x, (1, 2)), "reflect": lambda x: F.pad(x, (1, 1), mode="reflect"),
    "pool": lambda x: F.max_pool2d(x, 2), "average": lambda x: F.avg_pool1d(x, 2),
    "convolution": lambda x: F.conv2d(x, torch.ones(2, x.shape[1], 2, 2, device=x.device)),
    "group norm": lambda x: F.group_norm(x, 1), "rms norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "attention": lambda x: (
        F.scaled_dot_product_attention(x, x, x) if x.numel() < 9000 else x
    ),
    "cross entropy": lambda x: F.cross_entropy(x, index(x[:, 0])),
    "embedding": lambda x: F.embedding(x.abs().long(), ramp(x.device.type, 12, 2)),
    "repeat": lambda x: x.repeat((2,) * max(x.dim(), 1)), "quantile": lambda x: x.quantile(0.3, -1),
    "einsum": lambda x: torch.einsum("...i,...i->...", x, x),
    "unfold": lambda x: x.unfold(-1, 2, 1) * 1,
    "words": lambda x: x.view(torch.int32), "out": lambda x: torch.sin(x, out=x),
    "strided out": lambda x: torch.sin(x, out=torch.zeros(*x.shape, 2, device=x.device)[..., 0]),
    "shift": lambda x: x[1:].copy_(x[:-1]),
    "set": lambda x: x.__setitem__(slice(None, None, 2), 5.0) or x,
}  # fmt: skip


@pytest.mark.parametrize("call", QUICK)
def test_hostile_shapes_give_what_the_cpu_does(call: str) -> None:
    wgpu.set_fallback("error")
    for name, shape in SHAPES.items():
        same(lambda d, shape=shape: QUICK[call](shape(d)), f"{call} of {name}")


def gradients(f: Callable[[Any], Any], x: Any) -> Any:
    x = x.detach().requires_grad_()
    y = [t for t in leaves(f(x)) if t.requires_grad]
    g = [ramp(t.device.type, *t.shape).to(t.dtype) for t in y]
    return torch.autograd.grad(y, [x], g) if y else []


@pytest.mark.slow
@pytest.mark.parametrize("call", QUICK | MORE)
def test_edges_and_gradients_of_hostile_shapes_give_what_the_cpu_does(call: str) -> None:
    wgpu.set_fallback("silent")
    before, f = wgpu.fallbacks(), (QUICK | MORE)[call]
    for name, shape in (SHAPES | EDGES).items():
        same(lambda d, shape=shape: f(shape(d)), f"{call} of {name}")
        if call not in {"in place", "view in place", "out", "strided out", "shift", "set"}:
            same(lambda d, shape=shape: gradients(f, shape(d)), f"gradient of {call} of {name}")
    assert wgpu.fallbacks() == before


# ---- writing where elements share memory, or words ----------------------------------------------

SHARED = {
    "windows": lambda d: ramp(d, 40).unfold(0, 7, 3),
    "stride 0": lambda d: ramp(d, 1).expand(5),
    "all at one place": lambda d: ramp(d, 1).reshape(()).expand(3, 4, 5),
    "between": lambda d: ramp(d, 40)[3:].as_strided((4, 5), (3, 1)),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "fill_": lambda x: x.fill_(3), "zero_": lambda x: x.zero_(), "add_": lambda x: x.add_(1),
    "mask": lambda x: x.__setitem__(x < 0.5, 0.0), "item": lambda x: x.__setitem__(0, 5.0),
    "list": lambda x: x.__setitem__([0, 1], 5.0), "copy_": lambda x: x.copy_(x.clone()),
    "masked_fill_": lambda x: x.masked_fill_(x < 0.5, 7), "tril_": lambda x: x.tril_(),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([0], device=x.device), 1.0),
    "scatter_": lambda x: x.scatter_(0, index(x), 2.0), "cumsum_": lambda x: x.cumsum_(0),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHARED)
def test_writing_where_elements_share_memory_is_as_on_the_cpu(shape: str) -> None:
    wgpu.set_fallback("silent")
    for name, write in WRITES.items():

        def run(device: str, write: Any = write) -> Any:
            x = SHARED[shape](device)
            write(x)
            return x

        same(run, f"{name} {shape}")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float16, torch.int16], ids=str)
def test_writing_parts_of_words_leaves_their_neighbours(dtype: Any) -> None:
    wgpu.set_fallback("error")
    writes: list[Callable[[Any], Any]] = [
        lambda x: x.fill_(1), lambda x: x.copy_(torch.ones_like(x)), lambda x: x.logical_not_(),
        lambda x: x.masked_fill_(x == 0, 1), lambda x: x.__setitem__(0, 1),
    ]  # fmt: skip
    for first in range(4):
        for step in (1, 2, 3):
            for end in (first + 1, 22):
                for write in writes:

                    def run(device: str, write: Any = write, at: Any = (first, end, step)) -> Any:
                        x = (torch.arange(23) % 3).to(dtype).to(device)
                        write(x[slice(*at)])
                        return x.to(torch.int32)

                    same(run, f"{first}:{end}:{step}")


ERRORS: dict[str, Callable[[str], Any]] = {
    "sizes": lambda d: ramp(d, 3) + ramp(d, 4),
    "product": lambda d: ramp(d, 2, 3) @ ramp(d, 2, 3),
    "dimension": lambda d: ramp(d, 2).softmax(3),
    "twice": lambda d: ramp(d, 2, 3).sum((0, 0)),
    "view": lambda d: ramp(d, 2, 3).t().view(6),
    "nothing": lambda d: ramp(d, 0).max(),
    "argmax of nothing": lambda d: ramp(d, 3, 0).argmax(1),
    "gather": lambda d: ramp(d, 3).gather(0, torch.tensor([5], device=d)).cpu(),
    "select": lambda d: ramp(d, 3).index_select(0, torch.tensor([-1], device=d)).cpu(),
    "index": lambda d: ramp(d, 3)[torch.tensor([3], device=d)].cpu(),
    "embedding": lambda d: F.embedding(torch.tensor([-1], device=d), ramp(d, 3, 2)).cpu(),
    "class": lambda d: F.cross_entropy(ramp(d, 2, 3), torch.tensor([0, 3], device=d)).cpu(),
    "nll": lambda d: F.nll_loss(ramp(d, 2, 3), torch.tensor([0, -7], device=d)).cpu(),
    "channels": lambda d: F.conv2d(ramp(d, 1, 3, 5, 5), ramp(d, 2, 4, 3, 3)),
    "kernel": lambda d: F.max_pool2d(ramp(d, 1, 1, 2, 2), 3),
    "norm": lambda d: F.layer_norm(ramp(d, 2, 3), (4,)),
    "running": lambda d: F.batch_norm(ramp(d, 2, 3), ramp(d, 4), ramp(d, 4)),
    "cast": lambda d: ramp(d, 2).long().add_(1.5),
    "out": lambda d: torch.add(ramp(d, 2), 1, out=torch.empty(2, dtype=torch.int64, device=d)),
    "topk": lambda d: ramp(d, 3).topk(5),
    "inverse": lambda d: torch.linalg.inv(torch.zeros(2, 2, device=d)).cpu(),
    "cholesky": lambda d: torch.linalg.cholesky(-torch.eye(2, device=d)).cpu(),
    "negative": lambda d: ramp(d, 3).as_strided((2,), (-1,)),
    "leaf": lambda d: ramp(d, 3).requires_grad_().add_(1),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_those_of_the_cpu(call: str) -> None:
    got, want = outcome(lambda: ERRORS[call]("wgpu")), outcome(lambda: ERRORS[call]("cpu"))
    assert isinstance(want, type)
    assert got is want
