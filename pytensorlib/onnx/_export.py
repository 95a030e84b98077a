"""Exports a module to a file."""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytensorlib as pt

from ..export import Dim
from ..export import export as record
from ..utils import _pytree as pytree
from ._program import ONNXProgram, convert, needed
from ._rows import ROWS

__all__ = ["export"]

LATEST, EARLIEST, DEFAULT = 25, 18, 20


def named_dims(shapes: Any, dims: dict[str, Any]) -> Any:
    """Return dynamic shapes with a `Dim` for each text, which is its name."""
    if isinstance(shapes, str):
        return dims.setdefault(shapes, Dim(shapes))
    if isinstance(shapes, dict):
        return {k: named_dims(v, dims) for k, v in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        return type(shapes)(named_dims(v, dims) for v in shapes)
    return shapes


def shapes_of_axes(model: Any, args: Any, kwargs: Any, names: Any, axes: Any) -> Any:
    """Return dynamic shapes for the axes that older programs give."""
    bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    given = dict(zip(names or (), bound, strict=False))
    found: dict[str, Any] = dict.fromkeys(bound)
    for name, value in axes.items():
        target = given.get(name, name)
        if target not in bound:
            continue  # an output's, which follow
        dims = value if isinstance(value, dict) else dict.fromkeys(value)
        found[target] = dict.fromkeys(dims, Dim.DYNAMIC)
    return found


def names_of_axes(program: Any, names: Any, axes: Any) -> dict[str, str]:
    """Return the names that older programs give to open sizes, by PyTorch's."""
    nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
    users = [n for n in nodes if n.name in program.graph_signature.user_inputs]
    found: dict[str, str] = {}
    for label, node in zip(names or [n.name for n in users], users, strict=False):
        dims = axes.get(label, axes.get(node.name, {}))
        for d, said in dims.items() if isinstance(dims, dict) else ():
            found[str(node.meta["val"].shape[d])] = said
    return found


def names_of_dims(program: Any, dynamic_shapes: Any) -> dict[str, str]:
    """Return the names of `Dim` objects by PyTorch's names of the sizes."""
    found: dict[str, str] = {}
    nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
    users = [n for n in nodes if n.name in program.graph_signature.user_inputs]
    leaves: list[Any] = []

    def walk(said: Any) -> None:
        if isinstance(said, dict) and all(isinstance(k, int) for k in said):
            leaves.append(said)
        elif isinstance(said, dict):
            for v in said.values():
                walk(v)
        elif isinstance(said, (list, tuple)) and any(isinstance(v, Dim) for v in said):
            leaves.append(dict(enumerate(said)))
        elif isinstance(said, (list, tuple)):
            for v in said:
                walk(v)
        else:
            leaves.append({})

    walk(dynamic_shapes)
    for node, said in zip(users, leaves, strict=False):
        for d, dim in said.items():
            if isinstance(dim, Dim) and dim.root is dim:
                found[str(node.meta["val"].shape[d])] = dim.__name__
    return found


def export(
    model: Any, args: Any, f: Any, kwargs: Any, input_names: Any, output_names: Any,
    opset_version: int | None, dynamic_shapes: Any, dynamic_axes: Any, table: Any, verify: bool,
    verbose: bool, export_params: bool, keep: bool, external_data: bool,
) -> ONNXProgram:  # fmt: skip
    """Write a module as ONNX."""
    from . import _state

    needed("onnx", "exporting a model")
    opset = DEFAULT if opset_version is None else opset_version
    if not EARLIEST <= opset <= LATEST:
        raise ValueError(
            f"torch.onnx.export: opset_version must be from {EARLIEST} to {LATEST}, got {opset}"
        )
    if isinstance(args, pt.Tensor):
        args = (args,)
    args = tuple(args)
    if args and isinstance(args[-1], dict) and not kwargs and not hasattr(model, "graph_signature"):
        parameters = inspect.signature(model.forward).parameters
        if set(args[-1]) <= set(parameters) and len(args) - 1 + len(args[-1]) <= len(parameters):
            args, kwargs = args[:-1], args[-1]
    renamed: dict[str, str] = {}
    if hasattr(model, "graph_signature"):
        program = model
    else:
        dynamic_shapes = named_dims(dynamic_shapes, {})
        if dynamic_axes and dynamic_shapes is None:
            dynamic_shapes = shapes_of_axes(model, args, kwargs, input_names, dynamic_axes)
        _state["exporting"] = True
        try:
            program = record(model, args, kwargs, dynamic_shapes=dynamic_shapes)
        finally:
            _state["exporting"] = False
        if dynamic_axes:
            renamed = names_of_axes(program, input_names, dynamic_axes)
        elif dynamic_shapes is not None and not hasattr(dynamic_shapes, "dynamic_shapes"):
            renamed = names_of_dims(program, dynamic_shapes)
    own = {}
    for target, writer in (table or {}).items():
        name = getattr(getattr(target, "overloadpacket", target), "__name__", str(target))
        own[name] = ROWS.get(name)
        ROWS[name] = writer
    try:
        made = convert(program, opset, input_names, output_names, renamed)
    finally:
        for name, before in own.items():
            if before is None:
                ROWS.pop(name, None)
            else:
                ROWS[name] = before
    if verbose:
        print(made)
    if verify:
        check(made, model, args, kwargs)
    if f is not None:
        made.save(
            os.fspath(f), include_initializers=export_params, keep_initializers_as_inputs=keep,
            external_data=None if external_data else False,
        )  # fmt: skip
    return made


def check(made: ONNXProgram, model: Any, args: Any, kwargs: Any) -> None:
    """Run a model beside the module, and raise where they differ."""
    module = model.module() if hasattr(model, "graph_signature") else model
    with pt.no_grad():
        want = [v for v in pytree.tree_leaves(module(*args, **kwargs)) if isinstance(v, pt.Tensor)]
    for have, wanted in zip(made(*args, **kwargs), want, strict=True):
        pt.testing.assert_close(have, wanted, rtol=1e-4, atol=1e-4, check_dtype=False)
