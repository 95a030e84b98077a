"""``FloatTensor`` and its kin: one class for each element type, from before dtypes."""

from __future__ import annotations

from typing import Any

from . import _C
from ._tensor import _SCALARS, _legacy_new

__all__ = [f"{scalar}Tensor" for scalar in _SCALARS.values()]


class _OldClass(type):
    """The class of these classes: a tensor is an instance of the one for its type."""

    dtype: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _legacy_new(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, obj: Any) -> bool:
        return isinstance(obj, _C.Tensor) and obj.dtype == cls.dtype and obj.is_cpu


for _name, _scalar in _SCALARS.items():
    globals()[f"{_scalar}Tensor"] = _OldClass(
        f"{_scalar}Tensor",
        (),
        {
            "__module__": __name__.partition(".")[0],
            "__doc__": f"Make a CPU tensor of {_name} from sizes or data.",
            "dtype": getattr(_C, _name),
        },
    )
