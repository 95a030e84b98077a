"""Export that goes on as its example does, and reports what `export` would refuse."""

from __future__ import annotations

import functools
import logging
import operator
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

import pytensorlib as pt

from .._dynamo.exc import UserError
from .._higher_order_ops import control as _control
from .._ops import ops
from .._symbolic.ints import SymBool, SymFloat, SymInt, SymNode, computed
from ..fx.graph import Graph
from ..fx.node import map_arg
from ..utils import _pytree as pytree
from ._tracer import OperatorTracer
from .dynamic_shapes import Dim
from .exported_program import ExportedProgram

__all__ = ["DraftExportReport", "FailureReport", "FailureType", "draft_export"]

log = logging.getLogger(__name__)


class FailureType(IntEnum):
    """What `export` would refuse."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self) -> str:
        return self.name


class FailureReport:
    """One thing that `export` would refuse.

    Parameters
    ----------
    failure_type : FailureType
        What kind.
    data : dict
        What is known of it: the expression and its value, or the operator.
    xfail : bool, default False
        Whether it is meant, so that the program counts as sound.
    """

    def __init__(
        self, failure_type: FailureType, data: dict[str, Any], xfail: bool = False
    ) -> None:
        self.failure_type, self.data, self.xfail = failure_type, data, xfail

    def __repr__(self) -> str:
        return (
            f"FailureReport(failure_type={self.failure_type}, xfail={self.xfail}, data={self.data})"
        )

    def print(self, str_to_filename: dict[int, str]) -> str:
        """Return it for a reader: what failed, where, and what can be done.

        Parameters
        ----------
        str_to_filename : dict
            Paths by the numbers that frames have.
        """
        data = self.data
        if self.failure_type is FailureType.MISSING_FAKE_KERNEL:
            return (
                f"Missing fake kernel.\n    torch.ops.{data['op']} has none: its result has "
                "the shape that its kernel gives.\n    Say what it is with register_fake.\n"
            )
        if self.failure_type is FailureType.MISMATCHED_FAKE_KERNEL:
            return (
                f"Mismatched fake kernel.\n    The fake kernel of torch.ops.{data['op']} gives "
                f"what its kernel does not: {data['reason']}\n    The program has what the kernel "
                "gave.\n"
            )
        if self.failure_type is FailureType.GUARD_ADDED:
            said = str(data["expr"]).replace("\n", "\n        ")
            return (
                f"Guard Added.\n    The program does not allow the open sizes:\n        {said}\n"
                f"    It was exported with\n        dynamic_shapes = {data['new_dynamic_shapes']}\n"
            )
        lines = [
            "Data dependent error.",
            f"    The value of `{data['expr']}` depends on what tensors hold. It was asked for "
            f"{data['occurrences']} times, first here:",
        ]
        for frame in data["user_stack"]:
            path = str_to_filename[frame["filename"]]
            lines.append(f"        File {path}, lineno {frame['line']}, in {frame['name']}")
        if data["user_stack"]:
            lines.append(f"            {data['user_stack'][-1]['loc']}")
        held = (data["frame_locals"] or {}).get("locals", {})
        if held:
            lines += ["        Locals:", *(f"            {k}: {v}" for k, v in held.items())]
        lines += [
            f"    The program goes on with `{data['result']}`, as the example does, and asserts "
            "that when it runs.",
            "    torch._check(...) says in the program what holds; torch.cond takes both branches.",
        ]
        return "\n".join(lines) + "\n"


class DraftExportReport:
    """What `draft_export` found.

    Parameters
    ----------
    failures : list of FailureReport
        What `export` would refuse.
    str_to_filename : dict
        Paths by the numbers that frames have.
    """

    def __init__(self, failures: list[FailureReport], str_to_filename: dict[int, str]) -> None:
        self.failures, self.str_to_filename = failures, str_to_filename

    def successful(self) -> bool:
        """Return whether `export` would make the same program."""
        return all(failure.xfail for failure in self.failures)

    def __repr__(self) -> str:
        return f"DraftExportReport({self.failures})"

    def __str__(self) -> str:
        if self.successful():
            return "No issues were found: torch.export.export makes the same program."
        head = f"WARNING: {len(self.failures)} issue(s) found: the program holds for the example.\n"
        said = [f.print(self.str_to_filename) for f in self.failures]
        return "\n".join([head, *(f"{i + 1}. {text}" for i, text in enumerate(said))])

    def apply_suggested_fixes(self) -> None:
        """Raise: programs are for you to change.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            "apply_suggested_fixes(): a report changes no program; print it to see what to change"
        )


