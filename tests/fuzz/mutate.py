"""Change a sample at random: types, sizes, values, layouts, arguments, aliases, form."""

from __future__ import annotations

import copy
import math
from random import Random
from typing import Any

import numpy as np

from .calls import (
    COMPLEX,
    FLOATS,
    INTS,
    STORED,
    Array,
    Call,
    Layout,
    Named,
    arrays_in,
    mapped,
    resized,
)
from .corpus import LARGEST, Corpus

SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 1e30, -1e30, 3.4e38, 0.5)
WHOLE = (
    *(0, 1, -1, 2, 3, -2, 5, 7, 64, 100, 2**31 - 1, 2**31, -(2**31), 2**40),
    *(2**62, 2**63 - 1, -(2**63)),
)
SIZES = (0, 0, 1, 1, 2, 3, 7, 17, 33, 70)
OUTS = (
    *("exact", "exact", "permuted", "stepped", "empty", "wrong", "input", "input"),
    *("overlap", "expanded", "dtype", "longer"),
)
OTHER_WORDS = ("bogus", "mean", "sum", "none", None, 3)


def sampled(corpus: Corpus, names: list[str], seed: int) -> Call:
    """Return the call of a seed: the same one for the same corpus and choice of operators."""
    rng = Random(seed)
    name = rng.choice(names)
    count = len(corpus.samples(name))
    call = corpus.call(name, rng.randrange(count))
    for _ in range(3):  # complex samples and huge ones less often
        kinds = {a.dtype for a in call.arrays()}
        size = sum(a.values.size for a in call.arrays())
        if size < LARGEST and (not kinds & set(COMPLEX) or rng.random() < 0.2):
            break
        call = corpus.call(name, rng.randrange(count))
    call.seed = seed
    change(call, rng)
    return call


def change(call: Call, rng: Random) -> None:
    """Change a call in place by a few random steps, each noted."""
    call.args, call.kwargs = copy.deepcopy((call.args, call.kwargs))
    chance = rng.random
    if call.arrays():
        if chance() < 0.35:
            change_types(call, rng)
        if chance() < 0.4:
            if chance() < 0.6:
                change_size(call, rng)
            else:
                change_shape(call, rng)
        if chance() < 0.25:
            change_values(call, rng)
        if chance() < 0.6:
            for array in call.arrays():
                if chance() < 0.7:
                    array.layout = laid_out(array.values, rng)
            call.notes.append("layout")
    if chance() < 0.25:
        change_argument(call, rng)
    if call.kwargs and chance() < 0.05:
        name = rng.choice(sorted(call.kwargs))
        del call.kwargs[name]
        call.notes.append(f"without {name}")
    if chance() < 0.03:
        name = rng.choice(["dim", "foo", "dtype", "keepdim", "input"])
        call.kwargs[name] = rng.choice([0, -1, True, Named("float64")])
        call.notes.append(f"with {name}")
    if len(call.args) > 1 and chance() < 0.02:
        call.args = call.args[:-1]
        call.notes.append("fewer")
    arrays = call.arrays()
    if len(arrays) > 1 and chance() < 0.06:
        i, j = sorted(rng.sample(range(len(arrays)), 2))
        one, two = arrays[i], arrays[j]
        if one.values.dtype == two.values.dtype and one.alias is None:
            two.alias, two.values, two.dtype, two.layout = i, one.values, one.dtype, one.layout
            call.notes.append("alias")
    call.form = rng.choices(["function", "method", "inplace", "out"], [5, 2, 2, 2])[0]
    if call.op.startswith("__"):  # an operator's method has one form
        call.form = "function"
    call.out, call.out_dtype = rng.choice(OUTS), rng.choice((*FLOATS, *INTS, "bool"))
    call.grad = chance() < 0.4
    for array in arrays:
        array.grad = call.grad and array.dtype in FLOATS + COMPLEX and chance() < 0.8


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values in another type, those out of range cut off."""
    with np.errstate(all="ignore"):
        if dtype in COMPLEX:
            turned = np.roll(values.reshape(-1), 1).reshape(values.shape)
            plain = values.dtype == bool or np.iscomplexobj(values)
            return (values if plain else values + 1j * turned).astype(dtype)
        if np.iscomplexobj(values):
            values = values.real
        if dtype in INTS and values.dtype.kind == "f":
            values = np.nan_to_num(values, posinf=9, neginf=-9).clip(-100, 100)
        return values.astype(STORED.get(dtype, dtype))


def change_types(call: Call, rng: Random) -> None:
    arrays = call.arrays()
    if rng.random() < 0.6:
        dtype = rng.choice([*FLOATS * 3, *INTS * 2, rng.choice(COMPLEX), "bool"])
        chosen = [a for a in arrays if a.dtype in FLOATS] or arrays
    else:
        dtype = rng.choice([*FLOATS, *INTS, *COMPLEX, "bool"])
        chosen = [rng.choice(arrays)]
    for array in chosen:
        array.values, array.dtype = cast(array.values, dtype), dtype
    call.notes.append(f"{'all' if len(chosen) > 1 else 'one'} {dtype}")


def change_size(call: Call, rng: Random) -> None:
    """Put one size for another wherever it occurs, half the time in integer arguments too."""
    sizes = sorted({size for a in call.arrays() for size in a.values.shape})
    if not sizes:
        return
    old, new, numbers = rng.choice(sizes), rng.choice(SIZES), rng.random() < 0.5

    def changed(value: Any) -> Any:
        if isinstance(value, Array):
            shape = tuple(new if size == old else size for size in value.values.shape)
            if math.prod(shape) < 3 * LARGEST:
                value.values = resized(value.values, shape)
        elif type(value) is int and value == old and numbers:
            return new
        return value

    call.args, call.kwargs = mapped(call.args, changed), mapped(call.kwargs, changed)
    call.notes.append(f"size {old} to {new}")


def change_shape(call: Call, rng: Random) -> None:
    """Change one tensor's number of dimensions or sizes."""
    array = rng.choice(call.arrays())
    values = array.values
    how = rng.choice(["drop", "add", "resize", "scalar", "ones"])
    if how == "drop" and values.ndim:
        values = values[0] if len(values) else resized(values, values.shape[1:])
    elif how == "add":
        values = values[None] if rng.random() < 0.5 else values[..., None]
    elif how == "resize":
        sizes = (rng.choice([0, 1, 2, 3, 5]) if rng.random() < 0.5 else d for d in values.shape)
        values = resized(values, tuple(sizes))
    elif how == "scalar":
        values = resized(values, (1,))[0]
    elif how == "ones":
        values = resized(values, (1,) * rng.choice([1, 2, 5]))
    array.values = np.array(values, dtype=array.values.dtype)
    call.notes.append(f"shape: {how}")


