"""Functions whose calls are recorded, and run again without Python."""

from __future__ import annotations

import functools
import random
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import pytensorlib as pt

from . import _C, _recording
from ._guards import PLAIN, Walk
from ._numbers import Number

# Calls of one kind that are recorded before two in a row were equal, programs of one kind that are
# kept, and kinds that are told apart.
_TRIES = 4
_PROGRAMS = 8
_KINDS = 32


# What `torch.compiler.set_stance` was told last.
stance = "default"
_all: weakref.WeakSet[Any] = weakref.WeakSet()


def forget() -> None:
    """Forget everything recorded."""
    for recorded in list(_all):
        recorded.reset()


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


def _kind(x: Any, tensors: list[Any], others: list[Any]) -> Any:
    """Return what tells a call's arguments from those of another kind; tensors go to a list."""
    if isinstance(x, pt.Tensor):
        if isinstance(x, pt.nn.Parameter):
            others.append(x)
            return _Same(x)
        tensors.append(x)
        return pt.Tensor, x.requires_grad, x.is_leaf, type(x)
    if isinstance(x, PLAIN):
        return (type(x), x, str(x)) if isinstance(x, float) else (type(x), x)
    if type(x) in (tuple, list):
        return (type(x), *[_kind(v, tensors, others) for v in x])
    if type(x) is dict:
        return (dict, *[(k, _kind(v, tensors, others)) for k, v in x.items()])
    if type(x).__module__ == "numpy":
        raise CannotRecord("an argument is a NumPy array, whose numbers are not followed")
    others.append(x)
    return _Same(x)


def _rate(lr: Any) -> Any:
    """Return a learning rate as a number, where it is one or a tensor of one."""
    plain = isinstance(lr, pt.Tensor) and lr.numel() == 1 and not lr.requires_grad
    return lr.item() if plain else lr


def _momentum(group: dict[str, Any]) -> float | None:
    """Return what a schedule cycles beside the learning rate, where a fused step takes it."""
    betas = group.get("betas")
    value = betas[0] if type(betas) is tuple else group.get("momentum")
    # Without any, the step is another one, which has no buffer.
    return value if type(value) is float and value > 0 else None


class _Rate:
    """What of a group's options a fused step takes anew in each call."""

    __slots__ = ("betas", "cycled", "group", "names")

    def __init__(self, group: dict[str, Any]) -> None:
        self.group = group
        self.cycled = _momentum(group) is not None
        self.names = {"lr", *(("betas", "momentum") if self.cycled else ())}
        self.betas = self._others()

    def _others(self) -> Any:
        betas = self.group.get("betas")
        return betas[1:] if type(betas) is tuple else None

    def now(self) -> tuple[float, float | None] | None:
        """Return the learning rate and the momentum; None where the step would be another one."""
        rate = _rate(self.group["lr"])
        if type(rate) not in (int, float):
            return None
        momentum = _momentum(self.group) if self.cycled else None
        if self.cycled and (momentum is None or self._others() != self.betas):
            return None
        return rate, momentum


class _Cell:
    """A number in memory of the host, from where a recorded call takes it."""

    __slots__ = ("array", "tensor")

    def __init__(self, dtype: Any) -> None:
        # Written to by NumPy, which no record sees.
        self.array = np.zeros((), np.float64 if dtype == pt.float64 else np.float32)
        self.tensor = pt.from_numpy(self.array)


