"""``python -m pytensorlib``: scripts in which ``import torch`` means this package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import child
import pytest

SCRIPT = """\
import pickle
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.autograd import Function, Variable
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

import pytensorlib


class Here:
    pass


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def fail():
    raise KeyError("from the script")


assert torch is pytensorlib
assert nn.Linear is pytensorlib.nn.Linear
assert optim.SGD is pytensorlib.optim.SGD
assert isinstance(pickle.loads(pickle.dumps(Here())), Here)
x = torch.ones(2, requires_grad=True)
Double.apply(x).sum().backward()
assert x.grad.tolist() == [2, 2]
print(__name__, sys.argv[1:])
if sys.argv[1:] == ["exit"]:
    sys.exit(3)
if sys.argv[1:] == ["fail"]:
    fail()
"""


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return child.python("-m", "pytensorlib", *args)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_script_sees_itself_as_main_and_torch_as_ours(script):
    got = run(script, "a", "--b")
    assert got.returncode == 0, got.stderr
    assert got.stdout == "__main__ ['a', '--b']\n"


def test_script_exit_status_is_passed_on(script):
    assert run(script, "exit").returncode == 3


def test_script_error_shows_its_own_frames_only(script):
    got = run(script, "fail")
    assert got.returncode == 1
    assert "KeyError: 'from the script'" in got.stderr
    assert "in fail" in got.stderr
    assert "runpy" not in got.stderr
    assert "__main__.py" not in got.stderr


def test_script_imports_its_neighbours(tmp_path):
    (tmp_path / "neighbour.py").write_text("import torch\nname = torch.__name__\n")
    (tmp_path / "s.py").write_text("import neighbour\nprint(neighbour.name)\n")
    assert run(tmp_path / "s.py").stdout == "torch\n"


def test_code_given_on_the_command_line_runs():
    got = run("-c", "import torch, sys; print(torch.__name__, sys.argv)", "a")
    assert got.stdout == "torch ['-c', 'a']\n"


def test_module_that_we_lack_is_named():
    got = run("-c", "import torch.no_such_module")
    assert got.returncode == 1
    assert "No module named 'torch.no_such_module'" in got.stderr


def test_wrong_calls_say_how():
    assert run().returncode == 2
    missing = run("/nonexistent/script.py")
    assert missing.returncode == 2
    assert "No such file" in missing.stderr


@pytest.mark.parametrize("how", ["script", "code", "module"])
def test_a_library_that_is_not_found_is_told_how_to_install_without_pytorch(tmp_path, how):
    file = tmp_path / "wanting.py"
    file.write_text(
        "try:\n    import torchvision\nexcept ImportError as e:\n    raise OSError from e"
    )
    args = {"script": [file], "code": ["-c", file.read_text()], "module": ["-m", "wanting"]}[how]
    code = f"import sys; sys.modules['torchvision'] = None; sys.argv = {[str(a) for a in args]!r}\n"
    code += "from pytensorlib.__main__ import main; main(sys.argv)"
    done = child.python("-c", code, cwd=tmp_path)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[-2].startswith("OSError")
    assert told[-1].endswith("pip install --no-deps torchvision && pip install pillow")


def test_other_errors_get_no_such_line(tmp_path):
    done = run("-c", "import a_module_that_nobody_has")
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError")


def test_an_option_behind_the_script_is_the_scripts_and_told(tmp_path):
    file = tmp_path / "prints.py"
    file.write_text("import sys\nprint(sys.argv[1:])")
    for args in (["--gpu-as", "cuda"], ["-v", "--gpu-as=cuda"]):
        done = run(file, *args)
        assert done.returncode == 0 and done.stdout.strip() == str(args)
        (line,) = done.stderr.splitlines()
        assert "`python -m pytensorlib --gpu-as cuda`" in line
    for args in (["--", "--gpu-as", "cuda"], ["gpu-as"]):
        assert run(file, *args).stderr == ""
