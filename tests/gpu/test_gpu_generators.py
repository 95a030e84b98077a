"""Random numbers on a GPU come from a generator of its own, as PyTorch's do on CUDA."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.utils.checkpoint import checkpoint, get_device_states, set_device_states

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

# What PyTorch 2.13's CPU draws after manual_seed(0), whatever CUDA drew in between.
FIRST = [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]


def test_numbers_drawn_on_a_gpu_leave_those_of_the_cpu_as_they_are() -> None:
    torch.manual_seed(0)
    torch.rand(7, device="wgpu")
    nn.functional.dropout(torch.ones(100, device="wgpu"), 0.5)
    torch.randperm(5, device="wgpu")
    assert torch.rand(3).tolist() == FIRST


def test_numbers_drawn_on_the_cpu_leave_those_of_a_gpu_as_they_are() -> None:
    torch.manual_seed(0)
    want = torch.rand(7, device="wgpu").tolist()
    torch.manual_seed(0)
    torch.rand(1000)
    assert torch.rand(7, device="wgpu").tolist() == want


def test_manual_seed_and_seed_reach_all_devices_and_a_generator_its_own() -> None:
    own = torch._C._generator_of(0)
    torch.manual_seed(11)
    assert (torch.initial_seed(), own.initial_seed()) == (11, 11)
    torch.default_generator.manual_seed(12)
    assert (torch.initial_seed(), own.initial_seed()) == (12, 11)
    assert torch.seed() == torch.initial_seed() == own.initial_seed()


def test_fork_rng_puts_back_the_generators_of_gpus_that_it_is_told() -> None:
    for devices in (None, [0], ["wgpu:0"]):
        torch.manual_seed(3)
        want = [torch.rand(2).tolist(), torch.rand(2, device="wgpu").tolist()]
        torch.manual_seed(3)
        with torch.random.fork_rng(devices=devices):
            torch.rand(5)
            torch.rand(5, device="wgpu")
        assert [torch.rand(2).tolist(), torch.rand(2, device="wgpu").tolist()] == want
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=[]):
        torch.rand(2, device="wgpu")
    assert torch.rand(2).tolist() == want[0]
    assert torch.rand(2, device="wgpu").tolist() != want[1]


def test_a_state_of_a_gpu_is_taken_and_put_back() -> None:
    state = wgpu.get_rng_state()
    want = torch.rand(5, device="wgpu").tolist()
    host = torch.get_rng_state()
    for device in (None, 0, "wgpu:0", torch.device("wgpu")):
        wgpu.set_rng_state(state, device)
        assert torch.rand(5, device="wgpu").tolist() == want
    assert torch.equal(torch.get_rng_state(), host)
    count = wgpu.device_count()
    for call in (lambda: wgpu.get_rng_state(count), lambda: wgpu.set_rng_state(state, count)):
        with pytest.raises(RuntimeError, match=f"there is no wgpu:{count}"):
            call()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_draws_the_same_numbers_again_on_a_gpu(reentrant: bool) -> None:
    x = torch.ones(1000, device="wgpu", requires_grad=True)

    def drop(x: Any) -> Any:
        return nn.functional.dropout(x, 0.5)

    y = checkpoint(drop, x, use_reentrant=reentrant)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, y.detach())


def test_states_of_the_devices_of_tensors_come_and_go_back() -> None:
    x = torch.ones(2, device="wgpu")
    numbers, states = get_device_states(torch.ones(1), {"x": [x]})
    assert numbers == [0]
    want = torch.rand(4, device="wgpu").tolist()
    set_device_states(numbers, states)
    assert torch.rand(4, device="wgpu").tolist() == want
    assert get_device_states(torch.ones(1)) == ([], [])
