"""What `vmap` does with views, writes and random numbers. Numbers are those of PyTorch 2.13."""

from typing import Any

import child
import pytest

import pytensorlib as torch
from pytensorlib.autograd import Function
from pytensorlib.func import grad, jvp, vmap


def test_vmap_as_strided_counts_the_offset_from_each_slice() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    found = vmap(lambda t: t.as_strided((2,), (1,), 0))(x)
    assert found.tolist() == [[0.0, 1.0], [12.0, 13.0]]
    found = vmap(lambda t: t.as_strided((2,), (4,), storage_offset=1), in_dims=1)(x)
    assert found.tolist() == [[1.0, 5.0], [5.0, 9.0], [9.0, 13.0]]
    nested = vmap(vmap(lambda t: t.as_strided((1,), (1,), 1)))(x)
    assert nested.flatten().tolist() == [1.0, 5.0, 9.0, 13.0, 17.0, 21.0]


def test_vmap_as_strided_takes_the_offset_of_its_slice() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    found = vmap(lambda t: t.as_strided((2,), (2,), t.storage_offset()))(x)
    assert found.tolist() == [[0.0, 2.0], [12.0, 14.0]]
    found = vmap(lambda t: t.as_strided((2,), (2,), t.storage_offset() + 1), in_dims=1)(x)
    assert found.tolist() == [[1.0, 3.0], [5.0, 7.0], [9.0, 11.0]]


def test_vmap_as_strided_out_of_its_slice_is_refused_as_by_pytorch() -> None:
    x = torch.arange(12.0).view(4, 3)
    told = (
        r"result = tensor.as_strided\(\[2\], \[1\], 0\) can access memory outside of `tensor`. "
        r"`result` can access some memory in range \[0, 2\], but `tensor` can only access some "
        r"memory in range \[3, 6\]. This is not supported inside of vmap"
    )
    with pytest.raises(RuntimeError, match=told):
        vmap(lambda t: t.as_strided((2,), (1,), 0))(x[1:])
    with pytest.raises(RuntimeError, match=r"in range \[0, 30\], but `tensor` can only"):
        vmap(lambda t: t.as_strided((30,), (1,)))(x)


def test_vmap_random_numbers_into_an_output_are_refused() -> None:
    # Once two slices had the same numbers of `randperm`.
    for randomness in ("same", "different"):
        with pytest.raises(RuntimeError, match="out variants of random operations"):
            vmap(lambda t: torch.randperm(3, out=t.long()), randomness=randomness)(torch.ones(2, 3))


def test_vmap_of_random_numbers_like_a_slice_fills_as_pytorch() -> None:
    # PyTorch 2.13: the order of the memory of what is mapped.
    torch.manual_seed(0)
    found = vmap(torch.rand_like, in_dims=-1, randomness="different")(torch.zeros(2, 3))
    want = torch.tensor([[0.49626, 0.13203], [0.76822, 0.30742], [0.08848, 0.63408]])
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_vmap_of_slices_gives_the_tensor_itself() -> None:
    x = torch.ones(2, 3)
    assert vmap(lambda v: v)(x) is x
    assert vmap(lambda v: v, 1, 1)(x) is x
    assert vmap(torch.Tensor.neg_)(x) is x
    assert x.tolist() == [[-1.0] * 3] * 2


