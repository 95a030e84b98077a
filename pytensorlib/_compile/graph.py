"""`torch.graph`: functions whose kernels are recorded, and run again without Python."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from .. import _C

_PLAIN = (int, float, bool, str, bytes, complex, type(None), pt.dtype, pt.device, pt.Size)
# Calls of one kind that are recorded in vain, programs of one kind that are kept, and kinds.
_TRIES = 4
_PROGRAMS = 8
_KINDS = 32


class CannotRecord(RuntimeError):
    """A call cannot be recorded and run again."""


class _Same:
    """An object that counts as a part of a call's kind by its identity."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def _kind(x: Any, tensors: list[Any]) -> Any:
    """Return what tells a call's arguments from those of another kind; tensors go to a list."""
    if isinstance(x, pt.nn.Parameter):
        return _Same(x)
    if isinstance(x, pt.Tensor):
        tensors.append(x)
        return x.shape, x.dtype, x.device, x.requires_grad, x.is_leaf, type(x)
    if isinstance(x, _PLAIN):
        # Zero has a sign, and NaN is no other number than NaN.
        return type(x), str(x) if isinstance(x, (float, complex)) else x
    if (isinstance(x, tuple) and (type(x) is tuple or hasattr(x, "_fields"))) or type(x) is list:
        return (type(x), *[_kind(v, tensors) for v in x])
    if type(x) is dict:
        return (dict, *[(k, _kind(v, tensors)) for k, v in x.items()])
    if type(x).__module__ == "numpy":
        raise CannotRecord("an argument is a NumPy array; give a tensor")
    return _Same(x)


def _spec(x: Any, found: list[Any]) -> Any:
    """Take a result apart into tensors, which go to a list, and what holds them."""
    if isinstance(x, pt.Tensor):
        found.append(x)
        return pt.Tensor
    if isinstance(x, _PLAIN):
        return (type(x), x)
    if (isinstance(x, tuple) and (type(x) is tuple or hasattr(x, "_fields"))) or type(x) is list:
        return (type(x), *[_spec(v, found) for v in x])
    if type(x) is dict:
        return (dict, *[(k, _spec(v, found)) for k, v in x.items()])
    raise CannotRecord(f"it returns a {type(x).__qualname__}")


def _built(spec: Any, results: Iterator[Any]) -> Any:
    """Put results together as they were returned."""
    if spec is pt.Tensor:
        return next(results)
    kind, *parts = spec
    if kind is dict:
        return {k: _built(v, results) for k, v in parts}
    if kind is list or kind is tuple:
        return kind(_built(v, results) for v in parts)
    if hasattr(kind, "_fields"):
        return kind(*[_built(v, results) for v in parts])
    return parts[0]


class _Kind:
    """Calls of one kind: their programs, and what the last one that was recorded asked for."""

    def __init__(self) -> None:
        self.programs: list[tuple[Any, Any]] = []
        self.trace: Any = None
        self.spec: Any = None
        self.tries = 0
        # Whether its calls run as they are from now on.
        self.given_up = False

    def record(
        self, function: Callable[..., Any], tensors: list[Any], args: Any, kwargs: Any
    ) -> Any:
        """Return what a call gives, and why it cannot be run again, where it cannot."""
        before, self.trace = self.trace, None
        recorder = _C._Recorder(tensors, before)
        found: list[Any] = []
        recorder.start()
        try:
            result = function(*args, **kwargs)
            spec = why = None
            try:
                spec = _spec(result, found)
                recorder.walk_back(found)
            except CannotRecord as error:
                why = str(error)
            except Exception as error:
                why = f"its way back raises {type(error).__name__}: {error}"
        finally:
            recorder.stop()
        trace = recorder.finish(found)
        if isinstance(trace, str):
            why = why or trace
        if why is not None:
            return result, why
        known, self.trace, self.spec = self.spec, trace, spec
        if before is None:
            return result, None
        program = trace.program(before) if known == spec else "it returns something else each time"
        if isinstance(program, str):
            self.tries += 1
            if self.tries < _TRIES:
                return result, None
            self.trace = None
            return result, f"no two calls in a row are alike: {program}"
        self.trace, self.tries = None, 0
        kept = [pair for pair in self.programs if not pair[0].lost]
        self.programs = [(program, spec), *kept][:_PROGRAMS]
        return result, None


