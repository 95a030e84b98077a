"""Memory of GPUs that answer as "xpu"."""

from .._gpu_twin import again

__all__: list[str] = []

again(globals(), "memory", CUDAPluggableAllocator="XPUPluggableAllocator")
