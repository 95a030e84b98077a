"""`torch._utils`: errors of other threads, and lists of tensors as one."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import _utils


class Message(Exception):
    """An error that takes more than a text."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(a, b)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("no"), ValueError), (KeyError("k"), KeyError), (Message(1, 2), RuntimeError)],
)
def test_error_of_elsewhere_is_raised_again_with_its_traceback(
    error: Exception, kind: type[Exception]
) -> None:
    try:
        raise error
    except Exception:
        wrapped = _utils.ExceptionWrapper(where="in a thread")
    with pytest.raises(kind) as again:
        wrapped.reraise()
    first, *rest = str(again.value).splitlines()
    assert first == f"Caught {type(error).__name__} in a thread."
    assert rest[0] == "Original Traceback (most recent call last):"


def test_tensors_are_laid_out_as_one_and_back() -> None:
    tensors = [torch.ones(2), torch.zeros(1, 1)]
    flat = _utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1.0, 1.0, 0.0]
    parts = _utils._unflatten_dense_tensors(flat, tensors)
    assert [p.shape for p in parts] == [(2,), (1, 1)]
    assert parts[0].data_ptr() == flat.data_ptr()
    given: list[Any] = [torch.ones(2), torch.zeros(1, 1), torch.ones(3).double()]
    # PyTorch 2.13's lists for 8 bytes.
    assert [[t.shape for t in part] for part in _utils._take_tensors(given, 8)] == [
        [(2,)],
        [(1, 1)],
        [(3,)],
    ]
    other = _utils._reorder_tensors_as(given, [given[2], given[0], given[1]])
    assert [t.dtype for t in other] == [torch.float64, torch.float32, torch.float32]


def test_devices_and_sizes_are_told_as_pytorch_tells_them() -> None:
    assert _utils._element_size(torch.float64) == 8 and _utils._element_size(torch.bool) == 1
    assert _utils._get_device_index("cuda:1") == 1 and _utils._get_device_index(2) == 2
    assert _utils._get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        _utils._get_device_index("cpu")
    with pytest.raises(ValueError, match="with a specified index or an integer, but got:cuda"):
        _utils._get_device_index("cuda")
    assert _utils._get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match="'nope' does not have a corresponding module"):
        _utils._get_device_module("nope")
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = _utils.nope


def test_state_of_an_object_can_be_given_to_another() -> None:
    class Slotted:
        __slots__ = ("__dict__", "a")

    one, other = Slotted(), Slotted()
    one.a, one.b = 1, 2  # type: ignore[attr-defined]
    _utils._set_obj_state(other, _utils._get_obj_state(one))
    assert (other.a, other.b) == (1, 2)  # type: ignore[attr-defined]


def test_switches_of_backends_can_be_set_inside_a_block_that_allows_it() -> None:
    allow = getattr(torch.backends, "__allow_nonbracketed_mutation")
    with allow():
        torch.backends.cudnn.deterministic = torch.backends.cudnn.deterministic
    assert not torch.backends.flags_frozen()
