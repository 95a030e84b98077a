"""Call operators while another Python thread writes to their arguments; see test_racing_calls.py.

usage: python racing.py LIBRARY K N     the K-th of every N rows of the table

Numbers may come out in any mixture. There must be no crash, no hang, no panic, and no byte written
outside a block of memory, which PYTENSORLIB_GUARD=1 ends the process for.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from op_calls import leaves, tensors
from op_db import OPS

import pytensorlib as torch

F = torch.nn.functional
#: What a call may raise when its arguments are anything.
RAISED = (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError, MemoryError)


class Job(ctypes.Structure):
    """Memory, two contents for it in turn, and its size in bytes."""

    _fields_ = [("to", ctypes.c_void_p), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p),
                ("n", ctypes.c_size_t)]  # fmt: skip


class Writer:
    """A thread that writes to tensors, without Python's lock, until it is told to end."""

    def __init__(self, library: ctypes.CDLL, targets: list[Any], rng: np.random.Generator) -> None:
        self.kept = []
        jobs = (Job * len(targets))()
        for job, t in zip(jobs, targets, strict=True):
            own = t.detach().numpy().copy()
            other = anything(own, rng)
            self.kept += [t, own, other]
            job.to, job.a, job.b = t.data_ptr(), own.ctypes.data, other.ctypes.data
            job.n = own.nbytes
        self.stop = ctypes.c_int(0)
        arguments = (jobs, len(targets), ctypes.byref(self.stop))
        self.thread = threading.Thread(target=library.write_until, args=arguments)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.value = 1
        self.thread.join()