class _Capture:
    """What a call that is being recorded is asked for beside its kernels."""

    def __init__(self, recorder: Any, optimizers: Iterable[Any], cells: list[_Cell]) -> None:
        self.recorder, self.known = recorder, cells
        self.rates = {
            id(group): (lr, lr._version, _rate(lr))
            for optimizer in optimizers
            for group in optimizer.param_groups
            if isinstance(lr := group.get("lr"), pt.Tensor)
        }
        self.thread = threading.get_ident()
        self.optimizers: dict[int, Any] = {}
        self.twice = False
        self.taken: list[_Rate] = []
        self.cells: list[tuple[_Cell, Number]] = []
        # Options of groups that may change, by the group and the name, each with what says whether
        # the record takes them as they are by now; and those that may not, of some parameter.
        self.options: dict[tuple[int, str], Callable[[], bool]] = {}
        self.fixed: set[tuple[int, str]] = set()
        # Counts of steps with a test of what they are once there is one more, and what that said.
        self.tests: list[tuple[Any, Callable[[float], bool], bool]] = []
        self.scalers: dict[int, Any] = {}
        # Whether the call is no example of the others.
        self.odd = False

    def steps(self, optimizer: Any) -> None:
        """Note that an optimizer takes a step."""
        if self.thread == threading.get_ident():
            self.twice = id(optimizer) in self.optimizers
            self.optimizers[id(optimizer)] = optimizer

    def stepped(self) -> None:
        """End the step."""
        self.recorder.rated(None)

    def rate(self, group: dict[str, Any]) -> float | None:
        """Note that what comes takes the learning rate of a group; return it, if it may change."""
        if self.thread != threading.get_ident():
            return None
        rate = group["lr"]
        if isinstance(rate, pt.Tensor):
            # What it was before the call began, which it still is.
            tensor, version, rate = self.rates.get(id(group), (None, 0, None))
            if tensor is not group["lr"] or version != tensor._version:
                return None
        if type(rate) not in (int, float):
            return None
        taken = _Rate(group)
        self.taken.append(taken)
        self.recorder.rated(float(rate), _momentum(group))
        return float(rate)

    def _followed(
        self, group: dict[str, Any], name: str, fits: bool, value: float, read: Any, holds: Any
    ) -> Any:
        """Return a number among a group's options, as one that may be another one next time."""
        if not (fits and holds()):
            self.fixed.add((id(group), name))
            return value
        self.options[id(group), name] = holds
        return Number(value, read)

    def followed_rate(self, group: dict[str, Any], fits: bool) -> Any:
        """Return the learning rate of a group as a number that may be another one next time."""
        rate = group["lr"]
        if self.thread != threading.get_ident():
            return _rate(rate)
        if isinstance(rate, pt.Tensor):
            tensor, version, rate = self.rates.get(id(group), (None, 0, None))
            if tensor is not group["lr"] or version != tensor._version:
                return group["lr"].item()
        if type(rate) not in (int, float):
            return rate
        read = lambda: _rate(group["lr"])  # noqa: E731
        holds = lambda: type(read()) in (int, float)  # noqa: E731
        return self._followed(group, "lr", fits, rate, read, holds)

    def followed_momentum(self, group: dict[str, Any], fits: bool) -> Any:
        """Return the momentum of a group as a number that may be another one next time."""
        momentum = group["momentum"]
        if self.thread != threading.get_ident():
            return momentum
        holds = lambda: _momentum(group) is not None  # noqa: E731
        read = lambda: group["momentum"]  # noqa: E731
        return self._followed(group, "momentum", fits, momentum, read, holds)

    def followed_betas(self, group: dict[str, Any], fits: bool) -> tuple[Any, ...]:
        """Return the decays of a group, the first as a number that may be another one next time."""
        betas = group["betas"]
        if self.thread != threading.get_ident():
            return betas
        others = betas[1:]

        def holds() -> bool:
            now = group["betas"]
            return type(now) is tuple and type(now[0]) is float and now[1:] == others

        read = lambda: group["betas"][0]  # noqa: E731
        return self._followed(group, "betas", fits, betas[0], read, holds), *others

    def followed(self, x: Any, more: int) -> Any:
        """Return what a tensor of an optimizer holds; `more` than when the call began."""
        if self.thread != threading.get_ident():
            return x.item()
        if self.twice:
            self.recorder.refuse("an optimizer whose step depends on their number takes several")
        return Number(self.recorder.peek(x), lambda: x.item() + more)

    def cell(self, number: Number, dtype: Any) -> Any:
        """Return memory of a number that is computed anew before each call."""
        at = len(self.cells)
        # The same memory in each call, so that it is known to live on.
        if at == len(self.known) or self.known[at].tensor.dtype != dtype:
            self.known[at:] = [_Cell(dtype)]
        cell = self.known[at]
        cell.array[()] = number.value
        self.cells.append((cell, number))
        return cell.tensor

    def test(self, count: Any, test: Callable[[float], bool]) -> bool:
        """Return what a test of a count of steps says, on which the record then hangs."""
        if self.thread != threading.get_ident():
            return test(count.item())
        found = test(self.recorder.peek(count))
        if self.twice:
            self.recorder.refuse("an optimizer whose step depends on their number takes several")
        self.tests.append((count, test, found))
        return found

    def scaler(self, scaler: Any) -> None:
        """Note that a scaler of losses is used."""
        if self.thread == threading.get_ident() and id(scaler) not in self.scalers:
            self.scalers[id(scaler)] = scaler
            self.whole(scaler)

    def whole(self, scaler: Any) -> None:
        """End the record unless nothing of a scaler waits for its update."""
        if scaler._per_optimizer_states:
            self.recorder.refuse("a GradScaler's step and its update are not both in it")

    def guarded(self, bad: Any) -> bool:
        """Leave out what comes, in each call, where this is not zero; return whether it is not."""
        self.odd |= (found := self.recorder.guarded(bad))
        return found

    def always(self) -> None:
        """End what is left out."""
        self.recorder.guarded(None)

    def refuse(self, why: str) -> None:
        """End the record."""
        if self.thread == threading.get_ident():
            self.recorder.refuse(why)


