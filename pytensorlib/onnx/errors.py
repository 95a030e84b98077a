"""Errors of the exporter to ONNX."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """What the exporter warns with.

    Examples
    --------
    >>> from pytensorlib.onnx.errors import OnnxExporterWarning
    >>> issubclass(OnnxExporterWarning, UserWarning)
    True
    """


class OnnxExporterError(RuntimeError):
    """What the exporter raises.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.onnx.OnnxExporterError, RuntimeError)
    True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """An operator that ONNX cannot say.

    Parameters
    ----------
    name : str
        Its name.
    version : int
        Of ONNX's operators.
    supported_version : int, optional
        That from which it can be said.

    Examples
    --------
    >>> from pytensorlib.onnx.errors import UnsupportedOperatorError
    >>> str(UnsupportedOperatorError("aten::foo", 18, None))
    "Exporting the operator 'aten::foo' to ONNX opset version 18 is not supported"
    """

    def __init__(self, name: str, version: int, supported_version: int | None = None) -> None:
        text = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            text += f". Support for this operator was added in version {supported_version}"
        super().__init__(text)
