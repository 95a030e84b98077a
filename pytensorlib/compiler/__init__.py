"""What programs ask of ``torch.compile``: calls are matched with those before, see `_matched`.

Nothing is ever being compiled; what would tell a compiler how returns the function as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import pytensorlib as pt

from .._absent.modules import fill
from .._absent.table import EAGER
from .._compile import matched as _matched

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
    """Return a function or module that gives the same in less time and memory.

    Python runs in every call, as without `compile`: what it prints, counts, draws, sets or raises
    is what it would be. The work on tensors is compared with that of earlier calls. While it is the
    same, nothing is computed at once; all of it runs together when the call ends, or when something
    wants elements (``item()``, printing, NumPy, a branch on a value): elementwise operators and
    reductions in one pass over memory, in memory that is laid out once. Where the work differs, the
    call goes on operator by operator, and what it does is known from then on. Results are those of
    the function, bit for bit: gradients, versions and random numbers too.

    Backward and an optimizer's step are matched where they run inside the function. Work that may
    end with an error that hangs on elements (a matrix that cannot be inverted) runs where it is
    asked for, and so does what reads or writes memory that NumPy or another library shares. What
    waits is settled before another thread looks at it, and before a setting changes that kernels
    look at. Ctrl-C takes effect when work that waited is done.

    Parameters
    ----------
    model : callable or Module, optional
        What to compile; without it, a decorator is returned.
    fullgraph : bool, default False
        Taken as PyTorch does: nothing that Python does ends what is matched.
    dynamic : bool, optional
        Taken as PyTorch does; calls on other shapes are always matched apart.
    backend : str, default "inductor"
        "eager" runs the function as it is; every other name means the same.
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
        `mode` has no such name, or is given with `options`.
    TypeError
        `model` cannot be called.

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
        from .._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model)
    return _matched.Compiled(model)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function as it is: Python runs in every call of a compiled one.

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
        The function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.disable(len) is len
    True
    """
    return fn if fn is not None else lambda found: found


def allow_in_graph(fn: T) -> T:
    """Return the function as it is: what it asks for is matched as any other's.

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
    """Return whether `torch.export` records the program that runs.

    Returns
    -------
    bool
        False but while a program is exported.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.is_compiling()
    False
    """
    return is_exporting()


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
    """Return whether `torch.export` records the program that runs.

    Returns
    -------
    bool
        False but while a program is exported.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.is_exporting()
    False
    """
    from .._higher_order_ops import control as _control

    return _control.recording.tracer is not None


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
    """Forget every call of compiled functions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.reset()
    """
    _matched.forget()


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no recorded graphs of CUDA's.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiler.cudagraph_mark_step_begin()
    """


class set_stance(contextlib.ContextDecorator):
    """Say whether calls are matched, at once; also as context or decorator.

    Parameters
    ----------
    stance : str, default "default"
        "force_eager" runs functions as they are; all others match their calls.
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
        self._before, _matched.stance = _matched.stance, stance

    def __enter__(self) -> None:
        _matched.stance = self.stance

    def __exit__(self, *exc: Any) -> None:
        _matched.stance = self._before


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
