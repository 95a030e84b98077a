"""The GPU gives what the CPU gives: types, views, gradients, training, memory, and fallbacks."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]

FLOATS = ["float32", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "int16", "uint8"]
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def leaves(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in leaves(v)]


def assert_same(f: Callable[..., Any], *args: Any, tolerance: float = 1e-5) -> None:
    """Check that `f` gives the same on the GPU, where its results stay."""
    want = leaves(f(*args))
    got = leaves(f(*[a.to("wgpu") if isinstance(a, torch.Tensor) else a for a in args]))
    for g, w in zip(got, want, strict=True):
        assert g.device.type == "wgpu"
        torch.testing.assert_close(g.cpu(), w, rtol=tolerance, atol=tolerance, equal_nan=True)


def normal(*shape: int, dtype: str = "float32") -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3)).to(getattr(torch, dtype))


def whole(*shape: int, dtype: str = "int64") -> Any:
    x = torch.randint(-50, 50, shape, generator=torch.Generator().manual_seed(4))
    return x.to(getattr(torch, dtype))


ANY_TYPE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "where": lambda a, b: torch.where(a < b, a, b),
    "sum": lambda a, b: a.sum(0),
    "any": lambda a, b: (a.any(), b.all(1)),
    "cat": lambda a, b: torch.cat([a, b], 1),
    "index": lambda a, b: a[torch.tensor([0, -1, 2], device=a.device)],
    "gather": lambda a, b: a.gather(1, torch.tensor([[1], [0]], device=a.device)),
    "flip": lambda a, b: a.flip(0),
    "cast": lambda a, b: [a.to(t) for t in (torch.float32, torch.int64, torch.bool)],
    "masked_fill": lambda a, b: a.masked_fill(a == b, 1),
    "tril": lambda a, b: a.tril(),
    "zeros_like": lambda a, b: (torch.zeros_like(a), torch.full_like(b, 1)),
}
NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "sub": lambda a, b: a - 2 * b,
    "maximum": torch.maximum,
    "amax": lambda a, b: (a.amax(1), b.amin()),
    "max": lambda a, b: (a.max(1), b.argmin(0)),
    "clamp": lambda a, b: a.clamp(1, 5),
    "matmul": lambda a, b: a @ b.T,
    "scatter_add": lambda a, b: a.scatter_add(
        0, torch.zeros(2, 4, dtype=torch.int64, device=a.device), b
    ),
}
FLOAT_ONLY: dict[str, Callable[[Any, Any], Any]] = {
    "gelu": lambda a, b: F.gelu(a),
    "tanh": lambda a, b: torch.tanh(a) + torch.sigmoid(b),
    "softmax": lambda a, b: (F.softmax(a, 0), F.log_softmax(b, 1)),
    "mean": lambda a, b: a.mean(1),
    "std": lambda a, b: a.std(1),
    "norm": lambda a, b: torch.linalg.vector_norm(a, 2, 1),
    "layer_norm": lambda a, b: F.layer_norm(a, (4,), b[0], b[1]),
    "linear": lambda a, b: F.linear(a, b, b[:, 0]),
}
INTEGER_ONLY: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda a, b: a // 3,
    "remainder": lambda a, b: a % 7,
    "bitwise": lambda a, b: ((a & b) | (a ^ 5), ~a),
}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("name", ANY_TYPE)
def test_op_any_type_equals_cpu(name: str, dtype: str) -> None:
    make = normal if dtype in FLOATS else whole
    a, b = make(4, 4, dtype=dtype), make(2, 4, dtype=dtype)
    first = a if name == "index" else a[:2]
    assert_same(ANY_TYPE[name], first, b, tolerance=TOLERANCE.get(dtype, 0))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", NUMBERS)
def test_op_number_equals_cpu(name: str, dtype: str) -> None:
    make = normal if dtype in FLOATS else whole
    a, b = make(4, 4, dtype=dtype)[:2], make(2, 4, dtype=dtype)
    assert_same(NUMBERS[name], a, b, tolerance=TOLERANCE.get(dtype, 0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_ONLY)
def test_op_float_equals_cpu(name: str, dtype: str) -> None:
    a, b = normal(3, 4, dtype=dtype), normal(4, 4, dtype=dtype)[:3]
    assert_same(FLOAT_ONLY[name], a, b, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_ONLY)
def test_op_integer_equals_cpu(name: str, dtype: str) -> None:
    assert_same(INTEGER_ONLY[name], whole(3, 4, dtype=dtype), whole(3, 4, dtype=dtype) + 1)


def gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the gradients of `f`'s squared sum."""

    def run(*args: Any) -> list[Any]:
        own = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        y = f(*own)
        (y * y).sum().backward()
        return [a.grad for a in own if a.grad is not None]

    return run


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "silu": (F.silu, ((3, 4),)),
    "broadcast": (lambda a, b: a * b + b, ((3, 4), (4,))),
    "bmm": (torch.matmul, ((2, 3, 4), (4, 5))),
    "linear": (F.linear, ((2, 3, 4), (5, 4), (5,))),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), ((2, 3, 6, 6), (4, 3, 3, 3), (4,))),
    "conv1d": (lambda x, w: F.conv1d(x, w, groups=2), ((2, 4, 9), (6, 2, 3))),
    "conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1), ((2, 3, 4, 4), (3, 5, 3, 3), (5,))
    ),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), ((2, 3, 7, 7),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), ((2, 3, 7, 7),)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 3), ((2, 3, 7, 7),)),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((4, 3, 5, 5), (3,), (3,))
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), ((2, 4, 5), (4,), (4,))),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    "attention": (F.scaled_dot_product_attention, ((2, 2, 5, 4),) * 3),
    "max": (lambda x: x.max(1).values, ((3, 4),)),
    "std": (lambda x: x.std(1), ((3, 4),)),
    "slice": (lambda x: x[1:, ::2], ((3, 4),)),
    "cat": (lambda a, b: torch.cat([a, b]), ((3, 4), (2, 4))),
    "embedding": (lambda w: F.embedding(torch.tensor([0, 2, 2], device=w.device), w), ((3, 4),)),
    "cross_entropy": (
        lambda x, w: F.cross_entropy(x, torch.tensor([0, 3, -100], device=x.device), w.abs()),
        ((3, 4), (4,)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_equals_cpu(name: str) -> None:
    f, shapes = GRADIENTS[name]
    args = [normal(*s) for s in shapes]
    if name == "cross_entropy":
        args[1].detach_()
        weight = args.pop()
        cpu, gpu = (lambda x: f(x, weight), lambda x: f(x, weight.to("wgpu")))
        want, got = gradients(cpu)(args[0])[0], gradients(gpu)(args[0].to("wgpu"))[0]
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-4)
        return
    assert_same(gradients(f), *args, tolerance=1e-3)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_inplace_on_view_writes_base_only_there(dtype: str) -> None:
    def run(x: Any) -> Any:
        x = x.clone()
        x[1:3, ::2] += 3
        x[:, 1].fill_(7)
        x.T[0].mul_(2)
        x[0, 0] = 1
        x[torch.tensor([3, 1], device=x.device)] -= 1
        return x

    make = normal if dtype in FLOATS else whole
    assert_same(run, make(4, 5, dtype=dtype), tolerance=TOLERANCE.get(dtype, 0))


def test_transfer_every_type_keeps_every_bit() -> None:
    for dtype in [*FLOATS, *INTEGERS, "float64", "bool"]:
        make = normal if dtype in [*FLOATS, "float64"] else whole
        x = make(5, 3, dtype=dtype)
        for view in (x, x.T, x[1:, ::2], x[:0]):
            assert torch.equal(view.to("wgpu").cpu(), view)


def test_mixed_devices_raise_and_numbers_do_not() -> None:
    x = normal(3).to("wgpu")
    assert torch.equal((x + torch.tensor(2.0)).cpu(), x.cpu() + 2)
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)


