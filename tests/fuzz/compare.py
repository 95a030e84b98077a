"""Say how what one library did differs from what PyTorch did.

Categories: VALUE (worse than PyTorch's against float64), DTYPE, SHAPE, STRIDE, REQUIRES_GRAD,
ALIAS (the memory shared with arguments), WRITE (an argument's memory afterwards), GRADIENT,
NO_GRADIENT (one is None), BACKWARD_ERROR, REFUSED (PyTorch accepts), ACCEPTED (PyTorch refuses),
ERROR_CLASS, MISSING (a form that PyTorch has).
Where PyTorch merely lacks the type, accepting is no finding.
"""

from __future__ import annotations

import copy
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .calls import COMPLEX, INTS, STORED, WIDE, Call, Named, mapped
from .libraries import Library, Outcome, Seen

# Relative and absolute error below which two results count as one.
TOLERANCE = {
    "float64": (1e-9, 1e-11),
    "float32": (3e-5, 3e-6),
    "float16": (4e-3, 4e-3),
    "bfloat16": (3e-2, 3e-2),
    "complex64": (1e-4, 1e-5),
    "complex128": (1e-9, 1e-11),
}
LACKING = re.compile(
    r"not implemented for|not supported|Could not run|not yet supported|is not implemented|NYI"
    r"|expected scalar type|unsupported|only supported|not available|lacking",
    re.IGNORECASE,
)
# Which of several right answers is given is open: these results are not compared, by operator.
OPEN: tuple[tuple[str, frozenset[int]], ...] = (
    (r"^(linalg\.)?svd$", frozenset({0, 2})),
    (r"^linalg\.eigh$|^linalg\.eig$|^geqrf$", frozenset({1})),
    (r"^(topk|sort|msort|mode|kthvalue|median|nanmedian|max|min|cummax|cummin)\b", frozenset({1})),
    (r"^argsort", frozenset({0})),
    (r"_lowrank$", frozenset({0, 1, 2})),
)
UNSEEDED = re.compile(r"^(empty|new_empty|resize_)")  # memory that nothing was written to


@dataclass
class Finding:
    """One difference."""

    category: str
    detail: str


def is_complex(call: Call) -> bool:
    """Say whether complex numbers take part."""
    dtypes = {a.dtype for a in call.arrays()} | {call.out_dtype if call.form == "out" else ""}
    text = repr((call.args, call.kwargs))
    return bool(dtypes & set(COMPLEX)) or "complex" in text or re.search(r"\dj\b", text) is not None


def differences(call: Call, ours: Outcome, theirs: Outcome, judge: Library) -> list[Finding]:
    """Return the differences between two runs of a call; the judge computes in float64."""
    if ours.kind == "missing" or theirs.kind == "missing":
        if theirs.kind == "missing":
            return []
        return [Finding("MISSING", f"no form {call.form}")]
    if ours.error is not None and theirs.error is not None and "panic" not in str(ours.error):
        names = {c.__name__ for c in type(ours.error).__mro__}
        name = type(theirs.error).__name__.lstrip("_")
        if name in names or LACKING.search(str(theirs.error)):
            return []
        return [Finding("ERROR_CLASS", f"{ours.text()} | PyTorch {theirs.text()}")]
    if "internal panic" in str(ours.error):
        return [Finding("PANIC", ours.text())]
    if ours.error is not None:
        return [Finding("REFUSED", ours.text())]
    if theirs.error is not None:
        if LACKING.search(str(theirs.error)):
            return []
        return [Finding("ACCEPTED", f"PyTorch {theirs.text()}")]
    if len(ours.results) != len(theirs.results):
        return [Finding("SHAPE", f"{len(ours.results)} results for {len(theirs.results)}")]
    found: list[Finding] = []
    random = UNSEEDED.match(call.op) is not None
    for i, (x, y) in enumerate(zip(ours.results, theirs.results)):
        found += _result(call, i, x, y, judge, random or is_open(call.op, i))
        if call.form == "out" and call.out in ("input", "overlap"):
            # PyTorch leaves open what comes out; that it is the function's result is a law.
            found = [f for f in found if f.category not in ("VALUE", "SHAPE")]
            continue
        if ours.shared[i] != theirs.shared[i]:
            found.append(Finding("ALIAS", f"[{i}] {ours.shared[i]} for {theirs.shared[i]}"))
    random |= call.form == "out" and call.out in ("input", "overlap")
    if not random and not found:
        dtypes = [a.dtype for a in call.arrays() if a.alias is None]
        for i, (x, y) in enumerate(zip(ours.memory, theirs.memory)):
            if i == 0 and call.form == "inplace":
                continue  # the result, which was compared
            if not close(x, y, dtypes[i]):
                found.append(Finding("WRITE", f"the memory of argument {i} differs afterwards"))
    random |= any(
        is_open(call.op, i) and not np.array_equal(x.values, y.values)
        for i, (x, y) in enumerate(zip(ours.results, theirs.results))
        if isinstance(x, Seen) and isinstance(y, Seen)
    )
    if not random and not any(f.category in ("VALUE", "SHAPE", "DTYPE") for f in found):
        found += _gradients(call, ours, theirs, judge)
    return found


