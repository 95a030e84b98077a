"""A lost device is an error of its class, then another is opened; nothing of the CPU is harmed."""

from __future__ import annotations

from pathlib import Path

import pytest
from child import run

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


RECORDED = """
    import pytensorlib as torch
    from pytensorlib import _C
    from pytensorlib.nn import functional as F

    def made():
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 2).to("wgpu")
        return net, torch.optim.AdamW(net.parameters(), lr=0.1)

    parts = {}

    def step(x, y):
        net, optimizer = parts["net"], parts["optimizer"]
        optimizer.zero_grad()
        loss = F.cross_entropy(F.dropout(net(x), 0.1), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def run(call, n=5):
        parts["net"], parts["optimizer"] = made()
        if call is not step:
            call.reset()
        torch.manual_seed(1)
        x, y = torch.ones(4, 3, device="wgpu"), torch.tensor([0, 1, 0, 1], device="wgpu")
        return [call(x, y).item() for _ in range(n)]

    def plain(x):
        return (x * 2 + torch.arange(3.0, device="wgpu")).relu().sum(0)

    pure = torch.graph(plain, fullgraph=True)
    train = torch.graph(step, fullgraph=True)
    want = run(step)
    print(run(train) == want, train.programs[0].kept > 0)
    for _ in range(2):
        for _ in range(4):
            x = torch.ones(2, 3, device="wgpu", requires_grad=True)
            found = pure(x.detach()).tolist()
        assert found == [4.0, 6.0, 8.0], found
        _C._wgpu_lose(0)
        try:
            pure(x.detach())
        except torch.AcceleratorError:
            print("lost")
        print(run(train) == want, len(train.programs), train.programs[0].kept > 0)
    x = torch.ones(2, 3, device="wgpu")
    print([pure(x).tolist() for _ in range(4)] == [found] * 4)
    print(len(pure.programs), pure.programs[0].lost, pure.programs[0].kept > 0)
"""


def test_recorded_calls_are_recorded_anew_on_the_gpu_that_comes_after() -> None:
    told = run(RECORDED)
    assert told == "True True\n" + 2 * "lost\nTrue 1 True\n" + "True\n1 False True\n"


def test_places_to_split_at_and_hashes_may_be_those_of_a_gpu() -> None:
    import pytensorlib as torch

    x = torch.arange(6)
    parts = torch.tensor_split(x, torch.tensor([1, 3], device="wgpu"))
    assert [p.tolist() for p in parts] == [[0], [1, 2], [3, 4, 5]]
    parts = torch.tensor_split(x.to("wgpu"), torch.tensor(2, device="wgpu"))
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3, 4, 5]]
    # The exclusive or of the bits, 1 ^ 2 and 3 ^ 3.
    assert torch.hash_tensor(torch.tensor([[1, 2], [3, 3]], device="wgpu"), 1).tolist() == [3, 0]
