"""Dual numbers, the derivative that a function has of its own, and `gradcheck` of tangents.

Expected texts and numbers are those of PyTorch 2.13.
"""

from typing import Any

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib.autograd import Function, forward_ad, gradcheck
from pytensorlib.func import grad, jvp, vmap


def dual(*values: float) -> Any:
    return forward_ad.make_dual(torch.tensor(values), torch.ones(len(values)))


def tangent(x: Any) -> Any:
    found = forward_ad.unpack_dual(x).tangent
    return None if found is None else found.tolist()


def written(x: Any) -> Any:
    x = x.clone()
    x.mul_(x)
    x[0] = x[1] * 2
    x[:, 1].add_(x[:, 2])
    x.T.mul_(3)
    return x.relu_()


def into_views(x: Any) -> Any:
    whole = torch.zeros_like(x)
    whole[1].copy_(x[0] * x[2])
    return whole.sin()


FUNCTIONS = {
    "sin": torch.sin,
    "written": written,
    "into views": into_views,
    "softmax": lambda x: F.softmax(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "split": lambda x: sum(part.sum() * i for i, part in enumerate(x.split(1))),
    "index": lambda x: x[torch.tensor([0, 2])],
    "mask": lambda x: x[x > 0.5],
    "max": lambda x: x.max(1)[0],
    "T": lambda x: x.T @ x,
    "where": lambda x: torch.where(x > 0.5, x, 2 * x),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "unbind": lambda x: x.unbind()[0] * x.unbind()[1],
    "index_put_": lambda x: x.clone().index_put_((torch.tensor([0]),), x[1:2]),
    "real": lambda x: torch.fft.fft(x).real,
    "rsub": lambda x: 1 - x,
    "no_grad": torch.no_grad()(lambda x: x * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangent_of_a_function_is_its_slope(name: str) -> None:
    torch.manual_seed(0)
    f = FUNCTIONS[name]
    x, along = torch.rand(3, 4, dtype=torch.float64), torch.rand(3, 4, dtype=torch.float64)
    step = 1e-6
    slope = (f(x + step * along) - f(x - step * along)) / (2 * step)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(f(forward_ad.make_dual(x.clone(), along))).tangent
    torch.testing.assert_close(found, slope, rtol=1e-6, atol=1e-8)


def test_dual_in_place_writes_its_tangent_in_place() -> None:
    x, t = torch.ones(2, 3), torch.ones(2, 3)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, t)
        assert forward_ad.unpack_dual(d).tangent is t
        assert not d.requires_grad
        assert d._base is x
        assert d.contiguous() is d
        assert d.to(torch.float32) is d
        view = d[0]
        view.mul_(3)
        assert t.tolist() == x.tolist() == [[3.0] * 3, [1.0] * 3]
        assert tangent(x) is None
        d.eq_(d)
        assert t.count_nonzero() == 0


def test_dual_written_into_another_tensor_gives_tangents_to_it_and_its_views() -> None:
    with forward_ad.dual_level():
        d = dual(1.0, 2.0)
        base = torch.zeros(2, 2)
        early = base[0]
        base[1].copy_(d)
        assert tangent(base) == [[0.0, 0.0], [1.0, 1.0]]
        assert tangent(early) == [0.0, 0.0]
        detached = base.detach()
        detached.mul_(2)
        assert tangent(detached) is None
        primal, own = forward_ad.unpack_dual(d)
        assert tangent(primal) is None
        primal.mul_(2)
        assert tangent(d) == [1.0, 1.0]
        own.mul_(5)
        assert tangent(d) == [5.0, 5.0]


def test_samplers_have_tangents_of_zeros_and_choices_none() -> None:
    with forward_ad.dual_level():
        d = dual(0.25, 0.5)
        assert tangent(torch.bernoulli(d)) == [0.0, 0.0]
        assert tangent(d.floor()) == [0.0, 0.0]
        assert tangent(d > 0) is None
        assert tangent(d.argmax()) is None
        assert tangent(torch.zeros_like(d)) is None
        assert tangent(d.normal_()) == [0.0, 0.0]


def test_forward_mode_can_be_turned_off() -> None:
    assert forward_ad._current_level == -1
    with forward_ad.dual_level() as level:
        assert forward_ad._current_level == level == 0
        d = dual(1.0)
        with forward_ad._set_fwd_grad_enabled(False):
            assert not forward_ad._is_fwd_grad_enabled()
            y = d * 2
            assert tangent(d) is None
        assert tangent(y) is None
        assert tangent(d * 2) == [2.0]
    assert tangent(d) is None


def test_jvp_takes_for_constant_what_is_computed_without_tangents() -> None:
    def f(x: Any) -> Any:
        with forward_ad._set_fwd_grad_enabled(False):
            shift = x**2
        return x**2 - shift

    x, one = torch.tensor(3.0), torch.tensor(1.0)
    assert jvp(f, (x,), (one,))[1].item() == 6.0
    assert jvp(lambda x: jvp(f, (x,), (one,))[1], (x,), (one,))[1].item() == 2.0
    with forward_ad._set_fwd_grad_enabled(False):
        assert jvp(lambda x: x**2, (x,), (one,))[1].item() == 6.0


def test_dual_shows_its_tangent() -> None:
    with forward_ad.dual_level():
        assert repr(dual(1.0, 2.0)) == "tensor([1., 2.], tangent=tensor([1., 1.]))"


def test_duals_of_what_has_none_raise() -> None:
    with forward_ad.dual_level():
        d = dual(1.0, 2.0)
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            forward_ad.make_dual(d, torch.ones(2))
        with pytest.raises(RuntimeError, match="Invalid level given to _make_dual"):
            forward_ad.make_dual(torch.ones(2), torch.ones(2), level=3)
        with pytest.raises(NotImplementedError, match="add_out that does not support it"):
            torch.add(d, d, out=torch.empty(2))
        with pytest.raises(NotImplementedError, match="igamma that does not support it"):
            torch.igamma(d, d)


def test_tangents_have_gradients() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(w, torch.ones(2))
        y = (d**3).sum()
        slope = forward_ad.unpack_dual(y).tangent
        assert torch.autograd.grad(slope, w)[0].tolist() == [6.0, 12.0]
        assert torch.autograd.grad(y, w)[0].tolist() == [3.0, 12.0]


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def vjp(ctx: Any, g: Any) -> Any:
        return 3 * g * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 3 * t * ctx.saved_tensors[0] ** 2


class View(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.view_as(t)


class Copy(View):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.clone()


class Doubled(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.mul_(2)


class DoubledApart(Doubled):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * 2


class Two(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * y, x + 1

    @staticmethod
    def jvp(ctx: Any, a: Any, b: Any) -> Any:
        assert b is None
        return a, None


class NoTangent(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x


class Number(NoTangent):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 3


class Short(NoTangent):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t[0]


def test_function_with_a_jvp_of_its_own_gives_its_tangent() -> None:
    with forward_ad.dual_level():
        assert tangent(Cube.apply(dual(1.0, 2.0))) == [3.0, 12.0]
        assert tangent(View.apply(dual(1.0))) == [1.0]
        d = dual(1.0)
        assert Doubled.apply(d) is d
        assert tangent(d) == [2.0]
        first, second = Two.apply(dual(1.0), torch.ones(1))
        assert tangent(first) == [1.0]
        assert tangent(second) is None
        assert Cube.apply(torch.tensor([2.0])).tolist() == [8.0]


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (NoTangent, NotImplementedError, "must implement the jvp function"),
        (Number, RuntimeError, "expected Variable or None .got int. for grad output 0"),
        (Short, RuntimeError, "different size than that of the original Tensor"),
        (Copy, RuntimeError, "returning a view .or an input as-is. but the jvp is not"),
        (DoubledApart, RuntimeError, "not modifying the forward mode gradients inplace"),
    ],
)
def test_jvp_that_does_not_fit_its_function_raises(function: Any, error: Any, text: str) -> None:
    with forward_ad.dual_level(), pytest.raises(error, match=text):
        function.apply(dual(1.0, 2.0) * 1)


class Wrong(Cube):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 4 * t * ctx.saved_tensors[0] ** 2


class Both(NoTangent):
    @staticmethod
    def vjp(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_of_tangents_finds_a_wrong_jvp(fast: bool) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    for f in (Cube.apply, torch.sin, lambda x: (x * x.sum(), x.cos())):
        assert gradcheck(f, (x,), check_forward_ad=True, fast_mode=fast)
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for out"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True, fast_mode=fast)
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z.conj(), (z,), check_forward_ad=True, fast_mode=fast)


class AsItIs(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.view_as(t)


class AsItIsDirty(AsItIs):
    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])
        ctx.save_for_forward(output)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t.add_(0)


def test_function_that_saves_an_input_it_returns_raises_unless_it_is_dirty() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    for apply in (AsItIs.apply, grad(AsItIs.apply), lambda x: jvp(AsItIs.apply, (x,), (x,))):
        with pytest.raises(RuntimeError, match="input that has been returned as-is as output"):
            apply(x)
    y = x.clone()
    assert AsItIsDirty.apply(y) is y
    assert grad(lambda x: AsItIsDirty.apply(x.clone()))(x).item() == 1.0
    assert jvp(lambda x: AsItIsDirty.apply(x.clone()), (x,), (x,))[1].item() == 2.0


def test_gradcheck_of_batches_of_tangents() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        torch.sin, (x,), check_forward_ad=True, check_batched_forward_grad=True, atol=1e-4
    )
    with pytest.raises(AssertionError, match="requires check_forward_ad to be True"):
        gradcheck(torch.sin, (x,), check_batched_forward_grad=True)


def test_function_with_both_kinds_of_backward_raises() -> None:
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(x).backward()


def test_detach_stops_the_tangents_of_every_level() -> None:
    x, t = torch.tensor([2.0, 3.0]), torch.ones(2)
    inner = lambda f: lambda x: grad(lambda y: (f(y) * y).sum())(x)  # noqa: E731
    assert jvp(inner(lambda y: y.detach()), (x,), (t,))[1].tolist() == [0.0, 0.0]
    nested = lambda x: jvp(lambda y: y.detach() * x, (x,), (t,))[0]  # noqa: E731
    assert jvp(nested, (x,), (t,))[1].tolist() == [2.0, 3.0]
    rows = vmap(lambda y: y.detach() * y)
    assert jvp(rows, (x,), (t,))[1].tolist() == [2.0, 3.0]


def test_jvp_of_what_reads_elements_and_writes_to_what_it_made() -> None:
    x, t, kept = torch.tensor([2.0, 3.0]), torch.ones(2), torch.zeros(2)

    def branch(x: Any) -> Any:
        z = torch.zeros(2)
        z[0] = x[1] * x.sum().item() if x.sum() > 0 else x[0]
        return z * 2

    value, slope = jvp(branch, (x,), (t,))
    assert (value.tolist(), slope.tolist()) == ([30.0, 0.0], [10.0, 0.0])
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        jvp(lambda x: kept.copy_(x) * 2, (x,), (t,))


def test_statistics_of_a_normalization_get_no_tangents() -> None:
    norm = torch.nn.BatchNorm1d(2)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.rand(4, 2), torch.rand(4, 2))
        assert tangent(norm(x)) is not None
        assert tangent(norm.running_mean) is None


def test_second_derivatives_are_checked_forward_over_reverse() -> None:
    x = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradgradcheck
    assert check(lambda t: t.sin() * t, (x,), check_fwd_over_rev=True)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(t):
            return t.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return g * Slope.apply(ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0].cos()

    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(t):
            return t.cos()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return -g * ctx.saved_tensors[0].sin()

        @staticmethod
        def jvp(ctx, t):
            return 2 * t

    assert check(Wrong.apply, (x,))
    options = {"check_fwd_over_rev": True, "check_rev_over_rev": False, "raise_exception": False}
    assert not check(Wrong.apply, (x,), **options)
