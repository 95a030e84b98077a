"""DataLoader: batches of a data set, in this process or from workers."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

import pytensorlib as pt

from . import _utils  # noqa: F401  (loaders of programs find it here)
from ._iterators import (
    Progress,
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

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


class _DatasetKind:
    """How a data set is read: by index, or in its order."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Any:
        """Return what turns indices into batches of a data set."""
        of = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return of(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
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
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            for what, given in (
                ("shuffle", shuffle or None),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if given is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {what} option, "
                        f"but got {what}={given}"
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
        self.dataset = dataset
        self.num_workers = num_workers
        if prefetch_factor is None and num_workers:
            prefetch_factor = 2
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        default = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn or default
        self.persistent_workers = persistent_workers
        self._began: Any = None  # the random state at the start of the pass
        self._progress = Progress(0)
        self._skipped = 0  # what the next pass does not give before it begins
        self.__initialized = True
        # Where the length of an iterable data set was asked for, it is told when more comes.
        self._IterableDataset_len_called: int | None = None
        self._iterator: _BaseDataLoaderIter | None = None
        self.check_worker_number_rationality()

    __initialized = False

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started; None for the default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading "
                f"(num_workers > 0), but got num_workers={self.num_workers}"
            )
        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{methods!r}, but got multiprocessing_context={context!r}"
                )
            from ...multiprocessing import get_context

            context = get_context(context)
        if not isinstance(context, BaseContext | None):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string "
                f"specifying the start method, but got multiprocessing_context={context}"
            )
        self.__multiprocessing_context = context

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in FIXED:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Iterable[Any]:
        """The sampler of batches, or of samples where there are no batches."""
        return self.batch_sampler if self._auto_collation else self.sampler

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
        given = self._progress.given
        found = {"batches": given, "random": self._began if given else None}
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
        now, skipped = source.get_state(), self._skipped
        if not skipped:
            self._began = now
        elif self._began is not None:
            source.set_state(self._began)
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None:
                self._iterator = self._get_iterator()
            else:
                self._iterator._reset(self)
            found = self._iterator
        else:
            found = self._get_iterator()
        self._progress = Progress(skipped)
        if skipped and self._dataset_kind == _DatasetKind.Iterable:
            for _ in range(skipped):
                next(found)
        if isinstance(found, _BaseDataLoaderIter):
            found._progress = self._progress
        self._skipped = 0
        if skipped and self.generator is None:
            source.set_state(now)  # the program has restored its own
        return found

    def _get_iterator(self) -> Any:
        """Return a new pass; loaders of the program's own give another."""
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)  # type: ignore[arg-type]
        n = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than CPUs."""
        known = hasattr(os, "sched_getaffinity")
        cpus = len(os.sched_getaffinity(0)) if known else os.cpu_count()
        if not self.num_workers or (cpus is not None and self.num_workers <= cpus):
            return
        told = (
            "DataLoader is not able to compute a suggested max number of worker in current system."
            if cpus is None
            else f"Our suggested max number of worker in current system is {cpus}"
            f"{'' if known else ' (`cpuset` is not taken into account)'}, which is smaller than "
            "what this DataLoader is going to create."
        )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {told} "
            "Please be aware that excessive worker creation might get DataLoader running slow or "
            "even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )
