"""Weak references to tensors, and dictionaries that compare their keys by identity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another of the same object.

    Parameters
    ----------
    key : object
        What is referred to; it need not be hashable.
    callback : callable, optional
        Called with the reference when the object is gone.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.weak import WeakIdRef
    >>> x = torch.ones(2)
    >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x)() is x
    (True, True)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, yours = self(), other() if isinstance(other, weakref.ref) else None
        return mine is yours if mine is not None and yours is not None else self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class _WeakHashRef(weakref.ref):
    """A weak reference that is equal to another of an equal object."""

    __slots__ = ("_hash",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        mine, yours = self(), other() if isinstance(other, weakref.ref) else None
        return bool(mine == yours) if mine is not None and yours is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose keys are held weakly and compared by identity.

    Parameters
    ----------
    dict : mapping, optional
        What it holds at first.
    ref_type : type, default WeakIdRef
        The class of its references.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.weak import WeakIdKeyDictionary
    >>> x, known = torch.ones(2), WeakIdKeyDictionary()
    >>> known[x] = "a"
    >>> known[x], len(known), torch.ones(2) in known
    ('a', 1, False)
    >>> del x
    >>> len(known)
    0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        held = self.data
        self._remove = lambda ref: held.pop(ref, None)
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[self.ref_type(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no weak reference to it
            return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdKeyDictionary):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"

    def keyrefs(self) -> list[Any]:
        """Return the weak references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return a dictionary of the same items."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        both = self.copy()
        both.update(other)
        return both

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self


# Tensors are compared by identity as any other object is.
WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Parameters
    ----------
    tensor : Tensor
        What is referred to.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.weak import TensorWeakRef
    >>> x = torch.ones(2)
    >>> TensorWeakRef(x)() is x
    True
    """

    __slots__ = ("ref",)

    def __init__(self, tensor: Any) -> None:
        import pytensorlib as pt

        if not isinstance(tensor, pt.Tensor):
            raise TypeError(f"TensorWeakRef: expected a Tensor, got {type(tensor).__name__}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
