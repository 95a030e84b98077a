"""Write what is derived from the op table: `python .ci/gen.py` (`make gen`).

The extension lists its operators as `(schema, namespace, is_method, has_inplace, has_out, doc)`.
From that come the type stub of the extension and the table of operators; both are committed, and
a test fails when they are stale.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

Entry = tuple[str, str, bool, bool, bool, str]

ROOT = Path(__file__).resolve().parent.parent
STUB = "pytensorlib/_C.pyi"
TABLE = "rust/core/src/ops/README.md"

# The namespace of plain functions, and that of methods which are no function; the others are
# submodules of the extension. An operator found in two places has an entry for each.
TOP, METHOD_ONLY = "torch", "Tensor"
SUBMODULES = {"nn": "_nn", "special": "_special", "linalg": "_linalg", "fft": "_fft"}

TYPES = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | _Number",
    "Scalar": "_Number",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "str",
    "ScalarType": "_dtype",
    "Device": "_device | str | _int",
    "Layout": "_layout",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator",
    "Any": "Any",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a schema, with its Python type and default."""

    name: str
    type: str
    default: bool
    keyword_only: bool
    star: str = ""  # the type of one item, where a caller may give the items one by one

    def text(self) -> str:
        """Return it as a stub writes it."""
        return f"{self.name}: {self.type}" + (" = ..." if self.default else "")


@dataclass(frozen=True)
class Schema:
    """A parsed schema such as `sum.dim(Tensor self, int[1]? dim, *, Tensor? w=None) -> Tensor`."""

    name: str
    overload: str
    parameters: tuple[Parameter, ...]
    fields: tuple[str, ...]
    returns: tuple[str, ...]


def split(text: str) -> Iterator[str]:
    """Yield the parts of a list, split at commas outside brackets."""
    depth, part = 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += c
    if part.strip():
        yield part.strip()


def python_type(name: str, *, result: bool = False) -> str:
    """Return the Python type of a schema's type, wide for arguments and exact for results."""
    name = re.sub(r"\([a-z!|* >-]+\)", "", name)
    if name.endswith("?"):
        inner = python_type(name[:-1], result=result)
        return inner if inner.endswith("| None") else f"{inner} | None"
    if m := re.fullmatch(r"(.*)\[(\d*)\]", name):
        item = python_type(m.group(1), result=result)
        if result:
            return f"tuple[{item}, ...]"
        return f"{item} | Sequence[{item}]" if m.group(2) else f"Sequence[{item}]"
    if name not in TYPES:
        raise ValueError(f"{name}: no Python type is known for this type of a schema")
    return TYPES[name]


def parse(schema: str) -> Schema:
    """Parse one schema."""
    m = re.fullmatch(r"\s*(?:\w+::)?(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+?)\s*", schema)
    if not m:
        raise ValueError(f"not a schema: {schema}")
    name, overload, inside, outside = m.groups()
    parameters: list[Parameter] = []
    keyword_only = False
    for part in split(inside):
        if part == "*":
            keyword_only = True
            continue
        declared = re.fullmatch(r"(.+) (\w+)(?:=(.*))?", part)
        if not declared:
            raise ValueError(f"not a parameter: {part} in {schema}")
        kind, own_name, value = declared.groups()
        own = python_type(kind)
        if value == "None" and not own.endswith("None"):
            own += " | None"
        safe = f"{own_name}_" if keyword.iskeyword(own_name) else own_name
        star = ""
        if value is None and re.fullmatch(r"(Sym)?[Ii]nt\[\d*\]", kind):
            star = "_int"
        elif kind == "Tensor[]" and not name.startswith("_") and (value or parameters):
            star = "Tensor"
        parameters.append(Parameter(safe, own, value is not None, keyword_only, star))
    if outside == "()":
        return Schema(name, overload or "", tuple(parameters), (), ("None",))
    results = list(split(outside[1:-1] if outside.startswith("(") else outside))
    named = [r.rpartition(" ") for r in results]
    fields = tuple(n for kind, _, n in named if kind) if all(k for k, *_ in named) else ()
    types = tuple(python_type(kind or n, result=True) for kind, _, n in named)
    return Schema(name, overload or "", tuple(parameters), fields, types)


