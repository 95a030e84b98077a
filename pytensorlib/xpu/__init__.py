"""PyTorch's `torch.xpu`: GPUs of any maker, where they answer as "xpu".

They do under the environment variable ``PYTENSORLIB_GPU_AS=xpu``, ``python -m pytensorlib --gpu-as
xpu script.py``, or after `torch.wgpu.answer_as`. `torch.cuda` has the same under the other name.
"""

from __future__ import annotations

from typing import Any

from .. import _C, _alias, _legacy
from .._absent.modules import tell_missing
from .._absent.table import NO_XPU
from . import _devices, graphs, memory, random, streams
from ._kind import GPU

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
__all__ = ["default_generators", "get_device_capability", "memory", "random", "streams"]

for _module in (_devices, graphs, memory, random, streams):
    _names = [name for name in _module.__all__ if name != "ExternalStream"]
    globals().update({name: getattr(_module, name) for name in _names})
    __all__ += [name for name in _names if name not in __all__]
_any: Any = _devices
_any.lack(globals())
__all__.extend(
    "clock_rate get_stream_from_external memory_usage power_draw temperature utilization".split()
)
globals().update({n: _legacy.old_class(n, dtype, GPU.name) for n, dtype in _TYPES.items()})
_alias.adopt(globals(), [*_devices.__all__, *streams.__all__[:1], *streams.__all__[2:]])


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """Return what a GPU is, by names.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    dict
        What `get_device_properties` has, and whether it computes in float16 and float64.

    Raises
    ------
    RuntimeError
        There is no such GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.xpu.is_available():
    ...     can = torch.xpu.get_device_capability()["has_fp16"]
    """
    info = _C._wgpu_info(GPU.index(device, "get_device_capability"))
    found = _any.get_device_properties(device)._asdict()
    return found | {"has_fp16": "shader_f16" in info["features"], "has_fp64": info["float64"]}


def can_device_access_peer(device: Any, peer: Any) -> bool:
    """Return False: copies from GPU to GPU pass through the host.

    Parameters
    ----------
    device, peer : device, str or int
        Two GPUs.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.xpu.can_device_access_peer(0, 1)
    False
    """
    return False


tell_missing(globals(), NO_XPU)
_later = globals()["__getattr__"]


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(_C._generator_of(i) for i in range(GPU.count()))
    return _later(name)
