"""Warnings that PyTorch 2.13 gives, by their class and the beginning of their text."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import child
import pytest

import pytensorlib as torch
from pytensorlib import nn, optim

EYE, VEC = torch.eye(2), torch.ones(3)
LEAF = torch.ones((), requires_grad=True)
CUBE = torch.ones(2, 3, 4)
INDEX = torch.tensor([0])

# What is done, and what PyTorch says of it the first time.
ONCE: list[tuple[Callable[[], Any], str]] = [
    (lambda: torch.qr(EYE), "torch.qr is deprecated in favor of torch.linalg.qr and will be"),
    (lambda: EYE.cholesky(), "torch.cholesky is deprecated in favor of torch.linalg.cholesky"),
    (lambda: torch.lu(EYE), "torch.lu is deprecated in favor of torch.linalg.lu_factor / "),
    (
        lambda: torch.lu_solve(EYE, *torch.linalg.lu_factor(EYE)),
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve",
    ),
    (
        lambda: torch.triangular_solve(EYE, EYE),
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular",
    ),
    (lambda: torch.chain_matmul(EYE, EYE), "torch.chain_matmul is deprecated and will be removed"),
    (lambda: torch.cross(torch.ones(3, 3), torch.ones(3, 3)), "Using torch.cross without specify"),
    (lambda: torch.meshgrid(VEC, VEC), "torch.meshgrid: in an upcoming release, it will be requir"),
    (lambda: CUBE.T, "The use of `x.T` on tensors of dimension other than 2 to reverse their"),
    (lambda: torch.ones(()).T, "Tensor.T is deprecated on 0-D tensors."),
    (lambda: torch.ones(()).mT, "Tensor.mT is deprecated on 0-D tensors."),
    (
        lambda: VEC.scatter(0, INDEX, torch.ones(1), reduce="add"),
        "The reduce argument of torch.scatter with Tensor src is deprecated",
    ),
    (lambda: float(LEAF), "Converting a tensor with requires_grad=True to a scalar may lead to"),
    (lambda: complex(LEAF), "Converting a tensor with requires_grad=True to a scalar may lead to"),
    (
        lambda: torch.ones(1, requires_grad=True).exp().backward(create_graph=True),
        "Using backward() with create_graph=True will create a reference cycle between the",
    ),
    (
        lambda: torch.stft(torch.ones(20), 4, return_complex=True),
        "A window was not provided. A rectangular window will be applied,which is known to cause",
    ),
    (
        lambda: torch.istft(torch.ones(3, 4, dtype=torch.complex64), 4),
        "A window was not provided. A rectangular window will be applied.Please provide the same",
    ),
    (
        lambda: torch.set_default_tensor_type(torch.FloatTensor),
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use",
    ),
]


def said(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(("call", "text"), ONCE)
def test_what_is_deprecated_is_told_as_by_pytorch(call: Callable[[], Any], text: str) -> None:
    torch.set_warn_always(True)
    try:
        assert [t for t in said(call) if t.startswith(text)]
    finally:
        torch.set_warn_always(False)
    assert said(call) == []


def test_other_forms_of_what_is_deprecated_are_silent() -> None:
    torch.set_warn_always(True)
    try:
        assert said(lambda: torch.linalg.qr(EYE)) == []
        assert said(lambda: torch.linalg.cholesky(EYE)) == []
        assert said(lambda: torch.cross(torch.ones(3, 3), torch.ones(3, 3), dim=0)) == []
        assert said(lambda: torch.meshgrid(VEC, VEC, indexing="ij")) == []
        assert said(lambda: (EYE.T, CUBE.mT)) == []
        assert said(lambda: VEC.scatter(0, INDEX, 1.0, reduce="add")) == []
        assert said(lambda: (float(LEAF.detach()), LEAF.item(), int(LEAF))) == []
        assert said(lambda: torch.autograd.grad(LEAF.exp(), LEAF, create_graph=True)) == []
    finally:
        torch.set_warn_always(False)


def test_a_warning_comes_once_in_a_program() -> None:
    program = (
        "import warnings, pytensorlib as torch; warnings.simplefilter('always');"
        "[torch.ones(2, 3, 4).T for _ in range(3)]; [torch.qr(torch.eye(2)) for _ in range(3)]"
    )
    done = child.python("-c", program)
    assert (done.returncode, done.stderr.count("UserWarning")) == (0, 2)


def schedule() -> Any:
    optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    found = optim.lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    return found


def test_schedules_warn_of_epochs_and_of_rates_that_are_not_the_last() -> None:
    # PyTorch 2.13.
    with pytest.warns(UserWarning, match=r"epoch parameter in `scheduler.step\(\)` was"):
        schedule().step(4)
    one = schedule()
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        one.get_lr()
    assert said(lambda: (one.step(), one.get_last_lr())) == []
    assert one.state_dict()["_get_lr_called_within_step"] is False
    plateau = optim.lr_scheduler.ReduceLROnPlateau(one.optimizer)
    with pytest.warns(UserWarning, match="epoch parameter"):
        plateau.step(1.0, 3)


def test_sequences_of_schedules_start_the_next_one_in_silence() -> None:
    lr = optim.lr_scheduler
    for last in (lr.StepLR, lr.CosineAnnealingWarmRestarts):
        optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        both = lr.SequentialLR(optimizer, [lr.ConstantLR(optimizer), last(optimizer, 3)], [2])

        def run(optimizer: Any = optimizer, both: Any = both) -> None:
            for _ in range(4):
                optimizer.step()
                both.step()

        assert said(run) == []


def layer(**options: Any) -> Any:
    return nn.TransformerEncoderLayer(4, 2, batch_first=True, **options)


# Layers, and why PyTorch's fast path does not take them.
LAYERS: list[tuple[Callable[[], Any], str]] = [
    (lambda: nn.TransformerEncoderLayer(4, 2), "encoder_layer.self_attn.batch_first was not True"),
    (lambda: layer(norm_first=True), "encoder_layer.norm_first was True"),
    (lambda: layer(bias=False), "encoder_layer.self_attn was passed bias=False"),
    (
        lambda: layer(activation=nn.functional.silu),
        "encoder_layer.activation_relu_or_gelu was not True",
    ),
    (
        lambda: nn.TransformerEncoderLayer(3, 3, batch_first=True),
        "encoder_layer.self_attn.num_heads is odd",
    ),
    (lambda: nn.Linear(2, 2), "encoder_layer was not TransformerEncoderLayer"),
]


@pytest.mark.parametrize(("make", "why"), LAYERS)
def test_encoder_says_why_its_layers_keep_padding(make: Callable[[], Any], why: str) -> None:
    text = "enable_nested_tensor is True, but self.use_nested_tensor is False because "
    (told,) = said(lambda: nn.TransformerEncoder(make(), 1))
    assert told.startswith(text + why)
    assert said(lambda: nn.TransformerEncoder(make(), 1, enable_nested_tensor=False)) == []
    assert said(lambda: nn.TransformerEncoder(layer(), 1)) == []


def test_old_names_name_what_took_their_place() -> None:
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated. Please use `NLLLoss`"):
        nn.NLLLoss2d()
    with pytest.warns(FutureWarning, match=r"favor of `torch.nn.utils.clip_grad_norm_`"):
        nn.utils.clip_grad_norm([], 1.0)
    with pytest.warns(FutureWarning, match=r"Please use `torch.amp.autocast\('cpu', args...\)`"):
        torch.cpu.amp.autocast()