def result_class(schema: Schema) -> str:
    """Return the name of the named tuple that the operator returns."""
    return f"_return_{schema.name}"


def result_type(schema: Schema) -> str:
    """Return the annotation of what the operator returns."""
    if len(schema.returns) == 1:
        return schema.returns[0]
    return result_class(schema) if schema.fields else f"tuple[{', '.join(schema.returns)}]"


def signature(parameters: Iterable[Parameter], *, star: str = "") -> str:
    """Return a parameter list, the one named `star` as `*star`."""
    parts: list[str] = []
    open_keywords = False
    for p in parameters:
        if p.name == star:
            parts.append(f"*{p.name}: {p.star}")
            open_keywords = True
            continue
        if p.keyword_only and not open_keywords:
            parts.append("*")
            open_keywords = True
        parts.append(p.text())
    return ", ".join(parts)


def forms(name: str, schema: Schema, *, method: bool, out: bool) -> Iterator[str]:
    """Yield a `def` line for each way to call one schema."""
    parameters = list(schema.parameters)
    if method:
        if not parameters or parameters[0].name != "self":
            raise ValueError(f"{schema.name}: a method's first parameter must be `Tensor self`")
        parameters[0] = Parameter("self", "", default=False, keyword_only=False)
    else:
        parameters = [replace(p, name="input") if p.name == "self" else p for p in parameters]
    if out:
        several = len(schema.returns) > 1
        kind = "Sequence[Tensor]" if several else "Tensor"
        parameters.append(Parameter("out", f"{kind} | None", default=True, keyword_only=True))
    head, tail = f"def {name}(", f") -> {result_type(schema)}: ..."

    def line(**how: str) -> str:
        listed = signature(parameters, **how)
        return head + (listed.replace("self: ", "self", 1) if method else listed) + tail

    positional = [p for p in parameters if not p.keyword_only and p.name not in {"self", "input"}]
    last = positional[-1] if positional else None
    if last and ((len(positional) == 1 and last.star == "_int") or last.star == "Tensor"):
        yield line(star=last.name)  # x.view(2, 3) beside x.view((2, 3))
    yield line()


def definitions(groups: dict[str, list[str]], indent: str) -> Iterator[str]:
    """Yield the lines of functions, overloaded where a name has several forms."""
    for name in sorted(groups):
        lines = list(dict.fromkeys(groups[name]))
        for text in lines:
            if len(lines) > 1:
                yield f"{indent}@overload"
            yield f"{indent}{text}"


def names_in(pattern: re.Pattern[str], text: str) -> set[str]:
    """Return the names that a pattern finds."""
    return set(pattern.findall(text))


def stub(entries: Iterable[Entry]) -> str:
    """Return the text of `_C.pyi`."""
    functions: dict[str, dict[str, list[str]]] = {}
    methods: dict[str, list[str]] = {}
    results: dict[str, Schema] = {}
    for text, namespace, is_method, has_inplace, has_out, _ in entries:
        schema = parse(text)
        if schema.fields:
            results[result_class(schema)] = schema
        place = {} if namespace == METHOD_ONLY else functions.setdefault(namespace, {})
        place.setdefault(schema.name, []).extend(
            forms(schema.name, schema, method=False, out=has_out)
        )
        if has_inplace and namespace != METHOD_ONLY:
            name = f"{schema.name}_"
            place.setdefault(name, []).extend(forms(name, schema, method=False, out=False))
        if is_method:
            methods.setdefault(schema.name, []).extend(
                forms(schema.name, schema, method=True, out=False)
            )
        if has_inplace and is_method:
            name = f"{schema.name}_"
            methods.setdefault(name, []).extend(forms(name, schema, method=True, out=False))
    start, module = head(), (ROOT / "pytensorlib/_tensor/__init__.py").read_text(encoding="utf-8")
    known = re.compile(r"^    (?:def )?(\w+)[(:]", re.MULTILINE)
    in_class = start[start.index("class Tensor(TensorBase):") :]
    own = [
        line for line in attached(module) if not names_in(known, line) & names_in(known, in_class)
    ]
    written = names_in(known, in_class) | names_in(known, "\n".join(own))
    methods = {name: lines for name, lines in methods.items() if name not in written}
    parts = [start, *own, *definitions(methods, "    ")]
    for name, schema in sorted(results.items()):
        parts.append(f"\nclass {name}(NamedTuple):")
        parts += [f"    {f}: {t}" for f, t in zip(schema.fields, schema.returns, strict=True)]
    for namespace in sorted(functions, key=lambda n: (n != TOP, n)):
        groups = functions[namespace]
        if namespace == TOP:
            parts += ["", *definitions(groups, "")]
            continue
        parts.append(f"\nclass {SUBMODULES.get(namespace, '_' + namespace)}:")
        for line in definitions(groups, "    "):
            parts += ["    @staticmethod"] if line.startswith("    def") else []
            parts.append(line)
            parts += ["    @staticmethod"] if line == "    @overload" else []
        parts = unique_static(parts)
    return "\n".join(parts) + "\n"


