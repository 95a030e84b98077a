"""Builds the nodes of an ONNX graph, and keeps views and writes to tensors apart."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ..fx.node import Node
from ._rows import INVERSE, ROWS, VIEWS

__all__ = ["Converter", "Value"]

# The numbers of ONNX's element types.
TYPES: dict[Any, int] = {
    pt.float32: 1, pt.uint8: 2, pt.int8: 3, pt.uint16: 4, pt.int16: 5, pt.int32: 6, pt.int64: 7,
    pt.bool: 9, pt.float16: 10, pt.float64: 11, pt.uint32: 12, pt.uint64: 13, pt.complex64: 14,
    pt.complex128: 15, pt.bfloat16: 16,
}  # fmt: skip


class Value:
    """A tensor of the program: what ONNX calls it now, and of which tensor it is a view."""

    def __init__(self, name: str, dtype: Any, shape: Any) -> None:
        self.name, self.dtype, self.shape = name, dtype, tuple(shape)
        self.base: Value | None = None
        self.node: Node | None = None
        self.index: int | None = None
        self.version = self.seen = 0

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def known(self, d: int) -> int | None:
        """Return a size, or None where it is open."""
        return self.shape[d] if isinstance(self.shape[d], int) else None


class Converter:
    """Writes the operators of an exported program as ONNX's.

    Parameters
    ----------
    opset : int
        The version of ONNX's operators.
    """

    def __init__(self, opset: int) -> None:
        import onnx

        self.onnx, self.opset = onnx, opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.constants: dict[Any, str] = {}
        self.used: set[str] = set()
        self.env: dict[Node, Any] = {}
        self.at: Node | None = None
        self.modules: Any = None

    # Nodes.

    def fresh(self, hint: str) -> str:
        """Return a name that nothing has."""
        name, n = hint, 0
        while name in self.used:
            n += 1
            name = f"{hint}_{n}"
        self.used.add(name)
        return name

    def op(self, kind: str, *inputs: Any, n: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or of all."""
        names = [self.name(i) if i is not None else "" for i in inputs]
        while names and names[-1] == "":
            names.pop()
        hint = self.at.name if self.at is not None else kind.lower()
        outputs = [self.fresh(hint if i == 0 else f"{hint}_{i}") for i in range(n)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = self.onnx.helper.make_node(kind, names, outputs, **attributes)
        if self.at is not None:
            node.name = self.fresh(f"node_{kind}")
        self.nodes.append(node)
        return outputs[0] if n == 1 else tuple(outputs)

    def name(self, value: Any) -> str:
        """Return what ONNX calls a value."""
        return self.read(value) if isinstance(value, Value) else str(value)

    def constant(self, value: Any, dtype: Any = pt.int64) -> str:
        """Return the name of a constant tensor."""
        array = pt.tensor(value, dtype=dtype)
        key = (repr(value), dtype)
        if key not in self.constants:
            name = self.fresh("const")
            self.constants[key] = name
            self.initializers[name] = array
        return self.constants[key]

    def ints(self, values: Any) -> str:
        """Return the name of a list of sizes, of which some may be open."""
        values = list(values)
        if all(type(v) is int for v in values):
            return self.constant(values)
        parts = [
            self.constant([v]) if type(v) is int else self.op("Reshape", v, self.constant([1]))
            for v in values
        ]
        return parts[0] if len(parts) == 1 else str(self.op("Concat", *parts, axis=0))

    def cast(self, value: Any, dtype: Any, have: Any = None) -> Any:
        """Return a value as another type."""
        have = value.dtype if isinstance(value, Value) else have
        if have is dtype:
            return value
        return self.op("Cast", value, to=TYPES[dtype])

    def operand(self, value: Any, dtype: Any) -> Any:
        """Return a tensor or a number as a value of a type."""
        if isinstance(value, Value):
            return self.cast(value, dtype)
        if isinstance(value, str):  # an open size
            return self.op("Cast", value, to=TYPES[dtype])
        if dtype is pt.bool:
            value = bool(value)
        elif not dtype.is_floating_point and not dtype.is_complex:
            value = int(value)
        return self.constant(value, dtype)

    def size(self, value: Any, d: int) -> Any:
        """Return a size: a number, or the name of one that is open."""
        known = value.known(d)
        if known is not None:
            return known
        d %= value.rank
        shape = self.op("Shape", value, start=d, end=d + 1)
        return self.op("Squeeze", shape, self.constant([0]))

    def sizes(self, value: Any) -> list[Any]:
        """Return all sizes."""
        return [self.size(value, d) for d in range(value.rank)]

    # Views and writes.

    def read(self, value: Value) -> str:
        """Return what a tensor is called now; a view of one that was written to is made again."""
        base = value.base
        if base is not None:
            self.read(base)
            if base.version != value.seen:
                value.seen = base.version
                assert value.node is not None  # noqa: S101
                before, self.at = self.at, value.node
                made = self.lower(value.node, first=base)
                value.name = self.name(made if value.index is None else made[value.index])
                self.at = before
        return value.name

    def write(self, value: Value, name: str) -> None:
        """Let a tensor be another value from here on, and the tensor that it is a view of."""
        self.read(value)
        value.name = name
        value.version += 1
        base = value.base
        if base is not None:
            node = value.node
            assert node is not None  # noqa: S101
            inverse = INVERSE.get(opname(node))
            if inverse is None:
                raise self.error(node, "a tensor that it gives is written to")
            args, kwargs = self.arguments(node)
            before, self.at = self.at, node
            made = inverse(self, base, name, value.index, *args[1:], **kwargs)
            self.at = before
            self.write(base, made)
            value.seen = base.version

    # The program.

    def error(self, node: Node, why: str = "") -> Exception:
        """Return the error of an operator that ONNX cannot say."""
        from .errors import OnnxExporterError

        place = f"\n{node.stack_trace}" if node.stack_trace else ""
        why = f": {why}" if why else ""
        return OnnxExporterError(
            f"torch.onnx.export: {node.target} cannot be written with ONNX's operators of version "
            f"{self.opset}{why}. Compute it outside the exported module, or write it with other "
            f"functions.{place}"
        )

    def arguments(self, node: Node) -> Any:
        """Return the values of a node's arguments."""
        from ..fx.node import map_arg

        def value(n: Node) -> Any:
            return self.env[n]

        args = tuple(_plain(a) for a in map_arg(node.args, value))
        kwargs = {k: _plain(v) for k, v in map_arg(node.kwargs, value).items()}
        return args, kwargs

    def lower(self, node: Node, first: Any = None) -> Any:
        """Write a node; return what it gives."""
        from ._complex import COMPLEX, MAKERS, is_complex

        args, kwargs = self.arguments(node)
        if first is not None:
            args = (first, *args[1:])
        name = opname(node)
        row = ROWS.get(name) or ROWS.get(name.removeprefix("special_"))
        flat = [v for a in (*args, *kwargs.values()) for v in (a if type(a) is list else [a])]
        if name in MAKERS or any(map(is_complex, flat)):
            row = COMPLEX.get(name)
            if row is None:
                raise self.error(node, "a tensor is complex")
        if row is not None:
            return row(self, *args, **kwargs)
        known = node.meta.get("val")
        if not node._input_nodes and hasattr(known, "dtype") and not node.is_impure():
            with pt.no_grad():  # it depends on nothing
                made: Any = node.target(*args, **kwargs)  # type: ignore[operator]
            name = self.fresh(node.name)
            self.initializers[name] = made
            return name
        raise self.error(node)

    def described(self, node: Node, i: int | None = None) -> Any:
        """Return what is known of a node's value."""
        val = node.meta.get("val")
        return val[i] if i is not None and isinstance(val, (tuple, list)) else val

    def wrapped(self, node: Node, result: Any, i: int | None = None) -> Any:
        """Return a row's result as a value of the program."""
        if isinstance(result, Value) or result is None:
            return result
        if isinstance(result, (list, tuple)):
            return [self.wrapped(node, r, j) for j, r in enumerate(result)]
        known = self.described(node, i)
        if not isinstance(result, str) or not hasattr(known, "dtype"):
            return result  # a size
        return Value(result, known.dtype, known.shape)

    def run(self, node: Node) -> None:
        """Write a node of the program."""
        self.at = node
        name = opname(node)
        if name == "getitem" and isinstance(self.env.get(node.args[0]), list):
            self.env[node] = self.env[node.args[0]][node.args[1]]
            return
        written = name.endswith("_") and not name.startswith("_") and name not in ROWS
        if written:
            self.env[node] = self.in_place(node, name)
            return
        result = self.wrapped(node, self.lower(node))
        first = self.env.get(node.args[0]) if node.args and isinstance(node.args[0], Node) else None
        if name in VIEWS and isinstance(first, Value):
            for i, made in enumerate(result if isinstance(result, list) else [result]):
                if isinstance(made, Value) and made is not first:
                    made.base, made.node, made.seen = first, node, first.version
                    made.index = i if isinstance(result, list) else None
        self.env[node] = result

    def in_place(self, node: Node, name: str) -> Any:
        """Write a node that writes to its first argument."""
        row = ROWS.get(name[:-1])
        if row is None:
            raise self.error(node)
        args, kwargs = self.arguments(node)
        target = args[0]
        made = row(self, *args, **kwargs)
        known = self.described(node)
        if isinstance(made, Value):
            made = self.cast(made, target.dtype)
        else:
            have = pt.bool if name[:-1] in _CONDITIONS else None
            made = self.cast(made, target.dtype, have or known.dtype)
        if name in ("fill_", "copy_", "zero_"):
            made = self.op("Expand", made, self.op("Shape", target))
        self.write(target, self.name(made))
        return target


_CONDITIONS = frozenset("eq ne lt le gt ge logical_and logical_or logical_not logical_xor".split())


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def opname(node: Node) -> str:
    """Return the name of the operator of a node."""
    target: Any = node.target
    packet = getattr(target, "overloadpacket", None)
    return str(packet.__name__ if packet is not None else getattr(target, "__name__", target))
