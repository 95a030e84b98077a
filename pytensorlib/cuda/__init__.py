"""PyTorch's `torch.cuda`: GPUs of any maker, where they answer as "cuda".

They do under the environment variable ``PYTENSORLIB_GPU_AS=cuda``, ``python -m pytensorlib --gpu-as
cuda script.py``, or after `torch.wgpu.answer_as`. Elsewhere, and where there is no adapter,
questions have the answers of a machine without CUDA (nothing is available, no memory is allocated),
what PyTorch ignores there is ignored, and anything else raises and says what to do.

``torch.version.cuda`` and ``torch.version.hip`` are None: there is no toolkit. What compiles C++ or
CUDA for a GPU refuses; `torch.wgpu.elementwise` takes WGSL.
"""

from __future__ import annotations

import enum
import importlib
from typing import Any

from .. import _C, _alias, _legacy
from .._absent.modules import fill, tell_missing
from .._absent.table import NO_CUDA
from .._errors import AcceleratorError, OutOfMemoryError
from . import _devices, amp, graphs, memory, random, streams
from ._devices import *  # noqa: F403
from ._kind import GPU
from .graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from .memory import *  # noqa: F403
from .random import *  # noqa: F403
from .streams import Event, ExternalStream, Stream

__all__ = [
    "CUDAGraph",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "Stream",
    "amp",
    "check_error",
    "cudaStatus",
    "cudart",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "has_magma",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "memory",
    "random",
    "streams",
]
__all__ += _devices.__all__
__all__ += memory.__all__
__all__ += random.__all__

has_half = has_magma = True
_initialized = False
_NO_LIBRARIES = "no library of CUDA's is called here: kernels are of this package."

_devices.lack(globals())
fill(globals(), _NO_LIBRARIES, "current_blas_handle current_solver_handle _compile_kernel")

_TYPES = {
    "BFloat16Tensor": "bfloat16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
}
_STORAGES = "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short"
_LACKED = (
    "clock_rate current_blas_handle current_solver_handle get_stream_from_external memory_usage "
)
_LACKED += "power_draw temperature utilization"
_LATER = [f"{name}Storage" for name in _STORAGES.split()]
# Modules that are loaded when they are asked for.
_MODULES = ("comm", "jiterator", "nccl", "nvtx", "profiler", "sparse", "tunable")
__all__.extend([*_TYPES, *_LATER, *_LACKED.split(), *_MODULES])
__all__.extend(["GreenContext", "default_generators"])
globals().update({n: _legacy.old_class(n, dtype, GPU.name) for n, dtype in _TYPES.items()})


class CudaError(RuntimeError):
    """A call of `cudart` did not succeed.

    Parameters
    ----------
    code : int
        What it returned.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.cuda.CudaError, RuntimeError)
    True
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error {code}: a call of torch.cuda.cudart() did not succeed")


class DeferredCudaCallError(Exception):
    """A call that waited for the GPU failed: none waits here.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.cuda.DeferredCudaCallError, Exception)
    True
    """


class cudaStatus:
    """What calls of `cudart` return.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.cudaStatus.SUCCESS
    0
    """

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class _Cudart:
    """The functions of CUDA's runtime that have a meaning here."""

    class cudaError(enum.IntEnum):
        """The status codes that calls return."""

        success = 0

    @staticmethod
    def cudaGetErrorString(code: Any) -> str:
        """Return what a result means."""
        return "no error" if code == 0 else f"error {int(code)}"

    @staticmethod
    def cudaProfilerStart() -> int:
        """Do nothing: there is no profiler beside this process."""
        return 0

    @staticmethod
    def cudaProfilerStop() -> int:
        """Do nothing: there is no profiler beside this process."""
        return 0

    @staticmethod
    def cudaHostRegister(address: int, size: int, flags: int) -> int:
        """Do nothing: host memory needs no pinning."""
        return 0

    @staticmethod
    def cudaHostUnregister(address: int) -> int:
        """Do nothing: host memory needs no pinning."""
        return 0

    @staticmethod
    def cudaMemGetInfo(device: int) -> tuple[int, int]:
        """Return what `mem_get_info` does."""
        return memory.mem_get_info(device)


def cudart() -> Any:
    """Return what programs call of CUDA's runtime, as far as it has a meaning here.

    Returns
    -------
    object
        With ``cudaMemGetInfo``; ``cudaProfilerStart``, ``cudaHostRegister`` and their likes do
        nothing and return 0.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     status = torch.cuda.cudart().cudaProfilerStart()
    """
    GPU.need("cudart")
    return _Cudart


def check_error(res: int) -> None:
    """Raise where a call of `cudart` did not succeed.

    Parameters
    ----------
    res : int
        What it returned.

    Raises
    ------
    CudaError
        It is not 0.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.check_error(0)
    """
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def _is_in_bad_fork() -> bool:
    """Return whether a fork took the GPU away: those that there are say so themselves."""
    return False


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Call it where there is a GPU, whose state is always made; forget it where there is none."""
    if GPU.is_available():
        callable()


def _lazy_init() -> None:
    """Raise where there is no GPU."""
    if not GPU.is_named():
        raise AssertionError(f"Torch not compiled with CUDA enabled: {NO_CUDA}")
    GPU.need("init")


_alias.adopt(globals(), _devices.__all__)
tell_missing(globals(), NO_CUDA)
_later = globals()["__getattr__"]


def __getattr__(name: str) -> Any:
    if name in _MODULES or name in ("gds", "green_contexts"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "_CudaDeviceProperties":
        return importlib.import_module(f"{__name__}._properties")._CudaDeviceProperties
    if name == "GreenContext":
        return importlib.import_module(f"{__name__}.green_contexts").GreenContext
    if name == "default_generators":
        return tuple(_C._generator_of(i) for i in range(GPU.count()))
    if name.endswith("Storage"):
        from .._legacy.storages import on_kind

        globals().update(on_kind(GPU.name))
        if name in globals():
            return globals()[name]
    return _later(name)