def _draws() -> Any:
    """Return the state of the host's random numbers, which nobody may draw while recording."""
    numpy = sys.modules.get("numpy.random")
    state = numpy.get_state() if numpy else ()
    return random.getstate(), [getattr(s, "tolist", lambda s=s: s)() for s in state]


def _modes() -> Any:
    amp = sys.modules.get("pytensorlib.amp.autocast_mode")
    state = amp._state if amp else None
    cast: Any = ()
    if state is not None and any(state.enabled.values()):
        cast = (*sorted(state.enabled.items()), *sorted(state.dtypes.items()), state.caches)
    flags = pt.is_grad_enabled(), pt.is_inference_mode_enabled(), pt.is_anomaly_enabled()
    # Where a tensor is made that names no device, or "wgpu" without a number.
    places = pt.get_default_device(), _C._wgpu_current()
    return flags, pt.get_default_dtype(), places, cast


class _Entry:
    """A program with the conditions under which it is what a call does."""

    def __init__(self, program: Any, guards: Any, capture: _Capture, spec: Any) -> None:
        self.program, self.guards, self.spec = program, guards, spec
        self.rates, self.tests = capture.taken, capture.tests
        self.cells = capture.cells
        self.options = [capture.options[key] for key in capture.options.keys() - capture.fixed]

    def __call__(self, tensors: list[Any]) -> list[Any] | None:
        if not self.guards.hold():
            return None
        rates = [rate.now() for rate in self.rates]
        if None in rates or not all(holds() for holds in self.options):
            return None
        if not all(test(count.item() + 1) is found for count, test, found in self.tests):
            return None
        for cell, number in self.cells:
            cell.array[()] = number.now()
        return self.program(tensors, rates)


class _Number:
    """Stands, in what a function returns, for a number that is read of a tensor at the end."""


# What may stand between the first number that is read and the end: reading others, and putting
# together what is returned.
_LAST = (
    "CACHE PRECALL PUSH_NULL NOP EXTENDED_ARG NOT_TAKEN COPY_FREE_VARS RETURN_VALUE "
    "CALL CALL_METHOD LOAD_ATTR LOAD_METHOD LOAD_DEREF LOAD_CONST LOAD_SMALL_INT "
    "LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST "
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST "
    "BUILD_TUPLE BUILD_LIST BUILD_MAP BUILD_CONST_KEY_MAP"
).split()


