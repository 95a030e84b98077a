"""Ways to call that older PyTorch had and this one still takes, and calls with nothing."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch

# Of the orders of old, which all of these take.
pytestmark = pytest.mark.filterwarnings("ignore:This overload of:UserWarning")

T = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
A = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
B = torch.tensor([[0.5, 2.0], [-3.0, 1.0]])
V, W = torch.tensor([1.0, 2.0]), torch.tensor([-2.0, 3.0])
# Name, self, the two operands, and their product.
PRODUCTS = [
    ("addmm", T, A, B, [[3.5, 1.0], [-0.5, 4.5]]),
    ("addmv", V, A, W, [-5.0, -2.5]),
    ("addr", T, V, W, [[-2.0, 3.0], [-4.0, 6.0]]),
    ("addbmm", T, A[None], B[None], [[3.5, 1.0], [-0.5, 4.5]]),
    ("baddbmm", T[None], A[None], B[None], [[[3.5, 1.0], [-0.5, 4.5]]]),
]


@pytest.mark.parametrize(("name", "t", "a", "b", "product"), PRODUCTS, ids=lambda p: str(p)[:7])
def test_products_take_their_factors_before_what_they_scale(name, t, a, b, product) -> None:
    f, product = getattr(torch, name), torch.tensor(product)
    both, one = (2 * t + 3 * product).tolist(), (2 * t + product).tolist()
    assert f(2, t, 3, a, b).tolist() == getattr(t, name)(2, 3, a, b).tolist() == both
    assert f(2, t, a, b).tolist() == getattr(t, name)(2, a, b).tolist() == one
    out = torch.empty_like(t)
    assert f(2, t, 3, a, b, out=out) is out
    assert out.tolist() == both
    x = t.clone()
    assert getattr(x, f"{name}_")(2, 3, a, b) is x
    assert x.tolist() == both
    x = t.clone()
    assert getattr(x, f"{name}_")(2, a, b).tolist() == one
    x = t.clone().requires_grad_()
    f(2, x, 3, a, b).sum().backward()
    assert x.grad.tolist() == torch.full_like(t, 2).tolist()
    for wrong in [(t, 2, 3, a, b), (2, 3, t, a, b), (2, t, 3, a, b, 1), ("2", t, a, b)]:
        with pytest.raises(TypeError, match=name):
            f(*wrong)


def test_in_place_function_of_older_order_returns_its_target() -> None:
    x = V.clone()
    assert torch.addmv_(2, x, 3, A, W) is x
    assert x.tolist() == [-13.0, -3.5]


@pytest.mark.parametrize(("name", "sign"), [("add", 1), ("sub", -1)])
def test_sums_take_alpha_second(name: str, sign: int) -> None:
    f, want = getattr(torch, name), (T + sign * 2 * A).tolist()
    assert f(T, 2, A).tolist() == f(T, 2, other=A).tolist() == getattr(T, name)(2, A).tolist()
    assert f(T, 2, A).tolist() == f(T, torch.tensor(2.0), A).tolist() == want
    x, out = T.clone(), torch.empty(2, 2)
    assert getattr(x, f"{name}_")(2, A) is x
    assert f(T, 2, A, out=out).tolist() == x.tolist() == want
    with pytest.raises(RuntimeError, match="alpha must not be a floating point"):
        f(torch.ones(2, dtype=torch.int64), 2.5, torch.ones(2, dtype=torch.int64))
    with pytest.raises(TypeError, match=name):
        f(T, T, T)


def test_in_place_functions_take_their_target_by_name() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert torch.relu_(input=x) is x
    assert x.tolist() == [0.0, 2.0]
    y = V.clone()
    assert torch.addmv_(2, self=y, mat=A, vec=W) is y
    assert y.tolist() == [-3.0, 1.5]


def test_functions_of_many_tensors_take_none() -> None:
    assert torch.block_diag().shape == (1, 0)
    for f in (torch.broadcast_tensors, torch.atleast_1d, torch.atleast_2d, torch.atleast_3d):
        assert len(f()) == 0
    for f in (torch.meshgrid, torch.cartesian_prod):
        with pytest.raises(RuntimeError, match="meshgrid expects a non-empty"):
            f()
    with pytest.raises(RuntimeError, match="one or more matrices"):
        torch.chain_matmul()


def test_seeds_out_of_range_or_no_ints_are_refused() -> None:
    g = torch.Generator()
    for f in (torch.manual_seed, g.manual_seed):
        for seed in (2**64, -(2**63) - 1, 2**200):
            with pytest.raises(ValueError, match="Overflow when unpacking long"):
                f(seed)
        assert f(-1).initial_seed() == f(2**64 - 1).initial_seed() == 2**64 - 1
    assert torch.manual_seed(1.5).initial_seed() == 1
    with pytest.raises(ValueError, match="invalid literal"):
        torch.manual_seed("a")
    with pytest.raises(TypeError, match="NoneType"):
        torch.manual_seed(None)
    with pytest.raises(RuntimeError, match="expected a long"):
        g.manual_seed(1.5)


@pytest.mark.parametrize("gradient", [1.0, "x", [1], object()])
def test_gradient_of_a_function_that_is_no_tensor_is_refused(gradient: object) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return gradient

    with pytest.raises(RuntimeError, match="expected Variable or None"):
        Double.apply(torch.ones(2, requires_grad=True)).sum().backward()


# What PyTorch 2.13 has as functions of Python's: their defaults, by position and by name.
PYTHONS = {
    "atleast_1d": (None, None),
    "atleast_2d": (None, None),
    "atleast_3d": (None, None),
    "block_diag": (None, None),
    "broadcast_tensors": (None, None),
    "cartesian_prod": (None, None),
    "cdist": ((2.0, "use_mm_for_euclid_dist_if_necessary"), None),
    "chain_matmul": (None, {"out": None}),
    "meshgrid": (None, {"indexing": None}),
    "norm": (("fro", None, False, None, None), None),
    "unravel_index": (None, None),
}


@pytest.mark.parametrize("name", PYTHONS)
def test_functions_that_programs_look_into_are_pythons(name):
    function = getattr(torch, name)
    assert type(function).__name__ == "function" and function.__name__ == name
    assert function.__module__ == torch.functional.__name__
    assert getattr(torch.functional, name) is function
    assert (function.__defaults__, function.__kwdefaults__) == PYTHONS[name]
    assert function.__doc__ == getattr(torch._C, name).__doc__


def test_functions_around_operators_take_what_the_operators_take():
    x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([5.0])
    assert [tuple(t.shape) for t in torch.atleast_2d(y, x[0])] == [(1, 1), (1, 2)]
    assert [tuple(t.shape) for t in torch.atleast_2d((y, x[0]))] == [(1, 1), (1, 2)]
    assert torch.atleast_1d(torch.tensor(1.0)).shape == (1,)
    assert torch.norm(x, 1, 0, True, dtype=torch.float64).tolist() == [[4.0, 6.0]]
    out = torch.empty(2)
    assert torch.norm(x, 1, 0, False, out) is out
    assert [t.shape for t in torch.meshgrid(y, x[0], indexing="xy")] == [(2, 1), (2, 1)]
    assert torch.cdist(x, x, 1.0)[0, 1] == 4
    assert torch.chain_matmul(x, x).tolist() == (x @ x).tolist()
    assert torch.unique_consecutive(torch.tensor([1, 1, 2]), return_counts=True)[1].tolist() == [
        2,
        1,
    ]
    assert [int(i) for i in torch.unravel_index(torch.tensor(3), (2, 2))] == [1, 1]


def test_addr_of_truth_values_takes_any_whole_factors() -> None:
    x = torch.tensor([[True, False], [True, True]])
    v = torch.tensor([True, False])
    for beta in (0, 1, 2, True, False):
        for alpha in (0, 1, 2, True, False):
            got = torch.addr(x, v, v, beta=beta, alpha=alpha)
            outer = v[:, None] & v
            assert torch.equal(got, (x & bool(beta)) | (outer & bool(alpha)))
    with pytest.raises(RuntimeError, match="Boolean beta only supported for Boolean results"):
        torch.addr(x.int(), v.int(), v.int(), beta=True)
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        torch.addr(x.int(), v.int(), v.int(), alpha=True)
    with pytest.raises(RuntimeError, match="beta must not be a floating point number"):
        torch.addr(x, v, v, beta=0.5)


class Holder:
    """Keeps functions of PyTorch's; a class binds only those that are Python's."""

    conv, det, fft = torch.conv2d, torch.linalg.det, torch.fft.fft
    activation = torch.nn.functional.softplus
    relu = torch.nn.functional.relu


def test_function_of_a_class_gets_no_self():
    x = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    held = Holder()
    for name, function in (
        ("conv", torch.conv2d),
        ("det", torch.linalg.det),
        ("fft", torch.fft.fft),
        ("activation", torch.nn.functional.softplus),
    ):
        assert getattr(held, name) is function is getattr(Holder, name)
    assert held.conv(x[None, None], weight=x[None, None]).tolist() == [[[[13.0]]]]
    assert held.det(x) == 6
    assert held.activation(torch.zeros(1)).item() == pytest.approx(0.6931472)


def test_function_of_pythons_gets_its_self():
    assert Holder().relu.__self__.__class__ is Holder


@pytest.mark.parametrize("function", [torch.abs, torch.Tensor.abs, torch.linalg.det])
def test_class_of_functions_makes_none(function):
    kind = type(function)
    for make in (kind, lambda: object.__new__(kind)):
        with pytest.raises(TypeError, match=r"cannot create|is not safe"):
            make()
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Other", (kind,), {})
    assert inspect.isroutine(function)
    assert "input" in str(inspect.signature(torch.abs))


def test_order_of_old_warns_and_names_the_function():
    x = torch.ones(2)
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        assert torch.add(x, 2, x).tolist() == [3, 3]
    with pytest.warns(UserWarning, match="This overload of addcmul_ is deprecated"):
        x.addcmul_(2, torch.ones(2), torch.ones(2))
    assert x.tolist() == [3, 3]


LISTS: dict[str, Callable[[Any], Any]] = {
    "hstack": lambda x: torch.hstack(x, x),
    "vstack": lambda x: torch.vstack(x),
    "dstack": lambda x: torch.dstack(x, x),
    "column_stack": lambda x: torch.column_stack(x),
    "row_stack": lambda x: torch.row_stack(x, x),
    "multi_dot": lambda x: torch.linalg.multi_dot(x, x),
    "reshape": lambda x: torch.reshape(x, 4, 1),
    "reshape to one": lambda x: torch.reshape(x, 4),
    "permute": lambda x: torch.permute(x, 1, 0),
    "tile": lambda x: torch.tile(x, 2),
    "flip": lambda x: torch.flip(x, 0),
    "std": lambda x: torch.std(x, 0, 1),
    "randint": lambda _: torch.randint(2, 10),
    "randint from": lambda _: torch.randint(2, 10, 5),
    "normal": lambda _: torch.normal(0.0, 1.0, 3),
    "unflatten": lambda x: x.unflatten(0, 2, 1),
    "broadcast_to": lambda x: torch.broadcast_to(x, 2, 2, 2),
}


@pytest.mark.parametrize("name", LISTS)
def test_list_that_is_not_the_only_argument_must_be_one(name: str) -> None:
    with pytest.raises(TypeError):
        LISTS[name](torch.ones(2, 2))


def test_list_that_is_the_only_argument_may_be_written_out() -> None:
    x = torch.arange(4.0).reshape(2, 2)
    assert x.reshape(4, 1).shape == x.view(4, 1).shape == (4, 1)
    assert x.permute(1, 0).equal(x.t())
    assert x.flip(0, 1).tolist() == [[3, 2], [1, 0]]
    assert x.tile(2, 1).shape == x.repeat(2, 1).shape == (4, 2)
    assert x.expand(3, 2, 2).shape == torch.zeros(3, 2, 2).shape
    assert torch.block_diag(x, x).shape == (4, 4)
    assert len(torch.broadcast_tensors(x, x, x)) == len(torch.atleast_3d(x, x, x)) == 3
    assert torch.cartesian_prod(x[0], x[1]).shape == (4, 2)
    assert torch.einsum("ij,jk->ik", x, x).equal(x @ x)
    assert torch.chain_matmul(x, x).equal(x @ x)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        torch.einsum("ii")


def test_results_with_names_are_of_one_class_for_each_function() -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
    assert type(x.max(0)) is type(torch.max(x, 1)) is torch.return_types.max
    assert type(x.min(0)) is torch.return_types.min
    assert type(torch.linalg.qr(x)) is torch.return_types.linalg_qr
    assert x.max(0).indices.tolist() == [1, 0]
