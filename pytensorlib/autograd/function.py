"""Functions with a derivative of the user's own."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What `forward` leaves for `backward`. Any further attribute may be set on it.

    The engine reads ``to_save``, ``dirty_tensors``, ``non_differentiable`` and
    ``materialize_grads`` after forward, and sets ``needs_input_grad`` before it and
    ``_saved``, whose ``unpack()`` gives the saved tensors, after it.
    """

    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()
    _saved: Any = None
    _forward_cls: Any = None
    # What `save_for_forward` kept, while `jvp` runs.
    _for_forward: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward; at most one call, the last one counts."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for a `jvp` of the same function."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, _C.Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should "
                    "save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[_C.Tensor, ...]:
        """The tensors given to `save_for_backward`, checked for changes made since."""
        if self._for_forward is not None:
            return self._for_forward
        return () if self._saved is None else self._saved.unpack()

    def mark_dirty(self, *args: Any) -> None:
        """Name the inputs that forward changed in place; each must be an output too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Name the outputs that have no derivative, such as indices."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether missing output gradients reach backward as zeros or as None."""
        self.materialize_grads = value

    def name(self) -> str:
        """Return the name that the node has in a graph."""
        return type(self).__name__


class BackwardCFunction(FunctionCtx):
    """The class of what every `forward` and `backward` gets: ``ctx`` is of a class below it."""

    def apply(self, *args: Any) -> Any:
        """Return the gradients of the arguments for those of the outputs."""
        cls = self._forward_cls
        own = cls.backward if cls.backward is not Function.backward else cls.vjp
        return own(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Return what the function's `jvp` gives."""
        return self._forward_cls.jvp(self, *args)


@staticmethod  # type: ignore[misc]
def _refuse_both(ctx: Any, *grad_outputs: Any) -> Any:
    raise RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
        "only implement one of them."
    )


def _checked(setup_context: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `setup_context` that refuses to save an input that is an output as it is."""

    @functools.wraps(setup_context)
    def checked(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        setup_context(ctx, inputs, output)
        saved = {id(t) for t in (*ctx.to_save, *getattr(ctx, "saved_for_forward", ()))}
        saved -= {id(t) for t in ctx.dirty_tensors}
        outputs = output if isinstance(output, tuple) else (output,)
        for t in inputs:
            if isinstance(t, _C.Tensor) and id(t) in saved and any(o is t for o in outputs):
                raise RuntimeError(
                    "An input that has been returned as-is as output is being saved for backward. "
                    "This is not supported if you override setup_context. You should return and "
                    "save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside "
                    "the forward function itself."
                )

    return checked


class FunctionMeta(type):
    """Give each Function class a ctx class of its own, named as its node in the graph."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        if "setup_context" in attrs and bases:
            own: Any = cls
            own.setup_context = staticmethod(_checked(own.setup_context))
        if attrs.get("vjp") is not attrs.get("backward") and "vjp" in attrs:
            cls.backward = _refuse_both if "backward" in attrs else attrs["vjp"]
        cls._backward_cls = type(
            name + "Backward",
            (BackwardCFunction,),
            {"_forward_cls": cls, "__module__": cls.__module__},
        )


class Function(metaclass=FunctionMeta):
    """Base of functions that come with their own derivative.

    Write static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, or
    ``forward(*args)`` with ``setup_context(ctx, inputs, output)``; call `apply`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Exp(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> Exp.apply(torch.zeros(2))
    tensor([1., 1.])
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated: its methods are static. "
            "Call them on the class.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method: "
            f"write @staticmethod over {type(self).__name__}.forward and call "
            f"{type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be written by the subclass."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill ctx after a `forward` that does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """Return one gradient, or None, for each argument of `forward`.

        A subclass writes ``backward(ctx, *grad_outputs)``.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for "
            "your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        """Return the forward-mode derivative; to be written by the subclass."""
        raise NotImplementedError(
            "You must implement the jvp function for custom "
            "autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Return the outputs for all slices at once, and their dimensions; to be written.

        A subclass that writes it is not run for each slice where its arguments are what is mapped.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and put the function into the graph."""
        if cls.setup_context is not _default_setup_context:
            args, kwargs = _bound(cls.forward, args, kwargs)
        if stack := _watching.stack:
            return stack[-1].apply(cls, args, kwargs)
        return _C._function_apply(cls, *args, **kwargs)


# The transforms and levels of forward mode that are at work: the last one is asked how to apply a
# function.
class _Watching(threading.local):
    """Those of a thread."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


_watching = _Watching()


def _apply_below(watching: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply a function as those that are asked after one want it."""
    stack = _watching.stack
    place = stack.index(watching)
    above = stack[place:]
    del stack[place:]
    try:
        return cls.apply(*args, **kwargs)
    finally:
        stack.extend(above)


def _check_transformed(cls: Any) -> None:
    """Refuse a function of a program whose `forward` sets up its own context."""
    own = cls.__module__.partition(".")[0] in ("pytensorlib", "torch")
    if cls.setup_context is _default_setup_context and not own:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod: write "
            f"{cls.__name__}.forward without ctx, and {cls.__name__}.setup_context(ctx, inputs, "
            "output)."
        )


@functools.lru_cache(maxsize=256)
def _signature(forward: Callable[..., Any]) -> tuple[Any, int]:
    """Return the signature of a `forward`, and how many arguments have a place."""
    import inspect

    signature = inspect.signature(forward)
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature, sum(p.kind in places for p in signature.parameters.values())


