"""The devices of `torch.cuda`: their number, their properties and the current one."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from .. import _C, _gpu, wgpu
from .._absent.modules import fill
from . import memory
from ._kind import GPU
from .streams import Stream

__all__ = [
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_sync_debug_mode",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
]

_sync_debug_mode = 0
_MODES = {"default": 0, "warn": 1, "error": 2}
_NO_SENSORS = (
    "wgpu does not tell what a GPU's sensors do; the driver's tools do, such as nvidia-smi."
)
_NO_HANDLES = f"wgpu does not take queues of other libraries; torch.{GPU.name}.Stream() makes one."


def lack(space: dict[str, Any]) -> None:
    """Put into a package what its devices cannot tell or take."""
    fill(space, _NO_SENSORS, "utilization temperature power_draw clock_rate memory_usage")
    fill(space, _NO_HANDLES, "get_stream_from_external _sleep")


def is_available() -> bool:
    """Return whether there is a GPU that answers as "cuda".

    Returns
    -------
    bool
        False where GPUs answer as "wgpu", as they do unless a program says otherwise.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    return GPU.is_available()


def init() -> None:
    """Open the current GPU.

    Raises
    ------
    RuntimeError
        There is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.init()
    """
    GPU.need("init")


def is_initialized() -> bool:
    """Return whether there is a GPU, which is open once that is known.

    Returns
    -------
    bool
        As `is_available`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_initialized() == torch.cuda.is_available()
    True
    """
    return GPU.is_available()


def device_count() -> int:
    """Return the number of GPUs.

    Returns
    -------
    int
        0 where none answers as "cuda".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.device_count() >= torch.cuda.is_available()
    True
    """
    return GPU.count()


def current_device() -> int:
    """Return the number of the GPU that is meant where none is named.

    Returns
    -------
    int
        At first 0.

    Raises
    ------
    RuntimeError
        There is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     number = torch.cuda.current_device()
    """
    return GPU.index(None, "current_device")


def set_device(device: Any) -> None:
    """Choose the GPU that is meant on this thread where none is named.

    Parameters
    ----------
    device : device, str or int
        One of those there are; a negative number changes nothing.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.set_device(0)
    """
    if device is None or (isinstance(device, int) and device < 0):
        return
    _C._wgpu_set_current(GPU.index(device, "set_device"))


def synchronize(device: Any = None) -> None:
    """Wait until everything that was asked of a GPU is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.synchronize()
    """
    wgpu.synchronize(GPU.index(device, "synchronize"))


class device(contextlib.ContextDecorator):
    """A block with another current GPU.

    Parameters
    ----------
    device : device, str, int or None
        None and negative numbers leave everything as it is.

    Raises
    ------
    RuntimeError
        Where the block begins: there is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.device(None):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, device: Any) -> None:
        self.idx, self.prev_idx = device, -1

    def __enter__(self) -> None:
        if self.idx is None or (isinstance(self.idx, int) and self.idx < 0):
            self.prev_idx = -1
            return
        index = GPU.index(self.idx, "device")
        self.prev_idx = _C._wgpu_current()
        _C._wgpu_set_current(index)

    def __exit__(self, *exc: Any) -> None:
        if self.prev_idx >= 0:
            _C._wgpu_set_current(self.prev_idx)


class device_of(device):
    """A block on the GPU of a tensor: leaves everything as it is for those that are on none.

    Parameters
    ----------
    obj : Tensor or storage
        On any device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.device_of(torch.ones(1)):
    ...     torch.ones(1)
    tensor([1.])
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == GPU.name else None)


