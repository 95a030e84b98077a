"""PyTorch's `torch.mps`: a GPU of any maker, where GPUs answer as "mps".

They do under the environment variable ``PYTENSORLIB_GPU_AS=mps``, ``python -m pytensorlib --gpu-as
mps script.py``, or after `torch.wgpu.answer_as`. It has the parts that PyTorch's has.
"""

from __future__ import annotations

from typing import Any

from .. import _C, _gpu, wgpu
from .._absent.modules import fill, tell_missing
from .._absent.table import NO_MPS
from . import event, profiler
from ._kind import GPU
from .event import Event

__all__ = [
    "Event",
    "compile_shader",
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "load_metallib",
    "manual_seed",
    "profiler",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
]

fill(
    globals(),
    "there is no compiler of Metal here; torch.wgpu.elementwise takes a function of WGSL.",
    "compile_shader load_metallib",
)


def is_available() -> bool:
    """Return whether there is a GPU that answers as "mps".

    Returns
    -------
    bool
        False where GPUs answer as "wgpu", as they do unless a program says otherwise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> device = "mps" if torch.mps.is_available() else "cpu"
    """
    return GPU.is_available()


def device_count() -> int:
    """Return the number of devices: PyTorch knows one at most.

    Returns
    -------
    int
        1 where `is_available`, else 0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mps.device_count() == torch.mps.is_available()
    True
    """
    return int(GPU.is_available())


def synchronize() -> None:
    """Wait until everything that was asked of the GPU is done.

    Raises
    ------
    RuntimeError
        There is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     torch.mps.synchronize()
    """
    wgpu.synchronize(GPU.index(None, "synchronize"))


def manual_seed(seed: int) -> None:
    """Seed the generator that the GPU draws from; nothing is done without a GPU.

    Parameters
    ----------
    seed : int
        Any integer of 64 bits.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mps.manual_seed(0)
    """
    if GPU.is_available():
        _C._generator_of(GPU.index(None, "manual_seed")).manual_seed(int(seed))


def seed() -> None:
    """Seed the generator with a number nobody can foresee.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     torch.mps.seed()
    """
    _C._generator_of(GPU.index(None, "seed")).seed()


def get_rng_state(device: Any = "mps") -> Any:
    """Return the state of the generator that the GPU draws from.

    Parameters
    ----------
    device : device, str or int
        Not used.

    Returns
    -------
    Tensor
        uint8, as of `torch.get_rng_state`.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     state = torch.mps.get_rng_state()
    """
    return _C._generator_of(GPU.index(None, "get_rng_state")).get_state()


def set_rng_state(new_state: Any, device: Any = "mps") -> None:
    """Put the generator that the GPU draws from into a state.

    Parameters
    ----------
    new_state : Tensor
        As `get_rng_state` returns it.
    device : device, str or int
        Not used.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     torch.mps.set_rng_state(torch.mps.get_rng_state())
    """
    _C._generator_of(GPU.index(None, "set_rng_state")).set_state(new_state)


def empty_cache() -> None:
    """Give unused memory back to the driver; nothing is done where there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.mps.empty_cache()
    """
    if GPU.is_available():
        wgpu.empty_cache(0)


def current_allocated_memory() -> int:
    """Return the bytes that live tensors hold.

    Returns
    -------
    int
        As `torch.cuda.memory_allocated` under the other name.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     held = torch.mps.current_allocated_memory()
    """
    return int(_C._wgpu_memory_stats(GPU.index(None, "current_allocated_memory"))["allocated"])


def driver_allocated_memory() -> int:
    """Return the bytes that are taken from the driver.

    Returns
    -------
    int
        As `torch.cuda.memory_reserved` under the other name.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     taken = torch.mps.driver_allocated_memory()
    """
    return int(_C._wgpu_memory_stats(GPU.index(None, "driver_allocated_memory"))["reserved"])


def recommended_max_memory() -> int:
    """Return the bytes of the GPU's memory, or of the host's where the driver does not tell.

    Returns
    -------
    int
        All of them.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     most = torch.mps.recommended_max_memory()
    """
    return _gpu.memory(GPU.index(None, "recommended_max_memory"))


def set_per_process_memory_fraction(fraction: float) -> None:
    """Limit what this process takes of the GPU's memory.

    Parameters
    ----------
    fraction : float
        From 0 to 2, in parts of `recommended_max_memory`; 0 is no limit.

    Raises
    ------
    TypeError
        The fraction is no float.
    ValueError
        It is out of range.
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.mps.is_available():
    ...     torch.mps.set_per_process_memory_fraction(0.0)
    """
    index = GPU.index(None, "set_per_process_memory_fraction")
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    size = int(_gpu.memory(index) * fraction)
    wgpu.set_memory_cap(size or None, index)


tell_missing(globals(), NO_MPS)
