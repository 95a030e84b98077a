"""PyTorch's public names: recorded from PyTorch, and which of them are here.

``python tests/public_names.py`` prints how many are here, module by module;
``--missing torch.utils`` prints those that are not, ``--unexplained`` those without a reason;
``--record`` writes the lists again, in a Python that has PyTorch.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
NAMES, HOMES = DATA / "public_names.txt", DATA / "public_homes.txt"
MEMBERS = DATA / "public_members.txt"

# Modules of which nearly every name is here; the others are listed as a whole.
COUNTED = """
    torch torch.Tensor torch.nn torch.nn.functional torch.optim torch.autograd torch.linalg
    torch.fft torch.special torch.distributions torch.utils torch.amp torch.func
""".split()
# Parts of `torch.utils` and `torch.nn` that are tools of PyTorch's own builds, need other
# packages, or are other names of `torch.ao` and `torch.jit`.
OTHERS = """
    torch.nn.intrinsic torch.nn.qat torch.nn.quantizable torch.nn.quantized
    torch.utils.benchmark torch.utils.bottleneck torch.utils.hipify torch.utils.viz
    torch.utils.data.datapipes torch.utils.serialization torch.utils.cpp_extension
    torch.utils.backcompat torch.utils.collect_env torch.utils.cpp_backtrace
    torch.utils.data.backward_compatibility torch.utils.data.graph torch.utils.data.graph_settings
    torch.utils.debug_log torch.utils.file_baton torch.utils.show_pickle
    torch.utils.throughput_benchmark torch.utils.tensorboard
    torch.utils.bundled_inputs torch.utils.mobile_optimizer torch.utils.mkldnn torch.utils.jit
    torch.utils.model_dump
""".split()

# The rows of names that PyTorch shows and does not describe: its compiler's classes, kernels of
# libraries, and what its Python code calls.
INTERNAL = "-undescribed"
# What built-in functions of PyTorch say that they are of.
BUILT_IN = {None, "torch", "torch._C._nn", "torch._C._linalg", "torch._C._fft"}


def within(name: str, roots: list[str]) -> bool:
    """Tell whether `name` is one of the roots or below one."""
    return any(name == root or name.startswith(root + ".") for root in roots)


def counted(module: str) -> bool:
    """Tell whether the names of a module count."""
    return module in ("torch", "torch.Tensor") or (
        within(module, COUNTED[2:]) and not within(module, OTHERS)
    )


# Recording.


def modules(path: list[str], prefix: str) -> Iterator[str]:
    """Yield the public modules below a package, whether or not they can be imported."""
    for found in pkgutil.iter_modules(path, prefix):
        last = found.name.rpartition(".")[2]
        if last.startswith("_") or last == "gen_pyi":
            continue
        yield found.name
        if found.ispkg:
            yield from modules([f"{p}/{last}" for p in path], found.name + ".")


def documented(value: Any) -> bool:
    """Tell whether a function or class has a text of its own; other values need none."""
    if inspect.isroutine(value) or inspect.isclass(value) or inspect.isdatadescriptor(value):
        return bool(value.__doc__)
    return not inspect.ismodule(value)


def names_of(module: Any) -> list[str]:
    """Return the public names of a module: those it lists, else those it defines."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        homes = {k: getattr(v, "__module__", None) for k, v in vars(module).items()}
        built_in = {k for k, v in vars(module).items() if inspect.isbuiltin(v)}
        listed = [
            name
            for name, home in homes.items()
            if home == module.__name__ or (name in built_in and home in BUILT_IN)
        ]
    return sorted({n for n in listed if not n.startswith("_") and hasattr(module, n)})


