"""`DistributedDataParallel` and what belongs to it, beside the same in one process."""

import math

import numpy as np
from needs import at_least, raises

import pytensorlib as torch
import pytensorlib.distributed as dist
from pytensorlib import nn
from pytensorlib.distributed import _staged
from pytensorlib.distributed.algorithms.ddp_comm_hooks import default_hooks
from pytensorlib.examples.digits import DigitNet
from pytensorlib.nn.parallel import DistributedDataParallel as DDP

F = nn.functional


def net(dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)
    ).to(dtype)


def batch(step: int, part: int, dtype: torch.dtype = torch.float64) -> tuple:
    random = np.random.default_rng([step, part])
    x = torch.tensor(random.standard_normal((6, 8)), dtype=dtype)
    return x, torch.tensor(random.integers(0, 4, 6))


def grads(module: nn.Module) -> list:
    return [p.grad for p in module.parameters()]


def same_on_all(tensors: list) -> None:
    bits = b"".join(t.detach().cpu().numpy().tobytes() for t in tensors)
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, bits)
    assert len(set(found)) == 1


def trained(model: nn.Module, dtype: torch.dtype, parts: list, whole: bool = False) -> nn.Module:
    """Five steps; with several parts their gradients are averaged, or their batches joined."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(5):
        optimizer.zero_grad()
        batches = [batch(step, part, dtype) for part in parts]
        if whole:
            x, y = (torch.cat(some) for some in zip(*batches))
            F.cross_entropy(model(x), y).backward()
        else:
            sums = None
            for x, y in batches:
                model.zero_grad()
                F.cross_entropy(model(x), y).backward()
                new = [g / len(parts) for g in grads(model)]
                sums = new if sums is None else [a + b for a, b in zip(sums, new)]
            for p, g in zip(model.parameters(), sums):
                p.grad = g
        optimizer.step()
    return model


@at_least(2)
def check_training_is_that_of_one_process_with_all_batches(rank: int, size: int) -> None:
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        for options in ({}, {"bucket_cap_mb": 0.0005}, {"gradient_as_bucket_view": True}):
            # Another seed on each rank: the first one's parameters count.
            model = DDP(net(dtype, seed=rank), **options)
            trained(model, dtype, [rank])
            same_on_all(list(model.parameters()))
            whole = trained(net(dtype), dtype, list(range(size)), whole=True)
            for p, q in zip(model.parameters(), whole.parameters()):
                assert (p - q).abs().max().item() <= close
            if size == 2:  # the order of two addends is no matter: the bits are the same
                alone = trained(net(dtype), dtype, [0, 1])
                for p, q in zip(model.parameters(), alone.parameters()):
                    assert torch.equal(p, q)


def images(step: int, part: int, dtype: torch.dtype) -> tuple:
    random = np.random.default_rng([7, step, part])
    x = torch.tensor(random.random((32, 1, 8, 8)), dtype=dtype)
    return x, torch.tensor(random.integers(0, 10, 32))


def learn(model: nn.Module, dtype: torch.dtype, parts: list) -> list:
    """Return the parameters after five steps on parts that are joined."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(5):
        x, y = (torch.cat(some) for some in zip(*[images(step, p, dtype) for p in parts]))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return list(model.parameters())


@at_least(2)
def check_network_of_the_digits_learns_as_on_the_joined_batch(rank: int, size: int) -> None:
    def digits(dtype: torch.dtype, seed: int) -> nn.Module:
        torch.manual_seed(seed)
        model = DigitNet().to(dtype)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0  # its numbers are each rank's own
        return nn.SyncBatchNorm.convert_sync_batchnorm(model)

    # Sums over the batch are sums of the ranks' sums, each rounded: five steps differ in a few last
    # bits. So do PyTorch's, on two ranks by Gloo: 904 of 38282 such parameters, by 2.8e-17 at most.
    # Sums of the ranks' sums would differ even were all of them rounded only once.
    for dtype, close in ((torch.float64, 1e-15), (torch.float32, 1e-6)):
        split = learn(DDP(digits(dtype, rank)), dtype, [rank])
        same_on_all(split)
        alone = dist.new_group([rank], use_local_synchronization=True)
        model = digits(dtype, 0)
        for module in model.modules():
            if isinstance(module, nn.SyncBatchNorm):
                module.process_group = alone
        joined = learn(model, dtype, list(range(size)))
        for p, q in zip(split, joined):
            assert (p - q).abs().max().item() <= close


