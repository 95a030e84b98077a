"""`XPUGraph`: the GPU work of a block, recorded and replayed without the program."""

from typing import Any

from .._gpu.twin import again

__all__: list[str] = []

again(globals(), "graphs", CUDAGraph="XPUGraph")
_graph, _block = globals()["XPUGraph"], globals()["graph"]
_graph.raw_xpu_graph = _graph.raw_xpu_graph_exec = _graph.raw_cuda_graph


class graph(_block):  # type: ignore[valid-type, misc]
    """A block whose work on a GPU is captured.

    Parameters
    ----------
    xpu_graph : XPUGraph
        What keeps it.
    pool : tuple of int, optional
        Not used: each graph holds its memory.
    stream : Stream, optional
        The current one in the block.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.xpu.is_available():
    ...     x, recorded = torch.ones(3, device="xpu"), torch.xpu.XPUGraph()
    ...     with torch.xpu.graph(recorded):
    ...         y = x * 2
    """

    def __init__(self, xpu_graph: Any, pool: Any = None, stream: Any = None) -> None:
        super().__init__(xpu_graph, pool, stream)
