"""Gradients for each sample, and tensors of modules by name."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn.utils import prune
from pytensorlib.nn.utils._named_member_accessor import NamedMemberAccessor
from pytensorlib.nn.utils._per_sample_grad import call_for_per_sample_grads


class Twice(nn.Module):
    """A layer that is used two times."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(torch.tanh(self.layer(x)))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("net", [nn.Linear(3, 2), Twice()])
def test_sample_gradients_are_those_of_each_sample_alone(net: nn.Module, reduction: str) -> None:
    x = torch.randn(4, 3)
    y = call_for_per_sample_grads(net, loss_reduction=reduction)(x)
    torch.testing.assert_close(y, net(x))
    losses = y.square().sum(1)
    (losses.sum() if reduction == "sum" else losses.mean()).backward()
    for name, p in net.named_parameters():
        assert p.grad is None
        for index in range(4):
            (alone,) = torch.autograd.grad(net(x[index]).square().sum(), p)
            torch.testing.assert_close(p.grad_sample[index], alone, msg=name)
        del p.grad_sample


def test_sample_gradients_of_a_batch_along_the_second_dimension() -> None:
    net = nn.Linear(3, 2)
    call_for_per_sample_grads(net, batch_first=False)(torch.ones(5, 4, 3)).sum().backward()
    # PyTorch 2.13: each element is the sum over 5 steps of ones.
    assert net.bias.grad_sample.tolist() == [[5.0, 5.0]] * 4


def test_sample_gradients_refuse_what_pytorch_refuses() -> None:
    net: Any = nn.Linear(3, 2)
    call = call_for_per_sample_grads
    for given, options, text in (
        (3, {}, "Module passed must be nn.Module, got int"),
        (net, {"batch_size": "a"}, "Batch size passed must be None or an integer, got str"),
        (net, {"batch_size": 0}, "Batch size must be positive, got 0"),
        (net, {"loss_reduction": "x"}, "Expected loss_reduction argument to be sum or mean"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call(given, **options)
    with pytest.raises(RuntimeError, match="Unable to find a tensor in the passed args"):
        call(net)(3)
    with pytest.raises(RuntimeError, match="one input with batch size 4 and one with batch size 5"):
        call(net)(torch.ones(4, 3), torch.ones(5, 3))
    with pytest.raises(RuntimeError, match="cannot handle function batch_norm"):
        call(nn.BatchNorm1d(3))(torch.ones(4, 3))
    call(net)(torch.ones(4, 3)).sum().backward()
    with pytest.raises(RuntimeError, match="accumulates the gradients, which will be incorrect"):
        call(net)(torch.ones(4, 3))


def test_tensors_of_a_module_are_reached_by_their_full_names() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    names = NamedMemberAccessor(net)
    new = torch.ones(2, 2)
    old = names.swap_tensor("0.weight", new)
    assert names.get_tensor("0.weight") is new is net[0].weight
    assert names.check_keys(["0.weight", "x"]) == (["0.bias"], ["x"])
    with pytest.raises(AttributeError, match="Linear has no attribute `0.nope`"):
        names.get_tensor("0.nope")
    with pytest.raises(AttributeError, match="Sequential has no attribute `1`"):
        names.get_tensor("1.weight")
    with pytest.raises(TypeError, match="2 is not an instance of torch.Tensor"):
        names.get_tensor("0.in_features")
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): '0.q'"):
        names.swap_tensors_dict({"0.weight": old, "0.q": new})
    assert net[0].weight is new and not hasattr(net[0], "q")
    before, missing = names.swap_tensors_dict({"0.weight": old, "0.q": new}, allow_missing=True)
    assert net[0].q is new and missing == ["0.q"]
    names.swap_tensors_dict(before, allow_missing=True)
    assert net[0].weight is new and not hasattr(net[0], "q")


def test_functional_call_takes_names_that_the_module_lacks_and_none() -> None:
    net, x = nn.Linear(2, 2), torch.ones(1, 2)
    ones = {"weight": torch.ones(2, 2)}
    call = torch.func.functional_call
    assert call(net, ones | {"bias": None}, x).tolist() == [[2.0, 2.0]]
    assert call(net, ones | {"extra": torch.ones(1)}, x).shape == (1, 2)
    assert net.bias is not None and not hasattr(net, "extra")
    # PyTorch 2.13's errors.
    for given, error, text in (
        ({"in_features": x}, TypeError, "attribute `in_features`: 2 is not an instance of torch"),
        ({"weight": 3}, TypeError, "3 is not an instance of torch.Tensor"),
        ({"zz.q": x}, AttributeError, "Linear has no attribute `zz`"),
    ):
        with pytest.raises(error, match=text):
            call(net, given, x)
    text = r"reparametrizing for Linear:\n\tUnexpected key\(s\): 'k'.\n\tMissing key\(s\): 'bias'."
    with pytest.raises(RuntimeError, match=text):
        call(net, ones | {"k": x}, x, strict=True)


def test_private_checks_of_pruning_say_what_pytorch_says() -> None:
    assert prune._compute_nparams_toprune(0.33, 10) == 3
    assert prune._compute_nparams_toprune(3, 10) == 3
    norms = prune._compute_norm(torch.ones(2, 3), 2, 0)
    torch.testing.assert_close(norms, torch.tensor([3.0, 3.0]).sqrt())
    with pytest.raises(TypeError, match="Invalid type for amount: a. Must be int or float"):
        prune._validate_pruning_amount_init("a")
    for amount in (-1, 1.5):
        with pytest.raises(ValueError, match=r"in the range \[0, 1\] or a non-negative integer"):
            prune._validate_pruning_amount_init(amount)
    with pytest.raises(ValueError, match="smaller than the number of parameters to prune=5"):
        prune._validate_pruning_amount(10, 5)
    with pytest.raises(ValueError, match="only be applied to multidimensional tensors"):
        prune._validate_structured_pruning(torch.ones(1))
    with pytest.raises(IndexError, match="Invalid index 1 for tensor of size"):
        prune._validate_pruning_dim(torch.ones(2), 1)