def unique_static(lines: list[str]) -> list[str]:
    """Drop a decorator that follows itself."""
    return [
        line
        for i, line in enumerate(lines)
        if not (line == "    @staticmethod" and i and lines[i - 1] == line)
    ]


def table(entries: Iterable[Entry]) -> str:
    """Return the table of operators in Markdown."""
    rows = [
        "# The operators",
        "",
        "Written by `make gen` from the declarations in this folder.",
        "",
        "| operator | schema | method | in place | `out=` | what |",
        "|---|---|---|---|---|---|",
    ]
    for text, namespace, *flags, doc in sorted(entries, key=lambda e: (e[1] != TOP, e[1], e[0])):
        name = parse(text).name if namespace == TOP else f"{namespace}.{parse(text).name}"
        marks = " | ".join("yes" if flag else "" for flag in flags)
        first = doc.strip().split("\n")[0].replace("|", "\\|")
        rows.append(
            f"| `{name}` | `{text.strip().replace('|', chr(92) + '|')}` | {marks} | {first} |"
        )
    return "\n".join(rows) + "\n"


def submodule(entries: Iterable[Entry], namespace: str) -> str:
    """Return the stub of a module that offers the functions of one namespace."""
    own = [
        (parse(text).name, inplace) for text, place, _, inplace, *_ in entries if place == namespace
    ]
    names = {name for name, _ in own} | {f"{name}_" for name, inplace in own if inplace}
    lines = [WRITTEN, f"from ._C import {SUBMODULES[namespace]} as _ops"]
    if namespace == "linalg":
        lines.append("from ._errors import LinAlgError as LinAlgError")
    if namespace == "fft":
        lines.append("from ._tensor.spectral import fftfreq as fftfreq, rfftfreq as rfftfreq")
    return "\n".join([*lines, "", *(f"{name} = _ops.{name}" for name in sorted(names))]) + "\n"


def generated(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the text of every generated file by its path in the repository."""
    entries = list(entries)
    modules = {
        f"pytensorlib/{name}.pyi": submodule(entries, name) for name in ("fft", "linalg", "special")
    }
    return {STUB: stub(entries), **modules, TABLE: table(entries)}


def stale(entries: Iterable[Entry], root: Path = ROOT) -> list[str]:
    """Return the generated files that differ from what the op table gives."""
    return [
        name
        for name, text in generated(entries).items()
        if not (root / name).exists() or (root / name).read_text(encoding="utf-8") != text
    ]


# What no schema describes. Inside the class, names such as `int` and `dtype` are methods: hence
# the aliases. Operators and properties named here are not generated again.
WRITTEN = "# Written by `make gen` from the schemas of the operators: do not edit."
HEAD = """\
@WRITTEN@
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc"
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, final, overload

import numpy as np

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_Number: TypeAlias = _int | _float | _complex

__version__: str

@final
class dtype:
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    itemsize: _int
    def to_real(self) -> dtype: ...
    def to_complex(self) -> dtype: ...

@final
class device:
    type: str
    index: _int | None
    def __init__(self, type: str | device, index: _int = ...) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *error: object) -> None: ...

