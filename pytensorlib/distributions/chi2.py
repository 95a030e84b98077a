"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .gamma import Gamma
from .utils import formula

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: the sum of `df` squared standard normal numbers.

    Parameters
    ----------
    df : float or Tensor
        Degrees of freedom.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Chi2
    >>> Chi2(torch.tensor([4.0])).variance
    tensor([8.])
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = formula(lambda d: d.concentration * 2, "Degrees of freedom.")
