"""Functions of the top-level module that are written in Python."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = ["broadcast_shapes", "resize_as_", "split"]


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that tensors of these shapes broadcast to.

    Raises
    ------
    RuntimeError
        If they do not broadcast.
    """
    from ._size import Size

    out: list[int] = []
    for shape in shapes:
        sizes = [shape] if isinstance(shape, int) else list(shape)
        for i, n in enumerate(reversed(sizes)):
            if n < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({n}): ({sizes})"
                )
            if i == len(out):
                out.append(n)
            elif out[i] == 1:
                out[i] = n
            elif n not in (1, out[i]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"{[tuple(s) if not isinstance(s, int) else (s,) for s in shapes]}"
                )
    return Size(reversed(out))


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Cut a tensor into views along `dim`: of one size, or of each of the sizes listed."""
    return _C.Tensor.split(tensor, split_size_or_sections, dim)


def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Change the shape of `input` in place to that of another tensor."""
    return input.resize_as_(the_template, memory_format=memory_format)
