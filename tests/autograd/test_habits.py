"""Small habits of graphs and hooks: what raises, and how it is told. Recorded of PyTorch 2.13."""

import pytest

import pytensorlib as torch
from pytensorlib import nn


def leaf():
    return torch.ones(2, requires_grad=True)


def test_the_gradient_of_gather_is_sparse_where_that_is_asked_for():
    x = torch.ones(3, 2, requires_grad=True)
    index = torch.tensor([[0, 0], [1, 0], [1, 1]])
    (2 * torch.gather(x, 1, index, sparse_grad=True)).sum().backward()
    assert x.grad.layout is torch.sparse_coo
    assert not x.grad.is_coalesced()
    assert x.grad._indices().tolist() == [[0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 1, 1]]
    assert x.grad._values().tolist() == [2] * 6
    assert x.grad.to_dense().tolist() == [[4, 0], [2, 2], [0, 4]]


@pytest.mark.parametrize("index", [torch.tensor([0, 0]), torch.tensor(0)])
def test_the_sparse_gradient_of_a_number_has_no_coordinates(index):
    x = torch.tensor(2.0, requires_grad=True)
    x.gather(0, index, sparse_grad=True).sum().backward()
    assert x.grad._indices().shape == (0, index.numel())
    assert x.grad.to_dense().item() == index.numel()


def test_a_sparse_gradient_of_gather_adds_to_a_dense_one():
    x = torch.ones(3, requires_grad=True)
    (x.gather(0, torch.tensor([0, 2]), sparse_grad=True) + x[:2]).sum().backward()
    assert x.grad.layout is torch.strided
    assert x.grad.tolist() == [2, 1, 1]


def test_tangents_pass_through_gather_with_a_sparse_gradient():
    def taken(x):
        return x.gather(0, torch.tensor([2, 0]), sparse_grad=True)

    t = torch.tensor([1.0, 2.0, 3.0])
    assert torch.func.jvp(taken, (torch.ones(3),), (t,))[1].tolist() == [3, 1]


def test_inference_tensors_have_no_version():
    with torch.inference_mode():
        x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = x._version


@pytest.mark.parametrize("inputs", ["a", [1], [None]])
def test_grad_tells_what_inputs_have_to_be(inputs):
    y = leaf().sum()
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges"):
        torch.autograd.grad(y, inputs)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges"):
        torch.autograd.backward(leaf().sum(), inputs=inputs)


@pytest.mark.parametrize("outputs", ["a", [1]])
def test_grad_tells_what_outputs_have_to_be(outputs):
    with pytest.raises(AssertionError, match=r"Expected output to be a torch\.Tensor"):
        torch.autograd.grad(outputs, leaf())
    with pytest.raises(AssertionError, match=r"Expected output to be a torch\.Tensor"):
        torch.autograd.backward(outputs)


@pytest.mark.parametrize("pre", [False, True])
@pytest.mark.parametrize("wrap", [lambda g: g, lambda g: [g], lambda _: 3])
def test_hooks_of_nodes_return_tuples(pre, wrap):
    y = leaf().sum()
    if pre:
        y.grad_fn.register_prehook(lambda grads: wrap(grads[0]))
    else:
        y.grad_fn.register_hook(lambda grads, _: wrap(grads[0]))
    with pytest.raises(TypeError, match="expected tuple, but hook returned"):
        y.backward()


def test_hooks_return_tensors():
    x = leaf()
    x.register_hook(lambda _: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.sum().backward()
    y = leaf().sum()
    y.grad_fn.register_hook(lambda *_: (1,))
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        y.backward()


@pytest.mark.parametrize(("value", "error"), [(3, TypeError), (torch.ones(2), RuntimeError)])
def test_hooks_behind_accumulation_return_nothing(value, error):
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda _: value)
    with pytest.raises(error):
        x.sum().backward()


@pytest.mark.parametrize("pre", [False, True])
def test_backward_hooks_of_modules_return_as_many_gradients_as_they_got(pre):
    def run(wrap):
        module, x = nn.Linear(2, 2), torch.ones(3, 2, requires_grad=True)
        with torch.no_grad():
            module.weight.copy_(torch.eye(2))
        if pre:
            module.register_full_backward_pre_hook(lambda _, grads: wrap(grads[0]))
        else:
            module.register_full_backward_hook(lambda _, grads, __: wrap(grads[0]))
        module(x).sum().backward()
        return x.grad

    assert run(lambda g: (2 * g,)).tolist() == [[2, 2]] * 3
    assert run(lambda g: [2 * g]).tolist() == [[2, 2]] * 3
    with pytest.raises(RuntimeError, match="got 3, but expected 1"):
        run(lambda g: 2 * g)
    with pytest.raises(RuntimeError, match="got 0, but expected 1"):
        run(lambda _: ())
    with pytest.raises(TypeError, match="has no len"):
        run(lambda _: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'str'"):
        run(lambda _: ("a",))


def test_anomaly_mode_checks_for_nan_unless_told_otherwise():
    assert torch.is_anomaly_check_nan_enabled()
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        mode = torch.autograd.detect_anomaly(check_nan=False)
    with mode:
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()
    assert torch.is_anomaly_check_nan_enabled()


def test_empty_slices_begin_where_they_were_cut():
    x, y = torch.arange(5), torch.arange(20).reshape(4, 5)
    assert [part.storage_offset() for part in (x[5:5], x[7:9], x[3:1], x[-9:-7])] == [5, 5, 3, 0]
    parts = (y[4:4], y[:, 5:], y[::2][2:], y.narrow(1, 5, 0), y.split([0, 5, 0], 1)[2], y[4:, 1])
    assert [part.storage_offset() for part in parts] == [20, 5, 20, 5, 5, 21]


def test_a_function_gets_zeros_for_results_without_a_gradient():
    class Largest(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x, x.argmax(), x > 0, None

        @staticmethod
        def backward(ctx, g, where, positive, nothing):
            assert (where.dtype, where.item()) == (torch.int64, 0)
            assert positive.tolist() == [False, False]
            assert nothing is None
            return 2 * g

    x = leaf()
    Largest.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("value", [5, "a", [1, 2], {"a": 1}])
def test_a_function_may_return_what_is_no_tensor(value):
    class Constant(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return value

        @staticmethod
        def backward(ctx, g):
            return g

    assert Constant.apply(leaf()) == value


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (lambda t, _: 2**t, "__rpow__"),
        (lambda t, q: q**t, "pow"),
        (lambda t, _: t**2, "pow"),
        (lambda t, _: t.__ipow__(2), "pow_"),
        (lambda t, _: 2 - t, "__rsub__"),
        (lambda t, _: 2 / t, "__rdiv__"),
        (lambda t, _: t.__rdiv__(2), "__rdiv__"),
        (lambda t, _: t.__div__(2), "div"),
        (lambda t, q: q / t, "div"),
        (lambda t, _: 2 // t, "__rfloordiv__"),
        (lambda t, _: 2 % t, "__rmod__"),
        (lambda t, _: 2 << t, "__rlshift__"),
        (lambda t, _: 2 & t, "bitwise_and"),
    ],
)
def test_operators_tell_torch_function_pytorchs_names(run, name):
    seen = []

    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    run(torch.tensor([3, 2]).as_subclass(Told), torch.tensor([1, 1]))
    assert seen == [name]


def test_an_optimizers_groups_are_printed_apart():
    p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(1))
    text = repr(torch.optim.SGD([{"params": [p]}, {"params": [q]}], lr=0.1))
    assert "weight_decay: 0\n\nParameter Group 1\n" in text
