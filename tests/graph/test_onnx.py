"""Modules written as ONNX models: checked by onnx and run by onnxruntime.

Without those packages only what is said of their absence is tested.
"""

from __future__ import annotations

import math
import sys

import graph_programs
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib._higher_order_ops import scan
from pytensorlib.export import Dim
from pytensorlib.onnx import OnnxExporterError
from pytensorlib.utils import _pytree as pytree

F = nn.functional
TOLERANCE = 1e-5  # of float32 sums in another order


def test_absent_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install onnx \(or pytensorlib\[onnx\]\)"):
        torch.onnx.export(nn.ReLU(), (torch.ones(1),))


def packages():
    onnx = pytest.importorskip("onnx", reason="onnx (the extra [onnx]) is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime (the extra [onnx]) is not installed")
    return onnx


class Of(nn.Module):
    """A module of a function."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def compared(program, module, args):
    """Compare a model with the module."""
    with torch.no_grad():
        want = [t for t in pytree.tree_leaves(module(*args)) if isinstance(t, torch.Tensor)]
    have = program(*args)
    assert len(have) == len(want)
    for a, b in zip(have, want, strict=True):
        assert a.dtype is b.dtype
        torch.testing.assert_close(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def written(module, args, others=(), opsets=(18, 25), **options):
    """Write a module, check the model, and compare it for the arguments and for others.

    The oldest and the newest version are tried with the arguments too.
    """
    onnx = packages()
    module = module.eval() if isinstance(module, nn.Module) else Of(module)
    for opset in () if "opset_version" in options else opsets:
        program = torch.onnx.export(module, args, **options, opset_version=opset)
        onnx.checker.check_model(program.model_proto, full_check=True)
        compared(program, module, args)
    program = torch.onnx.export(module, args, **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for case in (args, *others):
        compared(program, module, case)
    return program


torch.manual_seed(0)
X = torch.randn(4, 6)
POSITIVE = X.abs() + 0.1
Y = torch.randn(3, 4, 5)
IMAGE = torch.randn(2, 4, 8, 8)
SIGNAL = torch.randn(2, 4, 10)
VOLUME = torch.randn(1, 2, 4, 4, 4)
INDEX = torch.tensor([2, 0, 1, 1])

UNARY = """
    relu sigmoid tanh exp abs neg floor ceil sign sin cos tan atan sinh asinh erf square round trunc
    frac isnan isfinite log1p expm1 exp2 erfc deg2rad logical_not
""".split()
ACTIVATIONS = """
    silu mish gelu elu selu celu leaky_relu relu6 hardtanh hardsigmoid hardswish softplus logsigmoid
    softshrink hardshrink tanhshrink softsign glu
