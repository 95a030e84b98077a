"""Memory of GPUs that answer as "xpu"."""

from .._gpu_twin import again
from .._named import refusing

__all__: list[str] = []

again(globals(), "memory", CUDAPluggableAllocator="XPUPluggableAllocator")
XPUPluggableAllocator = refusing(
    "XPUPluggableAllocator", __name__, globals()["_NO_ALLOCATORS"], members="allocator"
)
