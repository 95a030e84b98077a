"""One operator over lists of tensors: the results of the operator, in every form."""

import inspect
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib._ops import foreach as _foreach

# PyTorch 2.13's names.
NAMES = """
    abs abs_ acos acos_ add add_ addcdiv addcdiv_ addcmul addcmul_ asin asin_ atan atan_ ceil ceil_
    clamp_max clamp_max_ clamp_min clamp_min_ clone copy_ cos cos_ cosh cosh_ div div_ erf erf_ erfc
    erfc_ exp exp_ expm1 expm1_ floor floor_ frac frac_ lerp lerp_ lgamma lgamma_ log log10 log10_
    log1p log1p_ log2 log2_ log_ max maximum maximum_ minimum minimum_ mm mul mul_ neg neg_ norm pow
    pow_ powsum reciprocal reciprocal_ round round_ rsqrt rsqrt_ sigmoid sigmoid_ sign sign_ sin
    sin_ sinh sinh_ sqrt sqrt_ sub sub_ tan tan_ tanh tanh_ trunc trunc_ zero_
""".split()


def tensors(seed=0):
    torch.manual_seed(seed)
    return [torch.rand(s, dtype=torch.float64) * 0.8 + 0.1 for s in ((2, 3), (4,), ())]


def test_every_name_is_there():
    for name in NAMES:
        assert inspect.isfunction(getattr(torch, f"_foreach_{name}")), name
    own = {n[9:] for n in vars(_foreach) if n.startswith("_foreach_")}
    assert own == set(NAMES)


def same(found, want):
    assert len(found) == len(want)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(found, want, strict=True))


def test_results_are_tuples():
    x = tensors()
    for name in ("sqrt", "clone", "norm", "powsum", "max"):
        assert type(getattr(torch, f"_foreach_{name}")(x)) is tuple, name
    for name in ("add", "sub", "mul", "maximum", "pow"):
        assert type(getattr(torch, f"_foreach_{name}")(x, 2.0)) is tuple, name
    assert type(torch._foreach_pow(2.0, x)) is tuple
    assert type(torch._foreach_lerp(x, x, 0.5)) is tuple


@pytest.mark.parametrize("name", [n for n in _foreach.UNARY if n != "zero"])
def test_functions_of_one_list(name):
    x = tensors()
    want = [getattr(torch, name)(t) for t in x]
    same(getattr(torch, f"_foreach_{name}")(x), want)
    assert getattr(torch, f"_foreach_{name}_")(x) is None
    same(x, want)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow"]
)
def test_functions_of_two_lists_a_number_or_numbers(name):
    x, y = tensors(), tensors(1)
    limits = {"maximum": "clamp_min", "minimum": "clamp_max"}
    for other in (y, 0.5, [0.25, 0.5, 0.75], tuple(y)):
        others = list(other) if isinstance(other, (list, tuple)) else [other] * 3
        one = getattr(torch, limits.get(name, name) if not torch.is_tensor(others[0]) else name)
        want = [one(a, b) for a, b in zip(x, others, strict=True)]
        same(getattr(torch, f"_foreach_{name}")(x, other), want)
        written = [t.clone() for t in x]
        assert getattr(torch, f"_foreach_{name}_")(written, other) is None
        same(written, want)


def test_scales_and_three_lists():
    x, y, z = tensors(), tensors(1), tensors(2)
    same(torch._foreach_add(x, y, alpha=3), [torch.add(a, b, alpha=3) for a, b in zip(x, y)])
    for name in ("addcmul", "addcdiv"):
        one = getattr(torch, name)
        for value in (1, 0.5, [1.0, 2.0, 3.0], torch.tensor([1.0, 2.0, 3.0])):
            values = list(value) if not isinstance(value, (int, float)) else [value] * 3
            want = [one(a, b, c, value=float(v)) for a, b, c, v in zip(x, y, z, values)]
            same(getattr(torch, f"_foreach_{name}")(x, y, z, value), want)
            written = [t.clone() for t in x]
            getattr(torch, f"_foreach_{name}_")(written, y, z, value)
            same(written, want)
    for weight in (0.3, z, [0.1, 0.2, 0.3]):
        weights = weight if isinstance(weight, list) else [weight] * 3
        same(
            torch._foreach_lerp(x, y, weight),
            [torch.lerp(a, b, w) for a, b, w in zip(x, y, weights)],
        )
    same(torch._foreach_pow(2.0, x), [torch.pow(2.0, t) for t in x])


