"""`torch.compile`: runs a function's Python in each call, and its tensor operations fused."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .. import _C

# What `torch.compiler.set_stance` was told last.
stance = "default"
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


def forget() -> None:
    """Forget the calls of all compiled functions."""
    for function in list(_all):
        function.reset()


class Compiled:
    """A function whose calls are matched with those before.

    Parameters
    ----------
    function : callable
        Runs in each call.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> double = torch.compile(lambda x: 2 * x)
    >>> [double(torch.ones(2) * i).tolist() for i in range(3)]
    [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(
                "torch.compile: expected a function or a module, but got "
                f"{type(function).__name__}; what is called is compiled, and not what a call gave"
            )
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._calls = _C._Matched()
        _all.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if stance == "force_eager":
            return self._function(*args, **kwargs)
        return self._calls.call(self._function, args, kwargs)

    def __reduce__(self) -> Any:
        # A decorated function is found by its name; others are made of what they call.
        name = getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self, "__module__", None) or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Compiled, (self._function,))

    def reset(self) -> None:
        """Forget the calls so far."""
        self._calls.forget()

    @property
    def counts(self) -> dict[str, int]:
        """Requests that were matched, others that waited for elements, programs, and their runs."""
        sums = map(sum, zip(*self._calls.counts, strict=True))
        return dict(zip(("matched", "others", "programs", "runs"), sums, strict=True))
