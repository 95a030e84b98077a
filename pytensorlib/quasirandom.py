"""Points that fill a cube more evenly than random ones."""

from __future__ import annotations

from typing import Any

from . import _C
from ._sobol_numbers import DIMENSIONS, rows

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol sequence, in a cube from 0 to 1.

    Parameters
    ----------
    dimension : int
        Of the points; at most 1024.
    scramble : bool, default False
        Whether the sequence is scrambled at random, so that no point is a corner.
    seed : int, optional
        Where these random numbers begin; the default generator gives them without.

    Raises
    ------
    ValueError
        There are no direction numbers for so many dimensions.

    References
    ----------
    Joe and Kuo 2008, "Constructing Sobol Sequences with Better Two-Dimensional Projections"; the
    scrambling is that of Owen 1998, "Scrambling Sobol' and Niederreiter-Xing Points".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = 30
    MAXDIM = DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is "
                f"[1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _C.tensor([self._directions(*row) for row in rows(dimension)])
        self.shift = _C.zeros(dimension, dtype=_C.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0
        self.quasi = self.shift.clone()

    def _directions(self, polynomial: int, first: list[int]) -> list[int]:
        """Return the numbers by which a coordinate changes, with their binary point to the left."""
        degree, v = polynomial.bit_length() - 1, list(first)
        if degree == 0:
            v = [1] * self.MAXBIT
        for i in range(len(v), self.MAXBIT):
            new = v[i - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    new ^= v[i - k] << k
            v.append(new)
        return [n << (self.MAXBIT - 1 - i) for i, n in enumerate(v)]

    def _scramble(self) -> None:
        bits, rank = self.MAXBIT, _C.arange(self.MAXBIT)
        generator = None
        if self.seed is not None:
            generator = _C.Generator()
            generator.manual_seed(self.seed)
        flips = _C.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (flips << rank).sum(1)
        lower = _C.randint(2, (self.dimension, bits, bits), generator=generator).tril()
        lower.diagonal(0, -2, -1).fill_(1)
        # Bits of a number, the highest first, multiplied by a matrix of ones and zeros.
        high = rank.flip(0)
        columns = []
        for numbers in self.sobolstate.unbind(1):
            digits = numbers.unsqueeze(-1) >> high & 1
            mixed = (lower * digits.unsqueeze(-2)).sum(-1) % 2
            columns.append((mixed << high).sum(-1))
        self.sobolstate = _C.stack(columns, 1)

    def _points(self, start: int, n: int) -> Any:
        """Return points of the sequence as integers of 30 bits."""
        index = _C.arange(start, start + n)
        gray = (index ^ (index >> 1)).unsqueeze(1)
        points = self.shift.expand(n, self.dimension).clone()
        for bit in range(max(start + n, 1).bit_length()):
            points ^= (gray >> bit & 1) * self.sobolstate[:, bit]
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """Return the next points.

        Parameters
        ----------
        n : int, default 1
            How many.
        out : Tensor, optional
            Where they are written.
        dtype : dtype, optional
            The default dtype if not given.

        Returns
        -------
        Tensor
            (n, dimension).
        """
        if self.num_generated + n > 1 << self.MAXBIT:
            raise ValueError(f"SobolEngine: the sequence has 2**{self.MAXBIT} points")
        points = self._points(self.num_generated, n)
        self._advance(n)
        dtype = _C.get_default_dtype() if dtype is None else dtype
        result = (points.to(_C.float64) / 2**self.MAXBIT).to(dtype)
        return result if out is None else out.resize_(result.shape).copy_(result)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """Return the next ``2**m`` points, of which there are a power of two then.

        Parameters
        ----------
        m : int
            The exponent.
        out : Tensor, optional
            Where they are written.
        dtype : dtype, optional
            The default dtype if not given.

        Returns
        -------
        Tensor
            (2**m, dimension).

        Raises
        ------
        ValueError
            There would be another number of points.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin with the first point again, and return self."""
        self.num_generated = 0
        self.quasi = self.shift.clone()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave points out, and return self.

        Parameters
        ----------
        n : int
            How many.
        """
        self._advance(n)
        return self

    def _advance(self, n: int) -> None:
        self.num_generated += n
        # The last point that was drawn.
        self.quasi = self._points(max(self.num_generated - 1, 0), 1)[0]

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] if self.scramble else []
        parts += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(parts)})"
