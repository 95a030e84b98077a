"""Installs ``torch`` as a distribution, with the metadata that installers and libraries read."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sysconfig
from importlib.machinery import PathFinder
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from .. import __version__

__all__ = ["Record", "Refused", "add", "constraints", "remove"]

INSTALLER = "pytensorlib"
STUB = '''\
"""Here `import torch` means pytensorlib (`python -m pytensorlib --remove-alias` ends that)."""

import sys
from importlib import import_module
{gpu_as}
del sys.modules[__name__]
from pytensorlib._alias import install

install()
import_module(__name__)
'''
# Where GPUs answer as one of PyTorch's devices, unless the environment says another.
GPU_AS = """\
from os import environ

environ.setdefault("PYTENSORLIB_GPU_AS", {name!r})
if "pytensorlib" in sys.modules:
    sys.modules["pytensorlib"].wgpu.answer_as(environ["PYTENSORLIB_GPU_AS"])
"""
# What keeps pip from taking PyTorch for a library that asks for another version of torch.
CONSTRAINTS = "constraints.txt"
# Packages that PyTorch's distribution brings.
PACKAGES = ("torch", "functorch")
METADATA = f"""\
Metadata-Version: 2.1
Name: torch
Version: {__version__}
Summary: Lets `import torch` mean pytensorlib
Requires-Dist: pytensorlib
"""


class Record(Distribution):
    """The distribution ``torch``, which this package stands for."""

    files_by_name = {
        "METADATA": METADATA,
        "INSTALLER": INSTALLER + "\n",
        "top_level.txt": "\n".join([*PACKAGES, ""]),
    }

    def read_text(self, filename: str) -> str | None:
        """Return the text of one of the files of a record."""
        return self.files_by_name.get(filename)

    def locate_file(self, path: Any) -> Path:
        """Return where a file of the distribution is."""
        return Path(__file__).parents[2] / path


class Refused(Exception):
    """The environment is not one in which ``torch`` can be made to mean this package."""


def place() -> Path:
    """Return where the environment keeps its packages."""
    return Path(sysconfig.get_paths()["purelib"])


def records(folder: Path) -> list[Path]:
    """Return the records of distributions called ``torch`` in a folder."""
    found = [*folder.glob("torch-*.dist-info"), *folder.glob("torch-*.egg-info")]
    return [p for p in found if p.name.split("-")[0] == "torch"]


def is_ours(record: Path) -> bool:
    """Tell whether `add` wrote a record."""
    installer = record / "INSTALLER"
    return installer.is_file() and installer.read_text().strip() == INSTALLER


def is_stub(package: Path) -> bool:
    """Tell whether `add` wrote a package."""
    file = package / "__init__.py"
    return file.is_file() and file.read_text(encoding="utf-8").startswith(STUB.split("\n", 1)[0])


def line(name: str, data: bytes) -> str:
    """Return what RECORD says of a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def add(gpu_as: str | None = None) -> Path:
    """Make ``import torch`` mean this package in this environment; return where.

    Parameters
    ----------
    gpu_as : str, optional
        What GPUs answer as there; see `wgpu.answer_as`.

    Raises
    ------
    Refused
        PyTorch is installed, or the environment cannot be written to.
    """
    folder = place()
    for package in PACKAGES:
        found = PathFinder.find_spec(package)
        if found is None or (found.origin and is_stub(Path(found.origin).parent)):
            continue
        where = found.origin or next(iter(found.submodule_search_locations or ["?"]))
        raise Refused(
            f"PyTorch is installed ({where}): uninstall it first, or use an environment without it"
        )
    remove()
    record = f"torch-{__version__}.dist-info"
    stub = STUB.format(gpu_as=GPU_AS.format(name=gpu_as) if gpu_as else "")
    files = {f"{package}/__init__.py": stub for package in PACKAGES}
    files |= {f"{record}/{name}": text for name, text in Record.files_by_name.items()}
    files[f"{record}/{CONSTRAINTS}"] = f"torch=={__version__}\n"
    lines = [line(name, text.encode()) for name, text in files.items()]
    files[f"{record}/RECORD"] = "\n".join([*lines, f"{record}/RECORD,,"]) + "\n"
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as e:
        raise Refused(f"{folder} cannot be written to: {e.strerror}") from e
    return folder / "torch"


def constraints() -> Path:
    """Return the file that ``pip install --constraint`` wants, to leave the alias in place."""
    return place() / f"torch-{__version__}.dist-info" / CONSTRAINTS


def remove() -> list[Path]:
    """Undo `add`; return what was removed."""
    folder = place()
    removed = [record for record in records(folder) if is_ours(record)]
    if removed:
        removed += [folder / package for package in PACKAGES if is_stub(folder / package)]
    for path in removed:
        shutil.rmtree(path)
    return removed