def names_in(source: str) -> list[str]:
    """Return what the source of a module that cannot be imported defines."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.level:
            found |= {alias.asname or alias.name for alias in node.names}
    return sorted(name for name in found if not name.startswith("_"))


def members_of(kind: type) -> list[str]:
    """Return the public methods and properties that a class itself defines and describes."""
    found = []
    for name, value in vars(kind).items():
        value = getattr(value, "__func__", value)
        described = isinstance(value, property) or inspect.isfunction(value)
        if not name.startswith("_") and described and documented(value):
            found.append(name)
    return sorted(found)


def top(torch: Any) -> list[str]:
    """Return the public names of the package itself."""
    kinds = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)
    found = {n for n in torch.__all__ if hasattr(torch, n)}
    for name, value in vars(torch).items():
        home = getattr(value, "__module__", None) or ""
        if isinstance(value, kinds) or (home.startswith("torch") and documented(value)):
            found.add(name)
    return sorted(n for n in found if not n.startswith("_"))


def written(rows: dict[str, Any], version: str, about: str) -> str:
    """Return a list as text: each module followed by its names."""
    lines = [f"# {about}, recorded from PyTorch {version} by tests/public_names.py --record"]
    for module in sorted(rows):
        text = f"{module}: {' '.join(sorted(rows[module]))}"
        lines += textwrap.wrap(
            text, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines) + "\n"


def record() -> None:
    """Write the lists of PyTorch's names."""
    import torch

    rows: dict[str, list[str]] = defaultdict(list)
    tensor = [n for n in dir(torch.Tensor) if not n.startswith("_")]
    for name, place, names in (
        ("torch", torch, top(torch)),
        ("torch.Tensor", torch.Tensor, tensor),
    ):
        for key in names:
            rows[name if documented(getattr(place, key)) else f"{name}{INTERNAL}"].append(key)
    homes: dict[str, dict[str, str]] = defaultdict(dict)
    kinds: dict[type, str] = {torch.Tensor: "torch.Tensor"}
    for name in modules(list(torch.__path__), "torch."):
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                rows[name] = names_of(importlib.import_module(name))
            except ImportError:  # for want of another package
                file = Path(torch.__path__[0], *name.split(".")[1:])
                file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
                rows[name] = names_in(file.read_text())
    for name in sorted(filter(counted, rows)):
        place = torch.Tensor if name == "torch.Tensor" else sys.modules.get(name)
        for key in rows[name]:
            value = getattr(place, key, None)
            home = getattr(value, "__module__", None) or ""
            plain = inspect.isclass(value) or inspect.isfunction(value)
            own = home.partition(".")[0] == "torch"
            if inspect.isclass(value) and own and not issubclass(value, tuple):
                kinds.setdefault(value, f"{name}.{key}")
            if plain and own and re.fullmatch(r"[a-zA-Z]\w*", value.__qualname__):
                homes[home].setdefault(value.__qualname__, f"{name}.{key}")
    version = str(torch.__version__)
    NAMES.write_text(written(rows, version, "Public names by module"))
    about = "Classes and functions by the module that they say they are of, and where else"
    lines = {home: [f"{k}={v}" for k, v in names.items()] for home, names in homes.items()}
    HOMES.write_text(written(lines, version, about))
    members = {name: members_of(kind) for kind, name in kinds.items()}
    members = {name: found for name, found in members.items() if found}
    MEMBERS.write_text(written(members, version, "Methods and properties by class"))


# Comparing.


@cache
def read(path: Path) -> dict[str, list[str]]:
    """Return a list: module -> names."""
    rows: dict[str, list[str]] = {}
    names: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            names += line.split()
        elif not line.startswith("#"):
            module, _, rest = line.partition(":")
            names = rows[module] = rest.split()
    return rows


@cache
def owner(module: str) -> Any:
    """Return our module of that name, or None."""
    import pytensorlib

    module = module.removesuffix(INTERNAL)
    if module == "torch.Tensor":
        return pytensorlib.Tensor
    try:
        return importlib.import_module("pytensorlib" + module[len("torch") :])
    except ModuleNotFoundError:
        return None


def missing(module: str) -> list[str]:
    """Return the public names of a module of PyTorch that are not here."""
    place = owner(module)
    return [n for n in read(NAMES)[module] if place is None or not hasattr(place, n)]


def share() -> float:
    """Return how many of the names that count are here, in percent."""
    rows = {m: names for m, names in read(NAMES).items() if counted(m)}
    here = sum(len(names) - len(missing(m)) for m, names in rows.items())
    return 100 * here / sum(map(len, rows.values()))


def unexplained(module: str) -> list[str]:
    """Return the names a module lacks for which `pytensorlib._absent` has no reason."""
    from pytensorlib._absent import why

    return [n for n in missing(module) if why(f"{module.removesuffix(INTERNAL)}.{n}") is None]


def main() -> None:
    parser = argparse.ArgumentParser(description="PyTorch's public names here")
    parser.add_argument("--missing", metavar="MODULE", help="print what a module lacks")
    parser.add_argument("--record", action="store_true", help="write the lists, beside PyTorch")
    parser.add_argument(
        "--unexplained", action="store_true", help="print what is missing without a reason"
    )
    args = parser.parse_args()
    if args.record:
        record()
        return
    if args.unexplained:
        for module in read(NAMES):
            if names := unexplained(module):
                text = f"{module.removesuffix(INTERNAL)}: {' '.join(names)}"
                print("\n".join(textwrap.wrap(text, 96, break_on_hyphens=False)))
        return
    groups: dict[str, list[str]] = defaultdict(list)
    for module in read(NAMES):
        if args.missing is None:
            roots = [root for root in (*COUNTED, *OTHERS) if within(module, [root])]
            roots = [root for root in roots if counted(root) == counted(module)]
            groups[max(roots, key=len, default=".".join(module.split(".")[:2]))].append(module)
        elif within(module, [args.missing]) and (lacks := missing(module)):
            here = "" if owner(module) else " (no such module)"
            print(textwrap.fill(f"{module}{here}: {' '.join(lacks)}", 100, subsequent_indent="  "))
    for root, members in groups.items():
        whole = sum(len(read(NAMES)[m]) for m in members)
        lost = sum(len(missing(m)) for m in members)
        mark = "*" if root in COUNTED else " "
        print(f"{mark} {root:28} {whole - lost:5} of {whole:5}, {lost:4} missing")
    if args.missing is None:
        print(f"{share():.1f} % of those marked *")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
