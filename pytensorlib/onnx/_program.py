"""A program as ONNX: the model, saved and run."""

from __future__ import annotations

import os
from typing import Any

import pytensorlib as pt

from .. import version
from ..export.graph_signature import ConstantArgument, InputKind, OutputKind
from ..utils import _pytree as pytree
from ._graph import TYPES, Converter, Value
from .errors import OnnxExporterError

__all__ = ["ONNXProgram", "convert"]

# A protobuf holds less than this; larger models keep their weights beside.
_LIMIT = 1_900_000_000


def needed(name: str, why: str) -> Any:
    """Return a package that the exporter is an optional user of."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise ImportError(
            f"torch.onnx: {why} needs the package {name!r}, which is not installed: pip install "
            f"{name} (or pytensorlib[onnx])",
            name=name,
        ) from e


def _bytes(t: Any) -> bytes:
    t = t.detach().cpu().contiguous()
    if t.numel() == 0:
        return b""
    flat = t.reshape(-1)
    return bytes(flat.view(pt.uint8).numpy().tobytes() if t.dtype is not pt.bool else
                 flat.to(pt.uint8).numpy().tobytes())  # fmt: skip


class ONNXProgram:
    """A program that `torch.onnx.export` wrote.

    Attributes
    ----------
    model_proto : onnx.ModelProto
        The model.
    exported_program : ExportedProgram
        What it was written from.
    """

    def __init__(self, model: Any, exported_program: Any) -> None:
        self.model_proto, self.exported_program = model, exported_program
        self._session: Any = None

    @property
    def model(self) -> Any:
        """The model."""
        return self.model_proto

    def save(
        self,
        destination: Any,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file.

        Parameters
        ----------
        destination : path
            The file.
        include_initializers : bool, default True
            Whether the weights are written.
        keep_initializers_as_inputs : bool, default False
            Whether the weights are inputs too.
        external_data : bool, optional
            Whether the weights lie in a file beside, ``<name>.data``; they do when left out where
            the model would be too large for one file.
        """
        onnx = needed("onnx", "saving a model")
        path = os.fspath(destination)
        model = onnx.ModelProto()
        model.CopyFrom(self.model_proto)
        if not include_initializers:
            del model.graph.initializer[:]
        if keep_initializers_as_inputs:
            for tensor in model.graph.initializer:
                model.graph.input.append(
                    onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                )
        size = sum(len(t.raw_data) for t in model.graph.initializer)
        if external_data or (external_data is None and size > _LIMIT):
            beside = f"{os.path.basename(path)}.data"
            old = os.path.join(os.path.dirname(path), beside)
            if os.path.exists(old):
                os.remove(old)
            onnx.save_model(
                model, path, save_as_external_data=True, all_tensors_to_one_file=True,
                location=beside, size_threshold=1024,
            )  # fmt: skip
        else:
            onnx.save_model(model, path)

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Make what runs the model, by the package onnxruntime."""
        ort = needed("onnxruntime", "running a model")
        self._session = ort.InferenceSession(
            self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model by the package onnxruntime; return its outputs as a tuple."""
        if self._session is None:
            self.initialize_inference_session()
        leaves = [v for v in pytree.tree_leaves((args, kwargs)) if v is not None]
        names = [i.name for i in self._session.get_inputs()]
        tensors = [v for v in leaves if isinstance(v, pt.Tensor)]
        feed = {n: v.detach().cpu().numpy() for n, v in zip(names, tensors, strict=False)}
        return tuple(pt.from_numpy(v) for v in self._session.run(None, feed))

    def __repr__(self) -> str:
        onnx = needed("onnx", "printing a model")
        return f"ONNXProgram(\n{onnx.printer.to_text(self.model_proto)}\n)"


def dimension(size: Any) -> Any:
    """Return a size as ONNX states it."""
    return size if isinstance(size, int) else str(size)


def tensor_info(onnx: Any, name: str, val: Any, renamed: dict[str, str]) -> Any:
    if val.dtype.is_complex:
        raise OnnxExporterError(
            f"torch.onnx.export: {name} is complex, and runtimes take and give no complex tensors. "
            "Let the module take or return torch.view_as_real of it"
        )
    shape = [renamed.get(str(s), dimension(s)) for s in val.shape]
    return onnx.helper.make_tensor_value_info(name, TYPES[val.dtype], shape)


