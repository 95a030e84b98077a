"""Every operator of the table in forward mode: tangents are what two transposes give.

The product with a transposed Jacobian is linear in its vector, so the transpose of that, by a
second backward, is the product with a tangent: it knows none of the rules of tangents.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from op_calls import differentiable_calls, leaves, named
from op_db import OPS
from op_row import Op

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib.func import jvp, linearize, vjp, vmap

# Operators whose derivative of the second order is not known, so that nothing can be transposed.
ONCE = [op for op in OPS if op.differentiable and not op.twice]
TWICE = [op for op in OPS if op.differentiable and op.twice]


def floats(y: Any) -> list[Any]:
    return [t for t in leaves(y) if t.is_floating_point() or t.is_complex()]


def along(inputs: Any) -> tuple[Any, ...]:
    """Return a tangent for each input."""
    generator = torch.Generator().manual_seed(3)
    draw = lambda t: torch.rand(t.shape, dtype=torch.float64, generator=generator)  # noqa: E731
    return tuple(
        torch.complex(draw(t), draw(t)) if t.is_complex() else draw(t) + 0.1 for t in inputs
    )


def transposed(function: Any, inputs: Any, tangents: Any) -> list[Any]:
    """Return the products with tangents, by two backwards."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    y = floats(function(*inputs))
    probes = [torch.zeros_like(t.detach()).requires_grad_() for t in y]
    live = [(t, p) for t, p in zip(y, probes, strict=True) if t.requires_grad]
    if not live:
        return [None] * len(y)
    grads = torch.autograd.grad(
        [t for t, _ in live], inputs, [p for _, p in live], create_graph=True, allow_unused=True
    )
    pairs = [
        (g, t) for g, t in zip(grads, tangents, strict=True) if g is not None and g.requires_grad
    ]
    if not pairs:
        return [None] * len(y)
    return list(
        torch.autograd.grad([g for g, _ in pairs], probes, [t for _, t in pairs], allow_unused=True)
    )


def same(found: Any, want: Any, rtol: float = 1e-9) -> None:
    for f, w in zip(found, want, strict=True):
        w = torch.zeros_like(f) if w is None else w
        torch.testing.assert_close(f, w, rtol=rtol, atol=rtol, equal_nan=True)


