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

from . import _C, _again, _recording
from ._again import Read
from ._guards import PLAIN, CannotRecord, Walk
from ._numbers import Number
from ._observed import Observed, is_library

# Calls of one kind that are recorded before two in a row were equal, programs of one kind that are
# kept, and kinds that are told apart.
_TRIES = 4
_PROGRAMS = 8
_KINDS = 32
# Calls that then run as they are before the next is recorded; each time four times as many.
_REST = 16


# What `torch.compiler.set_stance` was told last.
stance = "default"
_all: weakref.WeakSet[Any] = weakref.WeakSet()


def forget() -> None:
    """Forget everything recorded."""
    for recorded in list(_all):
        recorded.reset()


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
        if x.__dict__:
            others.append(x)
            return _Same(x), x.shape, x.dtype
        return x.shape, x.dtype, x.device, x.requires_grad, x.is_leaf, type(x)
    if isinstance(x, PLAIN):
        return (type(x), x, str(x)) if isinstance(x, float) else (type(x), x)
    if type(x) in (tuple, list) or (isinstance(x, tuple) and hasattr(x, "_fields")):
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


class _Entry:
    """A program with the conditions under which it is what a call does."""

    def __init__(self, program: Any, walk: Walk, capture: _Capture, spec: Any, modes: Any) -> None:
        self.program, self.spec, self.modes = program, spec, modes
        self.guards, self.why = walk.guards, walk.explain()
        self.rates, self.tests = capture.taken, capture.tests
        self.cells = capture.cells
        self.options = [capture.options[key] for key in capture.options.keys() - capture.fixed]
        self.differentiable, self.draws = program.differentiable, program.draws

    def __call__(self, tensors: list[Any], again: Callable[..., Any], *call: Any) -> Any:
        """Return the results; or why they are those of another call, where there is a reason.

        Their gradients with a graph are what `again` gives for the `call`'s arguments.
        """
        broken = self.guards.broken()
        if broken is not None:
            return self.why(broken)
        rates = [rate.now() for rate in self.rates]
        if None in rates or not all(holds() for holds in self.options):
            return "an option of an optimizer changed"
        if not all(test(count.item() + 1) is found for count, test, found in self.tests):
            return None
        for cell, number in self.cells:
            cell.array[()] = number.now()
        if not self.differentiable:
            return self.program(tensors, rates)
        state = pt.get_rng_state() if self.draws else None
        return self.program(tensors, rates, functools.partial(again, tensors, call, self, state))


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


class _Rest:
    """How many calls run as they are before another one is recorded."""

    def __init__(self) -> None:
        self.left, self.next = 0, _REST

    def begin(self) -> None:
        """Let the next calls run as they are."""
        self.left, self.next = self.next, 4 * self.next

    def goes_on(self) -> bool:
        """Return whether a call that is made now is one of them."""
        if self.left == 0:
            return False
        self.left -= 1
        return True


