"""Calls of operators that a profile noted, their averages, tables and traces."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from .. import _gpu

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]


def _written(name: str) -> Any:
    return property(lambda self: _format_time(getattr(self, name)), doc=f"`{name}` with its unit.")


class FormattedTimesMixin:
    """Times with their units as text, for classes that have them as numbers of microseconds.

    Examples
    --------
    >>> from pytensorlib.autograd.profiler_util import FormattedTimesMixin
    >>> class Call(FormattedTimesMixin):
    ...     cpu_time = 1500.0
    >>> Call().cpu_time_str
    '1.500ms'
    """

    cpu_time_str = _written("cpu_time")
    cpu_time_total_str = _written("cpu_time_total")
    self_cpu_time_total_str = _written("self_cpu_time_total")
    device_time_str = _written("device_time")
    device_time_total_str = _written("device_time_total")
    self_device_time_total_str = _written("self_device_time_total")


class Kernel(NamedTuple):
    """Work of a GPU that an operator began.

    Parameters
    ----------
    name : str
        The kernel.
    device : int
        Which GPU.
    duration : float
        Microseconds.

    Examples
    --------
    >>> from pytensorlib.autograd.profiler_util import Kernel
    >>> Kernel("add", 0, 2.0).duration
    2.0
    """

    name: str
    device: int
    duration: float


class Work(NamedTuple):
    """What a GPU did at one time, by its own clock.

    Parameters
    ----------
    device : int
        Which GPU.
    kernel : str
        The shader's file, with the function where it has several; "fused" is pointwise operators
        alone.
    names : tuple of str
        The operators that it worked for, in the order in which it computes them: several where they
        ran as one kernel.
    start, end : float
        Nanoseconds since the profile began.
    groups : int
        Workgroups.
    bound : int
        Bytes of the buffers that it could see.
    events : tuple of FunctionEvent or None
        For each operator the call that asked for it, where one did.
    """

    device: int
    kernel: str
    names: tuple[str, ...]
    start: float
    end: float
    groups: int
    bound: int
    events: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The operators that it worked for, as one text."""
        runs = [(name, len(list(run))) for name, run in groupby(self.names)]
        return ", ".join(name if n == 1 else f"{n} {name}" for name, n in runs)

    @property
    def is_fused(self) -> bool:
        """Whether several operators ran as this kernel."""
        return len(self.names) > 1

    @property
    def label(self) -> str:
        """The kernel, with the operators where they are several."""
        return f"{self.kernel}({self.name})" if self.is_fused else self.kernel

    @property
    def flops(self) -> int:
        """Multiplications and additions of the calls, of each its part in this kernel."""
        calls = {id(e): e for e in self.events if e is not None}.values()
        return sum((e.flops or 0) // len(e.kernels) for e in calls if e.kernels)

    @property
    def duration(self) -> float:
        """Microseconds."""
        return (self.end - self.start) / 1e3


class StringTable(defaultdict[str, str]):
    """Names of operators by what a record calls them: here the same.

    Examples
    --------
    >>> from pytensorlib.autograd.profiler_util import StringTable
    >>> StringTable()["add"]
    'add'
    """

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records in the order of their times.

    Parameters
    ----------
    mem_records : sequence
        The first of each has a method ``start_ns``.

    Examples
    --------
    >>> from pytensorlib.autograd.profiler_util import MemRecordsAcc
    >>> class Record:
    ...     def start_ns(self):
    ...         return 5
    >>> [len(list(MemRecordsAcc([(Record(),)]).in_interval(0, end))) for end in (4, 5)]
    [0, 1]
    """

    def __init__(self, mem_records: Sequence[Any]) -> None:
        pairs = sorted((record[0].start_ns(), i) for i, record in enumerate(mem_records))
        self._records = [mem_records[i] for _, i in pairs]
        self._starts = [start for start, _ in pairs]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """Yield the records of a time, its ends included."""
        yield from self._records[
            bisect_left(self._starts, start_ns) : bisect_right(self._starts, end_ns)
        ]


class Interval:
    """A time from one moment to another, in microseconds.

    Parameters
    ----------
    start, end : float
        The moments.
    """

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Return how long it is."""
        return self.end - self.start


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, or one range.

    Parameters
    ----------
    id : int
        Its number.
    name : str
        The operator or range.
    start_us, end_us : float
        When, since the profile began.
    thread : int
        Where.
    input_shapes : list
        Of the tensors that it read.
    cpu_memory_usage : int
        Bytes of new results.
    flops : int or None
        Multiplications and additions, where they were asked for.
    is_user_annotation : bool
        Whether it is a range.
    """

    device_type = "cpu"
    is_async = is_remote = is_legacy = False
    count = 1
    self_device_memory_usage = 0
    # Bytes of what it read and made on a GPU, and the modules at work, by their classes.
    moved = 0
    modules = ""
    # Whether other operators share a kernel with it, which moves other bytes.
    shares = False

    def __init__(
        self,
        id: int,
        name: str,
        start_us: float,
        end_us: float,
        thread: int,
        input_shapes: list[Any],
        cpu_memory_usage: int = 0,
        flops: int | None = None,
        is_user_annotation: bool = False,
    ) -> None:
        self.id, self.name, self.key, self.thread = id, name, name, thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes, self.flops = input_shapes, flops
        self.self_cpu_memory_usage = cpu_memory_usage
        self.is_user_annotation = is_user_annotation
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.stack: list[str] = []
        self.kernels: list[Kernel] = []

    @property
    def self_device_time_total(self) -> float:
        """Microseconds that GPUs worked for it, without what it contains."""
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def device_time_total(self) -> float:
        """Microseconds that GPUs worked for it."""
        return self.self_device_time_total + sum(c.device_time_total for c in self.cpu_children)

    device_time = device_time_total

    @property
    def device_memory_usage(self) -> int:
        """Bytes of new results on GPUs, with what it contains."""
        return self.self_device_memory_usage + sum(c.device_memory_usage for c in self.cpu_children)

    @property
    def cpu_time_total(self) -> float:
        """Microseconds."""
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without what it contains."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of new results, with what it contains."""
        return self.self_cpu_memory_usage + sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={_format_time(self.cpu_time)}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """All calls of an operator together.

    Parameters
    ----------
    key : str
        The operator or range.
    input_shapes : list, optional
        Where calls are told apart by them.
    """

    device_type = "cpu"

    def __init__(self, key: str, input_shapes: Any = None) -> None:
        self.key, self.input_shapes = key, input_shapes
        self.stack: list[str] = []
        self.shares = False
        self.count, self.flops, self.moved = 0, 0, 0
        self.device_time_total = self.self_device_time_total = 0.0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.is_user_annotation = False

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds of one call on GPUs, on average."""
        return self.device_time_total / self.count if self.count else 0.0

    def add(self, event: Any) -> None:
        """Add a call, or another average.

        Parameters
        ----------
        event : FunctionEvent or FunctionEventAvg
            What to add.
        """
        self.count += event.count
        self.flops += event.flops or 0
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.device_time_total += event.device_time_total
        self.self_device_time_total += event.self_device_time_total
        self.device_memory_usage += event.device_memory_usage
        self.self_device_memory_usage += event.self_device_memory_usage
        self.moved += event.moved
        self.shares |= event.shares
        self.is_user_annotation |= event.is_user_annotation

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} "
            f"self_cpu_time={_format_time(self.self_cpu_time_total)} "
            f"cpu_time={_format_time(self.cpu_time)} count={self.count}>"
        )


def _format_time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """Return which part of a time another is."""
    if not total_time_us:
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def _format_memory(size: float) -> str:
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(size) >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} B"


def _rate(amount: float, us: float, unit: float, peak: float | None) -> list[str]:
    """Return an amount in a second, and its part of the most there can be."""
    if not amount or not us:
        return ["--", "--"]
    rate = amount / us * 1e6
    return [f"{rate / unit:.3f}", f"{100 * rate / peak:.1f}%" if peak else "--"]


def _peaks(works: list[Work]) -> tuple[float, float] | None:
    """Return bytes and operations in a second, at most, of the GPU that worked first."""
    from .. import wgpu

    return wgpu.peaks(works[0].device)


def _told(event: Any) -> dict[str, Any]:
    """Return what a trace tells of a call."""
    told = {
        "Input Dims": event.input_shapes,
        "Module Hierarchy": event.modules,
        "bytes": event.moved,
        "flops": event.flops,
        "Call stack": ";".join(event.stack),
    }
    return {name: value for name, value in told.items() if value}


def _told_of(work: Work) -> dict[str, Any]:
    """Return what a trace tells of the calls that a kernel worked for."""
    if not work.is_fused:
        (event,) = work.events or (None,)
        return _told(event) if event else {}
    told = {"ops": list(work.names), "bytes": work.bound, "flops": work.flops}
    modules = dict.fromkeys(e.modules for e in work.events if e and e.modules)
    if modules:
        told["Module Hierarchy"] = ", ".join(modules)
    return told


def _sorted_by(event: Any, column: str) -> Any:
    """Return the number or text of a column, by its name here or in PyTorch."""
    for other in ("cuda", "xpu", "privateuse1"):
        column = column.replace(other, "device")
    value = getattr(event, column)
    return 0 if value is None else value


def _end(text: str, width: int) -> str:
    """Return a text, or the end of it where it is longer."""
    return text if len(text) <= width else "..." + text[3 - width :]


class EventList(list):
    """Calls, or averages of calls.

    Parameters
    ----------
    *args
        As of a list.
    profile_memory, with_flops : bool
        Whether tables have these columns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.profiler.profile() as prof:
    ...     x = torch.ones(2) + 1
    >>> prof.key_averages().table(sort_by="cpu_time_total").splitlines()[1].split()[:2]
    ['Name', 'Self']
    """

    def __init__(self, *args: Any, profile_memory: bool = False, with_flops: bool = False) -> None:
        super().__init__(*args)
        self._memory, self._flops = profile_memory, with_flops
        self.works: list[Work] = []

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all calls."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, **_: Any
    ) -> EventList:
        """Return the calls of each operator together.

        Parameters
        ----------
        group_by_input_shapes : bool, default False
            Whether calls on other shapes are told apart.
        group_by_stack_n : int, default 0
            Calls from other places are told apart by so many entries of their stacks.

        Returns
        -------
        EventList
            One for each operator and range, and one for each kind of kernel of a GPU that several
            operators ran as; its name tells them.
        """
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else None
            stack = event.stack[:group_by_stack_n]
            key = (event.key, str(shapes), *stack)
            if key not in found:
                found[key] = FunctionEventAvg(event.key, shapes)
                found[key].stack = stack
            found[key].add(event)
        for work in self.works:
            if work.is_fused:
                kernel = found.setdefault((work.label,), FunctionEventAvg(work.label))
                kernel.device_type = _gpu.name()
                kernel.count += 1
                kernel.device_time_total += work.duration
                kernel.self_device_time_total += work.duration
                kernel.moved += work.bound
                kernel.flops += work.flops
        averages = EventList(found.values(), profile_memory=self._memory, with_flops=self._flops)
        averages.works = self.works
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Return all calls together."""
        total = FunctionEventAvg("Total")
        for event in self:
            # The time of a kernel is that of the operators that ran as it.
            if event.device_type == "cpu":
                total.add(event)
        return total

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of calls as lines that flame graphs are drawn from.

        Parameters
        ----------
        path : path
            Of the file: in each line the entries of a stack, the outermost first, and a number.
        metric : str, default "self_cpu_time_total"
            Which number, as `table` sorts by; whole microseconds or bytes.
        """
        spaces = str.maketrans(" ;\t\n", "____")
        lines = []
        for event in self:
            value = int(_sorted_by(event, metric))
            if event.stack and value > 0:
                stack = ";".join(entry.translate(spaces) for entry in reversed(event.stack))
                lines.append(f"{stack} {value}\n")
        write_text(path, "".join(lines))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        **_: Any,
    ) -> str:
        """Return a table for people.

        Where GPUs worked, it tells how long; how many bytes of operands and results that is in a
        second, and with flops how many operations, beside the most that the GPU was measured to do.

        Parameters
        ----------
        sort_by : str, optional
            A column: "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
            "self_cpu_memory_usage", the same with "device" (or "cuda", "xpu", "privateuse1") for
            "cpu", "flops" or "count"; the largest come first.
        row_limit : int, default 100
            At most so many rows; -1 means all.
        max_src_column_width, max_name_column_width, max_shapes_column_width : int
            Longer texts are cut; places in the program at their beginning.
        header : str, optional
            Stands above.
        top_level_events_only : bool, default False
            Leave out what is within another call.

        Raises
        ------
        AttributeError
            There is no column of that name.
        """
        rows = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None))]
        if sort_by is not None:
            rows.sort(key=lambda e: _sorted_by(e, sort_by), reverse=True)
        total = self.self_cpu_time_total
        shapes = any(e.input_shapes for e in rows if isinstance(e, FunctionEventAvg))
        # As PyTorch names the columns where a GPU answers as one of its devices.
        gpu = _gpu.title()
        heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        heads += ["CPU Mem", "Self CPU Mem"] if self._memory else []
        peaks = _peaks(self.works) if self.works else None
        heads += [f"Self {gpu}", f"{gpu} total", "GB/s", "of peak"] if self.works else []
        heads += ["TFLOP/s", "of peak"] if self.works and self._flops else []
        heads += ["# of Calls"]
        heads += ["Input Shapes"] if shapes else []
        heads += ["Total FLOPs"] if self._flops else []
        stacks = any(e.stack for e in rows if isinstance(e, FunctionEventAvg))
        heads += ["Source Location"] if stacks else []
        cells = [heads]
        for e in rows[: None if row_limit < 0 else row_limit]:
            part = 100 / total if total else 0.0
            cell = [e.key[:max_name_column_width]]
            cell += [f"{e.self_cpu_time_total * part:.2f}%", _format_time(e.self_cpu_time_total)]
            cell += [
                f"{e.cpu_time_total * part:.2f}%",
                _format_time(e.cpu_time_total),
                _format_time(e.cpu_time),
            ]
            if self._memory:
                cell += [
                    _format_memory(e.cpu_memory_usage),
                    _format_memory(e.self_cpu_memory_usage),
                ]
            if self.works:
                cell += [_format_time(e.self_device_time_total), _format_time(e.device_time_total)]
                # What moves for an operator that shares a kernel is told with the kernel.
                moved, flops = (0, 0) if e.shares else (e.moved, e.flops or 0)
                cell += _rate(moved, e.self_device_time_total, 1e9, peaks and peaks[0])
                if self._flops:
                    cell += _rate(flops, e.self_device_time_total, 1e12, peaks and peaks[1])
            cell += [str(e.count)]
            cell += [str(e.input_shapes)[:max_shapes_column_width]] if shapes else []
            cell += [str(e.flops or "--")] if self._flops else []
            places = [_end(entry, max_src_column_width) for entry in e.stack] if stacks else []
            cells.append([*cell, *(places[:1] or [""])] if stacks else cell)
            cells += [[*[""] * len(cell), place] for place in places[1:]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
        line = "  ".join("-" * w for w in widths)
        text = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        above = ["=" * len(line), header] if header else []
        below = [f"Self CPU time total: {_format_time(total)}"]
        if self.works:
            below += [f"Self {gpu} time total: {_format_time(sum(w.duration for w in self.works))}"]
        if peaks:
            below += [f"Peaks: {peaks[0] / 1e9:.1f} GB/s, {peaks[1] / 1e12:.3f} TFLOP/s"]
        below += [""]
        return "\n".join([*above, line, text[0], line, *text[1:], line, *below])

    def export_chrome_trace(self, path: Any) -> None:
        """Write the calls as a file that Chrome's tracing and Perfetto show.

        Parameters
        ----------
        path : path
            Of the file, JSON; compressed where it ends in ``.gz``.
        """
        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
                "name": e.name,
                "pid": 0,
                "tid": e.thread,
                "ts": e.time_range.start,
                "dur": e.cpu_time_total,
                "args": _told(e),
            }
            for e in self
        ]
        events += [
            {
                "ph": "X",
                "cat": "kernel",
                "name": w.label,
                "pid": f"{_gpu.name()}:{w.device}",
                "tid": 0,
                "ts": w.start / 1e3,
                "dur": w.duration,
                "args": {
                    "op": w.name,
                    "workgroups": w.groups,
                    "bytes bound": w.bound,
                    **_told_of(w),
                },
            }
            for w in self.works
        ]
        write_text(path, json.dumps({"schemaVersion": 1, "traceEvents": events}))

    def __str__(self) -> str:
        return self.table()


def write_text(path: Any, text: str) -> None:
    """Write a file, compressed where its name ends in ``.gz``."""
    if str(path).endswith(".gz"):
        import gzip

        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)
