"""Advice behind PyTorch's text in errors that beginners meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytensorlib as pt

__all__ = ["about_keys", "advise", "advise_index"]


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
    _add(error, _about_devices(x, like) or _about(x, like, channels))


def advise_index(error: Exception, x: Any, like: Any) -> None:
    """Add a sentence to the error of a layer whose input `x` holds indices; `like` is its table."""
    if isinstance(x, pt.Tensor):
        wrong = x.dtype.is_floating_point or x.dtype.is_complex
        whole = "Indices are whole numbers: convert them with .long()." if wrong else ""
        _add(error, _about_devices(x, like) or whole)


def about_keys(saved: Mapping[str, Any], missing: list[str], unexpected: list[str]) -> str:
    """Return what to do where the names of a state do not match, if they tell."""
    if not missing:
        return ""
    for name, entry in saved.items():
        if isinstance(entry, Mapping) and set(missing) & set(entry):
            return f"Its entry {name!r} has them: load that one."
    if unexpected and all(f"module.{name}" in saved for name in missing):
        return (
            "They are there with 'module.' before them, as a parallel wrapper saves them: load "
            "{name.removeprefix('module.'): value for name, value in state_dict.items()}."
        )
    return ""


def _add(error: Exception, advice: str) -> None:
    if advice:
        text = str(error)
        error.args = (f"{text}{'' if text.endswith(('.', '!')) else '.'} {advice}",)


def _about_devices(x: Any, like: Any) -> str:
    if x.device == like.device:
        return ""
    return (
        f"The input is on {x.device}, the layer on {like.device}: "
        f"move the input with .to({str(like.device)!r}), or the layer."
    )


def _about(x: Any, like: Any, channels: int | None) -> str:
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
