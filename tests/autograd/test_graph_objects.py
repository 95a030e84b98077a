"""Nodes, hooks and the objects of tensors as programs see them."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import weakref
from collections import OrderedDict
from functools import partial
from typing import Any

import child
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def accumulator(x: Any) -> Any:
    return x.view_as(x).grad_fn.next_functions[0][0]


class Double(torch.autograd.Function):
    """Twice the input; keeps a note on its context."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.note = 5
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_node_class_is_named_after_the_node() -> None:
    x = leaf()
    nodes = [(x * x).grad_fn, Double.apply(x).grad_fn, accumulator(x), (x @ x).grad_fn]
    names = ["MulBackward0", "DoubleBackward", "AccumulateGrad", "DotBackward0"]
    assert [type(node).__name__ for node in nodes] == names
    assert [node.name() for node in nodes] == names
    assert all(isinstance(node, torch.autograd.graph.Node) for node in nodes)
    assert type((x * 1).grad_fn) is type((x * 2).grad_fn)


def test_node_attributes_are_those_of_pytorch() -> None:
    x = leaf()
    node = (x * x).grad_fn
    assert node._saved_self.tolist() == node._saved_other.tolist() == [1, 2, 3]
    assert {"_saved_self", "_raw_saved_other"} <= set(dir(node))
    assert (x * 2).grad_fn._saved_self is None
    assert accumulator(x).variable is x
    node.metadata["seen"] = 1
    assert node.metadata == {"seen": 1}
    custom = Double.apply(x).grad_fn
    assert custom.note == 5
    assert custom.saved_tensors[0] is x
    with pytest.raises(AttributeError, match="MulBackward0"):
        _ = node._saved_result


def test_node_metadata_survives_the_object() -> None:
    y = leaf() * 2
    y.grad_fn.metadata["seen"] = 1
    gc.collect()
    assert y.grad_fn.metadata == {"seen": 1}


def test_saved_result_is_gone_after_backward() -> None:
    x = leaf(0.0)
    y = x.exp()
    assert y.grad_fn._saved_result.tolist() == [1]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = y.grad_fn._saved_result


def test_raw_saved_hooks_replace_what_backward_reads() -> None:
    x = leaf(0.0)
    y = x.exp()
    raw = y.grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t * 3, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [3]
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        z.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="value None"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_pack_hooks_get_the_objects_that_a_program_knows() -> None:
    layer, x, got = torch.nn.Linear(2, 2, bias=False), leaf(1.0, 2.0), []
    y = x * 3
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (got.append(t), t)[1], lambda t: t):
        z = layer(y.expand(1, 2)) * y
    assert any(t is layer.weight for t in got)
    assert any(t is y for t in got)
    assert all(t.requires_grad for t in got if t is layer.weight or t is y)
    z.sum().backward()
    w = layer.weight.detach()
    assert torch.allclose(x.grad, 9 * (w + w.t()) @ x.detach())  # of 9 x' W x


@pytest.mark.parametrize("kind", ["double", "to_sparse", "cfloat"])
def test_hook_that_returns_another_type_raises(kind: str) -> None:
    def other(g: Any) -> Any:
        return getattr(g, kind)()

    x = torch.ones(2, requires_grad=True)
    x.register_hook(other)
    with pytest.raises(RuntimeError, match=r"changed the type of value \(was torch.FloatTensor"):
        (x * 2).sum().backward()
    assert x.grad is None
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (other(grads[0]),))
    with pytest.raises(RuntimeError, match="changed the type of value"):
        y.sum().backward()


@pytest.mark.parametrize("recording", [True, False])
def test_function_has_to_return_what_it_marks_dirty(recording: bool) -> None:
    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(2, requires_grad=recording) * 1
    with pytest.raises(RuntimeError, match="marked as dirty .* were not returned as output"):
        Kept.apply(x)