def _only_returned(function: Any, reads: list[Any]) -> bool:
    """Return whether a function does no more with numbers that it read than to return them."""
    code = getattr(function, "__code__", None)
    known = all(type(n) is float and at is code for n, _, at, _ in reads)
    if not reads or code is None or not known:
        return False
    import dis

    first = min(place for *_, place in reads)
    for i in dis.get_instructions(code):
        if i.offset <= first:
            continue
        if i.opname not in _LAST:
            return False
        if i.opname in ("LOAD_ATTR", "LOAD_METHOD") and i.argval != "item":
            return False
        if i.opname in ("CALL", "CALL_METHOD", "PRECALL") and i.arg != 0:
            return False
        if i.opname == "RETURN_VALUE":
            return True
    return False


class _Kind:
    """Calls of one kind: how often they were recorded, and the programs."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.trace: Any = None
        self.spec: Any = None
        self.tries = 0
        self.given_up = False


class Recorded:
    """A function whose calls are recorded, and run again where they are known."""

    def __init__(self, function: Callable[..., Any], name: str, full: bool) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._name, self._full = function, name, full
        self._kinds: dict[Any, _Kind] = {}
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._cells: list[_Cell] = []
        _all.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or run what it was recorded to do."""
        if stance == "force_eager" or _C._is_interpreted() or _C._torch_function_modes():
            return self._function(*args, **kwargs)
        tensors: list[Any] = []
        others: list[Any] = []
        try:
            kind = _kind(args, tensors, others), _kind(kwargs, tensors, others), _modes()
            known = self._kinds.get(kind)
        except (CannotRecord, TypeError) as error:
            self._tell(str(error))
            return self._function(*args, **kwargs)
        if known is not None:
            for entry in known.entries:
                results = entry(tensors)
                if results is not None:
                    return _built(entry.spec, iter(results))
            if known.given_up:
                return self._function(*args, **kwargs)
        elif len(self._kinds) >= _KINDS:
            self._tell(f"there are more than {_KINDS} kinds of calls")
            return self._function(*args, **kwargs)
        if not self._lock.acquire(blocking=False):
            return self._function(*args, **kwargs)
        try:
            return self._record(kind, tensors, others, args, kwargs)
        finally:
            self._lock.release()

    def reset(self) -> None:
        """Forget everything recorded."""
        self._kinds.clear()
        self._cells.clear()
        self._told.clear()

    @property
    def programs(self) -> list[Any]:
        """The recorded programs."""
        return [entry.program for kind in self._kinds.values() for entry in kind.entries]

    def _tell(self, why: str) -> None:
        text = f"{self._name}: {getattr(self, '__name__', 'the function')} runs as it is: {why}"
        if self._full:
            raise CannotRecord(text)
        if why not in self._told:
            self._told.add(why)
            warnings.warn(text, stacklevel=4)

    def _record(
        self, key: Any, tensors: list[Any], others: list[Any], args: Any, kwargs: Any
    ) -> Any:
        kind = self._kinds.setdefault(key, _Kind())
        walk = Walk()
        walk.look(self._function)
        for other in others:
            walk.look(other)
        recorder = _C._Recorder(tensors, kind.trace)
        capture = _Capture(recorder, walk.optimizers.values(), self._cells)
        draws = _draws()
        outer, _recording.current = _recording.current, capture
        found: list[Any] = []
        recorder.start()
        try:
            result = self._function(*args, **kwargs)
            try:
                reads = recorder.reads()
                if not _only_returned(self._function, reads):
                    reads = []
                spec = _spec(result, found, {id(n): element for n, element, *_ in reads})
                recorder.walk_back(found)
            except CannotRecord as error:
                recorder.refuse(str(error))
                spec, reads = None, []
        except BaseException:
            kind.trace = None
            raise
        finally:
            recorder.stop()
            _recording.current = outer
        if _draws() != draws:
            recorder.refuse("Python's or NumPy's random numbers are drawn")
        for scaler in capture.scalers.values():
            capture.whole(scaler)
        trace = recorder.finish(found, bool(reads))
        if capture.odd:
            kind.trace = None
            return result
        if isinstance(trace, str):
            self._give_up(kind, trace)
            return result
        before, kind.trace = kind.trace, trace
        same, kind.spec = kind.spec == spec, spec
        if before is None:
            return result
        program = trace.program(before) if same else "it returns something else each time"
        live: dict[int, set[str]] = {}
        for group, name in capture.options.keys() - capture.fixed:
            live.setdefault(group, set()).add(name)
        live |= {id(taken.group): taken.names for taken in capture.taken}
        for scaler in capture.scalers.values():
            walk.scaler(scaler)
        for used in (walk.optimizers | capture.optimizers).values():
            walk.optimizer(used, live)
        if not isinstance(program, str):
            kind.trace = None
            if not walk.guards.hold():
                program = "it changes what it depends on"
        if isinstance(program, str):
            kind.tries += 1
            if kind.tries >= _TRIES:
                self._give_up(kind, f"no two calls in a row are alike: {program}")
            return result
        kind.tries = 0
        kind.entries = [entry for entry in kind.entries if not entry.program.lost]
        kind.entries.insert(0, _Entry(program, walk.guards, capture, spec))
        del kind.entries[_PROGRAMS:]
        return result

    def _give_up(self, kind: _Kind, why: str) -> None:
        kind.given_up, kind.trace = True, None
        self._tell(why)


