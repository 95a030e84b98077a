"""``python -m pytensorlib check script.py``: which names of a script are not here.

The script is read, not run. Names are followed from its imports: ``nn.Linear`` where it says
``from torch import nn``; and from names that it gives to modules: ``aten = torch.ops.aten``.
Methods of values (``x.sum()``) are not looked at: what ``x`` is shows in a run.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import importlib.util
import inspect
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .._ops import ops
from . import above as _above
from . import reasons, why

__all__ = ["Found", "check", "main"]

ROOTS = ("torch", "pytensorlib")
# Libraries that hold code compiled for CUDA or for PyTorch's own binary interface.
COMPILED = {"apex", "bitsandbytes", "flash_attn", "triton", "xformers"}
# Namespaces of operators that PyTorch has without any library.
SPACES = """_c10d_functional aten c10d fsdp higher_order inductor mkl mkldnn onednn prim prims
    prepacked profiler quantized rngprims sparse static_runtime symm_mem""".split()
LIBRARY = (
    "it loads a library compiled for PyTorch, of which nothing runs here; nearest: "
    "torch.library.custom_op makes an operator of a Python function"
)
# What other packages do here: the module, the package, and how to get it.
NEEDS = {
    "utils.tensorboard": ("tensorboardX", "pip install tensorboardX"),
    "distributed": ("mpi4py", "pip install 'pytensorlib[distributed]'"),
}
# Names that only tensors have: elsewhere `x.index` or `x.name` means something else.
PLAIN = {"index", "name", "resize", "volatile", "reinforce", "resize_as"}
GUARDS = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"}


class Found(NamedTuple):
    """A name of a script that is not here.

    Parameters
    ----------
    line : int
        Where it stands first.
    name : str
        The whole name, from ``torch`` on.
    reason : str
        Why it is not here and what is nearest.
    guarded : bool
        Whether the script is prepared for that: it stands in a ``try`` that catches the error.

    Examples
    --------
    >>> from pytensorlib._absent.check import check
    >>> check("import torch")
    []
    """

    line: int
    name: str
    reason: str
    guarded: bool


def _member(place: Any, path: str, name: str) -> Any:
    """Return what a module or class has under a name.

    Raises
    ------
    AttributeError
        It has none.
    """
    try:
        return (
            inspect.getattr_static(place, name) if inspect.isclass(place) else getattr(place, name)
        )
    except (AttributeError, ImportError):
        if not isinstance(place, ModuleType) or name.startswith("__"):
            raise AttributeError(name) from None
    try:
        return importlib.import_module(f"pytensorlib{path.removeprefix('torch')}.{name}")
    except ImportError:
        raise AttributeError(name) from None


def _missing_operator(names: list[str], own: set[str]) -> tuple[str, str] | None:
    """Follow a name below `torch.ops` or `torch.classes`; as `_missing` does."""
    root, *names = names
    if names[:1] == ["load_library"]:
        return f"torch.{root}.load_library", LIBRARY
    if not names or names[0] in own or hasattr(type(getattr(_torch(), root)), names[0]):
        return None  # of the script itself
    full = ".".join(["torch", root, *names[:2]])
    if root == "classes":
        return full, "classes of C++ are not here"
    if names[0] not in SPACES:
        return full, (
            f"operators of {names[0]!r} come with a library; those compiled for PyTorch never run "
            "here, those in Python do"
        )
    if len(names) < 2:
        return None
    space = getattr(ops, names[0])
    try:
        getattr(space, names[1])
    except AttributeError as e:
        return full, str(e).rpartition(": ")[2]
    return None


def _torch() -> ModuleType:
    return importlib.import_module("pytensorlib")


def _missing(names: list[str], own: set[str]) -> tuple[str, str] | None:
    """Follow a dotted name; return the part that is not here and what to say, or None."""
    if names[0] in ("ops", "classes") and len(names) > 1:
        return _missing_operator(names, own)
    place: Any = _torch()
    path = "torch"
    for name in names:
        if not (isinstance(place, ModuleType) or inspect.isclass(place)):
            return None  # a value: what it has depends on the run
        try:
            place = _member(place, path, name)
        except AttributeError:
            full = f"{path}.{name}"
            near = difflib.get_close_matches(name, [n for n in dir(place) if n[0] != "_"], 3)
            guess = f"; did you mean {', '.join(near)}?" if near else ""
            return full, why(full) or f"{path} has no {name} here{guess}"
        path += f".{name}"
    return None


def _dotted(node: ast.expr) -> tuple[list[str], str]:
    """Return ``["b", "c"], "a"`` for ``a.b.c``; "" for what begins with no name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return names[::-1], node.id if isinstance(node, ast.Name) else ""


