"""Rows of complex numbers, which ONNX holds as pairs along a last dimension of two."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ._graph import Value
from ._rows import ROWS

__all__ = ["COMPLEX", "MAKERS"]

# What writes an operator that gets complex tensors.
COMPLEX: dict[str, Any] = {}
# Operators that make complex tensors of real ones.
MAKERS = frozenset("complex fft_fft fft_ifft fft_rfft polar stft view_as_complex".split())
_REAL = {pt.complex64: pt.float32, pt.complex128: pt.float64}


def of(*names: str) -> Any:
    """Keep a function as the row of operators of complex tensors."""

    def keep(f: Any) -> Any:
        COMPLEX.update(dict.fromkeys(names, f))
        return f

    return keep


def is_complex(value: Any) -> bool:
    """Return whether something is a complex tensor."""
    return isinstance(value, Value) and value.dtype.is_complex


def pairs(c: Any, value: Any) -> Value:
    """Return a complex tensor as the real one that ONNX has."""
    return Value(c.name(value), _REAL[value.dtype], (*value.shape, 2))


def part(c: Any, value: Any, i: int) -> str:
    """Return the real part, or the imaginary one."""
    return str(c.op("Gather", value, c.constant(i), axis=value.rank))


def joined(c: Any, re: Any, im: Any) -> str:
    last = c.constant([-1])
    both = (c.op("Unsqueeze", v, last) for v in (re, im))
    return str(c.op("Concat", *both, axis=-1))


@of("view_as_complex", "view_as_real", "clone", "alias", "contiguous", "resolve_conj", "detach")
def _same(c: Any, x: Any, **options: Any) -> Any:
    return c.op("Identity", x)


@of("complex")
def _complex(c: Any, re: Any, im: Any) -> Any:
    return joined(c, re, im)


@of("polar")
def _polar(c: Any, size: Any, angle: Any) -> Any:
    turned = (c.op("Mul", size, c.op(f, angle)) for f in ("Cos", "Sin"))
    return joined(c, *turned)


@of("real")
def _real(c: Any, x: Any) -> Any:
    return part(c, x, 0)


@of("imag")
def _imag(c: Any, x: Any) -> Any:
    return part(c, x, 1)


@of("abs")
def _abs(c: Any, x: Any) -> Any:
    return c.op("ReduceL2", x, c.constant([x.rank]), keepdims=0)


@of("conj", "_conj", "conj_physical", "_conj_physical")
def _conj(c: Any, x: Any) -> Any:
    return c.op("Mul", x, c.constant([1.0, -1.0], _REAL[x.dtype]))


def _scaled(c: Any, x: Any, other: Any, kind: str) -> Any:
    """Return complex numbers by real ones."""
    if isinstance(other, complex):
        raise c.error(c.at, "a complex number that is no tensor")
    if isinstance(other, Value):
        other = c.op("Unsqueeze", c.cast(other, _REAL[x.dtype]), c.constant([other.rank]))
    return c.op(kind, x, c.operand(other, _REAL[x.dtype]))


@of("mul")
def _mul(c: Any, a: Any, b: Any) -> Any:
    if not is_complex(a):
        a, b = b, a
    if not is_complex(b):
        return _scaled(c, a, b, "Mul")
    (ar, ai), (br, bi) = ([part(c, v, i) for i in (0, 1)] for v in (a, b))
    re = c.op("Sub", c.op("Mul", ar, br), c.op("Mul", ai, bi))
    return joined(c, re, c.op("Add", c.op("Mul", ar, bi), c.op("Mul", ai, br)))


@of("div")
def _div(c: Any, a: Any, b: Any) -> Any:
    if is_complex(b):
        raise c.error(c.at, "a complex divisor")
    return _scaled(c, a, b, "Div")


@of("add", "sub")
def _add(c: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    if not (is_complex(a) and is_complex(b)) or alpha != 1:
        raise c.error(c.at, "one operand is complex and one is not")
    return c.op("Add" if ".add" in str(c.at.target) else "Sub", a, b)


@of("neg")
def _neg(c: Any, x: Any) -> Any:
    return c.op("Neg", x)


@of("reshape", "view", "expand")
def _shaped(c: Any, x: Any, size: Any, **options: Any) -> Any:
    name = c.at.target.overloadpacket.__name__
    return ROWS[name](c, pairs(c, x), [*size, 2], **options)


@of("permute")
def _permute(c: Any, x: Any, dims: Any) -> Any:
    return ROWS["permute"](c, pairs(c, x), [*(d % x.rank for d in dims), x.rank])


def _along(name: str, count: int, more: int = 0) -> None:
    """The operator has so many dimensions behind its tensor."""

    def write(c: Any, x: Any, *args: Any) -> Any:
        rank = x.rank + more
        given = args or (0,)
        dims = [d % rank for d in given[:count]]
        return ROWS[name](c, pairs(c, x), *dims, *given[count:])

    COMPLEX[name] = write


for _name in ("slice", "select", "narrow", "squeeze", "index_select"):
    _along(_name, 1)
_along("transpose", 2)
_along("unsqueeze", 1, 1)


@of("cat", "stack")
def _cat(c: Any, tensors: Any, dim: int = 0) -> Any:
    name = c.at.target.overloadpacket.__name__
    rank = tensors[0].rank + (name == "stack")
    return ROWS[name](c, [pairs(c, t) for t in tensors], dim % rank)


def _transformed(c: Any, x: Any, n: Any, dim: int, norm: Any, how: dict[str, int]) -> Any:
    if norm not in (None, "backward"):
        raise c.error(c.at, f"norm is {norm!r}")
    if c.opset < 20:
        raise c.error(c.at, "Fourier transforms need version 20")
    real = x.dtype if not is_complex(x) else _REAL[x.dtype]
    dim %= x.rank
    given = x if is_complex(x) else c.op("Unsqueeze", c.cast(x, real), c.constant([x.rank]))
    if n is not None and n != x.known(dim):
        raise c.error(c.at, "the length is not that of the tensor")
    return c.op("DFT", given, None, c.constant(dim), **how)


@of("fft_rfft")
def _rfft(c: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    return _transformed(c, x, n, dim, norm, {"onesided": 1})


@of("fft_fft")
def _fft(c: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    return _transformed(c, x, n, dim, norm, {})


@of("fft_ifft")
def _ifft(c: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    return _transformed(c, x, n, dim, norm, {"inverse": 1})


@of("stft")
def _stft(
    c: Any, x: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None,
    *args: Any, **options: Any,
) -> Any:  # fmt: skip
    names = ("normalized", "onesided", "return_complex", "align_to_window")
    center, mode = options.pop("center", False), options.pop("pad_mode", "reflect")
    rest = list(args)
    if rest and isinstance(rest[1:2] and rest[1], str):
        center, mode = rest[:2]
        rest = rest[2:]
    known = dict(zip(names, rest, strict=False)) | options
    if known.get("normalized") or known.get("onesided") is False or is_complex(x):
        raise c.error(c.at, "the spectrum is normalized, or has both sides")
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    signal = x if x.rank == 2 else c.op("Unsqueeze", x, c.constant([0]))
    if center:
        half = n_fft // 2
        places = c.constant([0, half, 0, half])
        signal = c.op("Pad", signal, places, mode={"replicate": "edge"}.get(mode, mode))
    if window is None:
        window = c.constant([1.0] * width, x.dtype)
    left = (n_fft - width) // 2
    if width < n_fft:
        window = c.op("Pad", window, c.constant([left, n_fft - width - left]))
    deep = c.op("Unsqueeze", signal, c.constant([2]))
    made = c.op("STFT", deep, c.constant(hop), window, c.constant(n_fft), onesided=1)
    turned = c.op("Transpose", made, perm=[0, 2, 1, 3])
    return turned if x.rank == 2 else c.op("Squeeze", turned, c.constant([0]))
