"""What programs ask of TorchScript: they run eagerly here, decorated or not.

`script` and `trace` return what they are given and say so once; decorators that tell a compiler
something return the function; nothing is ever being scripted or traced. There is no file format:
`save` and `load` raise.
"""

from __future__ import annotations

import builtins
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from .. import nn
from .._absent.modules import fill, refusal, tell_missing
from .._absent.table import EAGER
from ..futures import Future, all_futures

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")

NO_FILES = (
    "there are no TorchScript files here. torch.export.export(model, args) with torch.export.save "
    "and torch.export.load keeps a program with its numbers, torch.onnx.export writes it for other "
    "runtimes, and torch.save(model.state_dict(), ...) keeps the numbers in files that PyTorch "
    "reads too."
)
fill(globals(), EAGER, "CompilationUnit ScriptFunction RecursiveScriptModule strict_fusion")
export_opnames = refusal("export_opnames", __name__, EAGER)
save = refusal("save", __name__, NO_FILES)
load = refusal("load", __name__, NO_FILES)

_said = False


def _say(name: str) -> None:
    global _said
    if not _said:
        _said = True
        warnings.warn(
            f"torch.jit.{name}: nothing is compiled; what was given runs eagerly, as it is.",
            stacklevel=3,
        )


class Error(RuntimeError):
    """What a compiled function would raise; nothing here does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.jit.Error, RuntimeError)
    True
    """


class TracerWarning(Warning):
    """What a tracer would warn with; nothing here does.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.jit.TracerWarning, Warning)
    True
    """

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: there are no such warnings."""


class Attribute(NamedTuple):
    """A value and the type that a compiler should give it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.Attribute(0.1, float).value
    0.1
    """

    value: Any
    type: Any


class ScriptModule(nn.Module):
    """A module whose methods a compiler would see; here a module like any other.

    What `script` returns is no instance of this class, so that ``isinstance`` says the truth.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> isinstance(torch.nn.Linear(1, 1), torch.jit.ScriptModule)
    False
    """

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raise: there is no such file format here.

        Parameters
        ----------
        f : path or file
            Not used.
        **kwargs
            Not used.
        """
        save(self, f)


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """Return `obj` as it is, and warn once that nothing is compiled.

    Parameters
    ----------
    obj : callable, Module or class
        What PyTorch would compile.
    *args, **kwargs
        PyTorch's options for its compiler; not used.

    Returns
    -------
    callable, Module or class
        The same object.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     double = torch.jit.script(lambda x: 2 * x)
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    _say("script")
    return obj


def trace(func: T, example_inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Return `func` as it is, and warn once that nothing is traced.

    The result follows Python's control flow, so it is right for inputs that a trace would be
    wrong for.

    Parameters
    ----------
    func : callable or Module
        What PyTorch would run once.
    example_inputs : tuple, optional
        Not used.
    *args, **kwargs
        PyTorch's options for its tracer; not used.

    Returns
    -------
    callable or Module
        The same object.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     traced = torch.jit.trace(net, torch.ones(1, 2))
    >>> traced is net
    True
    """
    _say("trace")
    return func


def trace_module(mod: T, inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Return `mod` as it is, and warn once that nothing is traced.

    Parameters
    ----------
    mod : Module
        What PyTorch would run.
    inputs : dict, optional
        Not used.
    *args, **kwargs
        PyTorch's options for its tracer; not used.

    Returns
    -------
    Module
        The same object.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> net = torch.nn.ReLU()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     net is torch.jit.trace_module(net, {"forward": torch.ones(1)})
    True
    """
    _say("trace_module")
    return mod


def freeze(mod: T, preserved_attrs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Return `mod` as it is: there is no graph whose constants could be folded.

    Parameters
    ----------
    mod : Module
        In evaluation mode, as PyTorch asks.
    preserved_attrs : list of str, optional
        Not used.
    *args, **kwargs
        Not used.

    Returns
    -------
    Module
        The same object.

    Raises
    ------
    RuntimeError
        The module is in training mode.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.freeze(torch.nn.ReLU().eval())
    ReLU()
    """
    if builtins.isinstance(mod, nn.Module) and mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Call .eval() on "
            "your module before freezing."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """Return `mod` as it is: there is no graph to optimise.

    Parameters
    ----------
    mod : Module
        In evaluation mode.
    other_methods : list of str, optional
        Not used.

    Returns
    -------
    Module
        The same object.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.optimize_for_inference(torch.nn.ReLU().eval())
    ReLU()
    """
    return mod


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the function as it is; tells a compiler to leave it to Python.

    Parameters
    ----------
    drop : bool or callable
        The function, or an option in parentheses after which the function comes.
    **kwargs
        Not used.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.jit.ignore
    ... def one():
    ...     return 1
    >>> @torch.jit.ignore(drop=True)
    ... def two():
    ...     return 2
    >>> one() + two()
    3
    """
    return drop if callable(drop) else lambda fn: fn


def unused(fn: T) -> T:
    """Return the function as it is; tells a compiler that it is never called.

    Parameters
    ----------
    fn : callable
        Any.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.unused(len) is len
    True
    """
    return fn


def export(fn: T) -> T:
    """Return the function as it is; tells a compiler to compile it too.

    Parameters
    ----------
    fn : callable
        A method.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.export(len) is len
    True
    """
    return fn


def script_if_tracing(fn: T) -> T:
    """Return the function as it is: nothing is ever being traced.

    Parameters
    ----------
    fn : callable
        Any.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.script_if_tracing(len) is len
    True
    """
    return fn


_script_if_tracing = script_if_tracing
script_method = _overload = _overload_method = export


def interface(obj: T) -> T:
    """Return the class as it is; tells a compiler that others may stand for it.

    Parameters
    ----------
    obj : class
        With methods that are only declared.

    Returns
    -------
    class
        The same one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.interface(int) is int
    True
    """
    return obj


def is_scripting() -> bool:
    """Return False: nothing is compiled.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Return False: nothing is traced.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.is_tracing()
    False
    """
    return False


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; the type is for a compiler.

    Parameters
    ----------
    the_type : type
        What a compiler should take the value for.
    the_value : object
        Anything.

    Returns
    -------
    object
        The value.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.annotate(list[int], [])
    []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether `obj` is of a type, looking into containers.

    Parameters
    ----------
    obj : object
        Anything.
    target_type : type or tuple of types
        Also ``list[int]``, ``dict[str, Tensor]``, ``tuple[int, str]``, ``Optional[int]`` and their
        like.

    Returns
    -------
    bool
        An empty container is one of any type.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if target_type is None:
        return obj is None
    if target_type is Any:
        return True
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, t) for t in args)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        return len(obj) == len(args) and all(map(isinstance, obj, args))
    return all(isinstance(item, args[0]) for item in obj)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function and return a future that holds its result already.

    Parameters
    ----------
    func : callable
        Runs at once, on this thread.
    *args, **kwargs
        What it is called with.

    Returns
    -------
    Future
        Done.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.wait(torch.jit.fork(max, 1, 2))
    2
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Return the value of a future.

    Parameters
    ----------
    future : Future
        As of `fork`.

    Returns
    -------
    object
        Its value.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.jit.wait(torch.jit.fork(len, "abc"))
    3
    """
    return all_futures([future])[0].wait()


def onednn_fusion_enabled() -> bool:
    """Return False: there is no fusion of compiled graphs."""
    return False


def enable_onednn_fusion(enabled: bool) -> None:
    """Have no effect: there are no compiled graphs to fuse."""


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Have no effect: there are no compiled graphs to fuse; return no strategy."""
    return []


tell_missing(globals(), EAGER)