class _Again(Exception):  # noqa: N818
    """More numbers of the example are known now."""


class _Draft:
    """What the attempts at one program know."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}  # numbers that the data tells, in the example
        self.guards: list[FailureReport] = []
        self.failures: list[FailureReport] = []
        self.files: dict[str, int] = {}

    def tracer(self, graph: Graph, examples: int) -> DraftTracer:
        self.failures = []
        return DraftTracer(self, graph, examples)

    def add(self, kind: FailureType, same: tuple[str, ...], data: dict[str, Any]) -> None:
        """Add a failure, unless there is one with the same data under some keys."""
        for f in self.failures:
            if f.failure_type is kind and all(f.data[k] == data[k] for k in same):
                f.data["occurrences"] = f.data.get("occurrences", 1) + 1
                return
        self.failures.append(FailureReport(kind, data))

    def place(self) -> dict[str, Any]:
        """Return where in the program we are, outermost frame first, and its tensors."""
        import linecache

        frames, held = [], None
        ours = pt.__file__.rpartition("/")[0]
        for frame in _frames():
            code = frame.f_code
            if code.co_filename.startswith((ours, "<")):
                continue
            if held is None:
                held = {k: _described(v) for k, v in frame.f_locals.items()}
            frames.append(
                {
                    "line": frame.f_lineno,
                    "name": code.co_name,
                    "filename": self.files.setdefault(code.co_filename, len(self.files)),
                    "loc": linecache.getline(code.co_filename, frame.f_lineno).strip(),
                }
            )
        known = {k: v for k, v in (held or {}).items() if v is not None}
        return {"user_stack": frames[::-1], "frame_locals": {"locals": known}}


def _frames() -> Iterator[Any]:
    """Yield the frames of the program, innermost first."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code is not draft_export.__code__:
        yield frame
        frame = frame.f_back


def _described(value: Any) -> str | None:
    if isinstance(value, pt.Tensor):
        return f"Tensor(shape: {tuple(value.shape)}, dtype: {value.dtype})"
    return repr(value) if isinstance(value, (int, float, SymInt, SymFloat, SymBool)) else None


