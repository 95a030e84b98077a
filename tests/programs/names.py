"""Which names of PyTorch the libraries above it mention, and which of those are not here.

``python tests/programs/names.py`` downloads the libraries of ``names.lock`` (without what they
need, into a folder that git ignores), reads their source, of which nothing runs, and writes
``tests/data/library_names.txt``. A name counts where the PyTorch of ``TORCH_PYTHON`` has it.
``tests/house/test_library_names.py`` holds that each recorded name is here.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LOCK = HERE / "names.lock"
NAMES = HERE.parent / "data/library_names.txt"
CACHE = HERE.parent.parent / ".programs/names"
ROOTS = ("torch", "functorch")
# PyTorch's own helpers for tests, as a library: what its tests import.
OWN = "pytorch-tests"
# A name is followed by this many of the libraries that mention it.
SHOWN = 3


class Scope:
    """What the names of a module, class or function stand for, where they stand for PyTorch's."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer, self.known = outer, dict[str, str | None]()

    def find(self, name: str) -> str | None:
        """Return the full name of PyTorch's that a name stands for."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.known:
                return scope.known[name]
            scope = scope.outer
        return None


def ours(name: str) -> bool:
    """Tell whether a full name is PyTorch's."""
    return name.partition(".")[0] in ROOTS


