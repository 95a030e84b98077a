"""A storage changes its size under its tensors: what still fits works, the rest raises."""

import sys
import threading

import numpy as np
import pytest
from op_calls import leaves, mapped, named, tensors
from op_db import OPS
from op_row import Sample

import pytensorlib as torch

SHRUNK = "its storage was resized to"


def test_prefix_stays_and_sizes_follow():
    t = torch.arange(4.0)
    s = t.untyped_storage()
    assert s.resize_(8) is s
    assert (s.nbytes(), s.size(), len(s), t.untyped_storage().nbytes()) == (8, 8, 8, 8)
    assert s.tolist() == [0, 0, 0, 0, 0, 0, 128, 63]
    assert t[:2].tolist() == [0.0, 1.0]
    with pytest.raises(RuntimeError, match=SHRUNK + " 8"):
        t.sum()
    assert s.resize_(1 << 20).nbytes() == 1 << 20
    t[2:] = 5
    assert t.tolist() == [0.0, 1.0, 5.0, 5.0] and t._version == 1
    big = torch.empty(0).set_(s, 0, (1 << 18,))
    assert big[:4].tolist() == t.tolist() and big.data_ptr() == t.data_ptr()


def test_nothing_is_left_of_a_storage_without_bytes_until_it_grows():
    t = torch.ones(1000)
    s = t.untyped_storage().resize_(0)
    assert (s.nbytes(), s.data_ptr(), t.data_ptr(), tuple(t.shape)) == (0, 0, 0, (1000,))
    for use in (t.item, t.tolist, t.numpy, t.clone, t.__dlpack__, lambda: t[0].item(), t.zero_):
        with pytest.raises(RuntimeError, match="resized|Tensor with 1000 elements"):
            use()
    s.resize_(4000)
    assert t.fill_(3).sum() == 3000


def test_gradients_after_memory_was_freed_and_filled_again():
    # As sharded training does between the passes.
    w = torch.full((300, 300), 2.0, requires_grad=True)
    x = torch.ones(5, 300, requires_grad=True)
    y = (x @ w).sum()
    saved = w.detach().clone()
    w.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=SHRUNK):
        y.backward(retain_graph=True)
    w.untyped_storage().resize_(saved.nbytes)
    w.detach().untyped_storage().copy_(saved.untyped_storage())
    y.backward()
    assert (x.grad == 600).all() and (w.grad == 5).all()


@pytest.mark.parametrize("size", [-1, 1.5, "8", True, None, 2**62, 2**70])
def test_sizes_that_are_none_raise(size):
    t = torch.arange(3)
    with pytest.raises((RuntimeError, ValueError)):
        t.untyped_storage().resize_(size)
    assert t.tolist() == [0, 1, 2]


def test_memory_that_others_know_keeps_its_size():
    shared = torch.ones(4)
    lent = torch.from_numpy(np.ones(4))
    seen = shared.numpy()
    for t in (shared, lent):
        s = t.untyped_storage()
        assert not s.resizable()
        with pytest.raises(RuntimeError, match="not resizable"):
            s.resize_(0)
    exported = torch.ones(4)
    capsule = exported.__dlpack__()
    assert not exported.untyped_storage().resizable()
    del capsule
    assert seen.sum() == 4 and torch.ones(4).untyped_storage().resizable()


def test_views_see_what_a_tensor_grows_by():
    x = torch.arange(2.0)
    y, s = x.view(2), x.untyped_storage()
    x.resize_(1000)
    x[1] = 7
    assert s.nbytes() == 4000 and y.tolist() == [0.0, 7.0] and x.data_ptr() == y.data_ptr()
    s = torch.tensor([1, 2]).storage()
    assert s.resize_(3).nbytes() == 24 and s.tolist()[:2] == [1, 2]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pages as in Linux")
def test_memory_goes_back_and_growing_keeps_little():
    import resource

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    t = torch.ones(1 << 24)
    s, full = t.untyped_storage(), resident()
    for _ in range(3):
        s.resize_(0)
        assert resident() < full - (50 << 20)
        s.resize_(t.nbytes)
        t.fill_(1)
    s.resize_(0)
    before = resident()
    small = torch.ones(1)
    for n in range(4, 1 << 16, 4):
        small.untyped_storage().resize_(n)
    assert resident() - before < 2 << 20


def test_threads_at_work_while_sizes_change():
    t = torch.ones(1 << 16)
    s, stop, expected = t.untyped_storage(), threading.Event(), set()

    def once():
        try:
            t.mul_(1.0).add(t).sum().item()
        except BaseException as e:  # a panic, too
            expected.add(SHRUNK in str(e))

    def use():
        while not stop.is_set():
            once()

    workers = [threading.Thread(target=use) for _ in range(2)]
    for w in workers:
        w.start()
    for i in range(300):
        s.resize_([0, 1 << 18, 100, 1 << 19, 1 << 18][i % 5])
    stop.set()
    for w in workers:
        w.join()
    assert expected <= {True}


