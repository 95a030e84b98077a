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


def _ntuple(n: int, name: str = "parse") -> Any:
    """Return a function that makes a tuple of `n` of a number."""

    def parse(value: Any) -> tuple:
        return ntuple(value, n)

    parse.__name__ = name
    return parse


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """Return the values from the last to the first, each `n` times: padding as `pad` takes it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: list, defaults: list) -> list:
    """Return sizes, with those of `defaults` for None."""
    if isinstance(out_size, (int, float)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [
        d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=True)
    ]
