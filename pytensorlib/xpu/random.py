"""Random numbers on GPUs that answer as "xpu"."""

from .._gpu.twin import again

__all__: list[str] = []

again(globals(), "random")