class Recorded:
    """A function whose calls are recorded, and run again where they are known."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool) -> None:
        if not callable(function):
            raise TypeError(
                "torch.graph: expected a function or a module, but got "
                f"{type(function).__name__}; what is called is recorded, and not what a call gave"
            )
        functools.update_wrapper(self, function, updated=())
        self._function, self._full = function, fullgraph
        self._lock = threading.Lock()
        self.reset()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or run what it was recorded to do."""
        watched = _C._is_interpreted() or _C._torch_function_modes(True)
        if watched or _C._has_saved_tensor_hooks():
            return self._function(*args, **kwargs)
        tensors: list[Any] = []
        grad = pt.is_grad_enabled(), pt.is_inference_mode_enabled()
        try:
            key = _kind(args, tensors), _kind(kwargs, tensors), grad
            kind = self._kinds.get(key)
        except RecursionError:
            result, why = self._function(*args, **kwargs), "an argument contains itself"
        except (CannotRecord, TypeError) as error:
            result, why = self._function(*args, **kwargs), str(error)
        else:
            if kind is not None:
                for program, spec in kind.programs:
                    results = program(tensors)
                    if results is not None:
                        return _built(spec, iter(results))
            if (kind is not None and kind.given_up) or not self._lock.acquire(blocking=False):
                return self._function(*args, **kwargs)
            try:
                if kind is None and len(self._kinds) >= _KINDS:
                    result = self._function(*args, **kwargs)
                    why = f"there are more than {_KINDS} kinds of calls"
                else:
                    kind = self._kinds.setdefault(key, _Kind())
                    result, why = kind.record(self._function, tensors, args, kwargs)
                    kind.given_up = why is not None
            finally:
                self._lock.release()
        if why is not None:
            text = f"torch.graph: {getattr(self, '__name__', 'the function')} runs as it is: {why}"
            if self._full:
                raise CannotRecord(text)
            if why not in self._told:
                self._told.add(why)
                warnings.warn(text, stacklevel=2)
        return result

    def reset(self) -> None:
        """Forget everything recorded."""
        self._kinds: dict[Any, _Kind] = {}
        self._told: set[str] = set()

    @property
    def programs(self) -> list[Any]:
        """The recorded programs."""
        return [program for kind in self._kinds.values() for program, _ in kind.programs]


def graph(function: Callable[..., Any], *, fullgraph: bool = False) -> Any:
    """Record a function's kernels and run them without Python, whose effects do not repeat.

    The first calls run as they are. Once two in a row asked for the same kernels, the next ones of
    their kind are these kernels, in memory that is laid out once: forward, backward, an optimizer's
    step, writes in place. What tensors hold then is what the function gives, bit for bit, as long
    as the function would ask for the same. This is what CUDA graphs do; `torch.compile` is for
    functions that Python runs in each call.

    What Python does happens in calls that are recorded alone: printing, counting, appending to a
    list, a schedule's step. What Python read is taken to stay what it was: numbers, attributes,
    branches, an optimizer's options; ``reset()`` forgets all programs after a change. Memory that
    was there is the same memory in each call, with what it holds by then: parameters, buffers,
    an optimizer's state, all tensors that the function names. Random numbers of tensors go on.

    Tensors among the arguments, in lists, tuples and dictionaries too, are those of the call.
    Calls are of one kind by their shapes, types, devices and whether they require grad, by numbers,
    texts and other plain arguments' values, by which other objects there are (parameters too), and
    by grad mode and inference mode. For each of 32 kinds eight programs are kept, which
    differ by gradients that are there when a call begins, and by memory that arguments share.

    A call that cannot be recorded runs as it is, as do all others of its kind, and a warning says
    why, once. That is one that reads elements of a tensor (``item()``, ``if x > 0``, a
    `GradScaler`, an optimizer that counts its steps in Python, as `RAdam` does), whose
    shapes depend on data, that returns what is no tensor, plain value or container of these, whose
    kernels are others each time or are given other numbers each time, or that runs backward through
    an argument. Calls under modes that see all functions and under `saved_tensors_hooks` run as
    they are; autocast is such a mode, and is recorded where the function itself begins it.

    Results have a graph where the function's do. To record the way back it is walked through once,
    hooks of Python's included, with gradients of zero.

    Parameters
    ----------
    function : callable
        Takes tensors, numbers and other objects, in lists and dictionaries too.
    fullgraph : bool, default False
        Raise where a call cannot be recorded, after it.

    Returns
    -------
    callable
        Takes the same arguments. ``programs`` are the recorded calls, and ``reset()`` forgets them.

    Raises
    ------
    TypeError
        What is given cannot be called.
    RuntimeError
        With `fullgraph`, after a call that cannot be recorded. Where backward with
        ``create_graph=True`` goes through a call that ran again: it has no second derivative.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.25)
    >>> @torch.graph
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> [step(torch.tensor([1.0, 2.0])).item() for _ in range(4)]
    [3.0, 1.75, 0.5, -0.75]
    >>> len(step.programs), w.detach()
    (1, tensor([ 0., -1.]))
    """
    return Recorded(function, fullgraph)
