"""Calls that PyTorch says are errors, each with the class and the text that PyTorch 2.13 raises.

`data/error_inputs.json.gz` has what the error inputs of PyTorch's operators are, as facts: the
function, the arguments (the memory of tensors, and how they lie in it) and what came of the call.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import pytensorlib as torch

CALLS = json.loads(
    gzip.decompress((Path(__file__).parent / "data/error_inputs.json.gz").read_bytes())
)

# What differs on purpose, or for now, and why: by the function and the beginning of PyTorch's text.
WORDS = "our text says it in other words, with what it got"
ONE_TEXT = "one check for all that a weight must be"
WRITES = "results that lie over an operand are right: they are written from a copy"
DIFFERS: dict[tuple[str, str], str] = {
    ("torch.amax", "amax(): Expected reduction dim 1 to have non-zero size."): WORDS,
    ("torch.amin", "amin(): Expected reduction dim 1 to have non-zero size."): WORDS,
    ("torch.aminmax", "aminmax(): cannot compute aminmax over an empty dimension as"): WORDS,
    ("torch.aminmax", "aminmax: Expected reduction dim 1 to have non-zero size."): WORDS,
    (
        "torch.as_strided_scatter",
        "setStorage: sizes [2, 2], strides [200, 200], storage offset",
    ): WORDS,
    ("torch.cat", "expected Tensor as element 1 in argument 0, but got NoneType"): WORDS,
    ("torch.cat", "unsupported operation: some elements of the input tensor and"): WRITES,
    ("torch.empty_permuted", "Dimension out of range (expected to be between 0 and 0, but "): WORDS,
    ("torch.gather", "unsupported operation: some elements of the input tensor and"): WRITES,
    ("torch.gradient", "torch.gradient expected each tensor to be on the same device"): WORDS,
    ("torch.gradient", "torch.gradient expected spacing to be unspecified, a scalar "): WORDS,
    ("torch.gradient", "torch.gradient only supports edge_order=1 and edge_order=2."): WORDS,
    ("torch.histogramdd", "histogramdd: The size of bins must be equal to the innermost"): WORDS,
    ("torch.index_select", "unsupported operation: more than one element of the written-"): WRITES,
    ("torch.kthvalue", "unsupported operation: some elements of the input tensor and"): WRITES,
    ("torch.linalg.cross", "linalg.cross: inputs dimension -1 must have length 3. Got 2 "): WORDS,
    ("torch.linalg.cross", "linalg.cross: inputs dimension -1 must have length 3. Got 3 "): WORDS,
    ("torch.linalg.cross", "linalg.cross: inputs must have the same number of dimensions"): WORDS,
    ("torch.linspace", "linspace only supports 0-dimensional start and end tensors, "): WORDS,
    ("torch.logspace", "logspace only supports 0-dimensional start and end tensors, "): WORDS,
    ("torch.masked_fill", "value cannot be converted to type int64_t without overflow"): WORDS,
    ("torch.masked_select", "unsupported operation: some elements of the input tensor and"): WRITES,
    ("torch.multinomial", "invalid multinomial distribution (encountering probability e"): ONE_TEXT,
    ("torch.narrow_copy", "start (0) + length (-1) exceeds dimension size (10)."): WORDS,
    (
        "torch.nn.functional.adaptive_avg_pool1d",
        "adaptive_avg_pool2d: elements of output_size must be greater",
    ): WORDS,
    (
        "torch.nn.functional.adaptive_avg_pool2d",
        "adaptive_avg_pool2d: elements of output_size must be greater",
    ): WORDS,
    (
        "torch.nn.functional.adaptive_avg_pool2d",
        "adaptive_avg_pool2d: output_size must be 2",
    ): WORDS,
    (
        "torch.nn.functional.adaptive_avg_pool3d",
        "adaptive_avg_pool3d: elements of output_size must be greater",
    ): WORDS,
    (
        "torch.nn.functional.adaptive_avg_pool3d",
        "adaptive_avg_pool3d: output_size must be 3",
    ): WORDS,
    (
        "torch.nn.functional.adaptive_max_pool1d",
        "Trying to create tensor with negative dimension -1: [1, 1, 1",
    ): WORDS,
    ("torch.nn.functional.avg_pool1d", "pad must be non-negative, but got pad: -1"): WORDS,
    ("torch.nn.functional.avg_pool2d", "pad must be non-negative, but got pad: -1"): WORDS,
    (
        "torch.nn.functional.avg_pool3d",
        "non-empty 4D or 5D (batch mode) tensor expected for input",
    ): WORDS,
    ("torch.nn.functional.avg_pool3d", "pad must be non-negative, but got pad: -1"): WORDS,
    (
        "torch.nn.functional.huber_loss",
        "huber_loss does not support non-positive values for delta.",
    ): WORDS,
    (
        "torch.nn.functional.linear_cross_entropy",
        "K-dimensional loss defined by linear_weight shape (2, 4, 3) ",
    ): WORDS,
    (
        "torch.nn.functional.linear_cross_entropy",
        "expected equal input and linear_weight last dimensions (in_f",
    ): WORDS,
    (
        "torch.nn.functional.linear_cross_entropy",
        "expected input with dimensionality 1 or 2, got 3",
    ): WORDS,
    (
        "torch.nn.functional.linear_cross_entropy",
        "expected linear_bias shape (2,), got (3,)",
    ): WORDS,
    (
        "torch.nn.functional.linear_cross_entropy",
        "expected linear_weight with dimensionality at least 2, got 1",
    ): WORDS,
    (
        "torch.nn.functional.linear_cross_entropy",
        "ignore_index cannot be specified when target contains probab",
    ): WORDS,
    ("torch.nn.functional.max_pool1d", "pad must be non-negative, but got pad: -1"): WORDS,
    ("torch.nn.functional.max_pool2d", "pad must be non-negative, but got pad: -1"): WORDS,
    (
        "torch.nn.functional.max_pool3d",
        "max_pool3d_with_indices_out_cpu_template(): Expected input's",
    ): WORDS,
    ("torch.nn.functional.max_pool3d", "pad must be non-negative, but got pad: -1"): WORDS,
    (
        "torch.nn.functional.multi_margin_loss",
        "inconsistent weight size, expected 4 but got [5]",
    ): WORDS,
    (
        "torch.nn.functional.multi_margin_loss",
        "multi_margin_loss: target tensor should be 1-D with size equ",
    ): WORDS,
    (
        "torch.nn.functional.multilabel_margin_loss",
        "inconsistent target size: [4] for input of size: [5, 4]",
    ): WORDS,
    (
        "torch.nn.functional.multilabel_margin_loss",
        "inconsistent target size: [] for input of size: [5, 4]",
    ): WORDS,
    (
        "torch.nn.functional.softshrink",
        "lambda must be in range [0, 3.40282e+38] for input dtype Flo",
    ): WORDS,
    ("torch.ormqr", "torch.ormqr: input must have at least 2 dimensions."): WORDS,
    ("torch.ormqr", "torch.ormqr: tau.shape[-1] must be equal to min(other.shape["): WORDS,
    ("torch.scatter", "Index tensor must have the same number of dimensions as src "): WORDS,
    ("torch.scatter_add", "Index tensor must have the same number of dimensions as src "): WORDS,
    (
        "torch.signal.windows.blackman",
        "blackman expects float32 or float64 dtypes, got: torch.bfloa",
    ): WORDS,
    (
        "torch.signal.windows.blackman",
        "blackman expects float32 or float64 dtypes, got: torch.float",
    ): WORDS,
    (
        "torch.signal.windows.blackman",
        "blackman expects float32 or float64 dtypes, got: torch.int64",
    ): WORDS,
    (
        "torch.signal.windows.blackman",
        "blackman is implemented for strided tensors only, got: torch",
    ): WORDS,
    (
        "torch.signal.windows.blackman",
        "blackman requires non-negative window length, got M=-1",
    ): WORDS,
    ("torch.take", "unsupported operation: some elements of the input tensor and"): WRITES,
}


def tensor(of: dict[str, Any], memory: list[Any]) -> Any:
    dtype = getattr(torch, of["dtype"])
    if of.get("dev") == "meta":
        x = torch.empty(of["shape"], dtype=dtype, device="meta")
    else:
        raw = memory[of["s"]]
        x = raw.view(dtype) if raw.numel() else torch.empty(0, dtype=dtype)
        strides = of.get("stride") or torch.empty(of["shape"], device="meta").stride()
        x = torch.as_strided(x, of["shape"], strides, of["off"])
    return x.detach().requires_grad_() if of["rg"] else x


def value(of: Any, memory: list[Any]) -> Any:
    """Make an argument from what is recorded of it."""
    if not isinstance(of, dict):
        return of
    kind, v = of["k"], of.get("v")
    if kind == "t":
        return tensor(of, memory)
    if kind in ("dtype", "layout", "mf"):
        return getattr(torch, v)
    if kind in ("l", "tu", "size"):
        items = (value(item, memory) for item in v)
        return {"l": list, "tu": tuple, "size": torch.Size}[kind](items)
    if kind == "d":
        return {value(a, memory): value(b, memory) for a, b in v}
    return {"int": int, "f": float, "c": complex, "device": torch.device}[kind](v)


def function(path: str) -> Any:
    found: Any = torch
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


def name(call: dict[str, Any]) -> str:
    return call["path"].removeprefix("torch.")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS, ids=name)
def test_error_inputs_raise_what_pytorch_raises(call: dict[str, Any]) -> None:
    memory = []
    for text in call["st"]:
        raw = bytearray(base64.b64decode(text))
        memory.append(torch.frombuffer(raw, dtype=torch.uint8).clone() if raw else torch.empty(0))
    args = [value(of, memory) for of in call["args"]]
    kwargs = {key: value(of, memory) for key, of in call["kwargs"].items()}
    why = [
        reason
        for (path, text), reason in DIFFERS.items()
        if path == call["path"] and call["text"].startswith(text)
    ]
    if why:
        pytest.skip(why[0])
    with pytest.raises(Exception) as caught:
        function(call["path"])(*args, **kwargs)
    classes = [c.__name__ for c in type(caught.value).__mro__]
    assert call["class"] in classes
    assert call["text"] in str(caught.value)


def test_what_differs_is_among_the_calls() -> None:
    known = {(call["path"], call["text"]) for call in CALLS}
    for path, text in DIFFERS:
        assert any(p == path and t.startswith(text) for p, t in known), (path, text)
