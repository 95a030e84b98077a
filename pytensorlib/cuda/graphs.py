"""What a block asked a GPU for, to be asked again without the program: `CUDAGraph`.

The block runs where it is captured, so that its results are there; what it wrote to tensors from
before is undone at its end, and so are the random numbers that it drew, as PyTorch, which runs
nothing meanwhile. A replay does the same operators on the same memory. `torch.compile` and
`torch.graph` need no memory of a program's own.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .. import _C, random
from ._kind import GPU

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]

_pools = itertools.count(1)


class _Here(threading.local):
    """The graph that a thread captures."""

    def __init__(self) -> None:
        self.graph: Any = None


_here = _Here()


def is_current_stream_capturing() -> bool:
    """Return whether a block of this thread is being captured.

    Returns
    -------
    bool
        False outside of `graph`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.is_current_stream_capturing()
    False
    """
    return _here.graph is not None


def graph_pool_handle() -> tuple[int, int]:
    """Return a number for memory that graphs share: each holds what it captured.

    Returns
    -------
    tuple of int
        A new one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.graph_pool_handle() != torch.cuda.graph_pool_handle()
    True
    """
    return (0, next(_pools))


class CUDAGraph:
    """What a block asked a GPU for, which `replay` asks for again.

    The block, in `graph`, computes on tensors that stay in place: write new inputs to them
    (``x.copy_(...)``), replay, and read the results where they are. Shapes and numbers of Python
    stay what they were; an optimizer's step is made anew, with its numbers of then.

    Parameters
    ----------
    keep_graph : bool, default False
        Not used.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     x, recorded = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
    ...     with torch.cuda.graph(recorded):
    ...         y = x * 2
    ...     _ = x.fill_(5)
    ...     recorded.replay()
    """

    def __init__(self, keep_graph: bool = False) -> None:
        GPU.need("CUDAGraph")
        self._steps: list[Callable[[], Any]] | None = None
        self._mode: Any = None
        self._hooks: list[Any] = []
        self._program: Any = None
        self._waiting = 0
        self._pool = graph_pool_handle()

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Begin to note what this thread asks for; `graph` does it for a block.

        Parameters
        ----------
        pool : tuple of int or MemPool, optional
            Not used: each graph holds its memory.
        capture_error_mode : str
            Not used.

        Raises
        ------
        RuntimeError
            This graph or another is being captured, or it was captured already. In the block:
            elements are read on the host.
        """
        from ..cuda._capture import Capture
        from ..optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        if _here.graph is not None:
            raise RuntimeError("CUDAGraph.capture_begin: a graph is being captured on this thread")
        if self._steps is not None:
            raise RuntimeError(
                "CUDAGraph.capture_begin: this graph was captured already; call reset() first, or "
                "make another one"
            )
        if pool is not None:
            self._pool = getattr(pool, "id", pool)
        _here.graph, self._mode = self, Capture()
        self._hooks = [
            register_optimizer_step_pre_hook(self._mode.begins),
            register_optimizer_step_post_hook(self._mode.ends),
        ]
        self._waiting = _C._set_waiting(3)
        self._mode.__enter__()

    def capture_end(self) -> None:
        """End what `capture_begin` began.

        Raises
        ------
        RuntimeError
            Nothing is captured.
        """
        if _here.graph is not self:
            raise RuntimeError("CUDAGraph.capture_end: this graph is not being captured")
        self._leave()
        self._steps = self._mode.steps
        self._mode = None

    def _leave(self) -> None:
        """Note nothing any more."""
        _here.graph = None
        self._mode.__exit__(None, None, None)
        _C._set_waiting(self._waiting)
        for hook in self._hooks:
            hook.remove()
        with pt.no_grad():
            self._mode.undo()

    def instantiate(self) -> None:
        """Do nothing: a captured graph can be replayed."""
        self._captured("instantiate")

    def _captured(self, what: str) -> list[Callable[[], Any]]:
        if self._steps is None:
            raise RuntimeError(
                f"CUDAGraph.{what}: nothing was captured; capture a block in torch.cuda.graph first"
            )
        return self._steps

    def _run(self) -> None:
        """Ask for everything once more, one by one."""
        with pt.no_grad():
            for step in self._captured("replay"):
                step()

    def replay(self) -> None:
        """Ask for all of it again, on the same memory.

        Raises
        ------
        RuntimeError
            Nothing was captured, or a shape is another one now.
        """
        steps = self._captured("replay")
        if self._program is None:
            from ..cuda._capture import Program, Step

            self._program = Program(all(isinstance(step, Step) for step in steps))
        self._program(self._run, is_current_stream_capturing())

    def reset(self) -> None:
        """Forget what was captured, and let its memory go."""
        self._steps = self._program = None

    def pool(self) -> tuple[int, int]:
        """Return the number of its memory, for `graph` to take; it is not shared."""
        return self._pool

    def enable_debug_mode(self) -> None:
        """Do nothing: `debug_dump` needs no preparation."""

    def debug_dump(self, debug_path: str) -> None:
        """Write the captured operators to a file, one in a line.

        Parameters
        ----------
        debug_path : str
            Where to.
        """
        steps = self._captured("debug_dump")
        lines = [str(getattr(step, "func", "optimizer.step")) for step in steps]
        with open(debug_path, "w", encoding="utf-8") as f:
            f.write("\n".join([*lines, ""]))

    def register_generator_state(self, generator: Any) -> None:
        """Do nothing: a replay draws from the generators that were drawn from.

        Parameters
        ----------
        generator : Generator
            Any.
        """

    @staticmethod
    def get_currently_capturing_graph() -> Any:
        """Return the graph that this thread captures.

        Raises
        ------
        RuntimeError
            There is none.
        """
        if _here.graph is None:
            raise RuntimeError(
                "CUDAGraph.get_currently_capturing_graph: no graph is being captured"
            )
        return _here.graph

    def begin_capture_to_if_node(self, scalar_cuda_pred_tensor: Any) -> None:
        """Raise: what a graph asks for does not hang on numbers of the GPU."""
        raise NotImplementedError(
            "CUDAGraph.begin_capture_to_if_node: what is captured runs at each replay; make two "
            "graphs and choose in the program, or use torch.where"
        )

    def end_capture_to_conditional_node(self) -> None:
        """Raise, as `begin_capture_to_if_node`."""
        self.begin_capture_to_if_node(None)

    def raw_cuda_graph(self) -> int:
        """Raise: there is no graph of CUDA's runtime."""
        raise NotImplementedError(
            "CUDAGraph.raw_cuda_graph: there is no graph of CUDA's runtime; debug_dump lists what "
            "was captured"
        )

    raw_cuda_graph_exec = get_graph_data = raw_cuda_graph


