"""Use the same tensors, modules and graphs from several threads; see test_sharing_threads.py.

usage: python threads.py SECONDS [PART...]     each part for so long

Where nobody writes, each thread must get the bits that one thread alone gets. Where somebody
writes, numbers may come out in any mixture, but there must be no crash, no hang and no panic.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import queue
import random
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from op_calls import leaves, tensors
from op_db import OPS

import pytensorlib as torch
from pytensorlib import nn

THREADS = 4
#: What a call may raise when its arguments are anything.
RAISED = (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError, MemoryError)


def together(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run `work` with each thread's number at once, and raise what one of them raises."""
    failed: list[BaseException] = []
    start = threading.Barrier(threads)

    def run(i: int) -> None:
        start.wait()
        try:
            work(i)
        except BaseException as e:
            failed.append(e)

    all_of_them = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()
    if failed:
        raise failed[0]


def bits(value: Any) -> list[Any]:
    """Return what tensors hold, as one can compare it."""
    found = []
    for t in leaves(value):
        if isinstance(t, torch.Tensor) and t.layout is torch.strided:
            plain = t.detach().resolve_conj().contiguous()
            found.append((t.dtype, tuple(t.shape), plain.view(-1).view(torch.uint8).tolist()))
    return found


def operators(seconds: float) -> None:
    """Every operator on shared arguments gives each thread what one gets."""
    rows = [(op, d) for op in OPS for d in op.dtypes[:2]]
    random.Random(0).shuffle(rows)
    end = time.monotonic() + seconds
    for count, (op, dtype) in enumerate(rows):
        if time.monotonic() > end:
            print(f"  {count} of {len(rows)} rows")
            return
        for sample in op.samples()[:2]:
            call = tensors(sample, dtype)
            function = op.function(torch)

            def once(call: Any = call, function: Any = function) -> Any:
                try:
                    return bits(function(*call.args, **call.kwargs))
                except RAISED as e:
                    return type(e)

            want = once()
            if once() != want:  # It draws numbers, or leaves some open.
                want = None

            def work(_: int, want: Any = want, once: Any = once, name: str = op.name) -> None:
                for _ in range(8):
                    got = once()
                    assert want is None or got == want, name

            together(work)


def writes(seconds: float) -> None:
    """In-place forms, views and `out=` on shared tensors, while others read them."""
    rows = [op for op in OPS if op.inplace or op.out]
    random.Random(1).shuffle(rows)
    end = time.monotonic() + seconds
    for op in rows:
        if time.monotonic() > end:
            return
        for sample in op.samples()[:1]:
            call = tensors(sample, op.dtypes[0])
            args, kwargs = call.args, call.kwargs
            function = op.function(torch)
            try:
                out = function(*args, **kwargs) if op.out else None
            except RAISED:
                continue

            def work(
                i: int, op: Any = op, args: Any = args, kwargs: Any = kwargs, out: Any = out
            ) -> None:
                for _ in range(8):
                    with contextlib.suppress(*RAISED):
                        if i % 2 and op.inplace and isinstance(args[0], torch.Tensor):
                            op.in_place(torch)(*args, **kwargs)
                        elif i % 2 and out is not None:
                            op.function(torch)(*args, **kwargs, out=out)
                        else:
                            op.function(torch)(*args, **kwargs)

            together(work)


