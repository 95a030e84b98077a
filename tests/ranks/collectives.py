"""What each call of `torch.distributed` gives; expected are closed forms and PyTorch's examples."""

import datetime as dt

import numpy as np
from needs import at_least, raises

import pytensorlib as torch
import pytensorlib.distributed as dist

SUM, AVG, PRODUCT = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def same(found: object, expected: object) -> None:
    x = found.tolist() if isinstance(found, torch.Tensor) else found
    y = expected.tolist() if isinstance(expected, (torch.Tensor, np.ndarray)) else expected
    assert x == y, f"{x} is not {y}"


def check_all_reduce_has_every_operation_for_every_type(rank: int, size: int) -> None:
    rows = np.array([[r, 1, 3, r + 2] for r in range(size)])
    known = {
        "SUM": rows.sum(0),
        "PRODUCT": rows.prod(0),
        "MIN": rows.min(0),
        "MAX": rows.max(0),
        "BAND": np.bitwise_and.reduce(rows),
        "BOR": np.bitwise_or.reduce(rows),
        "BXOR": np.bitwise_xor.reduce(rows),
    }
    for dtype in INTEGERS + FLOATS:
        for name, expected in known.items():
            x = torch.tensor(rows[rank]).to(dtype)
            op = getattr(dist.ReduceOp, name)
            if dtype.is_floating_point and name.startswith("B"):
                with raises(RuntimeError, "non-integral"):
                    dist.all_reduce(x, op)
            else:
                dist.all_reduce(x, op)
                same(x, torch.tensor(expected).to(dtype))
                assert x.dtype == dtype
        x = torch.tensor(rows[rank]).to(dtype)
        if dtype.is_floating_point:
            dist.all_reduce(x, AVG)
            same(x, torch.tensor(rows.mean(0)).to(dtype))
        else:
            with raises(RuntimeError, "Float can't be cast"):
                dist.all_reduce(x, AVG)


def check_bools_are_summed_as_any_and_multiplied_as_all(rank: int, size: int) -> None:
    rows = np.array([[r == 0, True, False, r % 2 == 0] for r in range(size)])
    known = {
        "SUM": rows.any(0),
        "PRODUCT": rows.all(0),
        "MIN": rows.all(0),
        "MAX": rows.any(0),
        "BAND": rows.all(0),
        "BOR": rows.any(0),
        "BXOR": np.logical_xor.reduce(rows),
    }
    for name, expected in known.items():
        x = torch.tensor(rows[rank])
        dist.all_reduce(x, getattr(dist.ReduceOp, name))
        same(x, expected)


def check_complex_numbers_are_summed_and_have_no_order(rank: int, size: int) -> None:
    # The documentation's example.
    x = torch.tensor([1 + 1j, 2 + 2j], dtype=torch.cfloat) + 2 * rank * (1 + 1j)
    dist.all_reduce(x, op=SUM)
    total = size * (size - 1)
    same(x, [(size + total) * (1 + 1j), (2 * size + total) * (1 + 1j)])
    with raises(ValueError, "does not support RedOpType.MAX on complex"):
        dist.all_reduce(x, dist.ReduceOp.MAX)


def check_half_types_are_rounded_once(rank: int, size: int) -> None:
    # In bfloat16, 256 + 1 is 256 again each time.
    x = torch.tensor([256.0 if rank == 0 else 1.0], dtype=torch.bfloat16)
    dist.all_reduce(x)
    same(x, torch.tensor([256.0 + (size - 1)]).to(torch.bfloat16))


def check_all_ranks_get_the_same_bits(rank: int, size: int) -> None:
    torch.manual_seed(rank)
    for n in (1, 7, 1000, 70_000):
        for dtype in (torch.float32, torch.float64, torch.float16):
            x = torch.randn(n).to(dtype)
            dist.all_reduce(x)
            found = [None] * size
            dist.all_gather_object(found, x.numpy().tobytes())
            assert len(set(found)) == 1


