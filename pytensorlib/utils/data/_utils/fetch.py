"""Fetchers: batches from indices, in this process or in a worker."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ..dataset import Dataset
from .collate import default_collate

__all__ = ["_BaseDatasetFetcher", "_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _BaseDatasetFetcher:
    """Keeps what batches are made of."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch of a list of indices, or the sample of one."""
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes as many samples as there are indices, in their order."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return a batch, or a sample; StopIteration where there is none."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        samples = list(islice(self.dataset_iter, wanted))
        self.ended = len(samples) < wanted
        if not samples or (self.drop_last and len(samples) < wanted):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Asks for samples by index."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch of a list of indices, or the sample of one."""
        dataset, indices = self.dataset, possibly_batched_index
        if not self.auto_collation:
            return self.collate_fn(dataset[indices])
        if self.collate_fn is default_collate and isinstance(dataset, Dataset):
            batch = dataset._batch(indices)
            if batch is not None:
                return batch
        ask = getattr(dataset, "__getitems__", None)
        return self.collate_fn(ask(indices) if callable(ask) else [dataset[i] for i in indices])
