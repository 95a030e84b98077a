"""What programs ask of ``torch.compile``: they run eagerly here.

`compile` returns what it is given; nothing is ever being compiled; what would tell a compiler
something returns the function as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import pytensorlib as pt

from ._named import fill
from ._named_modules import EAGER

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

T = TypeVar("T")

fill(globals(), EAGER, "load_cache_artifacts load_compiled_function save_cache_artifacts")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    **kwargs: Any,
) -> Any:
    """Return `model` as it is: it runs eagerly.

    Parameters
    ----------
    model : callable or Module, optional
        What to compile; without it, a decorator is returned.
    fullgraph, dynamic, mode, options, disable
        PyTorch's options for its compiler; they have no effect.
    backend : str
        A name of a compiler of PyTorch's; it has no effect.
    **kwargs
        Further options of PyTorch's; they have no effect.

    Returns
    -------
    callable or Module
        The same object, so ``state_dict`` has no prefix ``_orig_mod.``.

    Raises
    ------
    NotImplementedError
        `backend` is a function, which would be handed a graph.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> torch.compile(net) is net
    True
    >>> @torch.compile(mode="max-autotune")
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if callable(backend):
        raise NotImplementedError(f"torch.compile: a backend that is a function: {EAGER}")
    return (lambda found: found) if model is None else model


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function as it is; tells a compiler to leave it alone.

    Parameters
    ----------
    fn : callable, optional
        Without it, a decorator is returned.
    recursive : bool, default True
        Not used.
    reason : str, optional
        Not used.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.disable(len) is len, torch.compiler.disable(recursive=False)(len) is len
    (True, True)
    """
    return (lambda found: found) if fn is None else fn


def allow_in_graph(fn: T) -> T:
    """Return the function as it is; tells a compiler not to look inside.

    Parameters
    ----------
    fn : callable or list of callables
        Any.

    Returns
    -------
    callable or list of callables
        The same.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.allow_in_graph(len) is len
    True
    """
    return fn


assume_constant_result = nested_compile_region = allow_in_graph


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[T], T]:
    """Return a decorator that leaves its function as it is.

    Parameters
    ----------
    original_fn : callable
        What a compiler would replace by the decorated function.
    **kwargs
        Not used.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.compiler.substitute_in_graph(len)
    ... def length(x):
    ...     return 3
    >>> length("ab"), len("ab")
    (3, 2)
    """
    return lambda found: found


def is_compiling() -> bool:
    """Return False: nothing is compiled.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """Return False: nothing is compiled.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.is_dynamo_compiling()
    False
    """
    return False


def is_exporting() -> bool:
    """Return False: nothing is exported.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.is_exporting()
    False
    """
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the compilers there are: none.

    Parameters
    ----------
    exclude_tags : sequence of str
        Not used.

    Returns
    -------
    list
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.list_backends()
    []
    """
    return []


def reset() -> None:
    """Do nothing: there is nothing compiled to forget.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.reset()
    """


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no recorded graphs of CUDA's.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.cudagraph_mark_step_begin()
    """


class set_stance(contextlib.ContextDecorator):
    """Say how a compiler should behave: without an effect, also as context or decorator.

    Parameters
    ----------
    stance : str, default "default"
        Such as "force_eager", which is what always happens here.
    **kwargs
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.compiler.set_stance("force_eager"):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, stance: str = "default", **kwargs: Any) -> None:
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of NumPy arrays one of tensors.

    Parameters
    ----------
    fn : callable
        Takes and returns arrays.

    Returns
    -------
    callable
        Takes tensors that need no gradient and returns tensors; what is neither tensor nor array
        passes through.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensorlib as torch
    >>> torch.compiler.wrap_numpy(np.cumsum)(torch.ones(3))
    tensor([1., 2., 3.])
    """
    import numpy as np

    def to_array(x: Any) -> Any:
        return x.numpy() if isinstance(x, pt.Tensor) else x

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = fn(*map(to_array, args), **{k: to_array(v) for k, v in kwargs.items()})
        if isinstance(result, tuple):
            return tuple(pt.from_numpy(r) if isinstance(r, np.ndarray) else r for r in result)
        return pt.from_numpy(result) if isinstance(result, np.ndarray) else result

    return wrapped


compile.__module__ = __name__.partition(".")[0]  # where PyTorch has it