@at_least(2)
def check_exact_numbers_learn_as_on_the_joined_batch_to_the_bit(rank: int, size: int) -> None:
    if size & (size - 1):
        return  # the mean over the ranks is no exact number

    def exact(key: list, shape: tuple) -> torch.Tensor:
        """Few bits: neither a product nor a sum of a pass is rounded."""
        return torch.tensor(np.random.default_rng(key).integers(-4, 5, shape) / 4)

    def model() -> nn.Module:
        layers = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        net = nn.Sequential(*layers, nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 2)).double()
        with torch.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(exact([1, i], tuple(p.shape)))
        return net

    def step(net: nn.Module, parts: list) -> list:
        x, y = (torch.cat([exact([k, p], s) for p in parts]) for k, s in shapes.items())
        optimizer = torch.optim.SGD(net.parameters(), lr=2.0**-6)
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        return list(net.parameters())

    shapes = {2: (16, 1, 8, 8), 3: (16, 2)}
    split, joined = step(DDP(model()), [rank]), step(model(), list(range(size)))
    for p, q, first in zip(split, joined, model().parameters()):
        assert torch.equal(p, q) and not torch.equal(p, first)


@at_least(2)
def check_buckets_start_before_the_pass_ends(rank: int, size: int) -> None:
    model = DDP(net(), bucket_cap_mb=0.0005)
    assert len(model.reducer.buckets) > 2
    seen = []
    first = next(model.module.parameters())
    first.register_hook(lambda g: seen.append(model.reducer.next))
    x, y = batch(0, rank)
    F.cross_entropy(model(x), y).backward()
    assert seen[0] >= 2  # others were under way when the first layer's gradient came


@at_least(2)
def check_no_sync_adds_up_and_the_next_pass_averages(rank: int, size: int) -> None:
    model, alone = DDP(net()), net()
    with model.no_sync():
        x, y = batch(0, rank)
        F.cross_entropy(model(x), y).backward()
    x, y = batch(0, rank)
    F.cross_entropy(alone(x), y).backward()
    for g, own in zip(grads(model), grads(alone)):
        assert torch.equal(g, own)
    x, y = batch(1, rank)
    F.cross_entropy(model(x), y).backward()
    expected = net()
    for r in range(size):
        for step in (0, 1):
            x, y = batch(step, r)
            (F.cross_entropy(expected(x), y) / size).backward()
    for g, h in zip(grads(model), grads(expected)):
        torch.testing.assert_close(g, h, rtol=1e-12, atol=1e-14)


