"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, same_as

__all__ = ["VonMises"]


# Abramowitz and Stegun 9.8.1 to 9.8.4: I0 and I1 below 3.75 and from there on.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2)
    + (-0.2057706e-1, 0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1)
    + (0.2282967e-1, -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
)


def _polynomial(y: Tensor, coefficients: Sequence[float]) -> Tensor:
    result: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = c + y * result
    return result


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """Return the logarithm of the modified Bessel function I0 or I1."""
    small = _polynomial((x / 3.75) ** 2, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return pt.where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """The von Mises distribution over angles.

    Samples come from Best and Fisher's rejection (1979), in float64.

    Parameters
    ----------
    loc : float or Tensor
        The mean angle.
    concentration : float or Tensor
        How near the angles are to it.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import VonMises
    >>> VonMises(torch.tensor([1.0]), torch.tensor([1.0])).variance
    tensor([0.5536])
    """

    support = constraints.real
    has_rsample = False
    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        try:
            return super().expand(batch_shape)
        except NotImplementedError:
            loc, concentration = (x.expand(batch_shape) for x in (self.loc, self.concentration))
            checked = self.__dict__.get("_validate_args")
            return type(self)(loc, concentration, validate_args=checked)

    mean = same_as("loc", "The mean angle.")
    mode = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """1 minus the length of the mean of the unit vectors."""
        order1 = _log_modified_bessel_fn(self.concentration, order=1)
        return 1 - (order1 - _log_modified_bessel_fn(self.concentration)).exp()

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with pt.no_grad():
            loc, kappa = self.loc.double(), self.concentration.double()
            tau = 1 + (1 + 4 * kappa**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = pt.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
            x = pt.empty(shape, dtype=loc.dtype, device=loc.device)
            done = pt.zeros(shape, dtype=pt.bool, device=loc.device)
            # All are drawn until all are accepted, and the last accepted counts.
            while not done.all():
                u = pt.rand((3,) + shape, dtype=loc.dtype, device=loc.device)
                z = pt.cos(math.pi * u[0])
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u[1] > 0) | ((c / u[1]).log() + 1 - c >= 0)
                x = pt.where(accept, (u[2] - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        density = self.concentration * pt.cos(value - self.loc)
        return density - math.log(2 * math.pi) - _log_modified_bessel_fn(self.concentration)
