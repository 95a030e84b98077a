"""Programs that `make_fx` records, whose code is compared with PyTorch's.

``python tests/make_fx_programs.py`` in a Python that has PyTorch writes what its `make_fx` gives
to ``tests/data/make_fx_texts.json``, for the programs that have a text there: those that are equal.
With ``all`` it writes those of every program.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from make_fx_steps import steps

DATA = Path(__file__).resolve().parent / "data" / "make_fx_texts.json"


def programs(torch: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions and their arguments by name; those with gradients end with "grad"."""
    nn, F = torch.nn, torch.nn.functional
    found: dict[str, Any] = {}
    torch.manual_seed(0)
    x, y, v1, lin, b7 = (
        torch.randn(3, 5),
        torch.randn(3, 5),
        torch.randn(5),
        torch.randn(7, 5),
        torch.randn(7),
    )
    im, w, b6 = torch.randn(2, 4, 8, 8), torch.randn(6, 4, 3, 3), torch.randn(6)
    q, seq, emb = torch.randn(2, 4, 6, 8), torch.randn(2, 6, 8), torch.randn(10, 4)
    tgt, idx, img_t = (
        torch.tensor([1, 0, 4]),
        torch.tensor([[0, 1], [2, 0]]),
        torch.randint(0, 4, (2, 8, 8)),
    )
    m = torch.tensor([[True, False, True, False, True]] * 3)

    def add(name: str, f: Any, *args: Any) -> None:
        found[name] = (
            (lambda *given: f(*given)) if getattr(f, "__name__", "") != "<lambda>" else f,
            args,
        )

    def both(name: str, f: Any, *args: Any) -> None:
        add(name, f, *args)

        def grad(*given: Any) -> Any:
            made = f(*given)
            made = made[0] if isinstance(made, tuple) else made
            return torch.autograd.grad(made.sum(), [t for t in given if t.requires_grad])

        asked = (t.clone().requires_grad_(t.is_floating_point()) for t in args)
        found[f"{name} grad"] = grad, tuple(asked)

    both("add", lambda a, b: a + b * 2, x, y)
    both("mul", lambda a, b: a * b, x, y)
    both("div", lambda a, b: a / b, x, y)
    both("sub", lambda a: 1 - a, x)
    both("matmul", lambda a, b: a @ b.t(), x, y)
    both("linear", F.linear, x, lin, b7)
    both("linear3", F.linear, seq, torch.randn(3, 8), torch.randn(3))
    both("bmm", torch.bmm, seq, seq.transpose(1, 2).contiguous())
    both("relu", F.relu, x)
    both("gelu", F.gelu, x)
    both("gelu tanh", lambda t: F.gelu(t, approximate="tanh"), x)
    both("silu", F.silu, x)
    both("sigmoid", torch.sigmoid, x)
    both("tanh", torch.tanh, x)
    both("softplus", F.softplus, x)
    both("leaky", lambda t: F.leaky_relu(t, 0.2), x)
    both("elu", F.elu, x)
    both("selu", F.selu, x)
    both("hardswish", F.hardswish, x)
    both("mish", F.mish, x)
    both("relu6", F.relu6, x)
    both("hardtanh", F.hardtanh, x)
    both("hardsigmoid", F.hardsigmoid, x)
    both("logsigmoid", F.logsigmoid, x)
    both("celu", F.celu, x)
    both("softsign", F.softsign, x)
    both("tanhshrink", F.tanhshrink, x)
    both("threshold", lambda t: F.threshold(t, 0.1, 2.0), x)
    both("glu", lambda t: F.glu(t, 0), torch.randn(4, 5))
    both("prelu", F.prelu, x, torch.ones(1))
    both("softmax", lambda t: F.softmax(t, -1), x)
    both("log_softmax", lambda t: F.log_softmax(t, -1), x)
    both("logsumexp", lambda t: torch.logsumexp(t, 1), x)
    both("sum", lambda t: t.sum(1), x)
    both("sum all", lambda t: t.sum(), x)
    both("mean", lambda t: t.mean(1, keepdim=True), x)
    both("mean all", lambda t: t.mean(), x)
    both("var", lambda t: t.var(1), x)
    both("std", lambda t: t.std(1, keepdim=True), x)
    both("var_mean", lambda t: torch.var_mean(t, 1), x)
    both("amax", lambda t: t.amax(1), x)
    both("max", lambda t: t.max(1).values, x)
    both("max all", lambda t: t.max(), x)
    both("min", lambda t: t.min(0).values, x)
    both("prod", lambda t: t.prod(1), x)
    both("norm", lambda t: t.norm(), x)
    both("norm dim", lambda t: t.norm(dim=1), x)
    both("normalize", lambda t: F.normalize(t, dim=1), x)
    both("cumsum", lambda t: t.cumsum(1), x)
    both("argmax", lambda t: (t.argmax(1), t)[1] * 1, x)
    both("exp", torch.exp, x)
    both("log", lambda t: torch.log(t.abs() + 1), x)
    both("sqrt", lambda t: torch.sqrt(t * t + 1), x)
    both("rsqrt", lambda t: torch.rsqrt(t * t + 1), x)
    both("pow", lambda t: t**2, x)
    both("pow3", lambda t: t.pow(3.0), x)
    both("sin", torch.sin, x)
    both("abs", torch.abs, x)
    both("clamp", lambda t: t.clamp(-1, 1), x)
    both("clamp min", lambda t: t.clamp(min=0), x)
    both("where", lambda a, b: torch.where(a > 0, a, b), x, y)
    both("maximum", torch.maximum, x, y)
    both("erf", torch.erf, x)
    both("reciprocal", torch.reciprocal, x)
    both("neg", torch.neg, x)
    both("square", torch.square, x)
    both("lerp", lambda a, b: torch.lerp(a, b, 0.3), x, y)
    both("addcmul", lambda a, b: torch.addcmul(a, a, b, value=2), x, y)
    both("masked_fill", lambda t, k: t.masked_fill(k, 0.0), x, m)
    both("nan_to_num", torch.nan_to_num, x)
    both("logaddexp", torch.logaddexp, x, y)
    both("atan2", torch.atan2, x, y)
    both("reshape", lambda t: t.reshape(5, 3), x)
    both("view", lambda t: t.view(-1) * 2, x)
    both("transpose", lambda t: t.transpose(0, 1) * 2, x)
    both("permute", lambda t: t.permute(1, 0, 2) * 2, seq)
    both("cat", lambda a, b: torch.cat([a, b], 1), x, y)
    both("stack", lambda a, b: torch.stack([a, b]), x, y)
    both("chunk", lambda t: t.chunk(2, 1)[0] * 2, x)
    both("split", lambda t: t.split(2, 1)[1] * 2, x)
    both("select", lambda t: t[0] * 2, x)
    both("slice", lambda t: t[:, 1:3] * 2, x)
    both("index", lambda t, i: t[i[0]], x, idx)
    both("gather", lambda t: t.gather(1, torch.zeros(3, 2, dtype=torch.int64)), x)
    both("index_select", lambda t: t.index_select(0, torch.tensor([0, 2])), x)
    both("squeeze", lambda t: t.unsqueeze(0).squeeze(0) * 2, x)
    both("expand", lambda t: t[:1].expand(4, 5) * 2, x)
    both("repeat", lambda t: t.repeat(2, 1), x)
    both("flip", lambda t: t.flip(0), x)
    both("roll", lambda t: t.roll(1, 0), x)
    both("tril", torch.tril, x)
    both("pad", lambda t: F.pad(t, (1, 1)), x)
    both("pad reflect", lambda t: F.pad(t, (1, 1, 1, 1), mode="reflect"), im)
    both("flatten", lambda t: t.flatten(1) * 2, im)
    both("unbind", lambda t: t.unbind(0)[0] * 2, x)
    both("movedim", lambda t: t.movedim(0, 1) * 2, x)
    both("einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), seq, seq.clone())
    both("topk", lambda t: t.topk(2).values, x)
    both("sort", lambda t: t.sort(1).values, x)
    both(
        "scatter_add",
        lambda t: torch.zeros(3, 5).scatter_add(1, torch.zeros(3, 5, dtype=torch.int64), t),
        x,
    )
    both("diagonal", lambda t: t.diagonal() * 2, x)
    both("outer", lambda a, b: torch.outer(a, b), v1, v1.clone())
    both("clone", torch.clone, x)
    both("contiguous", lambda t: t.t().contiguous() * 2, x)
    both("to", lambda t: t.to(torch.float64) * 2, x)
    both("addmm", torch.addmm, torch.randn(3, 3), x, y.t().contiguous())
    both("baddbmm", torch.baddbmm, torch.randn(2, 6, 6), seq, seq.transpose(1, 2).contiguous())
    both("mv", torch.mv, x, v1)
    both("dot", torch.dot, v1, v1.clone())
    both("conv2d", lambda a, c, d: F.conv2d(a, c, d, padding=1), im, w, b6)
    both("conv2d stride", lambda a, c: F.conv2d(a, c, stride=2), im, w)
    both("conv1d", lambda a, c: F.conv1d(a, c), seq, torch.randn(4, 6, 3))
    both(
        "conv_transpose",
        lambda a, c: F.conv_transpose2d(a, c, stride=2),
        im,
        torch.randn(4, 3, 2, 2),
    )
    both("max_pool", lambda t: F.max_pool2d(t, 2), im)
    both("avg_pool", lambda t: F.avg_pool2d(t, 2), im)
    both("adaptive", lambda t: F.adaptive_avg_pool2d(t, 2), im)
    both("adaptive 1", lambda t: F.adaptive_avg_pool2d(t, 1), im)
    both("interp near", lambda t: F.interpolate(t, scale_factor=2, mode="nearest"), im)
    both("interp bil", lambda t: F.interpolate(t, size=(4, 4), mode="bilinear"), im)
    both("pixel", lambda t: F.pixel_shuffle(t, 2), im)
    both("unfold", lambda t: F.unfold(t, 2), im)
    both("max_pool1d", lambda t: F.max_pool1d(t, 2), seq)
    both("avg_pool1d", lambda t: F.avg_pool1d(t, 2), seq)
    ones8, zeros8, ones4, zeros4 = torch.ones(8), torch.zeros(8), torch.ones(4), torch.zeros(4)
    both("layer_norm", lambda t, a, c: F.layer_norm(t, (8,), a, c), seq, ones8, zeros8)
    both("group_norm", lambda t, a, c: F.group_norm(t, 2, a, c), im, ones4, zeros4)
    both(
        "batch_norm eval",
        lambda t, a, c: F.batch_norm(t, zeros4, ones4, a, c),
        im,
        ones4.clone(),
        zeros4.clone(),
    )
    both(
        "batch_norm train",
        lambda t, a, c: F.batch_norm(t, None, None, a, c, training=True),
        im,
        ones4.clone(),
        zeros4.clone(),
    )
    both("instance_norm", lambda t: F.instance_norm(t), im)
    both("rms_norm", lambda t, a: F.rms_norm(t, (8,), a), seq, ones8)
    both("cross_entropy", F.cross_entropy, x, tgt)
    both("cross_entropy smooth", lambda a, t: F.cross_entropy(a, t, label_smoothing=0.1), x, tgt)
    both("cross_entropy sum", lambda a, t: F.cross_entropy(a, t, reduction="sum"), x, tgt)
    both("cross_entropy 2d", F.cross_entropy, im, img_t)
    both("cross_entropy prob", lambda a, t: F.cross_entropy(a, torch.softmax(t, 1)), x, y)
    both("nll", lambda a, t: F.nll_loss(F.log_softmax(a, 1), t), x, tgt)
    both("mse", F.mse_loss, x, y)
    both("l1", F.l1_loss, x, y)
    both("smooth_l1", F.smooth_l1_loss, x, y)
    both("huber", F.huber_loss, x, y)
    both(
        "bce",
        lambda a, t: F.binary_cross_entropy(torch.sigmoid(a), torch.sigmoid(t).detach()),
        x,
        y,
    )
    both("bce logits", lambda a, t: F.binary_cross_entropy_with_logits(a, (t > 0).float()), x, y)
    both(
        "kl",
        lambda a, t: F.kl_div(F.log_softmax(a, 1), F.softmax(t, 1), reduction="batchmean"),
        x,
        y,
    )
    both("cosine", F.cosine_similarity, x, y)
    both("triplet", lambda a, t: F.triplet_margin_loss(a, t, a * 2), x, y)
    both("embedding", lambda t, i: F.embedding(i, t), emb, idx)
    both("embedding pad", lambda t, i: F.embedding(i, t, padding_idx=0), emb, idx)
    both("sdpa", lambda t: F.scaled_dot_product_attention(t, t * 2, t * 3), q)
    both(
        "sdpa causal", lambda t: F.scaled_dot_product_attention(t, t * 2, t * 3, is_causal=True), q
    )
    both(
        "sdpa mask",
        lambda t, k: F.scaled_dot_product_attention(t, t * 2, t * 3, attn_mask=k),
        q,
        torch.ones(6, 6),
    )
    both("dropout eval", lambda t: F.dropout(t, 0.5, training=False) * 2, x)
    both("one_hot", lambda t: F.one_hot(t, 5), tgt)
    add(
        "factories",
        lambda t: t + torch.zeros(5) + torch.ones(3, 1) + torch.arange(5) + torch.full((5,), 2.0),
        x,
    )
    add("like", lambda t: t + torch.zeros_like(t) + torch.ones_like(t) + torch.full_like(t, 3), x)
    add("new", lambda t: t + t.new_zeros(5) + t.new_ones(5) + t.new_full((5,), 1.0), x)
    add("tensor", lambda t: t + torch.tensor(2.0) + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), x)
    add("linspace", lambda t: t + torch.linspace(0, 1, 5), x)
    add("eye", lambda t: t @ torch.eye(5), x)
    add("inplace", lambda t: t.clone().add_(1).mul_(2), x)
    add("copy", lambda t: torch.empty(3, 5).copy_(t), x)
    add("setitem", lambda t: (lambda z: (z.__setitem__((slice(None), 0), 1.0), z)[1])(t.clone()), x)
    add("compare", lambda a, b: ((a > b) & (a <= 1) | (b == 0)).any(1), x, y)
    add("isnan", lambda a: torch.isnan(a) | torch.isinf(a), x)
    add("bool", lambda a: ~(a > 0), x)
    add("float", lambda a: (a > 0).float(), x)
    add("meshgrid", lambda a: torch.meshgrid(a, a, indexing="ij")[0] * 2, v1)

    def layers(name: str, make: Any, *args: Any) -> None:
        torch.manual_seed(0)
        module = make()
        state = {k: p.detach() for k, p in module.named_parameters()}

        def loss(state: Any, *given: Any) -> Any:
            return torch.func.functional_call(module, state, given).pow(2).mean()

        found[name] = lambda *given: module(*given), args
        found[f"{name} grad"] = torch.func.grad(loss), (state, *args)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, t):
            return self.m(t, t, t, need_weights=False)[0]

    layers("mlp", lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)), x)
    parts = nn.ReLU, lambda: nn.MaxPool2d(2), nn.Flatten, lambda: nn.Linear(27, 2)
    layers("cnn", lambda: nn.Sequential(nn.Conv2d(4, 3, 3), *(part() for part in parts)), im)
    layers("layer norm", lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()), seq)
    eval_norm = nn.BatchNorm2d(3).eval()
    layers("batch norm", lambda: nn.Sequential(nn.Conv2d(4, 3, 1), eval_norm), im)
    layers("attention", Attention, seq)
    layers("encoder", lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), seq)
    add("func grad", torch.func.grad(lambda t: (t.sin() ** 2).sum()), x)
    add("vmap", torch.func.vmap(lambda t: t.sin().sum()), x)
    add("jvp", lambda a, b: torch.func.jvp(torch.sin, (a,), (b,)), x, y)
    add("hessian", torch.func.hessian(lambda t: (t**3).sum()), v1)

    def one(name: str, f: Any, *args: Any) -> None:
        """Add the gradient by the first argument."""
        x = args[0].clone().requires_grad_()
        found[f"{name} grad"] = (
            lambda x, *rest: torch.autograd.grad(f(x, *rest).sum(), x),
            (x, *args[1:]),
        )

    zeros = torch.zeros(3, 5)
    one("bce", lambda t, y: F.binary_cross_entropy(torch.sigmoid(t), y), x, zeros)
    one("bce logits", F.binary_cross_entropy_with_logits, x, zeros)
    one("relu in place", lambda t: F.relu_(t * 2), x)
    one("mul in place", lambda t: (t * 2).mul_(t.sin()), x)
    one("matmul 4d", lambda t, u: t @ u, q, q.transpose(-1, -2).contiguous())
    one("linear plain", lambda t, w: F.linear(t.transpose(0, 1), w), seq, torch.randn(3, 8))
    one("kthvalue", lambda t: t.kthvalue(2).values, x)
    one("amin", lambda t: t.amin((0, 1)), x)
    one("std dims", lambda t: t.std((0, 1)), x)
    one("max_pool3d", lambda t: F.max_pool3d(t, 2), torch.randn(1, 2, 4, 4, 4))
    one("avg_pool3d", lambda t: F.avg_pool3d(t, 2), torch.randn(1, 2, 4, 4, 4))
    one("conv3d", lambda t: F.conv3d(t, torch.ones(2, 2, 2, 2, 2)), torch.randn(1, 2, 4, 4, 4))
    one("replicate", lambda t: F.pad(t, (1, 1), mode="replicate"), seq)
    one("nearest 1d", lambda t: F.interpolate(t, scale_factor=2), seq)
    one("bicubic", lambda t: F.interpolate(t, size=(4, 4), mode="bicubic"), im)
    return found | steps(torch)


def codes(torch: Any) -> dict[str, str]:
    """Return the code of each program, without what nothing uses."""
    home = importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor")
    found = {}
    for name, (f, args) in programs(torch).items():
        try:
            gm = home.make_fx(f)(*args)
        except RuntimeError:
            continue  # it cannot be recorded there
        gm.graph.eliminate_dead_code()
        found[name] = gm.graph.python_code("self").src.strip()
    return found


if __name__ == "__main__":
    import torch

    kept = json.loads(DATA.read_text())
    every = "all" in sys.argv
    made = {name: code for name, code in codes(torch).items() if every or name in kept}
    DATA.write_text(json.dumps(made, indent=1) + "\n")
