"""The files that `make gen` writes: fresh, and right for schemas of every shape."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    """Import the generator by itself: it needs no extension."""
    spec = importlib.util.spec_from_file_location("generator", ROOT / ".ci/gen.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generator"] = module
    spec.loader.exec_module(module)
    return module


gen = load()

T, F = True, False
ENTRIES = [
    (
        "add.Tensor(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
        "torch",
        T,
        T,
        T,
        "a",
    ),
    ("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "Tensor", T, F, F, "v"),
    ("permute(Tensor(a) self, int[] dims) -> Tensor(a)", "torch", T, F, F, "p"),
    (
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        *("torch", T, F, T, "The largest | along `dim`.\n\nMore."),
    ),
    ("max(Tensor self) -> Tensor", "torch", T, F, F, "m"),
    ("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", "torch", T, F, F, "s"),
    ("gelu(Tensor self, *, str approximate='none') -> Tensor", "nn", F, F, T, "g"),
    ("relu6(Tensor self) -> Tensor", "nn", F, T, F, "r"),
    (
        "split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
        *("torch", T, F, F, ""),
    ),
    (
        "zeros(SymInt[] size, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        *("torch", F, F, T, ""),
    ),
    ("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", "torch", T, F, F, ""),
    (
        "adaptive(Tensor self, int[2] output_size, int[1] stride=[]) -> (Tensor, Tensor)",
        *("nn", F, F, F, ""),
    ),
    (
        "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        *("torch", T, F, F, ""),
    ),
    ("is_same_size(Tensor self, Tensor other) -> bool", "torch", T, F, F, ""),
    ("einsum(str equation, Tensor[] operands) -> Tensor", "torch", F, F, F, ""),
    ("stack(Tensor[] tensors, int dim=0) -> Tensor", "torch", F, F, F, ""),
]


@pytest.mark.parametrize(
    "line",
    [
        "def add(input: Tensor, other: Tensor | _Number, *, alpha: _Number = ..., "
        "out: Tensor | None = ...) -> Tensor: ...",
        "def add_(self, other: Tensor | _Number, *, alpha: _Number = ...) -> Tensor: ...",
        "def permute(self, *dims: _int) -> Tensor: ...",
        "def permute(self, dims: Sequence[_int]) -> Tensor: ...",
        "class _return_max(NamedTuple):",
        "def max(input: Tensor, dim: _int, keepdim: _bool = ..., *, "
        "out: Sequence[Tensor] | None = ...) -> _return_max: ...",
        "def sum(self, *, dtype: _dtype | None = ...) -> Tensor: ...",
        "class _nn:",
        "def relu6_(input: Tensor) -> Tensor: ...",
        "def split(self, split_size: _int, dim: _int = ...) -> tuple[Tensor, ...]: ...",
        "def zeros(*size: _int, dtype: _dtype | None = ..., device: _device | str | _int | None "
        "= ..., out: Tensor | None = ...) -> Tensor: ...",
        "def index(self, indices: Sequence[Tensor | None]) -> Tensor: ...",
        "def adaptive(input: Tensor, output_size: _int | Sequence[_int], "
        "stride: _int | Sequence[_int] = ...) -> tuple[Tensor, Tensor]: ...",
        "def einsum(equation: str, *operands: Tensor) -> Tensor: ...",
        "def einsum(equation: str, operands: Sequence[Tensor]) -> Tensor: ...",
        "def copy_(self, src: Tensor, non_blocking: _bool = ...) -> Tensor: ...",
        "def backward(self, gradient: Any=None, retain_graph: _bool | None=None, "
        "create_graph: _bool=False, inputs: Any=None) -> None: ...",
    ],
)
def test_stub_writes_schema_as_python(line: str) -> None:
    assert line in [text.strip() for text in gen.stub(ENTRIES).split("\n")]


def test_stub_is_valid_python() -> None:
    compile(gen.stub(ENTRIES), "stub", "exec")


def test_stub_of_unknown_type_raises() -> None:
    with pytest.raises(ValueError, match="Dimname"):
        gen.stub([("f(Tensor self, Dimname x) -> Tensor", "torch", False, False, False, "")])


def test_table_has_a_row_for_each_schema() -> None:
    text = gen.table(ENTRIES)
    assert text.count("\n| `") == len(ENTRIES)
    assert "| The largest \\| along `dim`. |" in text


def test_committed_files_are_fresh() -> None:
    from pytensorlib import _C

    assert gen.stale(_C._schemas()) == [], "run `make gen` and commit what it writes"


def test_stub_names_every_attribute_of_tensor() -> None:
    from pytensorlib import _C
    from pytensorlib._absent import removed as _removed

    stub = gen.stub(_C._schemas())
    body = stub[stub.index("class Tensor(TensorBase):") :]
    names = [name for name in vars(_C.Tensor) if not name.startswith("_")]
    removed = set(_removed.__all__)  # type checkers should miss them
    public = [name for name in names if hasattr(_C.Tensor, name) and name not in removed]
    missing = [n for n in public if f"    def {n}(" not in body and f"    {n}: " not in body]
    assert not missing


def test_stub_names_every_function_and_class() -> None:
    from pytensorlib import _C, _capi

    stub = gen.stub(_C._schemas())
    own = {n for n, v in vars(_C).items() if vars(_capi).get(n) is not v}
    names = set(re.findall(r"^(?:def |class )?(\w+)[:(]", stub, re.MULTILINE))
    assert not {n for n in own if not n.startswith("_")} - names