def check_strides_scalars_and_nothing(rank: int, size: int) -> None:
    whole = torch.zeros(4, 6)
    part = whole.t()[::2, 1:3]
    part.fill_(rank + 1.0)
    dist.all_reduce(part)
    total = size * (size + 1) / 2
    same(part, [[total] * 2] * 3)
    assert whole.sum().item() == 6 * total
    x = torch.tensor(float(rank))
    dist.all_reduce(x)
    assert x.item() == size * (size - 1) / 2
    dist.all_reduce(torch.zeros(0, 3))
    dist.broadcast(torch.zeros(0), 0)
    weight = torch.nn.Parameter(torch.ones(2))
    before = weight._version
    dist.all_reduce(weight)
    same(weight.detach(), [float(size)] * 2)
    assert weight._version > before


def check_premultiplied_sum(rank: int, size: int) -> None:
    x = torch.ones(2)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    same(x, [size / 2] * 2)


def check_all_reduce_coalesced(rank: int, size: int) -> None:
    x, y = torch.ones(2, 2).t(), torch.full((3,), 2.0)
    dist.all_reduce_coalesced([x, y])
    same(x, [[float(size)] * 2] * 2)
    same(y, [2.0 * size] * 3)


def check_broadcast_and_reduce(rank: int, size: int) -> None:
    for root in range(size):
        x = torch.arange(3) if rank == root else torch.zeros(3, dtype=torch.int64)
        dist.broadcast(x, src=root)
        same(x, [0, 1, 2])
        x = torch.tensor([rank + 1.0])
        dist.reduce(x, dst=root)
        same(x, [size * (size + 1) / 2 if rank == root else rank + 1.0])
    with raises(ValueError, "Must specify src"):
        dist.broadcast(torch.ones(1))
    with raises(ValueError, "not part of group"):
        dist.broadcast(torch.ones(1), src=size)


def check_all_gather(rank: int, size: int) -> None:
    # The documentation's example.
    out = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(out, torch.arange(2, dtype=torch.int64) + 1 + 2 * rank)
    same([t.tolist() for t in out], [[1 + 2 * r, 2 + 2 * r] for r in range(size)])
    # Shapes of their own, and places that lie across.
    out = [torch.zeros(3, r + 1).t() for r in range(size)]
    dist.all_gather(out, torch.full((rank + 1, 3), float(rank)))
    for r, t in enumerate(out):
        same(t, [[float(r)] * 3] * (r + 1))
    for wrong, error in (
        ([torch.ones(2)] * (size + 1), RuntimeError),
        ([torch.ones(3)] * size, RuntimeError),
        ([torch.ones(2).double()] * size, ValueError),
        (torch.ones(size), TypeError),
    ):
        with raises(error, "all_gather"):
            dist.all_gather(wrong, torch.ones(2))


def check_all_gather_into_tensor(rank: int, size: int) -> None:
    x = torch.arange(2) + 1 + 2 * rank
    for shape in ((2 * size,), (size, 2)):
        out = torch.zeros(shape, dtype=torch.int64)
        dist.all_gather_into_tensor(out, x)
        same(out, np.arange(1, 2 * size + 1).reshape(shape))
    out = torch.zeros(size, 2, dtype=torch.int64)
    out[rank] = x
    dist.all_gather_into_tensor(out, out[rank])
    same(out, np.arange(1, 2 * size + 1).reshape(size, 2))
    lists = [[torch.zeros(2), torch.zeros(1)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.tensor([rank + 0.5])])
    for r, (a, b) in enumerate(lists):
        same([*a.tolist(), *b.tolist()], [r, r, r + 0.5])
    with raises(ValueError, "times the elements"):
        dist.all_gather_into_tensor(torch.ones(2 * size + 1), torch.ones(2))


def check_gather_and_scatter(rank: int, size: int) -> None:
    root = size - 1
    out = [torch.zeros(2) for _ in range(size)] if rank == root else None
    dist.gather(torch.full((2,), float(rank)), out, dst=root)
    if out:
        same([t.tolist() for t in out], [[float(r)] * 2 for r in range(size)])
    given = [torch.full((2,), r * 5.0) for r in range(size)] if rank == root else None
    x = torch.zeros(2)
    dist.scatter(x, given, src=root)
    same(x, [rank * 5.0] * 2)
    if rank == root:
        with raises(ValueError, "must be specified on source"):
            dist.scatter(x, src=root)
        with raises(ValueError, "must be specified on destination"):
            dist.gather(x, dst=root)


