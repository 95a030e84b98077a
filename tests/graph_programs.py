"""Programs whose graphs are compared with PyTorch's.

``python tests/graph_programs.py`` in a Python that has PyTorch writes the texts of its graphs to
``tests/data/graph_texts.json``.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).resolve().parent / "data" / "graph_texts.json"


class Pair(NamedTuple):
    """A result with names."""

    first: Any
    second: Any


def traced_programs(torch: Any) -> dict[str, Any]:
    """Return what `symbolic_trace` is given, by name."""
    nn, F = torch.nn, torch.nn.functional

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p = nn.Parameter(torch.zeros(3, 4))
            self.linear = nn.Linear(4, 5)
            self.seq = nn.Sequential(nn.ReLU(), nn.Linear(5, 5))
            self.register_buffer("kept", torch.ones(2))
            self.plain = torch.ones(2)

        def forward(self, x, y=None, *, k=3):
            z = torch.topk(torch.sum(self.linear(x + self.p).relu(), dim=-1), k)
            q = self.seq(x[:, 1:3, ..., None])
            a, b = z[0], z[1]
            c = x.size(0) + 1
            d = x.view(c // 2, -1).to(torch.float16, device=torch.device("cpu"))
            e = torch.cat([x, x], dim=1) ** 2
            F.relu(e, inplace=True)
            g = -e @ x.T + self.kept * self.plain
            h = {"a": g, "b": (a, [b, slice(1, x.shape[0])])}
            i = F.softmax(g, dim=-1, dtype=torch.float32) < 3
            j = float("inf") * g + math.sqrt(2)
            return h, d, i, j, q, torch.zeros(c, dtype=torch.float32), operator.add(x, 1), 2**x

    class Functions(nn.Module):
        def forward(self, x, w, b):
            a = F.linear(x, w, b)
            a = F.gelu(a)
            a = F.conv2d(a, w)
            a = F.layer_norm(a, (3,))
            a = F.dropout(a, 0.1, self.training)
            a = F.cross_entropy(a, b)
            a = F.scaled_dot_product_attention(a, a, a)
            a = F.interpolate(a, scale_factor=2)
            a = F.pad(a, (1, 1))
            a = F.max_pool2d(a, 2)
            a = F.avg_pool2d(a, 2)
            a = F.adaptive_avg_pool2d(a, 1)
            a = F.silu(F.elu(F.leaky_relu(F.hardswish(a))))
            a = F.log_softmax(a, -1)
            a = F.mse_loss(F.normalize(a), b)
            a = F.embedding(a, w)
            a = F.batch_norm(a, w, b)
            a = F.grid_sample(F.unfold(a, 2), b)
            a = F.logsigmoid(F.softplus(a))
            a = F.conv_transpose2d(a, w)
            a = F.prelu(F.group_norm(a, 2), w)
            a = F.pixel_shuffle(a, 2)
            return F.cosine_similarity(a, b)

    class Methods(nn.Module):
        def forward(self, a, b):
            a = torch.where(a > 0, a, b)
            a = torch.einsum("ij,jk->ik", a, b)
            a = torch.special.erf(torch.fft.fft(torch.linalg.norm(a)))
            a = torch.stack([torch.arange(3) + a, b])
            a, c = torch.chunk(torch.split(a, 2)[0], 2, dim=1)
            a = torch.abs(torch.bmm(a, c)).clamp(min=0).max(dim=1)[0]
            a = a.mean((1, 2), keepdim=True)
            a += c
            a @= c
            a = abs(~a)
            a = a.masked_fill(a == 0, float("-inf"))
            a = a.contiguous(memory_format=torch.channels_last).type(torch.int64).float()
            a = torch.meshgrid(torch.zeros_like(a), b, indexing="ij")
            a = math.sqrt(torch.svd(a[0]).U.shape[0])
            a = (a // 2 & 1 | 3 ^ 5 << 2 >> 1) % 2
            return b.new_zeros((a < 1) & (a != 2)), Pair(a, [b, None, 1.5, "text"])

    def unpacked(x, *args, y=1, **named):
        d, e = x
        return d + e, args, named, y

    def structured(a, b):
        return a["x"] + b[0]

    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(4, 4)
    )
    return {
        "mixed": (Mixed(), None),
        "functions": (Functions(), None),
        "methods": (Methods(), None),
        "sequential": (net, None),
        "unpacked": (unpacked, None),
        "lambda": (lambda x: torch.neg(x) * 2, None),
        "specialized": (Mixed(), {"k": 1}),
        "structured": (structured, {"a": {"x": torch.fx.PH}, "b": [torch.fx.PH, 3]}),
    }


def refused_programs(torch: Any) -> dict[str, Callable[..., Any]]:
    """Return functions that cannot be traced."""

    def branch(x):
        return x if x.sum() > 0 else -x

    def loop(x):
        return list(x)

    def length(x):
        return len(x)

    def number(x):
        return int(x)

    return {f.__name__: f for f in (branch, loop, length, number)}


def exported_programs(torch: Any) -> dict[str, Any]:
    """Return modules that are exported, their arguments and which sizes are open."""
    nn, F, Dim = torch.nn, torch.nn.functional, torch.export.Dim
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
            self.linear, self.emb, self.ln = nn.Linear(4, 5), nn.Embedding(10, 4), nn.LayerNorm(5)
            self.register_buffer("buf", torch.ones(5))
            self.drop = nn.Dropout(0.1)

        def forward(self, x, ids):
            y = F.relu(self.bn(self.conv(x)), inplace=True)
            y = F.adaptive_avg_pool2d(y, 1).flatten(1)
            y = self.drop(self.linear(y) + self.buf)
            z = self.emb(ids).mean(1)
            self.buf.add_(1)
            q = y.view(y.shape[0], 1, -1).transpose(1, 2)
            out = F.softmax(self.ln(y), -1)
            return {"out": out, "z": z, "q": F.scaled_dot_product_attention(q, q, q)}

    class Methods(nn.Module):
        def forward(self, x, y):
            parts = [
                x[:, 1:2, None], x[..., 0], x[y], x[0], 1 - x, 2**x, x // 2, 1 / x, x % 2, x.mT,
                torch.zeros(2, 3, device=x.device), torch.arange(x.shape[0]), x.sum(0), x.max(),
                x.max(1), x.split(2, 0), torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, 1.0),
                F.cross_entropy(x[:, :, 0], y[:3]), torch.full((2,), 3), x.std(1), x.norm(),
                x.expand(3, 4, 5), torch.stack([x, x]), F.one_hot(y, 5), torch.ones_like(x),
                x.repeat(1, 2, 1), x.unbind(0), F.pad(x, (1, 1)), x.cumsum(0), x.reshape(-1),
                torch.einsum("abc,abc->a", x, x), x.squeeze(0), x.permute(2, 0, 1), x.topk(2),
                x.sort(), x.argmax(1), x.gather(0, y[:, None, None]), x.triu(), F.normalize(x),
                x.clamp(0, 1), x.clamp(min=0.0), x.var(1, keepdim=True), x.roll(1, 0), x.any(),
                torch.outer(x[0, 0], x[0, 0]), x.index_select(0, y), x.mean(-1), x.new_zeros(2),
                F.interpolate(x[None], scale_factor=2),
            ]  # fmt: skip
            return [p for p in parts if isinstance(p, torch.Tensor)]

    class Writes(nn.Module):
        def forward(self, x, y):
            q = x.clone()
            q[0] = 1
            q[:, 0] = x[:, 0]
            q[y] = 0.0
            return q + torch.tensor([1.0, 2.0]), q.to(torch.float16), q.float()

    class Structured(nn.Module):
        def forward(self, x, *, z=1, d):
            return {"a": x * z, "b": [d["q"], d["r"][0]]}

    class Constants(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.ones(2)
            self.register_buffer("np", torch.ones(2), persistent=False)

        def forward(self, x):
            return x + self.w + self.np, x, None, 3

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l, self.g = nn.LSTM(4, 5, batch_first=True), nn.GRU(4, 5)

        def forward(self, x):
            return self.l(x), self.g(x)[0]

    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    class Branch(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    ones, ids = torch.ones, torch.zeros(2, 3, dtype=torch.long)
    batch = Dim("batch", min=1, max=64)
    image, cube = ones(2, 3, 8, 8), ones(3, 4, 5)
    d = {"q": ones(1), "r": (ones(1),)}
    return {
        "net": (Net().eval(), (image, ids), {}, ({0: batch}, {0: batch, 1: Dim.AUTO})),
        "methods": (Methods(), (cube, torch.tensor([0, 1, 2, 1])), {}, None),
        "writes": (Writes(), (ones(2, 2), torch.tensor([0])), {}, None),
        "structured": (Structured(), (ones(2, 2),), {"d": d}, None),
        "constants": (Constants(), (ones(2, 2),), {}, None),
        "recurrent": (Recurrent().eval(), (ones(2, 3, 4),), {}, None),
        "branch": (Branch(), (ones(4, 3),), {}, None),
        "equal": (Sum(), (ones(4, 3), ones(4, 3)), {}, ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})),
        "fixed": (Sum(), (ones(4, 3), ones(4, 3)), {}, ({0: Dim.AUTO}, {0: Dim.STATIC})),
        "range": (Sum(), (ones(4, 3), ones(4, 3)), {}, ({0: batch}, {0: batch})),
        "relu": (nn.ReLU(), (ones(2),), {}, None),
    }


def layer_programs(torch: Any) -> list[tuple[Any, Any]]:
    """Return layers with their inputs; each is known by its text."""
    nn = torch.nn
    x4, x3, x2 = torch.ones(2, 4, 8, 8), torch.ones(2, 4, 10), torch.ones(4, 6)
    v, i = torch.ones(1, 2, 4, 4, 4), torch.tensor([0, 1, 2, 3])
    torch.manual_seed(0)
    return [
        (nn.Conv1d(4, 6, 3), x3),
        (nn.Conv2d(4, 4, 3, padding="same"), x4),
        (nn.ConvTranspose2d(4, 3, 3, 2), x4),
        (nn.BatchNorm1d(4).eval(), x3),
        (nn.BatchNorm2d(4), x4),
        (nn.InstanceNorm2d(4), x4),
        (nn.GroupNorm(2, 4), x4),
        (nn.LayerNorm(8), x4),
        (nn.RMSNorm(8), x4),
        (nn.LocalResponseNorm(2), x4),
        (nn.MaxPool2d(2), x4),
        (nn.MaxPool2d(2, return_indices=True), x4),
        (nn.AvgPool2d(2), x4),
        (nn.AdaptiveAvgPool2d((2, 3)), x4),
        (nn.AdaptiveMaxPool2d(2), x4),
        (nn.AvgPool1d(2), x3),
        (nn.MaxPool1d(2), x3),
        (nn.MaxPool3d(2), v),
        (nn.ReLU6(), x2),
        (nn.ELU(), x2),
        (nn.SELU(), x2),
        (nn.CELU(), x2),
        (nn.GELU("tanh"), x2),
        (nn.SiLU(), x2),
        (nn.Mish(), x2),
        (nn.Hardswish(), x2),
        (nn.Hardsigmoid(), x2),
        (nn.Hardtanh(), x2),
        (nn.LeakyReLU(0.1), x2),
        (nn.PReLU(), x2),
        (nn.RReLU().eval(), x2),
        (nn.Softplus(), x2),
        (nn.Softshrink(), x2),
        (nn.Hardshrink(), x2),
        (nn.Tanhshrink(), x2),
        (nn.Threshold(0.1, 20.0), x2),
        (nn.GLU(), x2),
        (nn.LogSigmoid(), x2),
        (nn.Softmin(1), x2),
        (nn.Softmax(1), x2),
        (nn.LogSoftmax(1), x2),
        (nn.Softmax2d(), x4),
        (nn.Softsign(), x2),
        (nn.Tanh(), x2),
        (nn.Sigmoid(), x2),
        (nn.Dropout(0.3), x2),
        (nn.Dropout2d(0.3), x4),
        (nn.AlphaDropout(0.3), x2),
        (nn.Embedding(10, 3, padding_idx=1), i[:2]),
        (nn.EmbeddingBag(10, 3), i.view(2, 2)),
        (nn.Linear(6, 2, bias=False), x2),
        (nn.Bilinear(6, 6, 2), (x2, x2)),
        (nn.Identity(), x2),
        (nn.Flatten(), x4),
        (nn.Unflatten(1, (2, 3)), x2),
        (nn.PixelShuffle(2), x4),
        (nn.PixelUnshuffle(2), x4),
        (nn.ChannelShuffle(2), x4),
        (nn.Upsample(scale_factor=2), x4),
        (nn.Upsample(size=(4, 4), mode="bilinear"), x4),
        (nn.ZeroPad2d(1), x4),
        (nn.ReflectionPad2d(1), x4),
        (nn.ReplicationPad2d(1), x4),
        (nn.CircularPad2d(1), x4),
        (nn.ConstantPad1d(1, 2.0), x3),
        (nn.Fold((4, 4), 2), torch.ones(1, 8, 9)),
        (nn.Unfold(2), x4),
        (nn.LSTM(10, 3, 2, bidirectional=True).eval(), x3),
        (nn.RNN(10, 3).eval(), x3),
        (nn.LSTMCell(6, 3), x2),
        (nn.GRUCell(6, 3), x2),
        (nn.CrossEntropyLoss(), (x2, i)),
        (nn.NLLLoss(), (x2, i)),
        (nn.BCELoss(), (x2, x2)),
        (nn.BCEWithLogitsLoss(), (x2, x2)),
        (nn.KLDivLoss(reduction="batchmean"), (x2, x2)),
        (nn.CosineSimilarity(), (x2, x2)),
        (nn.PairwiseDistance(), (x2, x2)),
        (nn.TripletMarginLoss(), (x2, x2, x2)),
        (nn.CosineEmbeddingLoss(), (x2, x2, torch.ones(4))),
        (nn.MarginRankingLoss(), (x2, x2, x2)),
        (nn.HingeEmbeddingLoss(), (x2, x2)),
        (nn.PoissonNLLLoss(), (x2, x2)),
        (nn.SoftMarginLoss(), (x2, x2)),
    ]


def open_programs(torch: Any) -> dict[str, Any]:
    """Return functions of tensors (batch, length, 8) and (batch, other, 8), both sizes open."""
    F = torch.nn.functional

    def written(x, z):
        c = x.clone()
        c[:, 0] = 1.0
        c[:, 1:] = x[:, 1:] * 2
        return c

    def masked(x, z):
        seen = torch.ones(x.shape[1], x.shape[1]).tril()
        return (x @ x.mT).masked_fill(seen == 0, -1e9).softmax(-1) @ x

    return {
        "pad": lambda x, z: F.pad(x, (1, 2, 0, 1)),
        "interpolate": lambda x, z: F.interpolate(x[:, None], size=(x.shape[1] * 2, 5)),
        "interpolate to another": lambda x, z: F.interpolate(x[:, None], size=z.shape[-2:]),
        "ranges": lambda x, z: torch.arange(x.shape[1])[None] < torch.arange(x.shape[0])[:, None],
        "cat": lambda x, z: torch.cat([x, torch.zeros(x.shape[0], 1, x.shape[2]), z], 1),
        "expand": lambda x, z: x[:, :1].expand(-1, x.shape[1], -1) + x,
        "repeat": lambda x, z: x.repeat(1, 2, 1)[:, : x.size(1)],
        "heads": lambda x, z: x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2).flatten(0, 1),
        "rows": lambda x, z: x.reshape(x.shape[0] * x.shape[1], -1).sum(-1).view(x.shape[0], -1),
        "numbers": lambda x, z: x.sum() / x.numel() + x.shape[1] ** 0.5,
        "moments": lambda x, z: (x - x.mean((0, 1), keepdim=True)).std(1),
        "masked": masked,
        "slices": lambda x, z: (x[:, 1:], x[:, :-1], x[:, -1], x[:, x.shape[1] // 2 :]),
        "remainder": lambda x, z: x[:, : x.shape[1] - x.shape[1] % 2],
        "written": written,
        "orders": lambda x, z: (x.flatten(1).topk(5), x.gather(1, x.argsort(1))),
        "products": lambda x, z: (x @ z.mT, torch.einsum("btd,bsd->bts", x, z)),
        "attention": lambda x, z: F.scaled_dot_product_attention(x, z, z),
        "found": lambda x, z: ((x > 0).nonzero()[:, 0], x[x > 0]),
        "made": lambda x, z: torch.full((x.shape[0],), 3.0) * x.new_ones(x.shape[0]),
        "parts": lambda x, z: (torch.stack(x.unbind(2)), x.chunk(2, -1)[0] + x.split(4, 2)[1]),
        "turned": lambda x, z: x.flip(1).roll(1, 1).cumsum(1),
    }


def refused_exports(torch: Any) -> dict[str, Any]:
    """Return modules that cannot be exported as asked."""
    nn, Dim = torch.nn, torch.export.Dim

    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    class Size(nn.Module):
        def forward(self, x):
            return x.reshape(4, -1) if x.shape[0] == 4 else x

    two = (torch.ones(4, 3), torch.ones(4, 3))
    return {
        "constant": (Size(), two[:1], ({0: Dim("b")},)),
        "unequal": (Sum(), two, ({0: Dim("b")}, {0: Dim("c")})),
        "one of two": (Sum(), two, ({0: Dim("b")}, None)),
        "unnamed": (Sum(), two, ({0: Dim.DYNAMIC}, {0: Dim.STATIC})),
        "structure": (Sum(), two, ({0: Dim("b")},)),
        "function": (lambda x: x, two[:1], None),
        "arguments": (Sum(), two[0], None),
    }


def plain(text: str) -> str:
    """Return a text without what depends on where and how often a graph was made."""
    text = text.replace("__main__", "graph_programs")
    return re.sub(r"sym_size_int_\d+", "sym_size_int", text)


def exported_texts(program: Any) -> dict[str, str]:
    """Return what is compared of an exported program."""
    return {
        "code": program.graph_module.code,
        "signature": str(program.graph_signature),
        "ranges": str(program.range_constraints),
        "module": program.module().code,
    }


def record() -> dict[str, Any]:
    """Return the texts of PyTorch's graphs."""
    import torch

    found: dict[str, Any] = {"traced": {}, "refused": {}, "exported": {}, "refused exports": {}}
    for name, (program, concrete) in traced_programs(torch).items():
        traced = torch.fx.symbolic_trace(program, concrete_args=concrete)
        found["traced"][name] = {"code": traced.code, "graph": str(traced.graph)}
    for name, function in refused_programs(torch).items():
        try:
            torch.fx.symbolic_trace(function)
        except Exception as e:  # noqa: PERF203
            found["refused"][name] = [type(e).__name__, str(e)]
    for name, (module, args, kwargs, shapes) in exported_programs(torch).items():
        program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes)
        found["exported"][name] = exported_texts(program)
    found["layers"] = []
    for module, x in layer_programs(torch):
        args = x if isinstance(x, tuple) else (x,)
        found["layers"].append(torch.export.export(module, args).graph_module.code)
    for name, (module, args, shapes) in refused_exports(torch).items():
        try:
            torch.export.export(module, args, dynamic_shapes=shapes)
        except Exception as e:  # noqa: PERF203
            text = str(e).partition("\n\nThe error above occurred")[0].partition("\nFor more")[0]
            found["refused exports"][name] = [type(e).__name__, text]
    return found


if __name__ == "__main__":
    DATA.write_text(json.dumps(record(), indent=1) + "\n")
