"""`python -m pytensorlib info` and `check`: what is there, and what a script asks for in vain."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import child
import pytest

import pytensorlib as torch
from pytensorlib._absent import above as _above
from pytensorlib._absent import check as _check
from pytensorlib._absent.check import check, main
from pytensorlib._system import doctor as _doctor


def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return child.python("-m", "pytensorlib", *args, **environment)


@pytest.fixture(scope="module")
def told() -> dict:
    done = run("info", "--json", "--gpu")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_info_tells_versions_and_the_processor(told):
    assert told["versions"]["pytensorlib"] == str(torch.__version__)
    assert told["cpu"]["cores"] == os.cpu_count()
    assert told["cpu"]["kernels"] == torch._C._machine()["level"]
    assert told["memory"]["total"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") or (
        told["memory"]["total"] > 0
    )
    assert told["cpu"]["measured"]["flops"] > 1e8
    assert told["cpu"]["measured"]["bytes"] > 1e8


def test_info_tells_every_adapter_and_what_it_reaches(told):
    assert len(told["adapters"]) == torch.wgpu.device_count()
    for k, adapter in enumerate(told["adapters"]):
        known = torch.wgpu.get_device_properties(k)
        assert adapter["name"] == known["name"]
        assert adapter["limits"] == known["limits"]
        assert adapter["measured"]["flops"] > 0
        if adapter["software"]:
            assert any("processor" in note for note in adapter["notes"])


def test_info_is_text_for_people(told):
    text = _doctor.text(told)
    assert f"  {'pytensorlib':<28} {torch.__version__}" in text.splitlines()
    assert "Processor" in text
    assert ("GPU wgpu:0" in text) == bool(told["adapters"])


def test_info_without_a_gpu_says_what_to_do():
    # An adapter that nobody has: listing fails, and the rest is told all the same.
    done = run("info", PYTENSORLIB_ADAPTER="no such card")
    assert done.returncode == 0, done.stderr
    assert "No GPU" in done.stdout
    assert "  do  " in done.stdout
    assert "PYTENSORLIB_ADAPTER          no such card" in done.stdout


def test_a_driver_that_kills_its_process_does_not_kill_the_report(monkeypatch):
    monkeypatch.setattr(_doctor.sys, "executable", "/bin/false")
    assert "status 1" in _doctor._ask("--count")
    found = _doctor.report()
    assert not found["adapters"]
    assert "could not be listed" in found["advice"][0]


@pytest.mark.parametrize(
    ("lacks", "word"),
    [
        ({"int64": False}, "int64 is computed as two 32-bit words"),
        ({"float64": False}, "float64 run on the CPU"),
        ({"cooperative_matrices": []}, "tensor cores"),
        ({"software": True}, "processor"),
        ({"features": []}, "timestamps"),
    ],
)
def test_what_an_adapter_lacks_is_told(lacks, word):
    whole = {
        "software": False,
        "int64": True,
        "float64": True,
        "cooperative_matrices": [[16, 16, 16, "f16", "f32"]],
        "features": ["timestamp_query", "pipeline_cache"],
        "backend": "Vulkan",
    }
    assert _doctor._notes(whole) == []
    assert any(word in note for note in _doctor._notes(whole | lacks))


@pytest.mark.parametrize("system", ["Linux", "Darwin", "Windows"])
def test_advice_is_for_the_system(system):
    word = {"Linux": "ulkan", "Darwin": "Metal", "Windows": "Direct3D"}[system]
    assert any(word in step for step in _doctor.advice(system))


def names(source: str) -> list[str]:
    return [found.name for found in check(source)]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.nn.functional.relu(torch.ones(2))",
        "import torch.nn as nn\nnn.Linear(2, 3)",
        "from torch import nn\nclass M(nn.Module): pass",
        "from torch.utils.data import DataLoader",
        "import torch.optim.lr_scheduler",
        "from torch.nn.utils.rnn import pad_sequence",
        "from torch.nn import *",
        "import pytensorlib as torch\ntorch.wgpu.peaks()",
        "import torch\nx = torch.Tensor.sum",
        "import numpy as torch2\ntorch2.nosuch",
        "x = [1]\nx.index(1)",
        "import torch\ntorch.float32.nosuch_of_a_value",
        "import torch\ntorch.ops.aten.add.Tensor, torch.ops.profiler._record_function_exit",
        "import torch\ntorch.library.define('mine::f', '() -> ()')\ntorch.ops.mine.f()",
        "import torch\ntorch.library.Library('mine', 'DEF')\ntorch.ops.mine.f()",
        "import torch\ntorch.ops.loaded_libraries, torch.ops.higher_order.cond, torch.ops",
        "import torch\nx = torch.nn\nx = 3\nx.nosuch",
        "import torch\ndef f(x):\n    x.nosuch\nx = torch.nn",
    ],
)
def test_check_finds_nothing_where_all_is_here(source):
    assert check(source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.nosuch(1)", ["torch.nosuch"]),
        ("import torch.nn as nn\nnn.Linaer(2, 2)", ["torch.nn.Linaer"]),
        ("from torch import nosuch", ["torch.nosuch"]),
        ("from torch.nosuch import a", ["torch.nosuch"]),
        ("import torch.nosuch.deep", ["torch.nosuch"]),
        ("from torch.nn import functional as F\nF.nosuch.more", ["torch.nn.functional.nosuch"]),
        ("import torch\nx = torch.ones(2)\nx.int_repr()", ["torch.Tensor.int_repr"]),
        ("import torch\ntorch.ops.aten.nosuch(1)", ["torch.ops.aten.nosuch"]),
        ("from torch import ops\nops.aten.nosuch.default(1)", ["torch.ops.aten.nosuch"]),
        ("import torch\naten = torch.ops.aten\naten.nosuch(1)", ["torch.ops.aten.nosuch"]),
        ("import torch\ntorch.ops.quantized.linear(1)", ["torch.ops.quantized.linear"]),
        ("import torch\ntorch.ops.higher_order.nosuch", ["torch.ops.higher_order.nosuch"]),
        ("import torch\ntorch.ops.some_library.f(1)", ["torch.ops.some_library.f"]),
        ("import torch\ntorch.ops.load_library('a.so')", ["torch.ops.load_library"]),
        ("import torch\ntorch.classes.load_library('a.so')", ["torch.classes.load_library"]),
        ("import torch\ntorch.classes.mine.Stack()", ["torch.classes.mine.Stack"]),
        ("import torch as t\nt.choose_qparams_optimized(1)", ["torch.choose_qparams_optimized"]),
    ],
)
def test_check_names_what_is_not_here(source, expected):
    assert names(source) == expected


def test_check_tells_line_reason_and_what_is_nearest():
    (found,) = check("import torch\n\n\ntorch.nn.Linaer(2, 2)")
    assert found.line == 4
    assert "Linear" in found.reason
    (found,) = check("import torch\ntorch.q_scale(1)")
    assert "there are no quantized tensors" in found.reason


def test_check_knows_what_is_guarded(tmp_path, capsys):
    source = "try:\n    from torch import nosuch\nexcept ImportError:\n    nosuch = None\n"
    (found,) = check(source)
    assert found.guarded
    file = tmp_path / "a.py"
    file.write_text(source)
    assert main([str(file)]) == 0
    assert "guarded: torch.nosuch" in capsys.readouterr().out
    assert not check(source.replace("ImportError", "KeyError"))[0].guarded
    source = "import torch\ntry:\n    torch.ops.load_library('a.so')\nexcept OSError:\n    pass\n"
    assert check(source)[0].guarded
    assert not check(source.replace("load_library", "aten.nosuch"))[0].guarded


def test_check_says_how_to_install_what_requires_torch(tmp_path, monkeypatch, capsys):
    file = tmp_path / "a.py"
    file.write_text("import numpy\nfrom torchvision.transforms import ToTensor\nimport mine.deep\n")
    monkeypatch.setattr(_check.importlib.util, "find_spec", lambda name: None)
    folder = tmp_path / "of_mine-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: of-mine\nVersion: 1.0\nRequires-Dist: torch>=2\n")
    (folder / "top_level.txt").write_text("mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    _above._distributions.cache_clear()
    assert main([str(file)]) == 0
    _above._distributions.cache_clear()
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 3
    assert "line 3 imports mine, whose metadata requires torch" in told[0]
    assert "line 2 imports torchvision" in told[1]
    assert told[1].endswith("pip install --no-deps torchvision && pip install pillow")


def test_check_of_a_file_says_what_to_run(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("import torch, triton\nx = torch.ones(2).cuda()\ntorch.nosuch\n1 / 0\n")
    done = run("check", str(file))
    assert done.returncode == 1, done.stderr
    assert "train.py:3: torch.nosuch" in done.stdout
    assert "--gpu-as cuda" in done.stdout
    assert "triton" in done.stdout
    assert "2 names of torch, 1 not here" in done.stdout


def test_check_reads_notebooks_and_folders(tmp_path, capsys):
    cells = [
        {"cell_type": "markdown", "source": ["# text"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch\n", "torch.nosuch"]},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "b.py").write_text("import torch")
    assert main([str(tmp_path / "a.ipynb")]) == 1
    assert "torch.nosuch" in capsys.readouterr().out
    assert main([str(tmp_path)]) == 0


def test_check_says_which_package_a_module_needs(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.py").write_text("from torch.utils.tensorboard import SummaryWriter")
    monkeypatch.setattr(_check.importlib.util, "find_spec", lambda name: None)
    assert main([str(tmp_path / "a.py")]) == 0
    assert "pip install tensorboardX" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["def", "\x00"])
def test_check_of_what_is_no_python_says_so(tmp_path, capsys, text):
    (tmp_path / "a.py").write_text(text)
    assert main([str(tmp_path / "a.py")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_script_of_a_commands_name_is_run_by_its_path(tmp_path):
    (tmp_path / "info").write_text("import torch; print('mine', torch.ones(1).item())")
    path = str(Path(torch.__file__).parents[1])
    done = child.python("-m", "pytensorlib", "./info", cwd=tmp_path, PYTHONPATH=path)
    assert done.stdout.strip() == "mine 1.0", done.stderr
