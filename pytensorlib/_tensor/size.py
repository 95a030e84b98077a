"""``torch.Size``: the sizes of a tensor as a tuple."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

__all__ = ["Size"]


def _size(s: Any) -> Any:
    """Return what means an int as one."""
    return s.__index__() if hasattr(s, "__index__") and not hasattr(s, "__sym_float__") else s


class Size(tuple[int, ...]):
    """Sizes of each dimension.

    Slicing, addition and repetition give a ``Size`` again.

    Parameters
    ----------
    sizes : iterable of int, optional
        One for each dimension.

    Raises
    ------
    TypeError
        An item is not an int.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> shape = torch.zeros(2, 3, 4).shape
    >>> shape, shape[1:], shape.numel()
    (torch.Size([2, 3, 4]), torch.Size([3, 4]), 24)
    """

    __slots__ = ()
    __module__ = "pytensorlib"

    def __new__(cls, sizes: Any = ()) -> Size:
        items = [s if type(s) is int else _size(s) for s in sizes]
        for i, s in enumerate(items):
            # A size that `torch.export` leaves open stays what it is.
            if not isinstance(s, int) and not hasattr(s, "__sym_float__"):
                kind = type(s).__name__
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{kind}')")
        return super().__new__(cls, items)

    def numel(self) -> int:
        """The number of elements: the product of the sizes.

        Returns
        -------
        int
            1 where there are no dimensions.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.Size([2, 3]).numel()
        6
        """
        n = 1
        for s in self:
            n *= s
        return n

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(super().__add__(other))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n: SupportsIndex) -> Size:
        return Size(super().__mul__(n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)
