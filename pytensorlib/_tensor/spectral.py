"""Frequencies of Fourier transforms, and transforms of overlapping frames."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor

__all__ = ["fftfreq", "istft", "rfftfreq", "stft"]


def _frequencies(numbers: Tensor, n: int, d: float, out: Tensor | None, grad: bool) -> Tensor:
    """Scale numbers of waves over `n` samples that lie `d` apart."""
    result = numbers.mul_(1.0 / (n * d))
    if out is not None:
        result = out.resize_(result.shape).copy_(result)
    return result.requires_grad_() if grad else result


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of `fft`'s result, in cycles per unit of `d`.

    Parameters
    ----------
    n : int
        The length transformed.
    d : float, default 1.0
        The distance of two samples.
    out : Tensor, optional
        Where the result is written, which is then returned.
    dtype, layout, device, requires_grad : optional
        As for `arange`; the default type without `dtype`.

    Returns
    -------
    Tensor
        (n,): 0, 1, ..., -2, -1 over n * d.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.fft.fftfreq(5)
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    options = {"dtype": dtype or _C.get_default_dtype(), "layout": layout, "device": device}
    numbers = _C.arange(n, **options)
    half = (n + 1) // 2
    numbers[half:] -= n
    return _frequencies(numbers, n, d, out, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of `rfft`'s result, in cycles per unit of `d`.

    Parameters
    ----------
    n : int
        The length transformed.
    d : float, default 1.0
        The distance of two samples.
    out : Tensor, optional
        Where the result is written, which is then returned.
    dtype, layout, device, requires_grad : optional
        As for `arange`; the default type without `dtype`.

    Returns
    -------
    Tensor
        (n // 2 + 1,): 0, 1, ..., n // 2 over n * d.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.fft.rfftfreq(5)
    tensor([0.0000, 0.2000, 0.4000])
    """
    options = {"dtype": dtype or _C.get_default_dtype(), "layout": layout, "device": device}
    return _frequencies(_C.arange(n // 2 + 1, **options), n, d, out, requires_grad)


def _padded(window: Tensor | None, length: int, n_fft: int, like: Tensor) -> Tensor:
    """Return a window of `length`, of ones without one, with zeros on both sides up to `n_fft`."""
    if window is None:
        window = _C.ones(length, dtype=like.dtype, device=like.device)
    left = (n_fft - length) // 2
    return _C._nn.pad(window, (left, n_fft - length - left)) if length < n_fft else window


def _lengths(
    name: str, n_fft: int, hop: int | None, length: int | None, window: Tensor | None
) -> tuple[int, int]:
    """Return the distance of frames and the length of the window, checked."""
    hop = n_fft // 4 if hop is None else hop
    length = n_fft if length is None else length
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(
            f"{name}: expected 0 < win_length <= n_fft, but got win_length={length}, n_fft={n_fft}"
        )
    if window is not None and (window.dim() != 1 or window.size(0) != length):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, "
            f"but got window with size {list(window.shape)}"
        )
    return hop, length


# What the warnings of both transforms end with.
_SUPPRESS = (
    "To suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`."
)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of overlapping frames of a signal.

    Parameters
    ----------
    input : Tensor
        (length,) or (batch, length), real or complex.
    n_fft : int
        The length of a frame.
    hop_length : int, optional
        The distance of neighbouring frames; n_fft // 4 without it.
    win_length : int, optional
        The length of the window, which lies in the middle of the frame; `n_fft` without it.
    window : Tensor, optional
        (win_length,): factors of each frame; ones without it.
    center : bool, default True
        Whether frame t has its middle at element t * hop_length of the signal, which is then
        continued by n_fft // 2 on both sides as `pad_mode` says.
    pad_mode : str, default "reflect"
        As `nn.functional.pad` has it.
    normalized : bool, default False
        Whether to divide by the square root of `n_fft`.
    onesided : bool, optional
        Whether only the first n_fft // 2 + 1 frequencies are returned: True without it if signal
        and window are real.
    return_complex : bool, optional
        Must be given for real signals; where False, parts lie in a last dimension of two.
    align_to_window : bool, optional
        Without `center`, whether the first window begins where the signal does.

    Returns
    -------
    Tensor
        (batch, frequencies, frames), without the first dimension for one signal.

    Raises
    ------
    RuntimeError
        Sizes do not fit, or `return_complex` is missing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.cos(torch.arange(64.0) * torch.pi / 4)
    >>> y = torch.stft(x, 16, window=torch.hann_window(16), return_complex=True)
    >>> y.shape, y.abs()[:, 8].argmax().item()
    (torch.Size([9, 17]), 2)
    """
    hop, length = _lengths("stft", n_fft, hop_length, win_length, window)
    if input.dim() not in (1, 2) or not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            "stft: expected a 1D or 2D tensor of floating types, "
            f"but got {input.dim()}D {input.dtype}"
        )
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window should only be set when center = false")
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if window is None:
        _C._warn_once(
            "A window was not provided. A rectangular window will be applied,which is known to "
            "cause spectral leakage. Other windows such as torch.hann_window or "
            f"torch.hamming_window are recommended to reduce spectral leakage.{_SUPPRESS}"
        )
    signal = input if input.dim() == 2 else input[None]
    if center:
        half = n_fft // 2
        if pad_mode == "reflect" and 0 < half < signal.size(1):
            # As `pad` does, without a table of places.
            edges = signal[:, 1 : half + 1], signal[:, -half - 1 : -1]
            signal = _C.cat((edges[0].flip(1), signal, edges[1].flip(1)), 1)
        else:
            signal = _C._nn.pad(signal[:, None], (half, half), mode=pad_mode)[:, 0]
    elif not align_to_window and align_to_window is not None:
        left = (n_fft - length) // 2
        signal = _C._nn.pad(signal, (left, n_fft - length - left))
    if not 0 < n_fft <= signal.size(1):
        raise RuntimeError(
            f"stft: expected 0 < n_fft <= {signal.size(1)}, but got n_fft={n_fft}; the signal, "
            "continued where it is centred, must hold a frame"
        )
    frames = signal.unfold(-1, n_fft, hop)
    if window is not None or length < n_fft:
        frames = frames * _padded(window, length, n_fft, signal)
    transform = _C._fft.rfft if onesided else _C._fft.fft
    result = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    result = result if input.dim() == 2 else result[0]
    return result if return_complex or return_complex is None else _C.view_as_real(result)


# Parts of a frame from which on one gather is quicker than a sum of as many tensors.
_PARTS = 32


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """Add frames, (batch, frames, n), that lie `hop` apart."""
    if frames.is_complex():
        return _C.complex(*(_overlapped(x.contiguous(), hop) for x in (frames.real, frames.imag)))
    batch, count, n = frames.shape
    parts = -(-n // hop)
    if parts > _PARTS:
        from ..nn.functional import fold

        shape = (1, n + hop * (count - 1))
        return fold(frames.transpose(1, 2), shape, (1, n), stride=(1, hop)).flatten(1)
    # Part k of frame t lies in row t + k of the signal, whose rows have `hop` elements.
    rows = [
        _C._nn.pad(part, (0, hop - part.size(2), k, parts - 1 - k))
        for k, part in enumerate(frames.split(hop, 2))
    ]
    total = sum(rows[1:], rows[0])
    return total.view(batch, -1)[:, : n + hop * (count - 1)]


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal whose `stft` is nearest to `input`.

    By Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984: frames
    times the window are added, over the sum of the windows' squares, which are complex where the
    window is.

    Parameters
    ----------
    input : Tensor
        (batch, frequencies, frames) or (frequencies, frames), complex.
    n_fft, hop_length, win_length, window, center, normalized, onesided
        As for `stft`.
    length : int, optional
        The length of the signal: cut to it or continued with zeros.
    return_complex : bool, default False
        Whether the signal is complex; then all frequencies must be given.

    Returns
    -------
    Tensor
        (batch, length) or (length,).

    Raises
    ------
    RuntimeError
        Sizes do not fit, or the windows leave an element uncovered.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.cos(torch.arange(64.0) / 3)
    >>> window = torch.hann_window(16)
    >>> y = torch.stft(x, 16, window=window, return_complex=True)
    >>> torch.allclose(torch.istft(y, 16, window=window), x, atol=1e-6)
    True
    """
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if input.dim() not in (2, 3) or input.numel() == 0:
        raise RuntimeError(
            "istft: expected a tensor with 2 or 3 dimensions and elements, "
            f"but got shape {list(input.shape)}"
        )
    hop, win = _lengths("istft", n_fft, hop_length, win_length, window)
    size = input.size(-2)
    onesided = size != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if size != wanted:
        raise RuntimeError(
            f"istft: expected the frequency dimension to be of size {wanted} for n_fft={n_fft}, "
            f"onesided={onesided}, but got {size}"
        )
    if return_complex and onesided:
        raise RuntimeError("istft: cannot have onesided input and a complex result")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if window is None:
        _C._warn_once(
            "A window was not provided. A rectangular window will be applied.Please provide the "
            f"same window used by stft to make the inversion lossless.{_SUPPRESS}"
        )
    spectra = (input if input.dim() == 3 else input[None]).transpose(1, 2)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = _C._fft.ifft(spectra, norm=norm)
    else:
        half = spectra[..., : n_fft // 2 + 1]
        frames = _C._fft.irfft(half, n_fft, norm=norm)
    shape = _padded(window, win, n_fft, _C.real(frames) if return_complex else frames)
    signal = _overlapped(frames * shape, hop)
    envelope = _overlapped((shape * shape).expand(1, frames.size(1), n_fft), hop)
    start = n_fft // 2 if center else 0
    end = signal.size(1)
    if length is not None:
        end = min(end, start + length)
    elif center:
        end -= n_fft // 2
    signal, envelope = signal[:, start:end], envelope[:, start:end]
    if envelope.abs().min() <= 1e-11:
        raise RuntimeError(
            "istft: window overlap add min must be above 1e-11: the windows leave an element "
            "uncovered; take a smaller hop_length or another window"
        )
    signal = signal / envelope
    if length is not None and signal.size(1) < length:
        _C._warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings."
        )
        signal = _C._nn.pad(signal, (0, length - signal.size(1)))
    return signal if input.dim() == 3 else signal[0]


stft.__module__ = istft.__module__ = f"{__package__.partition('.')[0]}.functional"