def test_index_out_of_range_raises_at_the_next_read() -> None:
    x = normal(3, 4).to("wgpu")
    y = x[torch.tensor([0, 5], device="wgpu")]
    with pytest.raises(IndexError, match="5"):
        y.cpu()


@pytest.mark.parametrize("dtype", [torch.int16, torch.int8, torch.uint8])
def test_product_of_narrow_integers_keeps_what_shares_a_word(dtype: Any) -> None:
    a = torch.arange(40 * 9).reshape(40, 9).sub(180).mul(97).to(dtype)
    b = torch.arange(9 * 22).reshape(9, 22).sub(99).mul(89).to(dtype)
    assert torch.equal((a.to("wgpu") @ b.to("wgpu")).cpu(), (a.long() @ b.long()).to(dtype))


OUTSIDE: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "index": (IndexError, lambda x: x[torch.tensor([0, 5], device=x.device)]),
    "index_select": (IndexError, lambda x: x.index_select(0, torch.tensor([-1], device=x.device))),
    "index_put": (IndexError, lambda x: x.index_put((torch.tensor([3], device=x.device),), x[0])),
    "gather": (RuntimeError, lambda x: x.gather(0, torch.tensor([[9]], device=x.device))),
    "scatter": (RuntimeError, lambda x: x.scatter(1, torch.tensor([[4]], device=x.device), 1.0)),
    "embedding": (IndexError, lambda x: F.embedding(torch.tensor([-1], device=x.device), x)),
    "nll_loss": (IndexError, lambda x: F.nll_loss(x, torch.tensor([0, 1, 4], device=x.device))),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_index_out_of_range_read_by_another_op_names_its_own(name: str) -> None:
    kind, f = OUTSIDE[name]
    x = normal(3, 4).to("wgpu")
    f(x)
    with pytest.raises(kind, match=f"^{name}: index -?\\d is out of bounds .* in dispatch \\d+"):
        (x + 1).cpu()
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)


