"""Docstrings: every public name says what it is, its parameters and an example, which runs."""

import doctest
import enum
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import pytensorlib

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = [m.name for m in pkgutil.walk_packages(pytensorlib.__path__, "pytensorlib.")]

# The modules whose public functions and classes are documented whole; operators have pages of
# their own. The list of what is not yet may only become shorter.
DOCUMENTED = """
nn nn.functional nn.init nn.utils nn.utils.rnn optim optim.lr_scheduler optim.swa_utils utils
utils.data autograd autograd.functional autograd.graph testing serialization random overrides
storage cpu cuda wgpu functional transforms signal.windows distributions distributions.constraints
distributions.transforms distributions.utils func autograd.forward_ad
""".split()
TO_DO = {"autograd.graph.Node"}


def examples() -> list[doctest.DocTest]:
    finder, found = doctest.DocTestFinder(), []
    # Those that are loaded when they are first asked for are then said to be the package's.
    for name in pytensorlib._HOMES:
        value = getattr(pytensorlib, name)
        if getattr(value, "__module__", None) == pytensorlib.__name__:
            found += finder.find(value, f"pytensorlib.{name}", pytensorlib, globs={})
    for name in MODULES:
        if name.split(".")[-1] in {"_C", "__main__"}:
            continue
        found += finder.find(importlib.import_module(name), name, globs={})
    return [t for t in found if t.examples]


@pytest.mark.parametrize("test", examples(), ids=lambda t: t.name)
def test_example_gives_what_it_says(test: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def public(module: str) -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes of the package that a module offers, by name."""
    found = importlib.import_module(f"pytensorlib.{module}")
    names = getattr(found, "__all__", [n for n in vars(found) if not n.startswith("_")])
    for name in names:
        value = getattr(found, name)
        written_here = (getattr(value, "__module__", None) or "").startswith("pytensorlib")
        if not written_here or value is pytensorlib.Tensor:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{module}.{name}", value


def parameters(value: Any) -> list[str]:
    """Return the names that the documentation must mention."""
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return []  # its members are made already
    try:
        signature = inspect.signature(value)
    except ValueError:
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [p.name for p in signature.parameters.values() if p.kind not in kinds]
    return [name for name in own if not name.startswith("_")]


def section(doc: str, title: str) -> str:
    """Return the text of one section of a numpydoc docstring."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w+\n---|\Z)", doc, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def lacks(value: Any) -> list[str]:
    """Return what the docstring of a function or class lacks."""
    doc = inspect.cleandoc(value.__doc__ or "")
    heads = re.findall(r"^([\w*, ]+?)(?: : .*)?$", section(doc, "Parameters"), re.MULTILINE)
    told = {name.strip() for head in heads for name in head.split(",")}
    missing = [] if doc.split("\n\n")[0].strip() else ["a summary"]
    missing += [f"parameter {name}" for name in parameters(value) if name not in told]
    return missing if ">>>" in section(doc, "Examples") else [*missing, "an example"]


def test_every_public_name_is_documented() -> None:
    missing = {n: lacks(v) for module in DOCUMENTED for n, v in public(module)}
    undone = {name for name, what in missing.items() if what}
    assert not {n: missing[n] for n in undone - TO_DO}
    assert not TO_DO - undone, "done: take these names out of the list"


def test_every_method_has_a_summary() -> None:
    classes = [(n, v) for m in DOCUMENTED for n, v in public(m) if inspect.isclass(v)]
    missing = {
        f"{name}.{method}"
        for name, value in classes
        for method, function in inspect.getmembers(value, inspect.isroutine)
        if (getattr(function, "__module__", None) or "").startswith("pytensorlib")
        if not method.startswith("_") and not inspect.getdoc(function)
    }
    assert not {name for name in missing if not name.endswith(".forward")}


def test_what_a_docstring_lacks_is_found() -> None:
    def add(a: int, b: int) -> None:
        """Add.

        Parameters
        ----------
        a : int
            One.

        Returns
        -------
        b : int
        """

    assert lacks(add) == ["parameter b", "an example"]
