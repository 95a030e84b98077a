"""Making a batch of samples."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytensorlib as pt

__all__ = ["default_collate", "default_convert"]


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
    first = batch[0]
    if isinstance(first, pt.Tensor):
        return pt.stack(list(batch), 0)
    if _is_of_numpy(first, "ndarray"):
        if first.dtype.kind in "SUOaV":
            raise TypeError(_refusal(first.dtype))
        return pt.stack([pt.as_tensor(x) for x in batch], 0)
    if _is_of_numpy(first, "number", "bool_"):
        import numpy as np

        return pt.as_tensor(np.stack(batch))
    if isinstance(first, bool):
        return pt.tensor(batch)
    if isinstance(first, float):
        return pt.tensor(batch, dtype=pt.float64)
    if isinstance(first, int):
        return pt.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like_mapping(first, {k: default_collate([d[k] for d in batch]) for k in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        columns = zip(*batch, strict=True)
        return type(first)(*(default_collate(column) for column in columns))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(column) for column in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _like_sequence(first, parts)
    raise TypeError(_refusal(type(first)))


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