def is_open(op: str, index: int) -> bool:
    """Say whether a result of an operator is one of several right ones."""
    return any(re.search(pattern, op) and index in indices for pattern, indices in OPEN)


def _result(call: Call, i: int, x: Any, y: Any, judge: Library, random: bool) -> list[Finding]:
    if not isinstance(x, Seen) or not isinstance(y, Seen):
        if type(x) is not type(y):
            return [Finding("DTYPE", f"[{i}] {type(x).__name__} for {type(y).__name__}")]
        if random or x == y or (isinstance(x, (float, complex)) and _near(x, y)):
            return []
        return [Finding("VALUE", f"[{i}] {x!r} for {y!r}")]
    if x.shape != y.shape:
        return [Finding("SHAPE", f"[{i}] {x.shape} for {y.shape}")]
    if x.dtype != y.dtype:
        return [Finding("DTYPE", f"[{i}] {x.dtype} for {y.dtype}")]
    found = []
    # What is computed in a narrow type and then put into a wide `out` is no better for it.
    narrow = [a.dtype for a in call.arrays() if a.dtype in WIDE] if call.form == "out" else []
    if call.form == "out" and any(a.dtype in (*INTS, "bool") for a in call.arrays()):
        narrow.append("float32")  # where integers become floating
    tolerances = {y.dtype, *(narrow if y.dtype in TOLERANCE else ())}
    if not random and not any(close(x.values, y.values, t) for t in tolerances):
        worse = adjudicated(call, x, y, judge, lambda o: o.results[i])
        found += [Finding("VALUE", f"[{i}] {worse}")] if worse else []
    moving = [d for d, n in enumerate(y.shape) if n > 1]
    if math.prod(y.shape) > 1 and any(x.strides[d] != y.strides[d] for d in moving):
        found.append(Finding("STRIDE", f"[{i}] {x.strides} for {y.strides}, shape {y.shape}"))
    if x.grad != y.grad:
        found.append(Finding("REQUIRES_GRAD", f"[{i}] {x.grad} for {y.grad}"))
    return found


def _gradients(call: Call, ours: Outcome, theirs: Outcome, judge: Library) -> list[Finding]:
    if ours.backward_error is not None and theirs.backward_error is None:
        error = ours.backward_error
        return [Finding("BACKWARD_ERROR", f"{type(error).__name__}: {str(error)[:200]}")]
    found = []
    for i, (x, y) in enumerate(zip(ours.gradients or (), theirs.gradients or ())):
        if x is None or y is None:
            other = x or y
            if other is not None and np.any(other.values != 0):
                side = "PyTorch" if x is None else "ours"
                found.append(Finding("NO_GRADIENT", f"[{i}] only {side} has one"))
        elif (x.shape, x.dtype) != (y.shape, y.dtype):
            text = f"[{i}] {x.dtype}{x.shape} for {y.dtype}{y.shape}"
            found.append(Finding("GRADIENT", text))
        elif not close(x.values, y.values, y.dtype):
            worse = adjudicated(call, x, y, judge, lambda o, i=i: o.gradients[i])
            found += [Finding("GRADIENT", f"[{i}] {worse}")] if worse else []
    return found