def change_values(call: Call, rng: Random) -> None:
    """Put special numbers into one tensor."""
    array = rng.choice(call.arrays())
    flat = np.array(array.values).reshape(-1)
    if not flat.size:
        return
    with np.errstate(all="ignore"):
        for _ in range(rng.choice([1, 2, min(flat.size, 200)])):
            at = rng.randrange(flat.size)
            if flat.dtype.kind in "fc":
                flat[at] = rng.choice(SPECIAL)
            elif flat.dtype.kind in "iu":
                limits = np.iinfo(flat.dtype)
                flat[at] = rng.choice([0, limits.max, limits.min, 1, 2, 50])
            else:
                flat[at] = rng.random() < 0.5
    array.values = flat.reshape(array.values.shape)
    call.notes.append("values")


def laid_out(values: np.ndarray, rng: Random) -> Layout:
    """Return memory that holds the values permuted, with gaps, behind an offset or overlapping."""
    shape, dims = values.shape, values.ndim
    ways = ["plain", "offset"]
    if dims:
        ways = ["plain", "permuted", "permuted", "stepped", "stepped", "offset", "expanded"]
        ways.append("overlap")
    way = rng.choice(ways)
    order = list(range(dims))
    if way == "permuted":
        rng.shuffle(order)
    strides, reach = [0] * dims, 1
    for dim in reversed(order):
        step = rng.choice([1, 2, 3]) if way == "stepped" else 1
        strides[dim] = reach * step
        reach *= max(shape[dim], 1) * step
    if way == "expanded":
        strides = [s if rng.random() < 0.5 else 0 for s in strides]
    if way == "overlap":
        strides = [rng.choice([0, 1, 2]) for _ in shape]
    offset = rng.choice([0, 1, 3]) if way in ("offset", "stepped") else 0
    last = sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0
    memory = np.zeros(offset + 1 + last + rng.choice([0, 0, 5]), values.dtype)
    if values.size:
        steps = [s * values.itemsize for s in strides]
        np.lib.stride_tricks.as_strided(memory[offset:], shape, steps)[...] = values
    return Layout(memory, tuple(strides), offset)


def change_argument(call: Call, rng: Random) -> None:
    """Put another number, word or constant in the place of one."""
    places: list[tuple[list[Any], Any]] = []

    def collect(value: Any, path: list[Any]) -> None:
        if isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                collect(item, [*path, i])
        elif isinstance(value, dict):
            for key, item in value.items():
                collect(item, [*path, key])
        elif not isinstance(value, (Array, np.ndarray)):
            places.append((path, value))

    collect((call.args, call.kwargs), [])
    if not places:
        return
    path, old = rng.choice(places)
    new = _another(old, rng)

    def put(value: Any, path: list[Any]) -> Any:
        if not path:
            return new
        if isinstance(value, dict):
            return {k: put(v, path[1:]) if k == path[0] else v for k, v in value.items()}
        items = (put(v, path[1:]) if i == path[0] else v for i, v in enumerate(value))
        return type(value)(items)

    call.args, call.kwargs = put((call.args, call.kwargs), path)
    call.notes.append(f"{old!r} to {new!r}")


def _another(old: Any, rng: Random) -> Any:
    if isinstance(old, bool):
        return rng.choice([not old, None, 2, "x"])
    if isinstance(old, int):
        return rng.choice([*WHOLE, old + 1, old - 1, -old, float(old), None, True])
    if isinstance(old, float):
        whole = int(old) if math.isfinite(old) else 0
        return rng.choice([*SPECIAL, old + 1, whole, None])
    if isinstance(old, str):
        return rng.choice([*OTHER_WORDS, old + "x"])
    if isinstance(old, Named):
        return Named(rng.choice([*FLOATS, *INTS, *COMPLEX, "bool"]))
    return rng.choice([0, 1, -1, True, 1.5, 100]) if old is None else None


def contiguous(call: Call) -> Call:
    """Return the same call on plain memory: what overlaps or repeats keeps its values."""
    same = copy.deepcopy(call)
    for array in arrays_in((same.args, same.kwargs)):
        if array.layout is not None:
            array.values = seen(array)
            array.layout = None
    return same


def seen(array: Array) -> np.ndarray:
    """Return the values that a tensor shows: writes to overlapping memory replace one another."""
    if array.layout is None:
        return array.values
    lay, shape = array.layout, array.values.shape
    if not array.values.size:
        return array.values
    steps = [s * lay.memory.itemsize for s in lay.strides]
    return np.lib.stride_tricks.as_strided(lay.memory[lay.offset :], shape, steps).copy()