def behind(seconds: float) -> None:
    """Another tensor is put behind an object, its memory is resized, while others compute."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        x = torch.zeros(4, 6)
        y = torch.ones(4, 6)

        def work(i: int, x: Any = x, y: Any = y) -> None:
            for k in range(200):
                with contextlib.suppress(*RAISED):
                    match (i, k % 5):
                        case (0, 0):
                            x.data = torch.full((4, 6), float(k))
                        case (0, 1):
                            x.t_()
                        case (0, 2):
                            x.resize_(k % 7, 5)
                        case (0, 3):
                            x.set_(torch.zeros(3, 2))
                        case (0, 4):
                            x.data = y
                        case (1, _):
                            x.add_(1).mul_(2)
                        case _:
                            z = x + x
                            z = x * 2.0
                            z = x[0:1] if x.dim() else x
                            assert isinstance(z.shape, torch.Size)
                            assert x == x if x.numel() == 1 else True
                            str(x.stride()), x.numel(), x.tolist()

        together(work)


def gradients(seconds: float) -> None:
    """Gradients of a shared leaf add up, whoever computes them; hooks see each of them."""
    end = time.monotonic() + seconds
    rounds = 25
    while time.monotonic() < end:
        w = torch.arange(12.0).reshape(3, 4).requires_grad_()
        seen = [0] * THREADS
        local = threading.local()

        def note(grad: Any, local: Any = local) -> None:
            local.count += 1

        handle = w.register_hook(note)

        def work(i: int, w: Any = w, local: Any = local, seen: Any = seen) -> None:
            local.count = 0
            for k in range(rounds):
                y = (w * 2).reshape(2, 6).sum()
                if k % 5 == 0:
                    found = torch.autograd.grad(y, w)[0]
                    assert found.tolist() == [[2.0] * 4] * 3
                else:
                    y.backward()
                if w.grad is not None:
                    assert w.grad.shape == w.shape
            seen[i] = local.count

        together(work)
        handle.remove()
        each = rounds - rounds // 5
        assert w.grad.tolist() == [[2.0 * THREADS * each] * 4] * 3, w.grad
        assert seen == [rounds] * THREADS, seen


def shared_graph(seconds: float) -> None:
    """One graph that is kept: each backward through it adds the same."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        w = torch.ones(5, requires_grad=True)
        y = (w.exp() * w).sum()

        def work(_: int, w: Any = w, y: Any = y) -> None:
            for _ in range(20):
                (g,) = torch.autograd.grad(y, w, retain_graph=True)
                assert g.allclose(torch.full((5,), 2 * 2.718281828459045))
                node = y.grad_fn
                assert node is y.grad_fn
                inner = node.next_functions[0][0]
                assert inner is node.next_functions[0][0] and inner.name() == "MulBackward0"
                assert inner._saved_other is w or inner._saved_self is w

        together(work)


def modules(seconds: float) -> None:
    """A module is called by all while one of them changes its hooks and attributes."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.BatchNorm1d(8).eval(), nn.Linear(8, 2))
    x = torch.randn(3, 6)
    want = net(x).tolist()
    end = time.monotonic() + seconds

    @torch.no_grad()
    def without() -> Any:
        return net(x)

    def work(i: int) -> None:
        k = 0
        while time.monotonic() < end:
            k += 1
            if i == 0:
                handle = net[0].register_forward_hook(lambda *_: None)
                net.note = k
                net.register_buffer("extra", torch.ones(1))
                handle.remove()
                del net.extra
                net.zero_grad()
            else:
                y = net(x)
                assert y.tolist() == want
                y.sum().backward()
                assert not without().requires_grad and torch.is_grad_enabled()
                assert net[0].weight is net[0].weight
                with contextlib.suppress(RuntimeError):  # A dict changes while Python iterates.
                    net.state_dict()

    together(work)


def objects(seconds: float) -> None:
    """A tensor has one object at a time; what was put on it stays while the tensor lives."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        w = torch.ones(3, requires_grad=True)
        w.tag = "kept"
        y = (w * w).sum()
        y.backward(retain_graph=True)
        del w
        node = y.grad_fn.next_functions[0][0]

        def work(i: int, node: Any = node) -> None:
            for k in range(100):
                own = node._saved_self
                assert own.tag == "kept"
                assert own is node._saved_other
                assert own.grad is own.grad and own.grad.tolist() == [2.0] * 3
                own.grad.mark = k
                setattr(own, f"of_{i}", k)
                assert getattr(own, f"of_{i}") == k
                weakref.ref(own)
                leaf = node.next_functions[0][0]
                assert leaf.variable is own
                del own, leaf

        together(work)


