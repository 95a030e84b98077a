"""The engine's rules: hooks, in-place changes, custom functions, modes and their errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib.autograd import Function, Variable, grad
from pytensorlib.autograd.function import once_differentiable

close = torch.testing.assert_close


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# ---- backward and grad


def test_backward_accumulates_into_leaves() -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    close(x.grad, torch.tensor([5.0, 7.0], dtype=torch.float64))


def test_backward_with_inputs_changes_only_those() -> None:
    x, y = leaf(1), leaf(2)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.item() == 2
    assert y.grad is None


def test_grad_leaves_grad_alone_and_takes_intermediates() -> None:
    x = leaf(3)
    y = x * x
    z = (y * y).sum()
    gy, gx = grad(z, (y, x))
    assert (gy.item(), gx.item()) == (18, 108)
    assert x.grad is None


def test_grad_of_dict_returns_dict() -> None:
    params = {"a": leaf(1), "b": leaf(2)}
    grads = grad((params["a"] * params["b"]).sum(), params)
    assert {name: g.item() for name, g in grads.items()} == {"a": 2, "b": 1}


def test_create_graph_gives_higher_derivatives() -> None:
    x = leaf(2)
    y = (x**4).sum()
    for want in (32, 48, 48, 24):
        (g,) = grad(y, x, create_graph=True)
        assert g.item() == pytest.approx(want)
        y = g.sum()


def test_unused_input_raises_or_gives_none_or_zeros() -> None:
    x, y = leaf(1, 2), leaf(3)
    z = (x * 2).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(z, (x, y), retain_graph=True)
    assert grad(z, (x, y), allow_unused=True, retain_graph=True)[1] is None
    assert grad(z, (x, y), materialize_grads=True)[1].tolist() == [0.0]


def test_batched_grads_equal_a_loop() -> None:
    x = leaf(1, 2, 3)
    y = x * x
    (jacobian,) = grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    close(jacobian, torch.diag(2 * x.detach()))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda x: (x * 2).backward(),
            RuntimeError,
            "grad can be implicitly created only for scalar outputs",
        ),
        (
            lambda x: (x * 2).backward(torch.ones(3)),
            RuntimeError,
            r"Mismatch in shape: grad_output\[0\] has a shape of",
        ),
        (
            lambda x: x.detach().sum().backward(),
            RuntimeError,
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda x: grad(x.sum(), x.detach()),
            RuntimeError,
            "One of the differentiated Tensors does not require grad",
        ),
        (lambda x: grad(x.sum(), []), RuntimeError, "cannot be empty"),
        (
            lambda x: grad(x.sum(), x, "one"),
            (TypeError, RuntimeError),
            "gradients can be either Tensors or None|gradients",
        ),
        (
            lambda x: grad(x.sum(), x, allow_unused=False, materialize_grads=True),
            ValueError,
            "Expected allow_unused to be True",
        ),
    ],
)
def test_bad_arguments_raise(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        call(leaf(1, 2))


def test_second_backward_raises_unless_retained() -> None:
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_grad_fn_names_and_edges() -> None:
    x = leaf(1)
    y = x * 2 + 1
    assert y.grad_fn.name() == "AddBackward0"
    ((mul, _), *_) = y.grad_fn.next_functions
    assert mul.name() == "MulBackward0"
    assert "AccumulateGrad" in mul.next_functions[0][0].name()
    assert x.grad_fn is None
    assert x.is_leaf
    assert not y.is_leaf


def test_only_floating_tensors_may_require_grad() -> None:
    with pytest.raises(RuntimeError, match="[Oo]nly Tensors of floating point"):
        torch.tensor([1, 2], requires_grad=True)


def test_requires_grad_of_an_intermediate_cannot_be_changed() -> None:
    y = leaf(1) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad = False


# ---- in-place rules


def test_inplace_on_leaf_raises() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        leaf(1).add_(1)


def test_inplace_on_view_of_leaf_raises() -> None:
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf(1, 2)[0].mul_(2)


def test_saved_tensor_changed_inplace_raises() -> None:
    x = leaf(1, 2)
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_inplace_on_what_is_not_saved_is_differentiated() -> None:
    x = leaf(1, 2)
    y = x * 3
    y.add_(1).mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_inplace_on_view_reaches_the_base() -> None:
    x = leaf(1, 2, 3)
    y = x * 1
    y[1:].mul_(10)
    assert "CopySlices" in y.grad_fn.name()
    y.sum().backward()
    assert x.grad.tolist() == [1, 10, 10]


def test_inplace_on_base_reaches_its_views() -> None:
    x = leaf(1, 2)
    y = x * 1
    v = y[0]
    y.mul_(4)
    v.backward()
    assert x.grad.tolist() == [4, 0]


def test_setitem_cuts_and_carries_gradients() -> None:
    x, w = leaf(1, 2, 3), leaf(5)
    y = x * 1
    y[1] = w[0]
    y.sum().backward()
    assert x.grad.tolist() == [1, 0, 1]
    assert w.grad.tolist() == [1]


def test_versions_count_changes_and_detach_shares_them() -> None:
    x = torch.zeros(2)
    shared, own = x.detach(), x.data
    x.add_(1)
    assert (x._version, shared._version, own._version) == (1, 1, 0)


def test_output_of_unbind_must_not_change_inplace() -> None:
    y = leaf(1, 2) * 1
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        y.unbind()[0].add_(1)


# ---- hooks


def test_tensor_hook_replaces_the_gradient_and_can_be_removed() -> None:
    x = leaf(1, 2)
    handle = x.register_hook(lambda g: g * 10)
    x.sum().backward()
    assert x.grad.tolist() == [10, 10]
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [11, 11]


def test_hooks_of_an_intermediate_run_in_order() -> None:
    x, seen = leaf(1), []
    y = x * 2
    y.register_hook(lambda g: seen.append(("first", g.item())))
    y.register_hook(lambda g: g * 3)
    y.register_hook(lambda g: seen.append(("last", g.item())))
    y.sum().backward()
    assert seen == [("first", 1), ("last", 3)]
    assert x.grad.item() == 6


def test_hook_on_what_does_not_record_raises() -> None:
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_post_accumulate_hook_sees_grad() -> None:
    x, seen = leaf(1), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert seen == [2, 5]


def test_retain_grad_keeps_the_gradient_of_an_intermediate() -> None:
    x = leaf(1, 2)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 8]


def test_node_hooks_see_and_replace_gradients() -> None:
    x, seen = leaf(2), []
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda into, out: seen.append((into[0].item(), out[0].item())))
    y.sum().backward()
    assert seen == [(6, 2)]
    assert x.grad.item() == 6


def test_error_in_a_hook_passes_through_and_the_engine_stays_usable() -> None:
    x = leaf(1)
    handle = x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.sum().backward()
    handle.remove()
    x.grad = None
    x.sum().backward()
    assert x.grad.item() == 1


def test_multi_grad_hook_gets_all_gradients_at_once() -> None:
    x, y, seen = leaf(1), leaf(2), []
    hook = torch.autograd.graph.register_multi_grad_hook(
        (x, y), lambda grads: seen.append([None if g is None else g.item() for g in grads])
    )
    (x * y).sum().backward()
    hook.remove()
    (x * y).sum().backward()
    assert seen == [[2, 1]]


def test_saved_tensors_hooks_pack_and_unpack() -> None:
    x, packed = leaf(1, 2), []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t * 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t * 10):
        y = x * x
    y.sum().backward()
    assert len(packed) == 2
    assert x.grad.tolist() == [20, 40]


# ---- custom functions


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.note = "kept"
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        assert ctx.note == "kept"
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Split(Function):
    """Two outputs, extra arguments, setup_context and undefined gradients."""

    @staticmethod
    def forward(x: Any, factor: float, option: str) -> Any:
        return x * factor, x + 1

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.factor, _ = inputs
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        assert h is None
        return g * ctx.factor, None, None


def test_function_first_and_second_derivative() -> None:
    x = leaf(1, -2)
    assert torch.autograd.gradcheck(Square.apply, x)
    assert torch.autograd.gradgradcheck(Square.apply, x)
    assert Square.apply(x).grad_fn.name() == "SquareBackward"


def test_function_with_setup_context_and_undefined_gradient() -> None:
    x = leaf(1, 2)
    y, _ = Split.apply(x, 3.0, "option")
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_function_needs_input_grad() -> None:
    seen = []

    class Both(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, n: int) -> Any:
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(tuple(ctx.needs_input_grad))
            return g, None, None

    Both.apply(leaf(1), torch.ones(1, dtype=torch.float64), 3).sum().backward()
    assert seen == [(True, False, False)]


def test_function_materializes_missing_gradients_as_zeros() -> None:
    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            assert h.tolist() == [0]
            return g

    x = leaf(1)
    Two.apply(x)[0].sum().backward()
    assert x.grad.item() == 1


def test_function_mark_dirty() -> None:
    class AddOne(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    x = leaf(1)
    y = x * 2
    z = AddOne.apply(y)
    assert z is y
    assert z.item() == 3
    z.sum().backward()
    assert x.grad.item() == 10
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        AddOne.apply(leaf(1))


def test_function_mark_non_differentiable() -> None:
    class Largest(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, at = x.max(0)
            ctx.mark_non_differentiable(at)
            ctx.save_for_backward(at)
            ctx.size = x.shape[0]
            return values, at

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            (at,) = ctx.saved_tensors
            return torch.zeros(ctx.size, dtype=g.dtype).scatter(0, at.reshape(1), g.reshape(1))

    x = leaf(1, 3, 2)
    values, at = Largest.apply(x)
    assert values.requires_grad
    assert not at.requires_grad
    values.backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_function_wrong_number_of_gradients_raises() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(RuntimeError, match="returned an incorrect number of gradients"):
        Wrong.apply(leaf(1), leaf(2)).sum().backward()


def test_function_backward_runs_without_recording() -> None:
    seen = []

    class Modes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(torch.is_grad_enabled())
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(torch.is_grad_enabled())
            return g

    x = leaf(1)
    grad(Modes.apply(x).sum(), x)
    grad(Modes.apply(x).sum(), x, create_graph=True)
    assert seen == [False, False, False, True]


def test_once_differentiable_raises_at_the_second_derivative() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(3)
    (g,) = grad((Once.apply(x) * x).sum(), x, create_graph=True)
    assert g.item() == 27
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_function_misuse_raises() -> None:
    class Old(Function):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        old = Old()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        old(leaf(1))
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Function.apply(leaf(1))


def test_error_in_function_backward_passes_through() -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise KeyError("mine")

    x = leaf(1)
    with pytest.raises(KeyError, match="mine"):
        Fails.apply(x).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.item() == 2


# ---- modes


def modes() -> list[Any]:
    return [(torch.no_grad, False), (torch.enable_grad, True)]


@pytest.mark.parametrize(("mode", "on"), modes())
def test_mode_as_context_manager_and_decorator(mode: Any, on: bool) -> None:
    @mode()
    def called() -> bool:
        return torch.is_grad_enabled()

    @mode
    def bare() -> bool:
        return torch.is_grad_enabled()

    with torch.set_grad_enabled(not on):
        with mode():
            assert torch.is_grad_enabled() is on
        assert torch.is_grad_enabled() is not on
        assert called() is on
        assert bare() is on
        assert bare.__name__ == "bare"
        assert torch.is_grad_enabled() is not on


def test_mode_decorates_generators_only_while_they_run() -> None:
    @torch.no_grad()
    def numbers() -> Iterator[Any]:
        try:
            sent = yield torch.is_grad_enabled()
            yield sent, torch.is_grad_enabled()
        except ValueError:
            yield "caught"

    run = numbers()
    assert next(run) is False
    assert torch.is_grad_enabled()
    assert run.send(5) == (5, False)
    assert torch.is_grad_enabled()
    run = numbers()
    next(run)
    assert run.throw(ValueError) == "caught"
    run.close()


def test_mode_decorates_coroutines_and_other_tasks_do_not_see_it() -> None:
    seen = []

    @torch.no_grad()
    async def inside() -> str:
        seen.append(torch.is_grad_enabled())
        await asyncio.sleep(0)
        seen.append(torch.is_grad_enabled())
        return "done"

    async def outside() -> None:
        seen.append(torch.is_grad_enabled())

    async def both() -> list[Any]:
        return list(await asyncio.gather(inside(), outside()))

    assert asyncio.run(both()) == ["done", None]
    assert seen == [False, True, False]


def test_mode_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), torch.no_grad():
        raise KeyError
    assert torch.is_grad_enabled()


def test_set_grad_enabled_is_a_function_too() -> None:
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)

    @torch.set_grad_enabled(False)
    def f() -> bool:
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert not f()


def test_inference_mode_makes_inference_tensors() -> None:
    x = leaf(1)
    with torch.inference_mode():
        y = x * 2
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
    assert y.is_inference()
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y

    @torch.inference_mode
    def f() -> bool:
        return torch.is_inference_mode_enabled()

    assert f()


def test_anomaly_mode_names_the_function_that_gave_nan() -> None:
    x = leaf(-1.0)
    with pytest.warns(UserWarning, match="Anomaly"):
        mode = torch.autograd.detect_anomaly()
    with mode:
        y = x.sqrt().sum()
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match="SqrtBackward0.*returned nan values"),
        ):
            y.backward()
    assert not torch.is_anomaly_enabled()


# ---- functional, Variable, checks


def test_functional_agrees_with_closed_forms() -> None:
    F = torch.autograd.functional
    x, v = leaf(1, 2).detach(), leaf(3, -1).detach()
    close(F.jacobian(lambda t: t**3, x), torch.diag(3 * x**2))
    close(F.hessian(lambda t: (t**3).sum(), x), torch.diag(6 * x))
    close(F.vjp(lambda t: t**3, x, v)[1], 3 * x**2 * v)
    close(F.jvp(lambda t: t**3, x, v)[1], 3 * x**2 * v)
    close(F.hvp(lambda t: (t**3).sum(), x, v)[1], 6 * x * v)
    close(F.vhp(lambda t: (t**3).sum(), x, v)[1], 6 * x * v)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        F.vjp(lambda a, b: a.sum(), (x, v), strict=True)


def test_variable_is_a_tensor() -> None:
    v = Variable(torch.ones(2), requires_grad=True)
    assert type(v) is torch.Tensor
    assert v.requires_grad
    assert isinstance(torch.ones(1), Variable)


def test_gradcheck_finds_a_wrong_derivative() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = leaf(1, 2)
    for fast in (False, True):
        with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to"):
            torch.autograd.gradcheck(Wrong.apply, x, fast_mode=fast)
        assert not torch.autograd.gradcheck(Wrong.apply, x, fast_mode=fast, raise_exception=False)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        torch.autograd.gradcheck(torch.sin, torch.ones(2))


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "silu"])
def test_derivative_written_once_has_a_derivative(name: str) -> None:
    F = torch.nn.functional
    torch.manual_seed(0)
    x, w, b = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in [(3, 5), (5,), (5,)]
    )
    f, args = {
        "softmax": (lambda x: F.softmax(x, 1), (x,)),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), (x, w, b)),
        "silu": (F.silu, (x,)),
    }[name]
    assert torch.autograd.gradcheck(f, args)
    assert torch.autograd.gradgradcheck(f, args)


def test_views_of_inference_tensors_are_no_views_to_autograd() -> None:
    with torch.inference_mode():
        for needs in (True, False):
            x = torch.ones(1, 2, 3, requires_grad=needs)
            for y in (x.view(-1), x[0], x.transpose(0, 1)):
                assert not y._is_view() and y._base is None and not y.requires_grad
                assert y.is_leaf and y.is_inference() and y.data_ptr() == x.data_ptr()
                y.add_(1)
    y = x.view(-1)
    assert not y._is_view() and y.is_inference()
    plain = torch.ones(3)
    with torch.inference_mode():
        assert plain.view(-1)._is_view() and plain.view(-1)._base is plain
