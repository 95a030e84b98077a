"""Where programs written for PyTorch went other ways here: PyTorch's answers, or closed forms."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from public_names import MEMBERS, owner, read

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.utils.data import DataLoader, RandomSampler, default_collate
from pytensorlib.utils.data._utils.collate import collate, default_collate_fn_map

# Members of PyTorch's classes that are not here, and why.
LACKING = {
    "torch.Tag": "members of an enumeration have names, the class does not",
    "torch.Tensor": "dimensions have no names",
    "torch.autograd.NestedIOFunction": "PyTorch no longer documents it",
    "torch.autograd.function.BackwardCFunction": "how PyTorch's engine calls it",
    "torch.autograd.profiler.FunctionEvent": "how PyTorch's profiler builds its tree",
    "torch.autograd.profiler.profile": "devices are not profiled apart",
    "torch.nn.attention.SDPBackend": "members of an enumeration have names, the class does not",
    "torch.nn.functional.ScalingType": "members of an enumeration have names, the class does not",
    "torch.nn.functional.SwizzleType": "members of an enumeration have names, the class does not",
    "torch.nn.modules.Module": "its devices are not supported",
    "torch.nn.modules.MultiheadAttention": "how PyTorch's fast path joins masks",
    "torch.optim.lr_scheduler.SequentialLR": "how PyTorch's constructor takes steps back",
}


def test_classes_have_the_members_that_pytorch_describes() -> None:
    lacking, seen = {}, 0
    for row, names in read(MEMBERS).items():
        module, _, kind = row.rpartition(".")
        place = owner(module)
        found = getattr(place, kind, None) if place is not None else None
        if found is None or (found.__doc__ or "").startswith("Not here:"):
            continue
        seen += len(names)
        if lost := [n for n in names if not hasattr(found, n)]:
            lacking[row] = lost
    assert seen > 400
    assert lacking.keys() == LACKING.keys()
    assert sum(map(len, lacking.values())) <= 26


# Modules that are compiled in place.


def test_module_compiles_in_place_and_gives_the_same_results() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
    x = torch.randn(5, 3)
    want = [net(x * i) for i in range(5)]
    assert net.compile() is None
    assert all(torch.equal(net(x * i), y) for i, y in enumerate(want))
    assert net._compiled_call_impl.counts["runs"] > 0
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    assert type(net) is nn.Sequential


def test_compiled_module_calls_its_hooks_and_copies_are_not_compiled() -> None:
    net, x, calls = nn.Linear(2, 2), torch.ones(1, 2), []
    net.compile(backend="eager")
    handle = net.register_forward_hook(lambda *_: calls.append(1))
    net(x)
    handle.remove()
    net(x)
    assert calls == [1]
    assert net._compiled_call_impl is not None
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other._compiled_call_impl is None
        assert torch.equal(other(x), net(x))
    with pytest.raises(RuntimeError, match="Unrecognized mode=foo"):
        net.compile(mode="foo")


STEP = """
import torch
import torch.nn.functional as F

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.AdamW(net.parameters())

@torch.compile(fullgraph=True)
def step(x, y):
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

for _ in range(5):
    step(torch.randn(4, 8), torch.tensor([0, 1, 2, 3]))