WIDE: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "index": (IndexError, lambda x, i: x[i]),
    "index_put": (IndexError, lambda x, i: x.index_put((i,), x[:1])),
    "index_select": (IndexError, lambda x, i: x.index_select(0, i)),
    "take": (IndexError, lambda x, i: x.take(i)),
    "embedding": (IndexError, lambda x, i: F.embedding(i, x)),
    "gather": (RuntimeError, lambda x, i: x.gather(0, i[:, None])),
    "scatter": (RuntimeError, lambda x, i: x.scatter(0, i[:, None], 1.0)),
    "scatter_add": (RuntimeError, lambda x, i: x.scatter_add(0, i[:, None], x[:1])),
    "nll_loss": (IndexError, lambda x, i: F.nll_loss(x[:1], i)),
    "nll_loss of cross_entropy": (IndexError, lambda x, i: F.cross_entropy(x[:1], i)),
}


@pytest.mark.parametrize("index", [2**40 + 3, 2**31, -(2**40) + 3, -(2**31) - 1, -(2**63), -99])
@pytest.mark.parametrize("name", WIDE)
def test_index_out_of_range_of_64_bits_is_told_whole(name: str, index: int) -> None:
    kind, f = WIDE[name]
    x = normal(3, 4).to("wgpu")
    with pytest.raises(
        kind, match=f"^{name.split()[0]}: index {index} is out of bounds for dimension"
    ):
        f(x, torch.tensor([index], device="cpu").to("wgpu")).cpu()
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)


@pytest.mark.parametrize("index", [200, -1, -(2**31)])
def test_index_out_of_range_of_32_bits_is_told_whole(index: int) -> None:
    x = normal(3, 4).to("wgpu")
    places = torch.tensor([0, 2, 1, index], dtype=torch.int32).to("wgpu")
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for dimension"):
        x.index_select(0, places).cpu()


def test_index_that_the_host_knows_is_out_of_range_raises_at_once() -> None:
    x = normal(3, 4).to("wgpu")
    for bad in (lambda: x[[0, 3]], lambda: x[:, torch.tensor([-5])]):
        with pytest.raises(IndexError, match="out of bounds for dimension [01] with size [34]"):
            bad()
    with pytest.raises(IndexError, match="^index: any index is out of bounds .* size 0"):
        x[:0][torch.tensor([0], device="wgpu")]


NOTHING: dict[str, Callable[[Any, Any], Any]] = {
    "index_select": lambda x, i: x.index_select(0, i),
    "index": lambda x, i: x[i],
    "index_put": lambda x, i: x.index_put((i,), torch.ones((), device=x.device)),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:1]),
    "index_reduce": lambda x, i: x.index_reduce(0, i, x[:1], "amax"),
    "scatter": lambda x, i: x.scatter(1, i.expand(2, 1), 1.0),
    "embedding": lambda x, i: F.embedding(i, x),
}


