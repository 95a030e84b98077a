"""`torch.distributed` on real processes: what calls give, and what becomes of failures."""

import re
import signal
import subprocess
import sys
import time

import child
import pytest
from ranks_run import RANKS, check, environment, launched, mpiexec, needs_mpi

from pytensorlib.distributed._board import is_alive
from pytensorlib.distributed.run import find_mpiexec

pytestmark = needs_mpi
FAULTS = str(RANKS / "faults.py")


def line_of(text: str) -> int:
    lines = (RANKS / "faults.py").read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what ranks have printed, but for when they began."""
    return sorted(x for x in done.stdout.splitlines() if not x.startswith("at "))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_collectives_give_what_they_should(ranks: int) -> None:
    check("collectives", ranks)


def test_examples_of_the_documentation_run() -> None:
    check("examples", 2)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_parallel_training_is_that_of_one_process(ranks: int) -> None:
    check("parallel", ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_state_that_is_shared_out_is_that_of_one_process(ranks: int) -> None:
    check("sharded", ranks)


def test_script_of_pytorch_runs_under_the_launcher() -> None:
    done = launched("--nproc-per-node=2", FAULTS, "nothing")
    assert done.returncode == 0, done.stderr
    assert told(done) == [f"rank {r} of torch: [2.0, 2.0]" for r in (0, 1)]


def test_launcher_under_mpiexec_is_a_rank() -> None:
    command = ("-m", "pytensorlib.distributed.run", FAULTS)
    done = mpiexec(2, *command, "nothing")
    expected = [f"rank {r} of torch: [2.0, 2.0]" for r in (0, 1)]
    assert done.returncode == 0 and told(done) == expected, done.stderr
    done = mpiexec(2, *command, "raise")
    assert done.returncode != 0
    assert "ValueError: bad batch" in done.stderr and "run.py" not in done.stderr


def test_first_traceback_is_told_and_the_others_end() -> None:
    for what, text in (("raise", "bad batch"), ("early", "bad arguments"), ("exit", "Exit: 3")):
        done = launched("--nproc-per-node=2", FAULTS, what)
        assert done.returncode == (3 if what == "exit" else 1)
        assert "rank 1 of 2 failed first:\nTraceback" in done.stderr
        assert text in done.stderr and f"{FAULTS}" in done.stderr
        assert done.stderr.count("Traceback") == 1


def test_rank_that_dies_without_a_word_is_named() -> None:
    for what in ("kill", "leave"):
        done = launched("--nproc-per-node=2", FAULTS, what)
        assert done.returncode != 0
        assert "rank 1 of 2 died first" in done.stderr
        assert "init_process_group at" in done.stderr


@pytest.mark.parametrize("what", ["raise", "kill", "leave", "hang", "exit", "other", "shape"])
def test_failure_ends_the_job_within_the_timeout_and_two_seconds(what: str) -> None:
    for last in (False, True):  # a second try, for a machine that was busy
        done = launched("--nproc-per-node=2", FAULTS, what)
        end = time.monotonic()
        begin = [float(x.split()[1]) for x in done.stdout.splitlines() if x.startswith("at ")]
        assert done.returncode != 0
        if end - max(begin) < 2 + 2:
            return
        assert not last, f"{end - max(begin)} s"


def test_rank_that_hangs_is_named() -> None:
    done = launched("--nproc-per-node=2", FAULTS, "hang")
    assert done.returncode == 1
    where = f"{FAULTS}:{line_of('# the call')}"
    assert f"all_reduce: rank 0 timed out after 2 s in the call at {where}" in done.stderr
    assert "rank 1 is in no collective; its last one was init_process_group" in done.stderr


def test_another_call_is_told_with_its_line() -> None:
    done = launched("--nproc-per-node=2", FAULTS, "other")
    assert done.returncode == 1
    for call, mark in (("broadcast", "# another call"), ("all_reduce", "# the call")):
        where = f"{FAULTS}:{line_of(mark)}"
        assert re.search(rf"(is in|timed out .*in the call at) .*{re.escape(where)}", done.stderr)
        assert f"{call} at {where}" in done.stderr or f"{call}: rank" in done.stderr


def test_sizes_that_differ_are_an_error_on_every_rank() -> None:
    begin = time.monotonic()
    done = launched("--nproc-per-node=2", FAULTS, "sizes")
    assert time.monotonic() - begin < 40
    for rank in (0, 1):
        found = [x for x in done.stdout.splitlines() if x.startswith(f"rank {rank}: all_reduce")]
        assert len(found) == 2, done.stdout
        assert all("do not make the same call on tensors of the same type" in x for x in found)


@pytest.mark.parametrize(
    ("what", "told"),
    [("other", r"broadcast\(float32 \[2\], src=0\)"), ("shape", r"all_reduce\(SUM, float32 \[3\]")],
)
def test_debug_mode_compares_calls_before_they_are_made(what: str, told: str) -> None:
    done = launched("--nproc-per-node=2", FAULTS, what, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 1
    assert re.search(
        rf"do not make the same call: rank 0 calls all_reduce\(SUM, float32 \[2\]\) at "
        rf"{re.escape(FAULTS)}:{line_of('# the call')} .*; rank 1 calls {told}",
        done.stderr,
    )


def test_ctrl_c_ends_all_ranks_and_leaves_no_orphan() -> None:
    words = ["-m", "pytensorlib.distributed.run", "--nproc-per-node=2", FAULTS, "pids"]
    with subprocess.Popen(
        [sys.executable, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        lines = (process.stdout.readline().split() for _ in range(4))
        pids = [int(number) for word, number in lines if word == "pid"]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    for pid in pids:
        assert not is_alive(pid)  # nobody may have asked yet how it ended


def test_error_under_mpiexec_alone_ends_all_ranks() -> None:
    script = (
        "import pytensorlib.distributed as dist; dist.init_process_group('mpi')\n"
        "if dist.get_rank() == 1: raise ValueError('bad batch')\n"
        "dist.barrier()"
    )
    done = mpiexec(2, "-c", script, seconds=30)
    assert done.returncode != 0
    assert "rank 1 of 2 ended by this error" in done.stderr and "bad batch" in done.stderr


def on_two_hosts(ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Start ranks on two names of this machine, of which MPICH makes two machines without ssh."""
    if find_mpiexec()[1]:
        pytest.skip("Open MPI goes to another name by ssh")
    hosts = ("--nnodes=2", "--hosts=localhost,127.0.0.1")
    return launched(*hosts, f"--nproc-per-node={ranks}", *words, HYDRA_LAUNCHER="fork")