def anything(like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return numbers of this shape and type, among them all that operators may not like."""
    if like.dtype == bool:
        return rng.integers(0, 2, like.shape).astype(bool)
    if like.dtype.kind in "iu":
        # Not too large: a number of repetitions is memory that has to be there.
        low = 0 if like.dtype.kind == "u" else -3
        return rng.integers(low, 12, like.shape).astype(like.dtype)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-40]
    numbers = rng.standard_normal(like.shape) * 10.0 ** rng.integers(-4, 4, like.shape)
    chosen = np.where(rng.random(like.shape) < 0.2, rng.choice(special, like.shape), numbers)
    with np.errstate(over="ignore"):
        return np.asarray(chosen).astype(like.dtype)


def writable(call: Any) -> list[Any]:
    """Return the tensors of a call that own whole memory in one piece."""
    found = [t for t in leaves(call) if isinstance(t, torch.Tensor) and t.layout is torch.strided]
    plain = [t for t in found if t.device.type == "cpu" and t.is_contiguous() and t.numel()]
    return [t for t in plain if t.dtype != torch.bfloat16]


def race(library: ctypes.CDLL, call: Callable[[], Any], targets: list[Any], seconds: float) -> None:
    if not targets:
        return
    rng = np.random.default_rng(0)
    with Writer(library, targets, rng):
        end = time.perf_counter() + seconds
        for _ in range(200):
            try:
                call()
            except RAISED:
                pass
            if time.perf_counter() > end:
                break


def forms(op: Any, call: Any) -> Iterable[tuple[Callable[[], Any], list[Any]]]:
    """Yield an operator's forms, each with the tensors that are written to meanwhile."""
    function, args, kwargs = op.function(torch), call.args, call.kwargs
    targets = writable((args, kwargs))
    yield lambda: function(*args, **kwargs), targets
    if op.inplace and isinstance(args[0], torch.Tensor):
        yield lambda: op.in_place(torch)(*args, **kwargs), targets
    if op.out:
        try:
            found = function(*args, **kwargs)
        except RAISED:
            return
        own = [t.contiguous() for t in leaves(found) if isinstance(t, torch.Tensor)]
        out = own[0] if isinstance(found, torch.Tensor) else tuple(own)
        # What a kernel left in its result is somebody else's by the time it reads it again.
        yield lambda: function(*args, **kwargs, out=out), writable(own)


def large_calls() -> Iterable[tuple[str, list[Any], Callable[..., Any]]]:
    """Yield calls whose kernels look at their arguments more than once, or on several threads."""
    n = 1 << 17
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    def doubles(*shape: int) -> Any:
        return torch.from_numpy(rng.standard_normal(shape))

    def ints(high: int, *shape: int) -> Any:
        return torch.from_numpy(rng.integers(0, high, shape))

    def bools(*shape: int) -> Any:
        return torch.from_numpy(rng.random(shape) < 0.5)

    for name, values in {
        "float": floats(n), "double": doubles(n), "int": ints(10, n), "wide": ints(1 << 60, n),
        "short": ints(300, n).to(torch.int16), "byte": ints(255, n).to(torch.uint8),
    }.items():  # fmt: skip
        for f in (
            lambda x: torch.unique(x, return_inverse=True, return_counts=True),
            lambda x: torch.unique(x.view(-1, 2), dim=0, return_inverse=True, return_counts=True),
            lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
            torch.sort,
            lambda x: torch.sort(x, stable=True, descending=True),
            lambda x: torch.topk(x, 1000),
            lambda x: torch.kthvalue(x, 1000),
            torch.median, torch.mode, torch.nonzero, torch.argmax,
            lambda x: torch.isin(x, x[:1000]),
            lambda x: torch.searchsorted(x[:1000], x),
            lambda x: torch.histc(x.float(), 50),
            lambda x: x[x > 0],
            lambda x: torch.masked_select(x, x > 0),
            lambda x: torch.cumsum(x, 0),
            lambda x: torch.cummax(x, 0),
        ):  # fmt: skip
            yield f"{name} {getattr(f, '__name__', 'call')}", [values], f
    values = doubles(n)
    for f in (
        lambda x, y, i: torch.sort(x, out=(y, i)),
        lambda x, y, i: torch.topk(x, 1000, out=(y, i)),
        lambda x, y, i: torch.cummax(x, 0, out=(y, i)),
        lambda x, y, i: torch.max(x.view(-1, 8), 1, out=(y, i)),
    ):
        yield "out", [values, doubles(n), ints(10, n)], f
    for f in (
        torch.bincount,
        lambda i: torch.bincount(i, torch.ones(n)),
        lambda i: torch.repeat_interleave(i % 5),
        lambda i: torch.repeat_interleave(i),
        lambda i: F.one_hot(i),
        lambda i: F.one_hot(i, 10),
        lambda i: torch.unravel_index(i, (5, 2)),
    ):
        yield "index", [ints(10, n)], f
    table, at = floats(10, 64), ints(10, n // 8)
    for f in (
        lambda t, i: F.embedding(i, t),
        lambda t, i: F.embedding(i, t, padding_idx=1, scale_grad_by_freq=True),
        lambda t, i: F.embedding_bag(i, t, torch.arange(0, n // 8, 7)),
        lambda t, i: F.embedding_bag(torch.arange(n // 8) % 10, t, i),
        lambda t, i: F.embedding_bag(i.view(-1, 8), t, mode="max"),
        lambda t, i: t[i],
        lambda t, i: t[i, i],
        lambda t, i: torch.index_select(t, 0, i),
        lambda t, i: torch.take(t, i),
        lambda t, i: torch.gather(t, 0, i.view(-1, 64)),
        lambda t, i: torch.zeros(10, 64).scatter_(0, i[:640].view(10, 64), t),
        lambda t, i: torch.zeros(10, 64).scatter_add_(0, i[:640].view(10, 64), t),
        lambda t, i: torch.zeros(10, 64).scatter_reduce_(0, i[:640].view(10, 64), t, "mean"),
        lambda t, i: torch.zeros(10, 64).index_add_(0, i[:10], t),
        lambda t, i: torch.zeros(10, 64).index_reduce_(0, i[:10], t, "prod"),
        lambda t, i: torch.zeros(10, 64).index_put_((i,), t[0], accumulate=True),
        lambda t, i: torch.zeros(10, 64).put_(i, t.view(-1).repeat(64)[: len(i)], accumulate=True),
        lambda t, i: F.cross_entropy(t.repeat(64, 1), i[:640]),
        lambda t, i: F.nll_loss(t.repeat(64, 1), i[:640], weight=t.new_ones(64)),
        lambda t, i: F.multi_margin_loss(t.repeat(64, 1), i[:640]),
        lambda t, i: F.multilabel_margin_loss(t, i[:640].view(10, 64)),
        lambda t, i: F.ctc_loss(
            t.view(10, 4, 16), i[:12].view(4, 3) + 1, torch.full((4,), 10), i[:4] % 4
        ),
        lambda t, i: F.max_unpool1d(t, i[:640].view(10, 64), 2),
        lambda t, i: torch.segment_reduce(t, "sum", offsets=i[:5].sort().values)
        if hasattr(torch, "segment_reduce") else None,
        lambda t, i: torch.sparse_coo_tensor(i[:128].view(2, 64), t[0], (10, 10)).coalesce(),
        lambda t, i: torch.sparse_coo_tensor(i[:128].view(2, 64), t[0], (10, 10)) @ t,
        lambda t, i: torch.multinomial(t.abs(), 5),
        lambda t, i: F.grid_sample(t.view(1, 1, 10, 64), t.view(1, 10, 32, 2)),
        lambda t, i: torch.lu_unpack(t[:, :10], i[:10].int()),
    ):  # fmt: skip
        yield "table", [table, at], f


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    k, n = int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    faulthandler.enable()
    torch.set_num_threads(2)
    for i, (name, arguments, call) in enumerate(large_calls()):
        if i % n == k:
            print("large", i, name, flush=True)
            faulthandler.dump_traceback_later(60, exit=True)
            race(library, lambda: call(*arguments), arguments, 0.05)
    for op in OPS[k::n]:
        dtypes = [d for d in ("float32", "int64", *op.dtypes) if d in op.dtypes]
        for dtype in dtypes[:2]:
            for sample in op.samples()[:4]:
                print(op.name, dtype, flush=True)
                faulthandler.dump_traceback_later(60, exit=True)
                for call, targets in forms(op, tensors(sample, dtype)):
                    race(library, call, targets, 0.01)
    # What the guards of live blocks say is read when they are freed.
    gc.collect()
    print("done", flush=True)


if __name__ == "__main__":
    main()