class DraftTracer(OperatorTracer):
    """Asks the example where a program asks what tensors hold.

    Parameters
    ----------
    draft : _Draft
        Keeps what it finds.
    graph, examples
        As of `OperatorTracer`.
    """

    def __init__(self, draft: _Draft, graph: Graph, examples: int) -> None:
        super().__init__(graph, examples)
        self.draft, self.whole = draft, graph
        self.values: dict[Any, Any] = {}  # what nodes are in the example
        self.awaited: tuple[str, Any] | None = None  # an answer whose tensor is to come

    def real(self, node: Any) -> Any:
        """Return what a node gives for the example. Each node runs once, in order."""
        before, _control.recording.tracer = _control.recording.tracer, None
        try:
            with self.away():
                for n in list(self.whole.nodes):
                    if n not in self.values:
                        self.values[n] = self._computed(n)
                    if n is node:
                        break
        finally:
            _control.recording.tracer = before
        return self.values[node]

    def _computed(self, node: Any) -> Any:
        if node.op == "placeholder":
            value = self.given[node]
            return value.detach().clone() if isinstance(value, pt.Tensor) else value
        if node.op == "get_attr":
            return functools.reduce(getattr, str(node.target).split("."), self.root)
        args, kwargs = map_arg((node.args, node.kwargs), self.values.__getitem__)
        return node.target(*args, **kwargs)

    # Numbers that the data tells.

    def specialize(self, node: SymNode) -> Any:
        """Return the plain number, that of the example where it depends on the data."""
        return self.decided(node) if self.is_data(node) else super().specialize(node)

    def truth(self, node: SymNode) -> bool:
        """Return a condition, as it is in the example where it depends on the data."""
        return bool(self.decided(node)) if self.is_data(node) else super().truth(node)

    def decided(self, node: SymNode) -> Any:
        if self.graph is not self.whole or self.inside is not None:
            raise self.data_dependent(node)  # of a branch nobody knows whether it is taken
        value = self.real(node.graph_node())
        self.report(str(node.text), value)
        self.state_(node, value)
        return value

    def report(self, text: str, value: Any) -> None:
        data = {"expr": text, "result": str(value), **self.draft.place(), "occurrences": 1}
        self.draft.add(FailureType.DATA_DEPENDENT_ERROR, ("user_stack",), data)

    def state_(self, node: SymNode, value: Any) -> None:
        """Let the program assert what was decided."""
        if isinstance(value, bool):
            said = SymBool(node) if value else computed(operator.not_, SymBool(node))
        else:
            kind: Any = SymInt if isinstance(value, int) else SymFloat
            said = computed(operator.eq, kind(node), value)
        self.check(said.node)

    def new_symbol(self, kind: type[Any], low: int = 0, high: int | None = None) -> Any:
        """Return a number that only the data tells, that of the example where that is known."""
        name, values, text = super().new_symbol(kind, low, high)
        if name in self.draft.answers:
            value = self.draft.answers[name]
            self.sizes.pop(values, None)
            values = (value,) * self.examples
            self.report(f"Eq({name}, {value})", value)
            self.awaited = name, value
        return name, values, text

    def call(
        self, target: Any, args: Any, kwargs: Any, name: str | None = None, value: Any = None
    ) -> Any:
        """Add a node."""
        node = super().call(target, args, kwargs, name, value)
        if self.awaited is not None and name == "item":
            (symbol, answer), self.awaited = self.awaited, None
            self.state_(SymNode(self, (answer,) * self.examples, symbol, lambda: node), answer)
        return node

    def remembered(self, node: Any, dim: int) -> None:
        """Assert the size of a tensor that the data tells."""
        if self.awaited is None:
            return
        (symbol, answer), self.awaited = self.awaited, None
        sized = self.call(ops.aten.sym_size.int, (node, dim), {}, "sym_size_int")
        self.state_(SymNode(self, (answer,) * self.examples, symbol, lambda: sized), answer)

    def run(self, function: Any, args: Any, kwargs: Any) -> list[Any]:
        """Return what a function gives in each example."""
        try:
            return super().run(function, args, kwargs)
        except Exception as e:
            # Numbers that were made up may not fit. Those of the example do.
            if self.find_answers():
                raise _Again from e
            raise

    def find_answers(self) -> bool:
        """Find what numbers that the data tells are in the example; return whether any is new."""
        found: dict[str, Any] = {}
        for node in self.whole.nodes:
            said = node.meta.get("val")
            shape = getattr(said, "shape", None)
            sizes = enumerate(shape) if isinstance(shape, tuple) else [(None, said)]
            for d, size in sizes:
                name = str(size)
                if isinstance(size, (SymInt, SymFloat)) and name in self.data:
                    found.setdefault(name, (node, d))
        new = {k: v for k, v in found.items() if k not in self.draft.answers}
        for name, (node, d) in new.items():
            value = self.real(node)
            self.draft.answers[name] = value if d is None else value.size(d)
        return bool(new)

    # Operators of the program's own.

    def custom(self, op: Any, args: Any, kwargs: Any) -> Any:
        """Record an operator of the program's own, with the shapes that its kernel gives."""
        if self.graph is not self.whole or self.inside is not None:
            return super().custom(op, args, kwargs)
        with self.away():
            nodes = self.argument(tuple(args)), self.argument(dict(kwargs))
            node = self.call(op._opoverload, *nodes, op._name)
            real = self.real(node)
            said = op._qualname.replace("::", ".") + ".default"
            results = [pytree.tree_map(_meta, real)] * self.examples
            try:
                fake, reason = super().run(op, args, kwargs), None
                reason = _difference(real, fake[0])
            except Exception as e:  # noqa: BLE001  (a program's own function)
                fake, reason = results, f"{type(e).__name__}: {e}"
            if op._fake is None:
                self.draft.add(FailureType.MISSING_FAKE_KERNEL, ("op",), {"op": said})
            elif reason is not None:
                data = {"op": said, "reason": reason}
                self.draft.add(FailureType.MISMATCHED_FAKE_KERNEL, ("op", "reason"), data)
            if reason is None:
                results = fake
            return self.results(node, results, self.device_of(args, kwargs))


