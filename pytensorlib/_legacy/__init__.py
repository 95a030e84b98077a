"""``FloatTensor`` and its kin: one class for each element type, from before dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._tensor.constructors import _SCALARS, _check_legacy_device, _legacy_new

__all__ = [
    "FloatTensor",
    "DoubleTensor",
    "HalfTensor",
    "BFloat16Tensor",
    "LongTensor",
    "IntTensor",
    "ShortTensor",
    "CharTensor",
    "ByteTensor",
    "BoolTensor",
    "ComplexFloatTensor",
    "ComplexDoubleTensor",
    "UInt16Tensor",
    "UInt32Tensor",
    "UInt64Tensor",
]

if TYPE_CHECKING:

    class FloatTensor(_C.Tensor): ...

    class DoubleTensor(_C.Tensor): ...

    class HalfTensor(_C.Tensor): ...

    class BFloat16Tensor(_C.Tensor): ...

    class LongTensor(_C.Tensor): ...

    class IntTensor(_C.Tensor): ...

    class ShortTensor(_C.Tensor): ...

    class CharTensor(_C.Tensor): ...

    class ByteTensor(_C.Tensor): ...

    class BoolTensor(_C.Tensor): ...

    class ComplexFloatTensor(_C.Tensor): ...

    class ComplexDoubleTensor(_C.Tensor): ...

    class UInt16Tensor(_C.Tensor): ...

    class UInt32Tensor(_C.Tensor): ...

    class UInt64Tensor(_C.Tensor): ...


class _OldClass(type):
    """The class of these classes: a tensor is an instance of the one for its type."""

    dtype: Any
    kind: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.kind == "cpu":
            _check_legacy_device(kwargs.get("device"), "cpu")
            return _legacy_new(*args, dtype=cls.dtype, **kwargs)
        given = (*args, kwargs.get("data"))
        if any(isinstance(a, _C.Tensor) and not a._on(cls.kind) for a in given):
            raise TypeError(
                f"{cls.__module__}.{cls.__name__}: expected a tensor on {cls.kind}; x.type("
                f"{cls.__module__}.{cls.__name__}) copies one there"
            )
        return _legacy_new(*args, dtype=cls.dtype, **{"device": cls.kind, **kwargs})

    def __instancecheck__(cls, obj: Any) -> bool:
        plain = isinstance(obj, _C.Tensor) and not obj._is_any_sparse
        return plain and obj.dtype == cls.dtype and obj._on(cls.kind)


_ON_GPU = """Make a tensor of {0} on a GPU that answers as "{2}" from sizes or data.

Parameters
----------
*args : int, sequence, Tensor or storage
    Sizes, whose elements are not initialised, or what the tensor holds.

Returns
-------
Tensor
    As of `torch.tensor` with that dtype and device.

Raises
------
RuntimeError
    There is no such device.
TypeError
    The arguments are of another kind, or a tensor of another dtype or device.

Examples
--------
>>> import pytensorlib as torch
>>> if torch.{2}.is_available():
...     x = torch.{2}.{1}([0, 1])
"""


def old_class(name: str, dtype: str, kind: str) -> Any:
    """Return the class of tensors of a type on a kind of device other than the CPU."""
    space = {
        "__module__": f"{__name__.partition('.')[0]}.{kind}",
        "__doc__": _ON_GPU.format(dtype, name, kind),
        "dtype": getattr(_C, dtype),
        "kind": kind,
    }
    return _OldClass(name, (), space)


_DOC = """Make a CPU tensor of {0} from sizes or data.

Parameters
----------
*args : int, sequence, Tensor or storage
    Sizes, whose elements are not initialised, or what the tensor holds.

Returns
-------
Tensor
    As of `torch.tensor` with that dtype.

Raises
------
TypeError
    The arguments are of another kind, or a tensor of another dtype.

Examples
--------
>>> import pytensorlib as torch
>>> x = torch.{1}([0, 1])
>>> x.dtype, isinstance(x, torch.{1})
(torch.{0}, True)
"""

for _name, _scalar in _SCALARS.items():
    if f"{_scalar}Tensor" not in __all__:
        continue
    globals()[f"{_scalar}Tensor"] = _OldClass(
        f"{_scalar}Tensor",
        (),
        {
            "__module__": __name__.partition(".")[0],
            "__doc__": _DOC.format(_name, f"{_scalar}Tensor"),
            "dtype": getattr(_C, _name),
            "kind": "cpu",
        },
    )