print(step.counts["runs"] > 0)
"""


def test_compiled_step_runs_together_in_a_script_that_imports_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytensorlib", "-c", STEP],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


# Padding that an encoder drops.


def encoder(**more: Any) -> Any:
    heads = more.pop("nhead", 2)
    layer = nn.TransformerEncoderLayer(8, heads, 16, **{"batch_first": True, **more})
    norm = nn.LayerNorm(8)
    nn.init.ones_(norm.bias)
    return nn.TransformerEncoder(layer, 2, norm).eval()


PADDING = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 1]]).bool()


@torch.no_grad()
def is_dropped(net: Any, padding: Any = PADDING, **more: Any) -> bool:
    """Say whether what comes out at padded places is the norm of zeros."""
    x = torch.randn(2, 4, 8)
    if not net.layers[0].self_attn.batch_first:
        return bool((net(x.transpose(0, 1), **more).transpose(0, 1)[PADDING] == 1).all())
    return bool((net(x, src_key_padding_mask=padding, **more)[PADDING] == 1).all())


def test_encoder_in_evaluation_drops_padding_at_the_end() -> None:
    # PyTorch's layers work on sequences without padding there, and fill it with zeros after them.
    assert is_dropped(encoder())
    assert is_dropped(encoder(activation="gelu"))
    assert is_dropped(encoder(activation=nn.GELU()))
    assert is_dropped(encoder(), torch.zeros(2, 4).masked_fill(PADDING, -math.inf))
    assert is_dropped(encoder(), mask=None)


def test_encoder_keeps_padding_where_pytorch_does() -> None:
    for more in (
        {"norm_first": True},
        {"activation": torch.sigmoid},
        {"batch_first": False},
        {"bias": False},
        {"nhead": 1},
    ):
        assert not is_dropped(encoder(**more)), more
    net = encoder()
    assert not is_dropped(net, torch.tensor([[0, 1, 0, 1], [0, 0, 0, 1]]).bool())
    assert not is_dropped(net, mask=torch.zeros(4, 4).bool())
    with torch.enable_grad():
        y = net(torch.randn(2, 4, 8), src_key_padding_mask=PADDING)
    assert not (y[PADDING] == 1).any()
    assert not is_dropped(net.train())
    kept = nn.TransformerEncoder(net.layers[0], 2, net.norm, enable_nested_tensor=False).eval()
    assert not is_dropped(kept)


def test_encoder_in_evaluation_leaves_what_is_no_padding_as_it_is() -> None:
    net, x = encoder(), torch.randn(2, 4, 8)
    with torch.no_grad():
        dropped = net(x, src_key_padding_mask=PADDING)
    kept = net(x, src_key_padding_mask=PADDING)
    assert torch.equal(dropped[~PADDING], kept[~PADDING])


# Batches.


class Point:
    def __init__(self, x: float) -> None:
        self.x = x


def join(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return Point(sum(p.x for p in batch))


def test_table_of_collate_takes_types_of_its_own() -> None:
    table = {**default_collate_fn_map, Point: join}
    point, numbers = collate([(Point(1), 2), (Point(3), 4)], collate_fn_map=table)
    assert (point.x, numbers.tolist()) == (4, [2, 4])
    arrays = collate([np.ones(2, np.int8)] * 2, collate_fn_map=table)
    assert arrays.dtype == torch.int8
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        collate([1, 2])


def test_loader_knows_what_is_added_to_the_table() -> None:
    with pytest.raises(TypeError, match=r"found <class '.*Point'>"):
        default_collate([Point(1)])
    default_collate_fn_map[Point] = join
    try:
        (batch,) = DataLoader([Point(1), Point(5)], batch_size=2)
    finally:
        del default_collate_fn_map[Point]
    assert batch.x == 6


def test_random_order_of_nothing_raises() -> None:
    for call in (
        lambda: DataLoader([], shuffle=True),
        lambda: RandomSampler([], replacement=True),
        lambda: RandomSampler(range(3), num_samples=0),
    ):
        with pytest.raises(ValueError, match="num_samples should be a positive integer value"):
            call()
    assert list(DataLoader([])) == []


# Small parts of `nn` and `autograd`.


def test_layers_of_complex_numbers_begin_with_pytorchs_numbers() -> None:
    torch.manual_seed(1)
    w = nn.Linear(2, 2, dtype=torch.complex64).weight
    want = [[0.3643 - 0.3121j, -0.1371 + 0.3319j], [-0.6657 + 0.4241j, -0.1455 + 0.3597j]]
    assert torch.allclose(w, torch.tensor(want), atol=1e-4)


def test_packed_sequences_convert_to_integers() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.tensor([1.5, 2.5]), torch.tensor([3.0])])
    for name, dtype in {
        "byte": torch.uint8, "char": torch.int8, "short": torch.int16,
        "int": torch.int32, "long": torch.int64,
    }.items():  # fmt: skip
        other = getattr(packed, name)()
        assert other.data.dtype == dtype
        assert (other.data.tolist(), other.batch_sizes.tolist()) == ([1, 3, 2], [2, 1])


def test_total_norm_has_no_gradient() -> None:
    p = nn.Parameter(torch.tensor([3.0, 4.0]))
    total = nn.utils.get_total_norm([p])
    assert (total.item(), total.requires_grad) == (5.0, False)


def test_synchronised_norm_takes_and_keeps_bias() -> None:
    assert nn.SyncBatchNorm(2, bias=False).bias is None
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2, bias=False))
    assert net.bias is None
    assert net.weight is not None


def test_settings_of_autograd_decorate_functions() -> None:
    @torch.autograd.set_multithreading_enabled(False)
    def add(x: int, y: int = 1) -> int:
        """Add."""
        return x + y

    assert (add(1), add(1, 2), add.__doc__) == (2, 3, "Add.")


# Gradients of the size and the direction of complex numbers.


def numerical(f: Any, z: Any, eps: float = 1e-6) -> Any:
    """Return the gradient of a real function of complex numbers, d/dx + i d/dy, by differences."""
    out = torch.zeros_like(z)
    for i in range(z.numel()):
        for part in (1, 1j):
            step = torch.zeros_like(z)
            step[i] = part * eps
            out[i] += part * (f(z + step) - f(z - step)).item() / (2 * eps)
    return out


Z = torch.tensor([1.5 - 0.5j, -0.3 + 0.8j, 2j, -1.0], dtype=torch.complex128)
W = torch.tensor([0.7 + 1.1j, -1.2 + 0.4j, 0.3 - 0.9j, 1.0 + 0.5j], dtype=torch.complex128)


def slope_of_size(z: Any) -> Any:
    """Return a real number made of the gradient of a sum of sizes."""
    if not z.requires_grad:
        z = z.detach().requires_grad_()
    (g,) = torch.autograd.grad((z * z).abs().pow(1.5).sum(), z, create_graph=True)
    return (g * W).real.sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda z: (z.sgn() * W).real.sum(),
        lambda z: (z.sgn() * z.conj() * z).imag.pow(2).sum(),
        slope_of_size,
    ],
)
def test_gradient_of_the_direction_of_complex_numbers_is_that_of_differences(f: Any) -> None:
    z = Z.clone().requires_grad_()
    (got,) = torch.autograd.grad(f(z), z)
    assert torch.allclose(got, numerical(lambda z: f(z).detach(), Z), rtol=1e-6, atol=1e-7)


def test_direction_of_zero_has_gradient_zero_of_every_order() -> None:
    z = torch.zeros(2, dtype=torch.complex128, requires_grad=True)
    (g,) = torch.autograd.grad(z.sgn().real.sum(), z, create_graph=True)
    (h,) = torch.autograd.grad(g.abs().sum(), z)
    assert g.tolist() == h.tolist() == [0, 0]


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
def test_norms_of_complex_numbers_have_second_derivatives(p: float) -> None:
    def f(z: Any) -> Any:
        z = z if z.requires_grad else z.detach().requires_grad_()
        (g,) = torch.autograd.grad(torch.linalg.vector_norm(z, p), z, create_graph=True)
        return (g * W).real.sum()

    z = Z.clone().requires_grad_()
    (got,) = torch.autograd.grad(f(z), z)
    assert torch.allclose(got, numerical(lambda z: f(z).detach(), Z), rtol=1e-5, atol=1e-6)


# Numbers that a type does not hold.


def assign(x: Any, key: Any, value: Any) -> None:
    x[key] = value


ONE = torch.tensor([0])
WRITES = {
    "one element": lambda x, v: assign(x, 0, v),
    "a slice": lambda x, v: assign(x, slice(None), v),
    "a mask": lambda x, v: assign(x, torch.tensor([True, False]), v),
    "an index": lambda x, v: assign(x, ONE, v),
    "index_fill": lambda x, v: x.index_fill(0, ONE, v),
    "scatter": lambda x, v: x.scatter(0, ONE, v),
    "scatter_": lambda x, v: x.scatter_(0, ONE, v, reduce="add"),
    "where": lambda x, v: torch.where(x > 1, x, v),
    "where's first": lambda x, v: torch.where(x > 1, v, x),
    "add": lambda x, v: torch.add(x, x, alpha=v),
    "sub": lambda x, v: x.sub(x, alpha=v),
    "rsub": lambda x, v: torch.rsub(x, x, alpha=v),
    "addcmul": lambda x, v: x.addcmul(x, x, value=v),
    "index_add": lambda x, v: x.index_add(0, ONE, x[:1], alpha=v),
    "addmm": lambda x, v: torch.addmm(x[None], x[None], x.new_ones(2, 2), alpha=v),
    "addmm's beta": lambda x, v: torch.addmm(x[None], x[None], x.new_ones(2, 2), beta=v),
    "addmv": lambda x, v: torch.addmv(x, x.new_ones(2, 2), x, alpha=v),
    "baddbmm": lambda x, v: torch.baddbmm(
        x[None, None], x[None, None], x.new_ones(1, 2, 2), beta=v
    ),
    "addbmm": lambda x, v: torch.addbmm(x[None], x[None, None], x.new_ones(1, 2, 2), alpha=v),
    "addr": lambda x, v: torch.addr(x.new_ones(2, 2), x, x, alpha=v),
    "pow": lambda x, v: x ** abs(v),
    "linspace": lambda x, v: torch.linspace(0, v, 3, dtype=x.dtype),
}


@pytest.mark.parametrize("name", WRITES)
def test_number_that_an_integer_type_does_not_hold_is_refused(name: str) -> None:
    for dtype, beyond in ((torch.uint8, 300), (torch.int8, -129), (torch.int32, 2**40)):
        x = torch.tensor([1, 2], dtype=dtype)
        with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
            WRITES[name](x, beyond)
        assert x.tolist() == [1, 2]
        WRITES[name](x.clone(), 100)


def test_assigned_numbers_follow_pytorch_at_the_edges() -> None:
    x = torch.tensor([1, 2], dtype=torch.uint8)
    x[0] = -1
    assert x.tolist() == [255, 2]
    for beyond in (-0.5, math.nan, math.inf, 1e10):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[0] = beyond
    # Products are made in the type of the result.
    bytes_ = torch.tensor([100, 20], dtype=torch.uint8)
    assert torch.addr(torch.ones(2), bytes_, bytes_).tolist() == [[10001, 2001], [2001, 401]]
    assert torch.addr(bytes_.int(), bytes_, bytes_, alpha=300)[0].tolist() == [3000100, 600020]
    # The type of the result counts, and where there is one number, only the first.
    assert torch.addr(x[1:], x[1:], x[1:].char(), alpha=300).tolist() == [[1202]]
    assert torch.linspace(0, 300, 1, dtype=torch.uint8).tolist() == [0]
    half = torch.zeros(1, dtype=torch.float16)
    half[0] = 70000
    assert half.tolist() == [math.inf]
    real = torch.zeros(1)
    real[0] = 3 + 0j
    assert real.tolist() == [3]
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]


# What a class of tensors is asked for.


class Asked(torch.Tensor):
    """Notes the functions that it is asked for."""

    calls: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_operators_ask_for_pytorchs_methods() -> None:
    x = torch.tensor([1.0, 2.0]).as_subclass(Asked)
    Asked.calls.clear()
    x + 1, 1 + x, x - 1, x * 2, 2 * x, x / 2, x % 2, x @ x, -x, +x, abs(x)
    x < 1, x <= 1, x > 1, x >= 1, x != 1
    y = x
    y += 1
    y -= 1
    y *= 2
    y /= 2
    names = "add add sub mul mul div remainder matmul neg positive abs lt le gt ge ne".split()
    names += "add_ sub_ mul_ div_".split()
    assert Asked.calls == [getattr(torch.Tensor, name) for name in names]


class Other:
    def __radd__(self, x: Any) -> str:
        return "the other one's"


def test_operand_that_no_tensor_takes_is_asked_after_the_class() -> None:
    x = torch.ones(1).as_subclass(Asked)
    assert x + Other() == "the other one's"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"