class Fork(nn.Module):
    """Only one of two layers has a part in a pass; a third never has."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.never = (nn.Linear(2, 1).double() for _ in range(3))

    def forward(self, x: torch.Tensor, left: bool) -> dict:
        return {"out": [self.left(x) if left else self.right(x)]}


@at_least(2)
def check_unused_parameters(rank: int, size: int) -> None:
    x = torch.ones(1, 2, dtype=torch.float64)
    model = DDP(Fork(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(x, rank == 0)["out"][0].sum().backward()
        left, right = model.module.left.weight.grad, model.module.right.weight.grad
        assert left.tolist() == [[1 / size] * 2]
        assert right.tolist() == [[(size - 1) / size] * 2]
        assert model.module.never.weight.grad is None
    static = DDP(Fork(), static_graph=True)
    for _ in range(3):
        static.zero_grad()
        static(x, True)["out"][0].sum().backward()
        assert static.module.left.weight.grad.tolist() == [[1.0] * 2]
        assert static.module.right.weight.grad is None
    strict = DDP(Fork())
    strict(x, True)["out"][0].sum().backward()
    with raises(RuntimeError, "finished reduction in the prior iteration.*right.weight"):
        strict(x, True)


@at_least(2)
def check_comm_hooks(rank: int, size: int) -> None:
    plain = DDP(net(torch.float32))
    x, y = batch(0, rank, torch.float32)
    F.cross_entropy(plain(x), y).backward()
    for hook, close in (
        (default_hooks.allreduce_hook, 0.0),
        (default_hooks.fp16_compress_hook, 2e-3),
        (default_hooks.bf16_compress_hook, 1e-2),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 1e-2),
    ):
        model = DDP(net(torch.float32), bucket_cap_mb=0.001)
        model.register_comm_hook(None, hook)
        F.cross_entropy(model(x), y).backward()
        same_on_all(grads(model))
        for g, h in zip(grads(model), grads(plain)):
            assert g.dtype == torch.float32
            assert (g - h).abs().max().item() <= close * max(1.0, h.abs().max().item())
    with raises(RuntimeError, "only be once"):
        model.register_comm_hook(None, hook)
    names = []

    def by_hand(state: list, bucket: dist.GradBucket) -> torch.futures.Future:
        state.append((bucket.index(), bucket.is_last(), len(bucket.parameters())))
        assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda f: f.value()[0] / size)

    model = DDP(net(torch.float32), bucket_cap_mb=0.001)
    model.register_comm_hook(names, by_hand)
    F.cross_entropy(model(x), y).backward()
    assert [n[0] for n in names] == list(range(len(names))) and names[-1][1]
    for g, h in zip(grads(model), grads(plain)):
        torch.testing.assert_close(g, h)


@at_least(2)
def check_buffers_are_those_of_the_first_process(rank: int, size: int) -> None:
    model = DDP(nn.BatchNorm1d(3))
    model(torch.full((2, 3), float(rank + 1)))
    expected = nn.BatchNorm1d(3)
    expected(torch.full((2, 3), 1.0))
    model(torch.zeros(2, 3))
    expected(torch.zeros(2, 3))
    assert torch.equal(model.module.running_mean, expected.running_mean)
    assert list(model.state_dict())[0] == "module.weight"
    own = DDP(nn.BatchNorm1d(3), broadcast_buffers=False)
    for _ in range(2):
        own(torch.full((2, 3), float(rank)))
    torch.testing.assert_close(own.module.running_mean, torch.full((3,), 0.19 * rank))


@at_least(2)
def check_synchronised_batch_norm_is_that_of_the_whole_batch(rank: int, size: int) -> None:
    torch.manual_seed(3)
    parts = [torch.randn(2 + r, 3, 4, dtype=torch.float64) * 2 + 1 for r in range(size)]
    whole = torch.cat(parts).requires_grad_()
    scale = torch.randn(3, 4, dtype=torch.float64)
    expected = nn.BatchNorm1d(3).double()
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3).double())
    x = parts[rank].requires_grad_()
    y, z = model(x), expected(whole)
    rows = slice(sum(len(p) for p in parts[:rank]), sum(len(p) for p in parts[: rank + 1]))
    (y.square() * scale).sum().backward()
    (z.square() * scale).sum().backward()
    torch.testing.assert_close(y, z[rows])
    torch.testing.assert_close(x.grad, whole.grad[rows])
    dist.all_reduce(model.weight.grad)
    torch.testing.assert_close(model.weight.grad, expected.weight.grad)
    torch.testing.assert_close(model.running_mean, expected.running_mean)
    torch.testing.assert_close(model.running_var, expected.running_var)
    model.eval(), expected.eval()
    torch.testing.assert_close(model(parts[0].detach()), expected(parts[0].detach()))
    half = nn.SyncBatchNorm(3).half()
    assert half(torch.ones(2, 3, dtype=torch.float16) * rank).dtype == torch.float16


@at_least(2)
def check_join_with_uneven_inputs(rank: int, size: int) -> None:
    # PyTorch's documented example: rank r has r + 1 batches, and none waits for ever.
    model = DDP(nn.Linear(1, 1, bias=False).double(), bucket_cap_mb=0.0001)
    nn.init.ones_(model.module.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight, found = 1.0, []
    with model.join():
        for _ in range(rank + 1):
            optimizer.zero_grad()
            model(torch.ones(1, 1, dtype=torch.float64)).sum().backward()
            found.append(model.module.weight.grad.item())
            optimizer.step()
    # In step s the processes s and above add 1 each, divided by all.
    expected = [(size - s) / size for s in range(rank + 1)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    weight -= 0.1 * sum((size - s) / size for s in range(size))
    np.testing.assert_allclose(model.module.weight.item(), weight, rtol=1e-14)
    same_on_all(list(model.parameters()))
    model(torch.ones(1, 1, dtype=torch.float64)).sum().backward()  # and it goes on
    found = []
    with model.join(divide_by_initial_world_size=False):
        for _ in range(rank + 1):
            model.zero_grad()
            model(torch.ones(1, 1, dtype=torch.float64)).sum().backward()
            found.append(model.module.weight.grad.item())
    np.testing.assert_allclose(found, [1.0] * (rank + 1), rtol=1e-14)
    with raises(RuntimeError, "at least one rank that exhausted inputs"):
        with model.join(throw_on_early_termination=True):
            for _ in range(rank + 1):
                model(torch.ones(1, 1, dtype=torch.float64)).sum().backward()


@at_least(2)
def check_join_with_buffers(rank: int, size: int) -> None:
    model = DDP(nn.BatchNorm1d(2))
    with model.join():
        for step in range(2 * rank + 1):
            model(torch.full((3, 2), float(step))).sum().backward()
    same_on_all([*model.parameters(), *model.buffers()])
    assert model.module.num_batches_tracked.item() == 2 * size - 1


@at_least(2)
def check_modules_that_differ_are_told(rank: int, size: int) -> None:
    with raises(RuntimeError, r"params\[0\] \(weight\) on rank 1 with sizes \[2, 3\]"):
        DDP(nn.Linear(3 if rank == 1 else 2, 2))
    with raises(RuntimeError, "rank 1 has inconsistent 1 params"):
        DDP(nn.Linear(2, 2, bias=rank != 1))
    with raises(RuntimeError, "not needed when a module"):
        DDP(nn.ReLU())
    with raises(ValueError, "device_ids"):
        DDP(nn.Linear(2, 2), device_ids=[0])


def check_calls_with_derivatives(rank: int, size: int) -> None:
    """Each result and gradient beside the same sums in one process."""
    from pytensorlib.distributed import nn as calls

    given = [np.random.default_rng(r).standard_normal((size, 3)) for r in range(size)]
    seen = [np.random.default_rng([r, 1]).standard_normal((size, 3)) for r in range(size)]
    x = torch.tensor(given[rank], requires_grad=True)
    weight = torch.tensor(seen[rank])

    def held(y: torch.Tensor, value: np.ndarray, grad: np.ndarray, w: torch.Tensor) -> None:
        np.testing.assert_allclose(y.detach().numpy(), value, rtol=1e-12, atol=1e-14)
        (found,) = torch.autograd.grad((y * w).sum(), x)
        np.testing.assert_allclose(found.numpy(), grad, rtol=1e-12, atol=1e-14)

    total, zeros = sum(given), np.zeros((size, 3))
    held(calls.all_reduce(x), total, sum(seen), weight)
    held(calls.broadcast(x, 0), given[0], sum(seen) if rank == 0 else zeros, weight)
    here = rank == size - 1
    held(calls.reduce(x, size - 1), total if here else zeros, seen[-1], weight)
    y = torch.stack(calls.all_gather(x[0]))
    grad = zeros.copy()
    grad[0] = sum(s[rank] for s in seen)
    held(y, np.stack([g[0] for g in given]), grad, weight)
    y = torch.stack(calls.gather(x[0], 0))
    grad[0] = seen[0][rank]
    held(y, np.stack([g[0] for g in given]) if rank == 0 else zeros, grad, weight)
    y = calls.scatter(list(x), 0)
    held(y, given[0][rank], np.stack([s[0] for s in seen]) if rank == 0 else zeros, weight[0])
    y = calls.reduce_scatter(torch.zeros(3), list(x))
    held(y, total[rank], np.stack([s[0] for s in seen]), weight[0])
    y = torch.stack(calls.all_to_all(list(torch.zeros(size, 3)), list(x)))
    back = np.stack([s[rank] for s in seen])
    held(y, np.stack([g[rank] for g in given]), back, weight)
    y = calls.all_to_all_single(torch.zeros(size, 3), x)
    held(y, np.stack([g[rank] for g in given]), back, weight)


def check_sampler_shares_by_rank(rank: int, size: int) -> None:
    sampler = torch.utils.data.DistributedSampler(range(8), shuffle=False)
    assert list(sampler)[0] == rank and sampler.num_replicas == size


@at_least(2)
def check_subgroup_averages_among_its_members(rank: int, size: int) -> None:
    alone, _ = dist.new_subgroups(1)
    model = DDP(net(), process_group=alone)
    x, y = batch(0, rank)
    F.cross_entropy(model(x), y).backward()
    expected = net()
    F.cross_entropy(expected(x), y).backward()
    for g, h in zip(grads(model), grads(expected)):
        assert torch.equal(g, h)


@at_least(2)
def check_large_tensors_go_in_pieces(rank: int, size: int) -> None:
    whole = _staged.PIECE
    numbers = torch.tensor(np.random.default_rng(rank).standard_normal(100_003))
    found = []
    for piece in (whole, 1 << 16, 1 << 13):  # no order of a sum depends on how it is cut
        _staged.PIECE = piece
        found.append(numbers.clone())
        dist.all_reduce(found[-1])
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    _staged.PIECE = 1 << 16
    total = size * (size + 1) // 2
    for device in ["cpu", "wgpu"] if size == 2 and torch.wgpu.is_available() else ["cpu"]:
        for shape, dtype in [((50_001,), torch.float32), ((300, 151), torch.bfloat16)]:
            x = (torch.arange(math.prod(shape)) % 10).reshape(shape).to(dtype)
            y = ((rank + 1) * x).to(device)
            dist.all_reduce(y.t() if y.ndim > 1 else y)
            assert torch.equal(y.cpu(), total * x)
            y.div_(rank + 1)
            work = dist.broadcast(y.t() if y.ndim > 1 else y, 1, async_op=True)
            work.wait()
            assert torch.equal(y.cpu(), total * x / 2)
            sums = torch.empty(x.t().shape, dtype=dtype, device=device).t()
            parts = torch.stack([(rank + k + 1) * x for k in range(size)]).to(device)
            dist.reduce_scatter_tensor(sums, parts)
            assert torch.equal(sums.cpu(), (total + size * rank) * x)
            all_sums = torch.empty(size, *shape, dtype=dtype, device=device)
            dist.all_gather_into_tensor(all_sums, sums)
            assert torch.equal(all_sums[-1].cpu(), (total + size * (size - 1)) * x)
            assert torch.equal(all_sums[0].cpu(), total * x)
    _staged.PIECE = whole


@at_least(2)
def check_tensors_on_a_gpu_go_through_the_host(rank: int, size: int) -> None:
    if size > 2 or not torch.wgpu.is_available():
        return
    x = torch.full((2, 3), rank + 1.0, device="wgpu")
    dist.all_reduce(x.t())
    assert x.tolist() == [[3.0] * 3] * 2 and x.device.type == "wgpu"
    parts = [torch.zeros(2, device="wgpu") for _ in range(size)]
    dist.all_gather(parts, torch.full((2,), float(rank), device="wgpu"))
    assert [p.tolist() for p in parts] == [[0.0, 0.0], [1.0, 1.0]]
    model = DDP(nn.Linear(2, 1, bias=False).to("wgpu"))
    model(torch.full((1, 2), float(rank), device="wgpu")).sum().backward()
    assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
    assert model.module.weight.grad.device.type == "wgpu"
