"""Products with a Jacobian by one run: numbers, nesting, what is written, what is kept, errors."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib import nn
from pytensorlib.func import functional_call, grad, jacrev, jvp, linearize, vmap

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
T = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)


def close(found: Any, want: Any) -> None:
    torch.testing.assert_close(found, torch.as_tensor(want, dtype=found.dtype))


def nets() -> dict[str, Any]:
    torch.manual_seed(0)
    image = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(27, 4),
    )  # fmt: skip
    words = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    perceptron = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
    return {
        "perceptron": (perceptron, torch.randn(3, 5)),
        "image": (image.eval(), torch.randn(2, 1, 8, 8)),
        "words": (words, torch.randn(2, 4, 8)),
    }


@pytest.mark.parametrize("name", ["perceptron", "image", "words"])
def test_networks_have_the_product_with_their_jacobian(name: str) -> None:
    net, x = nets()[name]
    net, x = net.double(), x.double()
    weights = {k: p.detach() for k, p in net.named_parameters()}

    def run(weights: Any, x: Any) -> Any:
        return functional_call(net, weights, (x,))

    torch.manual_seed(1)
    tangents = {k: torch.randn_like(p) for k, p in weights.items()}, torch.randn_like(x)
    y, program = linearize(run, weights, x)
    torch.testing.assert_close(y, run(weights, x))
    # The Jacobian itself comes from gradients.
    jacobians, by_x = jacrev(run, (0, 1))(weights, x)
    want = torch.tensordot(by_x, tangents[1], x.dim())
    for k, j in jacobians.items():
        want = want + torch.tensordot(j, tangents[0][k], weights[k].dim())
    torch.testing.assert_close(program(*tangents), want)


def test_what_depends_on_primals_alone_runs_once() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append("run")
        return (x.sin() * torch.ones(3, dtype=x.dtype).exp()).sum()

    _, program = linearize(f, X)
    with torch.profiler.profile() as ran:
        found = program(T)
    close(found, (X.cos() * T).sum() * torch.e)
    names = {e.key for e in ran.key_averages()}
    assert not any(n in name for name in names for n in ("sin", "cos", "exp"))
    assert seen == ["run"]


def test_random_numbers_are_those_of_the_one_run() -> None:
    torch.manual_seed(0)
    y, program = linearize(lambda x: F.dropout(x, 0.5), torch.ones(100))
    assert 0 < (y == 2).sum() < 100
    state = torch.get_rng_state()
    assert program(torch.ones(100)).equal(y)
    assert vmap(program)(torch.ones(2, 100)).equal(y.expand(2, 100))
    assert torch.get_rng_state().equal(state)


def test_programs_nest_in_transforms_and_in_each_other() -> None:
    _, program = linearize(torch.sin, X)
    eye = torch.eye(3, dtype=torch.float64)
    close(vmap(program)(eye), X.cos().diag())
    close(grad(lambda t: program(t).sum())(T), X.cos())
    close(jvp(program, (T,), (X,))[1], X.cos() * X)
    ones = torch.ones_like(X)
    close(grad(lambda x: linearize(torch.sin, x)[1](ones).sum())(X), -X.sin())
    close(linearize(lambda x: linearize(torch.sin, x)[1](T), X)[1](ones), -X.sin() * T)
    close(jvp(lambda x: linearize(torch.sin, x)[1](T), (X,), (ones,))[1], -X.sin() * T)
    close(vmap(lambda x, t: linearize(torch.sin, x)[1](t))(X, T), X.cos() * T)
    close(linearize(lambda x: grad(lambda v: (v**3).sum())(x), X)[1](T), 6 * X * T)
    close(linearize(lambda x: vmap(torch.sin)(x), X)[1](T), X.cos() * T)
    # Slices along another dimension, and a view of them.
    tangents = torch.arange(9.0, dtype=torch.float64).view(3, 3)
    found = vmap(linearize(lambda x: x[1:] * x.sum(), X)[1], in_dims=1)(tangents)
    close(found, [[36, 63], [48, 78], [60, 93]])  # torch 2.13


def test_gradients_reach_primals_and_what_is_used_beside_them() -> None:
    x, w = X.clone().requires_grad_(), T.clone().requires_grad_()
    y, program = linearize(lambda x: x.sin() * w, x)
    assert y.requires_grad
    t = torch.ones_like(X).requires_grad_()
    for found, want in zip(
        torch.autograd.grad(program(t).sum(), (x, w, t)),
        (-X.sin() * T, X.cos(), X.cos() * T),
        strict=True,
    ):
        close(found, want)
    with torch.no_grad():
        assert not program(t).requires_grad
        _, program = linearize(lambda x: x.sin() * w, x)
    assert not program(torch.ones_like(X)).requires_grad


def test_containers_and_outputs_that_depend_on_no_input() -> None:
    def f(pair: Any, z: Any) -> Any:
        a, b = pair["a"], pair["b"]
        return {"s": (a * b).sum(), "t": [z.T, torch.ones(2), b.argmax()], "u": b.detach() * 2}

    z = torch.arange(6.0).view(2, 3)
    y, program = linearize(f, {"a": X, "b": T}, z)
    assert y["t"][2].item() == 2
    for _ in range(2):
        found = program({"a": T, "b": X}, z + 1)
        close(found["s"], (T * T + X * X).sum())
        close(found["t"][0], z.T + 1)
        assert found["t"][1].tolist() == [0, 0]
        assert (found["t"][2].dtype, found["t"][2].item()) == (torch.int64, 0)
        assert found["u"].tolist() == [0, 0, 0]
        found["t"][1].add_(1)  # the caller's own


def test_writes_within_the_function_are_followed() -> None:
    def writes(x: Any) -> Any:
        y = torch.zeros(4, dtype=x.dtype)
        y[1:] = x * 2
        y[0] = x.prod()
        z = y.clone()
        y.mul_(y)
        return y + z, z.view(2, 2).T[1]

    def plain(x: Any) -> Any:
        z = torch.cat([x.prod()[None], x * 2])
        return z * z + z, z[[1, 3]]

    _, program = linearize(writes, X)
    for t in (T, X, torch.eye(3, dtype=torch.float64)[1]):
        for found, want in zip(program(t), jvp(plain, (X,), (t,))[1], strict=True):
            close(found, want)
    both = vmap(program)(torch.stack([T, X]))
    close(both[0][1], jvp(plain, (X,), (X,))[1][0])


def test_writes_to_an_argument_reach_it_and_no_tangent() -> None:
    def f(x: Any) -> Any:
        x.mul_(2)
        return x.sin()

    x, t = X.clone(), torch.ones_like(X)
    y, program = linearize(f, x)
    close(x, 2 * X)
    close(y, (2 * X).sin())
    for _ in range(2):
        close(program(t), 2 * (2 * X).cos())
        assert t.tolist() == [1, 1, 1]


def test_what_is_overwritten_later_is_kept_as_it_was() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        z = y * x  # keeps both
        y.zero_()
        w = torch.ones_like(x)
        v = w * x
        w[:] = 7
        return z + v

    _, program = linearize(f, X)
    close(program(T), (2 * X + 1) * T)
    y, program = linearize(torch.exp, X)
    y.zero_()  # the caller's own
    close(program(T), X.exp() * T)


def test_what_the_program_reads_must_not_be_written_to() -> None:
    x, w = X.clone(), T.clone()
    _, program = linearize(lambda x: x * w, x)
    close(program(T), T * T)
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: one of shape \[3\]"):
        program(T)


WRITES = {
    "whole": lambda c: c.mul_(0),
    "slice": lambda c: c[0:1].mul_(0),
    "select": lambda c: c.select(0, 1).zero_(),
    "copy": lambda c: c[1:].copy_(torch.zeros(2)),
    "index": lambda c: c.__setitem__(0, 7.0),
    "view of a view": lambda c: c.view(3, 1)[0].fill_(9.0),
    "detached": lambda c: c.detach().mul_(0),
}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("write", WRITES)
def test_what_a_mapped_program_reads_is_kept_before_it_is_overwritten(
    write: str, recorded: bool
) -> None:
    def product(row: Any) -> Any:
        def f(y: Any) -> Any:
            factor = row * 1
            with torch.set_grad_enabled(recorded):
                z = y * factor
                WRITES[write](factor)
            return z

        return linearize(f, torch.ones(3))[1](torch.ones(3))

    rows = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with torch.set_grad_enabled(recorded):
        close(vmap(product)(rows), rows)


def test_complex_numbers_and_layouts() -> None:
    z, t = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([1j, 1 + 1j])
    close(linearize(lambda z: z * z.conj(), z)[1](t), 2 * (z * t.conj()).real.to(z.dtype))
    close(linearize(lambda z: torch.view_as_real(z).square().sum(-1), z)[1](t),
          2 * (z * t.conj()).real)  # fmt: skip
    close(linearize(lambda x: torch.complex(x, 2 * x).imag, X)[1](T), 2 * T)
    x = torch.arange(12.0).view(3, 4).T
    for t in (
        x,
        x.contiguous(),
        torch.ones(()).expand(4, 3),
        torch.arange(24.0).view(4, 6)[:, ::2],
    ):
        _, program = linearize(lambda x: x.T.reshape(-1)[1:5] * x[0, 1], x)
        flat = lambda v: v.T.reshape(-1)[1:5]  # noqa: E731
        close(program(t), flat(x) * t[0, 1] + flat(t) * x[0, 1])
        close(vmap(program, in_dims=2)(torch.stack([t, t], 2))[1], program(t))


class Cube(torch.autograd.Function):
    """A derivative of its own, and one that reads its tangent."""

    reads = False

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        if Cube.reads:
            t.item()
        return 3 * x * x * t


def test_functions_of_programs_have_their_own_products(monkeypatch: pytest.MonkeyPatch) -> None:
    close(linearize(Cube.apply, X)[1](T), 3 * X * X * T)
    monkeypatch.setattr(Cube, "reads", True)
    with pytest.raises(RuntimeError, match="item"):
        linearize(Cube.apply, X[:1])


def test_results_that_are_not_needed_are_neither_computed_nor_kept() -> None:
    seen = []

    def f(x: Any) -> Any:
        kept = torch.ones(1000, dtype=x.dtype)
        seen.append(weakref.ref(kept))
        (kept * x.sum()).exp()
        return x * 2

    _, program = linearize(f, X)
    gc.collect()
    assert seen[0]() is None
    with torch.profiler.profile() as ran:
        close(program(T), 2 * T)
    assert not any("exp" in e.key for e in ran.key_averages())


def test_tangents_that_do_not_fit_and_outputs_that_are_no_tensors_raise() -> None:
    _, program = linearize(torch.sin, X)
    with pytest.raises(RuntimeError, match="same argspec as the primals"):
        program(T, T)
    with pytest.raises(RuntimeError, match="tangent:0 with shape"):
        program(T[:2])
    with pytest.raises(RuntimeError, match="tangent:0 with dtype"):
        program(T.float())
    with pytest.raises(RuntimeError, match="tangent:0 with device meta"):
        program(T.to("meta"))
    with pytest.raises(ValueError, match="Expected primal to be floating point"):
        linearize(torch.sin, torch.arange(3))
    with pytest.raises(RuntimeError, match="to return only tensors"):
        linearize(lambda x: 1.0, X)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="needs a GPU, or software for one")
def test_programs_run_on_a_gpu() -> None:
    x, t = X.float().to("wgpu"), T.float().to("wgpu")
    y, program = linearize(lambda x: (x[:, None] * x).softmax(0)[1:], x)
    want = jvp(lambda x: (x[:, None] * x).softmax(0)[1:], (x.cpu(),), (t.cpu(),))
    for found, expected in zip((y, program(t)), want, strict=True):
        assert found.device.type == "wgpu"
        torch.testing.assert_close(found.cpu(), expected)
