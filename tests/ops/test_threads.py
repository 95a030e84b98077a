"""The thread pool under fork, fewer CPUs than threads, and changes from many sides.

Every program runs in a process of its own, with a time limit: a hang is a failure.
"""

import gc
import sys
import textwrap
import weakref
from typing import Any

import child
import pytest

import pytensorlib as torch

pytestmark = pytest.mark.timed

HEAD = """
import multiprocessing, os, sys, threading, time
import pytensorlib as pt

pt.manual_seed(0)
x, y = pt.randn(400, 300), pt.randn(300, 200)
v = pt.randn(300_000)
image, kernel = pt.randn(2, 8, 30, 30), pt.randn(8, 8, 3, 3)

def work():
    w = v.clone().requires_grad_()
    with pt.enable_grad():
        w.sigmoid().sum().backward()
    conv = pt.nn.functional.conv2d(image, kernel)
    return [x @ y, v.exp(), v.sum(), v.sort().values, conv, w.grad]

def same(a, b):
    return all(pt.equal(p, q) for p, q in zip(a, b, strict=True))
"""


def run(program: str, limit: float = 60) -> None:
    done = child.python("-c", HEAD + textwrap.dedent(program), timeout=limit)
    assert done.returncode == 0, done.stderr


linux = pytest.mark.skipif(sys.platform != "linux", reason="affinity masks")


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_forked_children_have_a_pool_of_their_own() -> None:
    run("""
        pt.set_num_threads(4)
        expected = work()

        def child(depth):
            ok = pt.get_num_threads() == 4 and same(work(), expected)
            if ok and depth:
                ok = forked(depth - 1) == 0
            os._exit(0 if ok else 1)

        def forked(depth):
            process = multiprocessing.get_context("fork").Process(target=child, args=(depth,))
            process.start()
            process.join()
            return process.exitcode

        assert [forked(1) for _ in range(5)] == [0] * 5
        assert same(work(), expected)
    """)


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_fork_while_another_thread_computes() -> None:
    run("""
        pt.set_num_threads(4)
        small, stop = pt.randn(100_000), threading.Event()
        expected = small.exp()

        def busy():
            while not stop.is_set():
                small.exp()

        other = threading.Thread(target=busy)
        other.start()
        for _ in range(40):
            pid = os.fork()
            if pid == 0:
                ok = all(pt.equal(small.exp(), expected) for _ in range(3))
                os._exit(0 if ok else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        other.join()
    """)


@linux
def test_cores_taken_away_and_given_back() -> None:
    run("""
        pt.set_num_threads(2)
        expected = work()
        mask = os.sched_getaffinity(0)
        for cpus in ({min(mask)}, mask, {max(mask)}, mask):
            for task in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(task), cpus)
            for _ in range(60):
                assert same(work(), expected)
    """)


@linux
def test_a_busy_neighbour() -> None:
    run("""
        import signal, subprocess
        pt.set_num_threads(2)
        expected = work()
        cpu = max(os.sched_getaffinity(0))
        program = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\\n"
        program += "while os.getppid() != 1: pass"
        rival = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        try:
            rival.stdout.readline()
            for _ in range(30):
                assert same(work(), expected)
        finally:
            rival.kill()
            rival.wait()
    """)


def test_set_num_threads_from_many_threads() -> None:
    run("""
        pt.set_num_threads(1)
        expected = work()
        wrong = []

        def change(numbers):
            for n in numbers:
                pt.set_num_threads(n)
                if not same(work(), expected):
                    wrong.append(n)

        orders = ([1, 2, 3, 8], [8, 4, 2, 1], [2, 1, 16, 1], [5, 1, 5, 1])
        threads = [threading.Thread(target=change, args=(n * 4,)) for n in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        pt.set_num_threads(3)
        assert pt.get_num_threads() == 3
        assert same(work(), expected)
        for n in (0, -1):
            try:
                pt.set_num_threads(n)
            except RuntimeError:
                continue
            raise AssertionError(n)
    """)


