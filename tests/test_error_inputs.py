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
ONE_TEXT = "one check for all that a weight must be"
GROWS = (
    "the index lies where a result that is too small would grow to; it is written when all is read"
)
COUNT = "PyTorch says that dimension 0 is empty, whichever it is"
DIFFERS: dict[tuple[str, str], str] = {
    ("torch.gather", "unsupported operation: some elements of the input tensor and"): GROWS,
    ("torch.multinomial", "invalid multinomial distribution (encountering probability e"): ONE_TEXT,
    (
        "torch.nn.functional.max_pool3d",
        "max_pool3d_with_indices_out_cpu_template(): Expected input's",
    ): COUNT,
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
