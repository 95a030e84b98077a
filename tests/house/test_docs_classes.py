"""What `help` says of classes and functions that the extension defines itself; examples run."""

import doctest
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import _C

MEMBERS = (types.GetSetDescriptorType, types.MethodDescriptorType)
CLASSES = [c for n, c in vars(_C).items() if isinstance(c, type) and not n.startswith("_")]
# An attribute of a handle that has nothing to show.
PLAIN = {"RemovableHandle.id"}
# Classes that are not called to make one, or in too many ways.
UNCALLED = {"Node", "Tensor", "TensorBase"}


def written() -> Iterator[tuple[str, Any]]:
    """Yield what is documented in the extension by its name."""
    for c in CLASSES:
        yield c.__name__, c
        for name, value in vars(c).items():
            if isinstance(value, MEMBERS) and not name.startswith("_"):
                yield f"{c.__name__}.{name}", value
    for name, value in vars(torch).items():
        if isinstance(value, types.BuiltinFunctionType) and not name.startswith("_"):
            yield name, value


WRITTEN = {n: v for n, v in written() if n not in PLAIN}


def test_everything_has_a_summary_and_an_example() -> None:
    assert len(WRITTEN) > 100
    texts = {n: inspect.getdoc(v) or "" for n, v in WRITTEN.items()}
    assert not [n for n, t in texts.items() if not t.split("\n\n")[0].endswith((".", ":"))]
    assert not [n for n, t in texts.items() if "\nExamples\n--------\n>>> " not in t]


def test_parameters_are_those_of_the_signature() -> None:
    wrong = []
    for name, value in WRITTEN.items():
        if name in UNCALLED or getattr(value, "__text_signature__", None) is None:
            continue
        known = set(inspect.signature(value).parameters) - {"self"}
        text = inspect.getdoc(value) or ""
        found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n---|\Z)", text, re.MULTILINE | re.DOTALL)
        heads = re.findall(r"^([\w, ]+) : ", found.group(1) if found else "", re.MULTILINE)
        told = {p.strip() for head in heads for p in head.split(",")}
        if known != told:
            wrong.append((name, known ^ told))
    assert not wrong


@pytest.mark.parametrize("name", WRITTEN)
def test_example_gives_what_it_says(name: str) -> None:
    text = inspect.getdoc(WRITTEN[name]) or ""
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report: list[str] = []
    assert not doctest.DocTestRunner().run(examples, out=report.append).failed, "".join(report)
