"""Graphs of `make_fx`: operators with all arguments, parameters as attributes, as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.nn import functional as F  # noqa: N812

x, v = torch.randn(2, 4, 8, 8), torch.randn(3, 5)
image, row = (2, 4, 8, 8), (3, 5)


def called(graph: Any) -> list[tuple[str, tuple[Any, ...]]]:
    nodes = (n for n in graph.nodes if n.op == "call_function" and "getitem" not in str(n.target))
    return [(str(n.target), n.args[1:]) for n in nodes]


@pytest.mark.parametrize(
    ("function", "shape", "target", "args"),
    [
        (lambda t: F.max_pool2d(t, 2), image, "max_pool2d_with_indices.default", ([2, 2],)),
        (
            lambda t: F.max_pool2d(t, 3, 2, 1, ceil_mode=True),
            image,
            "max_pool2d_with_indices.default",
            ([3, 3], [2, 2], [1, 1], [1, 1], True),
        ),
        (
            lambda t: F.layer_norm(t, (5,)),
            row,
            "native_layer_norm.default",
            ([5], None, None, 1e-5),
        ),
        (
            lambda t: F.group_norm(t, 2),
            image,
            "native_group_norm.default",
            (None, None, 2, 4, 64, 2, 1e-5),
        ),
        (
            lambda t: F.batch_norm(t, None, None, training=True),
            image,
            "native_batch_norm.default",
            (None, None, None, None, True, 0.1, 1e-5),
        ),
        (lambda t: F.pad(t, (1, 2)), image, "constant_pad_nd.default", ([1, 2], 0.0)),
        (lambda t: F.pad(t, (1, 2), value=3.0), image, "constant_pad_nd.default", ([1, 2], 3.0)),
        (
            lambda t: F.pad(t, (1, 2, 1, 1), mode="reflect"),
            image,
            "reflection_pad2d.default",
            ([1, 2, 1, 1],),
        ),
        (F.relu6, row, "hardtanh.default", (0, 6)),
        (F.selu, row, "elu.default", (1.6732632423543772, 1.0507009873554805)),
        (lambda t: F.pixel_shuffle(t, 2), image, "pixel_shuffle.default", (2,)),
        (
            lambda t: F.unfold(t, 2),
            image,
            "im2col.default",
            ([2, 2], [1, 1], [0, 0], [1, 1]),
        ),
        (lambda t: F.glu(t, 1), image, "glu.default", (1,)),
        (lambda t: t.argmax(1), row, "argmax.default", (1,)),
        (lambda t: t.argsort(1), row, "sort.default", (1,)),
        (lambda t: t.var(1), row, "var.correction", ([1],)),
        (lambda t: t.norm(dim=1), row, "linalg_vector_norm.default", (2, [1])),
        (lambda t: t.clip(-1, 1), row, "clamp.default", (-1, 1)),
        (torch.diagonal, row, "diagonal.default", ()),
    ],
)
def test_operators_show_their_arguments_and_compute_with_them(
    function: Callable[..., Any], shape: tuple[int, ...], target: str, args: tuple[Any, ...]
) -> None:
    traced = make_fx(function)(torch.randn(shape))
    assert called(traced.graph) == [(f"aten.{target}", args)]
    again = torch.randn(shape)
    torch.testing.assert_close(traced(again), function(again))


def test_parameters_are_attributes_and_buffers_too() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2).eval())
    traced = make_fx(net)(torch.randn(4, 3))
    names = [n.target for n in traced.graph.nodes if n.op == "get_attr"]
    assert names[:2] == ["_param_constant0", "_param_constant1"]
    assert dict(traced.named_parameters())["_param_constant0"] is net[0].weight
    assert {"_tensor_constant0", "_tensor_constant1"} <= dict(traced.named_buffers()).keys()
    given = torch.randn(4, 3)
    torch.testing.assert_close(traced(given), net(given))
    # Of a call with other weights nothing is kept.
    weights = {k: p.detach() for k, p in net[0].named_parameters()}
    call = make_fx(lambda w, t: torch.func.functional_call(net[0], w, (t,)))(weights, given)
    assert not [n for n in call.graph.nodes if n.op == "get_attr"]


def test_results_with_names_are_tuples_in_a_graph() -> None:
    traced = make_fx(lambda t: t.max(1))(v)
    values, indices = traced(-v)
    assert torch.equal(values, (-v).max(1).values) and torch.equal(indices, (-v).max(1).indices)


def test_views_that_were_no_request_depend_on_their_base() -> None:
    traced = make_fx(lambda t: F.fold(F.unfold(t, 2), (8, 8), 2) + F.pixel_shuffle(t, 1))(x)
    assert not [n for n in traced.graph.nodes if n.op == "get_attr"]
    other = torch.randn_like(x)
    torch.testing.assert_close(traced(other), F.fold(F.unfold(other, 2), (8, 8), 2) + other)


def test_what_gradients_need_of_a_call_keeps_its_own_nodes() -> None:
    def slope(t: Any) -> Any:
        return torch.func.grad(lambda u: F.max_pool2d(u, 2).pow(2).sum())(t)

    traced = make_fx(slope)(x)
    other = torch.randn_like(x)
    torch.testing.assert_close(traced(other), slope(other))


def test_nll_loss_forward_gives_the_loss_and_the_weights_that_count() -> None:
    scores, target = v.log_softmax(1), torch.tensor([1, -100, 3])
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    loss, total = torch.ops.aten.nll_loss_forward(scores, target, weight, 1, -100)
    want = -(scores[0, 1] * 2 + scores[2, 3] * 4) / 6
    torch.testing.assert_close(loss, want)
    assert total.item() == 6.0


def test_program_takes_and_gives_containers() -> None:
    net = nn.Linear(5, 2)
    state = {k: p.detach() for k, p in net.named_parameters()}

    def step(state: Any, batch: Any) -> Any:
        def loss(state: Any) -> Any:
            return F.mse_loss(torch.func.functional_call(net, state, (batch[0],)), batch[1])

        slopes, value = torch.func.grad_and_value(loss)(state)
        return {k: p - 0.1 * slopes[k] for k, p in state.items()}, value

    batch = v, torch.ones(3, 2)
    traced = make_fx(step)(state, batch)
    other = {k: p + 0.5 for k, p in state.items()}, (2 * v, torch.zeros(3, 2))
    have, want = traced(*other), step(*other)
    torch.testing.assert_close(have, want)


def test_second_derivatives_are_traced() -> None:
    def cube(t: Any) -> Any:
        return (t**3).sum()

    traced = make_fx(torch.func.hessian(cube))(v[0])
    torch.testing.assert_close(traced(v[1]), torch.diag(6 * v[1]))
