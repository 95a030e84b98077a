"""Samplers: in which order a data set is read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import pytensorlib as pt

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


def random_seed(generator: Any = None) -> int:
    """Draw a seed, the way that keeps later draws equal to PyTorch's."""
    return int(pt.empty((), dtype=pt.int64).random_(generator=generator).item())


class Sampler(Generic[T_co]):
    """Base of the samplers; a subclass defines ``__iter__`` and as a rule ``__len__``.

    Parameters
    ----------
    data_source : sized, optional
        Accepted for older classes; not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Backwards(torch.utils.data.Sampler):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def __iter__(self):
    ...         return iter(range(self.n - 1, -1, -1))
    >>> list(torch.utils.data.DataLoader([10, 20], sampler=Backwards(2)))
    [tensor([20]), tensor([10])]
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ...

    Parameters
    ----------
    data_source : sized
        The data set.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> list(torch.utils.data.SequentialSampler([10, 20, 30]))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All samples in random order, or `num_samples` of them.

    Parameters
    ----------
    data_source : sized
        The data set.
    replacement : bool
        Draw each anew from all samples.
    num_samples : int, optional
        How many to draw (default: as many as there are).
    generator : Generator, optional
        Without one each pass takes a seed from the default generator.

    Raises
    ------
    ValueError
        If there is nothing to draw: a data set is empty, or `num_samples` is not positive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> sorted(torch.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many samples a pass draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = pt.Generator()
            generator.manual_seed(random_seed())
        if self.replacement:
            for start in range(0, left, 32):
                # The last draw is short, as the numbers of the others are PyTorch's.
                size = (min(32, left - start),)
                yield from pt.randint(n, size, dtype=pt.int64, generator=generator).tolist()
            return
        while left >= 0 and n > 0:
            # Drawn even if nothing is left, so that the numbers after it are PyTorch's.
            order = pt.randperm(n, generator=generator).tolist()
            yield from order[:left]
            left -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order.

    Parameters
    ----------
    indices : sequence of int
        Each is drawn once.
    generator : Generator, optional
        Source of the order; the default one if not given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> sorted(torch.utils.data.SubsetRandomSampler([3, 5]))
    [3, 5]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in pt.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices drawn with probability proportional to `weights`.

    Parameters
    ----------
    weights : sequence of float
        Not negative; they need not add up to 1.
    num_samples : int
        How many.
    replacement : bool, default True
        Whether an index may be drawn again.
    generator : Generator, optional
        Source of the numbers; the default one if not given.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 0.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        weight = pt.as_tensor(weights, dtype=pt.double)
        if weight.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape "
                f"{tuple(weight.shape)}"
            )
        self.weights = weight
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = pt.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; the last may be shorter.

    Parameters
    ----------
    sampler : iterable of int
        The indices.
    batch_size : int
        Positive.
    drop_last : bool
        Leave out a shorter last list.

    Raises
    ------
    ValueError
        `batch_size` is not a positive int, or `drop_last` not a bool.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
