"""The same tensors, modules and graphs may be used from several threads."""

from __future__ import annotations

from pathlib import Path

import child

HERE = Path(__file__).parents[1]


def test_threads_that_share_tensors_get_what_one_gets_and_none_crashes() -> None:
    # Half a second each; part `free-threaded` runs it for longer, without Python's lock.
    done = child.python(HERE / "threads.py", 0.5, PYTHONPATH=str(HERE.parent))
    calm = "panicked" not in done.stderr
    assert done.returncode == 0 and calm and "done with" in done.stdout, (
        f"exit {done.returncode}; last parts: {done.stdout.splitlines()[-3:]}\n"
        f"{done.stderr[-3000:]}"
    )
