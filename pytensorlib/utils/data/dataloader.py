"""DataLoader: batches of a data set, in this process or from workers."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

import pytensorlib as pt

from ._utils.collate import default_collate, default_convert
from ._utils.worker import WorkerPool, _BaseDataLoaderIter, get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler, random_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
_T = TypeVar("_T")
_worker_init_fn_t = Callable[[int], None]
# What makes a batch of a list of samples.
_collate_fn_t = Callable[[list[_T]], Any]

FIXED = {
    "batch_size",
    "batch_sampler",
    "sampler",
    "drop_last",
    "dataset",
    "persistent_workers",
}


class _Endless:
    """The index sampler of an iterable data set: asks for one more, for ever."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Batches of a data set.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        What to load.
    batch_size : int or None, default 1
        None gives the samples one by one, not collated.
    shuffle : bool
        Read in random order, anew at each pass.
    sampler, batch_sampler : iterable, optional
        The order of the indices, or of lists of them.
    num_workers : int, default 0
        Processes that load; 0 loads in this one.
    collate_fn : callable, optional
        Makes a batch of a list of samples.
    pin_memory, pin_memory_device : bool, str
        Accepted; tensors need no pinning here.
    drop_last : bool
        Leave out an incomplete last batch.
    timeout : float
        Seconds to wait for a worker's batch, 0 for ever.
    worker_init_fn : callable, optional
        Called in each worker with its number.
    multiprocessing_context : str or context, optional
        How to start workers.
    generator : Generator, optional
        Source of the order and of the workers' seeds.
    prefetch_factor : int, optional
        Batches that each worker loads ahead (default 2).
    persistent_workers : bool
        Keep the workers between passes.
    in_order : bool, default True
        False gives batches as they come.

    Raises
    ------
    ValueError
        If options contradict each other.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(torch.arange(5))
    >>> for (batch,) in DataLoader(data, batch_size=2):
    ...     print(batch)
    tensor([0, 1])
    tensor([2, 3])
    tensor([4])
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0:
            for what, given in (
                ("prefetch_factor", prefetch_factor is not None),
                ("persistent_workers", persistent_workers),
                ("multiprocessing_context", multiprocessing_context is not None),
            ):
                if given:
                    raise ValueError(f"{what} option needs num_workers > 0, got num_workers=0")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if isinstance(multiprocessing_context, str):
            methods = multiprocessing.get_all_start_methods()
            if multiprocessing_context not in methods:
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{methods!r}, but got {multiprocessing_context=}"
                )
        elif not isinstance(multiprocessing_context, BaseContext | None):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string "
                f"specifying the start method, but got {multiprocessing_context=}"
            )
        _warn_of_many(num_workers)
        self.iterable = isinstance(dataset, IterableDataset)
        self.reported: int | None = None
        if self.iterable:
            if shuffle:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified shuffle option, but "
                    f"got shuffle={shuffle}"
                )
            for what, given_sampler in (("sampler", sampler), ("batch_sampler", batch_sampler)):
                if given_sampler is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {what} option, "
                        f"but got {given_sampler}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self.iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.num_workers = num_workers
        if prefetch_factor is None and num_workers:
            prefetch_factor = 2
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._pool: WorkerPool | None = None
        self._began: Any = None  # the random state at the start of the pass
        self._given = self._skipped = 0  # of this pass, and of the next one before it begins
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and "_made" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def fetcher(self) -> Fetcher:
        """Return what turns indices into batches; it can be sent to a worker."""
        batched = self.batch_sampler is not None
        return Fetcher(self.dataset, batched, self.collate_fn, self.drop_last)

    def state_dict(self) -> dict[str, Any]:
        """Return how far the pass is, for `load_state_dict` of a loader of the same data.

        Of several passes at once the last one counts. Each process of a job has a state of its own.

        Returns
        -------
        dict
            The batches given, the random state before them, the epoch of a sampler that has one.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> loader = torch.utils.data.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> batches = iter(loader)
        >>> _ = next(batches)
        >>> state = loader.state_dict()
        >>> again = torch.utils.data.DataLoader(range(6), batch_size=2, shuffle=True)
        >>> again.load_state_dict(state)
        >>> torch.equal(next(batches), next(iter(again)))
        True
        """
        found = {"batches": self._given, "random": self._began if self._given else None}
        if hasattr(self.sampler, "epoch"):
            found["epoch"] = self.sampler.epoch
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass go on where another one was.

        What was given is not loaded again, unless the data set is an iterable one.

        Parameters
        ----------
        state_dict : dict
            Of `state_dict`.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> loader = torch.utils.data.DataLoader(range(6), batch_size=2)
        >>> loader.load_state_dict({"batches": 2, "random": None})
        >>> [batch.tolist() for batch in loader]
        [[4, 5]]
        """
        self._skipped, self._began = int(state_dict["batches"]), state_dict["random"]
        if "epoch" in state_dict:
            self.sampler.set_epoch(state_dict["epoch"])

    def __iter__(self) -> Iterator[Any]:
        source = self.generator or pt.default_generator
        if not self._skipped:
            self._began, self._given = source.get_state(), 0
            return self._pass()
        now = source.get_state()
        if self._began is not None:
            source.set_state(self._began)
        found, self._given = self._pass(), self._skipped
        if self.iterable:
            for _ in range(self._skipped):
                next(found)
            self._given = self._skipped
        self._skipped = 0
        if self.generator is None:
            source.set_state(now)  # the program has restored its own
        return found

    def skip(self, indices: Iterator[Any]) -> None:
        """Pass over what the pass before gave."""
        for _ in range(0 if self.iterable else self._skipped):
            next(indices, None)

    def _pass(self) -> Iterator[Any]:
        if self.num_workers == 0:
            if self.timeout:
                raise AssertionError("a timeout needs num_workers > 0")
            return _InProcess(self)
        if not self.prefetch_factor:
            raise AssertionError("prefetch_factor must be greater than 0 with workers")
        if self.persistent_workers and self._pool is not None:
            self._pool.restart()
            return self._pool
        pool = WorkerPool(self, random_seed(self.generator))
        self._pool = pool if self.persistent_workers else None
        return pool

    @property
    def index_sampler(self) -> Iterable[Any]:
        """What gives the indices of each batch, or of each sample."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if not self.iterable:
            return len(self.index_sampler)  # type: ignore[arg-type]
        n = self.reported = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def warn_of_more(self, reported: int, count: int) -> None:
        """Warn where an iterable data set gives more than the length that it told."""
        if count <= reported:
            return
        text = (
            f"Length of IterableDataset {self.dataset} was reported to be {reported} (when "
            f"accessing len(dataloader)), but {count} samples have been fetched. "
        )
        if self.num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker."
            )
        warnings.warn(text, stacklevel=3)


