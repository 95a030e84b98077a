"""Worker processes of a DataLoader."""

from __future__ import annotations

import os
import pickle
import queue
import random
from dataclasses import dataclass
from typing import Any

import pytensorlib as pt

from ...._utils import ExceptionWrapper
from ._status import MP_STATUS_CHECK_INTERVAL

__all__ = ["WorkerInfo", "get_worker_info"]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The result of `get_worker_info` within a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


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
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """The message of a worker whose part of an iterable data set is exhausted."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """The message to and from a worker when another pass begins."""

    seed: int | None = None


class ManagerWatchdog:
    """Tells whether the process that started this one is there."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()

    def is_alive(self) -> bool:
        """Return whether it is."""
        return os.getppid() == self.manager_pid


class Packed:
    """A batch on its way: pickled where that can fail with the batch's number still known."""

    def __init__(self, batch: Any) -> None:
        self.data = pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> Any:
        return unpacked, (self.data,)


def unpacked(data: bytes) -> Any:
    """Return a batch that arrived, or why it cannot be read."""
    try:
        return pickle.loads(data)
    except Exception:
        return ExceptionWrapper(where="where a batch of a DataLoader worker process arrived")


def _generate_state(base_seed: int, worker_id: int) -> Any:
    """Return the words that NumPy's generator of a worker is seeded with."""
    import numpy as np

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4)


def _begin(dataset: Any, base_seed: int, init_fn: Any, worker_id: int, num_workers: int) -> None:
    """Seed this worker's random numbers and tell who it is."""
    global _worker_info
    seed = base_seed + worker_id
    random.seed(seed)
    pt.manual_seed(seed)
    import numpy as np

    np.random.seed(_generate_state(base_seed, worker_id))  # noqa: NPY002 - data sets draw from it
    _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)
    if init_fn is not None:
        init_fn(worker_id)


def _worker_loop(
    dataset_kind: int,
    dataset: Any,
    index_queue: Any,
    data_queue: Any,
    done_event: Any,
    auto_collation: bool,
    collate_fn: Any,
    drop_last: bool,
    base_seed: int,
    init_fn: Any,
    worker_id: int,
    num_workers: int,
    persistent_workers: bool,
    shared_seed: int | None = None,
) -> None:
    """Load what `index_queue` asks for until it is told to stop, or the parent is gone."""
    from ..dataloader import _DatasetKind

    where = f"in DataLoader worker process {worker_id}"
    pt.set_num_threads(1)
    given = (dataset_kind, dataset, auto_collation, collate_fn, drop_last)
    fetcher: Any = None
    failed: Any = None
    try:
        try:
            _begin(dataset, base_seed, init_fn, worker_id, num_workers)
            fetcher = _DatasetKind.create_fetcher(*given)
        except Exception:
            failed = ExceptionWrapper(where=where)
        watchdog, ended = ManagerWatchdog(), False
        while watchdog.is_alive():
            try:
                task = index_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
            except queue.Empty:
                continue
            if task is None:
                break
            if isinstance(task, _ResumeIteration):
                data_queue.put((task, None))
                ended = False
                try:
                    fetcher, failed = _DatasetKind.create_fetcher(*given), None
                except Exception:
                    failed = ExceptionWrapper(where=where)
                continue
            if done_event.is_set() or ended:
                continue
            number, indices = task
            try:
                data = failed or Packed(fetcher.fetch(indices))
            except Exception as error:
                stopped = dataset_kind == _DatasetKind.Iterable
                if isinstance(error, StopIteration) and stopped:
                    data, ended = _IterableDatasetStopIteration(worker_id), True
                else:
                    data = ExceptionWrapper(where=where)
            data_queue.put((number, data))
    except KeyboardInterrupt:
        pass
    if done_event.is_set():
        data_queue.cancel_join_thread()
    data_queue.close()
