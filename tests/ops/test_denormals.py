"""No denormal number is read or made on ordinary data, on zeros, or on data masked by -inf.

Some processors take a hundred cycles for each one. The floating-point unit notes whether there
was any, so every machine with such a register can tell.
"""

from __future__ import annotations

import itertools
import platform
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from op_calls import leaves, mapped, named, tensors
from op_db import OPS
from op_row import Op, Sample

import pytensorlib as torch

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the flags are x86's"),
]
F = torch.nn.functional
# MXCSR's bits for a denormal operand and for an underflow.
OPERAND, UNDERFLOW = 2, 16


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep all work on the thread whose flags are read."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def denormals(f: Callable[[], Any]) -> str:
    """Return which denormals `f` met, "" for none."""
    torch._C._float_exceptions()
    f()
    seen = torch._C._float_exceptions()
    return " ".join(name for bit, name in [(OPERAND, "read"), (UNDERFLOW, "made")] if seen & bit)


def both_ways(function: Callable[..., Any], call: Sample, x: list[Any]) -> None:
    got = function(*call.args, **call.kwargs)
    sums = [y.sum() for y in leaves(got) if y.requires_grad]
    if sums:
        torch.autograd.grad(sum(sums[1:], sums[0]), x, allow_unused=True)


def test_flags_are_raised_by_denormals() -> None:
    x = torch.full((100,), 1e-30)
    assert denormals(lambda: x + x) == ""
    assert denormals(lambda: x * x) == "made"
    tiny = torch.tensor([1e-40] * 100)
    assert denormals(lambda: tiny + x) == "read"