""".split()


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("names", [(torch, UNARY), (F, ACTIVATIONS)], ids=["torch", "functional"])
def test_functions_of_one_tensor(names, opset):
    home, every = names
    for name in every:
        written(lambda x, f=getattr(home, name): f(x), (X,), opset_version=opset)
    for name in ("log", "sqrt", "rsqrt", "reciprocal", "log2", "log10"):
        written(lambda x, f=getattr(torch, name): f(x), (POSITIVE,), opset_version=opset)


FUNCTIONS = {
    "arithmetic": lambda x: (x + 1, 2 - x, x * 3, x / 3, 3 / x, x**3, 2**x, x // 2, x % 2),
    "integers": lambda x: ((x * 10).long() // 3, (x * 10).long() % 3, (x * 10).long() / 3),
    "conditions": lambda x: ((x > 0) & (x < 1) | (x == 2), x != 0, ~(x > 0), x >= x),
    "choices": lambda x: (torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, -1e9)),
    "bounds": lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0), torch.maximum(x, -x)),
    "mixes": lambda x: (torch.lerp(x, x * 2, 0.3), torch.addcmul(x, x, x, value=2)),
    "division": lambda x: (torch.div(x, 0.7, rounding_mode="trunc"), torch.fmod(x, 0.7)),
    "types": lambda x: (x.to(torch.int64) + 1, x.half().float(), x.bool()),
    "sums": lambda x: (x.sum(), x.sum(1), x.sum((0, 1), keepdim=True), (x > 0).sum(1)),
    "means": lambda x: (x.mean(), x.mean(-1), x.std(1), x.var(1, unbiased=False, keepdim=True)),
    "spreads": lambda x: torch.var_mean(x, 1),
    "extremes": lambda x: (x.max(), x.max(1), x.min(1, keepdim=True), x.amax(1), x.argmax(1)),
    "truths": lambda x: ((x > 0).any(), (x > 0).any(1), (x > 0).all()),
    "norms": lambda x: (x.norm(), x.norm(1, dim=1), F.normalize(x), torch.linalg.norm(x, dim=-1)),
    "exponentials": lambda x: (x.softmax(-1), x.log_softmax(0), x.logsumexp(1), x.cumsum(1)),
    "orders": lambda x: (x.topk(2), x.sort(1, descending=True), x.argsort(0)),
    "products": lambda x: (x @ x.T, torch.outer(x[0], x[1]), torch.einsum("ij,kj->ik", x, x)),
    "distances": lambda x: (torch.cdist(x, x * 2), F.cosine_similarity(x, x * 2 + 1)),
    "differences": lambda x: (torch.diff(x), torch.diff(x > 0, dim=0)),
}


FUNCTIONS |= {
    "angles": lambda x: (torch.atan2(x, x.flip(0)), torch.hypot(x, x * 2), torch.sinc(x)),
    "logarithms": lambda x: (
        torch.logaddexp(x, -x), torch.xlogy(x.abs(), x.abs()), torch.logit(x.sigmoid())
    ),
    "special values": lambda x: (
        (x / (x > 0).float()).nan_to_num(1.0), torch.isposinf(x / 0), torch.isneginf(x / 0),
        torch.heaviside(x.relu(), x), torch.signbit(x), torch.fmax(x, x.sqrt()),
    ),
    "losses": lambda x: (
        F.binary_cross_entropy(x.sigmoid(), x.abs().clamp(max=1)),
        F.binary_cross_entropy_with_logits(x, x.sigmoid(), pos_weight=x[0].abs()),
        F.smooth_l1_loss(x, -x, beta=0.5), F.huber_loss(x, -x, delta=0.7),
        F.kl_div(x.log_softmax(1), x.flip(0).softmax(1), reduction="sum"),
    ),
    "stacks": lambda x: (torch.hstack([x, x]), torch.vstack([x, x]), torch.dstack([x, x])),
    "diagonals": lambda x: (x.trace(), torch.diag(x[0]), torch.diag(x), torch.diag_embed(x)),
    "rows": lambda x: (
        x.index_add(0, torch.tensor([0, 2, 0]), x[:3], alpha=2),
        x.index_copy(0, torch.tensor([3, 1]), x[:2]), x.index_fill(1, torch.tensor([0, 5]), 7.0),
    ),
    "buckets": lambda x: (
        torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
        torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x, right=True),
    ),
    "vectors": lambda x: (
        torch.linalg.cross(x[:, :3], x[:, 3:]), torch.inner(x, x), torch.aminmax(x, dim=1),
        torch.addmv(x[:, 0], x, x[0], beta=0.5, alpha=2),
    ),
    "windows": lambda x: (x.unfold(1, 3, 2), F.fold(F.unfold(x[None, None], 2), (4, 6), 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_elements_and_rows(name):
    written(FUNCTIONS[name], (X,))


LAYOUTS = {
    "views": lambda x: (x.view(-1, 5), x.reshape(4, 15), x.flatten(1), x.unflatten(1, (2, 2))),
    "orders": lambda x: (x.permute(2, 0, 1), x.transpose(1, 2), x.mT, x.movedim(0, 2)),
    "ones": lambda x: (x[:1].squeeze(0), x.unsqueeze(1), x[:, :1].expand(3, 4, 5)),
    "copies": lambda x: (x.repeat(1, 2, 1), torch.tile(x, (2, 1)), x.repeat_interleave(2, 1)),
    "joins": lambda x: (torch.cat([x, x], 1), torch.stack([x, x], -1)),
    "parts": lambda x: (x.split(2, 1), x.split([1, 3], 1), x.chunk(2, 2), x.unbind(0)),
    "slices": lambda x: (x[:, 1:3, ::2], x[..., -1], x[:, None, -2:], x.narrow(1, 1, 2)),
    "turns": lambda x: (x.flip(1), x.roll(1, 0), x.roll((1, 2), (0, 1))),
    "triangles": lambda x: (x.triu(), x.tril(1), x.diagonal(0, 1, 2)),
    "made": lambda x: torch.ones_like(x) + torch.zeros(3, 4, 5) + torch.full((5,), 2.0) + x,
    "ranges": lambda x: (torch.arange(5) + x, torch.arange(0, 1, 0.2) * x, torch.eye(5)),
    "grids": lambda x: torch.meshgrid(torch.arange(2), torch.arange(3), indexing="xy"),
    "found": lambda x: ((x > 0).nonzero(), x[x > 0], x.masked_select(x > 0)),
    "constants": lambda x: (x + torch.tensor(2.0), x + torch.tensor([1.0, 2, 3, 4, 5])),
    "triangle indices": lambda x: x[torch.tril_indices(3, 3)[0]],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_functions_that_move_elements(name):
    written(LAYOUTS[name], (Y,))


INDICES = {
    "one": lambda x, i: (x[i], x[:, i], x.index_select(1, i), F.embedding(i, x[0])),
    "many": lambda x, i: (x[i, i], x[:, i, i], x[i, :, i]),
    "gathered": lambda x, i: x.gather(1, i[None, :, None].expand(3, 4, 5)),
    "scattered": lambda x, i: x.scatter(1, i[None, :, None].expand(3, 4, 5), 0.0),
    "added": lambda x, i: x.scatter_add(1, i[None, :, None].expand(3, 4, 5), x),
    "along": lambda x, i: torch.take_along_dim(x, i[None, :, None], 1),
    "hot": lambda x, i: F.one_hot(i, 5),
}


@pytest.mark.parametrize("name", INDICES)
def test_functions_of_indices(name):
    written(INDICES[name], (Y, INDEX))


LAYERS = {
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1), SIGNAL),
    "groups": (nn.Conv2d(4, 8, 3, groups=2, dilation=2), IMAGE),
    "same": (nn.Conv2d(4, 4, 4, padding="same"), IMAGE),
    "conv3d": (nn.Conv3d(2, 3, 2), VOLUME),
    "transposed": (nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), IMAGE),
    "no batch": (nn.Conv2d(4, 3, 3, bias=False), IMAGE[0]),
    "reflected": (nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), IMAGE),
    "max pool": (nn.MaxPool2d(3, 2, 1, return_indices=True), IMAGE),
    "ceil": (nn.MaxPool2d(3, 2, ceil_mode=True), IMAGE),
    "average": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "adaptive": (nn.AdaptiveAvgPool2d(3), IMAGE),
    "adaptive line": (nn.AdaptiveAvgPool1d(5), SIGNAL),
    "batch norm": (nn.BatchNorm1d(4), SIGNAL),
    "instance norm": (nn.InstanceNorm2d(4, affine=True), IMAGE),
    "group norm": (nn.GroupNorm(2, 4), IMAGE),
    "layer norm": (nn.LayerNorm([8, 8]), IMAGE),
    "layer norm without weights": (nn.LayerNorm(8, elementwise_affine=False), IMAGE),
    "rms norm": (nn.RMSNorm(8), IMAGE),
    "prelu": (nn.PReLU(4), IMAGE),
    "local response": (nn.LocalResponseNorm(2), IMAGE),
    "shuffle": (nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2)), IMAGE),
    "channels": (nn.ChannelShuffle(2), IMAGE),
    "unfold": (nn.Unfold(3, padding=1), IMAGE),
    "nearest": (nn.Upsample(scale_factor=2), IMAGE),
    "bilinear": (nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), IMAGE),
    "line": (nn.Upsample(size=7, mode="linear"), SIGNAL),
    "pads": (nn.Sequential(nn.ZeroPad2d(1), nn.ReflectionPad2d(2), nn.ReplicationPad2d(1)), IMAGE),
    "linear": (nn.Linear(8, 3), IMAGE),
    "embedding": (nn.Embedding(10, 4), torch.tensor([[1, 2], [3, 4]])),
    "LSTM": (nn.LSTM(10, 7, 2, batch_first=True), SIGNAL),
    "LSTM both ways": (nn.LSTM(10, 7, 2, bidirectional=True), SIGNAL),
    "GRU": (nn.GRU(10, 7, 2, bidirectional=True, batch_first=True), SIGNAL),
    "RNN": (nn.RNN(10, 7, nonlinearity="relu", bidirectional=True), SIGNAL),
    "cell": (nn.LSTMCell(6, 7), X),
    "gated cell": (nn.GRUCell(6, 7), X),
    "encoder": (nn.TransformerEncoderLayer(10, 2, 16, batch_first=True), SIGNAL),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    module, x = LAYERS[name]
    written(module, (x,))


VISION = {
    "interpolate": lambda x: (
        F.interpolate(x, size=(5, 11), mode="bilinear"),
        F.interpolate(x, scale_factor=2, mode="bicubic"),
        F.interpolate(x, size=(7, 5)),
        F.interpolate(x, size=(4, 4), mode="area"),
    ),
    "grid_sample": lambda x: (
        F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False),
        F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), "nearest", "border", align_corners=True),
    ),
    "affine_grid": lambda x: F.affine_grid(x[:, 0, :2, :3], (2, 4, 5, 5), align_corners=False),
    "attention": lambda x: (
        F.scaled_dot_product_attention(x, x, x),
        F.scaled_dot_product_attention(x, x, x, is_causal=True),
        F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(8, 8).tril().bool()),
        F.scaled_dot_product_attention(x, x, x, attn_mask=x),
        F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True),
    ),
    "detections": lambda x: (
        x[:, 0].flatten(1).topk(5),
        x[:, 1].flatten(1).sigmoid().max(1),
        (x[:, 0, 0].sigmoid() > 0.5).nonzero(),
    ),
}


@pytest.mark.parametrize("name", VISION)
def test_functions_of_images(name):
    written(VISION[name], (IMAGE,), opsets=(25,) if name == "affine_grid" else (18, 25))


def test_writes_and_views_of_what_is_written_to():
    def cache(k, v, position):
        kept = torch.zeros(2, 6, 4)
        kept[:, 2:3] = k
        kept[:, 0] = v[:, 0]
        kept[1].mul_(2)
        rows = kept.view(12, 4)
        rows[3] += 1
        kept.transpose(0, 1)[5] = 7.0
        kept[:, ::2] = 3.0
        kept[torch.tensor([0, 1]), position] = v[:, 0]
        left, right = kept.chunk(2, 2)
        left.mul_(3)
        right.zero_()
        return kept, rows, left

    written(cache, (torch.randn(2, 1, 4), torch.randn(2, 1, 4), torch.tensor([1, 4])))


class Block(nn.Module):
    """A residual block."""

    def __init__(self, c, stride=1):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, stride, 1, bias=False)
        self.b, self.n, self.m = nn.Conv2d(c, c, 3, 1, 1), nn.BatchNorm2d(c), nn.BatchNorm2d(c)
        self.down = nn.Conv2d(c, c, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.n(self.a(x)), inplace=True)
        y = self.m(self.b(y))
        y += self.down(x)
        return F.relu(y)


class Inverted(nn.Module):
    """A block of a mobile network, with squeeze and excitation."""

    def __init__(self, c):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(c, 2 * c, 1), nn.BatchNorm2d(2 * c), nn.Hardswish())
        self.deep = nn.Conv2d(2 * c, 2 * c, 3, padding=1, groups=2 * c)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(2 * c, 2 * c, 1))
        self.narrow = nn.Conv2d(2 * c, c, 1)

    def forward(self, x):
        y = self.deep(self.wide(x))
        return x + self.narrow(y * F.hardsigmoid(self.gate(y)))


class UNet(nn.Module):
    """Down and up again, with what was there before."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.c, self.norm = nn.Conv2d(16, 2, 3, padding=1), nn.GroupNorm(4, 8)

    def forward(self, x):
        a = F.silu(self.norm(self.a(x)))
        b = F.silu(self.b(F.max_pool2d(a, 2)))
        return self.c(torch.cat([self.up(b), a], 1))


