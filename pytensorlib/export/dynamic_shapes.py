"""Which sizes of arguments an exported program leaves open."""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .._dynamo.exc import UserError
from ..utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "dims"]

int_oo = math.inf


class _DimHintType(enum.Enum):
    AUTO = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()


class _DimHint:
    """The constraint of a size that has no name."""

    def __init__(self, type: _DimHintType, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = type, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        return f"DimHint({self.type.name})"


class Dim:
    """A size that is open, by its name; sizes of one name are equal.

    ``Dim.AUTO`` leaves it to the exporter whether a size is open, ``Dim.DYNAMIC`` wants one open
    without a name, and ``Dim.STATIC`` fixes it.

    Parameters
    ----------
    name : str
        An identifier.
    min, max : int, optional
        The least and the largest size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> batch = torch.export.Dim("batch", min=2, max=64)
    >>> batch, 2 * batch
    (Dim('batch', min=2, max=64), 2*batch)
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = (0 if min is None else min), (int_oo if max is None else max)
        if high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high
        self.factor, self.offset, self.root = 1, 0, self

    def _derived(self, factor: int, offset: int) -> Dim:
        made = object.__new__(Dim)
        made.root, made.factor, made.offset = self.root, factor, offset
        said = self.root.__name__ if factor == 1 else f"{factor}*{self.root.__name__}"
        made.__name__ = said if not offset else f"{said}{offset:+d}"
        made.min = self.root.min * factor + offset
        made.max = self.root.max * factor + offset
        return made

    def __add__(self, other: int) -> Dim:
        _whole(other)
        return self._derived(self.factor, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        _whole(other)
        return self._derived(self.factor, self.offset - other)

    def __mul__(self, other: int) -> Dim:
        _whole(other)
        if other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {self.__name__} by {other}, where a positive integer was "
                "expected."
            )
        return self._derived(self.factor * other, self.offset * other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        if self.root is not self:
            return self.__name__
        low = f", min={self.min}" if self.min else ""
        high = f", max={self.max}" if self.max != int_oo else ""
        return f"Dim('{self.__name__}'{low}{high})"


def _whole(other: Any) -> None:
    if type(other) is not int:
        raise NotImplementedError(
            f"Attempted arithmetic of a Dim with {other}, where an integer was expected. (Only "
            "increasing linear operations with integer coefficients are supported.)"
        )


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return a `Dim` for each name.

    Parameters
    ----------
    *names : str
        Identifiers.
    min, max : int, optional
        The least and the largest size of each.

    Returns
    -------
    tuple of Dim
        In that order.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.export.dims("height", "width")
    (Dim('height'), Dim('width'))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class Constraint:
    """A condition on a size; made by the exporter alone."""


class ShapesCollection:
    """Says for tensors among the arguments which of their sizes are open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(4, 2)
    >>> shapes = torch.export.ShapesCollection()
    >>> shapes[x] = {0: torch.export.Dim.DYNAMIC}
    >>> program = torch.export.export(torch.nn.ReLU(), (x,), dynamic_shapes=shapes)
    >>> len(program.range_constraints)
    1
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, pt.Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        known = self._shapes.get(id(t))
        if known is not None and known != shape:
            raise AssertionError(
                f"Shapes assigned to tensor do not match: expected {known}, got {shape}"
            )
        self._shapes[id(t)] = shape

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> Any:
        """Return what `export` takes for these arguments.

        Parameters
        ----------
        m : Module
            What is exported.
        args, kwargs : tuple, dict
            The arguments.

        Returns
        -------
        dict
            By the names of the arguments.
        """
        combined = combine(m, args, kwargs or {})
        return pytree.tree_map(lambda t: self._shapes.get(id(t)), combined)


class AdditionalInputs:
    """Finds out which sizes are open from several examples of arguments.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> more = torch.export.AdditionalInputs()
    >>> more.add((torch.ones(5, 2),))
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes=more)
    >>> len(program.range_constraints)
    1
    """

    def __init__(self) -> None:
        self._examples: list[tuple[Any, Any]] = []

    def add(self, args: Any, kwargs: Any = None) -> None:
        """Add an example.

        Parameters
        ----------
        args, kwargs : tuple, dict
            The arguments.
        """
        if not isinstance(args, tuple):
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> Any:
        """Return what `export` takes: what differs among the examples is open.

        Parameters
        ----------
        m : Module
            What is exported.
        args, kwargs : tuple, dict
            The arguments.

        Returns
        -------
        dict
            By the names of the arguments.
        """
        first, *others = [combine(m, a, k) for a, k in [(args, kwargs or {}), *self._examples]]

        def open_sizes(t: Any, *rest: Any) -> Any:
            if not isinstance(t, pt.Tensor):
                return None
            return {
                d: Dim.DYNAMIC
                for d in range(t.dim())
                if any(o.shape[d] != t.shape[d] for o in rest)
            } or None

        return pytree.tree_map(open_sizes, first, *others)

    def verify(self, ep: Any) -> None:
        """Run a program on the examples.

        Parameters
        ----------
        ep : ExportedProgram
            The program.
        """
        for args, kwargs in self._examples:
            ep.module()(*args, **kwargs)


def signature_of(f: Any) -> inspect.Signature:
    """Return the signature of a module's `forward`, or of a function."""
    return inspect.signature(f.forward if isinstance(f, pt.nn.Module) else f)


def combine(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name."""
    bound = signature_of(f).bind(*args, **kwargs)
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature_of(f).parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        else:
            found[name] = value
    return found


_WANTED = "expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, "


def leaf_shapes(combined: dict[str, Any], dynamic_shapes: Any) -> list[tuple[str, Any, Any]]:
    """Return for each leaf of the arguments its path, what it is, and what is said of its sizes."""
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(combined):
            raise UserError(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                f"`inputs` has {len(combined)} elements, but `dynamic_shapes` has "
                f"{len(dynamic_shapes)} elements"
            )
        dynamic_shapes = dict(zip(combined, dynamic_shapes, strict=True))
    if isinstance(dynamic_shapes, dict):
        unknown = [k for k in dynamic_shapes if k not in combined]
        if unknown:
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {list(combined)} of `inputs`, but here they are {list(dynamic_shapes)}."
            )
    found: list[tuple[str, Any, Any]] = []

    def walk(path: str, value: Any, said: Any) -> None:
        if isinstance(value, pt.Tensor):
            found.append((path, value, said))
        elif isinstance(value, (list, tuple)) and (said is None or isinstance(said, (list, tuple))):
            if said is not None and len(said) != len(value):
                raise UserError(
                    "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                    f"`inputs{path}` has {len(value)} elements, but `dynamic_shapes{path}` has "
                    f"{len(said)} elements"
                )
            for i, item in enumerate(value):
                walk(f"{path}[{i}]", item, None if said is None else said[i])
        elif isinstance(value, dict) and (said is None or isinstance(said, dict)):
            for key, item in value.items():
                walk(f"{path}[{key!r}]", item, None if said is None else said.get(key))
        else:
            leaves = pytree.tree_leaves(value)
            if len(leaves) == 1 and leaves[0] is value:
                found.append((path, value, said))
            else:
                parts = pytree.tree_leaves(said, is_leaf=lambda s: s is None) if said else []
                for i, leaf in enumerate(leaves):
                    walk(f"{path}[{i}]", leaf, parts[i] if i < len(parts) else None)

    for name, value in combined.items():
        walk(f"L['{name}']", value, None if dynamic_shapes is None else dynamic_shapes.get(name))
    return found


def open_sizes(path: str, t: Any, said: Any) -> dict[int, Any]:
    """Return the constraint of each size of a tensor that is to be dynamic."""
    if said is None:
        return {}
    if isinstance(said, dict):
        items = list(said.items())
    elif isinstance(said, (list, tuple)):
        if len(said) != t.dim():
            raise UserError(
                f"Expected dynamic shape spec {said} specified at `dynamic_shapes{path[1:]}` to "
                f"have the same length as the actual tensor shape {t.shape} (expected {t.dim()}, "
                f"but got {len(said)} instead)"
            )
        items = list(enumerate(said))
    else:
        raise UserError(
            f"Unexpected input tensor shape {said} specified at `dynamic_shapes{path[1:]}` "
            "(expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, "
            "where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
        )
    found = {}
    for d, dim in items:
        if not -t.dim() <= d < t.dim():
            raise IndexError(
                f"export: dynamic_shapes names dimension {d} of {path}, which has {t.dim()}"
            )
        if isinstance(dim, (Dim, _DimHint)):
            if isinstance(dim, _DimHint) and dim.type is _DimHintType.STATIC:
                continue
            found[d % t.dim()] = dim
        elif type(dim) is int:
            if dim != t.shape[d]:
                raise UserError(
                    f"Static shape constraint of {dim} does not match input size of {t.shape[d]}, "
                    f"for {path}.size()[{d}]"
                )
        elif dim is not None:
            raise UserError(
                f"Unexpected dimension mapped to index {d} in input tensor shape {said} specified "
                f"at `dynamic_shapes{path[1:]}` ({_WANTED} but got {dim!r} instead)"
            )
    return found


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Return dynamic shapes with what an error of `export` suggests.

    Parameters
    ----------
    msg : str
        The error's text.
    dynamic_shapes : dict, tuple or list
        What `export` was given.

    Returns
    -------
    dict, tuple or list
        With constants and other ranges in the place of dimensions.
    """
    fixes: dict[str, Any] = {}
    for line in msg.partition("Suggested fixes:")[2].splitlines():
        name, sign, text = (part.strip() for part in line.partition(" = "))
        if not sign:
            continue
        if text.isdigit():
            fixes[name] = int(text)
        elif text.startswith("Dim("):
            options = dict(p.split("=") for p in text[4:-1].split(", ")[1:])
            fixes[name] = Dim(name, **{k: int(v) for k, v in options.items()})
        else:
            fixes[name] = text

    def fixed(dim: Any) -> Any:
        if isinstance(dim, Dim) and dim.__name__ in fixes:
            found = fixes[dim.__name__]
            return fixes.get(found, Dim(found)) if isinstance(found, str) else found
        return dim

    return pytree.tree_map(fixed, dynamic_shapes, is_leaf=lambda x: isinstance(x, Dim))


Solver = Callable[[int], int]