def _spec(x: Any, found: list[Any], read: dict[int, Any]) -> Any:
    """Take a result apart into tensors, which go to a list, and what holds them.

    `read` has the tensors behind numbers, by their identity.
    """
    if isinstance(x, pt.Tensor):
        found.append(x)
        return pt.Tensor
    if id(x) in read:
        found.append(read[id(x)])
        return _Number
    if isinstance(x, PLAIN):
        return (type(x), x)
    if isinstance(x, tuple) and (type(x) is tuple or hasattr(x, "_fields")):
        return (type(x), *[_spec(v, found, read) for v in x])
    if type(x) is list:
        return (list, *[_spec(v, found, read) for v in x])
    if type(x) is dict:
        return (dict, *[(k, _spec(v, found, read)) for k, v in x.items()])
    raise CannotRecord(f"it returns a {type(x).__qualname__}")


def _built(spec: Any, results: Iterator[Any]) -> Any:
    """Put results together as they were returned."""
    if spec is pt.Tensor:
        return next(results)
    if spec is _Number:
        return next(results).item()
    kind, *parts = spec
    if kind is dict:
        return {k: _built(v, results) for k, v in parts}
    if kind is list:
        return [_built(v, results) for v in parts]
    if issubclass(kind, tuple) and kind is not pt.Size:
        items = [_built(v, results) for v in parts]
        return kind(*items) if hasattr(kind, "_fields") else tuple(items)
    return parts[0]


def graph(function: Callable[..., Any], *, fullgraph: bool = False) -> Any:
    """Record what a function asks for, and run that again without Python.

    The first calls run as they are. Once two in a row asked for the same kernels, the next ones of
    their kind are these kernels, in memory that is laid out once: forward, backward, an optimizer's
    step, writes in place, random numbers. Their results are those of the function, bit for bit.

    Calls are of one kind by the shapes, strides, types and devices of the tensors among their
    arguments, by other arguments' values, and by grad and inference mode, autocast and the default
    type and device. They are recorded anew where something else differs that can be reached from
    the function: variables of enclosing functions, globals and attributes that it names, modules,
    their attributes and parameters, optimizers and their options. A learning rate and a momentum
    may change, and random numbers go on. Other effects in Python (a counter, a line that is
    printed) take place where a call is recorded, and not where it is run again; and what else a
    function asks, such as the time or an entry of a file, is taken to stay.

    Parameters
    ----------
    function : callable
        Takes tensors, numbers and other objects, in lists and dictionaries too.
    fullgraph : bool, default False
        Raise where a call cannot be run again.

    Returns
    -------
    callable
        Takes the same arguments. ``programs`` are the recorded calls.

    Raises
    ------
    RuntimeError
        With `fullgraph`, after a call that reads elements of a tensor (``item()``, ``if x > 0``)
        and does more with them than to return them at its end (``return loss.item()``), whose
        shapes depend on data, or that returns what has a graph. Without, such a function
        runs as it is, and a warning says why, once.

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
    return Recorded(function, "graph", fullgraph)