def _bound(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with those by name, and those left out, in their places."""
    signature, places = _signature(forward)
    if not kwargs and len(args) >= places:
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _generated(cls: Any) -> Any:
    """Return a function by the name that its nodes have within a transform."""
    found = vars(cls).get("_within_transforms")
    if found is None:
        found = type(cls)(f"{cls.__name__}Generated", (cls,), {})
        cls._within_transforms = found
    return found


# Kept to tell whether a subclass has a setup_context of its own.
_default_setup_context = Function.setup_context
# PyTorch's class below `Function`, which does what this one does without transforms.
_SingleLevelFunction = Function


def _is_setup_context_defined(fn: Any) -> bool:
    """Return whether a `setup_context` is a function's own."""
    return fn is not _default_setup_context


class _RefuseSecondDerivative(Function):
    """An identity whose derivative is an error."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(None if t is None else t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that cannot be differentiated again; doing so raises RuntimeError.

    Parameters
    ----------
    fn : callable
        A ``backward(ctx, *grads)``; what it does is not recorded.

    Returns
    -------
    callable
        It, wrapped.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x.square()
    ...     @staticmethod
    ...     @torch.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g * ctx.saved_tensors[0]
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> torch.autograd.grad(Square.apply(x), x)
    (tensor([6.]),)
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        recording = _C.is_grad_enabled()
        with _C._Mode(False):
            outputs = fn(ctx, *args)
        needs = any(isinstance(arg, _C.Tensor) and arg.requires_grad for arg in args)
        if not (recording and needs):
            return outputs
        many = outputs if isinstance(outputs, tuple) else (outputs,)
        # Leaves that require grad make the refusing node part of the graph.
        leaves = [None if t is None else t.detach().requires_grad_() for t in many]
        refused = _RefuseSecondDerivative.apply(*leaves)
        return refused if isinstance(outputs, tuple) else refused[0]

    return wrapper


class InplaceFunction(Function):
    """A Function of the old kind that remembers whether it is to work in place.

    Parameters
    ----------
    inplace : bool, default False
        Kept as an attribute. `forward` says what it wrote to by ``ctx.mark_dirty``.

    Examples
    --------
    >>> import warnings
    >>> from pytensorlib.autograd.function import InplaceFunction
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # functions need no instances
    ...     InplaceFunction(inplace=True).inplace
    True
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _tensors_in(nested: Any) -> Iterator[Any]:
    if isinstance(nested, _C.Tensor):
        yield nested
    elif isinstance(nested, (list, tuple)):
        for item in nested:
            yield from _tensors_in(item)
    elif isinstance(nested, dict):
        for item in nested.values():
            yield from _tensors_in(item)
    elif nested is not None:
        raise ValueError(
            f"NestedIOFunction: expected tensors in lists, tuples or dicts or None, "
            f"got {type(nested).__name__}"
        )


def _rebuild(shape: Any, flat: Iterator[Any]) -> Any:
    if isinstance(shape, (list, tuple)):
        return type(shape)(_rebuild(item, flat) for item in shape)
    if isinstance(shape, dict):
        return {key: _rebuild(item, flat) for key, item in shape.items()}
    return None if shape is None else next(flat)


class NestedIOFunction(Function):
    """A Function whose inputs and outputs are nested lists, tuples and dicts of tensors.

    Subclasses write ``forward_extended(ctx, *nested)`` and ``backward_extended(ctx, *nested)``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Sums(torch.autograd.function.NestedIOFunction):
    ...     @staticmethod
    ...     def forward_extended(ctx, pairs):
    ...         return [a + b for a, b in pairs]
    ...     @staticmethod
    ...     def backward_extended(ctx, grads):
    ...         return [(g, g) for g in grads]
    >>> x = torch.ones(1, requires_grad=True)
    >>> (y,) = Sums.apply([(x, 2 * x)])
    >>> torch.autograd.grad(y, x)
    (tensor([3.]),)
    """

    @classmethod
    def apply(cls, *nested: Any) -> Any:
        """Run `forward_extended` on the nested arguments."""
        shapes: dict[str, Any] = {"in": nested}
        flat = _C._function_apply(cls, shapes, *_tensors_in(nested))
        flat = flat if isinstance(flat, tuple) else (flat,)
        return _rebuild(shapes["out"], iter(flat))

    @staticmethod
    def forward(ctx: Any, shapes: dict[str, Any], *flat: Any) -> Any:
        ctx._shapes = shapes
        output = ctx._forward_cls.forward_extended(ctx, *_rebuild(shapes["in"], iter(flat)))
        shapes["out"] = output
        return tuple(_tensors_in(output))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        nested = _rebuild(ctx._shapes["out"], iter(grads))
        nested = nested if isinstance(ctx._shapes["out"], tuple) else (nested,)
        result = ctx._forward_cls.backward_extended(ctx, *nested)
        result = result if isinstance(result, tuple) else (result,)
        return (None, *_tensors_in(result))


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """Return a function that maps what fits a condition, in containers of any depth."""

    def mapped(obj: Any) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            values = (mapped(x) for x in obj)
            return type(obj)(*values) if hasattr(obj, "_fields") else type(obj)(values)
        if isinstance(obj, dict):
            return {name: mapped(value) for name, value in obj.items()}
        wanted = f", but got {condition_msg}" if condition_msg else ""
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type "
            f"{type(obj).__name__}. Accepted types: {wanted or 'containers of tensors'}"
        )

    return mapped