def handed_over(seconds: float) -> None:
    """What can be taken once is taken by one thread; lists change while they are read."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        x = torch.arange(6.0)
        capsule = torch.utils.dlpack.to_dlpack(x)
        sizes = [2, 3]
        won: list[Any] = []

        def work(i: int, x: Any = x, capsule: Any = capsule, won: Any = won) -> None:
            with contextlib.suppress(RuntimeError):
                won.append(torch.utils.dlpack.from_dlpack(capsule))
            for k in range(50):
                if i == 0:
                    sizes.clear()
                    sizes.extend([3, 2] if k % 2 else [1, 2, 3])
                    sizes.append(10**30 + k)
                    sizes.pop()
                else:
                    with contextlib.suppress(*RAISED):
                        assert x.reshape(sizes).numel() == 6
                        torch.stack(sizes)

        together(work)
        assert len(won) == 1 and won[0].tolist() == [0, 1, 2, 3, 4, 5]


def storm(seconds: float) -> None:
    """Tensors are made by one thread and freed by another, while the collector runs."""
    end = time.monotonic() + seconds
    ways: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(THREADS)]

    class Image(torch.Tensor):
        pass

    def work(i: int) -> None:
        rng = random.Random(i)
        kept: list[Any] = []
        watched: list[Any] = []
        died = []
        while time.monotonic() < end:
            for _ in range(50):
                t = torch.zeros(rng.choice([1, 3, 17, 1000]), requires_grad=rng.random() < 0.3)
                if rng.random() < 0.3:
                    t.other = [t]
                if rng.random() < 0.2:
                    t = t.detach().as_subclass(Image)
                    t.name_of = "image"
                watched.append(weakref.ref(t, lambda _: died.append(1)))
                kept += [t, t * 2, t[:1]]
                ways[rng.randrange(THREADS)].put(kept.pop(rng.randrange(len(kept))))
            while not ways[i].empty():
                try:
                    got = ways[i].get_nowait()
                except queue.Empty:
                    break
                if rng.random() < 0.5:
                    kept.append(got.sum())
                    if got.grad_fn is not None:
                        watched.append(weakref.ref(got.grad_fn))
                if hasattr(got, "name_of"):
                    assert got.name_of == "image"
            del kept[: len(kept) // 2]
            for ref in watched[-20:]:
                t = ref()
                if isinstance(t, torch.Tensor):
                    assert t.numel() >= 0
                del t
            del watched[: len(watched) // 2]
            if rng.random() < 0.1:
                gc.collect(rng.randrange(2))

    together(work)


def training(seconds: float) -> None:
    """Each thread trains a net of its own, to the numbers of one that trains alone."""

    def train() -> list[float]:
        own = torch.Generator().manual_seed(3)
        x = torch.randn(16, 4, generator=own)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape, generator=own))
        steps = torch.optim.Adam(net.parameters(), lr=0.1)
        losses = []
        for _ in range(10):
            steps.zero_grad()
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            steps.step()
            losses.append(loss.item())
        return losses

    want = train()
    assert want[-1] < want[0]
    end = time.monotonic() + seconds

    def work(_: int) -> None:
        while time.monotonic() < end:
            assert train() == want

    together(work)


PARTS = (
    operators, writes, behind, gradients, shared_graph, modules, objects, handed_over,
    storm, training,
)  # fmt: skip


def main() -> None:
    seconds, names = float(sys.argv[1]), sys.argv[2:]
    warnings.simplefilter("ignore")
    faulthandler.enable()
    sys.setswitchinterval(1e-5)
    for part in PARTS:
        if not names or part.__name__ in names:
            print(part.__name__, flush=True)
            faulthandler.dump_traceback_later(60 + 4 * seconds, exit=True)
            part(seconds)
    gc.collect()
    free = not getattr(sys, "_is_gil_enabled", lambda: True)()
    print("done without the lock" if free else "done with the lock", flush=True)


if __name__ == "__main__":
    main()
