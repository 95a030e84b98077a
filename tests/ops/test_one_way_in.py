"""Whatever computes or writes passes `dispatch::apply`, where interpreters see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from op_calls import differentiable_calls, gradients, named, scalars_fit, tensors
from op_db import OPS, Op

import pytensorlib as torch

# Numbers that come from no tensor.
CONSTANTS = set(
    "arange range linspace logspace eye tril_indices triu_indices bartlett_window blackman_window "
    "hann_window hamming_window kaiser_window combinations nn.functional.affine_grid "
    "linalg.lu_factor linalg.lu_factor_ex lu_unpack linalg.matrix_power cholesky_inverse "
    "linalg.householder_product orgqr ormqr".split()
)
# Positions that the host works out from data.
HOST = {"quantile", "nanquantile", "nn.functional.embedding_bag"}


def leaves(value: Any) -> Iterator[Any]:
    """Yield every tensor in nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    elif isinstance(value, list | tuple):
        for v in value:
            yield from leaves(v)


def memory(value: Any) -> set[int]:
    return {t.untyped_storage().data_ptr() for t in leaves(value) if t.numel()}


def varied(t: Any) -> bool:
    """Whether a tensor has more than one value: one value is a constant, which needs no op."""
    flat = t.detach().reshape(-1)
    return bool((flat != flat[:1]).any()) if t.numel() else False


def witnessed(call: Callable[[], Any], *given: Any) -> tuple[Any, list[str]]:
    """Return the result and the ops, after a check that no memory came from anywhere else."""
    result, names, made, read = torch._C._witnessed(call)
    known = memory(made) | memory(list(given))
    unknown = [t for t in [*leaves(result), *read] if not memory(t) <= known and varied(t)]
    assert not unknown, f"ops {names} read or gave what no op made: {unknown}"
    return result, names


@pytest.mark.parametrize("op", named([op for op in OPS if op.name not in CONSTANTS | HOST]))
def test_results_are_made_by_ops(op: Op) -> None:
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for sample in op.samples():
        if scalars_fit(sample, dtype):
            call = tensors(sample, dtype)
            function = op.function(torch)
            witnessed(lambda c=call, f=function: f(*c.args, **c.kwargs), call.args, call.kwargs)


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable]))
def test_gradients_are_made_by_ops(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        given = memory(inputs)
        result, names, made, _ = torch._C._witnessed(
            lambda f=function, x=inputs: gradients(f, x, list(x))
        )
        unknown = [t for t in leaves(result) if not memory(t) <= memory(made) | given and varied(t)]
        assert not unknown, f"ops {names} gave what no op made: {unknown}"


@pytest.mark.parametrize("op", named([op for op in OPS if op.out]))
def test_writes_to_out_and_in_place_are_made_by_ops(op: Op) -> None:
    for sample in op.samples():
        call = tensors(sample, "float64")
        x, *rest = call.args
        want = op.function(torch)(*call.args, **call.kwargs)
        outs = [torch.empty(0, dtype=want.dtype), torch.empty_like(want)]
        for out in outs:
            _, _, made, _ = torch._C._witnessed(
                lambda c=call, o=out: op.function(torch)(*c.args, **c.kwargs, out=o)
            )
            assert memory(out) <= memory(made)
        if op.inplace and want.shape == x.shape:
            y = x.clone()
            _, _, made, _ = torch._C._witnessed(
                lambda y=y, r=rest, k=call.kwargs: getattr(y, op.name + "_")(*r, **k)
            )
            assert memory(y) <= memory(made)
