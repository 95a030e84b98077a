"""Functions with a rule of their own under `vmap`; numbers and errors as of PyTorch 2.13."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.autograd import Function
from pytensorlib.func import functional_call, grad, stack_module_state, vmap
from pytensorlib.nn import functional as F  # noqa: N812

x = torch.arange(6.0).view(2, 3)


class Joined(Function):
    """A function of trees of tensors."""

    seen: list[Any] = []

    @staticmethod
    def forward(parts: Any, k: float) -> Any:
        return parts["a"] * k, [parts["b"][0] + parts["a"], parts["b"][0]]

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: Any, parts: Any, k: float) -> Any:
        Joined.seen.append(in_dims)
        moved = {"a": parts["a"].movedim(in_dims[0]["a"], 0), "b": parts["b"]}
        return Joined.forward(moved, k), (0, [0, None])


class JoinedEach(Joined):
    generate_vmap_rule = True
    vmap = Function.vmap


def test_rule_of_a_function_gets_dimensions_in_the_form_of_its_arguments() -> None:
    Joined.seen.clear()
    ones = torch.ones(2)

    def one(row: Any) -> Any:
        return Joined.apply({"a": row, "b": [ones]}, 3.0)

    first, (second, third) = vmap(one, in_dims=1)(x)
    assert Joined.seen == [({"a": 1, "b": [None]}, None)]
    assert torch.equal(first, 3 * x.T) and torch.equal(second, x.T + 1)
    assert torch.equal(third, torch.ones(3, 2))


def test_generated_rule_takes_trees_of_arguments() -> None:
    first, (second, _) = vmap(lambda row: JoinedEach.apply({"a": row, "b": [row]}, 2.0))(x)
    assert torch.equal(first, 2 * x) and torch.equal(second, 2 * x)


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)]
)
def test_running_statistics_that_slices_share_are_refused(norm: Any) -> None:
    samples = torch.randn(2, 4, 3, 5)
    with pytest.raises(
        RuntimeError, match="Batch norm got a batched tensor as input while the run"
    ):
        vmap(norm)(samples)
    norm.eval()
    assert vmap(norm)(samples).shape == samples.shape


def test_running_statistics_of_each_slice_are_kept() -> None:
    norms = [nn.BatchNorm1d(3) for _ in range(2)]
    params, buffers = stack_module_state(norms)
    samples = torch.randn(2, 8, 3)
    vmap(lambda p, b, s: functional_call(norms[0], (p, b), (s,)))(params, buffers, samples)
    for norm, given in zip(norms, samples, strict=True):
        norm(given)
    torch.testing.assert_close(
        buffers["running_mean"], torch.stack([n.running_mean for n in norms])
    )
    torch.testing.assert_close(buffers["running_var"], torch.stack([n.running_var for n in norms]))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_looks_at_the_gradients_of_all_slices() -> None:
    rows = torch.tensor([[1.0, 4.0], [0.25, -1.0]])
    with torch.autograd.detect_anomaly():
        assert torch.equal(vmap(grad(lambda r: r.square().sum()))(rows), 2 * rows)
        with (
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"),
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        ):
            vmap(grad(lambda r: r.sqrt().sum()))(rows)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        found = vmap(grad(lambda r: r.sqrt().sum()))(rows)
    assert found.isnan().tolist() == [[False, False], [False, True]]


def test_random_slopes_follow_the_randomness_of_vmap() -> None:
    rows = -torch.ones(3, 100)
    with pytest.raises(
        RuntimeError, match="called random operation while in randomness error mode"
    ):
        vmap(lambda r: F.rrelu(r, training=True))(rows)
    with pytest.raises(
        RuntimeError, match="called random operation while in randomness error mode"
    ):
        vmap(lambda r: r + F.rrelu(rows[0], training=True))(rows)
    same = vmap(lambda r: F.rrelu(r, 0.1, 0.3, training=True), randomness="same")(rows)
    assert torch.equal(same[0], same[1]) and torch.equal(same[0], same[2])
    own = vmap(lambda r: F.rrelu(r, 0.1, 0.3, training=True), randomness="different")(rows)
    shared = vmap(lambda r: r * 0 + F.rrelu(rows[0], training=True), randomness="different")(rows)
    for found in (own, shared):
        assert not torch.equal(found[0], found[1])
    for found in (same, own):
        assert (-0.3 <= found).all() and (found <= -0.1).all()


def test_random_slopes_have_a_gradient_for_each_slice() -> None:
    rows = torch.tensor([[-1.0, 2.0], [-3.0, 0.5]])

    def loss(row: Any) -> Any:
        return F.rrelu(row, 0.1, 0.3, training=True).sum()

    slopes = vmap(grad(loss), randomness="different")(rows)
    assert slopes[:, 1].tolist() == [1.0, 1.0]
    assert ((slopes[:, 0] >= 0.1) & (slopes[:, 0] <= 0.3)).all()


def test_slices_that_escaped_say_so() -> None:
    kept: list[Any] = []
    vmap(lambda row: (kept.append(row), row)[1])(x)
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        kept[0] + 1
    assert str(kept[0]).startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 1., 2.]")


def test_numbers_of_slices_are_refused_whatever_their_size() -> None:
    with pytest.raises(RuntimeError, match="calling .item\\(\\) on a Tensor"):
        vmap(lambda row: row.item())(x)


def test_products_with_zeros_differ_for_each_slice() -> None:
    rows = torch.tensor([[2.0, 0.0, 3.0], [1.0, 2.0, 4.0], [0.0, 0.0, 5.0]])
    want = [[0.0, 6.0, 0.0], [8.0, 4.0, 2.0], [0.0, 0.0, 0.0]]
    assert vmap(grad(torch.prod))(rows).tolist() == want
    assert vmap(torch.func.jacfwd(torch.prod))(rows).tolist() == want
    assert vmap(torch.func.hessian(torch.prod))(rows)[0, 0].tolist() == [0.0, 3.0, 0.0]


def test_differences_take_what_comes_before_for_each_slice() -> None:
    first = torch.tensor([[10.0], [20.0]])
    found = vmap(lambda row, p: torch.diff(row, prepend=p))(x, first)
    assert found.tolist() == [[-10.0, 1.0, 1.0], [-17.0, 1.0, 1.0]]