@pytest.mark.parametrize("op", named(TWICE))
def test_tangents_are_those_of_two_transposes(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        inputs = tuple(x.detach() for x in inputs)
        tangents = along(inputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            want = transposed(function, inputs, tangents)
            torch.manual_seed(0)
            y, found = jvp(lambda *x: tuple(floats(function(*x))), inputs, tangents)
            torch.manual_seed(0)
            same(y, [t.detach() for t in floats(function(*inputs))], 1e-12)
        same(found, want)


@pytest.mark.parametrize("op", named(TWICE))
def test_linear_programs_give_the_tangents_of_one_pass(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        inputs = tuple(x.detach() for x in inputs)
        tangents = along(inputs)
        call = lambda *x: tuple(floats(function(*x)))  # noqa: E731,B023
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            y, want = jvp(call, inputs, tangents)
            torch.manual_seed(0)
            found, program = linearize(call, *inputs)
            same(found, y, 1e-12)
            same(program(*tangents), want)
            # For many tangents at once, and for others.
            both = vmap(program)(*(torch.stack([t, -2 * t]) for t in tangents))
            same(both, [torch.stack([t, -2 * t]) for t in want])


@pytest.mark.parametrize("op", named(TWICE[::3]))
def test_forward_and_reverse_mode_nest_both_ways(op: Op) -> None:
    for function, inputs in list(differentiable_calls(op))[:2]:
        inputs = tuple(x.detach() for x in inputs)
        tangents = along(inputs)

        def total(*x: Any, function: Any = function) -> Any:
            torch.manual_seed(0)
            parts = [(t.real if t.is_complex() else t).sin().sum() for t in floats(function(*x))]
            return sum(parts)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = [t.clone().requires_grad_() for t in inputs]
            y = total(*x)
            if not y.requires_grad:
                continue
            first = torch.autograd.grad(y, x, create_graph=True, materialize_grads=True)
            slope = sum((g * t.conj()).real.sum() for g, t in zip(first, tangents, strict=True))
            want = [None] * len(x)
            if slope.requires_grad:
                want = torch.autograd.grad(slope, x, allow_unused=True)
            # Forward over reverse, and reverse over forward.
            over = lambda *x: vjp(total, *x)[1](torch.ones((), dtype=y.dtype))  # noqa: E731
            same(jvp(over, inputs, tangents)[1], want, 1e-8)
            along_x = lambda *x: jvp(total, x, tangents)[1]  # noqa: E731
            same(vjp(along_x, *inputs)[1](torch.ones((), dtype=y.dtype)), want, 1e-8)


@pytest.mark.parametrize("op", named(ONCE))
def test_tangents_that_are_not_known_raise_or_are_slopes(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        inputs = tuple(x.detach() for x in inputs)
        tangents, step = along(inputs), 1e-6
        call = lambda *x: tuple(floats(function(*x)))  # noqa: E731,B023
        try:
            _, found = jvp(call, inputs, tangents)
        except NotImplementedError as error:
            assert "forward AD" in str(error)  # noqa: PT017
            continue
        shifted = [
            call(*(x + sign * step * t for x, t in zip(inputs, tangents, strict=True)))
            for sign in (1, -1)
        ]
        slopes = [(a - b) / (2 * step) for a, b in zip(*shifted, strict=True)]
        for f, s in zip(found, slopes, strict=True):
            torch.testing.assert_close(f, s, rtol=1e-5, atol=1e-6)


def test_memory_of_a_product_is_that_of_one_pass() -> None:
    n, held = 1 << 20, []

    def chain(x: Any) -> Any:
        for _ in range(200):
            x = x.sin()
            held.append(torch.cpu.memory_stats()["allocated_bytes"])
        return x

    x, t = torch.rand(n), torch.rand(n)
    y, product = jvp(chain, (x,), (t,))
    # Values and tangents of two steps, and room for what other threads have free: never of all.
    assert max(held) - held[0] <= 8 * 4 * n, [h / (4 * n) for h in held[::20]]
    assert product.shape == y.shape


ON_GPU: dict[str, Any] = {
    "formulas": lambda x, w: (x.sin() * x.exp() / (1 + x * x)).sum(0),
    "product": lambda x, w: (x @ w).tanh() @ w.T,
    "softmax": lambda x, w: F.softmax(x @ w, -1).log(),
    "norms": lambda x, w: F.layer_norm(x, (6,)) + F.group_norm(x, 2),
    "convolution": lambda x, w: F.conv1d(x[None], w.T[:, :4, None]).relu(),
    "pool": lambda x, w: F.max_pool1d(x[None], 2) + F.avg_pool1d(x[None], 2),
    "views and writes": lambda x, w: torch.cat([x[1:], x[:1]]).T.clone().mul_(x.T)[::2],
    "index": lambda x, w: x[[0, 2, 2]].cumsum(0).sort(1)[0],
    "loss": lambda x, w: F.cross_entropy(x @ w, x[:, :4].argmax(1) % 3),
    "attention": lambda x, w: F.scaled_dot_product_attention(x[None], x[None] * 2, x[None]),
    "determinant": lambda x, w: torch.linalg.det(x @ x.T + 3 * torch.eye(4, device=x.device)),
    "gradient": lambda x, w: torch.func.grad(lambda v: (v @ w).sigmoid().prod())(x),
}


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="needs a GPU, or software for one")
@pytest.mark.parametrize("name", ON_GPU)
def test_tangents_on_a_gpu_are_those_of_the_cpu(name: str) -> None:
    generator = torch.Generator().manual_seed(5)
    shapes = (4, 6), (6, 3), (4, 6), (6, 3)
    x, w, *tangents = [torch.randn(shape, generator=generator) for shape in shapes]
    there = [tuple(t.to("wgpu") for t in pair) for pair in ((x, w), tangents)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "wgpu: .* runs on the CPU")
        found = jvp(ON_GPU[name], *there)
    want = jvp(ON_GPU[name], (x, w), tuple(tangents))
    for ours, theirs in zip(found, want, strict=True):
        assert ours.device.type == "wgpu"
        torch.testing.assert_close(ours.cpu(), theirs, rtol=2e-4, atol=2e-5)
