"""An operator that a program defined: its kernels and its derivative."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytensorlib as pt

from .. import _C, _gpu
from .._higher_order_ops import control as _control
from ..autograd import Function
from ..autograd.function import _watching
from ..overrides import handle_torch_function, has_torch_function
from ..utils import _pytree as pytree
from . import OpOverload, OpOverloadPacket, ops, registered
from . import compare as _compare
from .schema import infer_schema

__all__ = ["CustomOpDef", "custom_op"]


def _has_memory(t: Any) -> bool:
    """Return whether a value is a tensor with memory of its own, and not one that wraps others."""
    wraps = getattr(type(t), "__torch_dispatch__", None) is not _C._disabled_torch_dispatch_impl
    return isinstance(t, pt.Tensor) and not wraps and t.numel() > 0


class CustomOpDef:
    """An operator made of Python functions, as `custom_op` returns it.

    Parameters
    ----------
    namespace, name : str
        It is ``torch.ops.namespace.name`` too.
    schema : str
        Its arguments and results, ``"(Tensor x) -> Tensor"``.
    fn : callable, optional
        Computes it on every device that has no kernel of its own.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.library.custom_op("docs::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return 2 * x
    >>> twice
    <CustomOpDef(docs::twice)>
    """

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any] | None = None
    ) -> None:
        self._namespace, self._name, self._qualname = namespace, name, f"{namespace}::{name}"
        self._schema = schema
        self._fake: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._kernels: dict[str | None, Callable[..., Any]] = {} if fn is None else {None: fn}
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._signature = inspect.signature(fn) if fn is not None else None
        self._may_alias = False
        self._dispatched: dict[type, Callable[..., Any]] = {}
        self._autocast: dict[str, Any] = {}
        registered[self._qualname] = self
        vars(getattr(ops, namespace)).pop(name, None)

    @property
    def _opoverload(self) -> OpOverload:
        return getattr(getattr(ops, self._namespace), self._name).default

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute the operator, and record it where an argument needs a gradient."""
        given = [*args, *kwargs.values()]
        if has_torch_function(given):
            return handle_torch_function(self._opoverload, given, *args, **kwargs)
        args, kwargs = self._bound(args, kwargs)
        if _control.recording.tracer is not None and not _control.recording.tracer.resting:
            return _control.recording.tracer.custom(self, args, kwargs)
        if self._autocast:
            from ..amp.autocast_mode import _cast, autocast, is_autocast_enabled

            for device, dtype in self._autocast.items():
                if is_autocast_enabled(device):
                    with autocast(device, enabled=False):
                        return self(*_cast(args, device, dtype), **_cast(kwargs, device, dtype))
        tensors = [a for a in _flat((args, kwargs)) if isinstance(a, pt.Tensor)]
        kernel = self._answered(tensors)
        if _compare.is_wanted(tensors):
            kernel = _compare.kernel(self, kernel)
        needs = pt.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if not (needs or _watching.stack):
            return self._checked(kernel(*args, **kwargs), tensors)
        if self._backward is None and self._may_alias and self._vmap is None:
            return kernel(*args, **kwargs)  # made of differentiable operators
        leaves, form = pytree.tree_flatten((args, kwargs))
        return _listed(self, _Recorded.apply(self, kernel, form, *leaves))

    def _bound(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if self._signature is None:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _given(self, args: Sequence[Any]) -> int:
        """Return how many arguments there are without the last ones that are the defaults."""
        count = len(args)
        names = [] if self._signature is None else list(self._signature.parameters.values())
        while 0 < count <= len(names):
            default, value = names[count - 1].default, args[count - 1]
            if isinstance(value, pt.Tensor) or type(value) is not type(default):
                break
            if value != default:
                break
            count -= 1
        return count

    def _kernel(self, tensors: Sequence[Any]) -> Callable[..., Any]:
        device = _gpu.placed(tensors[0].device.type) if tensors else "cpu"
        kernel = self._kernels.get(device)
        if kernel is None and device == "meta":
            kernel = self._fake
        kernel = kernel or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"{self._qualname}: there is no kernel for device {_gpu.shown(device)!r}, only for "
                f"{[_gpu.shown(d) for d in self._kernels if d]}; register one with register_kernel"
            )
        return kernel

    def _answered(self, tensors: Sequence[Any]) -> Callable[..., Any]:
        """Return what computes the operator, below modes and classes of tensors that answer."""

        def answered(*args: Any, **kwargs: Any) -> Any:
            found = self._registered(tensors, args, kwargs)
            if found is None:
                found = _C._ask_dispatch(self._opoverload, args, kwargs)
            return self._kernel(tensors)(*args, **kwargs) if found is None else found[0]

        return answered if _C._is_dispatched() else self._kernel(tensors)

    def _registered(self, tensors: Sequence[Any], args: Any, kwargs: Any) -> Any:
        """Return what was registered for the mode in force or a class computes, in a tuple."""
        if not self._dispatched:
            return None
        from ..utils._python_dispatch import _get_current_dispatch_mode, _pop_mode_temporarily

        op, classes = self._opoverload, tuple({type(t): None for t in tensors})
        if rule := self._dispatched.get(type(_get_current_dispatch_mode())):
            with _pop_mode_temporarily() as mode:
                return (rule(mode, op, classes, args, kwargs),)
        for cls in classes:
            if rule := self._dispatched.get(cls):
                return (rule(cls, op, classes, args, kwargs),)
        return None

    def _checked(self, result: Any, tensors: Sequence[Any]) -> Any:
        """Return a result that is no argument, nor a view of one."""
        if self._may_alias:
            return result
        held = {t.untyped_storage()._cdata for t in tensors if _has_memory(t)}
        for out in _flat(result):
            if _has_memory(out) and out.untyped_storage()._cdata in held:
                raise RuntimeError(
                    f"{self._qualname} (with implementation in {type(self).__name__}): the output "
                    "of this custom operator (1) must not also be an input to this custom "
                    "operator and (2) may not alias any inputs to this custom operator or other "
                    "returns. Return a copy: result.clone()."
                )
        return result

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Say what computes the operator on some devices; also a decorator.

        Parameters
        ----------
        device_types : str, sequence of str or None
            Such as "cpu" or "wgpu"; None means all.
        fn : callable, optional
            Takes the operator's arguments.
        """

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            kinds = [device_types] if isinstance(device_types, (str, type(None))) else device_types
            self._kernels.update(dict.fromkeys(map(_gpu.placed, kinds), fn))
            self._signature = self._signature or inspect.signature(fn)
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what shape and type results have without computing them; also a decorator.

        Parameters
        ----------
        fn : callable
            Takes the operator's arguments and returns empty tensors. It computes for tensors on
            ``meta``, and `opcheck` compares it with the kernel.
        """
        self._fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Say what the operator's gradient is.

        Parameters
        ----------
        backward : callable
            ``backward(ctx, *grads)`` returns a gradient for each argument, or None.
        setup_context : callable, optional
            ``setup_context(ctx, inputs, output)`` keeps what `backward` needs, with
            ``ctx.save_for_backward`` or as attributes. An operator with keyword-only arguments
            gets ``setup_context(ctx, inputs, keyword_only_inputs, output)``.
        """
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Say how `torch.vmap` computes the operator for all slices; also a decorator.

        Parameters
        ----------
        func : callable
            ``func(info, in_dims, *args)`` returns the results for all slices and the dimensions of
            these. `in_dims` has the form of the arguments, with None for what all slices share.
        """
        if func is None:
            return self.register_vmap
        self._vmap = func
        return func

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Say what a mode or a class of tensors does with the operator; also a decorator.

        Parameters
        ----------
        torch_dispatch_class : type
            A class of modes, or of tensors, with ``__torch_dispatch__``.
        fn : callable
            ``fn(mode, func, types, args, kwargs)`` returns the result; of tensors, `mode` is the
            class.
        """
        if fn is None:
            return lambda found: self.register_torch_dispatch(torch_dispatch_class, found)
        self._dispatched[torch_dispatch_class] = fn
        return fn

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Say what tensors are cast to in a `torch.autocast` block.

        Parameters
        ----------
        device_type : str
            "cpu", or what GPUs answer as; other kinds of PyTorch's are kept and change nothing.
        cast_inputs : dtype
            Of floating tensors on the device, but for float64; the operator then runs with
            autocast off.
        """
        if device_type not in ("cpu", "cuda", "mps", "xpu", _gpu.OWN):
            raise ValueError(f"Unknown device type: {device_type}")
        self._autocast[device_type] = cast_inputs


class _Recorded(Function):
    """A call of an operator, with the gradient that was registered."""

    @staticmethod
    def forward(op: CustomOpDef, kernel: Any, form: Any, *leaves: Any) -> Any:
        """Compute it."""
        args, kwargs = form.unflatten(leaves)
        tensors = [a for a in leaves if isinstance(a, pt.Tensor)]
        result = op._checked(kernel(*args, **kwargs), tensors)
        return tuple(result) if isinstance(result, list) else result

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Let the program keep what it needs."""
        op, _, ctx.form, *leaves = inputs
        ctx.op = op
        ctx.compared_in = _C._modules_at_work()
        if op._setup is not None:
            args, kwargs = ctx.form.unflatten(leaves)
            keyword_only = {"keyword_only_inputs": kwargs} if kwargs else {}
            op._setup(ctx=ctx, inputs=args, output=_listed(op, output), **keyword_only)

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, op: CustomOpDef, kernel: Any, form: Any, *leaves: Any
    ) -> tuple[Any, Any]:
        """Return what the program's function returns, or the results of each slice, stacked."""
        args, kwargs = form.unflatten(leaves)
        dims = form.unflatten(in_dims[3:])[0]
        if op._vmap is not None:
            given = op._given(args)
            return op._vmap(info, dims[:given], *args[:given], **kwargs)
        if "!)" in op._schema or op._schema.endswith("()"):
            raise RuntimeError(
                f"Batching rule not implemented for {op._qualname}; the fallback path doesn't work "
                "on out= or view ops, nor on those that write to their arguments. "
                "torch.library.register_vmap adds a rule"
            )
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"{op._qualname}. It runs once for each slice; torch.library.register_vmap adds one.",
            stacklevel=2,
        )

        def part(i: int) -> Any:
            pairs = zip(leaves, in_dims[3:], strict=True)
            args, kwargs = form.unflatten([t if d is None else t.select(d, i) for t, d in pairs])
            return pytree.tree_flatten(op(*args, **kwargs))

        rows = [part(i) for i in range(info.batch_size)]
        if not rows:
            raise RuntimeError(f"vmap: {op._qualname} has no batching rule, and there is no slice")
        columns = zip(*(row for row, _ in rows), strict=True)
        return rows[0][1].unflatten([pt.stack(list(column)) for column in columns]), 0

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return what the program's function returns."""
        op = ctx.op
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op._qualname} but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        given = (list(grads),) if op._schema.endswith("[]") else grads
        found = op._backward(ctx, *given)
        found = found if isinstance(found, tuple) else (found,)
        places, _ = ctx.form.children()
        if len(found) != places.num_children:
            raise RuntimeError(
                f"{op._qualname}: backward must return a gradient or None for each of "
                f"{places.num_children} arguments, got {len(found)}"
            )
        slopes: list[Any] = []
        for g, place in zip(found, places.children(), strict=True):
            # None for a whole list, too.
            flat = [None] * place.num_leaves if g is None else pytree.tree_leaves(g)
            if len(flat) != place.num_leaves:
                raise RuntimeError(
                    f"{op._qualname}: for a list of {place.num_leaves} tensors backward must "
                    f"return a list of so many gradients, got {len(flat)}"
                )
            slopes += flat
        slopes += [None] * (ctx.form.num_leaves - len(slopes))
        if _compare.is_wanted(grads):
            _compare.backward(ctx, given, found)
        return (None, None, None, *slopes)


