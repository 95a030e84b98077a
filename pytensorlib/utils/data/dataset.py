"""Data sets: by index, by iteration, and made of others."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import pytensorlib as pt

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A data set read by index; a subclass defines ``__getitem__`` and as a rule ``__len__``.

    One that can fetch many samples at once may define ``__getitems__(indices)``, which returns a
    list of samples.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> list(torch.utils.data.DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4])]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])

    def _batch(self, indices: list[int]) -> Any:
        """Return the samples already collated, or None where that needs one at a time."""
        return None


class IterableDataset(Dataset[T_co]):
    """A data set read from start to end; a subclass defines ``__iter__``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Count(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(torch.utils.data.DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Sample ``i`` is the tuple of ``t[i]`` of each tensor.

    Parameters
    ----------
    *tensors : Tensor
        All of the same length.

    Raises
    ------
    AssertionError
        The lengths differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> data = torch.utils.data.TensorDataset(torch.tensor([1.0, 2.0]), torch.tensor([0, 1]))
    >>> data[1]
    (tensor(2.), tensor(1))
    """

    def __init__(self, *tensors: Any) -> None:
        sizes = [t.size(0) for t in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(f"Size mismatch between tensors: lengths {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _batch(self, indices: list[int]) -> Any:
        # A subclass may return something else.
        if type(self).__getitem__ is not TensorDataset.__getitem__ or not indices:
            return None
        if hasattr(self, "__getitems__"):
            return None
        n = len(self)
        if not all(type(i) is int and -n <= i < n for i in indices):
            return None
        rows = pt.tensor([i + n if i < 0 else i for i in indices])
        return [t.index_select(0, rows.to(t.device)) for t in self.tensors]


class StackDataset(Dataset[Any]):
    """Sample ``i`` is the tuple, or the dict, of sample ``i`` of each data set.

    Parameters
    ----------
    *args, **kwargs : Dataset
        Of one length; by position for tuples, by name for dicts.

    Raises
    ------
    ValueError
        There is none, there are both kinds, or the lengths differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> data = torch.utils.data.StackDataset(image=[10, 20], label=[0, 1])
    >>> data[1]
    {'image': 20, 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        members = list(args) or list(kwargs.values())
        if not members:
            raise ValueError("At least one dataset should be passed")
        if len({len(d) for d in members}) > 1:
            raise ValueError(f"Size mismatch between datasets: {[len(d) for d in members]}")
        self._length = len(members[0])
        self.datasets: Any = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        by_name = isinstance(self.datasets, dict)
        columns = []
        for data in self.datasets.values() if by_name else self.datasets:
            ask = getattr(data, "__getitems__", None)
            items = ask(indices) if callable(ask) else [data[i] for i in indices]
            if len(items) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got "
                    f"{len(items)}"
                )
            columns.append(items)
        rows = list(zip(*columns, strict=True))
        return [dict(zip(self.datasets, row, strict=True)) for row in rows] if by_name else rows

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Several data sets one after another.

    Parameters
    ----------
    datasets : iterable of Dataset
        With lengths; at least one.

    Raises
    ------
    AssertionError
        There is none, or one is iterable only.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> data = torch.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2]
    (3, 3)
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets: Any = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - start]


class ChainDataset(IterableDataset[Any]):
    """Several iterable data sets one after another.

    Parameters
    ----------
    datasets : iterable of IterableDataset
        Read one after another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Count(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(torch.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets: Any = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of a data set at `indices`.

    Parameters
    ----------
    dataset : Dataset
        Read by index.
    indices : sequence of int
        Which samples, in this order.

    Raises
    ------
    NotImplementedError
        A subclass overrides ``__getitem__`` and not ``__getitems__``, which loaders ask.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> list(torch.utils.data.Subset([10, 20, 30], [2, 0]))
    [30, 10]
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. When subclassing "
                "Subset and overriding __getitem__, you must also override __getitems__ to ensure "
                "DataLoader works correctly with your custom logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        inner = [self.indices[i] for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        return fetch(inner) if callable(fetch) else [self.dataset[i] for i in inner]

    def __len__(self) -> int:
        return len(self.indices)

    def _batch(self, indices: list[int]) -> Any:
        plain = (
            type(self).__getitem__ is Subset.__getitem__
            and type(self).__getitems__ is Subset.__getitems__
            and isinstance(self.dataset, Dataset)
        )
        return self.dataset._batch([self.indices[i] for i in indices]) if plain else None


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[float], generator: Any = None
) -> list[Subset[T_co]]:
    """Split a data set at random.

    Parameters
    ----------
    dataset : Dataset
        With a length.
    lengths : sequence of int, or of float
        Lengths that add up to that of `dataset`, or fractions that add up to 1; what rounding
        leaves goes to the first parts, one each.
    generator : Generator, optional
        Source of the permutation.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        The lengths do not add up, or a fraction is outside [0, 1].

    Examples
    --------
    >>> import pytensorlib as torch
    >>> train, test = torch.utils.data.random_split(range(10), [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    n = len(dataset)  # type: ignore[arg-type]
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        for i, fraction in enumerate(sizes):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1: {fraction}")
        sizes = [math.floor(n * fraction) for fraction in sizes]
        for i in range(n - sum(sizes)):  # type: ignore[arg-type]
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if not size:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.",
                    stacklevel=2,
                )
    if sum(sizes) != n:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"{sum(sizes)} for {n}"
        )
    order = pt.randperm(n, generator=generator).tolist()
    ends = itertools.accumulate(int(s) for s in sizes)
    return [
        Subset(dataset, order[end - int(size) : end]) for end, size in zip(ends, sizes, strict=True)
    ]
