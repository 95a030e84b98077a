"""Helpers for tests: `assert_close` and `make_tensor`."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _C
from .._serialization.sparse import sparse_parts
from .._tensor.limits import finfo, iinfo

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

Message = str | Callable[[str], str] | None

# (rtol, atol) of each dtype; the others must be equal.
_TOLERANCES: dict[Any, tuple[float, float]] = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex32: (1e-3, 1e-5),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}
_PYTHON_DTYPES = {int: _C.int64, float: _C.float64, complex: _C.complex128}


class _Mismatch(Exception):
    """A difference: its text, the class of the error, and the index of the item."""

    def __init__(self, kind: type[Exception], text: str, path: tuple[Any, ...]) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.path = path

    def error(self, msg: Message) -> Exception:
        """Return the error that the user sees."""
        if isinstance(msg, str):
            return self.kind(msg)
        text = self.text
        if self.path:
            where = "".join(f"[{key!r}]" for key in self.path)
            text += f"\n\nThe failure occurred for item {where}"
        return self.kind(msg(text) if callable(msg) else text)


class _Check:
    """One call of `assert_close`: its options, applied to each pair of items."""

    def __init__(self, **options: Any) -> None:
        self.rtol: float | None = options["rtol"]
        self.atol: float | None = options["atol"]
        self.options = options

    def tolerances(self, dtypes: Sequence[Any], path: tuple[Any, ...]) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        if self.rtol is not None or self.atol is not None:
            raise _Mismatch(
                ValueError,
                "Both 'rtol' and 'atol' must be either specified or omitted, "
                f"but got no {'rtol' if self.rtol is None else 'atol'}.",
                path,
            )
        pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(r for r, _ in pairs), max(a for _, a in pairs)

    def compare(self, actual: Any, expected: Any) -> None:
        """Raise _Mismatch unless the two agree; the structure is compared before any value."""
        for pair in list(self.pairs(actual, expected, ())):
            self.single(*pair)

    def pairs(
        self, actual: Any, expected: Any, path: tuple[Any, ...]
    ) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
        """Give the items of nested sequences and mappings in pairs, with their place."""
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                raise _Mismatch(
                    AssertionError,
                    f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                    path,
                )
            for index, (a, e) in enumerate(zip(actual, expected, strict=True)):
                yield from self.pairs(a, e, (*path, index))
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            missing = set(expected) - set(actual)
            surplus = set(actual) - set(expected)
            if missing or surplus:
                raise _Mismatch(
                    AssertionError,
                    "The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                    f"Additional keys in the actual mapping: {sorted(surplus, key=str)}",
                    path,
                )
            # Sorted, so that the same failure comes first in every run.
            for key in sorted(actual, key=str):
                yield from self.pairs(actual[key], expected[key], (*path, key))
        else:
            yield actual, expected, path

    def single(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        if actual is None or expected is None:
            if actual is not expected:
                raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", path)
        elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
            if bool(actual) is not bool(expected):
                text = f"Booleans mismatch: {bool(actual)} is not {bool(expected)}"
                raise _Mismatch(AssertionError, text, path)
        elif _is_number(actual) and _is_number(expected):
            self.numbers(_python(actual), _python(expected), path)
        else:
            self.tensors(*self.as_tensors(actual, expected, path), path)

    def as_tensors(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> tuple[Any, Any]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        exact = self.options["allow_subclasses"] or type(actual) is type(expected)
        try:
            if not (related and exact):
                raise TypeError
            a, b = (x if isinstance(x, _C.Tensor) else _C.as_tensor(x) for x in (actual, expected))
            return a, b
        except (TypeError, ValueError, RuntimeError):
            raise _Mismatch(
                TypeError,
                "No comparison pair was able to handle inputs of type "
                f"{type(actual)} and {type(expected)}.",
                path,
            ) from None

    def numbers(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        dtypes = [_PYTHON_DTYPES[type(x)] for x in (actual, expected)]
        rtol, atol = self.tolerances(dtypes, path)
        if self.options["check_dtype"] and type(actual) is not type(expected):
            raise _Mismatch(
                AssertionError,
                f"The (d)types do not match: {type(actual)} != {type(expected)}.",
                path,
            )
        if actual == expected:
            return
        if self.options["equal_nan"] and cmath.isnan(actual) and cmath.isnan(expected):
            return
        difference = abs(actual - expected)
        if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
            return
        raise _Mismatch(AssertionError, _scalar_text(actual, expected, rtol, atol), path)

    def tensors(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        rtol, atol = self.tolerances([actual.dtype, expected.dtype], path)
        self.attributes(actual, expected, path)
        actual, expected = actual.detach(), expected.detach()
        if "meta" in (actual.device.type, expected.device.type):
            return
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            dtype = _C.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(dtype), expected.to(dtype)
        if actual.layout != expected.layout:
            actual, expected = actual.to_dense(), expected.to_dense()
        if actual._is_any_sparse:
            self.sparse(actual, expected, rtol, atol, path)
        else:
            self.elements("Tensor-likes", actual, expected, rtol, atol, path)

    def sparse(self, actual: Any, expected: Any, rtol: float, atol: float, path: Any) -> None:
        """Compare what two sparse tensors of one layout are made of."""
        kind = str(actual.layout).rpartition("_")[2].upper()
        counts = actual._nnz(), expected._nnz()
        if counts[0] != counts[1]:
            raise _Mismatch(
                AssertionError,
                f"The number of specified values in sparse {kind} tensors does not match: "
                f"{counts[0]} != {counts[1]}",
                path,
            )
        names, parts = sparse_parts(actual)
        for name, a, e in zip(names, parts, sparse_parts(expected)[1], strict=True):
            exact = name != "values"
            bounds = (0.0, 0.0) if exact else (rtol, atol)
            if exact and a.dtype != e.dtype:
                a, e = a.long(), e.long()
            self.elements(f"Sparse {kind} {name}", a, e, *bounds, path)

    def elements(
        self, what: str, actual: Any, expected: Any, rtol: float, atol: float, path: Any
    ) -> None:
        """Compare the elements of dense tensors of one dtype, which errors call `what`."""
        if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:
            actual, expected = actual.float(), expected.float()
        matches = _C.isclose(
            actual, expected, rtol=rtol, atol=atol, equal_nan=self.options["equal_nan"]
        )
        if bool(matches.all()):
            return
        if actual.dim() == 0:
            text = _scalar_text(actual.item(), expected.item(), rtol, atol)
        else:
            text = _tensor_text(what, actual, expected, matches, rtol, atol)
        raise _Mismatch(AssertionError, text, path)

    def attributes(self, actual: Any, expected: Any, path: tuple[Any, ...]) -> None:
        options = self.options
        pairs = [("shape", actual.shape, expected.shape)]
        if options["check_layout"]:
            pairs.append(("layout", actual.layout, expected.layout))
        if options["check_stride"]:
            pairs.append(("stride()", actual.stride(), expected.stride()))
        if options["check_device"]:
            pairs.append(("device", actual.device, expected.device))
        if options["check_dtype"]:
            pairs.append(("dtype", actual.dtype, expected.dtype))
        for name, a, e in pairs:
            if a != e:
                raise _Mismatch(
                    AssertionError,
                    f"The values for attribute '{name}' do not match: {a} != {e}.",
                    path,
                )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _differences(absolute: str, relative: str, rtol: float, atol: float) -> str:
    exact = rtol == 0 and atol == 0
    allowed = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return f"{absolute}{allowed[0]}\n{relative}{allowed[1]}"


def _head(what: str, rtol: float, atol: float) -> str:
    return f"{what} are not {'equal' if rtol == 0 and atol == 0 else 'close'}!\n\n"


def _scalar_text(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    absolute = abs(actual - expected)
    relative = math.inf if expected == 0 else absolute / abs(expected)
    return (
        _head("Scalars", rtol, atol)
        + f"Expected {expected} but got {actual}.\n"
        + _differences(
            f"Absolute difference: {absolute}", f"Relative difference: {relative}", rtol, atol
        )
    )


def _tensor_text(
    what: str, actual: Any, expected: Any, matches: Any, rtol: float, atol: float
) -> str:
    total = matches.numel()
    wrong = total - int(matches.sum())
    flat = matches.flatten()
    a, e = actual.flatten(), expected.flatten()
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        # Narrow integers would overflow, and bool has no subtraction.
        a, e = a.to(_C.int64), e.to(_C.int64)
    absolute = (a - e).abs()
    absolute[flat] = 0
    relative = absolute / e.abs()
    relative[flat] = 0

    def greatest(kind: str, values: Any) -> str:
        value, position = values.max(0)
        index = np.unravel_index(int(position), tuple(matches.shape))
        where = tuple(int(i) for i in index)
        return f"Greatest {kind} difference: {value.item()} at index {where}"

    return (
        _head(what, rtol, atol)
        + f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        + _differences(greatest("absolute", absolute), greatest("relative", relative), rtol, atol)
    )


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected|.

    Parameters
    ----------
    actual, expected : Any
        Tensors, numbers, NumPy arrays, None, or sequences and mappings of them.
    allow_subclasses : bool, default True
        Compare tensors of related classes; otherwise the classes must be the same.
    rtol, atol : float, optional
        Both or neither; by default they follow from the dtypes.
    equal_nan : bool, default False
        Two NaN are equal.
    check_device, check_dtype, check_layout, check_stride : bool
        What else must be the same; the shape must always be.
    msg : str or callable, optional
        The text of the error, or a function of the text made here.

    Raises
    ------
    AssertionError
        The values or what was to be checked differ; the text says how many elements and where.
    ValueError
        Only one of `rtol` and `atol` was given.
    TypeError
        The inputs cannot be compared.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.testing.assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    """
    check = _Check(
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    # Raised outside the handler, so that the user sees one error and not two.
    error = None
    try:
        check.compare(actual, expected)
    except _Mismatch as mismatch:
        error = mismatch.error(msg)
    if error is not None:
        raise error


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare like `assert_close`, without its checks of dtype and device (old name).

    Parameters
    ----------
    actual, expected : Tensor, array, number or containers of them
        What is compared.
    rtol, atol : float, optional
        Both or none; by default they follow from the dtypes.
    equal_nan : bool, default True
        Whether NaN are equal.
    msg : str, optional
        What the error says.

    Raises
    ------
    AssertionError
        They are not close.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.testing.assert_allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]))
    """
    warnings.warn("assert_allclose is deprecated, use assert_close", FutureWarning, stacklevel=2)
    actual, expected = (x if isinstance(x, _C.Tensor) else _C.tensor(x) for x in (actual, expected))
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        msg=msg or None,
    )


def _bounds(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the interval, within what the dtype can hold."""
    floating = dtype.is_floating_point or dtype.is_complex
    least: Any
    most: Any
    if dtype is _C.bool:
        least, most, defaults = 0, 2, (0, 2)
    elif floating:
        info = finfo(dtype)
        least, most, defaults = info.min, info.max, (-9, 9)
    else:
        limits = iinfo(dtype)
        # randint excludes its upper end, and the end of int64 has no successor.
        least, most = limits.min, limits.max + (dtype is not _C.int64)
        defaults = (-9, 10)
    a = defaults[0] if low is None else low
    b = defaults[1] if high is None else high
    if math.isnan(a) or math.isnan(b):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={a} and high={b}")
    if a == b and floating:
        warnings.warn(
            "Passing `low==high` to `make_tensor` for floating or complex types is deprecated. "
            "Use `full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif a >= b:
        raise ValueError(f"`low` must be less than `high`, but got {a} >= {b}")
    elif b < least or a >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{a}, {b}), "
            f"but {dtype} only supports [{least}, {most})"
        )
    a, b = min(max(a, least), most), min(max(b, least), most)
    return (a, b) if floating else (math.ceil(a), math.ceil(b))


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """Return a tensor of uniform random values in [low, high).

    Parameters
    ----------
    *shape : int or one sequence of int
        Sizes.
    dtype : dtype
        Any dtype; bounds follow from it where they are not given: [-9, 9) for floating and
        complex, [-9, 10) for integers, [0, 2) for bool.
    device : str or device, default "cpu"
        Where it lives.
    low, high : float, optional
        Bounds, brought within what the dtype can hold.
    requires_grad : bool, default False
        Record operations on it; floating and complex only.
    noncontiguous : bool, default False
        Every other element of a larger tensor, from the second on.
    exclude_zero : bool, default False
        Replace zeros by 1, or by the smallest normal number.
    memory_format : optional
        Layout of the result; not together with `noncontiguous`.

    Returns
    -------
    Tensor
        Of that shape and dtype.

    Raises
    ------
    ValueError
        Bounds are reversed, not finite or beyond the dtype, or options contradict each other.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.int8, low=1, high=3).shape
    torch.Size([2, 3])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got dtype={dtype}"
        )
    spread = noncontiguous and math.prod(shape) > 1
    if spread:
        shape = (*shape[:-1], 2 * shape[-1])
    a, b = _bounds(dtype, low, high)
    if floating:
        result = _C.empty(shape, dtype=dtype, device=device)
        values = _C.view_as_real(result) if dtype.is_complex else result
        if b - a >= finfo(dtype).max:
            # The width of the interval itself would overflow.
            values.uniform_(a / 2, b / 2).mul_(2)
        else:
            values.uniform_(a, b)
    else:
        result = _C.randint(int(a), int(b), shape, dtype=dtype, device=device)
    if spread:
        # From the second element on, so that the offset is not zero either.
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if floating else 1
    if floating:
        result.requires_grad_(requires_grad)
    return result
