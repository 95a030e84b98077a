"""Lists of tensors, grouped for functions of lists."""

from __future__ import annotations

from typing import Any

from .. import _gpu

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the devices that functions of lists run on."""
    return ["cpu", _gpu.name()]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the devices that fused optimizers run on."""
    return ["cpu", _gpu.name()]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Return lists as long as each other cut by the device and type of the first's tensors."""
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for index, column in enumerate(zip(*tensorlistlist, strict=True)):
        first = column[0]
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for values, value in zip(lists, column, strict=True):
            values.append(value)
        if with_indices:
            indices.append(index)
    return groups
