"""Device "xpu": there is none; GPUs are reached as device "wgpu"."""

from . import _no_device
from ._named_modules import NO_XPU
from ._no_device import *  # noqa: F403

__all__: list[str] = []
__all__ += _no_device.__all__

_no_device.stand_in(
    globals(),
    NO_XPU,
    """
    BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
    IntTensor LongTensor ShortTensor Event MemPool Stream StreamContext XPUGraph
    XPUPluggableAllocator change_current_allocator clock_rate current_device current_stream
    device device_of device_memory_used get_device_capability get_device_name
    get_device_properties get_per_process_memory_fraction get_rng_state get_stream_from_external
    graph graph_pool_handle init initial_seed make_graphed_callables mem_get_info memory_usage
    power_draw reset_peak_memory_stats set_device set_per_process_memory_fraction set_rng_state
    set_stream stream synchronize temperature use_mem_pool utilization
    """,
)


def is_current_stream_capturing() -> bool:
    """Return False: nothing is captured.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.xpu.is_current_stream_capturing()
    False
    """
    return False
