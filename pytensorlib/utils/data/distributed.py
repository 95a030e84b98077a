"""The sampler for several processes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sized

import pytensorlib as pt

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """The share of one of several processes; all shuffle alike, by `seed` and epoch.

    Parameters
    ----------
    dataset : sized
        The same in all processes.
    num_replicas, rank : int, optional
        How many processes there are, and which this one is; as the group of all says by default.
    shuffle : bool, default True
        Whether to shuffle at each epoch.
    seed : int, default 0
        The same in all processes.
    drop_last : bool, default False
        Leave out samples so that all shares are equal, instead of repeating some.

    Raises
    ------
    ValueError
        `rank` is not below `num_replicas`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> share = torch.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
    >>> list(share)
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            if not pt.distributed.is_initialized():
                raise ValueError(
                    "Default process group has not been initialized: call init_process_group "
                    "first, or give num_replicas and rank"
                )
            if num_replicas is None:
                num_replicas = pt.distributed.get_world_size()
            if rank is None:
                rank = pt.distributed.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        if drop_last and n % num_replicas:
            self.num_samples = math.ceil((n - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = pt.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = pt.randperm(len(order), generator=generator).tolist()
        if order and len(order) < self.total_size:
            order = list(itertools.islice(itertools.cycle(order), self.total_size))
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle otherwise in the next pass.

        Parameters
        ----------
        epoch : int
            The number of the pass, the same in all processes.
        """
        self.epoch = epoch
