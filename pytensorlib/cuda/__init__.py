"""What scripts ask of ``torch.cuda``: there is none; GPUs are reached as device "wgpu".

Questions have true answers (nothing is available, no memory is allocated); what PyTorch ignores
where there is no GPU is ignored; anything else raises and says what to use.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .._errors import AcceleratorError, OutOfMemoryError
from .._named import fill, tell_missing
from .._named_modules import NO_CUDA
from . import amp, memory, nvtx, random, streams
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, ExternalStream, Stream

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "nvtx",
    "random",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]

_initialized = False
default_generators: tuple[Any, ...] = ()
has_half = has_magma = False

fill(
    globals(),
    NO_CUDA,
    """
    BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage
    CharTensor ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage
    FloatTensor HalfStorage HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage
    ShortTensor _sleep CUDAGraph CUDAPluggableAllocator CudaError DeferredCudaCallError GreenContext
    MemPool StreamContext caching_allocator_alloc caching_allocator_delete
    caching_allocator_disabled caching_allocator_enable change_current_allocator check_error
    clock_rate cudart cudaStatus current_blas_handle current_solver_handle current_stream
    default_stream device_memory_used get_allocator_backend get_device_capability get_device_name
    get_device_properties get_per_process_memory_fraction get_stream_from_external
    get_sync_debug_mode graph graph_pool_handle init list_gpu_processes make_graphed_callables
    mem_get_info memory_usage power_draw set_per_process_memory_fraction set_stream
    set_sync_debug_mode stream temperature use_mem_pool utilization
    """,
)


def is_available() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_available()
    False
    """
    return False


def _is_in_bad_fork() -> bool:
    """Return False: there is no CUDA that a fork could harm."""
    return False


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Keep nothing: what waits for CUDA to begin is never called."""


def _lazy_init() -> None:
    """Raise: there is no CUDA."""
    raise AssertionError(f"Torch not compiled with CUDA enabled: {NO_CUDA}")


def is_initialized() -> bool:
    """Return False.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_initialized()
    False
    """
    return False


def device_count() -> int:
    """Return 0.

    Returns
    -------
    int
        0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.device_count()
    0
    """
    return 0


def current_device() -> int:
    """Raise: there is no CUDA device.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> try:
    ...     torch.cuda.current_device()
    ... except RuntimeError:
    ...     print("none")
    none
    """
    raise RuntimeError("torch.cuda: there is no CUDA here; GPUs of every vendor are device 'wgpu'")


def synchronize(device: Any = None) -> None:
    """Raise, as `current_device`.

    Parameters
    ----------
    device : device, optional
        Accepted for scripts.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.synchronize()
    """
    current_device()


def set_device(device: Any) -> None:
    """Raise, unless the number is negative, which PyTorch ignores.

    Parameters
    ----------
    device : device or int
        What would be the current device.

    Raises
    ------
    RuntimeError
        There is no such device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.set_device(0)
    """
    if not (isinstance(device, int) and device < 0):
        current_device()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: there is no device that could.

    Parameters
    ----------
    including_emulation : bool, default True
        Not used.

    Returns
    -------
    bool
        False. On "cpu" and "wgpu" bfloat16 works.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_bf16_supported()
    False
    """
    return False


def is_tf32_supported() -> bool:
    """Return False: there is no device that could.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_tf32_supported()
    False
    """
    return False


def is_current_stream_capturing() -> bool:
    """Return False: there is no stream.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_current_stream_capturing()
    False
    """
    return False


def get_arch_list() -> list[str]:
    """Return the processors that kernels were compiled for: none.

    Returns
    -------
    list
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.get_arch_list()
    []
    """
    return []


def get_gencode_flags() -> str:
    """Return the compiler's flags for `get_arch_list`: none."""
    return ""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return False: there is neither device."""
    return False


def ipc_collect() -> None:
    """Do nothing: no memory was shared.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.ipc_collect()
    """


class device(contextlib.ContextDecorator):
    """A block with another current device: raises where it begins, unless there is none to set.

    Parameters
    ----------
    device : device, int or None
        None and negative numbers leave everything as it is.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.device(None):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            set_device(self.idx)

    def __exit__(self, *exc: Any) -> None:
        pass


class device_of(device):
    """A block on the device of a tensor: leaves everything as it is for those that there are.

    Parameters
    ----------
    obj : Tensor or storage
        On the CPU or on "wgpu".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.device_of(torch.ones(1)):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(None)


tell_missing(globals(), NO_CUDA)
