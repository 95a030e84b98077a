"""Which modules are at work."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .. import _C
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Knows, within a ``with`` block, in which modules the program is, in backward too.

    ``parents`` is the set of their names, as in state dicts and after the class of the outermost
    one, and ``"Global"``; ``is_bw`` tells whether a backward is running.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.module_tracker import ModuleTracker
    >>> class Net(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     y = torch.nn.Sequential(Net())(torch.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handles: list[Any] = []
        self._backward: int | None = None

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return _C._current_graph_task_id() != -1

    def _name(self, module: Any) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._seen:
            self._seen.add(module)
            for child_name, child in module.named_children():
                self._names[child] = f"{name}.{child_name}"
                self._name(child)
        return name

    def _on_grad(self, values: Any, note: Callable[[str], None], name: str) -> None:
        tensors = [t for t in tree_leaves(values) if isinstance(t, _C.Tensor) and t.requires_grad]

        def arrived(grads: Any) -> None:
            task = _C._current_graph_task_id()
            if task != self._backward:  # what the backward before left behind
                self._backward, self.parents = task, {"Global"}
            note(name)

        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, arrived))

    def _enter(self, name: str) -> None:
        self.parents.add(name)

    def _leave(self, name: str) -> None:
        self.parents.discard(name)

    def _before(self, module: Any, args: Any) -> None:
        name = self._name(module)
        if not self.is_bw and self._backward is not None:
            self._backward, self.parents = None, {"Global"}
        self._enter(name)
        self._on_grad(args, self._leave, name)

    def _after(self, module: Any, args: Any, output: Any) -> None:
        name = self._name(module)
        self._leave(name)
        self._on_grad(output, self._enter, name)

    def __enter__(self) -> ModuleTracker:
        self._handles += [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
