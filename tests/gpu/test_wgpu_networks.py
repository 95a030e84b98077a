"""Attention and recurrent layers by kernels of their own equal the CPU's, gradients included."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = [
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
    pytest.mark.usefixtures("no_fallback"),
]


def leaf(x: Any, device: str, dtype: Any = None) -> Any:
    return x.to(device=device, dtype=dtype or x.dtype).detach().clone().requires_grad_()


def assert_alike(run: Any, tolerance: float = 2e-5) -> None:
    for cpu, gpu in zip(run("cpu"), run("wgpu"), strict=True):
        assert gpu.device.type == "wgpu"
        torch.testing.assert_close(
            gpu.detach().cpu().float(), cpu.detach().float(), rtol=tolerance, atol=tolerance
        )


# batch, heads of queries and of keys, queries, keys, widths of keys and of values
SHAPES = [(2, 4, 4, 33, 33, 16, 16), (1, 4, 2, 5, 40, 8, 12), (1, 2, 1, 70, 67, 24, 9)]
# Sizes that take each tile, and more than one of it.
SHAPES += [(1, 1, 1, 130, 70, 64, 64), (1, 1, 1, 33, 129, 128, 100)]


@pytest.mark.parametrize("kind", ["all", "causal", "bool", "float"])
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_and_its_gradients_equal_cpu(kind: str, shape: tuple[int, ...]) -> None:
    b, h, own, rows, columns, d, e = shape
    g = torch.Generator().manual_seed(1)
    parts = [torch.randn(b, h, rows, d, generator=g), torch.randn(b, own, columns, d, generator=g)]
    parts += [torch.randn(b, own, columns, e, generator=g)]
    given = torch.randn(b, h, rows, e, generator=g)
    mask = None
    if kind == "bool":
        mask = torch.rand(rows, columns, generator=g) > 0.3
        # A row that sees nothing gives nothing.
        mask[0] = False
    if kind == "float":
        mask = torch.randn(b, 1, rows, columns, generator=g)

    def run(device: str) -> list[Any]:
        leaves = [leaf(t, device) for t in parts]
        y = F.scaled_dot_product_attention(
            *leaves,
            attn_mask=None if mask is None else mask.to(device),
            is_causal=kind == "causal",
            enable_gqa=h != own,
        )
        y.backward(given.to(device))
        return [y, *[t.grad for t in leaves]]

    assert_alike(run)


def test_attention_half_type_equals_cpu() -> None:
    g = torch.Generator().manual_seed(1)
    parts = [torch.randn(1, 2, 20, 16, generator=g) for _ in range(3)]

    def run(device: str) -> list[Any]:
        leaves = [leaf(t, device, torch.bfloat16) for t in parts]
        y = F.scaled_dot_product_attention(*leaves, is_causal=True)
        y.sum().backward()
        return [y, *[t.grad for t in leaves]]

    assert_alike(run, 5e-2)


@pytest.mark.parametrize("rows", [9, 70])
def test_attention_key_hidden_by_a_mask_is_not_read(rows: int) -> None:
    parts = [torch.ones(1, 1, rows, 8) for _ in range(3)]
    parts[1][..., 4, :] = parts[2][..., 4, :] = float("nan")
    mask = torch.ones(rows, rows, dtype=torch.bool)
    mask[:, 4] = False
    leaves = [part.to("wgpu").requires_grad_() for part in parts]
    y = F.scaled_dot_product_attention(*leaves, attn_mask=mask.to("wgpu"))
    y.sum().backward()
    assert torch.allclose(y.cpu(), torch.ones(1, 1, rows, 8), atol=1e-6)
    shares = torch.full((1, 1, rows, 8), rows / (rows - 1))
    shares[..., 4, :] = 0.0
    # Scores that are all the same have no slope.
    for leaf_of, expected in zip(leaves, [torch.zeros(1, 1, rows, 8)] * 2 + [shares], strict=True):
        assert torch.allclose(leaf_of.grad.cpu(), expected, atol=1e-5)


def test_attention_dropout_keeps_a_share_and_its_gradient_sees_the_same() -> None:
    torch.manual_seed(4)
    q = torch.zeros(1, 1, 64, 8, device="wgpu")
    k = torch.zeros(1, 1, 64, 8, device="wgpu")
    # With equal scores and the unit matrix for values the result is the weights that are left.
    v = torch.eye(64, device="wgpu")[None, None].requires_grad_()
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    y.backward(torch.eye(64, device="wgpu")[None, None])
    weights = y.detach().cpu()[0, 0] * 64
    kept = weights > 0
    assert 0.7 < float(kept.float().mean()) < 0.8
    assert torch.allclose(weights[kept], torch.tensor(4 / 3), atol=1e-5)
    torch.testing.assert_close(v.grad.cpu()[0, 0] * 64, weights.T, rtol=1e-5, atol=1e-5)


def test_attention_memory_grows_with_rows_and_not_their_square() -> None:
    q, k, v = (torch.randn(1, 1, 2048, 8, device="wgpu").requires_grad_() for _ in range(3))
    wgpu.synchronize()
    start = wgpu.memory_stats()["allocated"]
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    y.sum().backward()
    # The matrix of weights would be 16 MB; operands and gradients are 64 KB each.
    assert wgpu.memory_stats()["allocated"] - start < 1 << 20


def test_gradients_of_parts_of_one_tensor_need_no_copy() -> None:
    x = torch.randn(2, 9, 48, generator=torch.Generator().manual_seed(2))

    def run(device: str) -> list[Any]:
        whole = leaf(x, device)
        parts = [t.view(2, 9, 2, 8).transpose(1, 2) for t in whole.split(16, dim=2)]
        y = F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(2, 9, 16)
        before = wgpu.memory_stats()["dispatches"]
        y.backward(torch.ones(2, 9, 16).to(device))
        if device == "wgpu":
            # Two of attention, and the gradient goes into a leaf of its own as it is.
            assert wgpu.memory_stats()["dispatches"] - before <= 3
        return [y, whole.grad]

    assert_alike(run)


LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("LSTM", {}),
    ("GRU", {}),
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {"bidirectional": True, "num_layers": 2}),
    ("GRU", {"bidirectional": True, "bias": False}),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "kwargs"), LAYERS)
def test_recurrent_layer_and_its_gradients_equal_cpu(
    name: str, kwargs: dict[str, Any], packed: bool
) -> None:
    g = torch.Generator().manual_seed(1)
    torch.manual_seed(3)
    layer = getattr(nn, name)(5, 18, **kwargs)
    runs = layer.num_layers * (1 + layer.bidirectional)
    x = torch.randn(6, 4, 5, generator=g)
    states = [torch.randn(runs, 4, 18, generator=g) for _ in range(2 if name == "LSTM" else 1)]
    given = torch.randn(18 * (1 + layer.bidirectional), generator=g)

    def run(device: str) -> list[Any]:
        torch.manual_seed(3)
        model = getattr(nn, name)(5, 18, **kwargs).to(device)
        inputs = [leaf(t, device) for t in [x, *states]]
        data: Any = inputs[0]
        if packed:
            data = nn.utils.rnn.pack_padded_sequence(data, torch.tensor([6, 4, 4, 1]))
        y, last = model(data, tuple(inputs[1:]) if name == "LSTM" else inputs[1])
        y, last = y.data if packed else y, last if name == "LSTM" else (last,)
        loss = (y * y * given.to(device)).sum()
        if packed:
            loss = loss + sum((t.sin() * (i + 1)).sum() for i, t in enumerate(last))
        loss.backward()
        return [y, *last, *[t.grad for t in inputs], *[p.grad for p in model.parameters()]]

    assert_alike(run, 1e-5)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
def test_convolution_of_single_places_and_its_gradients_equal_cpu(
    batch: int, transposed: bool
) -> None:
    g = torch.Generator().manual_seed(1)
    parts = [torch.randn(batch, 5, 7, 6, generator=g)]
    parts += [torch.randn(*((5, 9) if transposed else (9, 5)), 1, 1, generator=g)]
    parts += [torch.randn(9, generator=g)]

    def run(device: str) -> list[Any]:
        leaves = [leaf(t, device) for t in parts]
        y = (F.conv_transpose2d if transposed else F.conv2d)(*leaves)
        (y * y).sum().backward()
        return [y, *[t.grad for t in leaves]]

    assert_alike(run)


# batch, groups, channels of a group going in and out, sizes, kernel, stride, padding, dilation. The
# sums of the one before the last are made in parts.
DEPTHWISE = [
    (2, 3, 1, 1, (17,), (4,), 3, 2, 1),
    (3, 4, 1, 1, (9, 8), (3, 3), 1, 1, 1),
    (2, 3, 1, 2, (11, 10), (5, 5), 2, 4, 2),
    (1, 2, 3, 4, (12, 9), (3, 2), 1, 0, 3),
    (2, 1, 1, 1, (90, 91), (3, 3), 1, 1, 1),
    (2, 3, 2, 1, (5, 6, 7), (3, 2, 3), 2, 1, 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("case", DEPTHWISE)
def test_weight_gradient_of_depthwise_convolution_is_its_definition(
    case: tuple[Any, ...], dtype: str
) -> None:
    batch, groups, own, out, sizes, kernel, stride, padding, dilation = case
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, groups * own, *sizes)).astype(dtype)
    outer = [
        (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(sizes, kernel)
    ]
    g = rng.standard_normal((batch, groups * out, *outer)).astype(dtype)
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *[(padding, padding)] * len(sizes)])
    padded = padded.reshape(batch, groups, own, *padded.shape[2:])
    parts = g.astype(np.float64).reshape(batch, groups, out, -1)
    want = np.zeros((groups, out, own, *kernel))
    for tap in np.ndindex(*kernel):
        at = [slice(dilation * t, dilation * t + stride * (n - 1) + 1, stride)
              for t, n in zip(tap, outer)]  # fmt: skip
        seen = padded[(slice(None),) * 3 + tuple(at)].reshape(batch, groups, own, -1)
        want[(slice(None),) * 3 + tap] = np.einsum("bgoe,bgce->goc", parts, seen)
    want = want.reshape(groups * out, own, *kernel)
    weight = torch.zeros(want.shape, dtype=getattr(torch, dtype), device="wgpu", requires_grad=True)
    data = torch.from_numpy(x).to("wgpu")
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(sizes)]
    y = conv(data, weight, None, stride, padding, dilation, groups)
    (found,) = torch.autograd.grad(y, weight, torch.from_numpy(g).to("wgpu"))
    # Float16 ones are exact sums of exact products, rounded once.
    error = abs(found.detach().cpu().numpy().astype(np.float64) - want)
    most = {"float32": 2e-6, "float16": 6e-4}[dtype]
    assert (error <= most * np.maximum(abs(want), np.sqrt((want**2).mean()))).all(), error.max()


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norm_of_no_rows_has_weights_without_gradients(name: str) -> None:
    # Memory that is used again holds what was there.
    for _ in range(4):
        torch.full((64,), 7.0, device="wgpu")
    x = torch.zeros(0, 3, device="wgpu", requires_grad=True)
    w = torch.ones(3, device="wgpu", requires_grad=True)
    getattr(F, name)(x, (3,), w).sum().backward()
    assert w.grad.cpu().tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 4, 3, 2)])
def test_cross_entropy_of_float64_is_the_cpus(shape: tuple[int, ...]) -> None:
    scores = torch.randn(shape, dtype=torch.float64)
    target = torch.randint(0, 4, shape[:1] + shape[2:] if len(shape) > 1 else ())
    weights = (None, torch.rand(4, dtype=torch.float64))
    settings = product(("mean", "sum", "none"), (-100, 1), (0.0, 0.3), weights)
    for reduction, ignored, smoothing, weight in settings:
        found = []
        for device in ("cpu", "wgpu"):
            x = leaf(scores, device)
            w = None if weight is None else weight.to(device)
            y = F.cross_entropy(
                x,
                target.to(device),
                w,
                reduction=reduction,
                ignore_index=ignored,
                label_smoothing=smoothing,
            )
            (y * 1.5).sum().backward()
            found.append((y.detach().cpu(), x.grad.cpu()))
        for ours, expected in zip(*found, strict=True):
            torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-13, equal_nan=True)
