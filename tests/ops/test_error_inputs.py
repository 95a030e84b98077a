"""Calls that PyTorch says are errors, each with the class and the text that PyTorch 2.13 raises.

`data/error_inputs.json.gz` has what the error inputs of PyTorch's operators are, as facts: the
function, the arguments (the memory of tensors, and how they lie in it) and what came of the call.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import operator
import re
from pathlib import Path
from typing import Any

import pytest

import pytensorlib as torch

CALLS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/error_inputs.json.gz").read_bytes())
)

# What differs on purpose, or for now, and why: by the function and the beginning of PyTorch's text.
GROWS = (
    "the index lies where a result that is too small would grow to; it is written when all is read"
)
COUNT = "PyTorch says that dimension 0 is empty, whichever it is"
DIFFERS: dict[tuple[str, str], str] = {
    ("torch.gather", "unsupported operation: some elements of the input tensor and"): GROWS,
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


T = torch.tensor
MASK = T([True, True, False, False])


class Viewed(torch.autograd.Function):
    """Returns a view of its input, or two."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, twice: bool = False) -> Any:
        return (x.view_as(x), x.view_as(x)) if twice else x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0], None


def saved() -> Any:
    x = torch.ones(2, requires_grad=True)
    return (x * x).grad_fn._raw_saved_self


def hooked() -> Any:
    found = saved()
    found.register_hooks(lambda x: x, lambda x: x)
    return found


def assign(index: Any, value: Any) -> None:
    torch.arange(4)[index] = value


OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
CUSTOM = (
    " modified inplace. This view was created inside a custom Function (or because an input was "
    "returned as-is) and the autograd logic to handle view+inplace would override the custom "
    "backward associated with the custom Function, leading to incorrect gradients."
)
NO_GRAD = "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
WEIGHTS = "invalid multinomial distribution (encountering probability entry "
# Of several things that are wrong, which PyTorch 2.13 told, and how.
RAISED: list[tuple[Any, type[Exception], str]] = [
    # The shape before the type.
    (
        lambda: assign(MASK, torch.ones(3)),
        RuntimeError,
        "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of "
        "shape [2]",
    ),
    (lambda: assign(T([0, 1]), torch.ones(3)), RuntimeError, "shape mismatch: value tensor of"),
    (lambda: assign(MASK, torch.ones(2)), RuntimeError, "Index put requires the source and"),
    # Memory that elements share before the type.
    (lambda: operator.ilshift(torch.zeros(1).expand(3), 1), RuntimeError, OVERLAP),
    (lambda: operator.iand(torch.zeros(1).expand(3), 1), RuntimeError, OVERLAP),
    (lambda: torch.zeros(1).expand(3).bitwise_xor_(torch.ones(3)), RuntimeError, OVERLAP),
    (lambda: torch.zeros(1).int().expand(3).sigmoid_(), RuntimeError, OVERLAP),
    (lambda: torch.zeros(1).int().expand(3).add_(1.5), RuntimeError, OVERLAP),
    (
        lambda: operator.ilshift(torch.zeros(3), 1),
        NotImplementedError,
        "\"lshift_cpu\" not implemented for 'Float'",
    ),
    # Where several numbers are drawn with replacement, weights are looked at one by one.
    (lambda: torch.multinomial(T([-1.0, 2]), 2, True), RuntimeError, WEIGHTS + "< 0)"),
    (lambda: torch.multinomial(T([math.nan, 2]), 2, True), RuntimeError, WEIGHTS + "< 0)"),
    (
        lambda: torch.multinomial(T([math.inf, 2]), 2, True),
        RuntimeError,
        WEIGHTS + "= infinity or NaN)",
    ),
    (
        lambda: torch.multinomial(T([-1.0, 2]), 1, True),
        RuntimeError,
        "probability tensor contains either `inf`, `nan` or element < 0",
    ),
    (
        lambda: torch.nonzero(T([1, 0]), as_tuple=True, out=torch.ones(1).long()),
        RuntimeError,
        "nonzero does not support the out kwarg when as_tuple is True",
    ),
    # Views that a `Function` returned.
    (
        lambda: Viewed.apply(torch.ones(2)).mul_(torch.ones(2, requires_grad=True)),
        RuntimeError,
        NO_GRAD + CUSTOM.removeprefix(" modified inplace."),
    ),
    (
        lambda: Viewed.apply(torch.ones(2, requires_grad=True).clone()).mul_(2),
        RuntimeError,
        "Output 0 of Viewed is a view and is being" + CUSTOM,
    ),
    (
        lambda: Viewed.apply(torch.ones(2, requires_grad=True).clone(), True)[1].mul_(2),
        RuntimeError,
        "Output 1 of Viewed is a view and is being modified inplace. This view is the output of a "
        "function that returns multiple views.",
    ),
    (
        lambda: torch.ones(2, requires_grad=True).clone().unbind()[1].mul_(2),
        RuntimeError,
        "Output 1 of Unbind is a view and is being modified inplace. This view is the output of a "
        "function that returns multiple views.",
    ),
    # What autograd saved.
    (
        lambda: hooked().register_hooks(lambda x: x, lambda x: x),
        RuntimeError,
        "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only "
        "one pair of hooks is allowed at a time.",
    ),
    (lambda: saved().register_hooks(lambda x: x, 1), TypeError, "incompatible function arguments"),
    # Attributes that stay.
    (
        lambda: delattr(torch.ones(2), "data"),
        RuntimeError,
        "Deleting tensor data is not allowed. Delete tensor instead!",
    ),
    (
        lambda: delattr(torch.ones(2), "requires_grad"),
        RuntimeError,
        "requires_grad must be a bool",
    ),
    # Devices.
    (lambda: torch.device(""), RuntimeError, "Device string must not be empty"),
    (lambda: torch.device("cuda", -1), RuntimeError, "Device index must not be negative"),
    (lambda: torch.device(1.5), TypeError, "device()"),
    # Norms name the function that others call.
    (
        lambda: torch.linalg.norm(torch.ones(3).int()),
        RuntimeError,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Int",
    ),
    (
        lambda: torch.norm(torch.ones(2, 2).double(), dtype=torch.float32),
        RuntimeError,
        "linalg.vector_norm: the dtype of the input (Double) should be convertible without",
    ),
    (
        lambda: torch.norm(torch.ones(2, 2), 4, dtype=torch.int64),
        RuntimeError,
        "linalg.vector_norm: dtype should be floating point or complex, but got Long",
    ),
    (
        lambda: torch.norm(torch.ones(2, 2), "q"),
        RuntimeError,
        "linalg.matrix_norm: Order q not supported.",
    ),
    (
        lambda: torch.linalg.norm(torch.ones(2, 2), "nuc", 0),
        RuntimeError,
        "linalg.matrix_norm: dim must be a 2-tuple. Got 0",
    ),
    # Options of functions.
    (
        lambda: torch.autograd.functional.jacobian(torch.exp, torch.ones(2), strategy="x"),
        AssertionError,
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
        'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
        'prefer to use "reverse-mode".',
    ),
    (
        lambda: torch.stft(torch.ones(20), 4, window=torch.ones(4)),
        RuntimeError,
        "stft requires the return_complex parameter be given for real inputs, and will further "
        "require that return_complex=True in a future PyTorch release.",
    ),
]


@pytest.mark.parametrize("case", range(len(RAISED)))
def test_first_of_several_faults_is_told_as_by_pytorch(case: int) -> None:
    call, error, text = RAISED[case]
    with pytest.raises(error, match=re.escape(text)):
        call()
