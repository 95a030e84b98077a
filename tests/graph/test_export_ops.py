"""Every operator of the table is exported, and the program computes what the operator does."""

from __future__ import annotations

from functools import reduce

import pytest
from op_calls import tensors
from op_db import OPS
from op_row import Op

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.utils import _pytree as pytree

# What needs the numbers of tensors to know what it gives.
OF_DATA = set(
    """bincount histogram histogramdd equal allclose
    repeat_interleave Tensor.nonzero_numpy linalg.ldl_factor linalg.ldl_factor_ex
    nn.functional.gaussian_nll_loss""".split()
)


class Called(nn.Module):
    """Calls a function with tensors in the places of those of an example."""

    def __init__(self, function, spec, leaves):
        super().__init__()
        self.function, self.spec = function, spec
        self.places = [None if isinstance(v, torch.Tensor) else (v,) for v in leaves]

    def forward(self, *given):
        rest = iter(given)
        leaves = [next(rest) if p is None else p[0] for p in self.places]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def function_of(op: Op):
    return op.call(torch) if op.call else reduce(getattr, op.name.split("."), torch)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
@pytest.mark.parametrize("op", [op for op in OPS if op.name not in OF_DATA], ids=str)
def test_exported_operator_computes_what_the_operator_does(op: Op) -> None:
    function = function_of(op)
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    call = tensors(op.samples()[0], dtype)
    leaves, spec = pytree.tree_flatten((tuple(call.args), dict(call.kwargs)))

    def given():
        return tuple(v.clone() for v in leaves if isinstance(v, torch.Tensor))

    module = Called(function, spec, leaves)
    torch.manual_seed(0)
    want = pytree.tree_leaves(module(*given()))
    program = torch.export.export(module, given()).module()
    torch.manual_seed(0)
    have = pytree.tree_leaves(program(*given()))
    assert len(have) == len(want)
    for a, b in zip(have, want, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        else:
            assert a == b


class Of(nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_norms_of_matrices_are_not_those_of_their_elements():
    x = torch.arange(12.0).reshape(3, 4).sin()
    for args in ((2,), (1,), ("nuc",), ("fro",), (2, (0, 1)), (float("inf"), (1, 0), True), (2, 1)):
        module = Of(lambda x, args=args: torch.linalg.norm(x, *args))
        have = torch.export.export(module, (x,)).module()(x)
        torch.testing.assert_close(have, torch.linalg.norm(x, *args))


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_distinct_values_are_as_many_as_the_data_says(dim):
    def program(x):
        consecutive = torch.unique_consecutive(x, return_inverse=True, dim=dim)
        return torch.unique(x, True, True, True, dim), torch.unique(x, dim=dim), consecutive

    x, other = torch.tensor([[3, 1, 1], [2, 2, 3], [3, 1, 1]]), torch.tensor([[1, 1, 1]] * 3)
    exported = torch.export.export(Of(program), (x,))
    for case in (x, other):
        have = pytree.tree_leaves(exported.module()(case))
        want = pytree.tree_leaves(program(case))
        assert all(a.equal(b) for a, b in zip(have, want, strict=True))
    size = exported.graph.output_node().args[0][0].meta["val"].shape[dim or 0]
    assert str(size).startswith("u")
