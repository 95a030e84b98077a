"""`__torch_dispatch__`: modes and classes of tensors that answer below gradients."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from dispatch_log import Log, aten
from op_calls import named, scalars_fit, tensors
from op_db import OPS, Op

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F  # noqa: N812
from pytensorlib.utils import _python_dispatch
from pytensorlib.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from pytensorlib.utils._pytree import tree_map

ONE = torch.ones(1)


def logged(f: Callable[..., Any], *args: Any) -> list[str]:
    with Log() as log:
        f(*args)
    return log.names


# As PyTorch 2.13 names them.
SAME = {
    "add": (lambda x: x + x, "add.Tensor"),
    "add_number": (lambda x: 2 + x, "add.Tensor"),
    "sub_": (lambda x: x.sub_(1), "sub_.Tensor"),
    "mul": (lambda x: x.mul(x), "mul.Tensor"),
    "div": (lambda x: torch.div(x, 2, rounding_mode="floor"), "div.Tensor_mode"),
    "eq": (lambda x: x == 1, "eq.Scalar"),
    "lt": (lambda x: x < x, "lt.Tensor"),
    "pow": (lambda x: x**2, "pow.Tensor_Scalar"),
    "relu": (F.relu, "relu.default"),
    "gelu": (F.gelu, "gelu.default"),
    "exp": (torch.exp, "exp.default"),
    "clamp": (lambda x: x.clamp(0, 1), "clamp.default"),
    "where": (lambda x: torch.where(x > 0, x, x), "gt.Scalar where.self"),
    "sum": (lambda x: x.sum(), "sum.default"),
    "sum_dim": (lambda x: x.sum(1, keepdim=True), "sum.dim_IntList"),
    "mean": (lambda x: x.mean(-1), "mean.dim"),
    "max_dim": (lambda x: x.max(0), "max.dim"),
    "std": (lambda x: x.std(), "std.correction"),
    "softmax": (lambda x: x.softmax(1), "_softmax.default"),
    "log_softmax": (lambda x: F.log_softmax(x, 1), "_log_softmax.default"),
    "mm": (lambda x: x @ x, "mm.default"),
    "mv": (lambda x: x @ x[0], "select.int mv.default"),
    "addmm": (lambda x: torch.addmm(x, x, x), "addmm.default"),
    "linear": (lambda x: F.linear(x, x, x[0]), "select.int t.default addmm.default"),
    "linear_bias": (lambda x: F.linear(x, x), "t.default mm.default"),
    "bmm": (lambda x: x[None].bmm(x[None]), "unsqueeze.default unsqueeze.default bmm.default"),
    "view": (lambda x: x.view(-1), "view.default"),
    "reshape": (lambda x: x.reshape(3, 3, 1), "view.default"),
    "t": (lambda x: x.t(), "t.default"),
    "transpose": (lambda x: x.transpose(0, 1), "transpose.int"),
    "permute": (lambda x: x.permute(1, 0), "permute.default"),
    "select": (lambda x: x[1], "select.int"),
    "slice": (lambda x: x[1:], "slice.Tensor"),
    "expand": (lambda x: x[None].expand(2, 3, 3), "unsqueeze.default expand.default"),
    "split": (lambda x: x.split(2), "split.Tensor"),
    "unbind": (lambda x: x.unbind(1), "unbind.int"),
    "cat": (lambda x: torch.cat([x, x]), "cat.default"),
    "stack": (lambda x: torch.stack([x, x]), "stack.default"),
    "clone": (lambda x: x.clone(), "clone.default"),
    "to": (lambda x: x.double(), "_to_copy.default"),
    "detach": (lambda x: x.detach(), "detach.default"),
    "copy_": (lambda x: x.copy_(x + 1), "add.Tensor copy_.default"),
    "zero_": (lambda x: x.zero_(), "zero_.default"),
    "index": (lambda x: x[torch.tensor([0, 1])], "index.Tensor"),
    "out": (lambda x: torch.exp(x, out=torch.empty(3, 3)), "empty.memory_format exp.out"),
    "zeros": (lambda x: torch.zeros(3), "zeros.default"),
    "arange": (lambda x: torch.arange(3), "arange.default"),
    "randn": (lambda x: torch.randn(3), "randn.default"),
    "conv2d": (
        lambda x: F.conv2d(x.view(1, 1, 3, 3), x.view(1, 1, 3, 3)),
        "view.default view.default convolution.default",
    ),
    "embedding": (lambda x: F.embedding(torch.tensor([1, 2]), x), "embedding.default"),
    "mse_loss": (lambda x: F.mse_loss(x, x, reduction="none"), "mse_loss.default"),
}


@pytest.mark.parametrize("name", SAME)
def test_a_mode_sees_the_operators_that_pytorch_shows(name: str) -> None:
    function, want = SAME[name]
    assert logged(function, torch.randn(3, 3)) == [f"aten.{n}" for n in want.split()]


def test_a_mode_gets_the_arguments_of_the_call() -> None:
    x = torch.ones(2, 3)
    with Log() as log:
        x.sum(1, keepdim=True)
        torch.add(x, 2, alpha=3)
        x[1]
        torch.zeros(2, dtype=torch.float64)
    args = [(args, kwargs) for _, _, args, kwargs in log.calls]
    assert args[0][0][0] is x and args[0][0][1:] == ([1], True)
    assert args[1] == ((x, 2), {"alpha": 3})
    assert args[2][0][1:] == (0, 1)
    assert args[3] == (([2],), {"dtype": torch.float64})
    assert log.calls[0][0] is aten.sum.dim_IntList
    assert log.calls[1][0] is aten.add.Tensor and log.calls[1][1] == ()


def test_backward_in_the_block_is_seen() -> None:
    w, x = torch.ones(4, 3, requires_grad=True), torch.ones(2, 3)
    with Log() as log:
        (x @ w.t()).sum().backward()
    assert log.names[:3] == ["aten.t.default", "aten.mm.default", "aten.sum.default"]
    assert log.names.count("aten.mm.default") == 2
    assert w.grad is not None and w.grad.tolist() == [[2.0] * 3] * 4


def test_gradients_are_attached_above() -> None:
    x = torch.ones(2, requires_grad=True)
    seen = []

    class Below(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            y = func(*args, **(kwargs or {}))
            seen.append((args[0] is x, y.requires_grad))
            return y

    with Below():
        y = x.exp()
    assert seen == [(True, False)]
    assert type(y.grad_fn).__name__ == "ExpBackward0"


def test_an_answer_takes_the_place_of_the_result() -> None:
    class Seven(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return torch.full_like(func(*args, **(kwargs or {})), 7.0)

    x = torch.ones(2, requires_grad=True)
    with Seven():
        y = x * 3
        z = torch.zeros(2)
    y.sum().backward()
    assert y.tolist() == z.tolist() == [7.0, 7.0]
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]


def test_the_inner_of_two_modes_comes_first_and_is_out_of_force_meanwhile() -> None:
    order: list[str] = []

    class Named(Log):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append(self.name)
            assert self not in _python_dispatch._get_current_dispatch_mode_stack()
            return func(*args, **(kwargs or {}))

    with Named("outer") as outer, Named("inner") as inner:
        assert _python_dispatch._get_current_dispatch_mode_stack() == [outer, inner]
        assert _python_dispatch._get_current_dispatch_mode() is inner
        torch.ones(1).exp()
        with _python_dispatch._disable_current_modes() as gone:
            torch.ones(1).exp()
            assert gone == [outer, inner]
            assert not _python_dispatch.is_in_torch_dispatch_mode()
        with _python_dispatch._pop_mode_temporarily():
            torch.ones(1)
    assert order == ["inner", "outer", "inner", "outer", "outer"]
    assert not _python_dispatch._len_torch_dispatch_stack()


def test_a_mode_may_be_entered_twice_and_leaves_after_an_error() -> None:
    log = Log()
    with log, log:
        torch.ones(1)
    assert log.names == ["aten.ones.default"] * 2

    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError(str(func))

    with pytest.raises(KeyError, match=r"aten\.exp\.default"), Refusing():
        torch.exp(ONE)
    assert torch.ones(1).exp().item() == pytest.approx(2.718281828)


def test_not_implemented_leaves_it_to_those_below() -> None:
    class Passing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    with Log() as log, Passing():
        assert torch.ones(2).sum().item() == 2
    assert log.names[-1] == "aten.sum.default"


@pytest.mark.parametrize("answer", [None, 3, "x", (), [1]])
def test_what_is_no_tensor_is_no_answer(answer: Any) -> None:
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return answer

    with (
        pytest.raises(
            TypeError, match=r"__torch_dispatch__ of aten\.exp\.default: expected a tensor"
        ),
        Wrong(),
    ):
        torch.exp(ONE)


def test_a_write_counts_once() -> None:
    x = torch.ones(2)
    with Log():
        x.add_(1)
        x.mul_(x)
        torch.exp(torch.zeros(2), out=x)
    assert x._version == 3


def test_an_operator_without_results_gives_none() -> None:
    with Log():
        assert torch.zeros(0, 3).unbind(0) == () and list(torch.zeros(0)) == []


def test_a_method_gives_arguments_in_the_order_of_the_operator() -> None:
    x, condition = torch.zeros(2), torch.tensor([True, False])
    with Log() as log:
        found = [x.where(condition, x + 1).tolist(), torch.where(condition, x, 1.0).tolist()]
    assert found == [[0.0, 1.0], [0.0, 1.0]]
    calls = [args for func, _, args, _ in log.calls if str(func) == "aten.where.self"]
    assert [args[0].dtype for args in calls] == [torch.bool] * 2


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda out: torch.eye(2, out=out), [[1.0, 0.0], [0.0, 1.0]]),
        (lambda out: torch.full((2, 2), 3.0, out=out), [[3.0, 3.0], [3.0, 3.0]]),
        (lambda out: torch.arange(4.0, out=out), [0.0, 1.0, 2.0, 3.0]),
    ],
)
def test_a_function_that_makes_tensors_writes_to_out(make: Any, want: Any) -> None:
    out = torch.empty(2, 2) if isinstance(want[0], list) else torch.empty(4)
    with Log() as log:
        assert make(out) is out
    assert out.tolist() == want and log.names[-1] == "aten.clone.out"


def test_a_view_made_under_a_mode_is_a_view() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    with Log():
        y = x * 1
        y[0].mul_(5)
        y.sum().backward()
    assert y[0].tolist() == [5.0, 5.0]
    assert x.grad is not None and x.grad.tolist() == [[5.0, 5.0], [1.0, 1.0]]


def test_a_mode_counts_the_products_of_a_training_step() -> None:
    class Flops(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func in (aten.mm.default, aten.addmm.default, aten.addmm_.default):
                a, b = args[-2:]
                self.count += 2 * a.shape[0] * a.shape[1] * b.shape[1]
            return func(*args, **(kwargs or {}))

    net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    with Flops() as flops:
        net(torch.ones(4, 3)).sum().backward()
    forward = [2 * 4 * 3 * 5, 2 * 4 * 5 * 2]
    # The gradients of both weights, and of the second layer's input.
    assert flops.count == 2 * sum(forward) + forward[1]


@pytest.mark.parametrize("op", named([op for op in OPS if "float32" in op.dtypes]))
@pytest.mark.slow
def test_a_mode_that_computes_what_it_gets_changes_nothing(op: Op) -> None:
    random = {"dropout", "rand", "bernoulli", "multinomial", "normal", "poisson", "empty"}
    if any(word in op.name for word in random):
        pytest.skip("draws numbers")
    for sample in list(op.samples())[:3]:
        if not scalars_fit(sample, "float32"):
            continue
        call = tensors(sample, "float32")
        want = op.function(torch)(*call.args, **call.kwargs)
        with Log():
            got = op.function(torch)(*call.args, **call.kwargs)
        torch.testing.assert_close(got, want, equal_nan=True, rtol=0, atol=0)


class TwoTensor(torch.Tensor):
    """Two tensors of one shape, which take the same way."""

    a: Any
    b: Any

    @staticmethod
    def __new__(cls, a: Any, b: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            a.shape,
            strides=a.stride(),
            storage_offset=a.storage_offset(),
            dtype=a.dtype,
            device=a.device,
            requires_grad=a.requires_grad,
        )

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __repr__(self) -> str:  # type: ignore[override]
        return f"TwoTensor({self.a!r}, {self.b!r})"

    def __tensor_flatten__(self) -> Any:
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> Any:
        assert meta is None
        return TwoTensor(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        parts = []
        for which in "ab":

            def part(x: Any, which: str = which) -> Any:
                return getattr(x, which) if isinstance(x, TwoTensor) else x

            parts.append(func(*tree_map(part, args), **tree_map(part, kwargs or {})))
        a, b = parts
        if isinstance(a, torch.Tensor):
            out: Any = TwoTensor(a, b)
        else:
            out = type(a)(TwoTensor(x, y) for x, y in zip(a, b, strict=True))
        return return_and_correct_aliasing(func, args, kwargs, out)


def test_two_tensors_take_the_same_way() -> None:
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    x = TwoTensor(a, b)
    assert (x.shape, x.dtype, x.device) == (a.shape, a.dtype, a.device)
    y = torch.exp(x * 2 + 1)
    assert type(y) is TwoTensor
    assert torch.equal(y.a, torch.exp(a * 2 + 1)) and torch.equal(y.b, torch.exp(b * 2 + 1))
    p, q = x.view(2, 1).unbind(0)
    assert type(p) is TwoTensor and (p.a.tolist(), q.b.tolist()) == ([1.0], [4.0])
    z = torch.cat([x, x])
    assert type(z) is TwoTensor and z.shape == (4,)
    assert type(x.detach()) is type(x.clone()) is TwoTensor
    assert type(torch.zeros_like(x)) is TwoTensor


def test_two_tensors_have_gradients() -> None:
    a, b = torch.randn(3, 3), torch.randn(3, 3)

    def run(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = (F.linear(x, x).tanh() * x).exp().sum()
        (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
        return g

    got = run(TwoTensor(a, b))
    assert type(got) is TwoTensor
    assert torch.equal(got.a, run(a)) and torch.equal(got.b, run(b))


def test_two_tensors_accumulate_gradients_in_a_leaf() -> None:
    x = TwoTensor(torch.ones(2), torch.full((2,), 2.0)).requires_grad_()
    for _ in range(2):
        (x * x).sum().backward(TwoTensor(torch.ones(()), torch.ones(())))
    assert type(x.grad) is TwoTensor
    assert (x.grad.a.tolist(), x.grad.b.tolist()) == ([4.0, 4.0], [8.0, 8.0])


def test_two_tensors_are_written_to_in_place() -> None:
    x = TwoTensor(torch.ones(2), torch.zeros(2))
    y = x.add_(1).mul_(3)
    assert y is x and (x.a.tolist(), x.b.tolist()) == ([6.0, 6.0], [3.0, 3.0])
    assert x._version == 2


def test_a_mode_sees_a_wrapping_tensor_before_its_class() -> None:
    x = TwoTensor(torch.ones(2), torch.zeros(2))
    with Log() as log:
        y = x.exp()
    assert type(y) is TwoTensor
    assert log.names == ["aten.exp.default"]
    assert log.calls[0][1] == (TwoTensor,) and log.calls[0][2][0] is x


def test_a_tensor_without_memory_says_so() -> None:
    class Hollow(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    x = torch.Tensor._make_wrapper_subclass(Hollow, (2,))  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.exp.default'"):
        x.exp()
    assert x.data_ptr() == 0
    for read in (x.tolist, x.numpy):
        with pytest.raises(RuntimeError, match="doesn't have storage"):
            read()
    with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))  # type: ignore[attr-defined]


def test_other_threads_ask_the_class_too() -> None:
    x, found = TwoTensor(torch.ones(2), torch.zeros(2)), []
    for run in (lambda: (x + 1) * x, lambda: x == 1, lambda: torch.exp(x), lambda: x[0]):
        thread = threading.Thread(target=lambda r=run: found.append(r()))  # type: ignore[misc]
        thread.start()
        thread.join()
    assert [type(y) for y in found] == [TwoTensor] * 4
    assert found[0].a.tolist() == [2.0, 2.0] and found[0].b.tolist() == [0.0, 0.0]


def test_wrapping_parameters_are_trained_and_copied() -> None:
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = nn.Parameter(TwoTensor(torch.eye(2), torch.ones(2, 2)))
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer = kind(layer.parameters(), lr=0.5)
        optimizer.zero_grad()
        y = layer(torch.ones(1, 2)).sum()
        y.backward(TwoTensor(torch.ones(()), torch.ones(())))
        optimizer.step()
    # SGD takes 0.5 away, and so does Adam's first step.
    torch.testing.assert_close(layer.weight.a, torch.eye(2) - 1)
    torch.testing.assert_close(layer.weight.b, torch.zeros(2, 2))
    other = copy.deepcopy(layer)
    assert type(other.weight) is TwoTensor and isinstance(other.weight, nn.Parameter)
    assert other.weight is not layer.weight and other.weight.requires_grad
    assert other.weight.a is not layer.weight.a
    assert torch.equal(other.weight.a, layer.weight.a)
    assert type(layer.double().weight.a) is torch.Tensor and layer.weight.a.dtype == torch.float64


class Quantized(torch.Tensor):
    """A matrix of 8-bit integers with a factor for each row."""

    @staticmethod
    def __new__(cls, data: Any, scale: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, data.shape, dtype=scale.dtype
        )

    def __init__(self, data: Any, scale: Any) -> None:
        self.int_data, self.scale = data, scale

    @staticmethod
    def of(w: Any) -> Quantized:
        scale = w.abs().amax(1, keepdim=True) / 127
        return Quantized((w / scale).round().to(torch.int8), scale)

    def dequantized(self) -> Any:
        return self.int_data.to(self.scale.dtype) * self.scale

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.detach.default:
            return Quantized(args[0].int_data, args[0].scale)
        real = tree_map(lambda x: x.dequantized() if isinstance(x, Quantized) else x, args)
        return func(*real, **(kwargs or {}))


def test_a_quantized_weight_works_in_a_layer() -> None:
    layer = nn.Linear(4, 3)
    weight = Quantized.of(layer.weight.detach())
    layer.weight = nn.Parameter(weight, requires_grad=False)
    assert type(layer.weight) is Quantized and isinstance(layer.weight, nn.Parameter)
    x = torch.randn(2, 4, requires_grad=True)
    y = layer(x)
    want = F.linear(x, weight.dequantized(), layer.bias)
    torch.testing.assert_close(y, want)
    (g,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(g, weight.dequantized().sum(0).expand(2, 4))


def test_a_class_with_memory_answers_for_it() -> None:
    seen = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), types))
            plain = tree_map(
                lambda x: x.as_subclass(torch.Tensor) if isinstance(x, Logged) else x, args
            )
            return func(*plain, **(kwargs or {})).as_subclass(Logged)

    x = torch.ones(2).as_subclass(Logged)
    y = x + 1
    assert seen == [("aten.add.Tensor", (Logged,))]
    assert type(y) is Logged and y.as_subclass(torch.Tensor).tolist() == [2.0, 2.0]
    assert Logged.__torch_function__ is torch._C._disabled_torch_function_impl


def test_an_operator_of_a_program_is_seen() -> None:
    @torch.library.custom_op("dispatched::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(2)
    with Log() as log:
        y = twice(x)
    assert log.names[0] == "dispatched.twice.default" and y.tolist() == [2.0, 2.0]
    z = twice(TwoTensor(x, x * 3))
    assert type(z) is TwoTensor and z.b.tolist() == [6.0, 6.0]


def test_an_operator_has_rules_for_modes_and_classes() -> None:
    @torch.library.custom_op("dispatched::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @thrice.register_torch_dispatch(TwoTensor)
    def of_two(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        assert cls is TwoTensor and types == (TwoTensor,)
        return TwoTensor(func(args[0].a), args[0].b)

    class Marking(Log):
        pass

    @thrice.register_torch_dispatch(Marking)
    def of_mode(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        mode.calls.append((func,))
        return func(*args, **kwargs) + 1

    x = torch.ones(2)
    y = thrice(TwoTensor(x, x))
    assert (y.a.tolist(), y.b.tolist()) == ([3.0, 3.0], [1.0, 1.0])
    with Marking() as mode:
        z = thrice(x)
    assert z.tolist() == [4.0, 4.0] and mode.names == ["dispatched.thrice.default"]


def test_operators_are_equal_by_name() -> None:
    with Log() as log:
        F.layer_norm(torch.ones(2, 3), (3,))
    func, _, args, _ = log.calls[1]
    assert func == aten.native_layer_norm.default
    assert {func: 1}[aten.native_layer_norm.default] == 1
    assert func != aten.exp.default
    assert func(*args)[0].shape == (2, 3)
    with pytest.raises(NotImplementedError, match="it is a private part of PyTorch|not by itself"):
        aten._scaled_dot_product_efficient_attention.default(torch.ones(2, 3))
    assert str(aten.add.Tensor) == "aten.add.Tensor"
    assert aten.add.Tensor.name() == "aten::add.Tensor"
    assert aten.t.default.is_view and not aten.exp.default.is_view
    assert aten.add_.Tensor._schema.is_mutable and not aten.add.Tensor._schema.is_mutable


def test_an_answer_that_asks_for_itself_ends() -> None:
    class Circular(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    x = torch.ones(2).as_subclass(Circular)
    with pytest.raises(RecursionError):
        x.exp()


LOSSES = "kl_div mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss".split()
LOSSES += "binary_cross_entropy binary_cross_entropy_with_logits poisson_nll_loss".split()


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_mode_gets_the_reduction_of_a_loss(name: str, reduction: str) -> None:
    """PyTorch's operators take the mean where nothing is said; some functions take none."""

    class Passes(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    x, t = torch.rand(4, 3) * 0.8 + 0.1, torch.rand(4, 3) * 0.8 + 0.1
    loss = getattr(torch.nn.functional, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kl_div's mean
        want = loss(x, t, reduction=reduction)
        with Passes():
            got = loss(x, t, reduction=reduction)
    assert torch.equal(got, want)
