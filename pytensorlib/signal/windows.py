"""Window functions.

All take the number of points ``M`` and ``sym``: a symmetric window is for filters, a periodic one
(``sym=False``) for spectral analysis. Values are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import _C

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str,
    M: int,
    sym: bool,
    f: Callable[[Any, int], Any],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Make the window whose values at the points ``i`` of ``n`` intervals are ``f(i, n)``."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if layout is not None and layout != _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    n = M if not sym and M > 1 else M - 1
    values = _C.ones(1, dtype=_C.float64)
    if M != 1:
        values = f(_C.arange(M, dtype=_C.float64, device="cpu"), n)
    return values.to(device or _C.get_default_device(), dtype).requires_grad_(requires_grad)


def bartlett(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Bartlett window: a triangle that ends in zero."""
    return _window("bartlett", M, sym, lambda i, n: 1 - (2 * i / n - 1).abs(), **kwargs)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **kwargs: Any) -> Any:
    """Return a sum of cosines with coefficients `a` of alternating sign."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    signed = [(-1) ** k * c for k, c in enumerate(a)]
    if not signed:
        raise ValueError("Coefficients cannot be empty")

    def value(i: Any, n: int) -> Any:
        t = 2 * math.pi * i / n
        return sum(c * (k * t).cos() for k, c in enumerate(signed))

    return _window("general_cosine", M, sym, value, **kwargs)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **kwargs: Any) -> Any:
    """Return the window ``alpha - (1 - alpha) cos``."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **kwargs)


def hamming(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Hamming window."""
    return general_hamming(M, sym=sym, **kwargs)


def hann(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Hann window."""
    return general_hamming(M, alpha=0.5, sym=sym, **kwargs)


def blackman(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Blackman window."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **kwargs)


def nuttall(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return Nuttall's window of four terms."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **kwargs)


def cosine(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return half a period of a sine."""
    return _window("cosine", M, sym, lambda i, n: (math.pi * (i + 0.5) / (n + 1)).sin(), **kwargs)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **kwargs: Any
) -> Any:
    """Return ``exp(-|i - center| / tau)``; the centre is the middle unless given."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def value(i: Any, n: int) -> Any:
        return (-(i - (n / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, sym, value, **kwargs)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **kwargs: Any) -> Any:
    """Return the bell of deviation `std` points."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window(
        "gaussian", M, sym, lambda i, n: (-(((i - n / 2) / std) ** 2) / 2).exp(), **kwargs
    )


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Kaiser window: a Bessel function of half an ellipse."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    # The kernel behind ``kaiser_window`` computes in float64.
    def value(i: Any, n: int) -> Any:
        return _C.kaiser_window(n + 1, False, float(beta), dtype=_C.float64)[: len(i)]

    return _window("kaiser", M, sym, value, **kwargs)