@pytest.mark.parametrize("name", NOTHING)
def test_index_out_of_range_into_nothing_raises_as_on_the_cpu(name: str) -> None:
    f, x, i = NOTHING[name], torch.zeros(2, 0), torch.tensor([5])
    with pytest.raises((IndexError, RuntimeError)) as want:
        f(x, i)
    with pytest.raises(type(want.value), match="out of (bounds|range)"):
        f(x.to("wgpu"), i.to("wgpu"))


def test_mean_of_nothing_is_nan() -> None:
    assert_same(lambda x: (x.mean(), x.mean(0), x.sum(0), x.T.mean(1)), normal(0, 3))


def test_ctc_loss_and_its_gradient_stay_on_their_device() -> None:
    wgpu.set_fallback_error(False)
    warnings.filterwarnings("ignore", "wgpu: .* runs on the CPU")
    x, t = normal(6, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 3]])

    def run(x: Any, t: Any) -> list[Any]:
        x = x.clone().requires_grad_()
        loss = F.ctc_loss(x, t, (6, 6), (2, 2))
        loss.backward()
        return [loss.detach(), x.grad]

    assert_same(run, x, t)


def test_fallback_is_counted_warns_once_and_may_raise() -> None:
    x = normal(3, 3).to("wgpu")
    with pytest.raises(NotImplementedError, match="linalg_eig"):
        torch.linalg.eigvals(x)
    wgpu.set_fallback_error(False)
    before = wgpu.fallbacks().get("linalg_eig", 0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = torch.linalg.eigvals(x)
        torch.linalg.eigvals(x)
    assert len(seen) == (before == 0)
    assert wgpu.fallbacks()["linalg_eig"] == before + 2
    torch.testing.assert_close(y.cpu(), torch.linalg.eigvals(x.cpu()))


def test_dropout_same_seed_same_mask() -> None:
    kept = []
    for _ in range(2):
        torch.manual_seed(5)
        kept.append(F.dropout(torch.ones(1000, device="wgpu"), 0.3).cpu())
    assert torch.equal(*kept)
    assert 630 < int((kept[0] > 0).sum()) < 770


def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 10),
    )  # fmt: skip


def steps(optimizer: str, device: str, n: int, **kwargs: Any) -> list[float]:
    """Train on one batch; return the losses."""
    torch.manual_seed(0)
    model = net().to(device)
    x, y = normal(8, 1, 8, 8).to(device), (whole(8) % 10).to(device)
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01, **kwargs)
    losses = []
    for _ in range(n):
        step.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        step.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


@pytest.mark.parametrize(
    ("optimizer", "kwargs"),
    [
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"fused": True, "momentum": 0.9, "weight_decay": 0.1}),
        ("Adam", {"fused": True, "amsgrad": True}),
        ("AdamW", {}),
        ("AdamW", {"fused": True, "maximize": True}),
    ],
)
def test_training_losses_equal_cpu(optimizer: str, kwargs: dict[str, Any]) -> None:
    cpu, gpu = (steps(optimizer, d, 6, **kwargs) for d in ("cpu", "wgpu"))
    assert gpu == pytest.approx(cpu, rel=2e-3, abs=2e-3)


def test_training_500_steps_memory_flat() -> None:
    steps("AdamW", "wgpu", 20)
    wgpu.synchronize()
    start = wgpu.memory_stats()
    losses = steps("AdamW", "wgpu", 500)
    wgpu.synchronize()
    end = wgpu.memory_stats()
    assert losses[-1] < 0.1
    assert end["allocated"] <= start["allocated"]
    # The losses kept for the end come from fresh blocks.
    assert end["reserved"] <= start["reserved"] + (1 << 20)


def test_save_and_load_keep_values_and_device() -> None:
    state = net().to("wgpu").state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    for place in (None, "cpu"):
        file.seek(0)
        for name, t in torch.load(file, map_location=place).items():
            assert t.device.type == (place or "wgpu")
            assert torch.equal(t.cpu(), state[name].cpu()), name


def test_data_ptr_differs_between_tensors_and_follows_views() -> None:
    x, y = (torch.zeros(4, device="wgpu") for _ in range(2))
    assert x.data_ptr() not in (0, y.data_ptr())
    assert x[2:].data_ptr() == x.data_ptr() + 8