class ViT(nn.Module):
    """Patches, a class token, positions and encoder layers."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(4, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 5, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(16, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.layers(x)[:, 0])


class GPT(nn.Module):
    """One layer that takes what it kept of the tokens before, and gives it back longer."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(32, 16)
        self.qkv, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)
        self.head = nn.Linear(16, 20, bias=False)

    def forward(self, ids, keys, values):
        n, before = ids.shape[1], keys.shape[2]
        x = self.tokens(ids) + self.places(torch.arange(n) + before)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = (t.view(t.shape[0], n, 2, 8).transpose(1, 2) for t in (q, k, v))
        k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        seen = torch.ones(n, before + n, dtype=torch.bool).tril(before)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(8)).masked_fill(~seen, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(ids.shape[0], n, 16)
        return self.head(x + self.out(y)), k, v


class Bert(nn.Module):
    """Embeddings of three kinds, encoder layers that see a mask, and a pooled state."""

    def __init__(self):
        super().__init__()
        self.words, self.kinds = nn.Embedding(20, 16, padding_idx=0), nn.Embedding(2, 16)
        self.register_buffer("numbers", torch.arange(32)[None], persistent=False)
        self.places, self.norm = nn.Embedding(32, 16), nn.LayerNorm(16, eps=1e-12)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pool = nn.Linear(16, 16)

    def forward(self, ids, kinds, mask):
        x = self.words(ids) + self.kinds(kinds) + self.places(self.numbers[:, : ids.shape[1]])
        x = self.layers(self.norm(x), src_key_padding_mask=mask == 0)
        return x, torch.tanh(self.pool(x[:, 0]))


NETWORKS = {
    "ResNet": lambda: nn.Sequential(Block(4), Block(4, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "MobileNet": lambda: nn.Sequential(Inverted(4), nn.Hardswish(), Inverted(4)),
    "UNet": UNet,
    "ViT": ViT,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_images_with_an_open_batch(name):
    torch.manual_seed(1)
    batch = Dim("batch")
    written(
        NETWORKS[name](),
        (IMAGE,),
        others=[(torch.randn(5, 4, 8, 8),), (torch.randn(1, 4, 8, 8),)],
        dynamic_shapes=({0: batch},),
    )


def test_fully_convolutional_network_with_open_height_and_width():
    torch.manual_seed(1)
    sizes = {0: Dim("batch"), 2: 2 * Dim("height"), 3: 2 * Dim("width")}
    written(UNet(), (IMAGE,), others=[(torch.randn(1, 4, 12, 6),)], dynamic_shapes=(sizes,))


OPEN = graph_programs.open_programs(torch)


@pytest.mark.parametrize("name", OPEN)
def test_functions_with_open_sizes(name):
    batch = Dim("batch")
    written(
        OPEN[name],
        (torch.randn(2, 6, 8), torch.randn(2, 5, 8)),
        others=[(torch.randn(3, 9, 8), torch.randn(3, 4, 8))],
        dynamic_shapes=(({0: batch, 1: Dim("length")}, {0: batch, 1: Dim("other")}),),
    )


def test_gpt_with_a_cache_continues_with_what_it_gave():
    torch.manual_seed(1)
    net = GPT()
    batch, new, before = Dim("batch"), Dim("new", max=16), Dim("before", max=16)
    ids, kept = torch.randint(0, 20, (2, 3)), torch.randn(2, 2, 5, 8)
    program = written(
        net,
        (ids, kept, kept + 1),
        others=[(torch.randint(0, 20, (1, 2)), *torch.randn(2, 1, 2, 7, 8))],
        dynamic_shapes=({0: batch, 1: new}, {0: batch, 2: before}, {0: batch, 2: before}),
    )
    with torch.no_grad():
        first = program(ids, kept, kept + 1)
        step = torch.randint(0, 20, (2, 2))
        whole = net(torch.cat([ids, step], 1), kept, kept + 1)[0][:, 3:]
    torch.testing.assert_close(program(step, *first[1:])[0], whole, rtol=1e-4, atol=1e-5)


def test_bert_with_open_batch_and_length():
    torch.manual_seed(1)
    batch, length = Dim("batch"), Dim("length", max=32)

    def case(n, t):
        return torch.randint(1, 20, (n, t)), torch.zeros(n, t).long(), torch.ones(n, t).long()

    ids, kinds, mask = case(2, 6)
    mask[1, 4:] = 0
    written(
        Bert(),
        (ids, kinds, mask),
        others=[case(3, 9)],
        dynamic_shapes=({0: batch, 1: length},) * 3,
    )


def test_recurrent_network_with_open_batch_and_length():
    shapes = ({0: Dim("batch"), 1: Dim("length")},)
    written(
        nn.LSTM(5, 7, 2, batch_first=True),
        (torch.randn(2, 6, 5),),
        others=[(torch.randn(3, 9, 5),)],
        dynamic_shapes=shapes,
    )


def test_network_of_the_demo():
    from pytensorlib.examples.digits import DigitNet

    batch = {0: Dim("batch")}
    digits = torch.randn(3, 1, 8, 8)
    written(DigitNet(), (digits,), others=[(digits[:1],)], dynamic_shapes=(batch,))


def test_branch_and_loop_are_nodes():
    def program(x):
        branch = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        return branch, *torch.while_loop(
            lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x)
        )

    def rows(x):
        return scan(lambda c, x: (c * 0.5 + x, c.sin()), torch.zeros(3), x, reverse=True)

    written(rows, (torch.randn(4, 3),))
    made = written(program, (torch.ones(3),), others=[(-torch.ones(3),)])
    assert {"If", "Loop"} <= {n.op_type for n in made.model_proto.graph.node}


def test_names_of_inputs_outputs_and_sizes_are_those_that_were_asked_for(tmp_path):
    onnx = packages()
    net = nn.Linear(2, 3)
    path = tmp_path / "net.onnx"
    torch.onnx.export(
        net, (torch.ones(4, 2),), path, input_names=["x"], output_names=["y"],
        dynamic_axes={"x": {0: "rows"}, "y": {0: "rows"}}, opset_version=18,
    )  # fmt: skip
    model = onnx.load(path)
    assert [o.version for o in model.opset_import] == [18]
    assert [i.name for i in model.graph.input] == ["x"]
    assert [o.name for o in model.graph.output] == ["y"]
    for info in (*model.graph.input, *model.graph.output):
        assert info.type.tensor_type.shape.dim[0].dim_param == "rows"
    assert sorted(t.name for t in model.graph.initializer) == ["bias", "weight"]
    made = torch.onnx.export(net, (torch.ones(4, 2),), dynamic_shapes=({0: Dim("n")},))
    assert made.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    made = torch.onnx.export(net, (torch.ones(4, 2),), dynamic_shapes=({0: "n"},))
    assert made.model_proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"
    for options in ({"input_names": ["a", "b"]}, {"output_names": ["a", "b"]}):
        with pytest.raises(ValueError, match="has 2 names, and the model has 1"):
            torch.onnx.export(net, (torch.ones(4, 2),), **options)


def test_weights_lie_beside_the_model_where_asked(tmp_path):
    onnx = packages()
    ort = pytest.importorskip("onnxruntime")
    net, x = nn.Linear(40, 30), torch.randn(2, 40)
    program = torch.onnx.export(net, (x,), input_names=["x"])
    path = tmp_path / "net.onnx"
    program.save(path, external_data=True)
    assert (tmp_path / "net.onnx.data").stat().st_size >= 40 * 30 * 4
    onnx.checker.check_model(str(path), full_check=True)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), net(x).detach(), rtol=1e-5, atol=1e-5)


def test_operator_that_onnx_has_not_is_named_with_its_line_and_can_be_given():
    packages()
    module = Of(lambda x: torch.special.bessel_j0(x))
    with pytest.raises(
        OnnxExporterError, match=r"aten\.special_bessel_j0.*cannot be written"
    ) as caught:
        torch.onnx.export(module, (torch.ones(2),))
    assert "test_onnx.py" in str(caught.value)
    table = {torch.ops.aten.special_bessel_j0.default: lambda writer, x: writer.op("Identity", x)}
    program = torch.onnx.export(module, (X,), custom_translation_table=table)
    assert torch.equal(program(X)[0], X)
    with pytest.raises(OnnxExporterError, match="call eval"):
        torch.onnx.export(nn.BatchNorm1d(4), (SIGNAL,))


def test_random_numbers_are_drawn_by_the_model():
    packages()
    program = torch.onnx.export(
        Of(lambda x: torch.rand(500) + torch.randn_like(x)), (torch.ones(500),)
    )
    first, second = program(torch.ones(500))[0], program(torch.ones(500))[0]
    assert not torch.equal(first, second)
    assert abs(first.mean().item() - 0.5) < 0.3  # six standard errors


def test_versions_that_are_not_known_are_refused():
    packages()
    with pytest.raises(ValueError, match="opset_version must be from 18 to 25, got 9"):
        torch.onnx.export(nn.ReLU(), (X,), opset_version=9)


def test_exported_program_is_written_and_verified():
    packages()
    program = torch.export.export(nn.Linear(6, 2), (X,))
    assert torch.onnx.export(program, (X,), verify=True).exported_program is program
