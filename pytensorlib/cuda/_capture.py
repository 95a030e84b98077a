"""What `CUDAGraph` records of a block, and how it runs that again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from .. import _C, random
from ..utils._python_dispatch import TorchDispatchMode

__all__ = ["Capture", "Program", "Step"]


def _tensors(x: Any) -> list[Any]:
    """Return the tensors in arguments or results."""
    if isinstance(x, pt.Tensor):
        return [x]
    if isinstance(x, dict):
        return [t for value in x.values() for t in _tensors(value)]
    if isinstance(x, (tuple, list)):
        return [t for value in x for t in _tensors(value)]
    return []


def _memory(t: Any) -> Any:
    return t.untyped_storage()._cdata


class Step:
    """An operator on its tensors, and which of its results are to be written anew."""

    __slots__ = ("args", "func", "kwargs", "made")

    def __init__(self, func: Any, args: Any, kwargs: Any, made: list[tuple[int, Any]]) -> None:
        self.func, self.args, self.kwargs, self.made = func, args, kwargs, made

    def __call__(self) -> None:
        results = _tensors(self.func(*self.args, **self.kwargs))
        for index, out in self.made:
            found = results[index]
            if found.shape != out.shape:
                raise RuntimeError(
                    f"CUDAGraph.replay: {self.func} gives a result of shape {tuple(found.shape)} "
                    f"where {tuple(out.shape)} was captured: what a graph computes must not "
                    "change its shapes. Leave it out of the graph."
                )
            out.copy_(found)


class Capture(TorchDispatchMode):
    """Notes the operators of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Callable[[], Any]] = []
        # Tensors made in the block, and those from before that it writes to with what they held.
        self.own: dict[Any, Any] = {}
        self.before: dict[Any, tuple[Any, Any]] = {}
        self.rng = random._states()
        self.optimizer: Any = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        if func._schema.is_mutable:
            self._keep(given)
        results = func(*args, **kwargs)
        if self.optimizer is not None:
            return results
        known = {_memory(t) for t in given}
        # Detached, since a step is no part of a graph; these are the same memory.
        made = [(i, t.detach()) for i, t in enumerate(_tensors(results)) if _memory(t) not in known]
        self.own.update({_memory(t): t for _, t in made})
        if made or func._schema.is_mutable:
            self.steps.append(Step(func, args, kwargs, made))
        return results

    def _keep(self, given: list[Any]) -> None:
        """Keep what tensors from before hold that may be written to."""
        for t in given:
            place = _memory(t)
            if place not in self.own and place not in self.before:
                flat = t.untyped_storage()
                self.before[place] = (flat, flat.clone())

    def begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note that an optimizer steps: it is asked to at each replay, with its numbers of then."""
        self.optimizer = optimizer
        state = [t for s in optimizer.state.values() for t in _tensors(s)]
        held = [p for group in optimizer.param_groups for p in group["params"]]
        self._keep([*state, *held])

    def ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note that an optimizer has stepped."""
        self.optimizer = None
        self.steps.append(lambda: optimizer.step(*args[1:], **kwargs))

    def undo(self) -> None:
        """Put tensors from before the block back to what they held, and random numbers too."""
        for place, kept in self.before.values():
            place.copy_(kept)
        self.before.clear()
        random._restore(self.rng)


class Program:
    """Runs a function on fixed memory: as a recorded program once two runs of it were alike."""

    def __init__(self, may: bool) -> None:
        self._may, self._trace, self._program = may, None, None

    def __call__(self, run: Callable[[], None], captures: bool) -> None:
        if self._program is not None and self._program([]) is not None:
            return
        if not self._may or self._program is not None or captures:
            run()
            return
        recorder = _C._Recorder([], self._trace)
        recorder.start()
        try:
            run()
        finally:
            recorder.stop()
        trace = recorder.finish([])
        if isinstance(trace, str):
            self._may = False
        elif self._trace is None:
            self._trace = trace
        else:
            program = trace.program(self._trace)
            self._trace, self._may = None, False
            self._program = None if isinstance(program, str) else program