def test_ranks_on_several_hosts_know_their_places() -> None:
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR"
    code = (
        "import os\n"
        f"line = ' '.join(os.environ[n] for n in '{names}'.split())\n"
        "os.write(1, f'{line}\\n'.encode())"  # at once, so that lines are not mixed
    )
    done = on_two_hosts(2, "--no-python", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    expected = [f"{r} 4 {r % 2} 2 {r // 2} 2 localhost" for r in range(4)]
    assert sorted(done.stdout.splitlines()) == expected


def test_ranks_on_several_hosts_communicate_and_end_together() -> None:
    done = on_two_hosts(1, FAULTS, "nothing")
    assert done.returncode == 0, done.stderr
    assert told(done) == [f"rank {r} of torch: [2.0, 2.0]" for r in (0, 1)]
    for what, text in (("raise", "bad batch"), ("kill", "rank 1 of 2 died first")):
        done = on_two_hosts(1, FAULTS, what)
        assert done.returncode != 0 and text in done.stderr


def test_launchers_folder_need_not_be_on_every_machine() -> None:
    done = launched("--nproc-per-node=2", FAULTS, "nothing", FAR="1")
    assert done.returncode == 0, done.stderr
    assert told(done) == [f"rank {r} of torch: [2.0, 2.0]" for r in (0, 1)]
    for what, text in (("raise", "bad batch"), ("hang", "rank 0 timed out after 2 s")):
        done = launched("--nproc-per-node=2", FAULTS, what, FAR="1")
        assert done.returncode == 1 and text in done.stderr, done.stderr


def test_one_process_alone_is_told_how_to_start() -> None:
    given = environment() | {"RANK": None, "WORLD_SIZE": None}
    code = "import pytensorlib.distributed as d; d.init_process_group({})"
    for args, more, text in (
        ("'gloo'", {}, "variable RANK expected, but not set; start the script with"),
        ("", {"RANK": "0", "WORLD_SIZE": "2"}, "2 processes are wanted .*MPI started 1"),
        ("'nccl'", {}, "doesn't have NCCL built in"),
    ):
        done = child.python("-c", code.format(args), **(given | more))
        assert done.returncode == 1 and re.search(text, done.stderr), done.stderr


def test_restarts_begin_anew() -> None:
    code = (
        "import os, sys; n = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "print('try', n, os.environ['RANK'], flush=True); sys.exit(n == '0')"
    )
    done = launched("--max-restarts=1", "--no-python", sys.executable, "-c", code)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["try 0 0", "try 1 0"]