def test_vmap_of_views_gives_a_view() -> None:
    x = torch.arange(6.0).view(2, 3)
    first = vmap(lambda v: v[1:])(x)
    assert first.data_ptr() == x[:, 1:].data_ptr()
    first.zero_()
    assert x.tolist() == [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    assert vmap(lambda v: v, 0, 1)(x).stride() == (1, 3)
    w = torch.ones(2, 3, requires_grad=True)
    vmap(lambda v: v[1:] * 2)(w).sum().backward()
    assert w.grad.tolist() == [[0.0, 2.0, 2.0]] * 2


def test_vmap_random_numbers_are_those_of_one_call_for_all_slices() -> None:
    x = torch.zeros(3, 2)
    for make in (torch.rand, torch.randn):
        torch.manual_seed(3)
        found = vmap(lambda v, make=make: make(20), randomness="different")(x)
        torch.manual_seed(3)
        assert torch.equal(found, make(3, 20))
    torch.manual_seed(3)
    two = vmap(lambda v: torch.rand(3) + torch.randn(3), randomness="different")(x)
    torch.manual_seed(3)
    assert torch.equal(two, torch.rand(3, 3) + torch.randn(3, 3))
    torch.manual_seed(3)
    found = vmap(lambda v: torch.normal(v, 2.0), in_dims=1, randomness="different")(x)
    torch.manual_seed(3)
    assert torch.equal(found, torch.empty(2, 3).normal_(0, 2.0))


def test_vmap_random_numbers_in_place_follow_the_slices() -> None:
    x = torch.zeros(4, 20)
    torch.manual_seed(3)
    found = vmap(lambda v: v.normal_(), in_dims=1, out_dims=1, randomness="different")(x)
    assert found is x
    torch.manual_seed(3)
    assert torch.equal(x, torch.zeros(4, 20).t().normal_().t())
    torch.manual_seed(3)
    same = vmap(lambda v: v.normal_(), in_dims=1, randomness="same")(torch.zeros(20, 4))
    torch.manual_seed(3)
    assert torch.equal(same, torch.randn(20).expand(4, 20))


@pytest.mark.parametrize(
    ("function", "randomness", "text"),
    [
        (lambda v, kept: kept.normal_(), "different", "different inplace randomness on an unbatch"),
        (lambda v, kept: kept.bernoulli_(v), "same", "same randomness with a batched tensor input"),
        (lambda v, kept: kept.bernoulli_(v), "different", "more elements than `self`"),
        (lambda v, kept: torch.bernoulli(v), "same", "same randomness with a batched tensor input"),
        (lambda v, kept: torch.rand(2, out=kept), "same", "calling out variants of random"),
        (lambda v, kept: kept.copy_(v), "error", "inplace arithmetic.*more elements than `self`"),
        (lambda v, kept: kept.fill_(v[0]), "error", "doesn't match the broadcast"),
    ],
)
def test_vmap_refuses_what_slices_cannot_share(function: Any, randomness: str, text: str) -> None:
    kept = torch.zeros(2)
    with pytest.raises(RuntimeError, match=text):
        vmap(lambda v: function(v, kept), randomness=randomness)(torch.full((3, 2), 0.5))


def test_vmap_warns_of_what_runs_for_each_slice() -> None:
    # A process warns once for each operator.
    text = """
import warnings

import pytensorlib as torch

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    found = torch.vmap(torch.unique)(torch.tensor([[2, 1, 2], [5, 5, 3]]))
assert found.tolist() == [[1, 2], [3, 5]], found
(one,) = seen
assert "not yet implemented the batching rule for aten::_unique2" in str(one.message), one
assert sum(torch._C._vmap_loops().values()) == 1
"""
    child.run(text)


KEYS = ["h", "h, 1", "h, i", "h, i, h", "..., h", "h, :, i", "None, h, 1:"]


@pytest.mark.parametrize("key", KEYS)
def test_vmap_takes_another_index_for_each_slice(key: str) -> None:
    x, h, i = torch.randn(4, 5, 4), torch.tensor([3, 0, -1]), torch.tensor([1, 3, 0])
    take = eval(f"lambda x, h, i: x[{key}]")
    for same in (x, x.requires_grad_()):
        found = vmap(take, in_dims=(None, 0, 0))(same, h, i)
        want = torch.stack([take(x, int(a), int(b)) for a, b in zip(h, i, strict=True)])
        assert torch.equal(found, want)
    every = torch.stack([x, x + 1, x + 2]).detach()
    found = vmap(take)(every, h, i)
    assert torch.equal(found[1], take(x + 1, 0, 3))

    def put(x: Any, h: Any, i: Any) -> Any:
        x = x.clone()
        exec(f"x[{key}] = 7.0", {}, {"x": x, "h": h, "i": i})
        return x

    found = vmap(put)(every, h, i)
    assert torch.equal(found[2], put(every[2], -1, 0))
    with pytest.raises(IndexError, match="out of"):
        vmap(take, in_dims=(None, 0, 0))(x, h + 4, i)


def test_vmap_refuses_data() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="^accessing `data` under vmap transform is not"):
        vmap(lambda v: v.data)(x)
    with pytest.raises(RuntimeError, match="^Cannot access data pointer of Tensor that doesn't"):
        vmap(lambda v: v * v.data_ptr())(x)
    for at in (0, 1):
        with pytest.raises(RuntimeError, match="^mutating directly with `.data` under vmap"):
            vmap(lambda v, at=at: setattr((v, torch.ones(3))[at], "data", v))(x)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_of_results_whose_shapes_differ_raises() -> None:
    x = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(RuntimeError, match="dynamic shape. Attempted to vmap over aten::nonzero"):
        vmap(torch.nonzero)(x)
    with pytest.raises(RuntimeError, match="Attempted to vmap over aten::where"):
        vmap(lambda v: torch.where(v > 0)[0])(x)
    for product in (torch.bmm, torch.mm, torch.mv, torch.dot):
        with pytest.raises(RuntimeError, match="Shape mismatch: Got incorrect dims for"):
            vmap(product)(x.view(2, 2, 1, 1, 1), x)


def test_vmap_may_write_the_same_to_what_slices_share() -> None:
    kept = torch.ones(2)
    assert vmap(lambda v: v + kept.zero_())(torch.ones(3, 2)).tolist() == [[1.0, 1.0]] * 3
    torch.manual_seed(3)
    vmap(lambda v: v + kept.uniform_(), randomness="same")(torch.ones(3, 2))
    torch.manual_seed(3)
    assert torch.equal(kept, torch.rand(2))


