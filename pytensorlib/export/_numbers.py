"""How open sizes are written: polynomials of symbols, found from their values in the examples."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._symbolic.ints import SymInt, _Sym

__all__ = ["Polynomial", "fit", "text_of"]


class Polynomial:
    """A sum of products of symbols, written as PyTorch's graphs write sizes: ``2*s77 + 1``."""

    def __init__(self, terms: dict[tuple[str, ...], int]) -> None:
        self.terms = {k: v for k, v in terms.items() if v != 0}

    @classmethod
    def of(cls, value: Any) -> Polynomial | None:
        """Return a number, or an open number, as a polynomial, where it is one."""
        if isinstance(value, _Sym):
            text = value.node.text
            return text if isinstance(text, Polynomial) else cls({(str(text),): 1})
        return cls({(): value}) if type(value) is int else None

    def plus(self, other: Polynomial, sign: int = 1) -> Polynomial:
        terms = dict(self.terms)
        for k, v in other.terms.items():
            terms[k] = terms.get(k, 0) + sign * v
        return Polynomial(terms)

    def times(self, other: Polynomial) -> Polynomial:
        terms: dict[tuple[str, ...], int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                key = tuple(sorted(a + b))
                terms[key] = terms.get(key, 0) + x * y
        return Polynomial(terms)

    def __str__(self) -> str:
        def order(item: tuple[tuple[str, ...], int]) -> Any:
            return (-len(item[0]), item[0])

        parts: list[str] = []
        for key, n in sorted(self.terms.items(), key=order):
            powers = [
                f"{name}**{key.count(name)}" if key.count(name) > 1 else name
                for name in dict.fromkeys(key)
            ]
            body = "*".join(
                p if p.isidentifier() or len(powers) + (abs(n) != 1) == 1 else _closed(p)
                for p in powers
            )
            size = abs(n)
            said = body if body and size == 1 else (f"{size}*{body}" if body else str(size))
            if not parts:
                parts.append(f"-{said}" if n < 0 else said)
            else:
                parts.append(f"{'-' if n < 0 else '+'} {said}")
        return " ".join(parts) or "0"

    __repr__ = __str__


def _closed(text: str) -> str:
    return text if text.startswith("(") or "**" in text or "(" in text[:12] else f"({text})"


_SIGNS = {
    operator.eq: "Eq({}, {})", operator.ne: "Ne({}, {})", operator.lt: "{} < {}",
    operator.le: "{} <= {}", operator.gt: "{} > {}", operator.ge: "{} >= {}",
    operator.floordiv: "({}//{})", operator.mod: "(Mod({}, {}))", operator.truediv: "{}/{}",
    operator.pow: "{}**{}", max: "Max({1}, {0})", min: "Min({1}, {0})",
}  # fmt: skip


def text_of(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return how the result of a function of open numbers is written."""
    sides = [Polynomial.of(a) for a in args]
    if len(sides) == 2 and all(s is not None for s in sides):
        a, b = sides
        if a is None or b is None:  # what `all` says already
            raise AssertionError
        if function is operator.add:
            return a.plus(b)
        if function is operator.sub:
            return a.plus(b, -1)
        if function is operator.mul:
            return a.times(b)
        n = args[1]
        if function is operator.floordiv and type(n) is int and n > 0:
            if all(v % n == 0 for v in a.terms.values()):
                return Polynomial({k: v // n for k, v in a.terms.items()})
            inner = str(a) if len(a.terms) == 1 and () not in a.terms else f"({a})"
            return Polynomial({(f"({inner}//{n})",): 1})
    if function is operator.neg and sides[0] is not None:
        return Polynomial({}).plus(sides[0], -1)
    texts = [str(a) for a in args]
    if function in _SIGNS:
        return _SIGNS[function].format(*texts)
    return f"{getattr(function, '__name__', function)}({', '.join(texts)})"


def fit(values: tuple[int, ...], known: dict[tuple[int, ...], Any]) -> Any:
    """Return how a size is written by sizes that are known, or None."""
    if values in known:
        return known[values]
    sizes = [(v, t) for v, t in known.items() if len(set(v)) > 1 and isinstance(t, Polynomial)]
    one = Polynomial({(): 1})
    for other, text in sizes:
        step, base = values[1] - values[0], other[1] - other[0]
        for n in (1, 2, 3, 4, 8, 16, 32):
            # (other + c) // n, as convolutions and pools make sizes.
            low = max(v * n - o for v, o in zip(values, other, strict=True))
            high = min(v * n + n - 1 - o for v, o in zip(values, other, strict=True))
            if n > 1 and low <= high:
                shift = low if abs(low) <= abs(high) else high
                offset = max(low, min(high, 0)) if low <= 0 <= high else shift
                inner = text.plus(Polynomial({(): offset}))
                said = f"({inner})" if len(inner.terms) > 1 else str(inner)
                return Polynomial({(f"({said}//{n})",): 1})
            if n == 1 and base and step % base == 0 and step:
                factor = step // base
                rest = values[0] - factor * other[0]
                if all(v == factor * o + rest for v, o in zip(values, other, strict=True)):
                    return text.times(Polynomial({(): factor})).plus(
                        one.times(Polynomial({(): rest}))
                    )
    for i, (a, s) in enumerate(sizes):
        for b, t in sizes[i:]:
            pairs = list(zip(values, a, b, strict=True))
            if all(v == x * y for v, x, y in pairs):
                return s.times(t)
            if all(v == x + y for v, x, y in pairs):
                return s.plus(t)
            product = [x * y for _, x, y in pairs]
            if all(p and v % p == 0 for v, p in zip(values, product, strict=True)):
                factor = values[0] // product[0]
                if all(v == factor * p for v, p in zip(values, product, strict=True)):
                    return s.times(t).times(Polynomial({(): factor}))
    return None


Size = int | SymInt