class _Reader(ast.NodeVisitor):
    """Collects the names of torch that a program mentions."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}  # a name of the script, and what of torch it means
        self.used: list[tuple[int, list[str], bool]] = []
        self.members: list[tuple[int, str]] = []
        self.packages: dict[str, int] = {}
        self.cuda: int | None = None
        self.spaces: set[str] = set()  # of operators that the program defines
        self.once: set[str] = set()  # names that are given a value in one place alone
        self.caught: list[set[str]] = []  # errors that the statements around catch

    def use(self, line: int, names: list[str]) -> None:
        """Note one name."""
        if names and "*" not in names:
            expected = GUARDS | {"load_library": {"OSError"}}.get(names[-1], set())
            expected |= {"classes": {"RuntimeError"}}.get(names[0], set())
            self.used.append((line, names, any(expected & errors for errors in self.caught)))

    def visit_Import(self, node: ast.Import) -> None:
        """Note ``import torch.nn as nn``."""
        for alias in node.names:
            root, *rest = alias.name.split(".")
            if root not in ROOTS:
                self.packages.setdefault(root, node.lineno)
                continue
            self.known[alias.asname or root] = rest if alias.asname else []
            self.use(node.lineno, rest)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note ``from torch import nn``."""
        root, *rest = (node.module or "").split(".")
        if node.level or root not in ROOTS:
            if root and not node.level:
                self.packages.setdefault(root, node.lineno)
            return
        self.use(node.lineno, rest)
        for alias in node.names:
            self.known[alias.asname or alias.name] = [*rest, alias.name]
            self.use(node.lineno, [*rest, alias.name])

    def visit_Try(self, node: ast.Try) -> None:
        """Note that names in the body may be missing, where the error is caught."""
        caught = {
            getattr(kind, "id", "Exception")
            for handler in node.handlers
            for kind in getattr(handler.type, "elts", [handler.type])
        }
        self.caught.append(caught)
        for child in node.body:
            self.visit(child)
        self.caught.pop()
        for other in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(other)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note ``nn.functional.relu`` once, as a whole."""
        names: list[str] = []
        place: ast.expr = node
        while isinstance(place, ast.Attribute):
            names.append(place.attr)
            place = place.value
        if isinstance(place, ast.Name) and place.id in self.known:
            self.use(node.lineno, [*self.known[place.id], *names[::-1]])
            return
        self.members += [(node.lineno, name) for name in names]
        self.visit(place)

    def visit_Call(self, node: ast.Call) -> None:
        """Note ``x.cuda()`` and ``Library("mine", "DEF")``."""
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called == "Library" and node.args and isinstance(node.args[0], ast.Constant):
            self.spaces.add(str(node.args[0].value))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            self.cuda = self.cuda or node.lineno
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Note "cuda" and "cuda:1", and "mine::operator"."""
        if not isinstance(node.value, str):
            return
        if node.value.partition(":")[0] == "cuda":
            self.cuda = self.cuda or node.lineno
        space, colons, _ = node.value.partition("::")
        if colons and space.isidentifier():
            self.spaces.add(space)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Note ``aten = torch.ops.aten``, where that name has no other value."""
        self.generic_visit(node)
        names, place = _dotted(node.value)
        target = node.targets[0]
        if place in self.known and names and isinstance(target, ast.Name):
            if len(node.targets) == 1 and target.id in self.once:
                self.known[target.id] = [*self.known[place], *names]


def _read(source: str, filename: str) -> _Reader:
    reader, tree = _Reader(), ast.parse(source, filename)
    bound = Counter(
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    )
    reader.once = {name for name, times in bound.items() if times == 1}
    reader.visit(tree)
    return reader


def check(source: str, filename: str = "<string>") -> list[Found]:
    r"""Return the names of torch in a program that are not here, each once.

    Parameters
    ----------
    source : str
        The program; it is not run.
    filename : str, default "<string>"
        What errors call it.

    Returns
    -------
    list of Found
        In the order of lines.

    Raises
    ------
    SyntaxError
        It is no Python.

    Examples
    --------
    >>> from pytensorlib._absent.check import check
    >>> for found in check("import torch\ntorch.load('x.pt')\ntorch.nn.Linaer(2, 2)"):
    ...     print(found.line, found.name)
    3 torch.nn.Linaer
    """
    return _judged(_read(source, filename))


def _judged(reader: _Reader) -> list[Found]:
    """Return what of a program's names is missing."""
    seen: dict[str, Found] = {}
    for line, names, guarded in reader.used:
        if found := _missing(names, reader.spaces):
            name, reason = found
            if name not in seen or (seen[name].guarded and not guarded):
                seen[name] = Found(line, name, reason, guarded)
    lost = {full.partition(".")[2] for full in reasons() if full.startswith("Tensor.")} - PLAIN
    for line, name in reader.members:
        full = f"torch.Tensor.{name}"
        if name in lost and full not in seen:
            seen[full] = Found(line, full, why(full) or "", False)
    return sorted(seen.values())


