"""``--install-alias`` and ``--remove-alias``, in an environment of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from alias_environment import Environment

import pytensorlib


@pytest.fixture
def environment(tmp_path):
    if sys.platform == "win32":
        pytest.skip("environments are laid out otherwise")
    return Environment(tmp_path / "env")


USE = """
import sys, torch, torch.nn.functional as F
from torch.utils.data import DataLoader
import pytensorlib, importlib.metadata as metadata
assert torch is pytensorlib is sys.modules["torch"] and torch.__name__ == "torch"
assert F.relu is torch.nn.functional.relu and type(torch.ones(1)).__module__ == "torch"
assert metadata.version("torch") == torch.__version__
print(metadata.distribution("torch").read_text("INSTALLER"))
"""


def test_alias_is_installed_used_and_removed(environment):
    before = environment.files()
    assert "No module named 'torch'" in environment.run("-c", "import torch").stderr

    done = environment.run("-m", "pytensorlib", "--install-alias")
    assert done.returncode == 0, done.stderr
    assert str(environment.packages / "torch") in done.stdout
    bound = Path(done.stdout.split("--constraint ")[1].split()[0])
    assert bound.read_text() == f"torch=={pytensorlib.__version__}\n"
    used = environment.run("-W", "error", "-c", USE)
    assert used.returncode == 0, used.stderr
    assert used.stdout.strip() == "pytensorlib"
    first = environment.run(
        "-W", "error", "-c", "import functorch, torch; functorch.make_functional"
    )
    assert first.returncode == 0, first.stderr
    as_module = environment.run("-m", "torch.utils.data.sampler")
    assert as_module.returncode == 0, as_module.stderr
    # Nothing that has no use for it is slower: no file runs when Python starts.
    assert not [name for name in environment.files() - before if name.endswith(".pth")]

    record = next(environment.packages.glob("torch-*.dist-info/RECORD")).read_text().splitlines()
    listed = {line.split(",")[0] for line in record}
    added = environment.files() - before
    assert listed == {name for name in added if (environment.packages / name).is_file()}

    again = environment.run("-m", "pytensorlib", "--install-alias")
    assert again.returncode == 0, again.stderr
    gone = environment.run("-m", "pytensorlib", "--remove-alias")
    assert gone.returncode == 0, gone.stderr
    assert environment.files() == before
    assert not (environment.packages / "torch").exists()
    assert "No module named 'torch'" in environment.run("-c", "import torch").stderr
    assert "no alias" in environment.run("-m", "pytensorlib", "--remove-alias").stdout


@pytest.mark.parametrize("package", ["torch", "functorch"])
def test_alias_is_refused_where_pytorch_is(environment, package):
    theirs = environment.packages / package
    theirs.mkdir()
    (theirs / "__init__.py").write_text("__version__ = '2.0'\n")
    before = environment.files()
    done = environment.run("-m", "pytensorlib", "--install-alias")
    assert done.returncode == 1
    assert "PyTorch is installed" in done.stderr
    assert str(theirs) in done.stderr
    assert environment.run("-m", "pytensorlib", "--remove-alias").returncode == 0
    assert environment.files() == before


def test_alias_is_refused_with_arguments(environment):
    assert environment.run("-m", "pytensorlib", "--install-alias", "x").returncode == 2