def check_reduce_scatter(rank: int, size: int) -> None:
    parts = [torch.full((r + 1,), float(rank + r)) for r in range(size)]
    x = torch.zeros(rank + 1)
    dist.reduce_scatter(x, parts)
    same(x, [size * (size - 1) / 2 + size * rank] * (rank + 1))
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = torch.zeros(2, dtype=dtype)
        dist.reduce_scatter_tensor(x, torch.arange(2 * size).to(dtype))
        same(x, [2 * rank * size, (2 * rank + 1) * size])
        if dtype.is_floating_point:
            dist.reduce_scatter_tensor(x, torch.arange(2 * size).to(dtype), AVG)
            same(x, [2 * rank, 2 * rank + 1])


def check_all_to_all(rank: int, size: int) -> None:
    # The documentation's examples: equal parts, then parts of their own lengths.
    x = torch.arange(size) + rank * size
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    same(out, [rank + r * size for r in range(size)])
    lengths = [r + rank + 1 for r in range(size)]
    x = torch.cat([torch.full((n, 2), 10 * rank + r) for r, n in enumerate(lengths)])
    out = torch.zeros(sum(lengths), 2, dtype=x.dtype)
    dist.all_to_all_single(out, x, lengths, lengths)
    same(out, [[10 * r + rank] * 2 for r, n in enumerate(lengths) for _ in range(n)])
    given = [torch.full((r + 1,), 10.0 * rank + r) for r in range(size)]
    got = [torch.zeros(rank + 1) for _ in range(size)]
    dist.all_to_all(got, given)
    same([t.tolist() for t in got], [[10.0 * r + rank] * (rank + 1) for r in range(size)])
    with raises(RuntimeError, "sum up to"):
        dist.all_to_all_single(torch.ones(size), torch.ones(size), [2] * size, [1] * size)