# What looks at shape and type alone.
UNREAD = ("isreal", "zeros_like", "ones_like", "full_like")
UNREAD += ("Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_full")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", named([op for op in OPS if op.name not in UNREAD]))
def test_every_operator_raises_for_a_tensor_that_no_longer_fits(op):
    sample = next((s for s in op.samples() if any(np.size(a) > 1 for a in leaves(s.args))), None)
    if sample is None:
        pytest.skip("takes no tensor of more than one element")
    call = tensors(sample, op.dtypes[0])
    # In memory of their own: NumPy's keeps its size.
    call = Sample(mapped(call.args, torch.clone), mapped(call.kwargs, torch.clone))
    cut = [t for t in leaves((call.args, call.kwargs)) if torch.is_tensor(t) and t.numel() > 1]
    for t in cut:
        t.untyped_storage().resize_(0)
    try:
        y = op.function(torch)(*call.args, **call.kwargs)
    except (RuntimeError, ValueError, IndexError, TypeError) as e:
        y, message = (), str(e)
    else:
        message = ""
    assert "panic" not in message
    # What is left are views, which read nothing.
    memory = {t.untyped_storage() for t in cut}
    for t in leaves(y):
        assert t.untyped_storage() in memory or t.numel() == 0
        if t.numel():
            with pytest.raises(RuntimeError, match=SHRUNK):
                t.clone()


def _lent(tmp_path):
    """Tensors of two zeros over memory that others know, and which growing may not leave."""
    seen = torch.zeros(2)
    seen.numpy()
    part = torch.zeros(3)
    part[1:].numpy()
    (tmp_path / "zeros").write_bytes(bytes(64))
    torch.save(torch.zeros(2), tmp_path / "saved.pt")
    array = np.zeros(2, np.float32)
    return {
        "numpy": seen,
        "numpy of a view": part,
        "from_numpy": torch.from_numpy(array),
        "asarray": torch.asarray(array),
        "as_tensor": torch.as_tensor(array),
        "from_dlpack": torch.from_dlpack(array),
        "frombuffer": torch.frombuffer(bytearray(8), dtype=torch.float32),
        "from_file": torch.from_file(str(tmp_path / "zeros"), size=2, shared=True),
        "mmap": torch.load(tmp_path / "saved.pt", mmap=True),
    }


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
def test_tensors_do_not_leave_memory_that_others_know(tmp_path):
    grow = [
        lambda x: x.resize_(1000),
        lambda x: x.resize_as_(torch.zeros(1000)),
        lambda x: x.untyped_storage().resize_(1000),
        lambda x: x.storage().resize_(1000),
        lambda x: x.set_(x.untyped_storage(), 0, (1000,)),
        lambda x: torch.zeros(1).set_(x.untyped_storage(), 0, (1000,)),
        lambda x: torch.add(torch.ones(1000), 1, out=x),
        lambda x: torch.cat([torch.ones(1000)], out=x[:0]),
        lambda x: torch.nonzero(torch.ones(1000), out=x[:0].view(torch.int64)),
    ]
    for name, x in _lent(tmp_path).items():
        for i, f in enumerate(grow):
            with pytest.raises(
                RuntimeError, match="Trying to resize storage that is not resizable"
            ):
                f(x)
            assert x.tolist() == [0.0] * x.numel(), (name, i)
        # What fits stays there.
        at = x.data_ptr()
        torch.add(torch.ones(1), 1, out=x)
        assert (x.shape, x.data_ptr(), x.item()) == ((1,), at, 2.0), name
        assert x.resize_(2).zero_().data_ptr() == at


def test_set_makes_a_storage_larger():
    x, y = torch.ones(2), torch.zeros(1)
    s = x.untyped_storage()
    assert y.set_(s, 2, (3, 2), (2, 1)) is y
    assert (s.nbytes(), y.shape, y.stride(), y.storage_offset()) == (32, (3, 2), (2, 1), 2)
    assert x.tolist() == [1.0, 1.0] and y.fill_(5).tolist() == [[5.0, 5.0]] * 3
    assert x.tolist() == [1.0, 1.0]
    for size, stride in [((2**62,), (1,)), ((2,), (2**62,)), ((-1,), (1,)), ((2,), (-1,))]:
        with pytest.raises(RuntimeError):
            y.set_(s, 0, size, stride)
    assert s.nbytes() == 32