class _Kind:
    """Calls of one kind: how often they were recorded, and the programs."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.trace: Any = None
        self.spec: Any = None
        # What ran in the call that was recorded last.
        self.observed: Observed | None = None
        self.tries = 0
        self.rest = _Rest()


class Recorded:
    """A function whose calls are recorded, and run again where they are known."""

    def __init__(self, function: Callable[..., Any], name: str, full: bool) -> None:
        if not callable(function):
            raise TypeError(
                f"{name}: expected a function or a module, but got {type(function).__name__}; what "
                "is called is recorded, and not what a call gave"
            )
        functools.update_wrapper(self, function, updated=())
        self._function, self._name, self._full = function, name, full
        self._kinds: dict[Any, _Kind] = {}
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._cells: list[_Cell] = []
        self._rest = _Rest()
        # Whether gradients of its results had a graph, so that calls with one run as they are.
        self._twice = False
        _all.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or run what it was recorded to do."""
        if stance == "force_eager" or _C._is_interpreted() or _C._torch_function_modes(True):
            return self._function(*args, **kwargs)
        if _C._has_saved_tensor_hooks():
            return self._function(*args, **kwargs)
        tensors: list[Any] = []
        others: list[Any] = []
        try:
            kind = _kind(args, tensors, others), _kind(kwargs, tensors, others), _again.modes()
            known = self._kinds.get(kind)
        except (CannotRecord, TypeError) as error:
            self._tell(str(error))
            return self._function(*args, **kwargs)
        except RecursionError:
            self._tell("an argument contains itself, or is nested too deeply")
            return self._function(*args, **kwargs)
        why = None
        if known is not None:
            for entry in known.entries:
                if self._twice and entry.differentiable:
                    return self._function(*args, **kwargs)
                results = entry(tensors, self._again, args, kwargs)
                if type(results) is list:
                    return _built(entry.spec, iter(results))
                why = why or results
        if not self._lock.acquire(blocking=False):
            return self._function(*args, **kwargs)
        try:
            if not self._may_record(kind, why):
                return self._function(*args, **kwargs)
            return self._record(kind, tensors, others, args, kwargs)
        finally:
            self._lock.release()

    def reset(self) -> None:
        """Forget everything recorded."""
        self._kinds.clear()
        self._cells.clear()
        self._told.clear()
        self._rest, self._twice = _Rest(), False

    @property
    def programs(self) -> list[Any]:
        """The recorded programs."""
        return [entry.program for kind in self._kinds.values() for entry in kind.entries]

    def _line(self, says: str) -> str:
        return f"{self._name}: {getattr(self, '__name__', 'the function')} {says}"

    def _tell(self, why: str) -> None:
        text = self._line(f"runs as it is: {why}")
        if self._full:
            raise CannotRecord(text)
        self._warn(why, text)

    def _warn(self, why: str, text: str) -> None:
        if why not in self._told:
            self._told.add(why)
            level, frame = 1, sys._getframe()
            while frame.f_back is not None and is_library(frame.f_code.co_filename):
                level, frame = level + 1, frame.f_back
            warnings.warn(text, stacklevel=level)

    def _may_record(self, key: Any, why: str | None) -> bool:
        """Return whether a call that no program is for may be recorded; tell why there is none."""
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) < _KINDS:
                return True
            if self._rest.goes_on():
                return False
            if self._rest.next == _REST:
                self._rest.begin()
                self._tell(f"there are more than {_KINDS} kinds of calls")
                return False
            self._rest.begin()
            del self._kinds[next(iter(self._kinds))]
            return True
        if kind.trace is None and kind.rest.goes_on():
            return False
        if why is not None and len(kind.entries) >= _PROGRAMS and kind.trace is None:
            if kind.rest.next == _REST:
                kind.rest.begin()
                self._tell(f"it was recorded {_PROGRAMS} times, the last time because {why}")
                return False
            kind.rest.begin()
        if why is not None and kind.trace is None:
            self._warn(why, self._line(f"is recorded anew: {why}"))
        return True

    def _record(
        self, key: Any, tensors: list[Any], others: list[Any], args: Any, kwargs: Any
    ) -> Any:
        kind = self._kinds.setdefault(key, _Kind())
        if sys.getprofile() is not None:
            kind.trace = None
            self._tell("a function of sys.setprofile is in force, which recording needs")
            return self._function(*args, **kwargs)
        if kind.trace is None:
            kind.observed = None
        walk, observed = Walk(kind.observed), Observed()
        try:
            if kind.observed is not None:
                arguments = [(x, "an argument") for x in others]
                walk.walk([(self._function, getattr(self, "__name__", "it")), *arguments])
        except CannotRecord as error:
            result = self._function(*args, **kwargs)
            self._give_up(kind, str(error))
            return result
        recorder = _C._Recorder(tensors, kind.trace)
        capture = _Capture(recorder, _optimizers(), self._cells)
        draws = _draws()
        outer, _recording.current = _recording.current, capture
        found: list[Any] = []
        recorder.start()
        try:
            result = observed.run(self._function, args, kwargs)
            try:
                reads = recorder.reads()
                if not _only_returned(self._function, reads):
                    reads = []
                spec = _spec(result, found, {id(n): element for n, element, *_ in reads})
                observed.run(recorder.walk_back, (found,), {})
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
        drawn = walk.drawn()
        if drawn is not None:
            recorder.refuse(drawn)
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
        known, kind.observed = kind.observed, observed
        same, kind.spec = kind.spec == spec, spec
        if before is None or known is None:
            return result
        if not same:
            program = "it returns something else each time"
        elif not observed.within(known):
            program = "it calls other functions each time"
        else:
            program = trace.program(before)
        if not isinstance(program, str):
            kind.trace = None
            try:
                self._finish(walk, capture, program)
                broken = walk.guards.broken()
            except CannotRecord as error:
                self._give_up(kind, str(error))
                return result
            if broken is not None:
                program = f"it changes what it depends on: {walk.explain()(broken)}"
        if isinstance(program, str):
            kind.tries += 1
            if kind.tries >= _TRIES:
                self._give_up(kind, f"no two calls in a row are alike: {program}")
            return result
        kind.tries = 0
        kind.entries = [entry for entry in kind.entries if not entry.program.lost]
        kind.entries.insert(0, _Entry(program, walk, capture, spec, key[-1]))
        del kind.entries[_PROGRAMS:]
        return result

    def _finish(self, walk: Walk, capture: _Capture, program: Any) -> None:
        """Add conditions on the optimizers and scalers that were used."""
        live: dict[int, set[str]] = {}
        for group, name in capture.options.keys() - capture.fixed:
            live.setdefault(group, set()).add(name)
        live |= {id(taken.group): taken.names for taken in capture.taken}
        for scaler in capture.scalers.values():
            walk.scaler(scaler)
        known = [cell.tensor for cell, _ in capture.cells]
        known += [t for s in capture.scalers.values() for t in vars(s).values()]
        for used in (walk.optimizers | capture.optimizers).values():
            walk.optimizer(used, live)
            known += [group.get("lr") for group in used.param_groups]
            known += [t for s in used.state.values() if type(s) is dict for t in s.values()]
        strange = walk.guards.strangers(program, known)
        if strange:
            raise CannotRecord(
                f"it reads a tensor of {strange[0]:,} bytes that nothing it names has; name it in "
                "the function, or give it as an argument"
            )

    def _give_up(self, kind: _Kind, why: str) -> None:
        kind.trace, kind.tries = None, 0
        kind.rest.begin()
        self._tell(why)

    def _again(
        self, tensors: list[Any], call: Any, entry: _Entry, state: Any, *given: Any
    ) -> list[Any]:
        """Return gradients with a graph; calls whose results have one now run as they are."""
        self._twice = True
        why = "gradients of its results have a graph (create_graph=True)"
        self._warn(why, self._line(f"runs as it is: {why}"))
        # Views, so that what leads to one argument does not go through another.
        stand = [t.view_as(t) if t.requires_grad else t for t in tensors]
        to = iter(stand)
        args, kwargs = (_again.replaced(part, to) for part in call)
        result = _again.called(self._function, args, kwargs, entry.modes, state)
        grads = _again.gradients(_again.parts(result, entry.spec), stand, *given)
        if grads is None:
            raise RuntimeError(
                self._line(
                    "gives another result where it is called again for create_graph=True: "
                    "something that it depends on changed since"
                )
            )
        return grads


