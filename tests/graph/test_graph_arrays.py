"""Recorded calls on memory of NumPy's that several tensors have."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch


def there(a: Any, b: Any) -> Any:
    """Write through one that was there, read through the other."""
    return lambda: (a.add_(1), b * 2)[1]


def given(a: Any, b: Any) -> Any:
    """Write to an argument, read through what was there."""
    step = torch.graph(lambda x: (x.add_(1), b * 2)[1])
    return lambda: step(a)


@pytest.mark.parametrize("way", [lambda a, b: torch.graph(there(a, b)), given])
def test_write_through_one_tensor_is_seen_through_the_other(way: Callable[..., Any]) -> None:
    array = np.zeros(3, np.float32)
    call = way(torch.from_numpy(array), torch.from_numpy(array[1:]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = [call().tolist() for _ in range(6)]
    assert found == [[2.0 * i] * 2 for i in range(1, 7)]
    assert array.tolist() == [6.0] * 3


def test_two_tensors_over_an_array_made_anew_are_not_recorded_apart() -> None:
    def step() -> Any:
        array = np.zeros(2, np.float32)
        a, b = torch.from_numpy(array), torch.from_numpy(array)
        a.add_(1)
        return b * 2

    call = torch.graph(step)
    with pytest.warns(UserWarning, match="two tensors have, each as its own"):
        found = [call().tolist() for _ in range(6)]
    assert found == [[2.0, 2.0]] * 6 and not call.programs


def test_program_of_two_arrays_is_not_run_on_one() -> None:
    call = torch.graph(lambda a, b: (a.add_(1), b * 2)[1])
    one, other = np.zeros(2, np.float32), np.zeros(2, np.float32)
    for _ in range(4):
        assert call(torch.from_numpy(one), torch.from_numpy(other)).tolist() == [0.0, 0.0]
    (program,) = call.programs
    both = [torch.from_numpy(one), torch.from_numpy(one)]
    assert "memory" in program.misfit(both)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert [call(*both).tolist() for _ in range(3)] == [[2.0 * i] * 2 for i in (5, 6, 7)]
    # What writes nothing may read one array twice.
    total = torch.graph(lambda a, b: a + b, fullgraph=True)
    assert [total(*both).tolist() for _ in range(4)] == [[14.0, 14.0]] * 4
    assert len(total.programs) == 1