@at_least(2)
def check_send_and_receive(rank: int, size: int) -> None:
    to, of = (rank + 1) % size, (rank - 1) % size
    x, y = torch.full((2, 3), float(rank)).t(), torch.zeros(3, 2)
    works = [dist.isend(x, to, tag=5), dist.irecv(y, of, tag=5)]
    for work in works:
        work.wait()
    assert works[1].source_rank() == of
    same(y, [[float(of)] * 2] * 3)
    ops = [dist.P2POp(dist.irecv, y, of), dist.P2POp(dist.isend, x + 10, to)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(y, [[10.0 + of] * 2] * 3)
    if rank == 0:
        for _ in range(size - 1):
            z = torch.zeros(1)
            source = dist.recv(z)
            same(z, [float(source)])
    else:
        dist.send(torch.tensor([float(rank)]), dst=0)
    with raises(ValueError, "Invalid destination rank"):
        dist.send(x, rank)
    with raises(ValueError, "Must specify dst"):
        dist.send(x)
    # What does not fit is an error of the one that receives it.
    dist.barrier()
    if rank == 0:
        dist.send(torch.ones(2), 1, tag=7)
        dist.send(torch.ones(6), 1, tag=8)
    elif rank == 1:
        with raises(dist.DistBackendError, "expected 16 bytes .*rank 0 sent 8"):
            dist.recv(torch.zeros(4), 0, tag=7)
        with raises(dist.DistBackendError, "recv"):
            dist.recv(torch.zeros(4), 0, tag=8)


def check_objects(rank: int, size: int) -> None:
    every = [None] * size
    dist.all_gather_object(every, {"rank": rank, "x": torch.ones(rank)})
    assert [o["rank"] for o in every] == list(range(size))
    assert [len(o["x"]) for o in every] == list(range(size))
    found = [None] * size if rank == 0 else None
    dist.gather_object("a" * rank, found)
    assert rank or found == ["a" * r for r in range(size)]
    some = ["a", {1: 2}, None] if rank == size - 1 else [None] * 3
    dist.broadcast_object_list(some, src=size - 1)
    assert some == ["a", {1: 2}, None]
    mine = [None]
    dist.scatter_object_list(mine, [(r, "b") for r in range(size)] if rank == 0 else None)
    assert mine == [(rank, "b")]
    if size > 1 and rank == 0:
        dist.send_object_list(["c", 3], 1)
    elif rank == 1:
        two = [None, None]
        assert dist.recv_object_list(two) == 0
        assert two == ["c", 3]


def check_asynchronous_calls_and_futures(rank: int, size: int) -> None:
    xs = [torch.full((1000,), float(rank + i)) for i in range(8)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for i, (x, work) in reversed(list(enumerate(zip(xs, works)))):
        assert work.wait() is True
        assert work.is_completed() and work.is_success() and work.exception() is None
        same(x[:1], [size * (size - 1) / 2 + i * size])
    y = torch.ones(3, 2).t()
    future = dist.all_reduce(y, async_op=True).get_future()
    halved = future.then(lambda f: f.value()[0] / 2).then(lambda f: f.value() + 1)
    same(halved.wait(), [[size / 2 + 1] * 3] * 2)
    z = torch.ones(1)
    dist.all_reduce(z, async_op=True)  # nobody waits: the next calls go on all the same
    with dist._coalescing_manager(async_ops=True) as together:
        a, b = torch.ones(1), torch.full((1,), float(rank))
        dist.all_reduce(a, async_op=True)
        dist.broadcast(b, 0, async_op=True)
    together.wait()
    same([a.item(), b.item()], [float(size), 0.0])
    dist.barrier(async_op=True).wait(dt.timedelta(seconds=30))


def check_groups(rank: int, size: int) -> None:
    half = list(range(0, size, 2))
    evens = dist.new_group(half)
    x = torch.tensor([rank + 1.0])
    if rank in half:
        assert dist.get_rank(evens) == half.index(rank)
        assert dist.get_world_size(evens) == len(half)
        assert dist.get_process_group_ranks(evens) == half
        assert dist.get_global_rank(evens, len(half) - 1) == half[-1]
        assert dist.get_group_rank(evens, half[-1]) == len(half) - 1
        dist.all_reduce(x, group=evens)
        same(x, [sum(r + 1.0 for r in half)])
        last = torch.tensor([float(rank)])
        dist.broadcast(last, src=half[-1], group=evens)
        same(last, [float(half[-1])])
        dist.broadcast(last.fill_(rank), group=evens, group_src=0)
        same(last, [0.0])
    else:
        assert evens == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(evens) == -1
    alone, groups = dist.new_subgroups(1)
    assert len(groups) == size and alone.size() == 1
    dist.all_reduce(x.fill_(3), group=alone)
    same(x, [3.0])
    assert dist.split_group(split_ranks=[[r] for r in range(size)]).size() == 1
    backwards = dist.new_group(list(range(size))[::-1], sort_ranks=False)
    assert dist.get_rank(backwards) == size - 1 - rank
    dist.destroy_process_group(alone)
    with raises(ValueError, "Invalid process group"):
        dist.destroy_process_group(alone)
    with raises(ValueError, "twice"):
        dist.init_process_group()
    with raises(ValueError, "within the world_size"):
        dist.new_group([size])


def check_debug_mode_lets_equal_calls_pass(rank: int, size: int) -> None:
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    x = torch.ones(3)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.barrier()
    same(x, [float(size)] * 3)
    dist.set_debug_level(dist.DebugLevel.OFF)


@at_least(2)
def check_monitored_barrier_names_who_is_late(rank: int, size: int) -> None:
    dist.monitored_barrier()
    second = dt.timedelta(seconds=0.3)
    group = dist.new_group()
    if rank == 0:
        late = f"Ranks {', '.join(map(str, range(1, size)))} failed"
        with raises(dist.DistBackendError, late):
            dist.monitored_barrier(group, second, wait_all_ranks=True)
        with raises(dist.DistBackendError, "Rank 1 failed to pass monitoredBarrier in 300 ms"):
            dist.monitored_barrier(group, second)


def check_what_has_no_data_is_refused(rank: int, size: int) -> None:
    with raises(TypeError, "parameter `tensor` of type torch.Tensor"):
        dist.all_reduce("x")
    with raises(RuntimeError, "dense tensor"):
        dist.all_reduce(torch.ones(2, device="meta"))
    with raises(RuntimeError, "dense tensor"):
        dist.broadcast(torch.eye(2).to_sparse(), 0)


def check_default_store_is_shared(rank: int, size: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    store.add("arrived", 1)
    dist.barrier()
    assert store.get("arrived") == str(size).encode()