def test_accumulator_hooks_run_in_the_order_of_pytorch() -> None:
    x = leaf()
    node, log = accumulator(x), []
    x.register_hook(lambda g: log.append("tensor"))
    node.register_prehook(lambda gs: (log.append("pre"), (gs[0] * 2,))[1])
    node.register_hook(lambda inputs, outputs: log.append(("post", inputs, len(outputs))))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    (x * 1).sum().backward()
    assert log == ["tensor", "pre", "accumulated", ("post", (), 1)]
    assert x.grad.tolist() == [2, 2, 2]
    log.clear()
    torch.autograd.grad((x * 1).sum(), x)
    assert log == ["tensor"]


def test_prehook_of_a_node_that_does_not_run_is_not_called() -> None:
    x = leaf()
    y, log = x * 2, []
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda gs: log.append("pre"))
    (g,) = torch.autograd.grad((y * 1).sum(), y)
    assert (g.tolist(), log) == ([10, 10, 10], [])


@pytest.mark.parametrize("given", [(), (None, None, None)])
def test_node_hook_with_another_number_of_gradients_raises(given: tuple[Any, ...]) -> None:
    y = leaf() * 2
    y.grad_fn.register_hook(lambda inputs, outputs: given)
    with pytest.raises(RuntimeError, match=f"got {len(given)}, but expected 2"):
        y.sum().backward()


def test_legacy_module_hook_with_another_number_of_gradients_raises() -> None:
    module = torch.nn.Sigmoid()
    module.register_backward_hook(lambda m, inputs, outputs: inputs[:-1])
    with pytest.raises(RuntimeError, match="got 0, but expected 1"):
        module(leaf()).sum().backward()


def test_hook_is_removed_after_an_in_place_change() -> None:
    x = leaf()
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.mul_(1)
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_hook_handle_does_not_keep_the_graph() -> None:
    y = leaf() * 2
    handle, alive = y.register_hook(lambda g: None), weakref.ref(y)
    del y
    assert alive() is None
    handle.remove()


def test_node_hooks_that_hold_their_tensor_are_collected() -> None:
    y = leaf() * 2
    alive = weakref.ref(y)
    y.grad_fn.register_hook(partial(print, y))
    y.grad_fn.register_prehook(partial(print, y))
    del y
    gc.collect()
    assert alive() is None


class Tagged(torch.Tensor):
    """A class of its own."""


def test_grad_keeps_attributes_and_class() -> None:
    x = leaf()
    x.grad = torch.ones(3).as_subclass(Tagged)
    x.grad.note = 2
    gc.collect()
    torch.ones(100)
    assert x.grad.note == 2
    assert type(x.grad) is Tagged
    where = id(x.grad)
    x.grad.more = 3
    assert (id(x.grad), x.grad.note, x.grad.more) == (where, 2, 3)
    x.grad = None
    x.grad = torch.ones(3)
    assert not hasattr(x.grad, "note")


def test_object_kept_by_its_tensor_goes_with_it() -> None:
    class Note:
        pass

    x = leaf()
    x.grad = torch.ones(3)
    x.grad.note = Note()
    alive = weakref.ref(x.grad.note)
    gc.collect()
    assert alive() is not None
    del x
    assert alive() is None
    x = torch.nn.Parameter(torch.ones(3))
    y, x.note = x * x, Note()
    alive = weakref.ref(x.note)
    del x
    assert alive() is not None
    del y
    assert alive() is None


def test_object_kept_by_its_tensor_goes_on_any_thread() -> None:
    for _ in range(20):
        x = leaf()
        x.grad = torch.ones(3)
        x.grad.note = "kept"
        box = [x]
        del x
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
    gc.collect()


def test_private_grad_is_grad_without_a_warning(recwarn: Any) -> None:
    x = leaf()
    y = x * 2
    assert y._grad is None
    y.sum().backward()
    assert x._grad is x.grad
    assert not recwarn.list


