"""Modules whose programs after `run_decompositions` are compared with PyTorch's, node by node.

``python tests/export_programs.py`` in a Python that has PyTorch writes operators, shapes, types and
strides to ``tests/data/export_core.json``, for the programs that are there: those that are equal.
With ``all`` it writes those of every program.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data" / "export_core.json"


def programs(torch: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return modules and their arguments by name."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)
    rows, image, heads = torch.randn(2, 5, 8), torch.randn(2, 3, 16, 16), torch.randn(2, 2, 5, 4)
    found: dict[str, Any] = {}

    class Block(nn.Module):
        def __init__(self, i, o, step=1):
            super().__init__()
            self.a = nn.Conv2d(i, o, 3, step, 1, bias=False)
            self.b = nn.Conv2d(o, o, 3, 1, 1, bias=False)
            self.n, self.m, self.relu = nn.BatchNorm2d(o), nn.BatchNorm2d(o), nn.ReLU(inplace=True)
            self.short = nn.Identity()
            if step != 1 or i != o:
                narrow = nn.Conv2d(i, o, 1, step, bias=False)
                self.short = nn.Sequential(narrow, nn.BatchNorm2d(o))

        def forward(self, x):
            y = self.m(self.b(self.relu(self.n(self.a(x)))))
            y += self.short(x)
            return self.relu(y)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            stem = nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True)
            self.stem = nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1))
            self.blocks = nn.Sequential(Block(4, 4), Block(4, 8, 2))
            self.pool, self.last = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 5)

        def forward(self, x):
            return self.last(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))

    found["resnet"] = Residual().eval(), (image,)
    found["resnet train"] = Residual(), (image,)

    class Of(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, *args):
            return self.function(*args)

    def add(name: str, function: Any, *args: Any) -> None:
        found[name] = Of(function), args

    attend = F.scaled_dot_product_attention
    add("attention", lambda t: attend(t, t + 1, t * 2), heads)
    add("attention mask", lambda t, m: attend(t, t, t, m), heads, torch.zeros(5, 5))
    add("attention causal", lambda t: attend(t, t, t, is_causal=True), heads)
    add("matmul", lambda t: t @ t.transpose(-1, -2), heads)
    add("split", lambda t: t.split(2, 1)[1] * 2, rows)
    add("split sizes", lambda t: t.split([1, 4], 1)[1] * 2, rows)
    add("chunk", lambda t: t.chunk(3, -1)[0] * 2, rows)
    add("unbind", lambda t: t.unbind(1)[0] * 2, rows)
    add("narrow", lambda t: t.narrow(1, 1, 3) * 2, rows)
    add("masked_fill", lambda t: t.masked_fill(t < 0, 0.5), rows)
    add("arange", lambda t: t + torch.arange(8) + torch.arange(1, 9), rows)
    add("zeros", lambda t: t + torch.zeros(8) + torch.ones(8), rows)
    add("new", lambda t: t + t.new_zeros(8) + t.new_ones(8), rows)
    add("like", lambda t: t + torch.zeros_like(t) + torch.ones_like(t), rows)
    add("dropout", lambda t: F.dropout(t, 0.3, True), rows)
    add("batch_norm", lambda t: F.batch_norm(t, None, None, training=True), rows)
    add("instance_norm", lambda t: F.instance_norm(t), rows)
    add("layer_norm", lambda t: F.layer_norm(t, (8,)), rows)
    add("group_norm", lambda t: F.group_norm(t, 1), rows)
    add("rms_norm", lambda t: F.rms_norm(t, (8,)), rows)
    add("pad", lambda t: F.pad(t, (1, 1), value=2.0), rows)
    add("pad replicate", lambda t: F.pad(t, (1, 1), mode="replicate"), rows)
    add("pad reflect", lambda t: F.pad(t, (1, 1), mode="reflect"), rows)
    add("softplus", F.softplus, rows)
    add("mish", F.mish, rows)
    add("glu", F.glu, rows)
    add("selu", F.selu, rows)
    add("celu", F.celu, rows)
    add("logsigmoid", F.logsigmoid, rows)
    add("hardswish", F.hardswish, rows)
    add("mse", lambda t: F.mse_loss(t, t * 2), rows)
    add("l1", lambda t: F.l1_loss(t, t * 2), rows)
    add("smooth_l1", lambda t: F.smooth_l1_loss(t, t * 2), rows)
    add("cross_entropy", F.cross_entropy, rows[0], torch.tensor([0, 1, 2, 3, 4]))
    add("outer", lambda t: torch.outer(t[0, 0], t[0, 1]), rows)
    add("baddbmm", lambda t, u: torch.baddbmm(u, t, t.mT), rows, torch.ones(2, 5, 5))
    add("addcmul", lambda t: torch.addcmul(t, t, t, value=2), rows)
    add("logsumexp", lambda t: torch.logsumexp(t, -1), rows)
    add("roll", lambda t: t.roll(1, 1), rows)
    add("tril", torch.tril, rows)
    add("clamp", lambda t: t.clamp_min(0.1) + t.clamp_max(0.2), rows)
    add("expit", lambda t: torch.special.expit(t) + torch.floor_divide(t, 2), rows)
    return found


def rows(torch: Any) -> dict[str, list[Any]]:
    """Return the operators of each program, and what each gives."""

    def described(val: Any) -> Any:
        if isinstance(val, (list, tuple)):
            return [described(v) for v in val]
        return [list(val.shape), str(val.dtype), list(val.stride())]

    found = {}
    for name, (module, args) in programs(torch).items():
        program = torch.export.export(module, args).run_decompositions()
        found[name] = [
            [str(n.target).removeprefix("aten."), described(n.meta["val"])]
            for n in program.graph.nodes
            if n.op == "call_function"
        ]
    return found


if __name__ == "__main__":
    import torch

    kept = [] if "all" in sys.argv else json.loads(DATA.read_text())
    made = {k: v for k, v in rows(torch).items() if "all" in sys.argv or k in kept}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items())
    DATA.write_text("{\n" + lines + "\n}\n")
