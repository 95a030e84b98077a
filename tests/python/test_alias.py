"""Under ``torch``: every name says so, what is asked of the distribution is answered."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import child
import pytest

import pytensorlib
from pytensorlib.torch_version import TorchVersion

HERE = Path(__file__).parents[1]


def run(code: str, *words: str) -> str:
    """Run code under the alias; return what it prints."""
    done = child.python("-W", "error", "-m", "pytensorlib", "-c", code, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


EVERY_NAME = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import public_objects
wrong = []
for name, value in public_objects.public().items():
    texts = [getattr(value, "__module__", None), type(value).__module__, repr(value)]
    for member in vars(value).values() if isinstance(value, type) else ():
        texts.append(getattr(member, "__module__", None))
    wrong += [(name, text) for text in texts if "pytensorlib." in str(text).replace("/", " ")]
modules = [m for n, m in sys.modules.items() if n.partition(".")[0] == "torch"]
wrong += [m.__name__ for m in modules if "pytensorlib" in m.__name__ + str(m.__package__)]
assert len(modules) > 100
print(wrong)
"""


def test_every_public_name_says_torch() -> None:
    assert run(EVERY_NAME) == "[]\n"


HOMES = f"""
import importlib, inspect, sys
sys.path.insert(0, {str(HERE)!r})
from public_names import HOMES, owner, read
import torch
wrong, right = [], 0
for home, names in read(HOMES).items():
    if "._" in home:
        continue
    for name, _, place in (entry.partition("=") for entry in names):
        module, _, key = place.rpartition(".")
        known = getattr(owner(module), key, None)
        if known is None:
            continue
        try:
            value = getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            value = None
        plain = inspect.isclass(value) or inspect.isfunction(value)
        if value is not known or (plain and value.__module__ != home):
            wrong.append((home, name, getattr(value, "__module__", "is not there")))
        right += plain
assert right > 350, right
print(wrong)
"""


def test_classes_and_functions_are_of_the_modules_that_pytorch_has_them_in() -> None:
    assert run(HOMES) == "[]\n"


OBJECTS = """
import pickle, torch, pytensorlib
from torch import nn
assert torch is pytensorlib and torch.__name__ == "torch" == torch.__spec__.name
x, layer = torch.ones(2), nn.Linear(2, 2)
print(str(type(x)), type(layer).__module__, str(nn.Parameter))
print(torch.add.__module__, torch.linalg.inv.__module__, torch.nn.functional.relu.__module__)
for value in (torch.float32, layer, x, torch.Size([1]), torch.add, torch.nn.functional.gelu):
    assert b"pytensorlib" not in pickle.dumps(value)
"""


def test_text_of_types_and_pickles_say_torch() -> None:
    assert run(OBJECTS).splitlines() == [
        "<class 'torch.Tensor'> torch.nn.modules.linear <class 'torch.nn.parameter.Parameter'>",
        "torch torch._C._linalg torch.nn.functional",
    ]


LAYER = "from %s import nn; import pickle, sys; layer = nn.Sequential(nn.Linear(2, 2), nn.ReLU())"


def test_pickles_written_under_one_name_load_under_the_other(tmp_path: Path) -> None:
    def plain(code: str) -> None:
        done = child.python("-c", code, file)
        assert done.returncode == 0, done.stderr

    write = "; pickle.dump((layer, layer[0].weight.dtype), open(sys.argv[1], 'wb'))"
    read = (
        "import pickle, sys, {0}; layer, dtype = pickle.load(open(sys.argv[1], 'rb')); "
        "assert type(layer) is {0}.nn.Sequential and dtype is {0}.float32; layer({0}.ones(1, 2))"
    )
    file = str(tmp_path / "a.pickle")
    plain(LAYER % "pytensorlib" + write)
    run(read.format("torch"), file)
    run(LAYER % "torch" + write, file)
    said = read.format("pytensorlib").replace(
        "import pickle", "import pytensorlib._alias; pytensorlib._alias.install(); import pickle"
    )
    plain(said)