def convert(
    program: Any,
    opset: int,
    input_names: Any = None,
    output_names: Any = None,
    renamed: dict[str, str] | None = None,
    training: bool = False,
) -> ONNXProgram:
    """Return an exported program as ONNX."""
    onnx = needed("onnx", "exporting a model")
    # They fill the table.
    from . import (  # noqa: F401
        _bags,
        _composed_math,
        _composed_moves,
        _composed_seldom,
        _composed_special,
        _layers,
        _layout,
        _losses,
        _making,
        _places,
        _pointwise,
        _reductions,
        _seldom,
        _subgraphs,
    )

    renamed = renamed or {}
    c = Converter(opset)
    c.modules = program.graph_module
    signature = program.graph_signature
    specs = {getattr(s.arg, "name", None): s for s in signature.input_specs}
    inputs, given = [], list(input_names or ())
    state: list[tuple[str, Any]] = []
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec = specs[node.name]
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(spec.arg, ConstantArgument):
                c.env[node] = spec.arg.value
                continue
            name = c.fresh(given.pop(0) if given else node.name)
            val = node.meta["val"]
            inputs.append(tensor_info(onnx, name, val, renamed))
            c.env[node] = Value(name, val.dtype, val.shape)
        else:
            name = c.fresh(str(spec.target))
            value = program.value_of(spec.target)
            state.append((name, value))
            c.env[node] = Value(name, value.dtype, value.shape)
    wanted = list(output_names or ())
    if given:
        raise ValueError(
            f"torch.onnx.export: input_names has {len(input_names)} names, and the model has "
            f"{len(inputs)} inputs"
        )
    for node in program.graph.nodes:
        if node.op == "get_attr":
            c.env[node] = node
        elif node.op == "call_function":
            c.run(node)
    c.at = None
    outputs: list[Any] = []
    results = program.graph.output_node().args[0]
    taken = {i.name for i in inputs} | {n for n, _ in state}
    for spec, node in zip(signature.output_specs, results, strict=True):
        if spec.kind is not OutputKind.USER_OUTPUT or isinstance(spec.arg, ConstantArgument):
            continue
        value = c.env[node]
        name = c.name(value)
        want = wanted.pop(0) if wanted else None
        if want is None and (name in taken):
            want = c.fresh(f"{name}_output" if name in {i.name for i in inputs} else node.name)
        if want is not None or name in {o.name for o in outputs}:
            made = want or c.fresh(f"{name}_again")
            c.nodes.append(onnx.helper.make_node("Identity", [name], [made]))
            name = made
        if isinstance(value, Value):
            outputs.append(tensor_info(onnx, name, value, renamed))
        else:
            outputs.append(onnx.helper.make_tensor_value_info(name, TYPES[pt.int64], []))
    if wanted:
        raise ValueError(
            f"torch.onnx.export: output_names has {len(output_names)} names, and the model has "
            f"{len(outputs)} outputs"
        )
    nodes, used = needed_nodes(c.nodes, {o.name for o in outputs})
    real = (
        (name, pt.view_as_real(v.detach().resolve_conj()) if v.dtype.is_complex else v)
        for name, v in (*state, *c.initializers.items())
        if name in used
    )
    tensors = [
        onnx.helper.make_tensor(name, TYPES[v.dtype], list(v.shape), _bytes(v), raw=True)
        for name, v in real
    ]
    graph = onnx.helper.make_graph(nodes, "main_graph", inputs, outputs, tensors)
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, producer_name="pytensorlib")
    model.producer_version = version.__version__
    model.ir_version = min(10, onnx.IR_VERSION)
    return ONNXProgram(model, program)


def _inside(nodes: Any) -> set[str]:
    """Return what the bodies of branches and loops use."""
    found: set[str] = set()
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= {i for n in attribute.g.node for i in n.input}
                found |= {o.name for o in attribute.g.output}
                found |= _inside(attribute.g.node)
    return found


def needed_nodes(nodes: list[Any], used: set[str]) -> tuple[list[Any], set[str]]:
    """Return the nodes that results need, and the names of all that these use."""
    kept = []
    for node in reversed(nodes):
        if any(o in used for o in node.output):
            kept.append(node)
            used |= set(node.input) | _inside([node])
    return kept[::-1], used
