"""Data sets, samplers and the DataLoader."""

from collections.abc import Callable
from typing import Any, TypeVar

from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

T = TypeVar("T")

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "distributed",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[T], T]:
    """Return a decorator that leaves a class of pipes as it is: there are no pipes to add it to.

    Parameters
    ----------
    name : str
        The method that pipes would get.
    enable_df_api_tracing : bool, default False
        Not used.

    Returns
    -------
    callable
        Returns the class.

    Examples
    --------
    >>> from pytensorlib.utils.data import functional_datapipe
    >>> @functional_datapipe("mine")
    ... class Mine: ...
    """
    return lambda cls: cls


def __getattr__(name: str) -> Any:
    if name in ("IterDataPipe", "MapDataPipe"):
        from .datapipes import datapipe  # type: ignore[import-not-found]

        return getattr(datapipe, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
