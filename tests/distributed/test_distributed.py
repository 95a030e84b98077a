"""`torch.distributed` in one process: stores, names, arguments of the launcher, and its absence."""

import datetime as dt
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import pytensorlib as torch
import pytensorlib.distributed as dist
from pytensorlib import nn
from pytensorlib.distributed import _faults, _mpi, run
from pytensorlib.distributed._board import Board


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dist.Store:
    if request.param == "hash":
        return dist.HashStore()
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, 1, True, dt.timedelta(seconds=10))
    return dist.PrefixStore("a", dist.HashStore())


def test_store_has_pytorchs_operations(store: dist.Store) -> None:
    store.set("first", "value")
    assert store.get("first") == b"value"
    assert store.add("count", 2) == 2 and store.add("count", -5) == -3
    assert store.get("count") == b"-3"
    # The documentation's example, and what PyTorch gives for a key that is not there.
    assert store.compare_set("first", "other", "new") == b"value"
    assert store.compare_set("first", "value", "new") == b"new" == store.get("first")
    assert store.compare_set("none", "other", "new") == b"other"
    assert store.compare_set("none", "", "new") == b"new"
    store.append("first", b"\0er")
    assert store.get("first") == b"new\0er"
    assert store.check(["first", "count"]) and not store.check(["first", "nope"])
    assert store.delete_key("first") and not store.delete_key("first")
    store.multi_set(["x", "y"], ["1", b"2"])
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    store.queue_push("q", "a")
    store.queue_push("q", "b")
    assert store.queue_len("q") == 2
    assert [store.queue_pop("q"), store.queue_pop("q")] == [b"a", b"b"]
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", block=False)


def test_store_waits_for_keys(store: dist.Store) -> None:
    timer = threading.Timer(0.05, store.set, ["late", "1"])
    timer.start()
    store.wait(["late"])
    assert store.get("late") == b"1"
    timer.join()
    with pytest.raises(dist.DistStoreError, match="wait timeout after 20ms, keys: late, never"):
        store.wait(["late", "never"], dt.timedelta(seconds=0.02))
    store.set_timeout(dt.timedelta(seconds=0.01))
    assert store.timeout == dt.timedelta(seconds=0.01)
    with pytest.raises(dist.DistStoreError, match="never"):
        store.get("never")


def test_tcp_store_serves_others_and_says_when_nobody_does() -> None:
    limit = dt.timedelta(seconds=10)
    server = dist.TCPStore("127.0.0.1", 0, None, True, limit)
    client = dist.TCPStore("127.0.0.1", server.port, None, False, limit)
    client.set("a", b"x" * 100_000)
    assert server.get("a") == b"x" * 100_000
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("127.0.0.1", server.port, None, True, limit)
    port = server.port
    del server
    with pytest.raises(dist.DistNetworkError, match="failed to connect"):
        dist.TCPStore("127.0.0.1", port, None, False, dt.timedelta(seconds=0.1))


def test_rendezvous_by_address(tmp_path: Path) -> None:
    store, rank, size = next(iter(dist.rendezvous(f"file://{tmp_path}/f", 0, 1)))
    assert isinstance(store, dist.FileStore) and (rank, size) == (0, 1)
    store, rank, size = next(iter(dist.rendezvous("tcp://127.0.0.1:0?rank=0&world_size=1")))
    assert isinstance(store, dist.TCPStore) and (rank, size) == (0, 1)
    with pytest.raises(RuntimeError, match="No rendezvous handler for x://"):
        dist.rendezvous("x://a")


def test_without_a_group_calls_say_so() -> None:
    assert not dist.is_initialized()
    assert dist.Backend("NCCL") == "nccl" == dist.Backend.NCCL
    assert dist.group.WORLD is None and dist.GroupMember.WORLD is None
    for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier):
        with pytest.raises(ValueError, match="has not been initialized"):
            call()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.all_reduce(torch.ones(1))
    with pytest.raises((RuntimeError, ValueError), match="has not been initialized"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))