def test_norms_copies_and_products():
    x, y = tensors(), tensors(1)
    for p in (1, 2, float("inf")):
        same(torch._foreach_norm(x, p), [torch.linalg.vector_norm(t, p) for t in x])
    same(torch._foreach_powsum(x, 3), [t.pow(3).sum() for t in x])
    same(torch._foreach_max(x), [t.max() for t in x])
    twin = torch._foreach_clone(x)
    same(twin, x)
    assert twin[0].data_ptr() != x[0].data_ptr()
    torch._foreach_copy_(twin, y)
    same(twin, y)
    torch._foreach_zero_(twin)
    assert not any(t.any() for t in twin)
    a = torch.rand(2, 3)
    same(torch._foreach_mm([a], [a.T]), [a @ a.T])


def test_gradients_go_through_lists():
    x = [t.requires_grad_() for t in tensors()]
    sum(t.sum() for t in torch._foreach_mul(torch._foreach_exp(x), 2.0)).backward()
    assert all(torch.allclose(t.grad, 2 * t.detach().exp()) for t in x)


def test_lists_must_fit():
    x = tensors()
    with pytest.raises(RuntimeError, match="same number"):
        torch._foreach_add(x, x[:2])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_add([], 1)
    with pytest.raises(TypeError, match="list or tuple"):
        torch._foreach_add(x[0], 1)


def test_private_names_of_optimizers():
    from pytensorlib.optim import optimizer as o

    p = [torch.nn.Parameter(torch.ones(2))]
    assert o._default_to_fused_or_foreach(p, False) == (False, True)
    assert o._default_to_fused_or_foreach(p, False, use_fused=True) == (True, False)
    assert o._default_to_fused_or_foreach(p, True) == (False, False)
    assert o._get_value(torch.tensor(2.0)) == o._get_value(2.0) == 2.0

    class Step(torch.optim.Optimizer):
        @o._use_grad_for_differentiable
        def step(self):
            return torch.is_grad_enabled()

    assert Step(p, {"differentiable": True}).step() is True
    assert Step(p, {"differentiable": False}).step() is False


def test_each_place_is_read_as_it_is() -> None:
    kinds: list[Any] = [
        torch.ones(3),
        torch.ones(2, 2, dtype=torch.float64),
        torch.ones(3, dtype=torch.int64),
        torch.ones(4, 2).t(),
        torch.zeros(0),
        torch.tensor(2.0),
    ]
    for got, x in zip(torch._foreach_mul(kinds, 3), kinds, strict=True):
        assert got.dtype == x.dtype and torch.equal(got, x * 3)
    numbers = [1, 2.5, True, 2, 3, 4]
    for got, x, n in zip(torch._foreach_add(kinds, numbers), kinds, numbers, strict=True):
        assert torch.equal(got, x + n)
    torch._foreach_zero_(kinds)
    assert all(not x.any() for x in kinds) and [x._version for x in kinds] == [1] * 6


def test_an_error_at_a_place_leaves_what_came_before() -> None:
    x = [torch.ones(2), torch.ones(3)]
    with pytest.raises(RuntimeError, match="must match the size|doesn't match"):
        torch._foreach_add_(x, [torch.ones(2), torch.ones(2)])
    assert x[0].tolist() == [2.0, 2.0] and x[1].tolist() == [1.0] * 3
    with pytest.raises(TypeError, match=r"mul_\(\): argument 'other'"):
        torch._foreach_mul_(x, ["a", "b"])
    leaf = torch.ones(2, requires_grad=True)
    for write in (torch._foreach_zero_, torch._foreach_exp_):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write([leaf])
        with torch.no_grad():
            write([leaf])
    assert leaf._version == 2


def test_lists_have_gradients() -> None:
    x = [torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)]
    y = torch._foreach_mul(torch._foreach_lerp(x, torch._foreach_add(x, 1), 0.5), x)
    torch.stack(list(y)).sum().backward()
    # (x + 1/2) x
    assert [t.grad.item() for t in x if t.grad is not None] == [4.5, 6.5]


def test_classes_and_modes_see_each_place() -> None:
    from pytensorlib.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    with Log():
        torch._foreach_mul_([torch.ones(1)] * 2, 2)
    assert seen[-2:] == ["aten.mul_.Tensor"] * 2
    own = torch.ones(2).as_subclass(Own)
    torch._foreach_zero_([own])
    assert seen[-1] == "zero_" and own.tolist() == [0.0, 0.0]
