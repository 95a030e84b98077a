"""Passes over a loader: in this process, or with batches from workers.

A pass asks a loader for PyTorch's attributes alone, so that it goes over loaders that are not ours.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import multiprocessing
import queue
import sys
import tempfile
import warnings
from typing import Any

import pytensorlib as pt

from ..._utils import ExceptionWrapper
from ._utils import signal_handling
from ._utils._status import MP_STATUS_CHECK_INTERVAL
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.pin_memory import pin_memory
from ._utils.worker import _IterableDatasetStopIteration, _ResumeIteration, _worker_loop
from .sampler import random_seed

__all__ = ["Progress", "_BaseDataLoaderIter"]

ITERABLE = 1  # `_DatasetKind.Iterable`


class Progress:
    """How many batches of a pass its loader has given."""

    def __init__(self, given: int) -> None:
        self.given = given


class _BaseDataLoaderIter:
    """One pass over a loader."""

    _progress: Progress | None = None

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = loader.pin_memory and pt.accelerator.is_available()
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=5,
            )
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        self._sampler_iter = iter(self._index_sampler)
        # Drawn also where nothing needs it, so that the numbers after it are PyTorch's.
        self._base_seed = random_seed(loader.generator)
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def _skip(self, loader: Any) -> None:
        """Pass over the indices of what the pass before gave."""
        known = self._dataset_kind != ITERABLE
        for _ in range(getattr(loader, "_skipped", 0) if known else 0):
            next(self._sampler_iter, None)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Begin another pass."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._skip(loader)

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        try:
            data = self._next_data()
        except StopIteration:
            if self._progress is not None:
                self._progress.given = 0
            raise
        self._num_yielded += 1
        if self._progress is not None:
            self._progress.given += 1
        length = self._IterableDataset_len_called
        if length is not None and self._num_yielded > length and self._dataset_kind == ITERABLE:
            self._warn_of_more(length)
        return data

    def _warn_of_more(self, length: int) -> None:
        """Warn where an iterable data set gives more than the length that it told."""
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {length} (when "
            f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker."
            )
        warnings.warn(text, stacklevel=3)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One pass over a loader in this process."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        self._skip(loader)
        of = _IterableDatasetFetcher if self._dataset_kind == ITERABLE else _MapDatasetFetcher
        self._dataset_fetcher = of(
            self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(next(self._sampler_iter))
        return pin_memory(data) if self._pin_memory else data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One pass over a loader whose batches come from worker processes, in order."""

    _workers: list[Any] = []
    _shutdown = True

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = getattr(loader, "in_order", True)
        if self._num_workers <= 0:
            raise AssertionError(
                "num_workers must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        if self._prefetch_factor <= 0:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        context = loader.multiprocessing_context or _default_context()
        self._worker_init_fn = loader.worker_init_fn
        self._worker_result_queue = self._data_queue = context.Queue()
        self._workers_done_event = context.Event()
        self._index_queues: list[Any] = []
        self._workers = []
        self._workers_status = [True] * self._num_workers
        self._shutdown = False
        try:
            for number in range(self._num_workers):
                self._start(context, number)
            signal_handling._set_worker_pids(id(self), [w.pid for w in self._workers])
            self._reset(loader, first_iter=True)
        except BaseException:
            self._shutdown_workers()
            raise

    def _start(self, context: Any, number: int) -> None:
        """Start a worker."""
        tasks = context.Queue()
        tasks.cancel_join_thread()  # what nobody asks for any more does not keep the process
        process = context.Process(
            target=_worker_loop,
            args=(
                self._dataset_kind,
                self._dataset,
                tasks,
                self._worker_result_queue,
                self._workers_done_event,
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
                self._base_seed,
                self._worker_init_fn,
                number,
                self._num_workers,
                self._persistent_workers,
            ),
            daemon=True,
        )
        process.start()
        self._index_queues.append(tasks)
        self._workers.append(process)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Begin another pass with the same workers."""
        super()._reset(loader, first_iter)
        self._send_idx = self._rcvd_idx = 0
        # The worker of each batch that was asked for and not given, and the batch once it is here.
        self._task_info: dict[int, Any] = {}
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            for tasks in self._index_queues:
                tasks.put(_ResumeIteration())
            left = self._num_workers
            while left:  # what still comes from the pass before is dropped
                number, _ = self._get_data()
                left -= isinstance(number, _ResumeIteration)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _try_put_index(self) -> None:
        """Ask the next worker at work for one more batch, if there is one."""
        try:
            indices = self._next_index()
        except StopIteration:
            return
        # In order each has its turn; else those that are quick get more to do.
        most = self._prefetch_factor * self._num_workers // max(sum(self._workers_status), 1)
        turn = itertools.islice(self._worker_queue_idx_cycle, self._num_workers)
        ready = (
            n
            for n in turn
            if self._workers_status[n] and (self._in_order or self._workers_num_tasks[n] < most)
        )
        worker = next(ready, None)
        if worker is None:
            return
        self._index_queues[worker].put((self._send_idx, indices))
        self._task_info[self._send_idx] = (worker,)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _try_get_data(self, timeout: float = MP_STATUS_CHECK_INTERVAL) -> tuple[bool, Any]:
        """Return whether something came within some seconds, and what."""
        try:
            return True, self._data_queue.get(timeout=timeout)
        except Exception as error:
            dead = [
                (number, process)
                for number, process in enumerate(self._workers)
                if self._workers_status[number] and not process.is_alive()
            ]
            if dead:
                for number, _ in dead:
                    self._workers_status[number] = False
                told = [signal_handling.cause(p.pid, p.exitcode) for _, p in dead if p.exitcode]
                pids = ", ".join(str(process.pid) for _, process in dead)
                told.append(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
                raise RuntimeError(told[0]) from error
            if isinstance(error, queue.Empty):
                return False, None
            _tell_of_files()
            raise

    def _get_data(self) -> Any:
        """Wait for what comes next from a worker."""
        if self._timeout > 0:
            came, data = self._try_get_data(self._timeout)
            if not came:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            return data
        came = False
        while not came:
            came, data = self._try_get_data()
        return data

    def _next_data(self) -> Any:
        while self._task_info:
            first = next(iter(self._task_info))
            worker, *batch = self._task_info[first]
            if batch:
                del self._task_info[first]
                return self._process_data(batch[0], worker)
            if not self._workers_status[worker]:  # its part of the data set is at its end
                del self._task_info[first]
                continue
            self._rcvd_idx = first
            number, data = self._get_data()
            if number not in self._task_info:
                continue
            self._tasks_outstanding -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                del self._task_info[number]
                self._mark_worker_as_unavailable(data.worker_id)
                self._try_put_index()
            elif number == first or not self._in_order:
                worker = self._task_info.pop(number)[0]
                return self._process_data(data, worker)
            else:
                self._task_info[number] += (data,)
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _process_data(self, data: Any, worker_idx: int) -> Any:
        self._workers_num_tasks[worker_idx] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return pin_memory(data) if self._pin_memory else data

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        """Ask no more of a worker; one that is not kept for other passes ends."""
        self._workers_status[worker_id] = False
        if shutdown or not self._persistent_workers:
            with contextlib.suppress(Exception):
                self._index_queues[worker_id].put(None)

    def _shutdown_workers(self) -> None:
        """Stop the workers."""
        if self._shutdown:
            return
        self._shutdown = True
        self._workers_done_event.set()
        with contextlib.suppress(ValueError):
            signal_handling._remove_worker_pids(id(self))
        for number in range(len(self._workers)):
            self._mark_worker_as_unavailable(number, shutdown=True)
        for process in self._workers:
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join(1)
        for channel in (*self._index_queues, self._worker_result_queue):
            channel.cancel_join_thread()
            channel.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._shutdown_workers()


def _default_context() -> Any:
    """Return how processes are started where nobody says: on Linux by a fork."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return multiprocessing.get_context(chosen or ("fork" if sys.platform == "linux" else None))


def _tell_of_files() -> None:
    """Raise where this process can open no more files, which tensors are sent by."""
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(tempfile.TemporaryFile())
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise RuntimeError(
                "Too many open files. Communication with the workers is no longer possible. "
                "Please increase the limit using `ulimit -n` in the shell or change the sharing "
                "strategy by calling `torch.multiprocessing.set_sharing_strategy('file_system')` "
                "at the beginning of your code"
            ) from None
