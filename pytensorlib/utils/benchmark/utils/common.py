"""A measurement, and what was measured."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from statistics import median, pstdev
from typing import Any

import pytensorlib as pt

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

MOST_FIGURES = 4
# Seconds by which a clock may be off.
SURE = 25e-9
# From which share of the median on the middle half of all times is wide.
WIDE, VERY_WIDE = 0.1, 0.25


@dataclass(frozen=True)
class TaskSpec:
    """What is measured.

    Parameters
    ----------
    stmt, setup : str
        What runs many times, and what runs before.
    global_setup : str
        Of other languages.
    label, sub_label, description, env : str, optional
        What it is called, in tables: the table, the row, the column, and where it ran.
    num_threads : int, default 1
        How many threads compute.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import TaskSpec
    >>> TaskSpec("x + 1", "", label="add", sub_label="small").title
    'add: small'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """What it is called."""
        sub = self.sub_label
        if self.label is not None or "\n" not in self.stmt:
            return (self.stmt if self.label is None else self.label) + (f": {sub}" if sub else "")
        return f"stmt:{f' ({sub})' if sub else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Return what runs before, as text for people."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return all of it, as text for people."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{p}\n" if "\n" in p else p for p in parts if p)


FIELDS = set(TaskSpec.__dataclass_fields__)


def quantile(values: list[float], q: float) -> float:
    """Return a quantile of sorted numbers, between two of them where it falls there."""
    at = q * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


@dataclass(repr=False)
class Measurement:
    """How long a statement took, once or several times.

    What `TaskSpec` has is found here, too.

    Parameters
    ----------
    number_per_run : int
        How often it ran for each time.
    raw_times : list of float
        Seconds.
    task_spec : TaskSpec
        What was measured.
    metadata : dict, optional
        Anything.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import Measurement, TaskSpec
    >>> found = Measurement(10, [2e-5, 3e-5, 4e-5], TaskSpec("x + 1", "", label="add"))
    >>> found.label, round(found.median * 1e6, 3)
    ('add', 3.0)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    @cached_property
    def _sorted(self) -> list[float]:
        return sorted(self.times)

    @property
    def median(self) -> float:
        """The median of one run's seconds."""
        return median(self._sorted)

    @property
    def mean(self) -> float:
        """The mean of one run's seconds."""
        return sum(self._sorted) / len(self._sorted)

    @property
    def iqr(self) -> float:
        """How wide the middle half of one run's seconds is."""
        return quantile(self._sorted, 0.75) - quantile(self._sorted, 0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median say something: an estimate from the middle half."""
        n = len(self._sorted)
        middle = self._sorted[n // 4 : math.ceil(3 * n / 4)]
        # 1.645 standard deviations hold nine in ten.
        unsure = max(1.645 * pstdev(middle) / math.sqrt(len(middle)), SURE)
        return min(max(math.floor(math.log10(self.median / unsure)), 1), MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times differ much."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = WIDE) -> bool:
        """Return whether the middle half is narrower than a share of the median.

        Parameters
        ----------
        threshold : float, default 0.1
            The share.
        """
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What it is called."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What its row is called in tables."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        times, number, threads = self._sorted, self.number_per_run, self.num_threads
        unit, scale = select_unit(self.median)
        n = len(times)
        many = "s" if n > 1 else ""
        each = "per measurement," if n > 1 else ","
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}")
        if n >= 4:
            low, high = (quantile(times, q) / scale for q in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {n} measurement{many}, {number} runs {each} {threads} "
            f"thread{'s' if threads > 1 else ''}"
        )
        if self.has_warnings:
            sure = self.meets_confidence(VERY_WIDE)
            lines += [
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the "
                "median measurement.",
                "           This could indicate system fluctuation."
                if sure
                else "           This suggests significant environmental influence.",
            ]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return one measurement for each task, with all its times.

        Parameters
        ----------
        measurements : iterable of Measurement
            Any.
        """
        groups: defaultdict[TaskSpec, list[float]] = defaultdict(list)
        for m in measurements:
            groups[m.task_spec] += m.times
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which a time is shown.

    Parameters
    ----------
    t : float
        Seconds.

    Returns
    -------
    tuple
        Its name, and its seconds.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import select_unit
    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    power = math.floor(math.log10(t) / 3) if t > 0 else 0
    name = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return name, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[name]


def unit_to_english(u: str) -> str:
    """Return the word for a unit.

    Parameters
    ----------
    u : str
        As `select_unit` names it.

    Returns
    -------
    str
        In the singular.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import unit_to_english
    >>> unit_to_english("us")
    'microsecond'
    """
    words = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
    return words[u]


def trim_sigfig(x: float, n: int) -> float:
    """Round a number to figures.

    Parameters
    ----------
    x : float
        Not zero.
    n : int
        How many figures are kept.

    Returns
    -------
    float
        With zeros for the others.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import trim_sigfig
    >>> trim_sigfig(3.14159, 2), trim_sigfig(1284.0, 2)
    (3.1, 1300.0)
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    return round(x, n - math.ceil(math.log10(abs(x))))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return each element once, in the order in which they come first.

    Parameters
    ----------
    elements : iterable
        That can be hashed.

    Returns
    -------
    list
        Without repetitions.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import ordered_unique
    >>> ordered_unique("banana")
    ['b', 'a', 'n']
    """
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute with so many threads within a ``with`` block.

    Parameters
    ----------
    n : int
        How many.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.benchmark import set_torch_threads
    >>> with set_torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = pt.get_num_threads()
    pt.set_num_threads(n)
    try:
        yield
    finally:
        pt.set_num_threads(before)