@final
class layout: ...

@final
class memory_format: ...

@final
class finfo:
    bits: _int
    eps: _float
    max: _float
    min: _float
    tiny: _float
    smallest_normal: _float
    resolution: _float
    dtype: str
    def __init__(self, type: _dtype = ...) -> None: ...

@final
class iinfo:
    bits: _int
    max: _int
    min: _int
    dtype: str
    def __init__(self, type: _dtype) -> None: ...

_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_memory_format: TypeAlias = memory_format

@DTYPES@

strided: layout
sparse_coo: layout
sparse_csr: layout
sparse_csc: layout
sparse_bsr: layout
sparse_bsc: layout
contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format

class Size(tuple[_int, ...]):
    def numel(self) -> _int: ...

class Generator:
    device: _device
    def __init__(self, device: _device | str = ...) -> None: ...
    def manual_seed(self, seed: _int) -> Generator: ...
    def initial_seed(self) -> _int: ...
    def seed(self) -> _int: ...
    def get_state(self) -> Tensor: ...
    def set_state(self, new_state: Tensor) -> Generator: ...

class RemovableHandle:
    id: _int
    def remove(self) -> None: ...

class SavedTensor:
    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None: ...

class UntypedStorage:
    device: _device
    is_cuda: _bool
    def __init__(
        self, size: _int | None = ..., *, device: _device | str | None = ...
    ) -> None: ...
    def __len__(self) -> _int: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def clone(self) -> UntypedStorage: ...
    def copy_(self, source: UntypedStorage, non_blocking: _bool = ...) -> UntypedStorage: ...
    def cpu(self) -> UntypedStorage: ...
    def data_ptr(self) -> _int: ...
    def element_size(self) -> _int: ...
    def fill_(self, value: _int) -> UntypedStorage: ...
    def is_pinned(self) -> _bool: ...
    def is_shared(self) -> _bool: ...
    def nbytes(self) -> _int: ...
    def resize_(self, size: _int) -> UntypedStorage: ...
    def size(self) -> _int: ...
    def tolist(self) -> list[_int]: ...
    def untyped(self) -> UntypedStorage: ...

class Node:
    next_functions: tuple[tuple[Node | None, _int], ...]
    metadata: dict[Any, Any]
    def name(self) -> str: ...
    def register_hook(self, fn: Callable[..., Any]) -> Any: ...
    def register_prehook(self, fn: Callable[..., Any]) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

default_generator: Generator

def _schemas() -> list[tuple[str, str, _bool, _bool, _bool, str]]: ...
def tensor(
    data: Any,
    *,
    dtype: _dtype | None = ...,
    device: _device | str | _int | None = ...,
    requires_grad: _bool = ...,
    pin_memory: _bool = ...,
) -> Tensor: ...
def as_tensor(
    data: Any, dtype: _dtype | None = ..., device: _device | str | _int | None = ...
) -> Tensor: ...
def asarray(
    obj: Any,
    *,
    dtype: _dtype | None = ...,
    device: _device | str | _int | None = ...,
    copy: _bool | None = ...,
    requires_grad: _bool = ...,
) -> Tensor: ...
def frombuffer(
    buffer: Any,
    *,
    dtype: _dtype,
    count: _int = ...,
    offset: _int = ...,
    requires_grad: _bool = ...,
) -> Tensor: ...
def from_dlpack(
    ext_tensor: Any,
    *,
    device: _device | str | _int | None = ...,
    copy: _bool | None = ...,
) -> Tensor: ...
def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor: ...
def is_tensor(obj: object) -> _bool: ...
def manual_seed(seed: _int) -> Generator: ...
def set_default_device(device: _device | str | _int | None) -> None: ...
def get_default_device() -> _device: ...
def set_default_dtype(d: _dtype) -> None: ...
def get_default_dtype() -> _dtype: ...
def set_num_threads(n: _int) -> None: ...
def get_num_threads() -> _int: ...
def promote_types(type1: _dtype, type2: _dtype) -> _dtype: ...
def can_cast(from_: _dtype, to: _dtype) -> _bool: ...
def is_grad_enabled() -> _bool: ...
def result_type(tensor1: Tensor | _complex, tensor2: Tensor | _complex) -> dtype: ...
def is_inference_mode_enabled() -> _bool: ...
def __getattr__(name: str) -> Any: ...