def _listed(op: CustomOpDef, result: Any) -> Any:
    """Return a result as the operator gives it: a list where its schema says so."""
    return list(result) if op._schema.endswith("[]") and isinstance(result, tuple) else result


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        yield from _flat(tuple(value.values()))
    else:
        yield value


def _split(qualname: str) -> tuple[str, str]:
    namespace, colons, name = qualname.partition("::")
    if not (colons and namespace and name) or "::" in name:
        raise ValueError(
            f"Expected `name` to be of the form `namespace::name`, but got {qualname!r}"
        )
    return namespace, name.partition(".")[0]


def _found(op: Any) -> CustomOpDef:
    """Return the record of an operator, which is made where only its name is known yet."""
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, (OpOverload, OpOverloadPacket)):
        op = op._qualified_op_name
    if not isinstance(op, str):
        raise ValueError(f"torch.library: expected an operator or its name, got {type(op)}")
    namespace, name = _split(op)
    found = registered.get(f"{namespace}::{name}")
    if not isinstance(found, CustomOpDef):
        raise RuntimeError(f"operator {namespace}::{name} does not exist")
    return found


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a Python function; also a decorator.

    Parameters
    ----------
    name : str
        ``"namespace::name"``.
    fn : callable, optional
        Computes it; its parameters and result are annotated. Results may not be arguments or
        views of them.
    mutates_args : sequence of str or "unknown"
        Which arguments it writes to.
    device_types : str or sequence of str, optional
        Where it may run; everywhere by default.
    schema : str, optional
        Arguments and results, in the place of annotations.
    tags
        Not used.

    Returns
    -------
    CustomOpDef
        Called as the function; also ``torch.ops.namespace.name``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.library.custom_op("docs::sine", mutates_args=())
    ... def sine(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(__import__("numpy").sin(x.detach().numpy()))
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> def gradient(ctx, grad):
    ...     return grad * ctx.saved_tensors[0].cos()
    >>> sine.register_autograd(gradient, setup_context=keep)
    >>> x = torch.zeros(2, requires_grad=True)
    >>> torch.ops.docs.sine(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        namespace, bare = _split(name)
        found = schema or infer_schema(fn, mutates_args=mutates_args)
        op = CustomOpDef(namespace, bare, found, None if device_types else fn)
        op._signature = inspect.signature(fn)
        if device_types:
            op.register_kernel(device_types, fn)
        op.__doc__ = fn.__doc__
        return op

    return make if fn is None else make(fn)