def test_operations_within_a_parallel_backward() -> None:
    run("""
        pt.set_num_threads(4)
        expected = work()

        class Twice(pt.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                assert same(work(), expected)
                return g * 2

        def one(results):
            w = v.clone().requires_grad_()
            w.register_hook(lambda g: g * work()[2].isfinite())
            Twice.apply(w).sum().backward()
            results.append(bool((w.grad == 2).all()))

        results = []
        threads = [threading.Thread(target=one, args=(results,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * 4, results
    """)


@linux
@pytest.mark.parametrize("cpus", [1, 2])
def test_no_more_threads_spin_than_there_are_cpus(cpus: int) -> None:
    run(f"""
        mask = sorted(os.sched_getaffinity(0))[:{cpus}]
        if len(mask) < {cpus}:
            raise SystemExit
        os.sched_setaffinity(0, mask)
        pt.set_num_threads(8)
        # Some 400 microseconds of work for one CPU: more than it costs to wake the workers.
        small, jobs = pt.randn(100_000), 200

        def of_workers():
            total, me = 0, str(threading.get_native_id())
            for task in os.listdir("/proc/self/task"):
                if task != me:
                    with open(f"/proc/self/task/{{task}}/schedstat") as file:
                        total += int(file.read().split()[0])
            return total / 1000

        for _ in range(3):
            small.lgamma()
        before = of_workers()
        for _ in range(jobs):
            small.lgamma()
            time.sleep(0.001)
        began = time.perf_counter()
        for _ in range(20):
            small.lgamma()
        alone = 1e6 * (time.perf_counter() - began) / 20
        # A worker looks around for 500 microseconds; two CPUs full of them would take 1,000.
        assert (of_workers() - before) / jobs < 2 * alone + 750 * ({cpus} - 1)
    """)


def test_functions_of_whole_tensors_let_other_threads_run() -> None:
    run(
        """
        n = 4_000_000
        x, k = pt.randn(n), pt.randint(0, 50, (n,))
        mask, wide = x > 0, pt.randint(0, 1 << 60, (n,))
        calls = dict(
            unique=lambda: pt.unique(wide), unique_consecutive=lambda: pt.unique_consecutive(wide),
            nonzero=lambda: pt.nonzero(mask), masked_select=lambda: pt.masked_select(x, mask),
            mask=lambda: x[mask], histc=lambda: pt.histc(x, 100), bincount=lambda: pt.bincount(k),
            weighted=lambda: pt.bincount(k, x), repeat=lambda: pt.repeat_interleave(k),
            one_hot=lambda: pt.nn.functional.one_hot(k),
        )
        pt.set_num_threads(1)
        sys.setswitchinterval(1e-4)
        ticks, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                ticks[0] += 1

        other = threading.Thread(target=count)
        other.start()
        for name, call in calls.items():
            call()
            for _ in range(5):
                # Without the lock the other thread counts from the call's begin to its end.
                start, before = time.perf_counter(), ticks[0]
                call()
                took, counted = time.perf_counter() - start, ticks[0] - before
                if counted > 1e6 * took:
                    break
            else:
                raise SystemExit(f"{name}: {counted} ticks in {took:.3f} s")
        stop.set()
        other.join()
    """,
        limit=180,
    )


def test_modules_whose_calls_do_not_nest_are_kept_while_they_work() -> None:
    greenlet = pytest.importorskip("greenlet").greenlet

    class Waits(torch.nn.Module):
        def forward(self) -> None:
            greenlet.getcurrent().parent.switch()

    def begun() -> tuple[Any, Any]:
        module = Waits()
        call = greenlet(module)
        call.switch()
        return call, weakref.ref(module)

    (first, one), (second, two) = begun(), begun()
    # The first call ends while the second goes on.
    first.switch()
    gc.collect()
    assert one() is None and two() is not None
    assert torch._C._modules_at_work() == "Waits"
    second.switch()
    del second
    gc.collect()
    assert two() is None
    assert torch._C._modules_at_work() == ""
