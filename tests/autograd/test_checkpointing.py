"""Computing parts again in backward: gradients, memory, random numbers and errors."""

import gc
import weakref

import pytest

import pytensorlib as torch
from pytensorlib import func, nn
from pytensorlib.utils import checkpoint as c

BOTH = pytest.mark.parametrize("reentrant", [True, False])


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))


def gradients(model, run):
    torch.manual_seed(1)
    x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    loss = run(model, x).square().sum()
    loss.backward()
    return [x.grad, *(p.grad for p in model.parameters())], torch.rand(1)


@BOTH
def test_checkpoint_gives_the_gradients_of_the_program_with_its_random_numbers(reentrant):
    want, after = gradients(net(), lambda m, x: m(x))
    found, later = gradients(net(), lambda m, x: c.checkpoint(m, x, use_reentrant=reentrant))
    for a, b in zip(want, found, strict=True):
        assert torch.equal(a, b)
    assert torch.equal(after, later)  # the stream goes on as without


@BOTH
def test_sequential_runs_its_parts_again(reentrant):
    want, _ = gradients(net(), lambda m, x: m(x))
    found, _ = gradients(net(), lambda m, x: c.checkpoint_sequential(m, 2, x, reentrant))
    for a, b in zip(want, found, strict=True):
        assert torch.equal(a, b)


def test_without_the_random_state_other_numbers_are_drawn():
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    y = c.checkpoint(nn.Dropout(0.5), x, use_reentrant=False, preserve_rng_state=False)
    torch.rand(7)
    kept = y.detach() != 0
    y.sum().backward()
    assert not torch.equal(kept, x.grad != 0)


def test_function_runs_twice_and_stops_early():
    calls = []

    def part(x):
        calls.append("begin")
        y = x.exp()
        calls.append("end")
        return y

    x = torch.ones(2, requires_grad=True)
    c.checkpoint(part, x, use_reentrant=False).sum().backward()
    assert calls == ["begin", "end", "begin"]
    calls.clear()
    with c.set_checkpoint_early_stop(False):
        c.checkpoint(part, x, use_reentrant=False).sum().backward()
    assert calls == ["begin", "end", "begin", "end"]
    calls.clear()
    with torch.no_grad():
        c.checkpoint(part, x, use_reentrant=False)
    assert calls == ["begin", "end"]


def test_what_a_part_saves_is_not_kept():
    alive = []

    def part(x):
        y = x.exp()
        alive.append(weakref.ref(y))
        return (y * y).sum()

    x = torch.ones(4, requires_grad=True)
    loss = c.checkpoint(part, x, use_reentrant=False)
    gc.collect()
    assert alive[0]() is None
    loss.backward()
    assert torch.allclose(x.grad, 2 * (2 * torch.ones(4)).exp())


def test_nested_checkpoints_give_the_gradient():
    def inner(x, scale):
        return (x * scale).sin()

    def outer(x):
        y = c.checkpoint(inner, x.exp(), scale=3.0, use_reentrant=False)
        return c.checkpoint(inner, y.cos(), 2.0, use_reentrant=False).exp()

    x = torch.linspace(0, 1, 5, dtype=torch.float64).requires_grad_()
    want = torch.autograd.grad(inner(inner(x.exp(), 3.0).cos(), 2.0).exp().sum(), x)[0]
    y = c.checkpoint(outer, x, use_reentrant=False).sum()
    found = torch.autograd.grad(y, x, retain_graph=True)[0]
    assert torch.allclose(want, found, rtol=1e-14)
    assert torch.allclose(torch.autograd.grad(y, x)[0], want, rtol=1e-14)