def test_without_mpi_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mpi, "is_there", lambda: False)
    assert not dist.is_available() and not dist.is_mpi_available()
    assert not dist.is_gloo_available() and not dist.is_backend_available("gloo")
    with pytest.raises(RuntimeError, match=r"pip install 'pytensorlib\[distributed\]'"):
        dist.init_process_group("gloo")
    with pytest.raises(SystemExit, match=r"pip install 'pytensorlib\[distributed\]'"):
        run.main(["--nproc-per-node=2", "script.py"])


def ranks_in(folder: Path, states: tuple[str, ...]) -> list["subprocess.Popen[bytes]"]:
    """Start a process for each rank, with the line that it would have written."""
    ranks = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) for _ in states]
    for rank, state in enumerate(states):
        (folder / f"{rank}.now").write_text(f"{ranks[rank].pid}\n{state}\nis there")
    return ranks


def end(ranks: list["subprocess.Popen[bytes]"]) -> None:
    for process in ranks:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no end of a process")
def test_of_ranks_that_ended_together_the_one_that_waited_is_not_the_first(tmp_path: Path) -> None:
    ranks = ranks_in(tmp_path, ("in", "in", "out"))
    watch = run.Watch(tmp_path, 3)
    watch.look(0)
    assert watch.lost == []
    end(ranks)
    watch.look(5)
    assert watch.lost == [2, 0, 1]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no end of a process")
def test_rank_that_began_while_the_launcher_waited_may_be_the_first(tmp_path: Path) -> None:
    ranks = ranks_in(tmp_path, ("in", "out"))
    line = (tmp_path / "1.now").rename(tmp_path / "later")
    watch = run.Watch(tmp_path, 2)

    class Poll:
        """Waits; meanwhile rank 1 writes its first line and both ranks end."""

        def __init__(self) -> None:
            self.poll_of_system = watch.poll

        def __getattr__(self, name: str) -> object:
            return getattr(self.poll_of_system, name)

        def poll(self, milliseconds: float) -> list[tuple[int, int]]:
            if line.exists():
                line.rename(tmp_path / "1.now")
                end(ranks)
            return self.poll_of_system.poll(milliseconds)

    watch.poll = Poll()
    watch.look(5)
    assert watch.lost == [1, 0]


def test_launcher_leaves_the_handler_of_sigterm_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    within = []

    def once(*_: object) -> tuple[int, list[int]]:
        within.append(signal.getsignal(signal.SIGTERM))
        return 0, []

    monkeypatch.setattr(run, "once", once)
    monkeypatch.setattr(run, "command", lambda *_: [])
    run.run(run.parse_args(["--nproc-per-node=2", "script.py"]))
    assert within != [before] and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(os.name != "posix", reason="pipes are asked as POSIX systems are")
def test_what_a_failing_rank_printed_is_read_before_it_aborts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    read = []

    def read_late() -> None:
        time.sleep(0.1)
        read.append(os.read(reader, 100))

    with open(writer, "w") as stream, open(reader, "rb"):
        monkeypatch.setattr("sys.stderr", stream)
        stream.write("ValueError: bad batch")
        thread = threading.Thread(target=read_late)
        thread.start()
        begin = time.monotonic()
        _faults.deliver()
        assert 0.09 < time.monotonic() - begin
        thread.join()
        assert read == [b"ValueError: bad batch"]
        stream.write("nobody reads this")
        begin = time.monotonic()
        _faults.deliver()
        assert _faults.DELIVERY <= time.monotonic() - begin < _faults.DELIVERY + 5


def test_debug_level_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    dist.set_debug_level_from_env()
    assert dist.distributed_c10d.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(RuntimeError, match="OFF, INFO, or DETAIL"):
        dist.set_debug_level_from_env()
    dist.set_debug_level(dist.DebugLevel.OFF)


