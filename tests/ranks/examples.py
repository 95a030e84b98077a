"""Examples of the public functions of `torch.distributed`, which elsewhere see no process group."""

import doctest
import importlib
import pkgutil

import pytensorlib.distributed as dist

PAIRS = (("send", "recv"), ("isend", "irecv"), ("send_object_list", "recv_object_list"))


def check_examples_run(rank: int, size: int) -> None:
    """All, in pairs where one rank's example sends what the other's receives."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    found = {}
    for module in pkgutil.iter_modules(dist.__path__, "pytensorlib.distributed."):
        for example in finder.find(importlib.import_module(module.name)):
            text = example.docstring or ""
            if "if dist.is_initialized()" in text:
                found[example.name.rpartition(".")[2]] = example
    assert len(found) > 20, sorted(found)
    first = [name for pair in PAIRS for name in pair]
    for name in [*first, *(name for name in found if name not in first)]:
        runner.run(found[name])
    assert not runner.failures
