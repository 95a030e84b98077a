"""Computing parts of a program again in backward, instead of keeping what they saved."""

from __future__ import annotations

import contextlib
import functools
import itertools
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytensorlib as pt

from .. import _C, _alias, _gpu, random
from ..amp.autocast_mode import _saved
from ..autograd import Function
from ..autograd._levels import Watch
from ..autograd.function import _watching
from ..autograd.graph import get_gradient_edge, saved_tensors_hooks
from ._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_alias.adopt(
    globals(),
    ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"],
)

_early_stop = True
_debug: bool | None = None


class GraphExecGroup:
    """Within a ``with`` block, several backwards compute each part again only once.

    No two of them may ask for the same saved tensor.

    Raises
    ------
    RuntimeError
        Such a block is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.checkpoint import GraphExecGroup, checkpoint
    >>> def two(x):
    ...     print("called")
    ...     return x.sin(), x.exp()
    >>> x = torch.zeros(1, requires_grad=True)
    >>> a, b = checkpoint(two, x, use_reentrant=False)
    called
    >>> with GraphExecGroup():
    ...     _ = torch.autograd.grad(a, x), torch.autograd.grad(b, x)
    called
    """

    _now: GraphExecGroup | None = None
    _count = itertools.count(-2, -1)

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._now is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested.")
        # In the place of the number of a backward, which is never below -1.
        self._number = next(self._count)
        GraphExecGroup._now = self
        return self

    def __exit__(self, *error: Any) -> None:
        GraphExecGroup._now = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        """Return the group of the open block."""
        return cls._now


class CheckpointError(RuntimeError):
    """A part of a program did something else when it was computed again.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.utils.checkpoint.CheckpointError, RuntimeError)
    True
    """


class DefaultDeviceType:
    """The kind of device whose random numbers would be kept where no tensor tells.

    All devices draw from one generator here, so it changes nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.utils.checkpoint.DefaultDeviceType.get_device_type()
    'wgpu'
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str | None = None) -> None:
        """Set it.

        Parameters
        ----------
        device : str, optional
            The kind; what GPUs are called where it is left out.
        """
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Return it."""
        return DefaultDeviceType._default_device_type or _gpu.name()