class Reader(ast.NodeVisitor):
    """Collects the names of PyTorch's that a module mentions.

    A function is read once the scope around it is complete, as Python runs it: an import at the
    module's end serves it too.
    """

    def __init__(self) -> None:
        self.scope = Scope()
        self.found: set[str] = set()
        self.waiting: list[tuple[Scope, list[ast.stmt]]] = []

    def read(self, tree: ast.Module) -> set[str]:
        """Return what a module mentions."""
        self.waiting.append((self.scope, tree.body))
        while self.waiting:
            self.scope, body = self.waiting.pop(0)
            for statement in body:
                self.visit(statement)
        return self.found

    def dotted(self, node: ast.AST) -> str | None:
        """Return the full name of PyTorch's that an expression is."""
        if isinstance(node, ast.Name):
            return self.scope.find(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if ours(alias.name):
                self.found.add(alias.name)
                full = alias.name if alias.asname else alias.name.partition(".")[0]
                self.scope.known[alias.asname or full] = full

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or not ours(node.module):
            for alias in node.names:
                self.scope.known[alias.asname or alias.name] = None
            return
        self.found.add(node.module)
        for alias in node.names:
            if alias.name != "*":
                full = f"{node.module}.{alias.name}"
                self.found.add(full)
                self.scope.known[alias.asname or alias.name] = full

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        full = self.dotted(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                if full is not None or self.scope.find(target.id) is not None:
                    # `F = None` after a failed import leaves what the import meant.
                    self.scope.known[target.id] = full or self.scope.find(target.id)
            else:
                self.visit(target)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        full = self.dotted(node)
        if full is None:
            self.visit(node.value)
        elif isinstance(node.ctx, ast.Load):
            self.found.add(full)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"),
                args=[place, ast.Constant(value=str(name)), *_],
            ):
                base = self.dotted(place)
                if base is not None and name.isidentifier():
                    self.found.add(f"{base}.{name}")
        self.generic_visit(node)

    def inside(self, node: Any) -> None:
        """Read a function's body later, in a scope of its own."""
        for part in ("decorator_list", "args", "returns", "bases", "keywords"):
            value = getattr(node, part, None) or []
            for child in value if isinstance(value, list) else [value]:
                self.visit(child)
        scope = Scope(self.scope)
        if not isinstance(node, ast.ClassDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            scope.known = {a.arg: None for a in given}
        self.waiting.append((scope, node.body))

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = inside  # noqa: N815


def mentioned(source: bytes) -> set[str]:
    """Return the full names of PyTorch's that a file mentions."""
    if not any(root.encode() in source for root in ROOTS):
        return set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # templates, and Python 2
            return set()
    return Reader().read(tree)


def pinned() -> dict[str, str]:
    """Return library -> version."""
    lines = (line.partition("#")[0].strip() for line in LOCK.read_text().splitlines())
    return dict(line.split("==") for line in lines if line)


def download() -> dict[str, Path]:
    """Return library -> its wheel."""
    CACHE.mkdir(parents=True, exist_ok=True)
    stem = {name: re.sub(r"[-_.]+", "_", name).lower() for name in pinned()}

    def wheels() -> dict[str, Path]:
        files = {tuple(f.name.lower().split("-")[:2]): f for f in CACHE.glob("*.whl")}
        wanted = {name: (stem[name], version) for name, version in pinned().items()}
        return {name: files[key] for name, key in wanted.items() if key in files}

    missing = pinned().keys() - wheels().keys()
    if missing:
        options = ["-q", "--no-deps", "--only-binary", ":all:", "-d", str(CACHE)]
        wanted = [f"{name}=={pinned()[name]}" for name in sorted(missing)]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
        subprocess.run([*pip, *options, *wanted], check=True)
    return wheels()


def sources(wheel: Path) -> Iterator[bytes]:
    """Yield the Python files of a library, but what only its own tests run."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and not {"test", "tests"} & set(name.split("/")):
                yield archive.read(name)


def scan() -> dict[str, set[str]]:
    """Return name -> the libraries that mention it."""
    found = defaultdict(set)
    for library, wheel in download().items():
        for source in sources(wheel):
            for name in mentioned(source):
                found[name].add(library)
    return found


def real(names: Iterable[str]) -> dict[str, set[str]]:
    """Return, in a Python that has PyTorch, the names that it has: cut after what is no module.

    Of `torch.ones.__doc__` this is `torch.ones`; what a class has counts too, as
    `torch.nn.Module._apply`.
    """
    import functools
    import importlib
    from types import ModuleType

    class Cut(Exception):
        """What a name belongs to is no module and no class."""

    @functools.cache
    def resolve(name: str) -> Any:
        place, _, last = name.rpartition(".")
        if not place:
            return importlib.import_module(name)
        base = resolve(place)
        if not isinstance(base, ModuleType | type) or place == "torch.ops":
            raise Cut(place)
        try:
            return getattr(base, last)
        except AttributeError:
            if not isinstance(base, ModuleType):
                raise
        return importlib.import_module(name)

    found = defaultdict(set)
    for name in names:
        whole = name
        while "." in whole:
            try:
                resolve(whole)
            except Cut as cut:
                whole = str(cut)
                continue
            except BaseException:  # it is of another version, or needs another machine
                break
            last = whole.rpartition(".")[2]
            if not (last.startswith("__") and last.endswith("__")):
                found[whole].add(name)
            break
    return found


def own_helpers() -> dict[str, set[str]]:
    """Return, in a Python that has PyTorch, what its own helpers for tests mention."""
    import torch

    found = defaultdict(set)
    for file in Path(torch.__path__[0], "testing/_internal").rglob("*.py"):
        for name in mentioned(file.read_bytes()):
            found[name].add(OWN)
    return found


def record() -> None:
    """Write the list, by the PyTorch of TORCH_PYTHON."""
    python = os.environ.get("TORCH_PYTHON")
    if not python:
        raise SystemExit("no PyTorch: set TORCH_PYTHON to a Python that has it")
    found = {name: sorted(libraries) for name, libraries in scan().items()}
    done = subprocess.run(
        [python, "-W", "ignore", __file__, "--real"],
        input=json.dumps(found),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    lines = [
        f"# Names of PyTorch {answer['version']} that libraries mention, recorded by "
        "tests/programs/names.py.",
        f"# A name, {SHOWN} of the libraries, and how many more; {OWN}: PyTorch's own helpers "
        "for tests.",
    ]
    for name, libraries in sorted(answer["names"].items()):
        more = [f"+{len(libraries) - SHOWN}"] if len(libraries) > SHOWN else []
        lines.append(" ".join([name, *sorted(libraries)[:SHOWN], *more]))
    NAMES.write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 2} names of {len(pinned())} libraries")


def answer() -> None:
    """Print which of the names on standard input PyTorch has, with their libraries."""
    import torch

    found: dict[str, set[str]] = defaultdict(set)
    for name, libraries in json.load(sys.stdin).items():
        found[name].update(libraries)
    for name, libraries in own_helpers().items():
        found[name].update(libraries)
    names = {
        name: sorted(set().union(*(found[mention] for mention in mentions)))
        for name, mentions in real(found).items()
    }
    print(json.dumps({"version": str(torch.__version__), "names": names}))


def read() -> dict[str, list[str]]:
    """Return the recorded names, each with what was recorded of who mentions it."""
    lines = (line for line in NAMES.read_text().splitlines() if not line.startswith("#"))
    return {name: libraries for name, *libraries in map(str.split, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description="names of PyTorch that libraries mention")
    parser.add_argument("--real", action="store_true", help="which names of some PyTorch has")
    if parser.parse_args().real:
        answer()
    else:
        record()


if __name__ == "__main__":
    main()
