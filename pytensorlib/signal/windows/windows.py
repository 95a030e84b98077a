"""Window functions.

All take the number of points ``M`` and ``sym``: a symmetric window is for filters, a periodic one
(``sym=False``) for spectral analysis. Values are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from ... import _C

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
    M = operator.index(M)
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
    """Return the Bartlett window: a triangle that ends in zero.

    Parameters
    ----------
    M : int
        The number of points.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", M, sym, lambda i, n: 1 - (2 * i / n - 1).abs(), **kwargs)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **kwargs: Any) -> Any:
    """Return a sum of cosines with coefficients `a` of alternating sign.

    At point i of n intervals it is the sum of (-1)^k a[k] cos(2 pi k i / n).

    Parameters
    ----------
    M : int
        The number of points.
    a : sequence of float
        The coefficients.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `a` is empty, `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines("general_cosine", M, a, sym, **kwargs)


def _cosines(name: str, M: int, a: Iterable[float], sym: bool, **kwargs: Any) -> Any:
    """Make the window of cosines that the function of this name returns."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    signed = [(-1) ** k * c for k, c in enumerate(a)]
    if not signed:
        raise ValueError("Coefficients cannot be empty")

    def value(i: Any, n: int) -> Any:
        t = 2 * math.pi * i / n
        return sum(c * (k * t).cos() for k, c in enumerate(signed))

    return _window(name, M, sym, value, **kwargs)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **kwargs: Any) -> Any:
    """Return the window ``alpha - (1 - alpha) cos``.

    Parameters
    ----------
    M : int
        The number of points.
    alpha : float, default 0.54
        The share of the constant; 0.5 gives the Hann window.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.general_hamming(5, alpha=0.6)
    tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **kwargs)


def hamming(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Hamming window.

    ``0.54 - 0.46 cos``: a cosine that ends above zero.

    Parameters
    ----------
    M : int
        The number of points.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, **kwargs)


def hann(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Hann window.

    ``0.5 - 0.5 cos``, or sin squared: it ends in zero.

    Parameters
    ----------
    M : int
        The number of points.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    >>> torch.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **kwargs)


def blackman(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Blackman window.

    ``0.42 - 0.5 cos(t) + 0.08 cos(2t)``.

    Parameters
    ----------
    M : int
        The number of points.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.blackman(4, sym=False)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, **kwargs)


def nuttall(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return Nuttall's window of four terms.

    Its side lobes are the lowest for that many cosines.

    Parameters
    ----------
    M : int
        The number of points.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    References
    ----------
    Nuttall 1981, IEEE Transactions on Acoustics, Speech, and Signal Processing 29(1).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.nuttall(5)
    tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **kwargs)


def cosine(M: int, *, sym: bool = True, **kwargs: Any) -> Any:
    """Return half a period of a sine.

    The points lie between the zeros, so none is zero.

    Parameters
    ----------
    M : int
        The number of points.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.cosine(5)
    tensor([0.3090, 0.8090, 1.0000, 0.8090, 0.3090])
    """
    return _window("cosine", M, sym, lambda i, n: (math.pi * (i + 0.5) / (n + 1)).sin(), **kwargs)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **kwargs: Any
) -> Any:
    """Return ``exp(-|i - center| / tau)``; the centre is the middle unless given.

    Parameters
    ----------
    M : int
        The number of points.
    center : float, optional
        Where the window is 1, counted in points; only for `sym` False.
    tau : float, default 1.0
        After how many points it falls by e; positive.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `tau` is not positive, `center` is given for a symmetric window, `M` is negative, or the
        dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.exponential(5)
    tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def value(i: Any, n: int) -> Any:
        return (-(i - (n / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, sym, value, **kwargs)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **kwargs: Any) -> Any:
    """Return the bell of deviation `std` points.

    Parameters
    ----------
    M : int
        The number of points.
    std : float, default 1.0
        Positive.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `std` is not positive, `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.gaussian(5)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window(
        "gaussian", M, sym, lambda i, n: (-(((i - n / 2) / std) ** 2) / 2).exp(), **kwargs
    )


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **kwargs: Any) -> Any:
    """Return the Kaiser window: a Bessel function of half an ellipse.

    Parameters
    ----------
    M : int
        The number of points.
    beta : float, default 12.0
        Not negative: larger values narrow the window and lower the side lobes; 0 gives ones.
    sym : bool, default True
        False for a window of one period, as if it had one more point.
    **kwargs
        dtype (float32 or float64), device, layout and requires_grad of the result.

    Returns
    -------
    Tensor
        (M).

    Raises
    ------
    ValueError
        `beta` is negative, `M` is negative, or the dtype is another.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.signal.windows.kaiser(5, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    # The kernel behind ``kaiser_window`` computes in float64.
    def value(i: Any, n: int) -> Any:
        return _C.kaiser_window(n + 1, False, float(beta), dtype=_C.float64)[: len(i)]

    return _window("kaiser", M, sym, value, **kwargs)
