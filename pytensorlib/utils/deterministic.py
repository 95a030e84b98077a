"""The fill of uninitialised memory under deterministic algorithms."""

import sys
import types

from .. import _deterministic


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty` and its relatives, and what `resize_` adds, hold known values under
        ``use_deterministic_algorithms(True)``: NaN, the largest integer, True. True at first.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.empty(2)
        tensor([nan, nan])
        >>> torch.use_deterministic_algorithms(False)
        """
        return _deterministic.fills()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fills: bool) -> None:
        if not isinstance(fills, bool):
            raise TypeError(f"expected bool, but got {type(fills)}")
        _deterministic.ask(fills=fills)


sys.modules[__name__].__class__ = _Module
