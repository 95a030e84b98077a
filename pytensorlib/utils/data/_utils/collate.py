"""Collates samples to a batch."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytensorlib as pt

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
]


# The kinds of elements of arrays that are no numbers.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def _is_of_numpy(x: Any, *names: str) -> bool:
    """Say whether `x` is of one of NumPy's types; what has not loaded NumPy has none."""
    np = sys.modules.get("numpy")
    return np is not None and isinstance(x, tuple(getattr(np, name) for name in names))


def _is_number_array(x: Any) -> bool:
    return _is_of_numpy(x, "ndarray", "generic") and x.dtype.kind not in "SUOaV"


def default_convert(data: Any) -> Any:
    """Return `data` with its NumPy arrays, however deep, as tensors; the rest as it is.

    Parameters
    ----------
    data : object
        Arrays, numbers, or containers of them.

    Returns
    -------
    object
        The same containers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import numpy as np
    >>> from pytensorlib.utils.data import default_convert
    >>> default_convert({"a": np.array([1, 2]), "b": "text"})
    {'a': tensor([1, 2]), 'b': 'text'}
    """
    if isinstance(data, pt.Tensor):
        return data
    if _is_number_array(data):
        return pt.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(v) for v in data])
    return data


def default_collate(batch: Any) -> Any:
    """Return a batch: tensors, arrays and numbers stacked, containers element by element.

    Parameters
    ----------
    batch : list
        Samples of one kind: tensors, NumPy arrays, numbers, strings, or mappings, tuples and
        lists of them.

    Returns
    -------
    Tensor or container
        A new first dimension counts the samples; strings are not joined.

    Raises
    ------
    TypeError
        If a sample is of another kind.
    RuntimeError
        If tensors, or lists, differ in size.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.data import default_collate
    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Return a batch whose leaves are made by the functions of a table.

    A sample's own type is looked up first, then the types that it is an instance of, in the
    order of the table. What has no function is taken apart, if it is a mapping, tuple or list.

    Parameters
    ----------
    batch : list
        Samples of one kind.
    collate_fn_map : dict, optional
        From a type, or a tuple of types, to a function that is called with the samples and,
        by name, the table. `default_collate_fn_map` is the one of `default_collate`; what is
        added to that is known to every loader. NumPy's types need no entry.

    Returns
    -------
    object
        What the functions return, in containers like those of the samples.

    Raises
    ------
    TypeError
        If a sample is of a type that has no function and is no container.
    RuntimeError
        If lists differ in length.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.data._utils.collate import collate, default_collate_fn_map
    >>> table = {**default_collate_fn_map, str: lambda batch, *, collate_fn_map: "".join(batch)}
    >>> collate([(1, "a"), (2, "b")], collate_fn_map=table)
    [tensor([1, 2]), 'ab']
    """
    first = batch[0]
    function = _function_of(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def inner(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {k: inner([d[k] for d in batch]) for k in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(inner(column) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [inner(column) for column in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _like_sequence(first, parts)
    raise TypeError(_refusal(type(first)))


def _function_of(first: Any, table: dict[Any, Any]) -> Any:
    """Return the function for a sample, or None; NumPy's types may be missing in the table."""
    if (exact := table.get(type(first))) is not None:
        return exact
    for types, function in table.items():
        if isinstance(first, types):
            return function
    if _is_of_numpy(first, "ndarray"):
        return collate_numpy_array_fn
    return collate_numpy_scalar_fn if _is_of_numpy(first, "number", "bool_") else None


def collate_tensor_fn(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Stack tensors."""
    return pt.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Stack arrays as tensors."""
    if batch[0].dtype.kind in "SUOaV":
        raise TypeError(_refusal(batch[0].dtype))
    return pt.stack([pt.as_tensor(x) for x in batch], 0)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Return a tensor of NumPy's numbers, of their type."""
    import numpy as np

    return pt.as_tensor(np.stack(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Return a tensor of Python's floats, in float64."""
    return pt.tensor(batch, dtype=pt.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Return a tensor of integers, or of bools."""
    return pt.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    """Return texts as they are."""
    return batch


default_collate_fn_map: dict[Any, Any] = {
    pt.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _refusal(found: Any) -> str:
    return (
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {found}"
    )


def _like_mapping(model: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """Return `items` as a mapping of the kind of `model`, where that can be made."""
    if type(model) is dict:
        return items
    try:
        return type(model)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def _like_sequence(model: Sequence[Any], items: list[Any]) -> Any:
    if type(model) is list:
        return items
    try:
        return type(model)(items)  # type: ignore[call-arg]
    except TypeError:
        return items
