"""Learning-rate schedules.

A schedule sets ``lr`` in the groups of its optimizer each time `step` is called, as a rule once
an epoch. Most compute the new rate from the current one, so schedules can be chained and a rate
changed by hand stays changed.
"""

from ... import _alias
from .base import EPOCH as EPOCH_DEPRECATION_WARNING
from .base import LRScheduler
from .combined import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from .cyclic import CyclicLR, OneCycleLR
from .epoch import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
_alias.adopt(globals(), __all__)
