"""How tensors are written: ``repr``, ``str``, ``format`` and their options."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from . import _C
from ._serialization.sparse import sparse_parts

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
# A dataclass would take a thirtieth of the time of `import pytensorlib`.
PRINT_OPTS = SimpleNamespace(**_PROFILES["default"], sci_mode=None)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; what is not given stays, except `sci_mode`.

    Parameters
    ----------
    precision : int, optional
        Digits after the decimal point (4 at first).
    threshold : float, optional
        Tensors with more elements than this show only their edges (1000 at first).
    edgeitems : int, optional
        Elements shown at each end of a summarised dimension (3 at first).
    linewidth : int, optional
        Columns after which a row of numbers is broken (80 at first).
    profile : {"default", "short", "full"}, optional
        A set of values for the four above, which the other arguments override.
    sci_mode : bool, optional
        Scientific notation always, never, or, with None, where the numbers call for it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.23456])
    tensor([1.23])
    >>> torch.set_printoptions(profile="default")
    """
    changes = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes.update((name, value) for name, value in given.items() if value is not None)
    for name, value in changes.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the options in force, in a form that `set_printoptions` takes as keywords.

    Returns
    -------
    dict
        By name of the option.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_printoptions()["precision"]
    4
    """
    return dict(vars(PRINT_OPTS))


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Apply `set_printoptions(**kwargs)` inside a ``with`` block.

    Parameters
    ----------
    **kwargs
        As of `set_printoptions`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.printoptions(precision=2):
    ...     torch.tensor([1.23456])
    tensor([1.23])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _NumberFormat:
    """The notation and the column width that one set of numbers is written with."""

    def __init__(self, values: list[Any], is_float: bool) -> None:
        self.is_float = is_float
        self.scientific = False
        self.integral = True
        self.width = 1
        self.digits = PRINT_OPTS.precision
        if not is_float:
            self.width = max([1, *map(len, map(str, values))])
            return
        # Zeros, infinities and NaN follow the notation of the others and claim no width.
        rest = [v for v in values if v and math.isfinite(v)]
        if not rest:
            return
        self.integral = all(v.is_integer() for v in rest)
        if PRINT_OPTS.sci_mode is None:
            sizes = [abs(v) for v in rest]
            low, high = min(sizes), max(sizes)
            # high / low may overflow to infinity in IEEE arithmetic; Python does the same here.
            self.scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        else:
            self.scientific = PRINT_OPTS.sci_mode
        if self.scientific:
            self.width = max(len(f"{v:.{self.digits}e}") for v in rest)
        elif self.integral:
            self.width = max(len(f"{v:.0f}") for v in rest) + 1
        else:
            self.width = max(len(f"{v:.{self.digits}f}") for v in rest)
        self.width = max(self.width, 1)

    def __call__(self, value: Any) -> str:
        if not self.is_float:
            text = str(value)
        elif self.scientific:
            text = f"{value:.{self.digits}e}"
        elif self.integral:
            text = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            text = f"{value:.{self.digits}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """Real and imaginary part, each in a notation of its own."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _NumberFormat([v.real for v in values], True)
        self.imag = _NumberFormat([v.imag for v in values], True)
        # One more for the trailing j.
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real(value.real) + sign + imag


def _edges(tensor: Any, edge: int) -> Any:
    """Return `tensor` without the middle of every dimension longer than 2 * edge."""
    for dim, size in enumerate(tensor.shape):
        if size > 2 * edge:
            parts = (tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge))
            tensor = _C.cat(parts, dim)
    return tensor


def _flat(nested: Any, dim: int) -> list[Any]:
    for _ in range(dim - 1):
        nested = [item for part in nested for item in part]
    return nested if dim else [nested]


