"""Tensors as Python objects: iteration, copies, pickles, NumPy on either side."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch


def test_iteration_gives_rows_that_record() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    rows = list(x)
    assert [tuple(r.shape) for r in rows] == [(2,)] * 3
    sum(r.sum() * k for k, r in enumerate(rows)).backward()
    assert x.grad.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert [r.item() for r in reversed(torch.arange(3))] == [2, 1, 0]


def test_iteration_over_one_number_raises() -> None:
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(torch.tensor(1.0))


def test_contains() -> None:
    assert 2 in torch.arange(3)
    assert 5 not in torch.arange(3)
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        assert "a" in torch.arange(3)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_pickle_returns_the_same_tensor(dtype: str, shape: tuple[int, ...]) -> None:
    x = torch.arange(6)[: int(np.prod(shape))].reshape(shape).to(getattr(torch, dtype))
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype
    assert torch.equal(x, y)


def test_pickle_keeps_attributes_and_requires_grad() -> None:
    x = torch.ones(2, 3).t().requires_grad_()
    x.note = "kept"
    y = pickle.loads(pickle.dumps(x))
    assert y.requires_grad
    assert y.note == "kept"
    assert torch.equal(x, y)


def test_deepcopy_keeps_sharing_and_grad() -> None:
    base = torch.arange(6.0)
    pair = [base, base[2:]]
    first, second = copy.deepcopy(pair)
    second[0] = 100
    assert first[2] == 100
    assert base[2] == 2
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.grad.tolist() == [2, 2]
    assert y.grad is not x.grad


def test_deepcopy_of_an_intermediate_raises() -> None:
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(torch.ones(1, requires_grad=True) * 2)


def test_copy_shares_memory() -> None:
    x = torch.zeros(2)
    y = copy.copy(x)
    y[0] = 1
    assert x is not y
    assert x[0] == 1


def test_array_shares_memory_and_converts() -> None:
    x = torch.zeros(2)
    array = np.asarray(x)
    array[0] = 5
    assert x[0] == 5
    assert np.asarray(x, dtype=np.int64).tolist() == [5, 0]
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(torch.ones(1, requires_grad=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, a: t + a,
        lambda t, a: a + t,
        lambda t, a: a * t,
        lambda t, a: t - a,
        lambda t, a: np.float64(2.0) * t,
        lambda t, a: t * np.float32(2.0),
    ],
)
def test_arithmetic_with_numpy_gives_the_right_numbers(call: Any) -> None:
    t, a = torch.tensor([1.0, 2.0], dtype=torch.float64), np.array([3.0, 4.0])
    got = call(t, a)
    np.testing.assert_allclose(np.asarray(got), call(np.asarray(t), a))


def test_numpy_functions_take_tensors() -> None:
    assert np.sum(np.asarray(torch.ones(3))) == 3
    assert isinstance(np.sin(torch.zeros(2)), torch.Tensor)


def test_functions_are_no_methods_of_the_classes_that_hold_them() -> None:
    class Holder:
        add = torch.add
        linear = torch.nn.functional.linear
        of_tensors = torch.Tensor.add

    held, x = Holder(), torch.ones(2)
    assert held.add is torch.add is Holder.add and held.linear is torch.nn.functional.linear
    assert held.add(x, 1).tolist() == [2, 2]
    assert held.linear(x, torch.ones(1, 2)).tolist() == [2]
    assert torch.Tensor.add.__get__(x)(1).tolist() == [2, 2]
    assert held.of_tensors.__self__ is held
    assert pickle.loads(pickle.dumps(torch.add)) is torch.add
    assert inspect.isroutine(torch.add) and inspect.ismethoddescriptor(torch.Tensor.add)


def test_reflected_operator_without_its_operand_raises() -> None:
    # PyTorch's gives NotImplemented for any wrong call.
    for name in ("__radd__", "__rsub__", "__rtruediv__", "__rpow__"):
        with pytest.raises(TypeError, match="argument"):
            getattr(torch.ones(2), name)()
