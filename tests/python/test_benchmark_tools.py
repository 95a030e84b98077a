"""Measurements, tables of them, and what tells of a machine; Sobol sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib.utils.benchmark import (
    Compare,
    Measurement,
    TaskSpec,
    Timer,
    ordered_unique,
    select_unit,
    trim_sigfig,
)


def measured(
    label: str, sub: str | None, column: str, times: list[float], threads: int = 1, env: Any = None
) -> Measurement:
    task = TaskSpec("x+1", "", "", label, sub, column, env, threads)
    return Measurement(1000, [t * 1000 for t in times], task)


FOUND = [
    measured("add", "[10]", "base", [1.0e-6, 1.1e-6, 1.2e-6, 1.1e-6]),
    measured("add", "[10]", "new", [2.0e-6, 2.1e-6, 2.0e-6, 2.0e-6]),
    measured("add", "[100]", "base", [1.2e-3, 1.3e-3, 1.25e-3]),
    measured("add", "[100]", "new", [1.0e-3, 1.1e-3, 1.05e-3], threads=4),
]
# What PyTorch 2.13 prints of these.
PLAIN = """\
[------------- add -------------]
             |   base   |   new  
1 threads: ----------------------
      [10]   |     1.1  |     2.0
      [100]  |  1250.0  |        
4 threads: ----------------------
      [100]  |          |  1050.0

Times are in microseconds (us).
"""  # noqa: W291
TRIMMED = """\
[----------- add -----------]
             |  base  |  new 
1 threads: ------------------
      [10]   |     1  |     2
      [100]  |  1000  |      
4 threads: ------------------
      [100]  |        |  1000

Times are in microseconds (us).
"""  # noqa: W291
ENVIRONMENTS = """\
[------- mul -------]
              |  base
1 threads: ----------
  (new)  x+1  |  1.1 
  (old)  x+1  |  1.1 

Times are in seconds (s).
"""  # noqa: W291


def test_table_is_pytorchs() -> None:
    table = Compare(FOUND)
    assert str(table) == PLAIN
    table.colorize()
    best, slow = "\x1b[92m\x1b[1m", "\x1b[31m\x1b[1m"
    assert f"{best}   1.1\x1b[0m\x1b[0m" in str(table)
    assert f"{slow}1250.0\x1b[0m\x1b[0m" in str(table)
    table.colorize(rowwise=True)
    assert f"{best}1250.0\x1b[0m\x1b[0m" in str(table)
    table = Compare(FOUND)
    table.trim_significant_figures()
    assert str(table) == TRIMMED
    two = [measured("mul", None, "base", [1.0, 1.1], env=env) for env in ("new", "old")]
    assert str(Compare(two)) == ENVIRONMENTS
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1])  # type: ignore[list-item]


def test_table_marks_times_that_differ() -> None:
    table = Compare([measured("add", "a", "base", [1e-6, 2e-6, 3e-6, 9e-6])])
    table.highlight_warnings()
    assert "2.5 (! 110%)" in str(table)
    assert "high variance" in str(table)


def test_measurement_tells_its_times() -> None:
    one = FOUND[0]
    assert one.title == "add: [10]"
    assert one.median == pytest.approx(1.1e-6)
    assert one.iqr == pytest.approx(0.05e-6)
    assert one.significant_figures == 1
    text = "Median: 1.10 us\n  IQR:    0.05 us (1.08 to 1.12)\n  4 measurements, 1000 runs"
    assert text in repr(one)
    (both,) = Measurement.merge([one, one])
    assert len(both.times) == 8
    assert both.number_per_run == 1
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = one.nothing


def test_small_helpers() -> None:
    assert [select_unit(t)[0] for t in (5e-9, 5e-6, 5e-3, 5.0)] == ["ns", "us", "ms", "s"]
    assert trim_sigfig(1284.0, 3) == 1280.0
    assert trim_sigfig(0.012345, 2) == 0.012
    assert ordered_unique([3, 1, 3]) == [3, 1]


def test_timer_measures_with_the_threads_it_is_given() -> None:
    threads: list[int] = []
    note: Callable[[], None] = lambda: threads.append(torch.get_num_threads())  # noqa: E731
    before = torch.get_num_threads()
    timer = Timer("note()", "torch.ones(1)", "", perf_counter, {"note": note}, num_threads=1)
    assert timer.timeit(10).number_per_run == 10
    assert set(threads) == {1}
    assert torch.get_num_threads() == before
    blocks: list[int] = []
    found = timer.blocked_autorange(lambda n, t: blocks.append(n), min_run_time=0.002)
    assert len(found.raw_times) == len(blocks)
    assert sum(found.raw_times) >= 0.002
    assert timer.adaptive_autorange(10.0, min_run_time=0.0).number_per_run >= 1
    for call in (timer.repeat, timer.autorange, timer.collect_callgrind):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(NotImplementedError, match=r"C\+\+"):
        Timer("1;", language="cpp")
    with pytest.raises(ValueError, match="Invalid language"):
        Timer("1", language="rust")
    with pytest.raises(ValueError, match="only a `str`"):
        Timer(print)  # type: ignore[arg-type]


def test_machine_is_described() -> None:
    from pytensorlib.utils import collect_env

    found = collect_env.get_env_info()
    assert found.torch_version == torch.__version__
    assert "cores" in found.cpu_info
    text = collect_env.pretty_str(found)
    assert f"PyTorch version: {torch.__version__}" in text
    assert collect_env.run([sys.executable, "-c", "import sys; sys.exit(3)"]) == (3, "", "")
    assert collect_env.run(["no-such-program-anywhere"])[0] == 127


# Recorded from PyTorch 2.13, as integers of 30 bits.
PLAIN_POINTS = [
    [939524096, 939524096, 134217728, 939524096, 402653184],
    [671088640, 134217728, 939524096, 134217728, 134217728],
]
SCRAMBLED = [
    [214182640, 183537056, 804615872],
    [743252992, 763961850, 525950751],
    [913270153, 318118174, 846087720],
]


def test_sobol_points_are_pytorchs() -> None:
    engine = torch.quasirandom.SobolEngine(1024)
    points = engine.fast_forward(5).draw(2, dtype=torch.float64)
    columns = [0, 1, 2, 500, 1023]
    # PyTorch drew these as float32, which holds them exactly.
    assert (points[:, columns] * 2**30).long().tolist() == PLAIN_POINTS
    mixed = torch.quasirandom.SobolEngine(3, scramble=True, seed=7)
    first = mixed.draw(1, dtype=torch.float64) * 2**30
    # PyTorch rounds the first one to float32 in any case.
    assert first.tolist()[0] == pytest.approx(SCRAMBLED[0], rel=2**-24)
    assert (mixed.draw(2, dtype=torch.float64) * 2**30).long().tolist() == SCRAMBLED[1:]
    assert repr(mixed) == "SobolEngine(dimension=3, scramble=True, seed=7)"
    mixed.reset()
    assert torch.equal(mixed.draw(1, dtype=torch.float64) * 2**30, first)


def test_sobol_points_fill_every_box_once() -> None:
    engine = torch.quasirandom.SobolEngine(2, scramble=True, seed=1)
    points = engine.draw_base2(6)
    for across, up in ((64, 1), (8, 8), (1, 64), (16, 4)):
        box = (points * torch.tensor([across, up])).long()
        assert len(set(map(tuple, box.tolist()))) == 64
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(4)
    with pytest.raises(ValueError, match=r"\[1, 1024\]"):
        torch.quasirandom.SobolEngine(1025)
    out = torch.empty(0)
    assert engine.draw(3, out=out) is out
    assert out.shape == (3, 2)