def _capability(info: dict[str, Any]) -> tuple[int, int]:
    if info["cooperative_matrices"]:
        return (8, 0)
    return (7, 0) if "shader_f16" in info["features"] else (6, 0)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return what a GPU computes well in, as the number of a generation of NVIDIA's.

    Programs decide by it whether float16, bfloat16 and TF32 are worth it: (8, 0) where the GPU
    has cooperative matrices (tensor cores), which make products of float16 and bfloat16 quicker,
    and of float32 in less than the highest precision; (7, 0) where it computes in float16, so that
    such tensors are half as much to move; else (6, 0), where they are computed in float32.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    tuple of int
        The major and the minor number.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     major, minor = torch.cuda.get_device_capability()
    """
    return _capability(_C._wgpu_info(GPU.index(device, "get_device_capability")))


def get_device_name(device: Any = None) -> str:
    """Return the adapter's name.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    str
        As the driver tells it.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     name = torch.cuda.get_device_name()
    """
    return str(_C._wgpu_info(GPU.index(device, "get_device_name"))["name"])


def get_device_properties(device: Any = None) -> Any:
    """Return what a GPU is.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    object
        With ``name``, ``major`` and ``minor`` (see `get_device_capability`), ``total_memory`` in
        bytes, ``shared_memory_per_block``, ``max_threads_per_block``, ``backend``, ``driver`` and
        the others of PyTorch's. ``multi_processor_count`` is that of the host's processors for
        software, and 1 of a card, since wgpu does not tell; what else it does not tell is 0.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     size = torch.cuda.get_device_properties(0).total_memory
    """
    from ..cuda._properties import _CudaDeviceProperties

    index = GPU.index(device, "get_device_properties")
    info = _C._wgpu_info(index)
    limits, capability = info["limits"], _capability(info)
    shared = limits["max_compute_workgroup_storage_size"]
    return _CudaDeviceProperties(
        name=info["name"],
        major=capability[0],
        minor=capability[1],
        total_memory=_gpu.memory(index),
        multi_processor_count=(os.cpu_count() or 1) if info["software"] else 1,
        is_integrated=info["memory"] is None or info["software"],
        is_multi_gpu_board=False,
        max_threads_per_block=limits["max_compute_invocations_per_workgroup"],
        max_threads_per_multi_processor=limits["max_compute_invocations_per_workgroup"],
        regs_per_multiprocessor=0,
        shared_memory_per_block=shared,
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared,
        warp_size=limits.get("max_subgroup_size") or 32,
        L2_cache_size=0,
        clock_rate=0,
        memory_clock_rate=0,
        memory_bus_width=0,
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
        uuid=f"wgpu-{index}",
        gcnArchName="",
        backend=info["backend"],
        driver=info["driver"],
    )


def device_memory_used(device: Any = None) -> int:
    """Return the bytes that this process has taken of a GPU; those of others are not known.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    int
        As `memory_reserved`.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     used = torch.cuda.device_memory_used()
    """
    return memory.memory_reserved(GPU.index(device, "device_memory_used"))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the current GPU takes bfloat16.

    Parameters
    ----------
    including_emulation : bool, default True
        False asks whether it is quicker than float32, which it is on cooperative matrices (tensor
        cores).

    Returns
    -------
    bool
        True of every GPU; False where none answers as "cuda".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_bf16_supported() == torch.cuda.is_available()
    True
    """
    if not GPU.is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Return whether products of float32 in less than the highest precision are quicker.

    Returns
    -------
    bool
        Whether the current GPU has cooperative matrices (tensor cores).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_tf32_supported() in (True, False)
    True
    """
    return GPU.is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """Return the generations of processors that kernels are made for: those that there are.

    Returns
    -------
    list of str
        Of each GPU, as by `get_device_capability`; empty where there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> len(torch.cuda.get_arch_list()) <= torch.cuda.device_count()
    True
    """
    found = {get_device_capability(index) for index in range(GPU.count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def get_gencode_flags() -> str:
    """Return the compiler's flags for `get_arch_list`: none, shaders are compiled by the driver.

    Returns
    -------
    str
        Empty.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.get_gencode_flags()
    ''
    """
    return ""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return False: copies from GPU to GPU pass through the host.

    Parameters
    ----------
    device, peer_device : device, str or int
        Two GPUs.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.can_device_access_peer(0, 1)
    False
    """
    return False


def ipc_collect() -> None:
    """Do nothing: no memory of a GPU is shared with other processes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.ipc_collect()
    """


class StreamContext:
    """A block with another current stream, and its GPU.

    Parameters
    ----------
    stream : Stream or None
        None changes nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.StreamContext(None):
    ...     x = torch.ones(1)
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exc: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exc)


def stream(stream: Any) -> StreamContext:
    """Return a block with another current stream.

    Parameters
    ----------
    stream : Stream or None
        None changes nothing.

    Returns
    -------
    StreamContext
        For ``with``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.cuda.stream(None):
    ...     x = torch.ones(1)
    """
    return StreamContext(stream)


def _stream(device: Any, what: str, number: int | None) -> Any:
    from .._gpu.streams import current

    index = GPU.index(device, what)
    return Stream(
        device_index=index,
        stream_id=current(index, what).stream_id if number is None else number,
        device_type=-1,
    )


def current_stream(device: Any = None) -> Any:
    """Return the stream that is current on a GPU.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    Stream
        All streams of a GPU are its one queue.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.current_stream().synchronize()
    """
    return _stream(device, "current_stream", None)


def default_stream(device: Any = None) -> Any:
    """Return the first stream of a GPU.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    Stream
        Number 0.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.default_stream().synchronize()
    """
    return _stream(device, "default_stream", 0)


def set_stream(stream: Any) -> None:
    """Make a stream, and its GPU, the current one on this thread.

    Parameters
    ----------
    stream : Stream or None
        None changes nothing.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.set_stream(torch.cuda.default_stream())
    """
    GPU.need("set_stream")
    if stream is not None:
        from .._gpu.streams import set_current

        set_current(stream)


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Say what happens where elements of a GPU are read on the host, which waits for it.

    ``.item()``, ``.cpu()``, printing and operators without a kernel for GPUs do; `synchronize` is
    not told.

    Parameters
    ----------
    debug_mode : {"default", "warn", "error"} or int
        Nothing, a warning or an error; 0, 1 or 2 in the place of a name.

    Raises
    ------
    RuntimeError
        It is none of these, or there is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     torch.cuda.set_sync_debug_mode("default")
    """
    global _sync_debug_mode
    GPU.need("set_sync_debug_mode")
    found = _MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if found not in _MODES.values():
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
        )
    _sync_debug_mode = found
    _C._set_waiting(found)


def get_sync_debug_mode() -> int:
    """Return what `set_sync_debug_mode` set.

    Returns
    -------
    int
        At first 0.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     mode = torch.cuda.get_sync_debug_mode()
    """
    GPU.need("get_sync_debug_mode")
    return _sync_debug_mode