def _source(path: Path) -> str:
    """Return a script's text, or that of a notebook's cells without what IPython adds."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(
        f"{line[: len(line) - len(line.lstrip())]}pass" if line.lstrip()[:1] in {"%", "!"} else line
        for line in lines
    )


def _files(names: Iterable[str]) -> Iterator[Path]:
    for name in map(Path, names):
        yield from sorted(name.rglob("*.py")) if name.is_dir() else [name]


def _hints(reader: _Reader) -> Iterator[str]:
    """Yield what to know before running the program."""
    if reader.cuda:
        yield (
            f'line {reader.cuda} asks for "cuda": run it with '
            "`python -m pytensorlib --gpu-as cuda`, and a GPU of any maker answers"
        )
    for module, (package, how) in NEEDS.items():
        lines = [n for n, names, _ in reader.used if f"{'.'.join(names)}.".startswith(f"{module}.")]
        if lines and importlib.util.find_spec(package) is None:
            yield f"line {min(lines)} uses torch.{module}, which needs {package} here: {how}"
    for name, line in sorted(reader.packages.items()):
        if name not in COMPILED and (text := _about(name)):
            yield f"line {line} imports {name}, {text}"
    for name in sorted(COMPILED & reader.packages.keys()):
        yield (
            f"line {reader.packages[name]} imports {name}, which holds code compiled for CUDA "
            "or PyTorch; that never runs here"
        )


def _about(module: str) -> str | None:
    """Return how to install a library that requires torch, without PyTorch."""
    if _above.requires_torch(module) is not None:
        return (
            "whose metadata requires torch: update it with `pip install --no-deps`, since pip "
            "would install PyTorch beside it"
        )
    how = _above.install(module)
    if how is None or importlib.util.find_spec(module) is not None:
        return None
    return f"which is not installed: pip would install PyTorch with it, this does not: {how}"


def main(argv: list[str]) -> int:
    """Print what is missing; returns 1 where something is."""
    parser = argparse.ArgumentParser(
        prog="python -m pytensorlib check",
        description="List the names of torch in scripts, notebooks and folders that are not here. "
        "Nothing is run.",
    )
    parser.add_argument("files", nargs="+", metavar="script.py")
    options = parser.parse_args(argv)
    status = 0
    for path in _files(options.files):
        try:
            reader = _read(_source(path), str(path))
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError, KeyError) as e:
            print(f"{path}: cannot be read: {e}", file=sys.stderr)
            status = 2
            continue
        missing = _judged(reader)
        for found in missing:
            kind = "guarded: " if found.guarded else ""
            print(f"{path}:{found.line}: {kind}{found.name}: {found.reason}")
        for hint in _hints(reader):
            print(f"{path}: {hint}")
        count = len({tuple(names) for _, names, _ in reader.used})
        lost = sum(not found.guarded for found in missing)
        print(f"{path}: {count} names of torch, {lost} not here")
        status = max(status, int(lost > 0))
    return status