def _meta(value: Any) -> Any:
    from ._tracer import shadow

    return shadow(value) if isinstance(value, pt.Tensor) else value


def _difference(real: Any, fake: Any) -> str | None:
    """Return how a fake result differs from a real one, or None."""
    have, want = pytree.tree_leaves(fake), pytree.tree_leaves(real)
    if len(have) != len(want):
        return f"{len(want)} and {len(have)} results"
    for f, r in zip(have, want, strict=True):
        if not isinstance(r, pt.Tensor) or not isinstance(f, pt.Tensor):
            if type(r) is not type(f):
                return f"Types {type(r).__name__} and {type(f).__name__} are not equal!"
            continue
        for what, a, b in (
            ("Dtypes", r.dtype, f.dtype),
            ("Shapes", tuple(r.shape), tuple(f.shape)),
            ("Strides", r.stride(), f.stride()),
        ):
            if a != b:
                return f"{what} {a} and {b} are not equal!"
    return None


def draft_export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Return a module's program as `export` does, and report what that would refuse.

    Where the program asks what a tensor holds, it goes on as the example does and asserts that
    when it runs. An operator without a fake kernel has the shapes that its kernel gives, and open
    sizes that the program does not allow become those that it does.

    Parameters
    ----------
    mod : Module
        What is exported.
    args, kwargs : tuple, dict
        An example of its arguments, which is computed with.
    dynamic_shapes : dict, tuple or list, optional
        Which sizes are open; see `export`.
    preserve_module_call_signature, strict, prefer_deferred_runtime_asserts_over_guards
        Not used.

    Returns
    -------
    ExportedProgram
        The program. ``_report`` is a `DraftExportReport` with the list ``failures``.

    Raises
    ------
    Exception
        What the module itself raises for the example.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Net(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x * 2 if x.sum() > 0 else x
    >>> program = torch.export.draft_export(Net(), (torch.ones(2),))
    >>> [failure.failure_type.name for failure in program._report.failures]
    ['DATA_DEPENDENT_ERROR']
    >>> program.module()(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    from ._trace import check, trace

    check(mod, args)
    kwargs = kwargs or {}
    draft = _Draft()
    while True:
        try:
            program = trace(mod, args, kwargs, dynamic_shapes, draft.tracer)
            break
        except _Again:
            continue
        except UserError as e:
            if draft.guards or not str(e).startswith("Constraints violated"):
                raise
            dynamic_shapes = _automatic(dynamic_shapes, mod, args, kwargs)
            data = {"expr": str(e), "new_dynamic_shapes": dynamic_shapes}
            draft.guards.append(FailureReport(FailureType.GUARD_ADDED, data))
    names = {n: path for path, n in draft.files.items()}
    program._report = DraftExportReport([*draft.failures, *draft.guards], names)
    if not program._report.successful():
        log.warning("%s", program._report)
    return program


def _automatic(shapes: Any, mod: Any, args: Any, kwargs: Any) -> Any:
    """Return shapes whose open sizes may become fixed or equal."""
    if hasattr(shapes, "dynamic_shapes"):
        shapes = shapes.dynamic_shapes(mod, args, kwargs)
    is_open: Callable[[Any], Any] = lambda d: d is not None and not isinstance(d, int)  # noqa: E731
    return pytree.tree_map(lambda d: Dim.AUTO if is_open(d) and d is not Dim.STATIC else d, shapes)
