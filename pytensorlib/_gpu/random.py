"""The state of the random numbers that a GPU draws, for `torch.wgpu`."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["get_rng_state", "set_rng_state"]


def get_rng_state(device: Any = None) -> Any:
    """Return the state of the generator that a GPU draws from.

    Parameters
    ----------
    device : device, str or int, optional
        The current one by default.

    Returns
    -------
    Tensor
        uint8, as of `torch.get_rng_state`.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     state = torch.wgpu.get_rng_state()
    """
    return _C._generator_of(_number(device)).get_state()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Let a GPU go on drawing where a state of its generator was taken.

    Parameters
    ----------
    new_state : Tensor
        As `get_rng_state` returns it.
    device : device, str or int, optional
        The current one by default.

    Raises
    ------
    RuntimeError
        There is no such GPU, or `new_state` is no state.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     state = torch.wgpu.get_rng_state()
    ...     x = torch.rand(3, device="wgpu")
    ...     torch.wgpu.set_rng_state(state)
    ...     assert torch.equal(x, torch.rand(3, device="wgpu"))
    """
    _C._generator_of(_number(device)).set_state(new_state)


def _number(device: Any) -> int:
    from ..wgpu import _index, device_count

    number = _index(device)
    if number >= device_count():
        raise RuntimeError(
            f"wgpu: invalid device ordinal: there is no wgpu:{number}, the number of GPUs is "
            f"{device_count()}"
        )
    return number
