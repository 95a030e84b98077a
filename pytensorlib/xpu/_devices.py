"""The devices of `torch.xpu`, what they are, and what is current."""

from .._gpu.twin import again

__all__: list[str] = []

again(globals(), "_devices")
