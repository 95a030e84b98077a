"""Every operator of the table under `vmap`: for all slices it gives what it gives for each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from op_calls import leaves, mapped, named, scalars_fit, tensors
from op_db import OPS
from op_row import Op, Sample

import pytensorlib as torch
from pytensorlib.func import vmap

# Operators that run once for each slice.
LOOPS = set(
    (
        "_unique2 allclose bincount bucketize ctc_loss embedding_bag equal gru histc histogram "
        "histogram_bins isin lstm lstsq lu_unpack masked_select multi_margin_loss "
        "multilabel_margin_loss nanquantile nonzero nonzero_numpy nonzero_static one_hot pdist "
        "put_places quantile repeat_interleave rnn_relu rnn_tanh searchsorted segment_reduce "
        "unique_consecutive unravel_index"
    ).split()
)
# Rows that look at elements, whose numbers are no tensors or decide what runs next, and so raise.
READS = {"equal", "allclose", "linalg.ldl_factor", "linalg.ldl_factor_ex"}
READS |= {"nn.functional.gaussian_nll_loss"}

SIZE = 3


def pairs() -> list[Any]:
    return [
        pytest.param(op.values[0], dtype, id=f"{op.id}-{dtype}")
        for op in named(OPS)
        for dtype in op.values[0].dtypes
    ]


def others(call: Sample) -> Iterator[Sample]:
    """Yield the arguments, and some like them with other elements of the same places."""
    yield call
    for shift in range(1, SIZE):
        roll = lambda t, k=shift: t.flatten().roll(k).view(t.shape) if t.numel() else t  # noqa: E731
        yield Sample(mapped(call.args, roll), mapped(call.kwargs, roll))


def slot(value: Any, found: list[Any]) -> Any:
    """Return arguments with a number in the place of each tensor, which is put into a list."""

    def put(t: Any) -> Any:
        found.append(t)
        return Slot(len(found) - 1)

    return change(value, put)


class Slot:
    def __init__(self, at: int) -> None:
        self.at = at


def change(value: Any, f: Any) -> Any:
    if isinstance(value, (torch.Tensor, Slot)):
        return f(value)
    if isinstance(value, (list, tuple)):
        return type(value)(change(v, f) for v in value)
    if isinstance(value, dict):
        return {k: change(v, f) for k, v in value.items()}
    return value


def check(op: Op, call: Sample, only: int | None = None, device: str = "cpu") -> None:
    function = op.function(torch)
    slices = list(others(call))
    found: list[Any] = []
    args, kwargs = slot(call.args, found), slot(call.kwargs, found)
    if not found or (only is not None and (len(found) < 2 or only >= len(found))):
        return
    columns = list(zip(*(leaves((s.args, s.kwargs)) for s in slices), strict=True))
    if only is not None:
        columns = [c if i == only else (c[0],) * SIZE for i, c in enumerate(columns)]
    columns = [tuple(t.to(device) for t in c) for c in columns]

    def run(*given: Any) -> Any:
        get = lambda s: given[s.at]  # noqa: E731
        y = function(*change(args, get), **change(kwargs, get))
        return list(leaves(y))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = [run(*(c[i] for c in columns)) for i in range(SIZE)]
        except (RuntimeError, IndexError, ValueError):
            return  # Other elements that are no arguments of it.
        if any(a.shape != b.shape for w in want[1:] for a, b in zip(w, want[0], strict=True)):
            return
        whole = [torch.stack(c) if only in (None, i) else c[0] for i, c in enumerate(columns)]
        dims = tuple(0 if only in (None, i) else None for i in range(len(columns)))
        try:
            got = vmap(run, in_dims=dims)(*whole)
        except RuntimeError as error:
            if op.name in READS and "vmap" in str(error):
                return
            # What is written to must have slices, too.
            if only and op.name.endswith("_") and "more elements than `self`" in str(error):
                return
            raise
    for g, *each in zip(got, *want, strict=True):
        w = torch.stack(each)
        assert g.dtype == w.dtype
        assert g.device == w.device
        rtol = {torch.float16: 4e-3, torch.bfloat16: 4e-2, torch.float32: 2e-5}.get(g.dtype, 1e-7)
        torch.testing.assert_close(g, w, rtol=rtol, atol=rtol, equal_nan=True)


@pytest.fixture(scope="module", autouse=True)
def loops() -> Iterator[None]:
    before = torch._C._vmap_loops()
    yield
    after = torch._C._vmap_loops()
    looped = {name for name, n in after.items() if n > before.get(name, 0)}
    assert looped <= LOOPS, sorted(looped - LOOPS)


@pytest.mark.parametrize(("op", "dtype"), pairs())
def test_slices_of_results_are_results_of_slices(op: Op, dtype: str) -> None:
    for sample in op.samples():
        if not scalars_fit(sample, dtype):
            continue
        check(op, tensors(sample, dtype))


@pytest.mark.parametrize("op", [p for p in named(OPS) if "float32" in p.values[0].dtypes])
def test_arguments_may_be_the_same_for_all_slices(op: Op) -> None:
    for sample in op.samples():
        if not scalars_fit(sample, "float32"):
            continue
        for only in range(3):
            check(op, tensors(sample, "float32"), only)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="needs a GPU, or software for one")
@pytest.mark.parametrize("op", [p for p in named(OPS) if "float32" in p.values[0].dtypes])
def test_slices_on_a_gpu(op: Op) -> None:
    # The rules are those of the CPU, whose laws have all samples.
    for sample in list(op.samples())[:1]:
        if scalars_fit(sample, "float32"):
            check(op, tensors(sample, "float32"), device="wgpu")
