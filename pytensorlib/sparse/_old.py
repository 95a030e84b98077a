"""Classes from before layouts, such as `torch.sparse.FloatTensor`."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor.constructors import _SCALARS
from ._make import sparse_coo_tensor

CLASSES: dict[str, Any] = {}


def made(*args: Any, dtype: Any, device: Any = None) -> Any:
    """Make a sparse tensor of coordinates and values, or of sizes."""
    if args and isinstance(args[0], _C.Tensor):
        return sparse_coo_tensor(*args, dtype=dtype, device=device)
    sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return _C.zeros(tuple(sizes) or (0,), dtype=dtype, layout=_C.sparse_coo, device=device)


class _OldClass(type):
    """The class of classes from before layouts: a sparse tensor is an instance of its type's."""

    dtype: Any
    kind: str

    def __call__(cls, *args: Any) -> Any:
        return made(*args, dtype=cls.dtype, device=None if cls.kind == "cpu" else cls.kind)

    def __instancecheck__(cls, obj: Any) -> bool:
        sparse = isinstance(obj, _C.Tensor) and obj.is_sparse
        return sparse and obj.dtype == cls.dtype and obj._on(cls.kind)


def on_kind(kind: str, module: str) -> dict[str, Any]:
    """Return these classes once more, for a kind of device other than the CPU."""
    found = {}
    for name, old in CLASSES.items():
        doc = (old.__doc__ or "").replace("on the CPU", f'on a GPU that answers as "{kind}"')
        doc = doc.partition("Examples")[0].rstrip() + "\n"
        doc += "\nExamples\n--------\n>>> import pytensorlib as torch\n"
        doc += (
            f">>> if torch.{kind}.is_available():\n...     x = torch.{kind}.sparse.{name}(2, 3)\n"
        )
        space = {"__module__": module, "__doc__": doc, "dtype": old.dtype, "kind": kind}
        found[name] = _OldClass(name, (), space)
    return found


_DOC = """Make a sparse tensor on the CPU; `torch.sparse_coo_tensor` of an older name.

Parameters
----------
*args : int or Tensor
    Sizes of a tensor of {0} without entries; or coordinates, values and, optionally, a size.

Returns
-------
Tensor
    As of `torch.sparse_coo_tensor`.

Raises
------
RuntimeError
    A coordinate lies outside of the size, or the shapes do not fit each other.

Examples
--------
>>> import pytensorlib as torch
>>> x = torch.sparse.{1}(2, 3)
>>> x.type(), isinstance(x, torch.sparse.{1})
('torch.sparse.{1}', True)
"""

for _name, _scalar in _SCALARS.items():
    if _scalar in "Float Double Half BFloat16 Long Int Short Char Byte".split():
        CLASSES[f"{_scalar}Tensor"] = _OldClass(
            f"{_scalar}Tensor",
            (),
            {
                "__module__": __package__,
                "__doc__": _DOC.format(_name, f"{_scalar}Tensor"),
                "dtype": getattr(_C, _name),
                "kind": "cpu",
            },
        )
