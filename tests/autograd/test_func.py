"""Transforms of functions: gradients, products with Jacobians, maps over slices, nested."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.autograd import forward_ad
from pytensorlib.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
    vmap,
)

X = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
ONES = torch.ones(3, dtype=torch.float64)


def close(value: Any, expected: Any) -> None:
    np.testing.assert_allclose(value.detach().numpy(), np.asarray(expected), rtol=1e-9, atol=1e-12)


def cubes(x: torch.Tensor) -> torch.Tensor:
    return (x**3).sum()


def mixed(x: torch.Tensor) -> torch.Tensor:
    """Has second derivatives everywhere: sin(x) * sum(x)."""
    return x.sin() * x.sum()


def mixed_jacobian() -> np.ndarray:
    x = X.numpy()
    return np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]


# Gradients.


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_grad_nested_gives_higher_derivatives(depth: int) -> None:
    f: Callable[..., Any] = torch.sin
    for _ in range(depth):
        f = grad(f)
    close(f(torch.tensor(0.5, dtype=torch.float64)), np.sin(0.5 + depth * np.pi / 2))


def test_grad_of_what_holds_an_outer_input_does_not_mix_levels() -> None:
    one = torch.tensor(1.0)
    # The inner slope of x + y in y is 1, so the whole is x.
    assert grad(lambda x: x * grad(lambda y: x + y)(one))(one).item() == 1.0
    # One tensor under two names: the inner slope of x y in y is x.
    assert grad(lambda x: grad(lambda y: x * y)(x))(torch.tensor(3.0)).item() == 1.0


def test_grad_takes_arguments_by_number_and_containers() -> None:
    a, b, c = X, X + 1, X - 1
    first, last = grad(lambda a, b, c: (a * b * c).sum(), argnums=(0, -1))(a, b, c)
    close(first, (b * c).numpy())
    close(last, (a * b).numpy())
    (only,) = grad(lambda a, b: (a * b).sum(), argnums=(1,))(a, b)
    close(only, a.numpy())
    slopes = grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": a, "b": [b, c]})
    close(slopes["a"], b.numpy())
    close(slopes["b"][0], a.numpy())
    close(slopes["b"][1], np.zeros(3))


def test_grad_hands_on_what_comes_beside() -> None:
    slope, aux = grad(lambda x: (cubes(x), {"twice": 2 * x, "n": 3}), has_aux=True)(X)
    close(slope, 3 * X.numpy() ** 2)
    close(aux["twice"], 2 * X.numpy())
    assert aux["n"] == 3
    assert not aux["twice"].requires_grad
    slope, (value, _) = grad_and_value(lambda x: (cubes(x), x), has_aux=True)(X)
    assert value.item() == 0.125 - 1 + 8


def test_results_have_a_history_only_from_outside() -> None:
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert not grad(cubes)(X).requires_grad
    assert grad(cubes)(w).requires_grad
    slope = grad(lambda x: (w * x * x).sum())(X)
    slope.sum().backward()
    close(w.grad, 2 * X.numpy())
    assert X.grad is None
    assert not X.requires_grad
    value, pull = vjp(lambda x: x * x, X)
    assert not value.requires_grad
    assert not pull(ONES)[0].requires_grad
    assert pull(ONES.clone().requires_grad_())[0].requires_grad
    # Both at once: what is constant to the outer level has no history there.
    both = grad(lambda x: (w * x).sum() + x.sum(), argnums=0)
    assert not grad(lambda x: grad(cubes)(ONES).sum() + 0 * x.sum())(X).requires_grad
    assert both(X).requires_grad


def test_no_grad_inside_counts_and_outside_does_not() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            c = x**2
        return x - c

    three = torch.tensor(3.0)
    assert grad(f)(three).item() == 1.0
    with torch.no_grad():
        slope = grad(lambda x: x**2)(three.clone().requires_grad_())
        assert slope.item() == 6.0
        assert not slope.requires_grad
    # Tangents go through it: 1 - 2 x.
    assert jvp(f, (three,), (torch.tensor(1.0),))[1].item() == -5.0
    assert jacfwd(f)(three).item() == -5.0
    with torch.inference_mode():
        assert grad(lambda x: x**2)(torch.tensor(3.0)).item() == 6.0


def test_write_to_a_captured_tensor_raises_and_leaves_no_history() -> None:
    kept = torch.zeros(3, dtype=torch.float64)
    for f in (lambda x: kept.copy_(x).sum(), lambda x: kept[0].add_(x.sum())):
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            grad(f)(X)
        assert not kept.requires_grad
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        grad(lambda x: x.mul_(2).sum())(X.clone())


def test_write_to_what_the_function_made_or_got_is_fine() -> None:
    def made(x: torch.Tensor) -> torch.Tensor:
        y = torch.tensor([0.0, 0.0, 0.0], dtype=torch.float64)
        y.copy_(x)
        y[0] *= 2
        return (y * y).sum()

    close(grad(made)(X), [4.0, -2.0, 4.0])
    given = torch.zeros(3, dtype=torch.float64)
    close(grad(lambda x, y: (y.copy_(x) ** 2).sum())(X, given), 2 * X.numpy())
    close(given, X.numpy())
    assert not given.requires_grad
    kept: list[torch.Tensor] = []

    def hooked(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.relu_()
        kept.append(y)
        return y.sum()

    close(grad(hooked)(X), [2.0, 0.0, 2.0])


def test_level_that_ended_leaves_nothing_behind() -> None:
    x = torch.ones(3)
    w = torch.ones(3, requires_grad=True)
    gone = []

    def f(y: torch.Tensor) -> torch.Tensor:
        gone.append(weakref.ref(y))
        return (w * y).sum()

    result = grad(f)(x)
    del result
    gc.collect()
    assert gone[0]() is None


# Products.


def test_vjp_and_jvp_are_transposes_for_containers() -> None:
    def f(p: dict[str, Any], q: Any) -> Any:
        return {"u": p["a"] * q, "v": (p["a"].sum() * q.exp().sum(), p["b"].cos())}

    p, q = {"a": X, "b": X[:1]}, X + 1
    out, pull = vjp(f, p, q)
    tangents = ({"a": ONES, "b": ONES[:1] * 2}, X)
    again, pushed = jvp(f, (p, q), tangents)
    close(out["u"], again["u"].numpy())
    cotangents = {"u": X, "v": (torch.tensor(2.0, dtype=torch.float64), ONES[:1])}
    pulled = pull(cotangents)
    left = (cotangents["u"] * pushed["u"]).sum() + 2 * pushed["v"][0] + pushed["v"][1].sum()
    right = (pulled[0]["a"]).sum() + 2 * pulled[0]["b"].sum() + (pulled[1] * X).sum()
    close(left, right.item())
    assert pull(cotangents)[1].shape == q.shape


def test_jvp_composes_with_itself_and_with_grad() -> None:
    slope = lambda x: jvp(cubes, (x,), (ONES,))[1]  # noqa: E731
    close(slope(X), 3 * (X.numpy() ** 2).sum())
    close(jvp(slope, (X,), (ONES,))[1], 6 * X.numpy().sum())
    close(jvp(grad(cubes), (X,), (ONES,))[1], 6 * X.numpy())
    close(grad(slope)(X), 6 * X.numpy())
    w = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    jvp(lambda x: (w * x * x).sum(), (X,), (ONES,))[1].backward()
    close(w.grad, 2 * X.numpy().sum())


def test_jvp_of_what_does_not_depend_on_inputs_is_zero_or_raises() -> None:
    out, along = jvp(lambda x: (x * 2, x.argmax()), (X,), (ONES,))
    assert out[1].item() == 2
    assert along[1].dtype == torch.int64
    assert along[1].item() == 0
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda x: ONES, (X,), (ONES,), strict=True)


def test_linearize_runs_the_function_once() -> None:
    runs = []

    def f(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return mixed(x)

    out, push = linearize(f, X)
    close(out, mixed(X).numpy())
    rows = torch.eye(3, dtype=torch.float64)
    close(torch.stack([push(row) for row in rows], 1), mixed_jacobian())
    close(vmap(push)(rows), mixed_jacobian().T)
    assert len(runs) == 1


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobian_is_the_closed_form(jacobian: Any) -> None:
    close(jacobian(mixed)(X), mixed_jacobian())
    value, aux = jacobian(lambda x: (mixed(x), x.sum()), has_aux=True)(X)
    close(value, mixed_jacobian())
    assert aux.item() == 1.5
    first, second = jacobian(lambda a, b: a * b.sum(), argnums=(0, 1))(X, X + 1)
    close(first, np.eye(3) * (X.numpy() + 1).sum())
    close(second, np.repeat(X.numpy()[:, None], 3, 1))
    tree = jacobian(lambda p: {"s": p["a"].sum(), "t": (p["b"],)})({"a": X, "b": X[:2]})
    close(tree["s"]["a"], np.ones(3))
    close(tree["t"][0]["b"], np.eye(2))
    close(tree["t"][0]["a"], np.zeros((2, 3)))
    assert jacobian(lambda x: x[:0])(X).shape == (0, 3)
    assert jacobian(lambda x: ONES * x.sum())(X[:0]).shape == (3, 0)
    assert jacobian(lambda x: x.sum())(X.view(3, 1)).shape == (3, 1)
    with pytest.raises(RuntimeError, match="real but received complex"):
        jacobian(lambda x: x)(torch.ones(2, dtype=torch.complex64))


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd, grad])
def test_second_derivatives_agree_in_every_composition(outer: Any, inner: Any) -> None:
    f = lambda x: mixed(x).sum()  # noqa: E731
    x = X.numpy()
    expected = np.diag(-np.sin(x) * x.sum()) + np.cos(x)[:, None] + np.cos(x)[None]
    close(outer(inner(f))(X), expected)
    close(hessian(f)(X), expected)


def test_third_derivatives() -> None:
    expected = np.zeros((3, 3, 3))
    expected[range(3), range(3), range(3)] = 6
    close(jacrev(jacfwd(jacrev(cubes)))(X), expected)
    close(hessian(grad(cubes))(X), expected)


# Maps.


def test_vmap_places_dimensions() -> None:
    x = torch.arange(24.0, dtype=torch.float64).view(2, 3, 4)
    n = x.numpy()
    close(vmap(lambda a: a.sum())(x), n.sum((1, 2)))
    close(vmap(lambda a: a * 2, in_dims=1)(x), n.transpose(1, 0, 2) * 2)
    close(vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x), n * 2)
    close(vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(x), n * 2)
    close(vmap(vmap(lambda a: a.sum(), in_dims=1), in_dims=2)(x), n.sum(0).T)
    pair = vmap(lambda d: (d["x"].sum(), d["y"]), in_dims=({"x": 0, "y": 1},), out_dims=(0, 1))
    sums, same = pair({"x": x, "y": x[:, :2, 0]})
    close(sums, n.sum((1, 2)))
    close(same, n[:, :2, 0])
    close(vmap(lambda a, k=1.0: a * k, chunk_size=1)(x[:, 0], k=x[0, 0]), n[:, 0] * n[0, 0])
    kept, three = vmap(lambda a: (a, 3), out_dims=(0, None))(x)
    close(kept, n)
    assert three == 3
    assert vmap(lambda a: a.sum(0), out_dims=1)(x[:0]).shape == (4, 0)
    with pytest.raises(ValueError, match="BatchedTensor when out_dim is None"):
        vmap(lambda a: a, out_dims=None)(x)


@pytest.mark.parametrize(
    ("options", "args", "text"),
    [
        ({"in_dims": [0]}, (X,), "expected `in_dims` to be int"),
        ({}, (), "got no inputs"),
        ({"in_dims": (0, 0)}, (X,), "in_dims is not compatible"),
        ({"in_dims": ("a",)}, (X,), "in_dim must be either an integer"),
        ({}, (1,), "cannot vmap over non-Tensor"),
        ({"in_dims": 1}, (X,), "expected in_dim to satisfy -1 <= in_dim < 1"),
        ({"in_dims": (None,)}, (X,), "at least one Tensor to vmap over"),
        ({}, (X, X[:2]), r"got sizes \[3, 2\]"),
        ({"out_dims": (0, 0)}, (X,), "out_dims is not compatible"),
        ({"out_dims": "a"}, (X,), "`out_dims` must be an int, None"),
        ({"chunk_size": 0}, (X,), "chunk_size should be None or greater than 0"),
    ],
)
def test_vmap_of_what_does_not_fit_raises(options: Any, args: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vmap(lambda *a: a[0], **options)(*args)


def test_vmap_obeys_randomness() -> None:
    x = torch.zeros(3, 20)
    draw = lambda r: torch.rand(20)  # noqa: E731
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(draw)(x)
    assert torch.equal(torch.get_rng_state(), before)
    same = vmap(draw, randomness="same")(x)
    assert torch.equal(same[0], same[2])
    different = vmap(draw, randomness="different")(x)
    assert not torch.equal(different[0], different[2])
    own = torch.Generator().manual_seed(1)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda r: torch.rand(20, generator=own))(x)
    same = vmap(lambda r: torch.rand(20, generator=own), randomness="same")(x)
    assert torch.equal(same[0], same[2])
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(draw, randomness="no")
    with pytest.raises(RuntimeError, match="randomness error mode"):
        jacfwd(lambda r: r * torch.rand(20))(x[0])
    assert jacfwd(lambda r: r * torch.rand(20), randomness="same")(x[0]).shape == (20, 20)


def test_vmap_refuses_writes_that_slices_would_share() -> None:
    kept = torch.zeros(2)
    with pytest.raises(RuntimeError, match="has more elements than `self`.*broadcast shape"):
        vmap(lambda r: kept.add_(r))(torch.ones(3, 2))
    # The function runs once.
    assert vmap(lambda r: r * kept.add_(1))(torch.ones(3, 2)).tolist() == [[1.0, 1.0]] * 3
    assert kept.tolist() == [1.0, 1.0]
    assert vmap(lambda r: r + kept.zero_())(torch.ones(3, 2)).tolist() == [[1.0, 1.0]] * 3
    rows = torch.ones(3, 2)
    vmap(lambda r: r.mul_(2))(rows)
    assert rows.tolist() == [[2.0, 2.0]] * 3
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        vmap(lambda r: torch.zeros(2).add_(r))(rows)
    assert vmap(lambda r: r.new_zeros(2).add_(r))(rows).tolist() == rows.tolist()
    norm = nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input"):
        vmap(norm)(torch.randn(3, 4, 2))
    net = replace_all_batch_norm_modules_(nn.Sequential(norm))
    assert vmap(net)(torch.randn(3, 4, 2)).shape == (3, 4, 2)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda r: r.sum().item(), "calling .item"),
        (lambda r: r if r.sum() > 0 else -r, "data-dependent control flow"),
        (lambda r: torch.tensor(r.tolist()), "Cannot access data pointer"),
        (lambda r: torch.from_numpy(r.numpy()), "Cannot access data pointer"),
    ],
)
def test_vmap_refuses_functions_that_read_elements(read: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        vmap(read)(torch.ones(3, 2))


def test_gradients_flow_through_vmap() -> None:
    x = X.view(3, 1) * torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    rows = vmap(lambda r: (r * r).sum())
    n = x.numpy()
    close(grad(lambda x: (rows(x) ** 2).sum())(x), 4 * n * (n * n).sum(1, keepdims=True))
    close(jvp(rows, (x,), (torch.ones_like(x),))[1], 2 * n.sum(1))
    close(vmap(lambda a, v: jvp(cubes, (a,), (v,))[1])(x, x), 3 * (n**3).sum(1))
    close(vmap(jacrev(mixed))(X.repeat(2, 1)), np.stack([mixed_jacobian()] * 2))
    leaf = x.clone().requires_grad_()
    rows(leaf).sum().backward()
    close(leaf.grad, 2 * n)


def test_gradients_for_each_sample_are_those_of_a_loop() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x, y = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    params = {k: v.detach() for k, v in net.named_parameters()}

    def loss(params: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(functional_call(net, params, (x,)), y)

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(5):
        net.zero_grad()
        nn.functional.cross_entropy(net(x[i]), y[i]).backward()
        for name, p in net.named_parameters():
            assert p.grad is not None
            close(found[name][i], p.grad.numpy())
    assert not any(g.requires_grad for g in found.values())


def test_ensemble_is_that_of_its_models() -> None:
    nets = [nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(nets)
    x = torch.randn(5, 3)
    call = lambda p, b, x: functional_call(nets[0], (p, b), (x,))  # noqa: E731
    found = vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    for y, net in zip(found, nets, strict=True):
        np.testing.assert_allclose(y.detach(), net(x).detach(), rtol=1e-6)
    found.sum().backward()
    assert params["weight"].grad.shape == (4, 2, 3)


# Errors.


def test_grad_of_what_does_not_fit_raises() -> None:
    for f, text in (
        (lambda x: x * 2, "scalar Tensor, got tensor with 1 dims"),
        (lambda x: 3.0, "to return a Tensor, got <class 'float'>"),
        (lambda x: (x.sum(), x.sum()), "to return a Tensor, got <class 'tuple'>"),
    ):
        with pytest.raises(RuntimeError, match=text):
            grad(f)(X)
    for argnums, text in ((2, "only 1 positional"), ((0, 0), "unique"), ((), "non-empty")):
        with pytest.raises(RuntimeError, match=text):
            grad(cubes, argnums=argnums)(X)
    with pytest.raises(ValueError, match="must be Tensor, got <class 'float'>"):
        grad(lambda x: x)(3.0)
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        grad(cubes)(torch.arange(3))
    with pytest.raises(RuntimeError, match="should be a tuple"):
        grad(cubes, has_aux=True)(X)


def test_products_of_what_does_not_fit_raise() -> None:
    with pytest.raises(RuntimeError, match="primals to be a tuple"):
        jvp(cubes, X, X)
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(cubes, (X,), (X, X))
    with pytest.raises(RuntimeError, match="has a different size than that"):
        jvp(cubes, (X,), (X[:2],))
    with pytest.raises(ValueError, match="Expected primal to be floating point"):
        jvp(cubes, (torch.arange(3),), (torch.arange(3),))
    with pytest.raises(RuntimeError, match="floating-point or complex"):
        vjp(torch.argmax, X)
    with pytest.raises(RuntimeError, match="structure of cotangents"):
        vjp(cubes, X)[1]((X,))
    with pytest.raises(RuntimeError, match="same argspec"):
        linearize(cubes, X)[1](X, X)
    with pytest.raises(ValueError, match="should be greater than 0"):
        jacrev(cubes, chunk_size=0)


def test_jvp_of_a_function_that_writes_to_its_argument_writes_to_the_input() -> None:
    x, y, t = X.clone(), 2 * X, ONES.clone()
    value, slope = jvp(lambda a: a.mul_(a), (x,), (t,))
    close(value, X.numpy() ** 2)
    close(slope, 2 * X.numpy())
    close(x, X.numpy() ** 2)
    close(t, 2 * X.numpy())
    product = jvp(lambda a, b: (a.copy_(b), a * 2)[1], (X.clone(), y), (ONES.clone(), 3 * ONES))[1]
    close(product, [6.0] * 3)
    close(jacfwd(lambda a: a[0].mul_(a[1]))(X.clone()), [X[1].item(), X[0].item(), 0.0])


# Dual numbers.


def test_dual_carries_its_tangent_through_no_grad_too() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(X, ONES)
        y = forward_ad.unpack_dual(mixed(x))
        with torch.no_grad():
            z = forward_ad.unpack_dual(x * x)
        own = forward_ad.unpack_dual(x)
        assert forward_ad.unpack_dual(ONES).tangent is None
    close(y.primal, mixed(X).numpy())
    close(y.tangent, mixed_jacobian().sum(1))
    close(z.tangent, 2 * X.numpy())
    close(own.tangent, ONES.numpy())
    assert not y.tangent.requires_grad
    assert not y.primal.requires_grad


def test_dual_level_is_one() -> None:
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(X, X)
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="different size than that of the original"):
            forward_ad.make_dual(X, X[:2])
        with pytest.raises(ValueError, match="floating point or complex"):
            forward_ad.make_dual(torch.arange(3), torch.arange(3))
    with pytest.raises(RuntimeError, match="must be a positive number"):
        forward_ad.exit_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        forward_ad.exit_dual_level(level=1)
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, ONES)
        forward_ad.unpack_dual((w * dual * dual).sum()).tangent.backward()
    close(w.grad, 2 * X.numpy())


@pytest.mark.parametrize("outer", [jacfwd, jacrev])
def test_third_derivatives_of_a_normalization_are_those_of_its_formula(outer: Any) -> None:
    def whole(x: torch.Tensor) -> torch.Tensor:
        return (nn.functional.layer_norm(x, (3,)) ** 3).cumsum(0)

    def parts(x: torch.Tensor) -> torch.Tensor:
        y = x - x.mean()
        return ((y / (y.square().mean() + 1e-5).sqrt()) ** 3).cumsum(0)

    found = outer(grad(lambda x: jvp(whole, (x,), (X,))[1].sum()))(X)
    close(found, outer(grad(lambda x: jvp(parts, (x,), (X,))[1].sum()))(X).numpy())


def test_gradients_reach_through_tangents_of_gradients() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return (x**4).sum()

    third = 24 * X.numpy()
    close(grad(lambda x: jvp(grad(f), (x,), (ONES,))[1].sum())(X), third)
    close(grad(lambda x: linearize(grad(f), x)[1](ONES).sum())(X), third)
    close(grad(lambda x: hessian(f)(x).sum())(X), third)
    close(grad(lambda x: vmap(lambda t: jvp(grad(f), (x,), (t,))[1])(ONES.diag()).sum())(X), third)
    close(jacrev(lambda x: jvp(grad(f), (x,), (X,))[1])(X).diagonal(), third * X.numpy())
    w = X.clone().requires_grad_()
    jvp(grad(lambda x: (w * x**3).sum()), (X,), (ONES,))[1].sum().backward()
    close(w.grad, 6 * X.numpy())


def test_tangents_in_inference_mode_are_computed() -> None:
    x = torch.tensor([1.0, 2.0])
    with torch.inference_mode():
        y, t = torch.func.jvp(lambda x: x**3, (torch.ones(2),), (torch.ones(2) * 2,))
        assert (y.tolist(), t.tolist()) == ([1.0, 1.0], [6.0, 6.0])
        assert torch.func.jacfwd(lambda x: x**3)(x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
        assert torch.func.hessian(lambda x: (x**3).sum())(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
        assert torch.func.linearize(torch.exp, torch.zeros(2))[1](x).tolist() == [1.0, 2.0]


def test_tangents_of_other_types_and_shapes_are_taken_as_by_pytorch() -> None:
    jvp, x = torch.func.jvp, torch.zeros(3)
    for t in (torch.full((3,), 2.0, dtype=torch.float64), torch.full((3,), 2 + 1j)):
        y, product = jvp(torch.exp, (x,), (t,))
        assert (y.dtype, product.tolist()) == (torch.float32, [2.0] * 3)
    with pytest.raises(RuntimeError, match=r"Tensor is of size \[3\] while the given .* \[3, 1\]"):
        jvp(torch.exp, (x,), (torch.ones(3, 1),))
    with pytest.raises(ValueError, match="Expected tangent to be floating point or complex, but g"):
        jvp(torch.exp, (x,), (torch.ones(3).int(),))
    along = torch.func.linearize(torch.exp, x)[1]
    with pytest.raises(RuntimeError, match=r"tangent:0 with shape torch.Size\(\[2\]\) in"):
        along(torch.ones(2))
    with pytest.raises(RuntimeError, match="tangent:0 with dtype torch.float64 in flattened"):
        along(x.double())
