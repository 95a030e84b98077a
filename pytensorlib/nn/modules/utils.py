"""Tuples of sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def ntuple(value: Any, n: int) -> tuple:
    """``value`` as a tuple, a single number repeated ``n`` times."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the keys of a state, in place; keys without it stay as they are.

    Parameters
    ----------
    state_dict : dict
        As of `Module.state_dict`.
    prefix : str
        Such as ``"module."``, which wrappers put before all names.

    Examples
    --------
    >>> from pytensorlib.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.a": 1, "b": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'b': 2, 'a': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    versions = getattr(state_dict, "_metadata", {})
    for key in list(versions):
        if key == prefix.rstrip(".") or key.startswith(prefix):
            versions[key[len(prefix) :]] = versions.pop(key)


def _single(value: Any) -> tuple:
    return ntuple(value, 1)


def _pair(value: Any) -> tuple:
    return ntuple(value, 2)


def _triple(value: Any) -> tuple:
    return ntuple(value, 3)


def _quadruple(value: Any) -> tuple:
    return ntuple(value, 4)
