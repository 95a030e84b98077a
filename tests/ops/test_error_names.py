"""Errors name the function that was called, in PyTorch's ways where it has one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from op_calls import has_wgpu
from op_names import NAMES, PLACES, bare

import pytensorlib as torch
from pytensorlib import _C


def function(name: str) -> Any:
    module = {"nn.functional.": _C._nn, "linalg.": _C._linalg, "special.": _C._special}
    for prefix in PLACES.values():
        if prefix in module and name.startswith(prefix):
            return getattr(module[prefix], bare(name))
    return getattr(torch.Tensor if name.startswith("Tensor.") else _C, bare(name), None)


TENSORS = [
    torch.ones(2, 3),
    torch.ones(5),
    torch.ones(()),
    torch.ones(0, 4),
    torch.ones(1, 2, 3, 4, 5, 6),
    torch.ones(2, 3, dtype=torch.int64),
    torch.ones(2, dtype=torch.bool),
    torch.ones(7, dtype=torch.complex64),
    torch.ones(2, 3, dtype=torch.bfloat16),
]
NUMBERS = {
    "int": [9, -9, 0],
    "float": [-1.0, 0.5, 2.0],
    "bool": [True, False, True],
    "Scalar": [-3, 0, 2.5],
    "str": ["x", "mean", "ij"],
    "ScalarType": [torch.bool, torch.int64, torch.float16],
}
LISTS = [[7, 7], [-2], [0, 1, 9]]


def arguments(form: str, k: int) -> Iterator[Any]:
    """Yield a value for each parameter without a default; the `k`-th choice of each."""
    for i, param in enumerate(re.split(r",\s*(?![^\[]*\])", form.partition(")")[0])):
        kind, _, name = param.strip().rpartition(" ")
        if kind in ("", "*") or "=" in name:
            continue
        kind = re.sub(r"\(.*?\)|\?", "", kind)
        if kind.startswith("Tensor["):
            yield [TENSORS[(k + j) % len(TENSORS)] for j in range(2)]
        elif kind.startswith("Tensor"):
            yield TENSORS[(3 * k + 5 * i * (k // 3 + 1)) % len(TENSORS)]
        else:
            yield NUMBERS.get(kind, LISTS)[k % 3]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(n for n in NAMES if function(n) is not None))
def test_errors_name_the_function(name: str) -> None:
    call, stem = function(name), bare(name).strip("_")
    for form in NAMES[name]:
        for k in range(12):
            args = list(arguments(form.signature, k))
            try:
                call(*args)
            except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as e:
                text = str(e)
                assert re.search(rf"(?<![^\W_]){re.escape(stem)}", text), (args, text)
                assert len(text) > len(stem) + 10, "says what must hold"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x + torch.ones(4), "add(): The size of tensor a (3) must match"),
        (lambda x: x - torch.ones(4), "sub(): The size of tensor a (3) must match"),
        (lambda x: x < torch.ones(4), "lt(): The size of tensor a (3) must match"),
        (lambda x: x.mul_(torch.ones(4)), "mul_(): The size of tensor a (3) must match"),
        (lambda x: x @ torch.ones(4), "matmul(): "),
        (lambda x: torch.stack([x, torch.ones(4)]), "stack expects each tensor to be equal size"),
        (lambda x: torch.ones(2, dtype=torch.int64).add_(0.5), "add_(): result type"),
        (lambda x: torch.linalg.inv(torch.zeros(2, 2)), "torch.linalg.inv: "),
        (lambda x: torch.clamp_max(x, 1, out=torch.ones(3).double()), "clamp_max(): Expected out"),
    ],
)
def test_text_begins_with_the_name_or_as_pytorchs(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match="^" + re.escape(text)):
        call(torch.ones(3))


@pytest.mark.parametrize(
    "call",
    [
        ("add", lambda a, b: a + b),
        ("mul_", lambda a, b: a.mul_(b)),
        ("mm", torch.mm),
        ("cat", lambda a, b: torch.cat([a, b])),
        ("index_select", lambda a, b: torch.index_select(a, 0, b.long()[0])),
        ("linear", torch.nn.functional.linear),
        ("where", lambda a, b: torch.where(a > 0, b, b)),
        ("layer_norm", lambda a, b: torch.nn.functional.layer_norm(a, (2,), b[0])),
    ],
    ids=lambda c: c[0],
)
def test_mixed_devices_name_the_function(call: Any) -> None:
    if not has_wgpu():
        pytest.skip("no GPU adapter")
    with pytest.raises(RuntimeError, match=call[0].strip("_") + ".*device"):
        call[1](torch.ones(2, 2), torch.ones(2, 2, device="wgpu"))


@pytest.mark.parametrize(
    "call", [lambda x: -x, abs, lambda x: x.__setitem__(0, 1), torch.tensor, lambda x: x + x]
)
@pytest.mark.filterwarnings("ignore")
def test_memory_that_is_gone_raises_from_every_form(call: Any) -> None:
    x = torch.ones(3)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="needs a storage"):
        call(x)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a, b: a + b, r"\(32\) .* tensor b \(128\) at non-singleton dimension 3"),
        (lambda a, b: b[0] * a, r"\(128\) .* tensor b \(32\) at non-singleton dimension 3"),
        (torch.broadcast_tensors, r"\(32\) .* tensor b \(128\) at non-singleton dimension 3"),
        (
            lambda a, b: a.expand_as(b),
            r"expanded size .*\(128\) .* existing size \(32\) at non-singleton dimension 3\. "
            r" Target sizes: \[2, 3, 16, 128\]\.  Tensor sizes: \[2, 3, 8, 32\]",
        ),
        (lambda a, _: a.expand(-1, -1, 2, 3, 8, 32), "leading, non-existing dimension 1"),
    ],
)
def test_shapes_that_differ_in_several_dimensions_tell_the_last(call: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(torch.ones(2, 3, 8, 32), torch.ones(2, 3, 16, 128))