class TensorBase: ...

class Tensor(TensorBase):
    T: Tensor
    mT: Tensor
    H: Tensor
    mH: Tensor
    real: Tensor
    imag: Tensor
    data: Tensor
    grad: Tensor | None
    requires_grad: _bool
    retains_grad: _bool
    is_leaf: _bool
    shape: Size
    dtype: _dtype
    device: _device
    layout: _layout
    ndim: _int
    itemsize: _int
    nbytes: _int
    output_nr: _int
    _version: _int
    grad_fn: Node | None
    _base: Tensor | None
    is_cpu: _bool
    is_cuda: _bool
    is_ipu: _bool
    is_maia: _bool
    is_mkldnn: _bool
    is_mps: _bool
    is_mtia: _bool
    is_nested: _bool
    is_sparse_csr: _bool
    _is_any_sparse: _bool
    _is_gpu: _bool
    def _on(self, kind: str) -> _bool: ...
    is_vulkan: _bool
    is_xla: _bool
    is_xpu: _bool
    is_sparse: _bool
    is_quantized: _bool
    is_meta: _bool
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __len__(self) -> _int: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _int: ...
    def __float__(self) -> _float: ...
    def __complex__(self) -> _complex: ...
    def __index__(self) -> _int: ...
    def __hash__(self) -> _int: ...
    def __eq__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...
