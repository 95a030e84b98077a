"""Memory of GPUs that answer as "xpu"."""

from .._absent.modules import refusing
from .._gpu.twin import again

__all__: list[str] = []

again(globals(), "memory", CUDAPluggableAllocator="XPUPluggableAllocator")
XPUPluggableAllocator = refusing(
    "XPUPluggableAllocator", __name__, globals()["_NO_ALLOCATORS"], members="allocator"
)