class Twice(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return 2 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


class TwiceEach(Twice):
    generate_vmap_rule = True


class AtOnce(Twice):
    seen: list = []

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        AtOnce.seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return 3 * x, in_dims[0]


class BothWays(AtOnce):
    generate_vmap_rule = True


class OneReturn(Twice):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return 3 * x


class TwoDims(Twice):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return 3 * x, (0, 0)


class WithContext(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x


def test_vmap_of_a_function_calls_its_own_rule_once() -> None:
    AtOnce.seen.clear()
    x = torch.arange(6.0).view(2, 3)
    found = vmap(lambda v: AtOnce.apply(v) + 1, in_dims=1, randomness="same")(x)
    assert found.tolist() == [[1.0, 10.0], [4.0, 13.0], [7.0, 16.0]]
    assert AtOnce.seen == [(3, "same", (1,), (2, 3))]
    assert vmap(lambda v: v + AtOnce.apply(torch.ones(3)))(x)[0].tolist() == [2.0, 3.0, 4.0]
    assert len(AtOnce.seen) == 1
    assert torch.equal(vmap(TwiceEach.apply)(x), 2 * x)
    assert vmap(grad(lambda v: TwiceEach.apply(v).sum()))(x).tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (Twice, "does not have vmap support"),
        (BothWays, "both generate_vmap_rule=True and an overridden vmap"),
        (OneReturn, "to have two returns.*Got a <class"),
        (TwoDims, "returned an incompatible .output, out_dims. tuple"),
        (WithContext, "must override the setup_context staticmethod"),
    ],
)
def test_vmap_of_a_function_without_a_rule_raises(function: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        vmap(function.apply)(torch.ones(2, 3))


def test_transforms_refuse_a_function_that_sets_up_its_own_context() -> None:
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        grad(lambda v: WithContext.apply(v).sum())(x)
    names = []

    def named(v: Any) -> Any:
        y = Twice.apply(v)
        names.append(y.grad_fn.name())
        return y.sum()

    grad(named)(x)
    assert names == ["TwiceGeneratedBackward"]
    assert Twice.apply(x.requires_grad_()).grad_fn.name() == "TwiceBackward"


class Scaled(Function):
    @staticmethod
    def forward(a: Any, b: Any, k: float = 2.0) -> Any:
        return a * b * k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, ctx.k = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * b * ctx.k, g * a * ctx.k, None

    @staticmethod
    def jvp(ctx: Any, a: Any, b: Any, k: Any) -> Any:
        assert b is None
        assert k is None
        return ctx.k * a * ctx.saved_tensors[1]


def test_context_gets_arguments_by_name_and_defaults_in_their_places() -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert grad(lambda a: Scaled.apply(a, y).sum())(x).tolist() == [6.0, 8.0]
    assert grad(lambda b: Scaled.apply(x, b, k=5.0).sum())(y).tolist() == [5.0, 10.0]
    assert jvp(lambda a: Scaled.apply(b=y, a=a), (x,), (x,))[1].tolist() == [6.0, 16.0]


class OnlyForward(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x**2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 20 * t * ctx.saved_tensors[0]


def test_jvp_of_a_function_is_its_own() -> None:
    x, t = torch.tensor([1.0, 3.0]), torch.tensor([1.0, 0.5])
    value, slope = jvp(OnlyForward.apply, (x,), (t,))
    assert value.tolist() == [1.0, 9.0]
    assert slope.tolist() == [20.0, 30.0]


def shown(transform: Any, x: Any) -> str:
    """Return how the argument of a function shows itself within a transform."""
    texts = []

    def function(t: Any) -> Any:
        texts.append(repr(t))
        return t.sum()

    transform(function)(x)
    assert len(set(texts)) == 1 or transform is not grad
    return texts[0]


def test_tensors_of_transforms_show_what_they_stand_for() -> None:
    x, z = torch.arange(6.0).view(2, 3), torch.tensor(2.0)
    rows = "tensor([[0., 1., 2.],\n{0}        [3., 4., 5.]])"
    assert shown(grad, z) == "GradTrackingTensor(lvl=1, value=\n    tensor(2.)\n)"
    assert shown(vmap, x) == (f"BatchedTensor(lvl=1, bdim=0, value=\n    {rows.format('    ')}\n)")
    assert shown(lambda f: vmap(grad(f)), x) == (
        "GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n"
        f"        {rows.format(8 * ' ')}\n    )\n)"
    )
    assert shown(lambda f: grad(lambda a: vmap(f)(a).sum()), x) == (
        "BatchedTensor(lvl=2, bdim=0, value=\n    GradTrackingTensor(lvl=1, value=\n"
        f"        {rows.format(8 * ' ')}\n    )\n)"
    )
    assert shown(lambda f: grad(lambda a: f(a * 2)), z) == (
        "GradTrackingTensor(lvl=1, value=\n    tensor(4.)\n)"
    )
    # What comes from outside is none of a transform.
    texts = []
    grad(lambda a: (texts.append(repr(z)), a)[1])(z)
    assert texts == ["tensor(2.)"]