def _rows(nested: Any, cut: list[bool], indent: int, form: Any) -> str:
    """Write nested lists; where `cut`, an ellipsis stands for the middle of the dimension."""
    dim = len(cut)
    if dim == 0:
        return form(nested)
    half = len(nested) // 2
    if dim == 1:
        cells = [form(value) for value in nested]
        if cut[0]:
            cells.insert(half, " ..." if half else "...")
        per_line = max(1, (PRINT_OPTS.linewidth - indent) // (form.width + 2))
        lines = [
            ", ".join(cells[start : start + per_line]) for start in range(0, len(cells), per_line)
        ]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    blocks = [_rows(part, cut[1:], indent + 1, form) for part in nested]
    if cut[0]:
        blocks.insert(half, "...")
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(blocks) + "]"


def _numbers(tensor: Any, indent: int) -> str:
    """Write the values of a tensor, which may be on any device and of any dtype."""
    if tensor.numel() == 0:
        return "[]"
    cut = [False] * tensor.dim()
    if tensor.numel() > PRINT_OPTS.threshold:
        edge = PRINT_OPTS.edgeitems
        cut = [size > 2 * edge for size in tensor.shape]
        if edge == 0:
            return "[...]" if cut else _numbers_whole(tensor, indent, cut)
        tensor = _edges(tensor, edge)
    return _numbers_whole(tensor, indent, cut)


def _numbers_whole(tensor: Any, indent: int, cut: list[bool]) -> str:
    nested = tensor.tolist()
    values = _flat(nested, tensor.dim())
    dtype = tensor.dtype
    form: Any
    if dtype.is_complex:
        form = _ComplexFormat(values)
    else:
        form = _NumberFormat(values, dtype.is_floating_point)
    return _rows(nested, cut, indent, form)


def _tensor_str(tensor: Any, indent: int) -> str:
    """Write the values of a tensor; the name that libraries know it by."""
    return _numbers(tensor.detach(), indent)


def _parameter_class() -> type | None:
    module = sys.modules.get(f"{__package__}.nn.parameter")
    return getattr(module, "Parameter", None)


def _coordinates(tensor: Any, indent: int) -> str:
    """Write coordinates and values of a sparse tensor."""
    parts = []
    for name, part in zip(*sparse_parts(tensor), strict=True):
        prefix = f"{name}=tensor("
        size = f", size={tuple(part.shape)}" if part.numel() == 0 else ""
        parts.append(prefix + _numbers(part.detach(), indent + len(prefix)) + size + ")")
    return (",\n" + " " * indent).join(parts)


def _suffixes(tensor: Any) -> list[str]:
    """Return what follows the values: device, size, dtype, place in the graph."""
    found = []
    if tensor.device.type != "cpu":
        found.append(f"device='{tensor.device}'")
    default = _C.get_default_dtype()
    shown = (default, _C.int64, _C.bool)
    complex_default = default.to_complex()
    # An empty tensor shows nothing that a reader could tell its dtype from.
    if tensor._is_any_sparse:
        found += [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
        if tensor.dtype not in (*shown, complex_default):
            found.append(f"dtype={tensor.dtype}")
        found.append(f"layout={tensor.layout}")
    elif tensor.device.type == "meta":
        found.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype != default:
            found.append(f"dtype={tensor.dtype}")
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            found.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype != default:
            found.append(f"dtype={tensor.dtype}")
    else:
        if not PRINT_OPTS.edgeitems:
            found.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype not in (*shown, complex_default):
            found.append(f"dtype={tensor.dtype}")
    try:
        node = tensor.grad_fn
    except RuntimeError:
        # A view whose base was changed under no_grad has no history that could be rebuilt.
        found.append("grad_fn=<Invalid>")
    else:
        if node is not None:
            found.append(f"grad_fn=<{node.name().rsplit('::', 1)[-1]}>")
        elif tensor.requires_grad:
            found.append("requires_grad=True")
    forward = sys.modules.get(f"{__package__}.autograd.forward_ad")
    tangent = None if forward is None else forward.unpack_dual(tensor).tangent
    if tangent is not None:
        found.append(f"tangent={tangent}")
    return found


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Return a text with what follows it, in lines of the width that is set."""
    text = tensor_str
    # PyTorch counts the line from one column further right; kept, or lines would break elsewhere.
    column = len(text) - text.rfind("\n") + 1
    if force_newline:
        column = PRINT_OPTS.linewidth
    for suffix in suffixes:
        if column + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """Return the text of a tensor, as `_str` does."""
    return _str(inp, tensor_contents=tensor_contents)


def _str(tensor: Any, *, tensor_contents: str | None = None) -> str:
    """Return the text of a tensor; `tensor_contents` may stand in for its values."""
    transforms = sys.modules.get(f"{__package__}.func._shown")
    shown = None if transforms is None else transforms.text(tensor, _plain_str)
    return shown or _plain_str(tensor, tensor_contents=tensor_contents)


def _plain_str(tensor: Any, *, tensor_contents: str | None = None) -> str:
    """Return the text of a tensor that no transform is at work on."""
    kind = type(tensor)
    parameter = _parameter_class()
    plain = kind is _C.Tensor or kind.__name__ == "Tensor" or kind is parameter
    prefix = "tensor(" if plain else f"{kind.__name__}("
    indent = len(prefix)
    with _C._Mode(False):
        suffixes = _suffixes(tensor)
        if tensor_contents is None:
            on_meta = tensor.device.type == "meta"
            if tensor._is_any_sparse:
                tensor_contents = _coordinates(tensor.detach(), indent)
            else:
                tensor_contents = "..." if on_meta else _numbers(tensor.detach(), indent)
    text = _add_suffixes(prefix + tensor_contents, suffixes, indent, tensor.is_sparse)
    if parameter is not None and not plain and isinstance(tensor, parameter):
        return f"Parameter({text})"
    return text
