"""What programs ask of ``torch.compile``: calls are recorded and run again, see `_graph`.

Nothing is ever being compiled; what would tell a compiler how returns the function as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

import pytensorlib as pt

from . import _graph, _observed, _recording
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
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

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
    """Return a function or module whose calls are recorded, and run again without Python.

    As `pytensorlib.graph`, which says what a call is taken to depend on: once two calls of a kind
    asked for the same kernels, the next ones run these, in memory that is laid out once, with the
    function's own results, bit for bit. Results may have a graph: their gradients are computed by
    recorded kernels too. Where something changes that a call read, the next one runs as it is and
    is recorded anew, and a warning says once what changed.

    Parameters
    ----------
    model : callable or Module, optional
        What to record; without it, a decorator is returned.
    fullgraph : bool, default False
        Raise where a call cannot be run again; by default it then runs as it is, and a warning says
        why, once.
    dynamic : bool, optional
        Taken as PyTorch does; calls on other shapes are always recorded apart.
    backend : str, default "inductor"
        "eager" runs the function as it is; every other name stands for the recorder.
    mode : {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}, optional
        All do the same.
    options : dict, optional
        Options of PyTorch's compiler, without an effect; not together with `mode`.
    disable : bool, default False
        Return `model` as it is.
    **kwargs
        Further options of PyTorch's; they have no effect.

    Returns
    -------
    callable or Module
        Of a module another one with the first as ``_orig_mod``, so that entries of its
        ``state_dict`` begin with that name.

    Raises
    ------
    NotImplementedError
        `backend` is a function, which would be handed a graph.
    RuntimeError
        `mode` has no such name, or is given with `options`; or, at a call with `fullgraph`, the
        call cannot be run again.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.compile(mode="max-autotune")
    ... def double(x):
    ...     return 2 * x
    >>> [double(torch.ones(2) * i).tolist() for i in range(3)]
    [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
    >>> net = torch.nn.Linear(2, 1)
    >>> torch.compile(net)._orig_mod is net
    True
    """
    if callable(backend):
        raise NotImplementedError(f"torch.compile: a backend that is a function: {EAGER}")
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return lambda found: compile(found, fullgraph=fullgraph, backend=backend, disable=disable)
    if disable or backend == "eager":
        return model
    if isinstance(model, pt.nn.Module):
        from ._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model, fullgraph)
    return _graph.Recorded(model, "torch.compile", fullgraph)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function that does the same and is not recorded: who calls it runs as it is.

    Parameters
    ----------
    fn : callable, optional
        Without it, a decorator is returned. A module, and a function that is written in C, is
        returned as it is.
    recursive : bool, default True
        Not used.
    reason : str, optional
        Told where a call is not recorded.

    Returns
    -------
    callable
        The function, or another one around it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.compiler.disable
    ... def count(x):
    ...     return x.numel()
    >>> count(torch.ones(3)), torch.compiler.disable(len) is len
    (3, True)
    """
    if fn is None:
        return lambda found: disable(found, recursive, reason=reason)
    if not isinstance(fn, FunctionType):
        return fn

    @wraps(fn)
    def unrecorded(*args: Any, **kwargs: Any) -> Any:
        _recording.refuse(reason or f"it calls {fn.__name__}, which torch.compiler.disable marks")
        return fn(*args, **kwargs)

    return unrecorded


def allow_in_graph(fn: T) -> T:
    """Return the function as it is; a recorded call is taken not to depend on what it reads.

    What the function asks for is recorded as any other's. What it reads in Python is not looked at,
    so that it may count, or write to a log.

    Parameters
    ----------
    fn : callable or list of callables
        Any; methods and functions in C stay what they are.

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
    for each in fn if isinstance(fn, (list, tuple)) else (fn,):
        if isinstance(each, FunctionType):
            _observed.opaque[id(each.__code__)] = each.__code__
    return fn


assume_constant_result = allow_in_graph


def nested_compile_region(fn: T) -> T:
    """Return the function as it is; tells a compiler that it is called often.

    Parameters
    ----------
    fn : callable
        Any.

    Returns
    -------
    callable
        The same.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.nested_compile_region(len) is len
    True
    """
    return fn


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
    """Forget every recorded call.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.reset()
    """
    _graph.forget()


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no recorded graphs of CUDA's.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.cudagraph_mark_step_begin()
    """


class set_stance(contextlib.ContextDecorator):
    """Say whether calls are recorded, at once; also as context or decorator.

    Parameters
    ----------
    stance : str, default "default"
        "force_eager" runs functions as they are; all others record their calls.
    **kwargs
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.compiler.set_stance("force_eager"):
    ...     torch.compile(torch.neg)(torch.ones(1))
    tensor([-1.])
    """

    def __init__(self, stance: str = "default", **kwargs: Any) -> None:
        self.stance = stance
        self._before, _graph.stance = _graph.stance, stance

    def __enter__(self) -> None:
        _graph.stance = self.stance

    def __exit__(self, *exc: Any) -> None:
        _graph.stance = self._before


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
