"""Parameters that lie in one memory are updated one after another.

The numbers were recorded from PyTorch 2.13 with default options: the memory after each of three
steps in float64. `twice`: one parameter, given twice. `memory`: two parameters over one memory.
`overlap`: two that share an element. `grad`: a gradient that is its own parameter. `cross`: two
parameters, each of which is the other's gradient.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, optim

RECORDED = json.loads((Path(__file__).parents[1] / "data/shared_parameters.json").read_text())
OPTIONS = {
    "SGD": {"lr": 0.1},
    "SGD-momentum": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    "SGD-nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.1},
    "Adam-amsgrad": {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.1, "weight_decay": 0.3},
    "RMSprop": {"lr": 0.07},
    "RMSprop-centered": {"lr": 0.1, "centered": True, "momentum": 0.9, "weight_decay": 0.1},
    "Adagrad": {"lr": 0.1, "weight_decay": 0.1},
    "Adadelta": {"lr": 1.0, "weight_decay": 0.1},
    "Adamax": {"lr": 0.1, "weight_decay": 0.1},
    "NAdam": {"lr": 0.1, "weight_decay": 0.1},
    "RAdam": {"lr": 0.1, "weight_decay": 0.1},
    "ASGD": {"lr": 0.1, "weight_decay": 0.1},
    "Rprop": {"lr": 0.1},
    "Adafactor": {"lr": 0.1},
}


def made(name: str, params: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of duplicate parameters
        return getattr(optim, name.split("-")[0])(params, **OPTIONS[name])


def steps(name: str, how: str, place: dict[str, Any]) -> list[list[float]]:
    """Return the memory after each step."""
    numbers = [1.0, -2.0, 3.0, 0.5, -1.0] if how == "overlap" else [1.0, -2.0, 3.0]
    w = torch.tensor(numbers, **place)
    a, b = nn.Parameter(w[:3]), nn.Parameter(w[-3:])
    seen = [w]
    if how == "twice":
        b = a
    if how == "cross":
        b = nn.Parameter(torch.tensor([0.5, 0.25, -1.0], **place))
        seen.append(b.detach())
    params = [a] if how == "grad" else [a, b]
    optimizer = made(name, params)
    found = []
    for step in range(3):
        g = torch.tensor([0.5 - step, 1.0 + step, -0.25], **place)
        for i, p in enumerate(params):
            if how in {"grad", "cross"}:
                p.grad = params[i - 1].detach()
            else:
                p.grad = g * (1 + i) if how != "twice" else g
        optimizer.step()
        found.append([v for t in seen for v in t.tolist()])
    return found


@pytest.mark.parametrize("how", ["twice", "memory", "overlap", "grad", "cross"])
@pytest.mark.parametrize("name", OPTIONS)
def test_parameters_in_one_memory_are_updated_one_after_another(name: str, how: str) -> None:
    found = steps(name, how, {"dtype": torch.float64})
    for got, want in zip(found, RECORDED[f"{name} {how}"], strict=True):
        # Recorded with 12 digits.
        assert got == pytest.approx(want, rel=1e-9, abs=1e-11)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
@pytest.mark.parametrize("how", ["twice", "memory", "overlap", "grad", "cross"])
@pytest.mark.parametrize("name", OPTIONS)
def test_parameters_in_one_memory_of_a_gpu_are_updated_one_after_another(
    name: str, how: str
) -> None:
    found = steps(name, how, {"dtype": torch.float32, "device": "wgpu"})
    for got, want in zip(found, RECORDED[f"{name} {how}"], strict=True):
        # Some ten roundings of float32 in each of three steps.
        assert got == pytest.approx(want, rel=3e-5, abs=3e-5)


LARGE = 1 << 18


@pytest.mark.parametrize("name", ["SGD", "SGD-momentum", "Adam", "Adam-amsgrad", "RMSprop"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_large_parameters_in_one_memory_are_those_of_two_optimizers(name: str, dtype: str) -> None:
    def run(together: bool) -> Any:
        torch.manual_seed(0)
        w = torch.randn(LARGE).to(getattr(torch, dtype))
        params = [nn.Parameter(w), nn.Parameter(w.view(512, 512))]
        groups = [params] if together else [[p] for p in params]
        optimizers = [made(name, group) for group in groups]
        for _ in range(3):
            for p in params:
                p.grad = torch.randn(p.shape).to(w.dtype)
            for optimizer in optimizers:
                optimizer.step()
        return w

    want = run(together=False)
    for _ in range(5):
        assert torch.equal(run(together=True), want)


def fused_sgd(params: list[Any], grads: list[Any], buffers: list[Any]) -> None:
    torch._C._fused_sgd_(
        params, grads, buffers, weight_decay=0.0, momentum=0.5, lr=0.5, dampening=0.0,
        nesterov=False, maximize=False, is_first_step=False,
    )  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "wgpu"])
def test_fused_step_of_lists_that_share_memory_keeps_their_order(device: str) -> None:
    if device == "wgpu" and not torch.wgpu.is_available():
        pytest.skip("no GPU adapter")
    n = LARGE if device == "cpu" else 1000
    for _ in range(5):
        w, g, b = (torch.full((n,), v, device=device) for v in (8.0, 2.0, 4.0))
        fused_sgd([w, w], [g, g], [b, b])
        # b = 4 / 2 + 2 = 4 and w = 8 - 4 / 2 = 6; then the same again.
        assert torch.equal(b, torch.full_like(b, 4.0))
        assert torch.equal(w, torch.full_like(w, 4.0))
        # The gradient is the parameter: it is read before either is written.
        w, b = (torch.full((n,), v, device=device) for v in (8.0, 4.0))
        fused_sgd([w], [w], [b])
        assert torch.equal(b, torch.full_like(b, 10.0))
        assert torch.equal(w, torch.full_like(w, 3.0))


@pytest.mark.parametrize("device", ["cpu", "wgpu"])
def test_foreach_functions_of_one_tensor_twice_write_twice(device: str) -> None:
    if device == "wgpu" and not torch.wgpu.is_available():
        pytest.skip("no GPU adapter")
    w = torch.full((1000,), 2.0, device=device)
    torch._foreach_mul_([w, w], torch.tensor(3.0, device=device))
    assert torch.equal(w, torch.full_like(w, 18.0))
    torch._C._list_scale_([w, w[:10]], torch.tensor(0.5, device=device))
    assert w[:10].tolist() == [4.5] * 10
    assert w[10:].tolist() == [9.0] * 990
    torch._foreach_add_([w, w], 1.0)
    assert w[0].item() == 6.5
    w = torch.full((4,), 2.0, device=device)
    # The factor is an element of what is scaled.
    with pytest.raises(RuntimeError, match="unsupported operation: some elements"):
        torch._C._list_scale_([w, torch.ones(3, device=device)], w[1])
    gradients = [torch.full((4,), 3.0, device=device)] * 2
    p, q = (nn.Parameter(torch.zeros(4, device=device)) for _ in range(2))
    p.grad, q.grad = gradients
    torch.nn.utils.clip_grad_norm_([p, q], 1.0)
    # PyTorch scales the shared gradient twice: by 1 / sqrt(72) each time.
    assert p.grad.tolist() == pytest.approx([3.0 / 72] * 4, rel=1e-5)
