"""Writes modules as ONNX models, by the packages onnx and, to run them, onnxruntime."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._absent.modules import fill, tell_missing
from .._absent.table import NO_ONNX
from .errors import OnnxExporterError, UnsupportedOperatorError

if TYPE_CHECKING:
    from ._program import ONNXProgram

__all__ = [
    "ExportOptions",
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "UnsupportedOperatorError",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

producer_name, producer_version = "pytorch", "2.13.0"

fill(
    globals(),
    NO_ONNX,
    "ExportOptions ExportableModule InputObserver JitScalarType dynamo_export "
    "export_to_pretty_string select_model_mode_for_export",
)
_symbolic: dict[tuple[str, int], Callable[..., Any]] = {}


class TrainingMode(enum.Enum):
    """In which mode a model would be exported.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.TrainingMode.EVAL.value
    0
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """As which operators a model would be exported.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.OperatorExportTypes.ONNX.value
    0
    """

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(enum.Enum):
    """The element types of ONNX, by its numbers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.TensorProtoDataType.FLOAT.value
    1
    """

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Any = None,
    output_names: Any = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: dict[Any, Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: Any = ".",
    fallback: bool = False,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Any = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Any = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:
    """Write a module as an ONNX model.

    The module is exported by `torch.export.export` in evaluation mode as it is, and each of its
    operators becomes nodes of ONNX's. Needs the package onnx.

    Parameters
    ----------
    model : Module or ExportedProgram
        What is written.
    args, kwargs : tuple, dict
        Examples of its arguments.
    f : path, optional
        Where the model is written.
    verbose : bool, optional
        Whether the model is printed.
    input_names, output_names : sequence of str, optional
        What ONNX calls arguments and results, in order.
    opset_version : int, optional
        The version of ONNX's operators, 18 or later; 20 when left out.
    external_data : bool, default True
        Whether weights may lie in a file beside, where the model would be larger than 2 GB.
    dynamic_shapes : dict, tuple or list, optional
        Which sizes are open, as of `torch.export.export`; a text is the name of a `Dim`.
    dynamic_axes : dict, optional
        The same in the form of older programs: for names of inputs, dimensions, or names by
        dimension.
    custom_translation_table : dict, optional
        Functions by operators that write them: each takes the writer and the arguments, and returns
        what ``writer.op("Name", ...)`` returned.
    verify : bool, default False
        Whether the model is run on the arguments and compared; needs the package onnxruntime.
    export_params : bool, default True
        Whether weights are written.
    keep_initializers_as_inputs : bool, default False
        Whether weights are inputs too.
    dynamo, report, optimize, profile, dump_exported_program, artifacts_dir, fallback, training,
    operator_export_type, do_constant_folding, custom_opsets, export_modules_as_functions,
    autograd_inlining
        Not used.

    Returns
    -------
    ONNXProgram
        The model; its `save` writes it and a call runs it.

    Raises
    ------
    ImportError
        The package onnx is not installed.
    OnnxExporterError
        ONNX has no operators for one of the program's; it names that.
    ValueError
        The version is not known, or names do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()).eval()
    >>> try:
    ...     program = torch.onnx.export(net, (torch.ones(1, 2),), input_names=["x"])
    ... except ImportError as e:
    ...     print("onnx" in str(e))
    ... else:
    ...     print([i.name for i in program.model_proto.graph.input] == ["x"])
    True
    """
    from ._export import export as write

    return write(
        model, args, f, kwargs or {}, input_names, output_names, opset_version, dynamic_shapes,
        dynamic_axes, custom_translation_table, verify, bool(verbose), export_params,
        keep_initializers_as_inputs, external_data,
    )  # fmt: skip


def is_in_onnx_export() -> bool:
    """Return whether a module runs to be written as ONNX.

    Returns
    -------
    bool
        True within `export`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return _state["exporting"]


_state = {"exporting": False}


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Keep how an older exporter would write an operator; see `custom_translation_table`.

    Parameters
    ----------
    symbolic_name : str
        ``"domain::op"``.
    symbolic_fn : callable
        Makes the nodes.
    opset_version : int
        From which version of ONNX's operators on.

    Raises
    ------
    ValueError
        The name has no domain.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.register_custom_op_symbolic("mine::double", lambda g, x: x, 17)
    >>> torch.onnx.unregister_custom_op_symbolic("mine::double", 17)
    """
    if symbolic_name.count("::") != 1:
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the "
            "format domain::name, and should start with a letter"
        )
    _symbolic[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what `register_custom_op_symbolic` kept.

    Parameters
    ----------
    symbolic_name : str
        ``"domain::op"``.
    opset_version : int
        The version that it was kept for.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.unregister_custom_op_symbolic("mine::unknown", 17)
    """
    _symbolic.pop((symbolic_name, opset_version), None)


def __getattr__(name: str) -> Any:
    if name == "ONNXProgram":
        from ._program import ONNXProgram

        globals()[name] = ONNXProgram
        return ONNXProgram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_lazy = __getattr__
tell_missing(globals(), NO_ONNX)
_rest = globals()["__getattr__"]


def __getattr__(name: str) -> Any:  # type: ignore[no-redef]
    if name == "ONNXProgram":
        return _lazy(name)
    return _rest(name)
