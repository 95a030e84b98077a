"""The profiler: the time of operators, on a schedule of steps."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from .._absent.modules import fill
from ..autograd import profiler as _profiler
from ..autograd.profiler import EventList, record_function
from ..autograd.profiler_util import write_text

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

fill(
    globals(),
    "there is no observer of executions here; profile() writes a trace.",
    "ExecutionTraceObserver",
)


class ProfilerActivity(enum.Enum):
    """What can be looked at: here the calls of operators, "CPU".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
    True
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What to do in a step.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.profiler.ProfilerAction.RECORD.value
    2
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Return False: PyTorch's library of that name is not used.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.profiler.kineto_available()
    False
    """
    return False


def supported_activities() -> set[ProfilerActivity]:
    """Return what can be looked at.

    Returns
    -------
    set of ProfilerActivity
        Only "CPU"; calls that a GPU works on are among them, with the GPU's times.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> [a.name for a in torch.profiler.supported_activities()]
    ['CPU']
    """
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return a function that says what to do in each step.

    Parameters
    ----------
    wait, warmup, active : int
        Steps of a cycle: without looking, looking and forgetting, and looking.
    repeat : int, default 0
        How many cycles; 0 means without end.
    skip_first : int, default 0
        Steps before the first cycle.
    skip_first_wait : int, default 0
        If not 0, the first cycle does not wait.

    Returns
    -------
    callable
        Takes the number of a step and returns a `ProfilerAction`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def what(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return what


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """Return a function that writes each trace to a directory, as ``on_trace_ready`` of `profile`.

    Parameters
    ----------
    dir_name : path
        Made where it is not there.
    worker_name : str, optional
        The beginning of the files' names; by default the machine and the process.
    use_gzip : bool, default False
        Whether files are compressed.

    Returns
    -------
    callable
        Takes the profile.

    Examples
    --------
    >>> import os, tempfile
    >>> import pytensorlib as torch
    >>> folder = tempfile.mkdtemp()
    >>> save = torch.profiler.tensorboard_trace_handler(folder, "me")
    >>> with torch.profiler.profile(on_trace_ready=save):
    ...     x = torch.ones(1) + 1
    >>> os.listdir(folder)[0].startswith("me.")
    True
    """

    def handle(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{end}"))

    return handle


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_default_schedule_fn = _always


class profile:
    """Notes the operators that this thread asks for, in the steps that a schedule says.

    Of operators on a GPU it also notes when the GPU worked for them, by the GPU's own clock, where
    that has one; meanwhile no kernel begins before the one before it has ended, which takes longer.
    Operators that run as one kernel share its time in equal parts, and `key_averages` has the
    kernel by their names. What `torch.graph` recorded runs as it is meanwhile.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        Not used: calls of operators are what can be looked at.
    schedule : callable, optional
        As of `schedule`; without it all is noted.
    on_trace_ready : callable, optional
        Called with the profile when there is something to be saved.
    record_shapes : bool, default False
        Whether to keep the shapes of inputs.
    profile_memory : bool, default False
        Whether to keep the bytes of new results.
    with_stack : bool, default False
        Whether to keep the Python calls at work, the innermost first: ``"train.py(12): step"``.
    with_modules : bool, default False
        Not used: the classes of the modules at work are always kept.
    with_flops : bool, default False
        Whether to count multiplications and additions.
    acc_events : bool, default False
        Whether events of earlier cycles stay.
    **kwargs
        Further options of PyTorch's; not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(3, 2)
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     y = net(torch.ones(4, 3))
    >>> prof.events()[-1].name, prof.events()[-1].input_shapes
    ('aten::addmm', [[2], [4, 3], [2, 3]])
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        acc_events: bool = False,
        **kwargs: Any,
    ) -> None:
        self.activities = set(activities) if activities else supported_activities()
        self.schedule, self.record_steps = schedule or _always, schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.options = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_flops": with_flops,
            "with_stack": with_stack,
        }
        self.step_num, self.current_action = 0, self.schedule(0)
        self.profiler: Any = None
        self._events = EventList(profile_memory=profile_memory, with_flops=with_flops)
        self._step: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, with the first step."""
        self._go_on(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End, and hand over what was noted last."""
        self._end_step()
        recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if self.current_action in recording:
            self._gather()
            self._hand_over()
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """Go on to the next step."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._go_on(before, self.current_action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _go_on(self, before: ProfilerAction, now: ProfilerAction) -> None:
        recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before is ProfilerAction.RECORD_AND_SAVE or (
            before in recording and now not in recording
        ):
            self._gather()
            self._hand_over()
        if now in recording and self.profiler is None:
            self.profiler = _profiler.profile(**self.options)  # type: ignore[arg-type]
            self.profiler.__enter__()

    def _gather(self) -> None:
        if self.profiler is not None:
            self.profiler.__exit__()
            if not self.acc_events:
                self._events.clear()
                self._events.works.clear()
            self._events.extend(self.profiler.function_events)
            self._events.works.extend(self.profiler.function_events.works)
            self.profiler = None

    def _hand_over(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Do nothing: traces have no numbers.

        Parameters
        ----------
        callback : callable
            Not used.
        """

    def events(self) -> EventList:
        """Return the calls that were noted."""
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **_: Any
    ) -> EventList:
        """Return the calls of each operator together.

        Parameters
        ----------
        group_by_input_shape : bool, default False
            Whether calls on other shapes are told apart.
        group_by_stack_n : int, default 0
            Calls from other places are told apart by so many entries of their stacks, where
            `with_stack` keeps them.
        """
        return self._events.key_averages(group_by_input_shape, group_by_stack_n)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of calls for flame graphs.

        Parameters
        ----------
        path : path
            Of the file: in each line the entries of a stack, the outermost first, and a number.
        metric : str, default "self_cpu_time_total"
            Which number, as `EventList.table` sorts by.
        """
        self._events.export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace.

        Parameters
        ----------
        key, value : str
            What is told.
        """
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value to the trace.

        Parameters
        ----------
        key : str
            What it is called.
        value : str
            JSON.
        """
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a value to the trace: `add_metadata_json`.

        Parameters
        ----------
        key : str
            What it is called.
        value : str
            JSON.
        """
        self.add_metadata_json(key, value)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the calls as a file that Chrome's tracing and Perfetto show.

        Parameters
        ----------
        path : path
            Of the file, JSON; compressed where it ends in ``.gz``.
        """
        self._events.export_chrome_trace(path)
        if self._metadata:
            import gzip

            opened = gzip.open if str(path).endswith(".gz") else open
            with opened(path, "rt") as file:
                told = json.load(file)
            write_text(path, json.dumps({**self._metadata, **told}))
