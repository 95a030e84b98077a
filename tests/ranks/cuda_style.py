"""A script as people write it for several CUDA devices, with one for each rank or one for all."""

import os
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(device: torch.device, rank: int, world: int) -> list[float]:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    model = DDP(net, device_ids=[device.index]) if world > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    data = TensorDataset(torch.linspace(-1, 1, 64).reshape(16, 4), torch.arange(16) % 2)
    sampler = DistributedSampler(data, world, rank, shuffle=False) if world > 1 else None
    losses = []
    for _ in range(3):
        for x, y in DataLoader(data, 16 // world, sampler=sampler, pin_memory=True):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        total = loss.detach().clone()
        if world > 1:
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
        losses.append(total.item())
    return losses


def main() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dist.init_process_group("nccl")
        other = dist.new_group(backend="nccl")
    said = [w for w in told if "MPI moves the data for the backend 'nccl'" in str(w.message)]
    assert len(said) == 1, told
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    device = torch.device("cuda", torch.cuda.current_device())
    assert dist.get_backend() == "nccl" == dist.get_backend(other) and dist.is_nccl_available()
    assert dist.is_backend_available("nccl") and not dist.is_backend_available("xccl")
    assert dist.get_backend_config() == "cpu:nccl,cuda:nccl"
    x = torch.full((2,), rank + 1.0, device=device)
    dist.all_reduce(x)
    assert x.is_cuda and x.tolist() == [world * (world + 1) / 2] * 2
    parts = [torch.empty(1, device=device) for _ in range(world)]
    dist.all_gather(parts, torch.tensor([float(rank)], device=device))
    assert [p.item() for p in parts] == list(range(world)) and parts[0].is_cuda
    (found,) = [[None] * world]
    dist.all_gather_object(found, torch.ones(1, device=device) * rank)
    assert [t.item() for t in found] == list(range(world))
    losses = train(device, rank, world)
    alone = train(device, 0, 1)
    assert max(abs(a - b) for a, b in zip(losses, alone, strict=True)) < 1e-5, (losses, alone)
    print(f"rank {rank} on {device}", flush=True)
    dist.destroy_process_group()


main()