def _infer_device_type(*args: Any) -> str:
    """Return the type of the device that tensors among the arguments are on, the CPU's last."""
    kinds = [x.device.type for x in pt.utils._pytree.tree_leaves(args) if isinstance(x, pt.Tensor)]
    others = [kind for kind in kinds if kind not in ("cpu", "meta")]
    if len(set(others)) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of "
            "devices. Device state will only be saved for devices of a single device type, and "
            f"the remaining devices will be ignored. Device types: {sorted(set(others))}, first: "
            f"{others[0]}",
            stacklevel=2,
        )
    if others:
        return others[0]
    return kinds[0] if kinds else DefaultDeviceType.get_device_type()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Say for a block whether computing again ends when all that is needed is there.

    Parameters
    ----------
    enable : bool
        At first True.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(torch.exp, torch.ones(1, requires_grad=True), use_reentrant=False)
    """
    global _early_stop
    old, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = old


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Say for a block whether errors tell where the program saved what.

    Parameters
    ----------
    enabled : bool or None
        None leaves it to the argument of `checkpoint`.

    Examples
    --------
    >>> from pytensorlib.utils.checkpoint import set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """
    global _debug
    old, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = old


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing.

    Returns
    -------
    tuple of context managers
        For the first computation and for the second.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> first, second = torch.utils.checkpoint.noop_context_fn()
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors out of the graph, which need gradients where they did.

    Parameters
    ----------
    inputs : tuple
        What is no tensor stays as it is.

    Returns
    -------
    tuple
        Of the same length.

    Raises
    ------
    RuntimeError
        `inputs` is no tuple.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True) * 2
    >>> torch.utils.checkpoint.detach_variable((x, 3))
    (tensor([2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, pt.Tensor) else x
        for x in inputs
    )


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warn where none of the inputs needs a gradient.

    Parameters
    ----------
    inputs : sequence
        Tensors and others.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.utils.checkpoint.check_backward_validity([torch.ones(1, requires_grad=True)])
    """
    if not any(isinstance(x, pt.Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the GPUs on which tensors are, and the states of their generators.

    Parameters
    ----------
    *args : object
        Tensors, also in lists, tuples and dicts.

    Returns
    -------
    tuple of lists
        Numbers of GPUs, and uint8 tensors.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.utils.checkpoint.get_device_states(torch.ones(1))
    ([], [])
    """
    tensors = [t for t in pt.utils._pytree.tree_leaves(args) if isinstance(t, pt.Tensor)]
    numbers = sorted({t.device.index or 0 for t in tensors if t._is_gpu})
    return numbers, [_C._generator_of(n).get_state() for n in numbers]


def set_device_states(
    devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None
) -> None:
    """Put the generators of GPUs into states.

    Parameters
    ----------
    devices, states : sequence
        As of `get_device_states`.
    device_type : str, optional
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.utils.checkpoint.set_device_states([], [])
    """
    for number, state in zip(devices, states, strict=True):
        _C._generator_of(number).set_state(state)


@contextlib.contextmanager
def _random_numbers(state: Any) -> Iterator[None]:
    """Draw the numbers that followed a state, and go on afterwards as before."""
    if state is None:
        yield
        return
    now = random._states()
    random._restore(state)
    try:
        yield
    finally:
        random._restore(now)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function; backward calls it again instead of keeping what it saved.

    Parameters
    ----------
    function : callable
        Does the same both times.
    *args : object
        What it is called with.
    use_reentrant : bool, optional
        False is recommended: the graph is recorded as usual, and what it saved is computed again
        when it is first asked for. With True, the older way, backward runs a backward of its own;
        gradients come only where an argument needs one, and `autograd.grad` is refused.
    context_fn : callable, optional
        Returns a context for the first call and one for the second. For ``use_reentrant=False``.
    determinism_check : {"default", "none"}
        Whether shapes, types and devices of what was saved are compared.
    debug : bool, default False
        Whether an error tells where the program saved what.
    early_stop : bool, default True
        Whether the second call ends when all that is needed is there.
    **kwargs : object
        What else the function is called with; also ``preserve_rng_state``, by default True: the
        second call draws the random numbers of the first.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    CheckpointError
        In backward, where the function saved something else the second time.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.checkpoint import checkpoint
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: (x * x).sin().sum(), x, use_reentrant=False).backward()
    >>> torch.allclose(x.grad, 2 * x.detach() * (x * x).cos())
    True

    Notes
    -----
    Chen et al. 2016, arXiv:1604.06174.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly; "
            "use_reentrant=False is recommended. Without it True is taken.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], got {determinism_check}"
        )
    first, second = context_fn()
    if not pt.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    told = debug if _debug is None else _debug
    part = _Part(function, args, kwargs, second, preserve, early_stop and _early_stop)
    part.compares, part.tells = determinism_check == "default", told
    with saved_tensors_hooks(part.keep, part.give), first:
        result = function(*args, **kwargs)
    part.complete = True
    return result


class _Place:
    """A placeholder that a graph node holds instead of a tensor: its index among those saved."""

    __slots__ = ("__weakref__", "found", "index", "like", "where")

    def __init__(self, index: int, like: Any, where: str) -> None:
        self.index, self.like, self.where = index, like, where
        self.found: dict[int, Any] = {}


class _Enough(Exception):
    """All that is needed is there."""


