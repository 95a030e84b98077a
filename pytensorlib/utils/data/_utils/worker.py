"""Worker processes of a DataLoader."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import queue
import random
import sys
import traceback
from dataclasses import dataclass
from typing import Any

import pytensorlib as pt

__all__ = ["WorkerInfo", "WorkerPool", "get_worker_info"]

POLL_SECONDS = 1.0


@dataclass
class WorkerInfo:
    """What `get_worker_info` tells within a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the number, count, seed and data set of this worker; None in the main process.

    Returns
    -------
    WorkerInfo or None
        With ``id``, ``num_workers``, ``seed`` and ``dataset``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> print(torch.utils.data.get_worker_info())
    None
    """
    return _info


class _Plain(str):
    """A text that `KeyError` does not quote."""

    __slots__ = ()

    __repr__ = str.__str__


class _Failure:
    """An exception of a worker, to be raised again with its traceback in the text."""

    def __init__(self, error: BaseException, worker: int) -> None:
        self.kind = type(error)
        text = "".join(traceback.format_exception(error))
        where = f"Caught {self.kind.__name__} in DataLoader worker process {worker}."
        self.text = f"{where}\nOriginal {text}"

    def again(self) -> BaseException:
        if self.kind is KeyError:
            return KeyError(_Plain(self.text))
        try:
            return self.kind(self.text)
        except TypeError:
            return RuntimeError(self.text)


def _begin(loader: Any, number: int, base_seed: int) -> None:
    """Seed this worker's random numbers and tell who it is."""
    global _info
    seed = base_seed + number
    random.seed(seed)
    pt.manual_seed(seed)
    import numpy as np

    # The words that PyTorch seeds with.
    words = np.random.SeedSequence([number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0])
    np.random.seed(words.generate_state(4))  # noqa: NPY002 - users' data sets draw from it
    _info = WorkerInfo(number, loader.num_workers, seed, loader.dataset)
    if loader.worker_init_fn is not None:
        loader.worker_init_fn(number)


def _work(loader: Any, number: int, tasks: Any, results: Any, parent: int) -> None:
    """Load what `tasks` asks for until it is told to stop or the parent is gone."""
    pt.set_num_threads(1)
    fetch: Any = None
    failed: bytes | None = None
    try:
        while True:
            try:
                task = tasks.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if os.getppid() != parent:
                    return
                continue
            if task is None:
                return
            order, indices, fresh = task
            try:
                if fresh is not None:
                    try:
                        # In another pass the random numbers go on.
                        if fetch is None:
                            _begin(loader, number, fresh)
                        fetch, failed = loader.fetcher(), None
                    except Exception as e:
                        failed = pickle.dumps(_Failure(e, number))
                    continue
                if failed is not None:
                    results.put((order, number, "error", failed))
                    continue
                batch = pickle.dumps(fetch(indices), protocol=pickle.HIGHEST_PROTOCOL)
                results.put((order, number, "batch", batch))
            except Exception as e:
                if isinstance(e, StopIteration) and loader.iterable:
                    results.put((order, number, "end", b""))
                    continue
                results.put((order, number, "error", pickle.dumps(_Failure(e, number))))
    except KeyboardInterrupt:
        pass
    finally:
        results.close()


class _BaseDataLoaderIter:
    """One pass over a loader."""

    def __iter__(self) -> Any:
        return self


class WorkerPool(_BaseDataLoaderIter):
    """One pass over a loader whose batches come from worker processes, in order."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        self.loader = loader
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            default = "fork" if sys.platform == "linux" else None
            context = multiprocessing.get_context(context or default)
        self.results = context.Queue()
        self.tasks = [context.Queue() for _ in range(loader.num_workers)]
        self._workers = []
        try:
            for number, tasks in enumerate(self.tasks):
                process = context.Process(
                    target=_work,
                    args=(_Plan(loader), number, tasks, self.results, os.getpid()),
                    daemon=True,
                )
                process.start()
                self._workers.append(process)
        except BaseException:
            self.close()
            raise
        self.base_seed = base_seed
        self.restart()

    def restart(self) -> None:
        """Begin another pass with the same workers."""
        self.indices = iter(self.loader.index_sampler)
        self.loader.skip(self.indices)
        self.reported = self.loader.reported
        self.sent = self.count = 0
        self.owner: dict[int, int] = {}
        self.ready: dict[int, tuple[str, bytes]] = {}
        self.running = set(range(len(self.tasks)))
        self.turn = itertools.cycle(range(len(self.tasks)))
        for tasks in self.tasks:
            tasks.put((-1, None, self.base_seed))
        for _ in range(self.loader.prefetch_factor * len(self.tasks)):
            self._send()

    def _send(self) -> None:
        """Ask the next running worker for one more batch, if there is one."""
        if not self.running:
            return
        number = next(n for n in self.turn if n in self.running)
        try:
            indices = next(self.indices)
        except StopIteration:
            return
        self.owner[self.sent] = number
        self.tasks[number].put((self.sent, indices, None))
        self.sent += 1

    def __iter__(self) -> WorkerPool:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        while self.owner:
            first = next(iter(self.owner if self.loader.in_order else self.ready), None)
            if first not in self.ready:
                order, number, kind, data = self._receive()
                if order in self.owner:
                    self.ready[order] = kind, data
                if kind == "end":
                    self.running.discard(number)
                continue
            kind, data = self.ready.pop(first)
            del self.owner[first]
            self._send()
            if kind == "end":
                continue
            value = pickle.loads(data)
            if kind == "error":
                raise value.again() from None
            if self.reported is not None:
                self.count += 1
                self.loader.warn_of_more(self.reported, self.count)
            self.loader._given += 1
            return value
        self.loader._given = 0
        if not self.loader.persistent_workers:
            self.close()
        raise StopIteration

    def _receive(self) -> Any:
        waited = 0.0
        limit = self.loader.timeout
        while True:
            pause = min(POLL_SECONDS, limit - waited) if limit else POLL_SECONDS
            try:
                return self.results.get(timeout=max(pause, 0.01))
            except queue.Empty:
                waited += pause
            dead = [str(p.pid) for p in self._workers if not p.is_alive()]
            if dead:
                self.close()
                raise RuntimeError(
                    f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly"
                )
            if limit and waited >= limit:
                self.close()
                raise RuntimeError(f"DataLoader timed out after {limit} seconds")

    def close(self) -> None:
        """Stop the workers."""
        for tasks in self.tasks:
            with contextlib.suppress(Exception):
                tasks.put(None)
        for process in self._workers:
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join(1)
        for channel in (*self.tasks, self.results):
            channel.cancel_join_thread()
            channel.close()
        self._workers = []

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if self._workers:
                self.close()


class _Plan:
    """The part of a loader that workers need."""

    def __init__(self, loader: Any) -> None:
        self.dataset = loader.dataset
        self.num_workers = loader.num_workers
        self.worker_init_fn = loader.worker_init_fn
        self.batched = loader.batch_sampler is not None
        self.collate_fn = loader.collate_fn
        self.drop_last = loader.drop_last
        self.iterable = loader.iterable

    def fetcher(self) -> Any:
        from ..dataloader import Fetcher

        return Fetcher(self.dataset, self.batched, self.collate_fn, self.drop_last)
