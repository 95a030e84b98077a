"""What to do about the errors that beginners meet first, told after PyTorch's text."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

__all__ = ["advise"]


def advise(error: Exception, x: Any, like: Any, channels: int | None = None) -> None:
    """Add a sentence to the error of a layer, where its input tells what is wrong.

    Parameters
    ----------
    error : Exception
        What the operator raised; its text becomes longer.
    x, like : Tensor
        The layer's input and its weight.
    channels : int, optional
        How many channels the layer wants; none for a linear layer.
    """
    if not isinstance(x, pt.Tensor) or not isinstance(like, pt.Tensor):
        return
    advice = _about(x, like, channels)
    if advice:
        text = str(error)
        error.args = (f"{text}{'' if text.endswith(('.', '!')) else '.'} {advice}",)


def _about(x: Any, like: Any, channels: int | None) -> str:
    if x.device != like.device:
        return (
            f"The input is on {x.device}, the layer on {like.device}: "
            f"move the input with .to({str(like.device)!r}), or the layer."
        )
    if x.dtype != like.dtype:
        name = str(like.dtype).removeprefix("torch.")
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            return f"The input holds {x.dtype}: convert it with .to(torch.{name})."
        return (
            f"The input is {x.dtype} and the layer {like.dtype}: convert the input with "
            f".to(torch.{name}), or the layer with .to({x.dtype})."
        )
    if channels is None:  # a linear layer
        if x.dim() == 0 or x.shape[-1] == like.shape[-1]:
            return ""
        width = f"The input's last dimension is {x.shape[-1]}, the layer takes {like.shape[-1]}"
        flat = x.dim() > 2 and x.shape[1:].numel() == like.shape[-1]
        return f"{width}: .flatten(1) gives that." if flat else f"{width}."
    at = 1 if like.dim() in (1, x.dim()) else 0  # unbatched inputs lack the first dimension
    if x.dim() > 2 and x.shape[at] != channels == x.shape[-1]:
        return (
            "The channels seem to be last, as in image files: "
            f"bring them to dimension {at} with .movedim(-1, {at})."
        )
    return ""