def _optimizers() -> Iterable[Any]:
    module = sys.modules.get("pytensorlib.optim.optimizer")
    return list(module.alive) if module is not None else ()


def _spec(x: Any, found: list[Any], read: dict[int, Any]) -> Any:
    """Take a result apart into tensors, which go to a list, and what holds them.

    `read` has the tensors behind numbers, by their identity.
    """
    if isinstance(x, pt.Tensor):
        found.append(x)
        return pt.Tensor
    if id(x) in read:
        found.append(read[id(x)])
        return Read
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
    if spec is Read:
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

    Calls are of one kind by the shapes, types and devices of the tensors among their arguments, by
    other arguments' values, and by grad and inference mode, autocast, the default type and device,
    determinism and the precision of products. Where what Python can have read in the call changes,
    the next call runs as it is and is recorded anew, and a warning says once what changed: globals,
    variables of enclosing functions and defaults of all functions that ran, and all attributes,
    entries of containers, slots, class attributes, modules, parameters and their hooks, optimizers
    and their options that are found from there. A learning rate and a momentum may change, and
    random numbers go on. Eight programs of a kind and 32 kinds are kept; functions that need more
    run as they are for most calls, and a warning says so once.

    Not recorded, with a warning that names it, is a call that changes what it depends on (a counter
    that it reads, a list that it appends to), that takes from an iterator, draws random numbers of
    Python or NumPy, reads a NumPy array of more than 4,096 bytes (a tensor over it may be larger),
    an object of an extension, or more than 20,000 values, or that asks for variables by ``eval``,
    ``exec`` or ``globals``; or that is made while a function of ``sys.setprofile`` is in force, as
    recording observes by one which functions run. Nothing is looked at that functions read which
    `torch.compiler.allow_in_graph` marks. Effects in Python that nothing reads (a line that is
    printed) take place where a call is recorded, and not where it is run again; and what else a
    function asks of the world, such as the time or what a file has, is taken to stay. Calls under
    `saved_tensors_hooks` and modes that see all functions run as they are.

    Gradients with a graph (``create_graph=True``) of a recorded call's results come from the
    function, which is called again for that with the same random numbers, and what it writes to is
    afterwards as before; from then on calls whose results have a graph run as they are.

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
    TypeError
        What is given cannot be called.
    RuntimeError
        With `fullgraph`, after a call that reads elements of a tensor (``item()``, ``if x > 0``)
        and does more with them than to return them at its end (``return loss.item()``), whose
        shapes depend on data, or that is not recorded for another reason. Without, such a function
        runs as it is, and a warning says why, once. Where ``create_graph=True`` calls the function
        again, and something that it reads has changed since.

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
