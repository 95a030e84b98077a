"""The profiler of autograd: the time of operators, and of ranges that the program names."""

from __future__ import annotations

import contextlib
import re
import threading
from functools import cache, wraps
from typing import Any

from .. import _C
from .._absent.modules import fill
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, Kernel, MemRecordsAcc, Work

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "profile",
    "record_function",
]

fill(
    globals(),
    "NVIDIA's and Intel's profilers are not used here; profile() notes the operators.",
    "emit_itt emit_nvtx load_nvprof parse_nvprof_trace",
)


class EnforceUnique:
    """Raises where a key is seen twice.

    Examples
    --------
    >>> from pytensorlib.autograd.profiler import EnforceUnique
    >>> keys = EnforceUnique()
    >>> keys.see("a", 1)
    >>> keys.see("a", 1)
    Traceback (most recent call last):
        ...
    RuntimeError: duplicate key: ('a', 1)
    """

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps of a program that several may count: the most that one of them counted.

    Examples
    --------
    >>> from pytensorlib.autograd.profiler import KinetoStepTracker
    >>> before = KinetoStepTracker.current_step()
    >>> KinetoStepTracker.increment_step("one") - before
    1
    >>> KinetoStepTracker.erase_step_count("one")
    True
    """

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Let one who counts begin at the common count."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget one who counts, and return whether there was such a one."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step, and return the common count."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """Return the common count."""
        return cls._current_step


class _Here(threading.local):
    """The profiles at work on a thread, the latest last."""

    def __init__(self) -> None:
        self.profiles: list[profile] = []


_here = _Here()


@cache
def operator_name(node: str) -> str:
    """Return the operator behind PyTorch's name of a graph node: ``aten::native_layer_norm``."""
    bare = re.sub(r"Backward\d*$", "", node)
    return "aten::" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower()


