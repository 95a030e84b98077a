"""PyTorch's place of the sampler for several processes."""

from .sampler import DistributedSampler

__all__ = ["DistributedSampler"]