METADATA = """
import importlib.metadata as metadata, importlib.util, torch
assert metadata.version("torch") == torch.__version__ == torch.version.__version__
found = metadata.distribution("torch")
print(found.metadata["Name"], found.requires, metadata.packages_distributions()["torch"])
assert importlib.util.find_spec("torch") is not None
assert importlib.util.find_spec("torch.nn.functional").origin.endswith("__init__.py")
assert importlib.util.find_spec("torch.no_such") is None
"""


def test_distribution_answers_and_is_no_other() -> None:
    assert run(METADATA) == "torch ['pytensorlib'] ['torch']\n"


SPAWN = """
import multiprocessing as mp
import sys
import torch

def work(queue, x):
    queue.put((torch.__name__, type(x).__module__, (x + 1).tolist()))

if __name__ == "__main__":
    for method in sys.argv[1:]:
        context = mp.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue, torch.ones(2)))
        process.start()
        print(*queue.get(timeout=60))
        process.join()
"""


def test_processes_that_are_started_afresh_have_the_alias(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWN)
    methods = {"spawn", "forkserver"} & set(multiprocessing.get_all_start_methods())
    done = child.python("-m", "pytensorlib", script, *methods)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["torch torch [2.0, 2.0]"] * len(methods)


def test_version_is_pytorchs_with_ours_behind() -> None:
    version = pytensorlib.__version__
    assert isinstance(version, str) and type(version) is TorchVersion
    assert version == f"2.13.0+pytensorlib.{pytensorlib._C.__version__}"
    assert (2, 13) < version < (2, 14)
    assert version.split("+")[0] == "2.13.0"
    assert pytensorlib.version.cuda is None and pytensorlib.version.hip is None


# Least first: each below all that follow (PEP 440's own example, and PyTorch's forms).
ORDER = """
    0.4.1 1.dev0 1.0.dev456 1.0a1 1.0a2.dev456 1.0a12.dev456 1.0a12 1.0b1.dev456 1.0b2
    1.0b2.post345.dev456 1.0b2.post345 1.0rc1.dev456 1.0rc1 1.0 1.0+abc.5 1.0+abc.7 1.0+5
    1.0.post456.dev34 1.0.post456 1.0.15 1.1.dev1 1.2 1.10 2.13.0 2.13.0+cpu 2.13.0+cu130 2.14 1!0.1
""".split()


def test_versions_compare_as_versions() -> None:
    for i, low in enumerate(ORDER):
        for high in ORDER[i + 1 :]:
            v = TorchVersion(low)
            assert v < high and v <= high and v != high and not v > high and not v >= high
            assert TorchVersion(high) > low
        assert TorchVersion(low) == low
        assert pytensorlib.__version__ != TorchVersion(low) != pytensorlib.__version__
    assert TorchVersion("1.2") == "1.2.0"
    assert TorchVersion("v1.2") == (1, 2)
    assert TorchVersion("1.2") == ("1", "2", "0")
    assert TorchVersion("2.13.0") < "parrot"  # no version: as text
    assert TorchVersion("2.13") != 2.13
    with pytest.raises(TypeError):
        TorchVersion("2.13") < 3  # noqa: B015
    assert hash(TorchVersion("1")) == hash("1")


def test_versions_order_as_packaging_orders_them() -> None:
    version = pytest.importorskip("packaging.version")
    parsed = [version.Version(text) for text in ORDER]
    assert parsed == sorted(parsed)
    assert TorchVersion("2.13.0") > version.Version("2.6")
    assert version.parse(pytensorlib.__version__) > version.Version("2.13.0")


def test_module_of_the_package_runs_under_the_alias() -> None:
    done = child.python("-m", "pytensorlib", "-m", "pytensorlib.examples.digits", "--help")
    assert done.returncode == 0, done.stderr
    assert "--ranks" in done.stdout
