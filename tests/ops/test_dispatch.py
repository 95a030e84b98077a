"""The short ways of small calls give what the general ones do, and keep to the rules of both."""

import copy
import pickle

import numpy as np
import pytest

import pytensorlib as pt
from pytensorlib import nn

SHAPES = [((), ()), ((0,), (0,)), ((0, 3), (3,)), ((5,), ()), ((3, 4), (4,)), ((3, 4), (1, 4))]
SHAPES += [
    ((2, 3, 4), (3, 4)),
    ((3, 1), (4,)),
    ((1, 4), (3, 1)),
    ((70, 100), (100,)),
    ((300,), (1,)),
]
OPS = ["add", "sub", "mul", "true_divide", "lt", "ge", "eq"]


def value_of(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    names = {"sub": "subtract", "mul": "multiply", "lt": "less", "ge": "greater_equal"}
    with np.errstate(all="ignore"):
        return getattr(np, names.get(name, {"eq": "equal"}.get(name, name)))(x, y)


@pytest.mark.parametrize(("a", "b"), [*SHAPES, *((b, a) for a, b in SHAPES)])
@pytest.mark.parametrize("name", OPS)
def test_small_broadcast_call_equals_numpy(name: str, a: tuple, b: tuple) -> None:
    rng = np.random.default_rng(0)
    x, y = (np.asarray(rng.integers(-3, 3, s) / 2, np.float32) for s in (a, b))
    for layout in (lambda v: v, lambda v: v.T.copy().T):
        got = getattr(pt, name)(pt.from_numpy(layout(x)), pt.from_numpy(layout(y)))
        want = value_of(name, x, y)
        assert got.shape == want.shape
        assert got.numpy().dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("number", [2, -1.5, 0, float("nan"), float("inf"), 1e-45, 1e300])
@pytest.mark.parametrize("n", [0, 1, 3, 255, 256, 257, 8192, 8193])
def test_small_call_with_a_number_equals_numpy(n: int, number: float) -> None:
    x = np.linspace(-2, 2, n, dtype=np.float32)
    t = pt.from_numpy(x.copy())
    with np.errstate(all="ignore"):
        y = np.float32(number)
        for got, want in [
            (t + number, x + y), (number - t, y - x), (t * number, x * y), (t > number, x > y),
            (number >= t, y >= x), (t.clone().mul_(number), x * y),
        ]:  # fmt: skip
            np.testing.assert_array_equal(got.numpy(), want)
            assert got.dtype == (pt.bool if want.dtype == bool else pt.float32)


def test_call_in_place_keeps_its_rules() -> None:
    x = pt.arange(6.0)
    before = x._version
    x.add_(x)
    assert x.tolist() == [0, 2, 4, 6, 8, 10]
    assert x._version == before + 1
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match="broadcast shape"):
        x.add_(pt.ones(2, 6))
    y = pt.ones(2, 3)
    y.mul_(y[0].clone()).add_(pt.arange(3.0))
    assert y.tolist() == [[1, 2, 3], [1, 2, 3]]
    leaf = pt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.add_(1.0)


@pytest.mark.parametrize("m", [1, 4, 24])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True)])
def test_small_product_equals_numpy(m: int, ta: bool, tb: bool) -> None:
    rng = np.random.default_rng(m)
    a = rng.integers(-4, 4, (m, m + 1)).astype(np.float32)
    b = rng.integers(-4, 4, (m + 1, m + 2)).astype(np.float32)
    c = rng.integers(-4, 4, m + 2).astype(np.float32)
    x = pt.from_numpy(np.ascontiguousarray(a.T)).T if ta else pt.from_numpy(a)
    y = pt.from_numpy(np.ascontiguousarray(b.T)).T if tb else pt.from_numpy(b)
    np.testing.assert_array_equal((x @ y).numpy(), a @ b)
    out = nn.functional.linear(x, y.T, pt.from_numpy(c))
    np.testing.assert_array_equal(out.numpy(), a @ b + c)


