"""Programs in a Python of their own: what is of a whole process, or of its environment.

A start takes half a second and more, a GPU's adapter as much again: what several tests read of one
program is printed by one start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def python(
    *words: object, cwd: str | Path | None = None, timeout: float = 300, **env: str | None
) -> subprocess.CompletedProcess[str]:
    """Run Python with these words of its command line, whether or not it succeeds.

    Variables are added to the environment of the tests; one that is None is not in it.
    """
    given = {k: v for k, v in (os.environ | env).items() if v is not None}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env=given, capture_output=True, text=True, timeout=timeout, check=False
    )


def run(code: str, *words: object, **env: str | None) -> str:
    """Run a program, which has to succeed, with options of Python's; return what it prints."""
    done = python(*words, "-c", textwrap.dedent(code), **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_as_torch(code: str, *words: object, **env: str | None) -> str:
    """Run a program in which `torch` is this package; return what it prints."""
    return run(code, *words, "-m", "pytensorlib", **env)
