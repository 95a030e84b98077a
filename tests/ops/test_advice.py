"""Errors that beginners meet: the call's name, PyTorch's text, then what to do about it."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, optim

IMAGE = torch.zeros(2, 8, 8, 3)
DOUBLE, LONG = torch.zeros(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.int64)
LEAF = torch.ones(2, requires_grad=True)

# What goes wrong, the beginning of PyTorch's message, the advice after it.
CASES: list[tuple[Callable[[], Any], str, str]] = [
    (
        lambda: nn.Conv2d(3, 4, 3)(IMAGE),
        "Given groups=1, weight of size [4, 3, 3, 3], expected input[2, 8, 8, 3] to have 3 "
        "channels, but got 8 channels instead",
        ".movedim(-1, 1)",
    ),
    (lambda: nn.Conv2d(3, 4, 3)(IMAGE[0]), "Given groups=1", ".movedim(-1, 0)"),
    (lambda: nn.ConvTranspose2d(3, 4, 3)(IMAGE), "Given transposed=1", ".movedim(-1, 1)"),
    (
        lambda: nn.BatchNorm2d(3)(IMAGE),
        "running_mean should contain 8 elements not 3",
        ".movedim(-1, 1)",
    ),
    (lambda: nn.Linear(3, 2)(DOUBLE), "", "input with .to(torch.float32)"),
    (lambda: nn.Linear(3, 2)(LONG), "", "torch.int64: convert it with .to(torch.float32)"),
    (lambda: nn.Conv1d(2, 2, 1)(DOUBLE[None]), "", "layer with .to(torch.float64)"),
    (
        lambda: nn.LSTM(3, 2)(DOUBLE),
        "RNN input dtype (torch.float64) does not match weight dtype (torch.float32). "
        "Convert input: input.to(torch.float32), or convert model: model.to(torch.float64)",
        "",
    ),
    (
        lambda: nn.Linear(12, 2)(torch.ones(5, 3, 4)),
        "mat1 and mat2 shapes cannot be multiplied (15x4 and 12x2)",
        "last dimension is 4, the layer takes 12: .flatten(1) gives that.",
    ),
    (
        lambda: nn.Linear(3, 2)(torch.ones(4, 5)),
        "mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)",
        "last dimension is 5, the layer takes 3.",
    ),
    (
        lambda: nn.LayerNorm(3)(torch.ones(2, 4)),
        "Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[2, 4]",
        "last dimension is 4, the layer takes 3.",
    ),
    (
        lambda: nn.Embedding(3, 2)(torch.ones(2)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
        "Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
        ".long()",
    ),
    (
        lambda: nn.BCEWithLogitsLoss()(torch.ones(2, 1), torch.ones(2)),
        "Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 1]))",
        "target.view_as(input)",
    ),
    (
        lambda: nn.Linear(3, 2).load_state_dict(
            {"epoch": 3, "model": nn.Linear(3, 2).state_dict()}
        ),
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "weight", '
        '"bias". \n\tUnexpected key(s) in state_dict: "epoch", "model". ',
        "Its entry 'model' has them",
    ),
    (
        lambda: nn.Linear(3, 2).load_state_dict(
            {f"module.{name}": value for name, value in nn.Linear(3, 2).state_dict().items()}
        ),
        "Error(s) in loading state_dict for Linear:",
        "name.removeprefix('module.')",
    ),
    (
        lambda: optim.SGD(nn.Linear(2, 2), lr=0.1),
        "'Linear' object is not iterable",
        "SGD(model.parameters(), lr=0.1)",
    ),
    (
        lambda: optim.Adam(nn.Linear(2, 2).parameters),
        "'method' object is not iterable",
        "model.parameters()",
    ),
    (
        lambda: optim.Adam(nn.Sequential(nn.Linear(2, 2))),
        "optimizer can only optimize Tensors, but one of the params is",
        "model.parameters()",
    ),
    (lambda: optim.Adam([LEAF * 2]), "can't optimize a non-leaf Tensor", "requires_grad_()"),
    (lambda: optim.Adam([]), "optimizer got an empty parameter list", "ModuleList"),
    (
        lambda: torch.ones(2).sum().backward(),
        "element 0 of tensors does not require grad and does not have a grad_fn",
        "requires_grad=True",
    ),
    (
        lambda: (LEAF * 2).backward(),
        "grad can be implicitly created only for scalar outputs",
        "sum() or mean()",
    ),
]


@pytest.mark.parametrize(("wrong", "begins", "advice"), CASES)
def test_error_begins_as_in_pytorch_and_says_what_to_do(
    wrong: Callable[[], Any], begins: str, advice: str
) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        wrong()
    text = str(caught.value)
    assert re.match(r"(\w+\(\): )?" + re.escape(begins), text)
    assert advice in text
    assert text.count(begins) == 1 or not begins


def test_tensor_on_another_device_than_the_layer_names_both() -> None:
    if not torch.wgpu.is_available():
        pytest.skip("no adapter")
    with pytest.raises(RuntimeError, match="same device.*The input is on cpu, the layer on wgpu:0"):
        nn.Linear(3, 2).to("wgpu")(torch.ones(1, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.Conv2d(3, 4, 3)(torch.zeros(2, 5, 8, 8)),
        lambda: nn.Conv2d(3, 4, 9)(torch.zeros(2, 3, 4, 4)),
        lambda: nn.Linear(3, 2)("text"),
        lambda: nn.Linear(3, 2).load_state_dict({}),
    ],
)
def test_error_of_another_cause_gets_no_advice(call: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        call()
    assert not any(part in str(caught.value) for part in ("movedim", ".to(", "module", "entry"))
