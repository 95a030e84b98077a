"""Measuring how long a statement takes."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from statistics import median
from typing import Any

import pytensorlib as pt

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Return the time, once a GPU has done what it was asked.

    Returns
    -------
    float
        Seconds since some moment.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import timer
    >>> timer() <= timer()
    True
    """
    if pt.wgpu.is_available():
        pt.wgpu.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """Languages of statements.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import Language
    >>> Language.PYTHON.value
    0
    """

    PYTHON = 0
    CPP = 1


def tidy(code: str) -> str:
    """Return a block of code without the space around it."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Measures how long a statement takes, warm and with a number of threads.

    Parameters
    ----------
    stmt : str, default "pass"
        What is measured.
    setup : str, default "pass"
        What runs before.
    global_setup : str
        Only of other languages.
    timer : callable, optional
        Gives the seconds.
    globals : dict, optional
        The names that `stmt` knows; ``torch`` is one of them.
    label, sub_label, description, env : str, optional
        What it is called, in tables: the table, the row, the column, and where it ran.
    num_threads : int, default 1
        How many threads compute.
    language : Language or str
        Python.

    Raises
    ------
    ValueError
        `stmt` is no text, or the language is unknown.
    NotImplementedError
        The language is C++.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.benchmark import Timer
    >>> found = Timer("x + 1", globals={"x": torch.ones(8)}, label="add").timeit(100)
    >>> found.label, found.number_per_run, found.median > 0
    ('add', 100, True)
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: there is no compiler for C++ here; measure Python")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply "
                "be moved to `setup`."
            )
        stmt, setup = tidy(stmt), tidy(setup)
        space = {"torch": pt} | (globals or {})
        self._timer = self._timer_cls(stmt, setup, timer=timer, globals=space)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _seconds(self, number: int) -> float:
        # Nothing takes less than a clock can tell, or none.
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return how long so many runs take.

        Parameters
        ----------
        number : int, default 1000000
            How many; a hundredth more come before.
        """
        with set_torch_threads(self._task_spec.num_threads):
            self._seconds(max(number // 100, 2))
            return self._measured(number, [self._seconds(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raise: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Raise: `blocked_autorange` chooses the number of runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: instructions are not counted here.

        Parameters
        ----------
        *args, **kwargs
            Not used.
        """
        raise NotImplementedError("collect_callgrind: run the program under valgrind yourself")

    def _block(self, min_run_time: float) -> int:
        """Return how many runs hide what the clock costs."""
        empty = median(self._seconds(0) for _ in range(5))
        number = 1
        while True:
            took = self._seconds(number)
            hidden = empty / took <= 1e-4 and took >= min_run_time / 1000
            if hidden or took > min_run_time or number * 10 > 2**31:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Return how long blocks of runs take, for some time.

        Parameters
        ----------
        callback : callable, optional
            Gets the runs and the seconds of each block.
        min_run_time : float, default 0.2
            Seconds that all blocks take, at least.
        """
        return self._blocks(min_run_time, min_run_time, None, lambda found: True, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Return how long blocks of runs take, until their times agree.

        Parameters
        ----------
        threshold : float, default 0.1
            How wide the middle half may be, as a share of the median.
        min_run_time, max_run_time : float
            Seconds that all blocks take, at least and about at most.
        callback : callable, optional
            Gets the runs and the seconds of each block.
        """

        def agree(found: Measurement) -> bool:
            return len(found.raw_times) > 3 and found.meets_confidence(threshold)

        return self._blocks(0.05, min_run_time, max_run_time, agree, callback)

    def _blocks(
        self,
        block_time: float,
        least: float,
        most: float | None,
        enough: Callable[[Measurement], bool],
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(block_time)
            while True:
                times.append(self._seconds(number))
                if callback:
                    callback(number, times[-1])
                found, total = self._measured(number, times), sum(times)
                if (total >= least and enough(found)) or (most and total > most):
                    return found