class _RecordFunction:
    """A range that has begun, and in which profiles: what `torch.ops.profiler` hands around."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began = [(p, p._recorder.now()) for p in _here.profiles]


def _record_function_enter_new(name: str, args: str | None = None) -> _RecordFunction:
    """Begin a range."""
    return _RecordFunction(name)


def _record_function_exit(record: _RecordFunction) -> None:
    """End a range."""
    if not isinstance(record, _RecordFunction):
        raise RuntimeError(
            "profiler::_record_function_exit() Expected a value of type '_RecordFunction' for "
            f"argument 'record' but instead found type '{type(record).__name__}': pass what "
            "_record_function_enter returned"
        )
    for p, start in record.began:
        p._ranges.append((record.name, start, p._recorder.now()))
    record.began = []


def _call_end_callbacks_on_jit_fut(record: _RecordFunction, fut: Any) -> Any:
    """End a range when a future is done; return a future of the same value."""

    def end(done: Any) -> Any:
        _record_function_exit(record)
        return done.value()

    return fut.then(end)


class record_function(contextlib.ContextDecorator):
    """A range of a program, by name, in the profiles at work; also a decorator.

    Parameters
    ----------
    name : str
        What it is called.
    args : str, optional
        Told with it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.profiler.profile() as prof, torch.profiler.record_function("two"):
    ...     x = torch.ones(2) + 1
    >>> [e.key for e in prof.key_averages()]
    ['two', 'aten::add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.run_callbacks_on_exit = True
        self.record: _RecordFunction | None = None

    def __enter__(self) -> record_function:
        self.record = _record_function_enter_new(self.name, self.args)
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.record is not None and self.run_callbacks_on_exit:
            _record_function_exit(self.record)

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """Let the range end when a future is done; return a future of the same value."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        if self.record is None:
            raise AssertionError("Expected record to be set")
        self.run_callbacks_on_exit = False
        return _call_end_callbacks_on_jit_fut(self.record, fut)

    def __call__(self, func: Any) -> Any:
        """Return a function whose calls are such ranges."""

        @wraps(func)
        def ranged(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return func(*args, **kwargs)

        return ranged


class profile:
    """Notes the operators that this thread asks for in a block, in forward and in backward.

    Of operators on a GPU it also notes when the GPU worked for them, by the GPU's own clock, where
    that has one; meanwhile no kernel begins before the one before it has ended, which takes longer.
    Operators that run as one kernel share its time in equal parts.

    Parameters
    ----------
    enabled : bool, default True
        False notes nothing.
    use_cuda : bool, default False
        Not used.
    use_device : str, optional
        Not used: GPUs that operators run on are always looked at.
    record_shapes : bool, default False
        Whether to keep the shapes of inputs.
    with_flops : bool, default False
        Whether to count multiplications and additions.
    profile_memory : bool, default False
        Whether to keep the bytes of new results.
    with_stack : bool, default False
        Whether to keep the Python calls at work, the innermost first: ``"train.py(12): step"``.
    with_modules : bool, default False
        Not used: the classes of the modules at work are always kept.
    **kwargs
        Further options of PyTorch's; not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     (x * x).sum().backward()
    >>> {"aten::mul", "aten::sum"} <= {event.name for event in prof.function_events}
    True
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        **kwargs: Any,
    ) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self._recorder = _C._Profile(with_stack)
        self._ranges: list[tuple[str, int, int]] = []
        self._thread = 0
        self.function_events: EventList = EventList()
        self._done = False

    def __enter__(self) -> profile:
        if self.enabled:
            self._thread = threading.get_native_id()
            _here.profiles.append(self)
            self._recorder.start(True)
        return self

    def __exit__(self, *exc: Any) -> None:
        if self.enabled:
            _here.profiles.remove(self)
            self._gather(self._recorder.stop(True))
            self._done = True

    def _gather(self, works: list[Any]) -> None:
        """Make events of what was noted, each within those that contain it."""
        noted = [
            (start, -end, operator_name(node), *told)
            for node, start, end, *told in self._recorder.take()
        ]
        noted += [(s, -e, name, None, (), False, 0, "", []) for name, s, e in self._ranges]
        noted.sort(key=lambda item: (item[0], item[1], item[3] is not None))
        events, above = [], []  # type: ignore[var-annotated]
        asked: dict[int, FunctionEvent] = {}
        for number, (start, end, name, x, y, fresh, request, modules, stack) in enumerate(noted):
            event = FunctionEvent(
                number,
                name,
                start / 1e3,
                -end / 1e3,
                self._thread,
                [list(shape) for shape, _, _ in x or ()] if self.record_shapes else [],
                _bytes(y) if fresh and self.profile_memory else 0,
                _flops(name, x, y) if self.with_flops and x is not None else None,
                x is None,
            )
            event.modules, event.stack = modules, stack
            if x is not None:
                asked[request] = event
                event.moved = _bytes([*x, *y], True)
                if fresh and self.profile_memory:
                    event.self_device_memory_usage = _bytes(y, True)
            while above and above[-1].time_range.end < event.time_range.end:
                above.pop()
            if above:
                event.cpu_parent = above[-1]
                above[-1].cpu_children.append(event)
            above.append(event)
            events.append(event)
        self.function_events = EventList(
            events, profile_memory=self.profile_memory, with_flops=self.with_flops
        )
        for gpu, kernel, clients, groups, bound, (_, start, end) in works:
            names = tuple(operator_name(node) for node, _ in clients)
            found = tuple(asked.get(request) for _, request in clients)
            work = Work(gpu, kernel or "copy", names, start, end, groups, bound, found)
            self.function_events.works.append(work)
            calls = {id(event): event for event in found if event is not None}
            for call in calls.values():
                part = sum(event is call for event in found) / len(found)
                call.kernels.append(Kernel(work.label, gpu, part * work.duration))
                call.shares |= len(calls) > 1

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """Return the calls of each operator together: `EventList.key_averages`."""
        return self.function_events.key_averages(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """Return all calls together."""
        return self.function_events.total_average()

    def __repr__(self) -> str:
        return repr(self.function_events) if self._done else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self._done else repr(self)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Return a table for people: `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the calls as a file that Chrome's tracing and Perfetto show.

        Parameters
        ----------
        path : path
            Of the file.
        """
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of calls for flame graphs: `EventList.export_stacks`.

        Parameters
        ----------
        path : path
            Of the file.
        metric : str, default "self_cpu_time_total"
            Which number stands behind each.
        """
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all calls."""
        return self.function_events.self_cpu_time_total


def _bytes(tensors: Any, on_gpu: bool = False) -> int:
    from math import prod

    return sum(
        prod(shape) * getattr(_C, dtype).itemsize for shape, dtype, gpu in tensors if gpu == on_gpu
    )


def _flops(name: str, x: Any, y: Any) -> int | None:
    from ..utils.flop_counter import count

    return count(name, [shape for shape, _, _ in x], [shape for shape, _, _ in y])
