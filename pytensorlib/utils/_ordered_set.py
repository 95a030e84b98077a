"""A set whose elements stay in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from typing import Any, TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set whose elements stay in the order in which they came.

    Parameters
    ----------
    iterable : iterable, optional
        Its elements.

    Examples
    --------
    >>> from pytensorlib.utils._ordered_set import OrderedSet
    >>> OrderedSet([3, 1, 3]) | {2}
    OrderedSet([3, 1, 2])
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._dict)})"

    def add(self, value: T) -> None:
        """Put an element in."""
        self._dict[value] = None

    def discard(self, value: T) -> None:
        """Take an element out, if it is there."""
        self._dict.pop(value, None)

    def clear(self) -> None:
        """Take all elements out."""
        self._dict.clear()

    def copy(self) -> OrderedSet[T]:
        """Return a set of the same elements."""
        return OrderedSet(self)

    def pop(self) -> T:
        """Take the last element out; return it."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def update(self, *others: Iterable[T]) -> None:
        """Put the elements of others in."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements of all."""
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements that all have."""
        sets = [set(other) for other in others]
        return OrderedSet(x for x in self if all(x in other for other in sets))

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Keep the elements that all have."""
        self._dict = dict.fromkeys(self.intersection(*others))

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """Return the elements that no other has."""
        away = set().union(*others)
        return OrderedSet(x for x in self if x not in away)

    def difference_update(self, *others: Iterable[T]) -> None:
        """Keep the elements that no other has."""
        self._dict = dict.fromkeys(self.difference(*others))

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """Return the elements that one of both has."""
        others = OrderedSet(other)
        return self.difference(others).union(others.difference(self))

    def issubset(self, other: Iterable[Any]) -> bool:
        """Return whether another has all elements."""
        return set(self) <= set(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Return whether all elements of another are here."""
        return set(self) >= set(other)
