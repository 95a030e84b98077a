"""How notebooks show tensors and models; loaded when one asks."""

from __future__ import annotations

from typing import Any

__all__ = ["attach"]


def _tensor(self: Any) -> str:
    from ..utils.show import tensor_html

    return tensor_html(self)


def _module(self: Any) -> str:
    from ..utils.show import module_html

    return module_html(self)


def attach(tensor: Any, module: Any) -> None:
    """Let both classes show themselves."""
    tensor._repr_html_ = _tensor
    module._repr_html_ = _module