def test_launcher_reads_pytorchs_arguments() -> None:
    args = run.parse_args(
        "--nnodes=2 --nproc_per_node=4 --hosts a,b --rdzv-backend=c10d --rdzv-endpoint=a:1 "
        "--standalone --node_rank 0 -m train --lr 1".split()
    )
    assert (args.nnodes, args.nproc_per_node, args.module) == ("2", "4", True)
    assert (args.training_script, args.training_script_args) == ("train", ["--lr", "1"])


@pytest.mark.parametrize(
    ("told", "is_open"),
    [("mpiexec (OpenRTE) 4.1.4", True), ("mpirun (Open MPI) 5.0.7", True), ("HYDRA 5.0", False)],
)
def test_launcher_knows_open_mpi_by_its_version(
    told: str, is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run._mpi, "is_there", lambda: True)
    path = tmp_path / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{told}'\n")
    path.chmod(0o755)
    assert run.find_mpiexec(str(path)) == (str(path), is_open)


@pytest.mark.parametrize("is_open", [False, True])
def test_launcher_asks_mpi_for_ranks_on_each_machine(
    is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "find_mpiexec", lambda given: ("mpiexec", is_open))
    args = run.parse_args(["--nnodes=2", "--hosts=a,b", "train.py", "x"])
    words = " ".join(run.command(args, 3, 2, ["MASTER_ADDR"]))
    assert words.startswith("mpiexec -n 6 ")
    hosts = "--host a:3,b:3 -x MASTER_ADDR" if is_open else "-hosts a,b -ppn 3"
    assert hosts in words
    assert words.endswith("-m pytensorlib.distributed._worker train.py x")


def test_launcher_names_no_first_rank_where_another_machines_may_be_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, where in ((0, "a.py:1"), (1, "b.py:2")):
        Board(str(tmp_path), rank).enter("all_reduce", where)
    run.report(tmp_path, 9, 2, [1])
    assert capsys.readouterr().err.startswith("rank 1 of 2 died first, without a traceback:")
    run.report(tmp_path, 9, 4, [1])
    first, *lines = capsys.readouterr().err.splitlines()
    assert "first" not in first and first.endswith("not on it: rank 2, rank 3")
    assert [line.rpartition(" ")[2] for line in lines] == ["b.py:2", "a.py:1"]


def test_rank_that_leaves_as_another_takes_the_folder_away_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(str(tmp_path), 0)

    def taken_away(self: Path, pattern: str) -> object:
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "glob", taken_away)
    assert board.end() is False


@pytest.mark.parametrize(
    ("given", "told"),
    [
        # As Hydra, Open MPI, and Slurm's srun with --mpi=pmi2 and --mpi=pmix set them.
        ({"PMI_RANK": 5, "PMI_SIZE": 8, "MPI_LOCALRANKID": 1, "MPI_LOCALNRANKS": 4}, (5, 8, 1, 4)),
        (
            {"PMI_RANK": 5, "PMI_SIZE": 8, "MPI_LOCALRANKID": 1, "MPI_LOCALNRANKS": 4}
            | {"SLURM_PROCID": 1, "SLURM_STEP_NUM_TASKS": 2, "SLURM_LOCALID": 0},
            (5, 8, 1, 4),
        ),
        (
            {"PMI_RANK": 6, "PMI_SIZE": 7, "SLURM_PROCID": 6, "SLURM_LOCALID": 0}
            | {"SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": 3},
            (6, 7, 0, 1),
        ),
        (
            {"PMIX_RANK": 3, "SLURM_PROCID": 3, "SLURM_STEP_NUM_TASKS": 7, "SLURM_LOCALID": 1}
            | {"SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": 1},
            (3, 7, 1, 2),
        ),
        ({"SLURM_PROCID": 0, "SLURM_NTASKS": 4}, None),  # a batch script, before srun
    ],
)
def test_place_among_processes_is_what_the_launcher_told(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, int], told: tuple[int, ...] | None
) -> None:
    for name in list(os.environ):
        if name.startswith(("PMI", "OMPI", "SLURM", "MPI_")):
            monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))
    assert _mpi.launched_as() == told
