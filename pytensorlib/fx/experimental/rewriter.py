"""Traces programs whose ``assert`` statements and typed assignments shall become nodes."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any

import pytensorlib as pt

from ... import _checks
from .._symbolic_trace import Tracer
from ..annotate import annotate
from ..graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801
    """Writes a function again with calls in the place of statements that a tracer cannot see.

    A subclass may define further ``visit_...`` methods, as of any `ast.NodeTransformer`.

    Examples
    --------
    >>> from textwrap import dedent
    >>> from pytensorlib.fx.experimental.rewriter import AST_Rewriter
    >>> AST_Rewriter().rewrite(dedent)("  a")
    'a'
    """

    def rewrite(self, fn: Any) -> FunctionType:
        """Return the function with its statements rewritten.

        Parameters
        ----------
        fn : function
            Its source must be there.

        Returns
        -------
        function
            With the same globals, defaults and what it encloses.
        """
        fn = inspect.unwrap(getattr(fn, "__func__", fn))
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        found: Any = tree.body[0]
        found.decorator_list = []
        inner = ast.fix_missing_locations(self.visit(found))
        # A function around it declares what it encloses.
        outer: Any = ast.parse("def _around(): pass").body[0]
        free = fn.__code__.co_freevars
        declared = [ast.parse(f"{name} = None").body[0] for name in free]
        outer.body = [*declared, inner]
        module = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
        ast.increment_lineno(module, fn.__code__.co_firstlineno - 1)
        code = _code_of(compile(module, fn.__code__.co_filename, "exec"), fn.__name__)
        places = dict(zip(free, fn.__closure__ or (), strict=True))
        space = fn.__globals__
        if "_fx_annotate" in code.co_names:
            space["_fx_annotate"] = annotate
        if "_fx_assert" in code.co_names:
            space["_fx_assert"] = _checks._assert
        made = FunctionType(
            code,
            space,
            fn.__name__,
            fn.__defaults__,
            tuple(places[name] for name in code.co_freevars),
        )
        functools.update_wrapper(made, fn)
        del made.__wrapped__  # type: ignore[attr-defined]
        made.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.AST:  # noqa: N802
        """Return a call of ``torch._assert``."""
        said = node.msg or ast.Constant(value="")
        name = ast.Name(id="_fx_assert", ctx=ast.Load())
        call = ast.Call(func=name, args=[node.test, said], keywords=[])
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        """Return an assignment of a value whose node gets the type."""
        if node.value is None:
            return node
        name = ast.Name(id="_fx_annotate", ctx=ast.Load())
        call = ast.Call(func=name, args=[node.value, node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


def _code_of(code: CodeType, name: str) -> CodeType:
    """Return the code of a function within other code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name:
                return constant
            return _code_of(constant, name)
    raise RuntimeError(f"the source of {name} does not define it")


class RewritingTracer(Tracer):
    """A tracer to which ``assert`` is a call of ``torch._assert``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.rewriter import RewritingTracer
    >>> issubclass(RewritingTracer, torch.fx.Tracer)
    True
    """

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function, with its assertions.

        Parameters
        ----------
        root : Module or callable
            What is traced; it stays as it is.
        concrete_args : dict, optional
            Arguments that are known.

        Returns
        -------
        Graph
            What it does with its other arguments.
        """
        return super().trace(_rewritten(root), concrete_args)


def _rewritten(root: Any) -> Any:
    if not isinstance(root, pt.nn.Module):
        return AST_Rewriter().rewrite(root)
    made = copy.copy(root)
    made.__dict__["_modules"] = {
        name: _rewritten(child) if child is not None else None
        for name, child in root._modules.items()
    }
    if not Tracer().is_leaf_module(root, ""):
        forward = AST_Rewriter().rewrite(type(root).forward)
        made.__class__ = type(type(root).__name__, (type(root),), {"forward": forward})
    return made