# A shell that runs tests in the background has its children ignore interrupts.
INTERRUPTED = """
import itertools, os, signal, threading, time
import pytensorlib as torch

signal.signal(signal.SIGINT, signal.default_int_handler)
x = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([x], lr=0.1)
x.grad = torch.ones(2)
me, rounds = os.getpid(), 0
go = threading.Event()
def shoot():
    go.wait()
    while not done:
        time.sleep(0.0005)
        os.kill(me, signal.SIGINT)
done = False
thread = threading.Thread(target=shoot, daemon=True)
def work():
    go.set()
    while True:
        with torch.no_grad():
            with torch.enable_grad():
                pass
        with torch.inference_mode():
            pass
        optimizer.step()
thread.start()
end = time.monotonic() + 10
for i in range(400):
    try:
        if time.monotonic() > end:
            break  # A busy machine takes long for each.
        try:
            work()
        except KeyboardInterrupt:
            assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled(), i
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
done = True
print("on")
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of POSIX")
@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="an interrupt may come between a context and its block"
)
def test_interrupts_leave_the_modes_as_they_were() -> None:
    done = child.python("-c", INTERRUPTED)
    assert (done.stdout, done.returncode) == ("on\n", 0), done.stderr


def test_global_hooks_have_the_private_names_of_pytorch() -> None:
    module = torch.nn.modules.module
    names = [name for name in dir(torch.nn._hooks) if name.startswith("_global_")]
    assert all(getattr(module, name) is getattr(torch.nn._hooks, name) for name in names)
    seen: list[Any] = []
    torch.nn.modules.module.register_module_forward_hook(lambda *call: seen.append(call[0]))
    layer = torch.nn.Identity()
    layer(1)
    module._global_forward_hooks = OrderedDict()
    layer(1)
    assert seen == [layer]
    module._global_forward_hooks = OrderedDict({0: lambda *call: seen.append(None)})
    layer(1)
    assert seen == [layer, None]
    module._global_forward_hooks = OrderedDict()
    assert isinstance(module._global_parameter_registration_hooks, dict)
    with pytest.raises(AttributeError, match="_global_nothing"):
        _ = module._global_nothing


def test_node_of_a_function_is_of_its_class() -> None:
    # PyTorch 2.13; libraries ask for it to find their own nodes.
    node = Double.apply(torch.ones(2, requires_grad=True)).grad_fn
    assert node.__class__ is Double._backward_cls
    assert isinstance(node, Double._backward_cls)
    assert isinstance(node, torch.autograd.graph.Node)
    other = torch.ones(2, requires_grad=True).exp().grad_fn
    assert not isinstance(other, Double._backward_cls)
    assert other.__class__ is type(other)


def test_sparse_gradients_arrive_in_the_gradient_that_is_there() -> None:
    p = torch.tensor([1.5, 1.5], requires_grad=True)

    def gradient() -> Any:
        return torch.sparse_coo_tensor([[1, 1]], [1.0, 1.0], (2,))

    p.grad = kept = gradient()
    p.backward(gradient())
    assert p.grad is kept
    assert kept.to_dense().tolist() == [0.0, 4.0]
    p.backward(torch.ones(2))
    assert p.grad is not kept
    assert p.grad.tolist() == [1.0, 5.0]


def test_what_one_operator_computes_is_one_node() -> None:
    # PyTorch's has other names (RsubBackward1), two nodes for a reciprocal times a number, and
    # edges to nowhere for weights that were not given.
    x = torch.tensor([[2.0, 3.0]], requires_grad=True)
    for y, name, edges in (
        (2 - x, "SubBackward0", 2),
        (2 / x, "DivBackward0", 2),
        (F.layer_norm(x, (2,)), "NativeLayerNormBackward0", 1),
    ):
        node = y.grad_fn
        assert node is not None
        assert (node.name(), len(node.next_functions)) == (name, edges)
        assert node.next_functions[-1][0].variable is x
