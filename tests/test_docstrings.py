"""The examples in docstrings run and give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import pytensorlib

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NAMES = {"torch": pytensorlib, "nn": pytensorlib.nn}
MODULES = [m.name for m in pkgutil.walk_packages(pytensorlib.__path__, "pytensorlib.")]


def examples() -> list[doctest.DocTest]:
    finder, found = doctest.DocTestFinder(), []
    for name in MODULES:
        if name.split(".")[-1] in {"_C", "__main__"}:
            continue
        found += finder.find(importlib.import_module(name), name, globs=NAMES)
    return [t for t in found if t.examples]


@pytest.mark.parametrize("test", examples(), ids=lambda t: t.name)
def test_example_gives_what_it_says(test: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
