"""State that is shared out over processes, beside the same in one process."""

import copy

import numpy as np
from needs import at_least, raises

import pytensorlib as torch
import pytensorlib.distributed as dist
from pytensorlib import nn
from pytensorlib.distributed.optim import ZeroRedundancyOptimizer
from pytensorlib.nn.parallel import DistributedDataParallel as DDP

F = nn.functional


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()


def batch(step: int, part: int) -> tuple:
    random = np.random.default_rng([step, part])
    return torch.tensor(random.standard_normal((4, 5))), torch.tensor(random.integers(0, 3, 4))


def whole_batch(step: int, size: int) -> tuple:
    return tuple(torch.cat(some) for some in zip(*(batch(step, r) for r in range(size))))


def close(found: nn.Module, expected: nn.Module) -> None:
    for p, q in zip(found.parameters(), expected.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-10, atol=1e-12)


def check_zero_redundancy_steps_as_the_whole_optimizer(rank: int, size: int) -> None:
    model, expected = DDP(net()), net()
    part = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    whole = torch.optim.Adam(expected.parameters(), lr=0.05)
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (part, whole)]

    def steps(first: int, last: int) -> None:
        for step in range(first, last):
            for module, optimizer, (x, y) in (
                (model, part, batch(step, rank)),
                (expected, whole, whole_batch(step, size)),
            ):
                optimizer.zero_grad()
                F.cross_entropy(module(x), y).backward()
                optimizer.step()
            for schedule in schedules:
                schedule.step()

    steps(0, 4)
    close(model.module, expected)
    assert sum(len(s) > 0 for s in part.optim.state.values()) < 4 or size == 1
    owned = [None] * size
    dist.all_gather_object(owned, len(part.optim.state))
    assert sum(owned) == 4
    part.consolidate_state_dict(to=size - 1)
    if rank == size - 1:
        found, known = part.state_dict(), whole.state_dict()
        assert list(found["state"]) == list(known["state"]) == [0, 1, 2, 3]
        for i, state in known["state"].items():
            for name, value in state.items():
                torch.testing.assert_close(found["state"][i][name], value, rtol=1e-9, atol=1e-12)
        assert found["param_groups"][0]["lr"] == known["param_groups"][0]["lr"]
    elif size > 1:
        with raises(RuntimeError, "has not been consolidated"):
            part.state_dict()
    again = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1.0)
    again.load_state_dict(copy.deepcopy(whole.state_dict()))
    part = again
    schedules[0].optimizer = again
    steps(4, 6)
    close(model.module, expected)


@at_least(2)
def check_zero_redundancy_with_uneven_inputs(rank: int, size: int) -> None:
    model = DDP(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with dist.Join([model, optimizer]):
        for step in range(2 + rank):
            optimizer.zero_grad()
            x, y = batch(step, rank)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    found = [None] * size
    dist.all_gather_object(found, [p.tolist() for p in model.parameters()])
    assert all(one == found[0] for one in found)