def test_operators_with_foreign_operands_are_left_to_them() -> None:
    class Other:
        def __radd__(self, _: object) -> str:
            return "radd"

        def __rmatmul__(self, _: object) -> str:
            return "rmatmul"

        def __gt__(self, _: object) -> str:
            return "gt"

    x = pt.ones(2)
    assert (x + Other(), x @ Other(), x < Other()) == ("radd", "rmatmul", "gt")
    with pytest.raises(TypeError):
        x @ 2
    with pytest.raises(TypeError):
        _ = x < "a"
    assert (x == None, x != "a") == (False, True)  # noqa: E711
    assert (7 // (x * 2)).tolist() == [3.0, 3.0]
    assert (np.ones(2, np.float32) @ x).item() == 2


def test_subclass_operators_override_and_reach_the_class() -> None:
    class Sub(pt.Tensor):
        def __add__(self, other: object) -> object:
            return ("sub", super().__add__(other))

    s = pt.ones(2).as_subclass(Sub)
    assert (s + 1)[0] == "sub"
    assert (s + 1)[1].tolist() == [2.0, 2.0]
    assert (s * 2).tolist() == [2.0, 2.0]
    assert (nn.Parameter(pt.ones(2)) * 2).tolist() == [2.0, 2.0]


def test_module_attributes_follow_registration_and_classes() -> None:
    m = nn.Linear(2, 2)
    weight = m.weight
    assert m._parameters["weight"] is weight
    m._parameters["weight"] = other = nn.Parameter(pt.zeros(2, 2))
    assert m.weight is other
    del m.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weight'"):
        m.weight  # noqa: B018
    assert not hasattr(m, "weight")
    assert getattr(m, "weight", 3) == 3
    m.weight = weight
    twin = pickle.loads(pickle.dumps(m))
    assert twin.weight.tolist() == weight.tolist()
    assert copy.deepcopy(m)(pt.ones(1, 2)).tolist() == m(pt.ones(1, 2)).tolist()

    class Falls(nn.Linear):
        @property
        def broken(self) -> None:
            raise AttributeError("inside")

        def __getattr__(self, name: str) -> object:
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name not in {"absent", "broken"}:
                    raise
                return f"no {name}"

    f = Falls(2, 2)
    assert f.weight.shape == (2, 2)
    assert (f.absent, f.broken) == ("no absent", "no broken")

    class Late(nn.Linear):
        pass

    late = Late(2, 2)
    Late.__getattr__ = lambda self, name: 5  # type: ignore[method-assign]
    assert late.anything == 5
    del Late.__getattr__
    assert late.weight.shape == (2, 2)


def test_module_call_finds_forward_where_python_would() -> None:
    class Twice(nn.Module):
        def forward(self, x: pt.Tensor, *more: object, k: int = 2) -> object:
            return x * k, more

    m = Twice()
    x = pt.ones(1)
    assert m(x)[0].item() == 2
    assert m(x, k=3)[0].item() == 3
    assert m(x, *range(9))[1] == tuple(range(9))
    m.forward = lambda x: "own"  # type: ignore[method-assign]
    assert m(x) == "own"
    del m.forward
    handle = m.register_forward_hook(lambda m, a, out: "hooked")
    assert m(x) == "hooked"
    handle.remove()
    assert m(x)[0].item() == 2
    with pytest.raises(TypeError, match="forward"):
        m()
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(x)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_optimizer_with_missing_gradients_steps_the_others(name: str) -> None:
    params = [nn.Parameter(pt.ones(3)) for _ in range(3)]
    optimizer = getattr(pt.optim, name)(params, lr=0.1)
    for rounds in range(4):
        optimizer.zero_grad()
        assert all(p.grad is None for p in params)
        for i, p in enumerate(params):
            if i != rounds % 3:
                p.grad = pt.ones(3)
        old = [p.detach().clone() for p in params]
        optimizer.step()
        for i, (p, o) in enumerate(zip(params, old, strict=True)):
            assert bool((p == o).all()) == (i == rounds % 3)
        assert pt.is_grad_enabled()


def test_backward_twice_raises_and_a_failed_pass_changes_nothing() -> None:
    x = pt.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        pt.ones(1).backward()
