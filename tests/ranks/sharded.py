"""State that is shared out over processes, beside the same in one process."""

import copy
import os
import shutil
import tempfile

import numpy as np
from needs import at_least, raises

import pytensorlib as torch
import pytensorlib.distributed as dist
from pytensorlib import nn
from pytensorlib.distributed import checkpoint
from pytensorlib.distributed._places import place_of
from pytensorlib.distributed.checkpoint import state_dict as states
from pytensorlib.distributed.fsdp import (
    FSDPModule,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    StateDictType,
    _shards,
    fully_shard,
)
from pytensorlib.distributed.fsdp._shards import whole as whole_of
from pytensorlib.distributed.fsdp.wrap import ModuleWrapPolicy
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


def steps_of(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list) -> list:
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


def check_fully_shard_trains_as_one_process(rank: int, size: int) -> None:
    for keep in (True, False):
        model, expected = net(), net()
        for layer in (model[0], model[2]):
            fully_shard(layer, reshard_after_forward=not keep)
        fully_shard(model)
        assert isinstance(model, FSDPModule) and isinstance(model, nn.Sequential)
        rows = [-(-n // size) for n in (7, 7, 3, 3)]
        assert all(len(p) <= n for p, n in zip(model.parameters(), rows))
        part = torch.optim.Adam(model.parameters(), lr=0.05)
        whole = torch.optim.Adam(expected.parameters(), lr=0.05)
        steps_of(model, part, [batch(s, rank) for s in range(4)])
        steps_of(expected, whole, [whole_batch(s, size) for s in range(4)])
        for p, q in zip(model.parameters(), expected.parameters()):
            torch.testing.assert_close(whole_of(p), q.detach(), rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            x, _ = batch(9, 0)
            torch.testing.assert_close(model(x), expected(x), rtol=1e-9, atol=1e-12)


def check_gathered_rows_are_freed_between_the_passes(rank: int, size: int) -> None:
    for again in (True, False):
        model = net()
        fully_shard(model, reshard_after_forward=again)
        gathers = []
        call, _shards.all_gather = _shards.all_gather, lambda *a: gathers.append(call(*a))
        x, y = batch(0, rank)
        loss = F.cross_entropy(model(x), y)
        assert len(gathers) == 1
        loss.backward()
        _shards.all_gather = call
        assert len(gathers) == 1 + again
        assert model[2].weight.grad.shape == model[2].weight.shape


def check_fully_shard_adds_gradients_up_and_mixes_types(rank: int, size: int) -> None:
    model, expected = net(), net()
    fully_shard(model)
    for last in (False, True):
        model.set_requires_gradient_sync(last)
        x, y = batch(int(last), rank)
        F.cross_entropy(model(x), y).backward()
        assert (model[0].weight.grad is not None) == last
        for r in range(size):
            x, y = batch(int(last), r)
            (F.cross_entropy(expected(x), y) / size).backward()
    for p, q in zip(model.parameters(), expected.parameters()):
        first = place_of(p).first
        torch.testing.assert_close(p.grad, q.grad[first : first + len(p)], rtol=1e-9, atol=1e-12)
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32)
    half = net().float()
    fully_shard(half, mp_policy=policy)
    out = half(torch.ones(2, 5))
    out.sum().backward()
    assert out.dtype == torch.float32 == half[0].weight.grad.dtype == half[0].weight.dtype


class Tied(nn.Module):
    """Two layers share a weight, and one parameter belongs to the root itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).double()
        self.again = nn.Linear(4, 4).double()
        self.again.weight = self.inner[0].weight
        self.scale = nn.Parameter(torch.ones(4, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.inner(x)) * self.scale


def check_fully_sharded_data_parallel(rank: int, size: int) -> None:
    torch.manual_seed(rank)  # the first one's parameters are given to all
    made = Tied()
    model = FullyShardedDataParallel(made, sync_module_states=True)
    state = model.state_dict()
    assert list(state) == list(Tied().state_dict())
    assert state["inner.0.weight"].shape == (4, 4)
    expected = Tied()
    expected.load_state_dict(state)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, expected)]
    for step in range(3):
        random = [
            torch.tensor(np.random.default_rng([step, r]).normal(size=(3, 4))) for r in range(size)
        ]
        for m, o, x in zip((model, expected), optimizers, (random[rank], torch.cat(random))):
            o.zero_grad()
            m(x).square().mean().backward()
            o.step()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, expected.state_dict()[name], rtol=1e-10, atol=1e-12)
    with FullyShardedDataParallel.summon_full_params(model):
        assert model.module.again.weight.shape == (4, 4)
        with torch.no_grad():
            model.module.scale.fill_(3)
    assert whole_of(made.scale).tolist() == [3.0] * 4
    model.load_state_dict(state)
    assert torch.equal(model.state_dict()["scale"], torch.ones(4, dtype=torch.float64))
    inside = FullyShardedDataParallel(net(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    assert len(FullyShardedDataParallel.fsdp_modules(inside)) == 3
    plain = net()
    x, _ = batch(0, 0)
    torch.testing.assert_close(inside(x), plain(x))
    kind = FullStateDictConfig(rank0_only=True)
    whole = StateDictType.FULL_STATE_DICT
    with FullyShardedDataParallel.state_dict_type(inside, whole, kind):
        assert len(inside.state_dict()) == (4 if rank == 0 else 0)
    assert list(inside.state_dict()) == list(plain.state_dict())
    with raises(ValueError, "is a scalar"):
        scalar = nn.Module()
        scalar.p = nn.Parameter(torch.ones(()))
        fully_shard(scalar)


def check_checkpoint_is_written_while_training_goes_on(rank: int, size: int) -> None:
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    (path,) = folder
    model = net()
    fully_shard(model)
    known = [whole_of(p).clone() for p in model.parameters()]
    notes = ["a"]
    saved = [
        checkpoint.async_save(
            {"model": model.state_dict(), "n": n, "notes": notes}, checkpoint_id=f"{path}/{n}"
        )
        for n in range(2)
    ]
    notes.append("b")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    steps_of(model, optimizer, [batch(s, rank) for s in range(3)])
    for n, future in enumerate(saved):
        future.result(timeout=30)
        alone = net()
        state = {"model": alone.state_dict(), "n": -1, "notes": []}
        checkpoint.load(state, checkpoint_id=f"{path}/{n}", no_dist=True)
        assert (state["n"], state["notes"]) == (n, ["a"])
        for p, q in zip(alone.parameters(), known):
            assert torch.equal(p, q)
    with raises(checkpoint.CheckpointException, "cannot save to"):
        checkpoint.async_save({"n": 1}, checkpoint_id="/dev/null/x").result(timeout=30)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(path)


def check_checkpoint_of_shards_loads_anywhere(rank: int, size: int) -> None:
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    (path,) = folder
    model = net()
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    steps_of(model, optimizer, [batch(s, rank) for s in range(2)])
    known = [whole_of(p) for p in model.parameters()]
    first = optimizer.state_dict()["state"][0]["exp_avg"]
    moment = whole_of(first)
    assert place_of(first).shape == (7, 5)
    saved = {"model": model.state_dict(), "optim": optimizer.state_dict(), "epoch": 3}
    checkpoint.save({**saved, "names": ["a", "b"]}, checkpoint_id=path)
    assert sorted(os.listdir(path)) == [".metadata", *(f"__{r}_0.distcp" for r in range(size))]
    # Into one process that shares nothing out, and into other shards.
    alone = net()
    adam = torch.optim.Adam(alone.parameters())
    F.cross_entropy(alone(batch(0, 0)[0]), batch(0, 0)[1]).backward()
    adam.step()
    state = {"model": alone.state_dict(), "optim": adam.state_dict(), "epoch": 0, "names": []}
    checkpoint.load(state, checkpoint_id=path, no_dist=True)
    assert state["epoch"] == 3 and state["names"] == ["a", "b"]
    for p, q in zip(alone.parameters(), known):
        assert torch.equal(p, q)
    assert torch.equal(adam.state_dict()["state"][0]["exp_avg"], moment)
    other = net()
    for layer in (other[0], other[2]):
        fully_shard(layer)
    checkpoint.load({"model": other}, checkpoint_id=path)
    for p, q in zip(other.parameters(), known):
        assert torch.equal(whole_of(p), q)
    # Whole states, by name.
    full = states.StateDictOptions(full_state_dict=True)
    found, steps = states.get_state_dict(model, optimizer, options=full)
    assert torch.equal(found["0.weight"], known[0])
    assert torch.equal(steps["state"]["0.weight"]["exp_avg"], moment)
    again = net()
    fully_shard(again)
    new = torch.optim.Adam(again.parameters())
    both = {"model_state_dict": found, "optim_state_dict": steps}
    states.set_state_dict(again, new, **both, options=full)
    steps_of(again, new, [batch(7, rank)])
    steps_of(model, optimizer, [batch(7, rank)])
    for p, q in zip(again.parameters(), model.parameters()):
        assert torch.equal(p, q)
    with raises(checkpoint.CheckpointException, "Missing key in checkpoint state_dict: nope"):
        checkpoint.load({"nope": 1}, checkpoint_id=path)
    with raises(checkpoint.CheckpointException, "Size mismatch"):
        checkpoint.load({"model": {"0.weight": torch.ones(2)}}, checkpoint_id=path)
    if size > 1:
        with raises(checkpoint.CheckpointException, "not the same tensor on all processes"):
            checkpoint.save({"x": torch.ones(rank + 1)}, checkpoint_id=path)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(path)
