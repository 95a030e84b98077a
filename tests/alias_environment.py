"""An environment of Python in which the alias `torch` is installed."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import numpy as np

import pytensorlib

PACKAGE = Path(pytensorlib.__file__).parent.parent
NUMPY = Path(np.__file__).parent.parent


class Environment:
    """A Python environment without pip in which pytensorlib is found, and NumPy."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        self.python = folder / "bin/python"
        self.packages = next(folder.glob("lib/python*/site-packages"))
        # NumPy alone: what else is installed beside it may be PyTorch.
        for part in NUMPY.glob("numpy*"):
            (self.packages / part.name).symlink_to(part)
        (self.packages / "here.pth").write_text(f"{PACKAGE}\n")

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        return subprocess.run(
            [str(self.python), *args],
            capture_output=True, text=True, check=False, timeout=120, env=clean, cwd="/",
        )  # fmt: skip

    def files(self) -> set[str]:
        """Return every file there is, but compiled ones."""
        found = {str(p.relative_to(self.packages)) for p in self.packages.rglob("*")}
        return {name for name in found if "__pycache__" not in name}
