"""Tables of measurements."""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

BOLD, END = "\033[1m", "\033[0m"
BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
GAP = "  |  "


class Colorize(enum.Enum):
    """What colours compare.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import Colorize
    >>> Colorize.ROWWISE.value
    'rowwise'
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def coloured(text: str, value: float, best: float) -> str:
    """Return a cell in the colour of how much slower it is than the best."""
    if value <= best * 1.01 or value <= best + 100e-9:
        return BEST + BOLD + text + END * 2
    if value <= best * 1.1:
        return GOOD + BOLD + text + END * 2
    if value >= best * 5:
        return VERY_BAD + BOLD + text + END * 2
    return BAD + text + END * 2 if value >= best * 2 else text


class Compare:
    """A table of measurements: their labels name tables, sub-labels rows, descriptions columns.

    Parameters
    ----------
    results : list of Measurement
        What is shown; those of one task together.

    Raises
    ------
    ValueError
        Something is no measurement.

    Examples
    --------
    >>> from pytensorlib.utils.benchmark import Compare, Measurement, TaskSpec
    >>> task = TaskSpec("x + 1", "", label="add", description="ours")
    >>> print(Compare([Measurement(1, [0.0015], task)]))
    [------ add -------]
                 |  ours
    1 threads: ---------
          x + 1  |  1.5
    <BLANKLINE>
    Times are in milliseconds (ms).
    <BLANKLINE>
    """

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False
        self._colors = Colorize.NONE

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Add measurements.

        Parameters
        ----------
        results : list of Measurement
            What is shown, too.
        """
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Show no more figures than the times agree on."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show in colours what is quick and slow.

        Parameters
        ----------
        rowwise : bool, default False
            Compare rows instead of columns.
        """
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that differ much."""
        self._warn = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: defaultdict[Any, list[Measurement]] = defaultdict(list)
        for m in Measurement.merge(self._results):
            groups[m.label].append(m)
        return "\n".join(self._table(label, group) for label, group in groups.items())

    def _column(self, found: list[Measurement | None], scale: float, warns: bool) -> Any:
        """Return what writes the times of a column, all equally wide."""
        digits = [(math.ceil(math.log10(m.median / scale)), m) for m in found if m is not None]
        decimals = 1
        if self._trim:
            decimals = min(max(m.significant_figures - d, 0) for d, m in digits)
        width = max(d for d, _ in digits) + decimals + (1 if decimals else 0)

        def write(m: Measurement | None) -> str:
            value = 1.0 if m is None else m.median / scale
            if m is not None and self._trim:
                value = trim_sigfig(value, m.significant_figures)
            mark = f" (! {m.iqr / m.median * 100:.0f}%)" if m and warns and m.has_warnings else ""
            text = f"{value:>{width}.{decimals}f}{mark:>{7 if warns else 0}}"
            return " " * len(text) if m is None else text

        return write

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        rows = ordered_unique((m.num_threads, m.env, m.as_row_name) for m in results)
        rows.sort(key=lambda row: (row[0], row[1] or ""))
        columns = ordered_unique(m.description for m in results)
        at = {(m.num_threads, m.env, m.as_row_name, m.description): m for m in results}
        cells = [[at.get((*row, column)) for column in columns] for row in rows]
        envs = {m.env for m in results}
        room = max(len(str(e)) for e in envs) if len(envs) > 1 else 0
        warns = self._warn and any(m.has_warnings for m in results)
        writers = [self._column([r[j] for r in cells], scale, warns) for j in range(len(columns))]
        before: Any = (None, None)
        texts = [["", *(c or "" for c in columns)]]
        for (threads, env, name), row in zip(rows, cells, strict=True):
            shown = f"({env})" if room and (threads, env) != before else ""
            before = threads, env
            head = "  " + shown.ljust(room + 4) + name
            texts.append([head, *(write(m) for write, m in zip(writers, row, strict=True))])
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = [GAP.join(t.center(w) for t, w in zip(texts[0], widths, strict=True))]
        whole, last = len(lines[0]), None
        for (threads, _, _), text, row in zip(rows, texts[1:], cells, strict=True):
            if threads != last:
                lines.append(f"{threads} threads: ".ljust(whole, "-"))
                last = threads
            beside = [r for key, r in zip(rows, cells, strict=True) if key[0] == threads]
            line = [text[0].ljust(widths[0])]
            for j, m in enumerate(row):
                cell = text[j + 1].center(widths[j + 1])
                if m is not None and self._colors != Colorize.NONE:
                    others = row if self._colors == Colorize.ROWWISE else [r[j] for r in beside]
                    cell = coloured(cell, m.median, min(o.median for o in others if o is not None))
                line.append(cell)
            lines.append(GAP.join(line))
        head = "[" + f" {label or ''} ".center(whole - 2, "-") + "]"
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        below = f"\nTimes are in {unit_to_english(unit)}s ({unit}).\n{note if warns else ''}"
        return "\n".join([head, *lines, below])