class _Part:
    """One call of a function whose saved tensors are computed again."""

    def __init__(
        self, function: Any, args: tuple, kwargs: dict, context: Any, preserve: bool, stop: bool
    ) -> None:
        self.function, self.context, self.early_stop = function, context, stop
        self.compares, self.tells, self.complete = True, False, False
        self.state = random._states() if preserve else None
        self.autocast = _saved()
        # Arguments are saved as any node saves them: hooks around this part see them, and writing
        # to one before backward is noticed.
        values = [*args, *kwargs.values()]
        self.names = list(kwargs)
        self.at = [i for i, v in enumerate(values) if isinstance(v, pt.Tensor)]
        tensors = [values[i] for i in self.at]
        self.needs = [t.requires_grad for t in tensors]
        for i in self.at:
            values[i] = None
        self.values = values
        # Slices of `vmap` and tensors with tangents: they mean something where these are at work.
        self.levels = [level for level in _watching.stack if not isinstance(level, Watch)]
        self.tensors = [(t, t._version) for t in tensors] if self.levels else []
        self.inputs: Any = None
        if tensors and not self.levels:
            self.inputs = _Inputs.apply(pt.empty(0, requires_grad=True), *tensors)
        # Weak: a place that nobody holds any more needs no tensor.
        self.places: list[weakref.ref[_Place]] = []
        self.done: set[int] = set()

    def keep(self, tensor: Any) -> _Place:
        """Give a node a place for what it would save."""
        like = (tensor.shape, tensor.dtype, tensor.device)
        where = "".join(traceback.format_stack(limit=8)[:-1]) if self.tells else ""
        place = _Place(len(self.places), like, where)
        self.places.append(weakref.ref(place))
        return place

    def give(self, place: _Place) -> Any:
        """Return what a node asks for, computing it where nobody has in this backward."""
        group = GraphExecGroup._now
        task = _C._current_graph_task_id() if group is None else group._number
        if task not in place.found:
            if task in self.done and task != -1:
                raise CheckpointError(
                    "torch.utils.checkpoint: a saved tensor is asked for that this backward has "
                    "used up, or never computed again; read ctx.saved_tensors once in each backward"
                )
            self.again(task)
        if task not in place.found:
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                "during the original forward pass, or fewer"
            )
        return place.found.pop(task)

    def again(self, task: int) -> None:
        """Call the function again, and put what it saves in the places of this backward."""
        self.done.add(task)
        tensors = self.arguments()
        values = list(self.values)
        for i, t, needs in zip(self.at, tensors, self.needs, strict=True):
            values[i] = _C._detach(t).requires_grad_(needs)
        split = len(values) - len(self.names)
        kwargs = dict(zip(self.names, values[split:], strict=True))
        saved: list[Any] = []

        def keep(tensor: Any) -> Any:
            index = len(saved)
            saved.append((tensor.shape, tensor.dtype, tensor.device))
            place = self.places[index]() if index < len(self.places) else None
            if place is not None:
                self.compare(place, saved[-1])
                place.found[task] = _C._detach(tensor)
            if self.early_stop and self.complete and len(saved) == len(self.places):
                raise _Enough
            return _C._detach(tensor)

        with (
            _random_numbers(self.state),
            self.autocast(),
            saved_tensors_hooks(keep, lambda tensor: tensor),
            pt.enable_grad(),
            self.context,
            contextlib.suppress(_Enough),
            contextlib.ExitStack() as stack,
        ):
            for level in self.levels:
                if level not in _watching.stack:
                    stack.enter_context(level)
            self.function(*values[:split], **kwargs)
        if self.complete and len(saved) != len(self.places):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.places)}\n"
                f"Number of tensors saved during recomputation: {len(saved)}."
            )

    def arguments(self) -> Sequence[Any]:
        """Return the tensors that the function was called with."""
        if self.inputs is not None:
            found: Sequence[Any] = self.inputs.grad_fn.saved_tensors[1:]
            return found
        for t, version in self.tensors:
            if t._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: an argument of a checkpoint, of shape {list(t.shape)}, is "
                    f"at version {t._version}; expected version {version} instead."
                )
        return [t for t, _ in self.tensors]

    def compare(self, place: _Place, like: Any) -> None:
        """Raise unless a tensor is like the one of the first call."""
        if not self.compares or place.like == like:
            return
        names = ("shape", "dtype", "device")
        was, now = (dict(zip(names, x, strict=True)) for x in (place.like, like))
        where = ""
        if self.tells:
            here = "".join(traceback.format_stack(limit=10)[:-2])
            where = f"\nIt was saved at\n{place.where}\nand now at\n{here}"
        raise CheckpointError(
            "torch.utils.checkpoint: Recomputed values for the following tensors have different "
            f"metadata than during the forward pass.\ntensor at position {place.index}:\n"
            f"saved metadata: {was}\nrecomputed metadata: {now}{where}\n"
            "debug=True tells where they were saved."
        )