class graph:
    """A block whose work on a GPU is captured.

    Parameters
    ----------
    cuda_graph : CUDAGraph
        What keeps it.
    pool : tuple of int, optional
        Not used: each graph holds its memory.
    stream : Stream, optional
        The current one in the block.
    capture_error_mode : str
        Not used.
    enable_annotations, check_input_liveness : bool, default False
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     x, recorded = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
    ...     with torch.cuda.graph(recorded):
    ...         y = x * 2
    """

    default_capture_stream: Any = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        if self.capture_stream is not None:
            self.capture_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            if self.capture_stream is not None:
                self.capture_stream.__exit__(None, None, None)
            raise

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.cuda_graph.capture_end()
        else:
            self.cuda_graph._leave()
        if self.capture_stream is not None:
            self.capture_stream.__exit__(*error)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Return functions or modules whose calls, and gradients, are recorded and run again.

    They are what `torch.graph` makes of them, which records a call when two in a row were alike and
    takes shapes and memory as they come.

    Parameters
    ----------
    callables : callable, Module or tuple of such
        What is recorded.
    sample_args : tuple of Tensor, or tuple of such
        Arguments of a call, for each of them.
    num_warmup_iters : int, default 3
        Calls before one has to be recorded.
    allow_unused_input : bool, default False
        Not used: an input may be unused.
    pool : tuple of int, optional
        Not used.

    Returns
    -------
    callable, Module or tuple of such
        A module is the same one, whose `forward` is recorded.

    Raises
    ------
    RuntimeError
        There is no GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.cuda.is_available():
    ...     x = torch.ones(2, 3, device="cuda")
    ...     linear = torch.cuda.make_graphed_callables(torch.nn.Linear(3, 1).cuda(), (x,))
    """
    GPU.need("make_graphed_callables")
    if not isinstance(callables, tuple):
        return _graphed(callables, sample_args, num_warmup_iters)
    if len(callables) != len(sample_args):
        raise ValueError(
            f"make_graphed_callables: expected arguments for each of {len(callables)} callables, "
            f"got {len(sample_args)}"
        )
    return tuple(
        _graphed(f, args, num_warmup_iters) for f, args in zip(callables, sample_args, strict=True)
    )


def _graphed(function: Any, args: Any, warmup: int) -> Any:
    args = args if isinstance(args, tuple) else (args,)
    is_module = isinstance(function, pt.nn.Module)
    if is_module and any(
        getattr(m, name, None)
        for m in function.modules()
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    ):
        raise RuntimeError(
            "Modules must not have hooks registered at the time they are passed. However, "
            "registering hooks on modules after passing them through make_graphed_callables is "
            "allowed."
        )
    from .._compile import graph as _graph

    recorded = _graph.graph(function.forward if is_module else function)
    states = random._states()
    kept = [b.clone() for b in function.buffers()] if is_module else []
    with pt.no_grad():
        for _ in range(max(warmup, 2)):
            recorded(*args)
        for buffer, value in zip(function.buffers() if is_module else (), kept, strict=True):
            buffer.copy_(value)
    random._restore(states)
    if not is_module:
        return recorded
    function.forward = recorded
    return function
