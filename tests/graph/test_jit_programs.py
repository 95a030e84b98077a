"""What `torch.jit` gives can be exported, and files of its own are refused with what to use."""

from __future__ import annotations

import io

import pytest

import pytensorlib as torch
from pytensorlib import nn


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(torch.jit, "_said", True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))).mean((2, 3))


def test_traced_module_is_exported_saved_and_written_as_onnx():
    x, other = torch.randn(2, 1, 8, 8), torch.randn(5, 1, 8, 8)
    net = Net().eval()
    traced = torch.jit.trace(net, x)
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(traced, (x,), dynamic_shapes=shapes)
    with torch.no_grad():
        torch.testing.assert_close(program.module()(other), net(other))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    with torch.no_grad():
        torch.testing.assert_close(torch.export.load(file).module()(other), net(other))
    pytest.importorskip("onnx", reason="onnx (the extra [onnx]) is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime (the extra [onnx]) is not installed")
    (have,) = torch.onnx.export(traced, (x,), dynamic_shapes=shapes)(other)
    with torch.no_grad():
        torch.testing.assert_close(have, net(other), rtol=1e-5, atol=1e-5)


def test_traced_function_runs_and_scripted_module_is_exported():
    double = torch.jit.trace(lambda x: 2 * x, (torch.ones(2),))
    assert double(torch.ones(3)).tolist() == [2, 2, 2]
    net, x = Net().eval(), torch.randn(1, 1, 6, 6)
    program = torch.export.export(torch.jit.script(net), (x,))
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x), net(x))


@pytest.mark.parametrize("call", [lambda: torch.jit.save(Net(), "x"), lambda: torch.jit.load("x")])
def test_files_are_refused_with_what_to_use(call):
    with pytest.raises(NotImplementedError) as caught:
        call()
    for name in ("torch.export.save", "torch.export.load", "torch.onnx.export", "state_dict"):
        assert name in str(caught.value)
