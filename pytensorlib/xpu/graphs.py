"""What a block asked a GPU for, to be asked again without the program: `XPUGraph`."""

from .._gpu_twin import again

__all__: list[str] = []

again(globals(), "graphs", CUDAGraph="XPUGraph")
