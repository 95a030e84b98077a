"""What holds of every call, whatever it computes: no other library is needed to see it broken.

PANIC, WRITE (memory that the call does not own), FORM (function, method, in place and `out=`
disagree), LAYOUT (plain memory gives another result), THREADS (two threads give other bits than
one), MEMORY (the result depends on what freed memory held), META (without memory the results are of
other shapes, strides or types).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

import numpy as np

from .calls import Array, Call
from .compare import UNSEEDED, Finding, close
from .libraries import Library, OnMeta, Outcome, Seen
from .mutate import contiguous

ERRORS = (
    *(RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AttributeError),
    *(OverflowError, ZeroDivisionError, KeyError, AssertionError, MemoryError, BufferError),
)
# Their meaning depends on strides, or they draw numbers in the order of memory.
BY_LAYOUT = re.compile(
    r"as_strided|stride|^(torch\.)?(view|resize|is_contiguous|contiguous|empty|.*_like$|bernoulli"
    r"|multinomial|normal|rand|uniform|exponential|cauchy|geometric|log_normal|random_|ravel)"
    r"|dropout|rrelu|set_|unsafe_|data_ptr|storage|to_sparse|gumbel|pca_lowrank|svd_lowrank|new_"
)
# Results that are right in several ways: which of equal elements, which sign or basis.
SEVERAL = re.compile(r"svd|eig|qr|ormqr|householder|lstsq|sort|topk|median|mode|kthvalue|lu|pinv")
WRITERS = re.compile(r"_$|batch_norm|instance_norm|set_|resize|embedding|__i|_fused")
# The method means something else, or takes no view.
OTHER_FORMS = re.compile(r"^(normal|bernoulli|real|imag|detach)")
WIDEST = 1e6  # beyond, the order of a sum decides about its result
THREADED = 4096  # elements from which a call may be shared among threads


def broken(call: Call, library: Library) -> Iterator[Finding]:
    """Yield the laws that a call breaks."""
    call = copy.deepcopy(call)
    first = library.run(call, pattern=7e77)
    if first.error is not None and not isinstance(first.error, ERRORS):
        yield Finding("PANIC", first.text())
        return
    if "panic" in str(first.error):
        yield Finding("PANIC", first.text())
        return
    yield from writes(call, first)
    if UNSEEDED.match(call.op) or first.kind == "missing" or "empty" in call.path:
        return
    again = library.run(call, pattern=-1.5e-5)
    yield from unequal("MEMORY", "run again on other freed memory", first, again)
    yield from without_memory(call, library, first)
    if first.kind != "ok":
        return
    if sum(a.values.size for a in call.arrays()) >= THREADED:
        yield from threads(call, library, first)
    if call.form == "function":
        yield from forms(call, library, first)
    one = len(first.results) == 1  # several would lie in the same memory
    if call.form == "out" and call.out in ("input", "overlap") and one and not call.grad:
        plain = copy.deepcopy(call)
        plain.out = "exact"
        yield from unequal("FORM", f"out={call.out}", library.run(plain), first)
    if any(a.layout for a in call.arrays()) and not BY_LAYOUT.search(call.op):
        yield from layouts(call, library, first)


def unequal(category: str, what: str, one: Outcome, two: Outcome) -> Iterator[Finding]:
    """Yield a finding unless two outcomes are the same, bit for bit."""
    if one.kind != two.kind:
        yield Finding(
            category, f"{what}: {two.kind} for {one.kind}: {(two if two.error else one).text()}"
        )
        return
    pairs = list(zip(one.results, two.results))
    pairs += list(zip(one.gradients or (), two.gradients or ()))
    for i, (x, y) in enumerate(pairs):
        if isinstance(x, Seen) and isinstance(y, Seen):
            same = x.dtype == y.dtype and same_bits(x.values, y.values)
        else:
            same = x == y or (x != x and y != y)
        if not same:
            yield Finding(category, f"{what}: [{i}] {_few(y)} for {_few(x)}")
            return


def without_memory(call: Call, library: Library, first: Outcome) -> Iterator[Finding]:
    """Run the call on meta: it may say that it needs data, or not see what is wrong with them."""
    plain = copy.deepcopy(call)
    plain.grad = False
    for array in plain.arrays():
        array.grad = False
    if call.grad:
        first = library.run(plain)
    got = OnMeta(library).run(plain)
    if got.error is not None:
        known = isinstance(got.error, ERRORS) and "panic" not in str(got.error)
        if not known or (first.kind == "ok" and "meta" not in str(got.error)):
            yield Finding("META", f"on meta: {got.text()} for {first.kind}")
        return
    for i, (x, y) in enumerate(zip(first.results, got.results)):
        if isinstance(x, Seen) and isinstance(y, Seen):
            told, want = ((s.dtype, s.shape, s.strides) for s in (y, x))
            if told != want:
                yield Finding("META", f"on meta: [{i}] {told} for {want}")


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Say whether two arrays agree in shape and in every bit but those of a NaN."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


def _few(value: object) -> str:
    if isinstance(value, Seen):
        return f"{value.dtype}{value.shape} {value.values.reshape(-1)[:6].tolist()}"
    return repr(value)[:80]


def writes(call: Call, outcome: Outcome) -> Iterator[Finding]:
    """Yield a finding for each argument that was written though it is not the result."""
    if call.form == "out" and call.out in ("input", "overlap"):
        return
    if call.form != "inplace" and (WRITERS.search(call.op) or call.kwargs.get("inplace")):
        return
    arrays = [a for a in call.arrays() if a.alias is None]
    for i, (before, after) in enumerate(zip(outcome.before, outcome.memory)):
        mine = call.form == "inplace" and i == 0
        spared = outside(arrays[i]) if mine else np.ones(before.size, bool)
        # `resize_` and `as_strided_` show another part of the memory afterwards.
        if not before.size or before.shape != after.shape:
            continue
        old, new = (m.reshape(-1).view(np.uint8).reshape(m.size, -1) for m in (before, after))
        wrong = (old != new).any(axis=1) & spared
        if wrong.any():
            yield Finding("WRITE", f"argument {i} at {int(np.argmax(wrong))}")


def outside(array: Array) -> np.ndarray:
    """Return which elements of the memory under a view are not its own."""
    if array.layout is None:
        return np.zeros(array.values.size, bool)
    free = np.ones(array.layout.memory.size, bool)
    if array.values.size:
        view = np.lib.stride_tricks.as_strided(
            free[array.layout.offset :], array.values.shape, array.layout.strides
        )
        view[...] = False
    return free


def threads(call: Call, library: Library, first: Outcome) -> Iterator[Finding]:
    """Run with one thread and with two."""
    m = library.module
    before = m.get_num_threads()
    try:
        for count in (1, 2):
            m.set_num_threads(count)
            yield from unequal("THREADS", f"{count} threads", first, library.run(call))
    finally:
        m.set_num_threads(before)


def forms(call: Call, library: Library, first: Outcome) -> Iterator[Finding]:
    """Run the call as a method, in place and with `out=`: each must give the function's result."""
    if not call.args or not isinstance(call.args[0], Array) or OTHER_FORMS.search(call.op):
        return
    x = call.args[0]
    plain = copy.deepcopy(call)
    plain.grad = False
    for array in plain.arrays():
        array.grad = False
    want = library.run(plain) if call.grad else first
    result = want.results[0] if len(want.results) == 1 else None
    for form in ("method", "inplace", "out"):
        plain.form, plain.out = form, "exact"
        if form == "inplace":
            fits = isinstance(result, Seen) and (result.shape, result.dtype) == (
                x.values.shape,
                x.dtype,
            )
            apart = x.layout is None or (0 not in x.layout.strides and not overlaps(x))
            if not fits or not apart or any(a.alias == 0 for a in plain.arrays()):
                continue
        got = library.run(plain)
        none_such = ("keyword argument", "missing 1 required positional")
        if got.kind == "missing" or any(text in str(got.error) for text in none_such):
            continue
        yield from unequal("FORM", form, want, got)


def overlaps(array: Array) -> bool:
    """Say whether two elements of a view lie in one place."""
    return int((~outside(array)).sum()) < array.values.size


def layouts(call: Call, library: Library, first: Outcome) -> Iterator[Finding]:
    """Run the call on plain memory: results may differ by rounding only."""
    if call.form in ("inplace", "out") and any(overlaps(a) for a in call.arrays()):
        return
    for array in call.arrays():
        values = array.values
        if values.dtype.kind in "fc" and values.size:
            with np.errstate(all="ignore"):
                if not np.abs(values).max() < WIDEST:
                    return
    other = library.run(contiguous(call))
    if first.kind != other.kind:
        yield Finding("LAYOUT", f"{other.kind} for {first.kind}: {other.text()}")
        return
    several = SEVERAL.search(call.op) is not None
    for i, (x, y) in enumerate(zip(first.results, other.results)):
        if not isinstance(x, Seen) or not isinstance(y, Seen):
            continue
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            yield Finding("LAYOUT", f"[{i}] {x.dtype}{x.shape} for {y.dtype}{y.shape}")
        elif not several and not close(x.values, y.values, x.dtype):
            yield Finding("LAYOUT", f"[{i}] {_few(x)} for {_few(y)}")