def _near(x: complex, y: complex) -> bool:
    both_nan = x != x and y != y
    return both_nan or abs(x - y) <= 1e-4 * abs(y) + 1e-6


def close(x: np.ndarray, y: np.ndarray, dtype: str) -> bool:
    """Say whether two results differ by no more than rounding may cause."""
    if x.shape != y.shape:
        return False
    if x.dtype.kind not in "fc":
        return np.array_equal(x, y)
    kind = np.complex128 if np.iscomplexobj(y) else np.float64
    relative, absolute = TOLERANCE.get(dtype, (0.0, 0.0))
    x, y = x.astype(kind), y.astype(kind)
    with np.errstate(all="ignore"):
        largest = float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
        absolute *= max(1.0, largest)
        return bool(np.allclose(x, y, rtol=relative, atol=absolute, equal_nan=True))


def adjudicated(call: Call, x: Seen, y: Seen, judge: Library, part: Any) -> str | None:
    """Return where the first is worse than the second against float64, or None if nowhere."""
    a, b = x.values, y.values
    low = [array for array in call.arrays() if array.dtype in WIDE]
    reference = None
    if low and a.dtype.kind in "fc":
        outcome = judge.run(_widened(call, judge))
        if outcome.kind == "ok" and (outcome.gradients is not None or part(outcome) is not None):
            reference = part(outcome)
    with np.errstate(all="ignore"):
        if reference is None or reference.values.shape != b.shape:
            kind = complex if np.iscomplexobj(b) else float
            bad = ~np.isclose(a.astype(kind), b.astype(kind), rtol=1e-6, equal_nan=True)
            if a.dtype.kind not in "fc":
                bad = a != b
            text, count = "", int(bad.sum())
        else:
            z = reference.values
            kind = np.complex128 if np.iscomplexobj(z) else np.float64
            held = z.astype(b.dtype).astype(kind)  # what the narrow type can hold

            def error(q: np.ndarray) -> np.ndarray:
                q = q.astype(kind)
                exact = (q == z) | (q == held) | (np.isnan(q) & np.isnan(z))
                return np.nan_to_num(np.where(exact, 0, np.abs(q - z)), nan=np.inf)

            size = np.where(np.isfinite(z), np.abs(z), 0)
            relative = TOLERANCE.get(y.dtype, (1e-5, 0))[0]
            bad = error(a) > 4 * error(b) + relative * (size + 0.1 * size.max(initial=0))
            if not bad.any():
                return None
            count = int(bad.sum())
            text = f", float64 {z.reshape(-1)[int(np.argmax(bad))]!r}"
    at = int(np.argmax(bad))
    ours, theirs = a.reshape(-1)[at], b.reshape(-1)[at]
    return f"at {at}: {ours!r} for {theirs!r}{text} ({count} of {a.size})"


def _widened(call: Call, judge: Library) -> Call:
    """Return the call in float64, on the numbers that the narrow type held."""
    wide = copy.deepcopy(call)
    for array in wide.arrays():
        dtype = WIDE.get(array.dtype)
        if dtype is None:
            continue
        layout = array.layout
        for values in (array.values, layout.memory if layout else None):
            if values is not None and array.dtype in STORED:
                values[...] = judge.numpy(judge.tensor(values, array.dtype))
        array.values, array.dtype = array.values.astype(dtype), dtype
        if layout is not None:
            layout.memory = layout.memory.astype(dtype)

    def constant(value: Any) -> Any:
        return Named(WIDE.get(value.name, value.name)) if isinstance(value, Named) else value

    wide.args, wide.kwargs = mapped(wide.args, constant), mapped(wide.kwargs, constant)
    wide.out_dtype = WIDE.get(call.out_dtype, call.out_dtype)
    return wide