def _warn_of_many(workers: int) -> None:
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:
        cpus = os.cpu_count() or workers
    if workers > cpus:
        warnings.warn(
            f"This DataLoader will create {workers} worker processes in total. Our suggested max "
            f"number of worker in current system is {cpus}; more may make loading slower.",
            stacklevel=3,
        )


class Fetcher:
    """Turns indices into a batch."""

    def __init__(self, dataset: Any, batched: bool, collate: Any, drop_last: bool) -> None:
        self.dataset, self.batched, self.collate = dataset, batched, collate
        self.drop_last = drop_last
        self.stream = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def __call__(self, indices: Any) -> Any:
        """Return the batch; StopIteration at the end of an iterable data set."""
        if self.stream is not None:
            return self._next(indices)
        if not self.batched:
            return self.collate(self.dataset[indices])
        if self.collate is default_collate and isinstance(self.dataset, Dataset):
            batch = self.dataset._batch(indices)
            if batch is not None:
                return batch
        fetch = getattr(self.dataset, "__getitems__", None)
        samples = fetch(indices) if callable(fetch) else [self.dataset[i] for i in indices]
        return self.collate(samples)

    def _next(self, indices: Any) -> Any:
        assert self.stream is not None
        if not self.batched:
            return self.collate(next(self.stream))
        samples = [sample for _, sample in zip(indices, self.stream, strict=False)]
        if not samples or (self.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return self.collate(samples)


class _InProcess(_BaseDataLoaderIter):
    """One pass over a loader in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.indices = iter(loader.index_sampler)
        # Drawn though nothing here needs it, so that the numbers after it are PyTorch's.
        self.base_seed = random_seed(loader.generator)
        loader.skip(self.indices)
        self.fetch = loader.fetcher()
        self.loader = loader
        self.reported, self.count = loader.reported, 0

    def __next__(self) -> Any:
        try:
            batch = self.fetch(next(self.indices))
        except StopIteration:
            self.loader._given = 0
            raise
        self.loader._given += 1
        if self.reported is not None:
            self.count += 1
            self.loader.warn_of_more(self.reported, self.count)
        return batch

    def __len__(self) -> int:
        return len(self.loader)


_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = _InProcess, WorkerPool