def test_second_derivative_goes_through_a_checkpoint():
    x = torch.linspace(0.1, 1, 4, dtype=torch.float64).requires_grad_()
    y = c.checkpoint(lambda x: x.sin() * x, x, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(h, 2 * x.cos() - x * x.sin())


def test_results_may_be_containers_and_arguments_too():
    def part(pair, *, flag):
        a, b = pair
        return {"sum": a + b if flag else a, "list": [a * b]}

    x = torch.ones(2, requires_grad=True)
    y = torch.full((2,), 2.0, requires_grad=True)
    out = c.checkpoint(part, (x, y), flag=True, use_reentrant=False)
    (out["sum"].sum() + out["list"][0].sum()).backward()
    assert x.grad.tolist() == [3, 3] and y.grad.tolist() == [2, 2]


def test_another_program_the_second_time_is_an_error():
    calls = [0]

    def shapes(x):
        calls[0] += 1
        return x.exp() if calls[0] == 1 else torch.cat([x, x]).exp()[:2]

    x = torch.ones(2, requires_grad=True)
    y = c.checkpoint(shapes, x, use_reentrant=False)
    with pytest.raises(c.CheckpointError, match="different metadata"):
        y.sum().backward()

    def fewer(x):
        calls[0] += 1
        return x.sin().cos().exp() if calls[0] == 1 else x.exp()

    calls[0] = 0
    y = c.checkpoint(fewer, x, use_reentrant=False)
    with pytest.raises(c.CheckpointError, match=r"forward: 3\n.*recomputation: 1"):
        y.sum().backward()
    calls[0] = 0
    y = c.checkpoint(shapes, x, use_reentrant=False, debug=True)
    with pytest.raises(c.CheckpointError, match=r"torch.cat|saved at"):
        y.sum().backward()


def test_an_argument_that_is_written_to_is_noticed():
    a = torch.ones(2, requires_grad=True) * 2
    y = c.checkpoint(torch.exp, a, use_reentrant=False)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_contexts_surround_both_calls():
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *exc):
            pass

    x = torch.ones(1, requires_grad=True)
    contexts = lambda: (Note("first"), Note("second"))  # noqa: E731
    c.checkpoint(torch.exp, x, use_reentrant=False, context_fn=contexts).backward()
    assert seen == ["first", "second"]


def test_reentrant_refuses_what_it_cannot_do():
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        c.checkpoint(torch.exp, x, use_reentrant=True, k=1)
    with pytest.warns(UserWarning, match="None of the inputs"):
        c.checkpoint(torch.exp, torch.ones(1), use_reentrant=True)
    with pytest.warns(UserWarning, match="use_reentrant"):
        c.checkpoint(torch.exp, x)
    y = c.checkpoint(torch.exp, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        torch.autograd.grad(y, x)


def test_second_backward_needs_the_graph():
    x = torch.ones(1, requires_grad=True)
    y = c.checkpoint(torch.exp, x, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()
    assert torch.allclose(x.grad, 2 * torch.ones(1).exp())
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


X = torch.tensor([[0.3, -1.0, 2.0], [1.5, 0.2, -0.7]], dtype=torch.float64)


def wave(x):
    return (x.sin() * x * x.roll(1, 0)).sum()


def kept(x):
    return c.checkpoint(wave, x, use_reentrant=False)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: torch.vmap(f)(X),
        lambda f: torch.vmap(func.grad(f))(X),
        lambda f: func.grad(lambda x: torch.vmap(f)(x).square().sum())(X),
        lambda f: torch.autograd.functional.jacobian(torch.vmap(f), X),
        lambda f: torch.vmap(func.hessian(f))(X),
        lambda f: func.hessian(lambda x: torch.vmap(f)(x).square().sum())(X),
        lambda f: func.grad(lambda x: func.jvp(f, (x,), (X[1],))[1])(X[0]),
        lambda f: func.jvp(func.grad(f), (X[0],), (X[1],))[1],
        lambda f: func.linearize(f, X[0])[1](X[1]),
        lambda f: func.jacfwd(f)(X[0]),
        lambda f: func.jacrev(func.jacrev(f))(X[0]),
    ],
)
def test_transforms_of_a_checkpoint_are_those_of_its_function(transformed):
    assert torch.allclose(transformed(kept), transformed(wave))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_slices_of_a_checkpoint_draw_the_same_numbers_again(randomness):
    def part(x):
        return c.checkpoint(lambda x: (nn.functional.dropout(x) ** 2).sum(), x, use_reentrant=False)

    def both(x):
        value = torch.vmap(part, randomness=randomness)(x)
        return value.sum(), value

    slope, (total, _) = func.grad_and_value(both, has_aux=True)(torch.ones(3, 20))
    assert set(slope.unique().tolist()) == {0.0, 8.0}  # 2 * 2 ** 2 where it is kept
    assert total == slope.sum() / 2
    assert slope[0].equal(slope[1]) == (randomness == "same")


def test_slices_of_a_checkpoint_that_were_written_to_raise():
    def part(x):
        z = x * 1
        y = c.checkpoint(torch.sin, z, use_reentrant=False)
        z.mul_(2)
        return y.sum()

    with pytest.raises(RuntimeError, match=r"of shape \[3\], is at version 1; expected version 0"):
        torch.vmap(func.grad(part))(X)


@pytest.mark.parametrize("transform", [torch.vmap, func.grad, func.jacfwd, func.jacrev])
def test_transforms_refuse_a_reentrant_checkpoint(transform):
    with pytest.raises(RuntimeError, match=r"must override the setup_context .* use_reentrant=Fal"):
        transform(lambda x: c.checkpoint(wave, x, use_reentrant=True))(X[0])
