"""Names of PyTorch's exporter to ONNX: there is none here.

Functions that register something for an exporter keep it; `export` raises and says what to do.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .._named import fill, tell_missing
from .._named_modules import NO_ONNX

__all__ = [
    "ExportOptions",
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

producer_name, producer_version = "pytorch", "2.13.0"

fill(
    globals(),
    NO_ONNX,
    "ExportOptions ExportableModule InputObserver ONNXProgram JitScalarType dynamo_export export "
    "export_to_pretty_string select_model_mode_for_export",
)
_symbolic: dict[tuple[str, int], Callable[..., Any]] = {}


class OnnxExporterError(RuntimeError):
    """What an exporter would raise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.onnx.OnnxExporterError, RuntimeError)
    True
    """


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


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Keep how an exporter would write an operator; nothing reads it here.

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


tell_missing(globals(), NO_ONNX)
