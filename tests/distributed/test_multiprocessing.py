"""Tensors in memory that processes share."""

import gc
import os
import pickle
import signal

import pytest

import pytensorlib as torch
import pytensorlib.multiprocessing as mp
from pytensorlib import nn
from pytensorlib.multiprocessing import _sent

pytestmark = pytest.mark.forks

METHODS = [method for method in ("fork", "spawn") if method in mp.get_all_start_methods()]
# As quick as there is one.
METHOD = METHODS[0]


def add_one(number, x, net):
    x += number + 1
    with torch.no_grad():
        net.weight.fill_(number + 5)


def answer(tasks, results):
    x = tasks.get()
    x.mul_(2)
    results.put((x[1:], x.sum().item()))
    tasks.get()  # stay until the other process has mapped what was sent


def fail(number):
    if number == 1:
        raise KeyError("no such thing")


def leave(number):
    signal.raise_signal(signal.SIGKILL)


def test_shared_memory_is_seen_through_views_and_stays():
    x = torch.arange(6.0)
    view = x.view(2, 3)[:, 1]
    version = x._version
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared() and view.is_shared() and x.untyped_storage().is_shared()
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and view.tolist() == [1, 4]
    assert x._version == version
    x[1] = 9
    assert view.tolist() == [9, 4]
    x.share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(4)
    assert torch.empty(0).share_memory_().tolist() == []
    loss = (x.requires_grad_() * 2).sum()
    loss.backward()
    assert x.grad.tolist() == [2] * 6


def test_memory_of_numpy_stays_where_it_is():
    x = torch.ones(3)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="clone"):
        x.share_memory_()
    array[0] = 5
    assert x.tolist() == [5, 1, 1]


def test_processes_write_to_what_they_were_given():
    x, net = torch.zeros(3).share_memory_(), nn.Linear(1, 1).share_memory()
    assert net.weight.is_shared() and isinstance(net.weight, nn.Parameter)
    mp.start_processes(add_one, (x, net), nprocs=1, start_method=METHOD)
    assert x.tolist() == [1, 1, 1] and net.weight.item() == 5


@pytest.mark.parametrize("method", METHODS)
def test_queue_shares_tensors_and_their_views(method):
    context = mp.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(tasks, results))
    process.start()
    x = torch.arange(4.0)
    tasks.put(x)
    part, total = results.get(timeout=60)
    tasks.put(None)
    process.join()
    assert total == 12
    assert x.tolist() == [0, 2, 4, 6] and x.is_shared()  # written by the other process
    assert part.tolist() == [2, 4, 6]
    part[0] = 7
    assert x[1] == 7


def test_results_in_a_graph_are_refused():
    queue = mp.get_context(METHOD).SimpleQueue()
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="non-leaf"):
        queue.put(x * 2)
    queue.put(x)
    found = queue.get()
    assert found.requires_grad and found.is_leaf and type(found) is torch.Tensor
    queue.put(nn.Parameter(torch.ones(1)))
    assert type(queue.get()) is nn.Parameter


def test_errors_of_processes_come_back():
    with pytest.raises(mp.ProcessRaisedException, match="no such thing") as raised:
        mp.start_processes(fail, nprocs=2, start_method=METHOD)
    assert raised.value.error_index == 1
    assert pickle.loads(pickle.dumps(raised.value)).args
    if hasattr(signal, "SIGKILL"):
        with pytest.raises(mp.ProcessExitedException, match="SIGKILL") as exited:
            mp.start_processes(leave, nprocs=1, start_method=METHOD)
        assert exited.value.exit_code == -signal.SIGKILL
    context = mp.start_processes(fail, nprocs=1, join=False, start_method=METHOD)
    assert len(context.pids()) == 1
    while not context.join(timeout=60):
        pass


def test_module_is_pythons_with_more():
    assert mp.Queue and mp.cpu_count() > 0
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    for strategy in ("file_system", "file_descriptor"):
        mp.set_sharing_strategy(strategy)
        assert mp.get_sharing_strategy() == strategy
    with pytest.raises(ValueError, match="expected one of"):
        mp.set_sharing_strategy("other")
    from pytensorlib.multiprocessing.spawn import ProcessRaisedException

    assert ProcessRaisedException is mp.ProcessRaisedException and callable(mp.spawn)


def test_storage_of_a_file_is_shared_or_private(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(8)))
    private = torch.UntypedStorage.from_file(str(path), False, 8)
    private[0] = 99
    assert path.read_bytes()[0] == 0 and not private.is_shared()
    shared = torch.UntypedStorage.from_file(str(path), True, 16)
    assert path.stat().st_size == 16 and shared.is_shared()
    shared[0] = 99
    assert path.read_bytes()[0] == 99
    typed = torch.ShortStorage.from_file(str(path), shared=True, size=2)
    assert typed.tolist() == [99 + 256, 2 + 3 * 256]
    with pytest.raises(OSError, match="shorter"):
        torch.UntypedStorage.from_file(str(path), False, 100)
    with pytest.raises(FileNotFoundError):
        torch.UntypedStorage.from_file(str(tmp_path / "none"), False, 1)


def test_part_of_a_storage_shares_its_memory():
    x = torch.arange(4, dtype=torch.int32)
    part = x.untyped_storage()[4:12]
    assert part.nbytes() == 8
    y = torch.empty(0, dtype=torch.int32).set_(part)
    assert y.tolist() == [1, 2]
    y[0] = 7
    del x, part
    gc.collect()
    assert y.tolist() == [7, 2]


def copies():
    """Return what processes of this tree left for others."""
    names = {name for folder in _sent._folders() for name in os.listdir(folder)}
    return {name for name in names if name.startswith(_sent._prefix())}


def send_and_end(queue, count):
    whole = torch.arange(2.0 * count).reshape(count, 2)
    for row in whole.split(1):
        queue.put(row)
    queue.put(torch.zeros(0, 3))


@pytest.mark.parametrize("method", METHODS)
def test_tensors_arrive_from_a_process_that_has_ended(method):
    context, before = mp.get_context(method), copies()
    queue = context.SimpleQueue()
    process = context.Process(target=send_and_end, args=(queue, 6))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    rows = [queue.get() for _ in range(6)]
    assert torch.cat(rows).flatten().tolist() == list(range(12))
    assert queue.get().shape == (0, 3)
    assert rows[0].untyped_storage() == rows[5].untyped_storage()  # as where they come from
    assert copies() == before


def test_a_process_that_ends_sends_no_handle_that_it_has_closed():
    class Connection:
        def send(self, what):
            raise AssertionError("sent")

        fileno = send

    x = torch.arange(3.0).share_memory_()
    storage = x.untyped_storage()
    name = storage._map_name() if os.name == "nt" else ""
    message = _sent.Sent(storage._map_handle(), name, storage.nbytes())
    send, close = _sent._sharer._cache[message.ident[1]]
    _sent._leave()
    with pytest.raises(OSError, match="leaves a copy"):
        send(Connection(), os.getpid())
    close()
    assert message.name in copies()
    _sent._clear()


def test_tensor_of_a_process_that_was_killed_cannot_be_received(monkeypatch):
    monkeypatch.setattr(_sent, "PATIENCE", 0.2)
    monkeypatch.setattr(_sent, "is_running", lambda pid: False)
    lost = object.__new__(_sent.Sent)
    nobody = r"\\.\pipe\pytensorlib-nobody" if os.name == "nt" else "\0pytensorlib-nobody"
    lost.__setstate__(("pytensorlib-none", 0, (nobody, 1)))
    with pytest.raises(RuntimeError, match="the process that sent it was killed"):
        lost.detach()