class _Inputs(Function):
    """A node that saves the arguments of a part; nobody differentiates it."""

    @staticmethod
    def forward(ctx: Any, leaf: Any, *tensors: Any) -> Any:
        ctx.save_for_backward(leaf.detach(), *tensors)
        return leaf.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("nobody differentiates the arguments of a checkpoint")


class CheckpointFunction(Function):
    """The older way of `checkpoint`: backward computes the part again and differentiates it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils.checkpoint import CheckpointFunction
    >>> x = torch.ones(1, requires_grad=True)
    >>> CheckpointFunction.apply(torch.exp, True, x).backward()
    >>> x.grad
    tensor([2.7183])
    """

    @classmethod
    def apply(cls, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Call the function without recording it, and record that.

        Parameters
        ----------
        run_function : callable
            What to call.
        preserve_rng_state : bool
            Whether the second call draws the random numbers of the first.
        *args : object
            What it is called with.
        """
        if _watching.stack:
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
                "jacrev, ...), it must override the setup_context staticmethod. A checkpoint with "
                "use_reentrant=True runs a backward of its own and has none: pass "
                "use_reentrant=False."
            )
        needs = any(isinstance(a, pt.Tensor) and a.requires_grad for a in args)
        return super().apply(
            run_function, preserve_rng_state, pt.empty(0, requires_grad=needs), *args
        )

    @staticmethod
    def forward(
        ctx: Any, run_function: Any, preserve_rng_state: bool, leaf: Any, *args: Any
    ) -> Any:
        """Call the function without recording it."""
        check_backward_validity(args)
        # A leaf that nobody can ask for: where it gets no gradient, some leaves were named.
        ctx.leaf, ctx.function = leaf, run_function
        ctx.state = random._states() if preserve_rng_state else None
        ctx.autocast = _saved()
        ctx.at = [i for i, a in enumerate(args) if isinstance(a, pt.Tensor)]
        ctx.args = [None if i in ctx.at else a for i, a in enumerate(args)]
        ctx.save_for_backward(*(args[i] for i in ctx.at))
        with pt.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call it again, recorded, and return the gradients of the arguments."""
        if not _C._will_engine_execute_node(get_gradient_edge(ctx.leaf).node):
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        args = list(ctx.args)
        for i, tensor in zip(ctx.at, ctx.saved_tensors, strict=True):
            args[i] = tensor
        inputs = detach_variable(tuple(args))
        with _random_numbers(ctx.state), ctx.autocast(), pt.enable_grad():
            outputs = ctx.function(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, pt.Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        pt.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        found = (x.grad if isinstance(x, pt.Tensor) else None for x in inputs)
        return (None, None, None, *found)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run layers one after the other in parts, each of which but the last is a `checkpoint`.

    Parameters
    ----------
    functions : Sequential or sequence of callables
        Each takes what the one before returns.
    segments : int
        How many parts there are.
    input : Tensor
        What the first takes.
    use_reentrant : bool, optional
        As of `checkpoint`.
    **kwargs
        Only ``preserve_rng_state``.

    Returns
    -------
    object
        What the last returns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> net = nn.Sequential(*(nn.Linear(2, 2) for _ in range(4)))
    >>> x = torch.ones(1, 2, requires_grad=True)
    >>> y = torch.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=False)
    >>> torch.equal(y, net(x))
    True
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly; use_reentrant=False is recommended. Without it True is taken.",
            stacklevel=2,
        )
        use_reentrant = True
    if isinstance(functions, pt.nn.Sequential):
        functions = list(functions.children())

    def run(part: Sequence[Any], x: Any) -> Any:
        return functools.reduce(lambda value, layer: layer(value), part, x)

    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        part = functions[start : start + size]
        input = checkpoint(
            functools.partial(run, part),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return run(functions[size * (segments - 1) :], input)
