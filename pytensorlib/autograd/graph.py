"""The recorded graph as an object: nodes, edges, and hooks on what is saved in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from .. import _C

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]

#: A node of the graph: ``name()``, ``next_functions``, ``metadata``, ``register_hook(fn)``
#: and ``register_prehook(fn)``.
Node: Any = _C.Node


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor enters a node: the node and which of its outputs.

    Parameters
    ----------
    node : Node
        What receives the gradient.
    output_nr : int
        Which of the node's outputs.
    ownership_token : object, optional
        Keeps the graph alive.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.graph.GradientEdge((2 * x).grad_fn, 0).node.name()
    'MulBackward0'
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


def _node_of(tensor: Any) -> Any:
    """Return the node that receives the gradient of `tensor`; a leaf's accumulates it."""
    if isinstance(tensor, GradientEdge):
        return tensor.node
    if tensor.grad_fn is not None or not tensor.requires_grad:
        return tensor.grad_fn
    with _C._Mode(True):
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge of `tensor`, which `autograd.grad` takes in the tensor's place.

    Parameters
    ----------
    tensor : Tensor
        One that requires grad.

    Returns
    -------
    GradientEdge
        The node that receives its gradient, and which of the node's outputs it is.

    Raises
    ------
    RuntimeError
        The tensor does not require grad.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> edge = torch.autograd.graph.get_gradient_edge(x)
    >>> torch.autograd.grad((x * x).sum(), edge)
    (tensor([6.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor "
            "that does not require gradients"
        )
    return GradientEdge(_node_of(tensor), tensor.output_nr)


def increment_version(tensor: Any | Iterable[Any]) -> None:
    """Tell autograd that the memory of a tensor, or of several, was changed from outside.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensor
        What was changed; a backward that needs its old elements then raises.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.zeros(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for one in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _C._increment_version(one)


class saved_tensors_hooks:
    """Replace what operations save for backward, inside a ``with`` block.

    Parameters
    ----------
    pack_hook : callable
        Gets each tensor when it is saved; its result is kept instead.
    unpack_hook : callable
        Gets that result in backward and returns a tensor of the same content.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> def pack(saved):
    ...     print("kept", saved.detach())
    ...     return saved.numpy(force=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
    ...     y = x.square()
    kept tensor([3.])
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: Any) -> None:
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keep what is saved for backward in main memory, and move it back when it is used.

    Parameters
    ----------
    pin_memory : bool, default False
        Accepted; there is no page-locked memory here.
    device_type : str, default "cuda"
        Accepted; tensors return to the device they came from.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            return tensor.device, tensor.cpu()

        def unpack(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class _Copies:
    """Saved tensors of a block, until it ends."""

    def __init__(self) -> None:
        self.open = True
        self.cloned: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def clear(self) -> None:
        """Forget the copies."""
        self.cloned.clear()


class _Copied:
    """Stands for a copy in a node: it goes when the node does."""

    __slots__ = ("__weakref__",)


_copies: _Copies | None = None


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Copies]:
    """Let tensors that were saved for backward be written to, within a ``with`` block.

    What is saved is copied at once, so that it takes as much memory again. Backward must run
    within the block, too.

    Returns
    -------
    object
        Holds the copies, until the block ends.

    Raises
    ------
    RuntimeError
        Such a block is open.
    AssertionError
        Of a backward after the block.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y.square()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([4.])
    """
    global _copies
    if _copies is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = _Copies()

    def pack(tensor: Any) -> _Copied:
        handle = _Copied()
        copies.cloned[handle] = tensor.clone()
        return handle

    def unpack(handle: _Copied) -> Any:
        if handle not in copies.cloned:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return copies.cloned[handle]

    _copies = copies
    try:
        with saved_tensors_hooks(pack, unpack):
            yield copies
    finally:
        copies.clear()
        _copies = None


def region_activation_memory_budget(budget: float) -> Any:
    """Raise: it tells a compiler what to keep, and programs are not compiled.

    Parameters
    ----------
    budget : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        It is not between 0 and 1.
    RuntimeError
        Always, otherwise, as where PyTorch compiles nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.autograd.graph.region_activation_memory_budget(0.5)
    Traceback (most recent call last):
        ...
    RuntimeError: region_activation_memory_budget: only under torch.compile, which compiles ...
    """
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"budget must be in [0, 1], got {budget}")
    raise RuntimeError(
        "region_activation_memory_budget: only under torch.compile, which compiles nothing here; "
        "torch.utils.checkpoint.checkpoint computes parts again instead of keeping them"
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Choose whether a gradient from another stream warns: a device has one stream here.

    Parameters
    ----------
    enabled : bool
        Either: there is nothing to warn of.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Choose what backward does with a stream outside of a recorded one: streams are not recorded.

    Parameters
    ----------
    enabled : bool
        Either: it never happens.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.autograd.graph.set_override_stale_capture_stream(True)
    """


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Make `saved_tensors_hooks` raise RuntimeError(error_message) inside a block.

    Parameters
    ----------
    error_message : str
        What the error says.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with torch.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
        ...
    RuntimeError: no hooks here
    """
    before = _C._saved_tensors_hooks_get_disabled_error_message()
    _C._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if before is None:
            _C._saved_tensors_hooks_enable()
        else:
            _C._saved_tensors_hooks_disable(before)


class _Handles:
    """Several hook handles that are removed together."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take all hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all"
) -> _Handles:
    """Call `fn` once per backward with the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors that require grad.
    fn : callable
        With mode "all" it gets the list of gradients, None for those that the backward does
        not reach; with "any" it gets the first gradient that is ready.
    mode : {"all", "any"}, default "all"
        When `fn` is called.

    Returns
    -------
    handle
        Its ``remove()`` takes the hook away; it is a context manager too.

    Raises
    ------
    ValueError
        `mode` is unknown.
    AssertionError
        With mode "all", a tensor does not require grad.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook([a, b], print)
    >>> (2 * a + 3 * b).backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    task: int | None = None
    waiting = 0
    grads: list[Any] = []
    if mode == "all" and not all(tensor.requires_grad for tensor in tensors):
        raise AssertionError("register_multi_grad_hook(): every tensor must require grad")
    nodes = [_node_of(tensor) for tensor in tensors] if mode == "all" else []

    def arrived(index: int, grad: Any) -> None:
        nonlocal task, waiting, grads
        with lock:
            now = _C._current_graph_task_id()
            first = now != task
            if first:
                task = now
                grads = [None] * len(tensors)
                waiting = sum(_C._will_engine_execute_node(node) for node in nodes)
            grads[index] = grad
            waiting -= 1
            ready = waiting == 0 if mode == "all" else first
        if ready:
            fn(grads if mode == "all" else grad)

    def hook_for(index: int) -> Callable[[Any], None]:
        return lambda grad: arrived(index, grad)

    return _Handles(
        [
            tensor.register_hook(hook_for(index))
            for index, tensor in enumerate(tensors)
            if mode == "all" or tensor.requires_grad
        ]
    )
