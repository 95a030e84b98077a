"""After the default decompositions a program has PyTorch's core operators, and the same results.

``tests/data/core_aten.txt`` has the operators that PyTorch 2.13 tags as core,
``tests/data/export_core.json`` what its programs have, node by node.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import export_programs
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F  # noqa: N812

CORE = set((Path(__file__).parents[1] / "data" / "core_aten.txt").read_text().split())
# PyTorch's own table leaves these as well.
LEFT = {
    "aten._native_batch_norm_legit_functional.default",
    "aten.linalg_vector_norm.default",
    "aten.unfold.default",
}

rows, image = torch.randn(2, 5, 8), torch.randn(2, 3, 16, 16)


RECORDED = json.loads(export_programs.DATA.read_text())
MADE = json.loads(json.dumps(export_programs.rows(torch)))
PROGRAMS = export_programs.programs(torch)


@pytest.mark.parametrize("name", RECORDED)
def test_nodes_and_what_they_give_are_pytorchs(name: str) -> None:
    assert MADE[name] == RECORDED[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_the_module_does(name: str) -> None:
    module, args = PROGRAMS[name]
    check(module, *args)


def targets(program: Any) -> set[str]:
    nodes = program.graph.nodes
    return {
        str(n.target) for n in nodes if n.op == "call_function" and n.target is not operator.getitem
    }


def check(module: Any, *args: Any) -> None:
    program = torch.export.export(module, args).run_decompositions()
    assert targets(program) - LEFT <= CORE
    for node in program.graph.nodes:
        val = node.meta.get("val")
        if node.op == "call_function" and isinstance(val, torch.Tensor):
            assert all(type(n) is int for n in val.shape)
    torch.manual_seed(0)
    want = module(*args)
    torch.manual_seed(0)
    torch.testing.assert_close(program.module()(*args), want, atol=1e-5, rtol=1e-4)


class Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layer = kind(8, 4, batch_first=True, **options)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    "options", [{}, {"bidirectional": True}, {"num_layers": 2, "bias": False}], ids=str
)
def test_recurrent_layers_are_steps(kind: Any, options: dict[str, Any]) -> None:
    check(Recurrent(kind, **options).eval(), rows)


class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: Any, mask: Any = None) -> Any:
        x = x.view(2, 5, 2, 4).transpose(1, 2)
        made = F.scaled_dot_product_attention(x, x + 1, x * 2, mask, **self.options)
        return made.transpose(1, 2).flatten(2)


def test_attention_is_products() -> None:
    check(Attention(is_causal=True), rows)
    check(Attention(), rows, torch.zeros(5, 5))
    check(Attention(scale=0.3), rows, torch.ones(5, 5).tril() > 0)


def test_encoder_and_unet() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu", batch_first=True, norm_first=True)
    check(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), rows)
    check(
        nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.MaxPool2d(2),
            nn.ConvTranspose2d(4, 4, 2, 2), nn.InstanceNorm2d(4, affine=True),
            nn.ReflectionPad2d(1), nn.ReplicationPad2d(2), nn.LeakyReLU(0.1),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        ),
        image,
    )  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.split(2, 1)[1] + x.chunk(3, 1)[0] + x.unbind(1)[0][:, None],
        lambda x: x.masked_fill(x < 0, float("-inf")).softmax(-1),
        lambda x: x + torch.arange(8) + torch.arange(1, 9) + torch.zeros(8) + torch.ones(8),
        lambda x: x + x.new_zeros(8) + torch.zeros_like(x) + torch.ones_like(x),
        lambda x: x + x.new_full((8,), 2) + x.new_ones(5, 8),
        lambda x: F.rms_norm(x, (8,), x[0, 0]),
        lambda x: F.mse_loss(x, x * 2) + F.l1_loss(x, x * 2, reduction="sum"),
        lambda x: F.smooth_l1_loss(x, x * 2, beta=0.5) + F.huber_loss(x, x * 2, delta=2.0),
        lambda x: F.cross_entropy(x[0], x[1].argmax(-1)),
        lambda x: F.cross_entropy(x.mT, x.argmax(-1), reduction="none", ignore_index=3),
        lambda x: F.binary_cross_entropy_with_logits(x, x.sigmoid(), x.exp(), pos_weight=x.abs()),
        lambda x: F.softplus(x, 2.0, 1.0) + F.mish(x) + F.logsigmoid(x),
        lambda x: F.selu(x) + F.celu(x, 2.0) + F.celu(x),
        lambda x: F.glu(x, -1) + F.glu(x.mT, 1).mT[..., :4],
        lambda x: torch.logsumexp(x, 1) + torch.logsumexp(x, (1,), True)[:, 0],
        lambda x: x.tril() + x.triu(1) + torch.tril(x, -2),
        lambda x: x.roll(1, 1) + x.roll((2, -1), (1, 2)) + x.narrow(1, 0, 5),
        lambda x: torch.outer(x[0, 0], x[0, 1]) + torch.lerp(x[0, 0], x[0, 1], 0.7),
        lambda x: torch.baddbmm(x[..., :5], x, x.mT, beta=2, alpha=0.5),
        lambda x: torch.addcmul(x, x, x, value=3) + x.clamp_min(0.1) + x.clamp_max(0.2),
        lambda x: torch.special.expit(x) + torch.floor_divide(x, 0.3),
        lambda x: F.dropout(x, 0.5, True),
        lambda x: F.batch_norm(x, None, None, training=True),
    ],
)  # fmt: skip
def test_functions_are_core_operators(function: Callable[..., Any]) -> None:
    check(Of(function), rows)


def test_open_sizes_stay_open() -> None:
    shapes = ({1: torch.export.Dim("n", min=2, max=20)},)

    class Parts(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.masked_fill(x < 0, 1.0)
            return F.rms_norm(y, (8,)).chunk(2, -1)[0] + F.softplus(x).split(4, -1)[1]

    program = torch.export.export(Parts(), (rows,), dynamic_shapes=shapes).run_decompositions()
    assert targets(program) <= CORE | {"aten.sym_size.int"}
    for n in (2, 7):
        x = torch.randn(2, n, 8)
        torch.testing.assert_close(program.module()(x), Parts()(x))


def test_batch_norm_in_training_gives_its_statistics_back() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4))
    state = {k: v.clone() for k, v in net.state_dict().items()}
    program = torch.export.export(net, (image,)).run_decompositions()
    assert targets(program) - LEFT <= CORE
    written = set(program.graph_signature.buffers_to_mutate.values())
    assert written == {k for k in state if "running" in k or "tracked" in k}
    module = program.module()
    net.load_state_dict(state)
    for _ in range(2):
        torch.testing.assert_close(module(image), net(image))
    found = dict(module.named_buffers())
    for name, want in net.named_buffers():
        torch.testing.assert_close(found[name], want)