def normal(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: rng.standard_normal(a.shape)


def masked(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    def fill(a: np.ndarray) -> np.ndarray:
        return np.where(rng.random(a.shape) < 0.5, -np.inf, rng.standard_normal(a.shape))

    return fill


DATA: dict[str, Callable[[np.random.Generator], Callable[[np.ndarray], np.ndarray]]] = {
    "own": lambda rng: lambda a: a,
    "normal": normal,
    "zeros": lambda rng: np.zeros_like,
    "masked": masked,
}


# These drive what lies beside a diagonal to zero, and that is how they know that they are done.
ITERATIVE = {"linalg_eigh", "linalg_eigvalsh", "linalg_svd", "linalg_svdvals", "svd"}
ITERATIVE |= {"linalg_cond", "linalg_matrix_rank", "linalg_pinv", "nuclear_norm", "pinverse"}
ITERATIVE |= {"linalg_norm", "linalg_matrix_norm", "linalg_eig", "linalg_eigvals", "linalg_lstsq"}
# Householder's vectors of columns with infinities.
INFINITE = {"qr", "linalg_qr", "geqrf"}
# Powers on their way to zero, and slopes of Gamma numbers there, are denormal themselves.
DENORMAL = {"vander", "_standard_gamma"}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("op", named(OPS))
def test_operator_meets_no_denormals(op: Op, data: str) -> None:
    name = op.name.replace(".", "_")
    if name in ITERATIVE or (name in INFINITE and data == "masked"):
        pytest.skip("denormals are how it ends")
    function, fill = op.function(torch), DATA[data](np.random.default_rng(0))

    def change(a: np.ndarray) -> np.ndarray:
        return fill(a) if a.dtype == np.float64 and a.size else a

    for dtype in ("float32", "float64", "bfloat16"):
        if dtype not in op.dtypes:
            continue
        for sample in op.samples():
            args, kwargs = mapped(sample.args, change), mapped(sample.kwargs, change)
            call = tensors(Sample(args, kwargs), dtype)
            x = [t for t in leaves((call.args, call.kwargs)) if t.is_floating_point()]
            if op.differentiable:
                x = [t.requires_grad_() for t in x]
            try:
                found = denormals(lambda: both_ways(function, call, x))
            except (RuntimeError, ValueError, IndexError):
                # The operator refuses such data.
                continue
            assert found == "", (dtype, sample.kwargs, [tuple(t.shape) for t in x])


@pytest.mark.parametrize("data", ["normal", "zeros", "masked"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_function_of_one_to_three_tensors_meets_no_denormals(data: str, dtype: str) -> None:
    operator = type(torch.add)
    names = [n for n, f in vars(torch._C).items() if isinstance(f, operator)]
    # Matrices with infinities have no factors to speak of.
    refused = {"normal": ITERATIVE, "masked": INFINITE}.get(data, set())
    met, calls = {}, 0
    for name, count, shape in itertools.product(names, (1, 2, 3), ((33,), (8, 8))):
        fill = DATA[data](np.random.default_rng(0))
        x = [
            torch.from_numpy(np.array(fill(np.ones(shape)))).to(getattr(torch, dtype))
            for _ in range(count)
        ]
        call = Sample(tuple(t.requires_grad_() for t in x))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = denormals(lambda: both_ways(getattr(torch._C, name), call, x))
        except Exception:
            # It takes something else.
            continue
        calls += 1
        if found and name not in refused | DENORMAL:
            met[name, count, shape] = found
    assert not met
    assert calls > 450


@pytest.mark.parametrize("shape", [(4, 6), (40, 1000), (3, 300, 70)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_softmax_of_masked_rows_meets_no_denormals(shape: tuple[int, ...], dtype: str) -> None:
    x = masked(np.random.default_rng(1))(np.zeros(shape))
    x[0] = -np.inf
    t = torch.from_numpy(x).to(getattr(torch, dtype)).requires_grad_()
    target = torch.zeros(shape[:1] + shape[2:], dtype=torch.int64)
    for dim in range(len(shape)):
        for f in (torch.softmax, torch.log_softmax, torch.logsumexp, torch.logcumsumexp):
            assert denormals(lambda: both_ways(f, Sample((t, dim)), [t])) == "", (f, dim)
    assert denormals(lambda: both_ways(F.cross_entropy, Sample((t, target)), [t])) == ""


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float", "rows"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_meets_no_denormals(mask: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    q, k, v = (
        torch.from_numpy(rng.standard_normal((2, 3, 150, 16))).to(getattr(torch, dtype))
        for _ in range(3)
    )
    x = [t.requires_grad_() for t in (q, k, v)]
    keep = rng.random((150, 150)) < 0.5
    if mask == "rows":
        # Whole tiles of keys, and one query, see nothing.
        keep[:, :70] = False
        keep[5] = False
    bias = np.where(keep, rng.standard_normal(keep.shape), -np.inf)
    options: dict[str, dict[str, Any]] = {
        "none": {},
        "causal": {"is_causal": True},
        "bool": {"attn_mask": torch.from_numpy(keep)},
    }
    kwargs = options.get(mask, {"attn_mask": torch.from_numpy(bias).to(q.dtype)})
    call = Sample((q, k, v), kwargs)
    assert denormals(lambda: both_ways(F.scaled_dot_product_attention, call, x)) == ""


def test_exp_is_denormal_only_where_that_is_right() -> None:
    x = torch.tensor([-95.0, -103.0, -104.5, -1e30, -np.inf, 0.0] * 8)
    want = np.exp(np.array(x.tolist())).astype(np.float32)
    got = torch.exp(x)
    # The smallest denormals have few digits: one step of them.
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-7, atol=1.5e-45)
    assert got[0].item() == pytest.approx(5.5211e-42, rel=1e-4)
    assert not got[2:5].any()
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        low = torch.full((100,), -np.inf, dtype=dtype)
        for f in (torch.exp, torch.exp2, torch.sigmoid, F.softplus, F.logsigmoid, F.silu):
            assert denormals(lambda: f(low)) == "", (f, dtype)


LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: torch.nn.Linear(40, 30), (17, 40)),
    "conv1d": (lambda: torch.nn.Conv1d(3, 5, 4, stride=2, padding=1), (2, 3, 41)),
    "conv2d": (lambda: torch.nn.Conv2d(16, 16, 3, padding=1), (2, 16, 20, 20)),
    "conv2d_strided": (lambda: torch.nn.Conv2d(4, 8, 3, stride=2, bias=False), (2, 4, 17, 17)),
    "conv2d_depthwise": (lambda: torch.nn.Conv2d(8, 8, 3, padding=1, groups=8), (2, 8, 15, 15)),
    "conv3d": (lambda: torch.nn.Conv3d(2, 3, 3, padding=1), (1, 2, 6, 7, 8)),
    "conv_transpose2d": (lambda: torch.nn.ConvTranspose2d(4, 3, 3, stride=2), (2, 4, 9, 9)),
    "lstm": (lambda: torch.nn.LSTM(9, 20, num_layers=2), (12, 3, 9)),
    "gru": (lambda: torch.nn.GRU(9, 20, bidirectional=True), (12, 3, 9)),
    "rnn": (lambda: torch.nn.RNN(9, 20), (12, 3, 9)),
    "batch_norm": (lambda: torch.nn.BatchNorm2d(5), (4, 5, 9, 9)),
    "layer_norm": (lambda: torch.nn.LayerNorm(50), (6, 50)),
    "group_norm": (lambda: torch.nn.GroupNorm(2, 6), (3, 6, 7, 7)),
    "instance_norm": (lambda: torch.nn.InstanceNorm2d(6, affine=True), (3, 6, 7, 7)),
    "rms_norm": (lambda: torch.nn.RMSNorm(50), (6, 50)),
    "transformer": (
        lambda: torch.nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True),
        (2, 20, 32),
    ),
}


@pytest.mark.parametrize("data", ["normal", "zeros"])
@pytest.mark.parametrize("name", LAYERS)
def test_training_a_layer_meets_no_denormals(name: str, data: str) -> None:
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    layer = make()
    x = torch.from_numpy(DATA[data](np.random.default_rng(3))(np.zeros(shape))).float()
    p = list(layer.parameters())
    optimizers = [
        torch.optim.SGD(p, 0.01, momentum=0.9),
        torch.optim.AdamW(p, 0.01),
        torch.optim.RMSprop(p, 0.01),
    ]

    def step() -> None:
        y = layer(x)
        y = y[0] if isinstance(y, tuple) else y
        (y.square().mean() + F.gelu(y).mean()).backward()
        for optimizer in optimizers:
            optimizer.step()

    for _ in range(3):
        assert denormals(step) == ""