@OPERATORS@
    @overload
    def size(self) -> Size: ...
    @overload
    def size(self, dim: _int) -> _int: ...
    @overload
    def stride(self) -> tuple[_int, ...]: ...
    @overload
    def stride(self, dim: _int) -> _int: ...
    def dim(self) -> _int: ...
    def ndimension(self) -> _int: ...
    def numel(self) -> _int: ...
    def nelement(self) -> _int: ...
    def element_size(self) -> _int: ...
    def storage_offset(self) -> _int: ...
    def data_ptr(self) -> _int: ...
    def get_device(self) -> _int: ...
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor: ...
    def to_sparse_coo(self) -> Tensor: ...
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor: ...
    def map2_(
        self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]
    ) -> Tensor: ...
    def const_data_ptr(self) -> _int: ...
    def cuda(
        self,
        device: _device | str | _int | None = ...,
        non_blocking: _bool = ...,
        memory_format: _memory_format | None = ...,
    ) -> Tensor: ...
    def xpu(
        self,
        device: _device | str | _int | None = ...,
        non_blocking: _bool = ...,
        memory_format: _memory_format | None = ...,
    ) -> Tensor: ...
    def dim_order(self) -> tuple[_int, ...]: ...
    def is_nonzero(self) -> _bool: ...
    def is_same_size(self, other: Tensor) -> _bool: ...
    def is_set_to(self, tensor: Tensor) -> _bool: ...
    def is_pinned(self, device: _device | str | None = ...) -> _bool: ...
    def pin_memory(self, device: _device | str | None = ...) -> Tensor: ...
    def module_load(self, other: Tensor, assign: _bool = ...) -> Tensor: ...
    def lu(self, pivot: _bool = ..., get_infos: _bool = ...) -> tuple[Tensor, ...]: ...
    def record_stream(self, s: Any) -> None: ...
    def storage_type(self) -> Any: ...
    def is_contiguous(self, memory_format: _memory_format = ...) -> _bool: ...
    def is_floating_point(self) -> _bool: ...
    def is_complex(self) -> _bool: ...
    def is_signed(self) -> _bool: ...
    def is_inference(self) -> _bool: ...
    def is_conj(self) -> _bool: ...
    def is_neg(self) -> _bool: ...
    def item(self) -> _int | _float | _bool: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: _bool = ...) -> np.ndarray[Any, Any]: ...
    def cpu(self) -> Tensor: ...
    def detach(self) -> Tensor: ...
    def detach_(self) -> Tensor: ...
    def to(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def type(self, dtype: Any = ..., non_blocking: _bool = ...) -> Any: ...
    def view(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def new_tensor(self, data: Any, **kwargs: Any) -> Tensor: ...
    def requires_grad_(self, requires_grad: _bool = ...) -> Tensor: ...
    def retain_grad(self) -> None: ...
    def register_hook(self, hook: Callable[..., Any]) -> Any: ...
    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> Any: ...
    def as_subclass(self, cls: Any) -> Any: ...
    def set_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def untyped_storage(self) -> Any: ...
    def to_dense(self, dtype: Any = ..., *, masked_grad: _bool | None = ...) -> Tensor: ...
    def stft(self, n_fft: _int, *args: Any, **kwargs: Any) -> Tensor: ...
    def istft(self, n_fft: _int, *args: Any, **kwargs: Any) -> Tensor: ...
    def hash_tensor(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def slice_inverse(self, *args: Any, **kwargs: Any) -> Tensor: ...
    grad_dtype: Any
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[_int, _int]: ...
"""
DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 "
    "uint16 uint32 uint64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu complex32 "
    "half float double short int long cfloat cdouble"
)
TO_TENSOR = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
COMPARISONS = "lt le gt ge".split()
UNARY = "neg pos abs invert".split()
ALIASES = {"int": "_int", "float": "_float", "bool": "_bool", "complex": "_complex"}
ALIASES |= {f"_C.{name}": f"_{name}" for name in ("dtype", "device", "layout")}
ALIASES |= {"_C.Tensor": "Tensor", "np.ndarray": "np.ndarray[Any, Any]"}


def operators() -> Iterator[str]:
    """Yield the stubs of Python's operators, which the schemas do not know."""
    for name in TO_TENSOR:
        for full in (f"__{name}__", f"__r{name}__", f"__i{name}__"):
            yield f"    def {full}(self, other: Any) -> Tensor: ..."
    for name in COMPARISONS:
        yield f"    def __{name}__(self, other: Any) -> Tensor: ..."
    for name in UNARY:
        yield f"    def __{name}__(self) -> Tensor: ..."


def head() -> str:
    """Return the part of the stub that comes before the operators."""
    dtypes = "\n".join(f"{name}: dtype" for name in DTYPES.split())
    text = HEAD.replace("@WRITTEN@", WRITTEN).replace("@DTYPES@", dtypes)
    return text.replace("@OPERATORS@", "\n".join(operators())).rstrip()


def attached(source: str) -> Iterator[str]:
    """Yield the stubs of the methods that `_tensor.py` gives to the class."""
    names = re.compile(r"_C\.\w+|np\.ndarray|(?<![\w.])(?:int|float|bool|complex)\b")

    def annotation(node: ast.expr | None) -> str:
        text = ast.unparse(node) if node else "Any"
        return names.sub(lambda m: ALIASES.get(m.group(), m.group()), text)

    for node in ast.parse(source).body:
        if not (isinstance(node, ast.ClassDef) and node.name == "_Methods"):
            continue
        for method in node.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            for a in ast.walk(method.args):
                if isinstance(a, ast.arg):
                    text = "" if a.arg == "self" else annotation(a.annotation)
                    a.annotation = ast.Name(text) if text else None
            for decorator in method.decorator_list:
                yield f"    @{ast.unparse(decorator)}"
            result = annotation(method.returns)
            yield f"    def {method.name}({ast.unparse(method.args)}) -> {result}: ..."


def main() -> int:
    """Write the files that are stale and name them."""
    from pytensorlib import _C

    entries = _C._schemas()
    files, old = generated(entries), stale(entries)
    for name in old:
        (ROOT / name).write_text(files[name], encoding="utf-8")
    print(f"{len(entries)} operators; written: {', '.join(old) or 'nothing, all is fresh'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
