"""Device "mtia": there is none; GPUs are reached as device "wgpu"."""

from .._absent import devices as _devices
from .._absent.devices import *  # noqa: F403
from .._absent.table import NO_MTIA

__all__: list[str] = []
__all__ += _devices.__all__

_devices.stand_in(
    globals(),
    NO_MTIA,
    """
    MTIAGraph Event Stream attach_out_of_memory_observer current_device current_stream
    default_stream device get_device_capability get_device_properties get_rng_state graph
    graph_pool_handle init initial_seed memory_stats record_memory_history
    reset_peak_memory_stats set_device set_rng_state set_stream snapshot stream synchronize
    """,
)
