"""Examples of the public functions of `torch.distributed`, which elsewhere see no process group."""

import doctest
import importlib
import pkgutil

import pytensorlib.distributed as dist


def check_examples_run(rank: int, size: int) -> None:
    """Those that all ranks run alike: where they differ, `collectives.py` has the calls."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    found = {}
    for module in pkgutil.iter_modules(dist.__path__, "pytensorlib.distributed."):
        for example in finder.find(importlib.import_module(module.name)):
            text = example.docstring or ""
            if "if dist.is_initialized():" in text and "get_rank() == 1" not in text:
                found[example.name.rpartition(".")[2]] = example
    assert len(found) > 20, sorted(found)
    for example in found.values():
        runner.run(example)
    assert not runner.failures
