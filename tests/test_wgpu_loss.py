"""A lost device is an error of its class, then another is opened; nothing of the CPU is harmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_wgpu_runtime import run

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

LOST = """
    import pytensorlib as torch
    from pytensorlib import _C

    net = torch.nn.Linear(3, 2).to("wgpu")
    x = torch.ones(4, 3, device="wgpu")
    y = net(x)
    want = y.detach().cpu()
    torch.save(net.state_dict(), "FILE")
    waiting = x + 1
    _C._wgpu_lose(0)

    def tells(f):
        try:
            f()
        except torch.AcceleratorError as e:
            return "the device was lost" in str(e)
        return False

    uses = [
        lambda: x.cpu(), lambda: x + 1, lambda: net(x), lambda: y.sum().backward(),
        lambda: x.copy_(torch.ones(4, 3)), lambda: x[0].clone().tolist(), lambda: x.sum().item(),
        lambda: torch.ones(4, 3, device="wgpu").add_(x), lambda: x.zero_().tolist(),
        lambda: x.sort(), lambda: waiting.cpu(),
    ]
    print([tells(f) for f in uses] == [True] * len(uses))
    print(want.shape, (torch.arange(3, device="wgpu") * 2).tolist())
    del x, y, waiting, uses
    again = torch.nn.Linear(3, 2, device="wgpu")
    again.load_state_dict(torch.load("FILE", map_location="wgpu"))
    print(torch.equal(again(torch.ones(4, 3, device="wgpu")).cpu(), want))
    torch.wgpu.empty_cache()
    print(torch.wgpu.memory_stats()["live"] < 10)
    for _ in range(3):
        _C._wgpu_lose(0)
    print(torch.ones(2, device="wgpu").tolist())
"""


def test_a_lost_device_is_an_error_and_another_is_opened(tmp_path: Path) -> None:
    told = run(LOST.replace("FILE", str(tmp_path / "net.pt")))
    assert told == "True\ntorch.Size([4, 2]) [0, 2, 4]\nTrue\nTrue\n[1.0, 1.0]\n"


def test_places_to_split_at_and_hashes_may_be_those_of_a_gpu() -> None:
    import pytensorlib as torch

    x = torch.arange(6)
    parts = torch.tensor_split(x, torch.tensor([1, 3], device="wgpu"))
    assert [p.tolist() for p in parts] == [[0], [1, 2], [3, 4, 5]]
    parts = torch.tensor_split(x.to("wgpu"), torch.tensor(2, device="wgpu"))
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3, 4, 5]]
    # The exclusive or of the bits, 1 ^ 2 and 3 ^ 3.
    assert torch.hash_tensor(torch.tensor([[1, 2], [3, 3]], device="wgpu"), 1).tolist() == [3, 0]
