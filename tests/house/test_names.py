"""Each public name of an operator has a row in the table, or says why not."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from inspect import signature
from typing import Any

import pytest
from op_calls import leaves, mapped, tensors
from op_db import OPS
from op_names import NAMES, bare
from op_row import Op, Sample

import pytensorlib as torch

ROWS: dict[str, list[Op]] = defaultdict(list)
for row in OPS:
    ROWS[row.name].append(row)


RANDOM = """
    rand randn randint randperm rand*_like normal bernoulli binomial poisson multinomial *rrelu*
    *dropout*
    Tensor.uniform_ Tensor.*normal_ Tensor.exponential_ Tensor.cauchy_ Tensor.geometric_
    Tensor.random_ Tensor.bernoulli_
""".split()

SPARSE = """
    Tensor.to_sparse* Tensor.to_dense Tensor.sparse_* Tensor.coalesce Tensor.is_coalesced
    Tensor.indices Tensor.values Tensor.dense_dim spmm dsmm hsmm hspmm smm saddmm sspaddmm
    resize_as_sparse_ values_copy indices_copy Tensor.*_indices *_indices_copy
""".split()

# What has no row, and why. Each line fits a name that nothing else accounts for.
WITHOUT = {
    **dict.fromkeys(RANDOM, "random: tests/ops/test_random.py has its numbers and distribution"),
    **dict.fromkeys(
        ("empty", "empty_*", "Tensor.new_empty*"), "what it holds is whatever the memory held"
    ),
    **dict.fromkeys(SPARSE, "tests/ops/test_sparse.py and test_sparse_products.py"),
    "fft.*": "transforms, not of float16: tests/ops/test_fft.py has them beside NumPy's",
    "nn.functional.assert_int_or_pair": "a check of arguments, with an example",
    "nn.functional.*fractional_max_pool*": "random windows: tests/conformance replays given ones",
    "nn.functional.grouped_mm": "products of slices: tests/nn/test_small_modules.py",
    "nn.functional.scaled_mm": "float8, which NumPy lacks: tests/ops/test_float8_products.py",
    "nn.functional.gumbel_softmax": "random: tests/conformance",
    "nn.functional.multi_head_attention_forward": "a layer: tests/conformance",
    "Tensor.index": "indexing: tests/ops/test_indexing.py",
    "Tensor.alias": "a view of all of self, inside the package",
    "Tensor.chalf": "a type NumPy lacks: tests/ops/test_float8.py",
    "alias_copy": "a copy of all of self, inside the package",
    "embedding_renorm_": "rows shortened in place by nn.functional.embedding(max_norm=)",
    "affine_grid_generator": "called by nn.functional.affine_grid",
    "grid_sampler*": "called by nn.functional.grid_sample",
    "nn.functional.upsample_*": "called by nn.functional.interpolate",
    "nn.functional.reflection_pad?d": "called by nn.functional.pad",
    "nn.functional.replication_pad?d": "called by nn.functional.pad",
    "nn.functional.col2im": "called by nn.functional.fold",
    "nn.functional.im2col": "called by nn.functional.unfold",
    "nn.functional.nll_loss?*": "called by nn.functional.nll_loss",
    "nn.functional.cross_entropy_loss": "called by nn.functional.cross_entropy",
    "nn.functional.log_sigmoid": "called by nn.functional.logsigmoid",
}


def has_row(name: str) -> bool:
    """Tell whether a row has the name, or the same entry under another module's name."""
    if name in ROWS:
        return True
    same = (r for r in ROWS if bare(r) == bare(name))
    return any(
        name.startswith(("Tensor.", "nn.functional."))
        or r not in NAMES
        or {f.signature for f in NAMES[r]} & {f.signature for f in NAMES.get(name, ())}
        for r in same
    )


def alias_of(name: str) -> str | None:
    """Return another name of the same signature and summary, which has a row."""
    forms = {f[:2] for f in NAMES.get(name, ()) if f.summary and not dunder(name)}
    return next((r for r in ROWS if r in NAMES and forms & {f[:2] for f in NAMES[r]}), None)


