"""`interpolate` as ONNX, run by ONNX Runtime, against the operator itself."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.export import Dim
from pytensorlib.nn import functional as F  # noqa: N812

pytest.importorskip("onnxruntime")

SHAPES = [(1, 2, 5), (1, 2, 5, 7), (1, 1, 3, 4, 5)]
LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}
OPTIONS: list[dict[str, Any]] = [
    {"scale_factor": 2.0}, {"scale_factor": 0.6}, {"scale_factor": 1.7}, {"scale_factor": 0.34},
    {"size": 3}, {"size": 11}, {"size": 1},
]  # fmt: skip


# Bicubic takes images alone.
MODES = [(mode, s) for mode in ("nearest", "nearest-exact", "linear") for s in SHAPES]
MODES += [("cubic", s) for s in SHAPES if len(s) == 4]


class Resize(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: Any) -> Any:
        return F.interpolate(x, **self.options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("mode", "shape"), MODES)
def test_resize(shape: tuple[int, ...], options: dict[str, Any], mode: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape)
    named = {"linear": LINEAR[len(shape)], "cubic": "bicubic"}.get(mode, mode)
    module = Resize(mode=named, **options)
    (found,) = torch.onnx.export(module, (x,))(x)
    torch.testing.assert_close(found, module(x))


def test_resize_of_open_sizes() -> None:
    module = Resize(mode="nearest-exact", scale_factor=2.0)
    shapes = {"x": {0: Dim("n"), 2: Dim("h"), 3: Dim("w")}}
    program = torch.onnx.export(module, (torch.ones(1, 1, 4, 4),), dynamic_shapes=shapes)
    x = torch.arange(60.0).view(2, 1, 6, 5)
    torch.testing.assert_close(program(x)[0], module(x))


def test_one_element_lies_in_the_middle() -> None:
    # Half of a pixel from each end: PyTorch's eager kernel gives the middle of 0, 1, 2.
    (found,) = torch.onnx.export(Resize(mode="linear", size=1), (torch.zeros(1, 1, 3),))(
        torch.tensor([[[0.0, 1.0, 2.0]]])
    )
    assert found.item() == 1.0
