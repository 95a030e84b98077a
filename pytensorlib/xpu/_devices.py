"""The devices of `torch.xpu`: their number, their properties and the current one."""

from .._gpu.twin import again

__all__: list[str] = []

again(globals(), "_devices")