def base_of(name: str) -> str | None:
    """Return the name whose result `x_` or `x_copy` gives in place or in memory of its own."""
    base = re.sub(r"(?<=\w)(_|_copy)$", "", name)
    others = (base, "Tensor." + base, base.removeprefix("Tensor."), alias_of(bare(base)))
    return next((r for r in others if base != name and r in ROWS), None)


def public() -> list[str]:
    """Return every name, but those in Python that make no tensor from tensors."""
    functional = vars(torch.nn.functional)
    own = [
        f"nn.functional.{k}"
        for k, f in functional.items()
        if not k.startswith("_")
        and not isinstance(f, type)
        and callable(f)
        and getattr(f, "__module__", "").startswith(("pytensorlib.nn.functional", "pytensorlib._C"))
    ]
    return sorted({n for n in [*NAMES, *own] if not re.match(r"_[^_]", bare(n))})


def left_over() -> list[str]:
    return [n for n in public() if not (has_row(n) or alias_of(n) or base_of(n) or dunder(n))]


def dunder(name: str) -> bool:
    return bare(name).startswith("__i") and hasattr(operator, bare(name))


def test_every_name_has_a_row_or_a_reason() -> None:
    assert not [n for n in left_over() if not any(fnmatch(n, pattern) for pattern in WITHOUT)]


def test_every_reason_is_needed() -> None:
    names = left_over()
    assert not [pattern for pattern in WITHOUT if not any(fnmatch(n, pattern) for n in names)]


def test_every_inplace_form_of_a_row_is_tested() -> None:
    def inplace(name: str) -> bool:
        if name.startswith("nn.functional."):
            return "inplace" in signature(getattr(torch.nn.functional, bare(name))).parameters
        return any(f.inplace for f in NAMES.get(name, ()))

    assert not [n for n, rows in ROWS.items() if inplace(n) and not any(r.inplace for r in rows)]


def found(name: str) -> Any:
    return Op(name, None, lambda rng: ()).function(torch)


def calls(name: str) -> Iterator[tuple[Op, Sample]]:
    for row in ROWS[name]:
        for sample in row.samples():
            yield row, tensors(sample, "float64")


def same(got: Any, want: Any) -> None:
    for g, w in zip(leaves(got), leaves(want), strict=True):
        torch.testing.assert_close(g, w, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", [n for n in public() if not has_row(n) and alias_of(n)])
def test_alias_gives_what_its_other_name_gives(name: str) -> None:
    for row, call in calls(alias_of(name) or ""):
        want = row.function(torch)(*call.args, **call.kwargs)
        same(found(name)(*call.args, **call.kwargs), want)


@pytest.mark.parametrize("name", [n for n in public() if not has_row(n) and base_of(n)])
def test_inplace_or_copy_gives_what_the_view_gives(name: str) -> None:
    for row, call in calls(base_of(name) or ""):
        if row.call is not None and not row.name.startswith("Tensor."):
            continue
        want = row.function(torch)(*call.args, **call.kwargs)
        args = mapped(call.args, torch.clone)
        got = found(name)(*args, **call.kwargs)
        same(got, want)
        if name.endswith("_"):
            assert got is args[0]
        else:
            own = {args[0].untyped_storage().data_ptr()}
            assert not own & {t.untyped_storage().data_ptr() for t in leaves(got) if t.numel()}


@pytest.mark.parametrize("name", [n for n in public() if dunder(n)])
def test_operator_in_place_gives_what_the_operator_gives(name: str) -> None:
    plain = getattr(operator, bare(name).replace("__i", "__", 1))
    whole = bool(re.search("and|or|shift", bare(name)))
    for shape in [(3, 4), (4,), ()]:
        x, y = torch.arange(12).reshape(3, 4) + 1, torch.ones(shape, dtype=torch.int64) * 3
        if not whole or "floordiv" in name:
            x, y = x / 4, y / 2
        target = x.clone()
        assert getattr(operator, bare(name))(target, y) is target
        same(target, plain(x, y))
