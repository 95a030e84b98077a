"""Operators that programs define in Python, under a name of their own in `torch.ops`."""

from __future__ import annotations

import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytensorlib as pt

from ._named import fill, tell_missing
from ._ops import OpOverload, OpOverloadPacket, ops, registered
from .autograd import Function

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]

NO_COMPILER = "there is no compiler for kernels of GPUs here; an operator is a Python function."
fill(globals(), NO_COMPILER, "get_ctx get_kernel triton_op wrap_triton")

# The keys under which PyTorch's programs register kernels, and the devices that they mean here.
_KEYS = {"CPU": "cpu", "cpu": "cpu", "wgpu": "wgpu", "PrivateUse1": "wgpu"}
_ALL = ("", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "default", None)
_ELSEWHERE = {"CUDA", "cuda", "XPU", "xpu", "MPS", "mps", "HPU", "QuantizedCPU", "AutocastCPU"}


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
        args, kwargs = self._bound(args, kwargs)
        if self._autocast:
            from .amp.autocast_mode import _cast, autocast, is_autocast_enabled

            for device, dtype in self._autocast.items():
                if is_autocast_enabled(device):
                    with autocast(device, enabled=False):
                        return self(*_cast(args, device, dtype), **_cast(kwargs, device, dtype))
        tensors = [a for a in _flat((args, kwargs)) if isinstance(a, pt.Tensor)]
        kernel = self._kernel(tensors)
        if not (pt.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return self._checked(kernel(*args, **kwargs), tensors)
        if self._backward is None and self._may_alias:
            return kernel(*args, **kwargs)  # made of differentiable operators
        return _Recorded.apply(self, kernel, kwargs, *args)

    def _bound(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        if self._signature is None:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _kernel(self, tensors: Sequence[Any]) -> Callable[..., Any]:
        device = tensors[0].device.type if tensors else "cpu"
        kernel = self._kernels.get(device)
        if kernel is None and device == "meta":
            kernel = self._fake
        kernel = kernel or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"{self._qualname}: there is no kernel for device {device!r}, only for "
                f"{[d for d in self._kernels if d]}; register one with register_kernel"
            )
        return kernel

    def _checked(self, result: Any, tensors: Sequence[Any]) -> Any:
        """Return a result that is no argument, nor a view of one."""
        if self._may_alias:
            return result
        held = {t.untyped_storage()._cdata for t in tensors if t.numel()}
        for out in _flat(result):
            if isinstance(out, pt.Tensor) and out.numel() and out.untyped_storage()._cdata in held:
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
            self._kernels.update(dict.fromkeys(kinds, fn))
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
        """Keep how the operator would work on a batch; also a decorator.

        Parameters
        ----------
        func : callable
            ``func(info, in_dims, *args)`` returns the results and their batch dimensions.
        """
        if func is None:
            return self.register_vmap
        self._vmap = func
        return func

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Keep what a class of tensors does with the operator; also a decorator.

        Parameters
        ----------
        torch_dispatch_class : type
            A class with ``__torch_dispatch__``.
        fn : callable
            ``fn(mode, func, types, args, kwargs)``.
        """
        return (lambda found: found) if fn is None else fn

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Say what tensors are cast to in a `torch.autocast` block.

        Parameters
        ----------
        device_type : str
            "cpu" or "wgpu"; "cuda" and "xpu" are kept and change nothing.
        cast_inputs : dtype
            Of floating tensors on the device, but for float64; the operator then runs with
            autocast off.
        """
        if device_type not in ("cpu", "cuda", "wgpu", "xpu"):
            raise ValueError(f"Unknown device type: {device_type}")
        self._autocast[device_type] = cast_inputs


class _Recorded(Function):
    """A call of an operator, with the gradient that was registered."""

    @staticmethod
    def forward(ctx: Any, op: CustomOpDef, kernel: Any, kwargs: Any, *args: Any) -> Any:
        """Compute it, and let the program keep what it needs."""
        tensors = [a for a in _flat((args, kwargs)) if isinstance(a, pt.Tensor)]
        result = op._checked(kernel(*args, **kwargs), tensors)
        ctx.op, ctx.count = op, len(args)
        if op._setup is not None:
            keyword_only = {"keyword_only_inputs": kwargs} if kwargs else {}
            op._setup(ctx=ctx, inputs=args, output=result, **keyword_only)
        return tuple(result) if isinstance(result, list) else result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return what the program's function returns."""
        if ctx.op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {ctx.op._qualname} but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        found = ctx.op._backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != ctx.count:
            raise RuntimeError(
                f"{ctx.op._qualname}: backward must return a gradient or None for each of "
                f"{ctx.count} arguments, got {len(found)}"
            )
        return (None, None, None, *found)


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


_TYPES: dict[Any, str] = {
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    pt.Tensor: "Tensor",
    pt.dtype: "ScalarType",
    pt.device: "Device",
    int | float | bool: "Scalar",
}


def _type_name(kind: Any, where: str) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    try:
        if kind in _TYPES:
            return _TYPES[kind]
    except TypeError:
        pass
    if origin in (typing.Union, types.UnionType) and type(None) in args:
        rest = [a for a in args if a is not type(None)]
        inner = functools.reduce(operator.or_, rest)
        return _type_name(inner, where) + "?"
    if isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple:
        return _type_name(args[0], where) + "[]"
    raise ValueError(f"infer_schema(func): {where} has unsupported type {kind}")


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str] = (),
    op_name: str | None = None,
) -> str:
    """Return the arguments and results of an annotated function, as operators write them.

    Parameters
    ----------
    prototype_function : callable
        Each parameter and the result has an annotation.
    mutates_args : sequence of str or "unknown"
        Which arguments it writes to; "unknown" means every tensor.
    op_name : str, optional
        Put before the parentheses.

    Returns
    -------
    str
        For example ``"(Tensor x, SymInt n=2) -> Tensor"``.

    Raises
    ------
    ValueError
        An annotation is missing, or of a type that operators do not have.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def scale(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    ...     return x * factor
    >>> torch.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float factor=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function, eval_str=True)
    written = set() if mutates_args == "unknown" else set(mutates_args)
    unknown = written - set(signature.parameters)
    if unknown:
        raise ValueError(f"infer_schema(func): mutates_args names no parameter: {sorted(unknown)}")
    parts: list[str] = []
    star = False
    for name, p in signature.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): *args and **kwargs have no types: {name}")
        if p.annotation is p.empty:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _type_name(p.annotation, f"Parameter {name}")
        if kind.startswith("Tensor") and (name in written or mutates_args == "unknown"):
            kind = kind.replace("Tensor", f"Tensor(a{len(parts)}!)", 1)
        if p.kind is p.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        default = p.default
        shown = f'"{default}"' if isinstance(default, str) else str(default).replace("torch.", "")
        parts.append(f"{kind} {name}" + ("" if default is p.empty else f"={shown}"))
    result = signature.return_annotation
    if result is signature.empty:
        raise ValueError("infer_schema(func): the return type annotation was not provided.")
    if result is None:
        shown = "()"
    elif typing.get_origin(result) is tuple:
        shown = f"({', '.join(_type_name(a, 'Return') for a in typing.get_args(result))})"
    else:
        shown = _type_name(result, "Return")
    return f"{op_name or ''}({', '.join(parts)}) -> {shown}"


class Library:
    """A namespace of operators, which programs define or give kernels to.

    Parameters
    ----------
    ns : str
        The namespace.
    kind : {"DEF", "IMPL", "FRAGMENT"}
        Whether it defines operators.
    dispatch_key : str, optional
        For which kernels: "CPU", "CompositeExplicitAutograd" ...

    Examples
    --------
    >>> import pytensorlib as torch
    >>> library = torch.library.Library("docs", "FRAGMENT")
    >>> library.define("minus_one(Tensor x) -> Tensor")
    'minus_one'
    >>> library.impl("minus_one", lambda x: x - 1, "CompositeExplicitAutograd")
    >>> torch.ops.docs.minus_one(torch.ones(1))
    tensor([0.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "aten" and kind == "DEF":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator and return its name.

        Parameters
        ----------
        schema : str
            ``"name(Tensor x) -> Tensor"``.
        alias_analysis : str, optional
            Not used.
        tags
            Not used.
        """
        found = re.match(r"\s*([\w.]+)\s*(\(.*)", schema, re.DOTALL)
        if found is None:
            raise RuntimeError(f"Library.define: not a schema: {schema!r}")
        name = found.group(1).partition(".")[0]
        op = CustomOpDef(self.ns, name, found.group(2))
        op._may_alias = "(a" in found.group(2)
        self._defined.append(op._qualname)
        return found.group(1)

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Say what computes an operator.

        Parameters
        ----------
        op_name : str or operator
            In this namespace.
        fn : callable
            Takes its arguments.
        dispatch_key : str, optional
            Where; by default what the library was made for.
        with_keyset, allow_override : bool
            Not used.
        """
        name = op_name if isinstance(op_name, str) else op_name._qualified_op_name
        name = name.rpartition("::")[2].partition(".")[0]
        op = _found(f"{self.ns}::{name}")
        key = dispatch_key or self.dispatch_key
        if key == "Meta":
            op.register_fake(fn)
        elif key in _ALL:
            op.register_kernel(None, fn)
            op._may_alias = op._may_alias or key in ("", "CompositeImplicitAutograd")
        elif key in _KEYS:
            op.register_kernel(_KEYS[key], fn)
        elif key.startswith("Autograd"):
            op.register_kernel(None, fn)
            op._may_alias = True
        elif key not in _ELSEWHERE:
            raise NotImplementedError(
                f"Library.impl: no kernels are registered for {key!r} here; there are 'CPU', "
                "'CompositeExplicitAutograd', 'CompositeImplicitAutograd', 'Autograd' and 'Meta'"
            )
        op._signature = None

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Raise: no function stands for all operators.

        Parameters
        ----------
        fn : callable
            Not used.
        dispatch_key : str, optional
            Not used.
        with_keyset : bool
            Not used.
        """
        raise NotImplementedError("Library.fallback: no function stands for all operators here")

    def _destroy(self) -> None:
        for name in self._defined:
            namespace, bare = _split(name)
            registered.pop(name, None)
            vars(getattr(ops, namespace)).pop(bare, None)
        self._defined.clear()


def fallthrough_kernel() -> None:
    """Raise: kernels do not hand calls on.

    Raises
    ------
    NotImplementedError
        Always, where it is called.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> kernel = torch.library.fallthrough_kernel
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define(
    qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()
) -> Callable[..., Any] | None:
    """Define an operator by its schema; kernels come with `impl`.

    Parameters
    ----------
    qualname : str
        ``"namespace::name"``.
    schema : str
        ``"(Tensor x) -> Tensor"``.
    lib : Library, optional
        Where it lives as long as that.
    tags
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::third", "(Tensor x) -> Tensor")
    >>> @torch.library.impl("docs::third", "default")
    ... def third(x):
    ...     return x / 3
    >>> torch.ops.docs.third(torch.tensor([6.0]))
    tensor([2.])
    """
    namespace, name = _split(qualname)
    (lib or Library(namespace, "FRAGMENT")).define(name + schema, tags=tags)
    return None


def impl(
    qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None
) -> Any:
    """Say what computes an operator on some devices; also a decorator.

    Parameters
    ----------
    qualname : str
        ``"namespace::name"``.
    types : str or sequence of str
        Devices, "default" for all; or for a `Library` and a name, PyTorch's dispatch key.
    func : callable, optional
        Takes the operator's arguments.
    lib : Library, optional
        Not used.

    Returns
    -------
    callable
        The function, or a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::fourth", "(Tensor x) -> Tensor")
    >>> _ = torch.library.impl("docs::fourth", "cpu", lambda x: x / 4)
    >>> torch.ops.docs.fourth(torch.tensor([8.0]))
    tensor([2.])
    """
    if isinstance(qualname, Library):  # impl(lib, name, dispatch_key)
        library, name, key = qualname, types, func or ""

        def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, f, key)  # type: ignore[arg-type]
            return f

        return decorate
    namespace, name = _split(qualname)

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        for key in (types,) if isinstance(types, str) else types:
            Library(namespace, "IMPL").impl(name, f, key)
        return f

    return register if func is None else register(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Say what computes an operator on some devices; also a decorator.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    device_types : str, sequence of str or None
        Such as "cpu" or "wgpu"; None means all.
    func : callable, optional
        Takes the operator's arguments.
    lib : Library, optional
        Not used.

    Returns
    -------
    callable
        The function, or a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::fifth", "(Tensor x) -> Tensor")
    >>> _ = torch.library.register_kernel("docs::fifth", "cpu", lambda x: x / 5)
    >>> torch.ops.docs.fifth(torch.tensor([10.0]))
    tensor([2.])
    """
    return _found(op).register_kernel(device_types, func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Say what an operator's gradient is.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    backward : callable
        ``backward(ctx, *grads)`` returns a gradient for each argument, or None.
    setup_context : callable, optional
        ``setup_context(ctx, inputs, output)`` keeps what `backward` needs.
    lib : Library, optional
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::sixth", "(Tensor x) -> Tensor")
    >>> _ = torch.library.register_kernel("docs::sixth", "cpu", lambda x: x / 6)
    >>> torch.library.register_autograd("docs::sixth", lambda ctx, grad: grad / 6)
    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.ops.docs.sixth(x).backward()
    >>> x.grad
    tensor([0.1667])
    """
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_fake(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """Say what shape and type an operator's results have; also a decorator.

    Parameters
    ----------
    op : str or operator
        One that a program defined; a name that nobody has yet is accepted, as libraries describe
        operators of compiled code that is not here.
    func : callable, optional
        Takes the operator's arguments and returns empty tensors.
    lib : Library, optional
        Not used.

    Returns
    -------
    callable
        The function, or a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::seventh", "(Tensor x) -> Tensor")
    >>> @torch.library.register_fake("docs::seventh")
    ... def seventh(x):
    ...     return torch.empty_like(x)
    """

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(op, str) and op not in registered:
            _split(op)
            return f
        return _found(op).register_fake(f)

    return register if func is None else register(func)


impl_abstract = register_fake


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Keep how an operator would work on a batch; also a decorator.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    func : callable, optional
        ``func(info, in_dims, *args)`` returns the results and their batch dimensions.
    lib : Library, optional
        Not used.

    Returns
    -------
    callable
        The function, or a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::eighth", "(Tensor x) -> Tensor")
    >>> _ = torch.library.register_vmap("docs::eighth", lambda info, dims, x: (x / 8, dims[0]))
    """
    return _found(op).register_vmap(func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None
) -> Any:
    """Keep what a class of tensors does with an operator; also a decorator.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    torch_dispatch_class : type
        A class with ``__torch_dispatch__``.
    func : callable, optional
        ``func(mode, func, types, args, kwargs)``.
    lib : Library, optional
        Not used.

    Returns
    -------
    callable
        The function, or a decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.library.define("docs::ninth", "(Tensor x) -> Tensor")
    >>> _ = torch.library.register_torch_dispatch("docs::ninth", torch.Tensor, lambda *a: None)
    """
    return _found(op).register_torch_dispatch(torch_dispatch_class, func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Say what tensors of an operator are cast to in a `torch.autocast` block.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    device_type : str
        "cpu" or "wgpu"; "cuda" and "xpu" are kept and change nothing.
    cast_inputs : dtype
        Of floating tensors on the device, but for float64; the operator then runs with autocast
        off.
    lib : Library, optional
        Not used.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.library.custom_op("docs::copied", mutates_args=())
    ... def copied(x: torch.Tensor) -> torch.Tensor:
    ...     return x.clone()
    >>> torch.library.register_autocast("docs::copied", "cpu", torch.bfloat16)
    >>> with torch.autocast("cpu"):
    ...     copied(torch.ones(1))
    tensor([1.], dtype=torch.bfloat16)
    """
    _found(op).register_autocast(device_type, cast_inputs)


def _copied(value: Any) -> Any:
    if isinstance(value, pt.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        return type(value)(_copied(v) for v in value)
    return {k: _copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def _check_schema(op: CustomOpDef, args: tuple, kwargs: dict[str, Any]) -> None:
    """Hold an operator to what it says of its arguments: written to only where it says so."""
    before, after = _copied((args, kwargs)), _copied((args, kwargs))
    with pt.no_grad():
        op(*after[0], **after[1])
    marks = re.findall(r"[\w\[\]?]*\(a\d*!\)[^,]*?(\w+)(?:=[^,]*)?[,)]", op._schema)
    names = list(op._signature.parameters) if op._signature else []
    for i, (old, new) in enumerate(zip(_flat(before), _flat(after), strict=True)):
        name = names[i] if i < len(names) else str(i)
        if isinstance(old, pt.Tensor) and not pt.equal(old, new) and name not in marks:
            raise RuntimeError(
                f"{op._qualname}: argument {name} was written to, which {op._schema} does not say"
            )


def _check_fake(op: CustomOpDef, args: tuple, kwargs: dict[str, Any]) -> None:
    """Hold the description of results to the results."""
    if op._fake is None:
        raise RuntimeError(f"{op._qualname}: there is no fake implementation; see register_fake")
    copied = _copied((args, kwargs))
    with pt.no_grad():
        told, found = op._fake(*args, **kwargs), op(*copied[0], **copied[1])
    for t, f in zip(_flat(told), _flat(found), strict=True):
        if isinstance(f, pt.Tensor) and (t.shape, t.dtype, t.device) != (
            f.shape,
            f.dtype,
            f.device,
        ):
            raise RuntimeError(
                f"{op._qualname}: the fake implementation says {t.dtype} {tuple(t.shape)} on "
                f"{t.device}, the result is {f.dtype} {tuple(f.shape)} on {f.device}"
            )


def _check_autograd(op: CustomOpDef, args: tuple, kwargs: dict[str, Any]) -> None:
    """Ask for the gradients, which raises where there is no formula or it gives other shapes."""
    copied = _copied((args, kwargs))
    leaves = [t for t in _flat(copied) if isinstance(t, pt.Tensor) and t.requires_grad]
    if not leaves:
        return
    outs = [o for o in _flat(op(*copied[0], **copied[1])) if isinstance(o, pt.Tensor)]
    outs = [o for o in outs if o.requires_grad]
    grads = pt.autograd.grad([o.sum() for o in outs], leaves, allow_unused=True)
    for leaf, grad in zip(leaves, grads, strict=True):
        if grad is not None and grad.shape != leaf.shape:
            raise RuntimeError(
                f"{op._qualname}: a gradient has shape {tuple(grad.shape)} for an argument of "
                f"shape {tuple(leaf.shape)}"
            )


_CHECKS = {
    "test_schema": _check_schema,
    "test_faketensor": _check_fake,
    "test_autograd_registration": _check_autograd,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check that an operator does what it says, on some arguments.

    Parameters
    ----------
    op : operator
        One that a program defined.
    args : tuple
        Arguments to call it with.
    kwargs : dict, optional
        More of them.
    test_utils : str or sequence of str
        "test_schema": only arguments that the schema marks are written to.
        "test_autograd_registration": there are gradients, of the right shapes.
        "test_faketensor": the fake implementation tells the shapes and types.
        "test_aot_dispatch_dynamic", of PyTorch's compiler, is passed over.
    raise_exception : bool, default True
        Whether to raise the first error instead of returning all.
    atol, rtol : float, optional
        Not used.

    Returns
    -------
    dict
        "SUCCESS" or the exception by the name of the check.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.library.custom_op("docs::tenth", mutates_args=())
    ... def tenth(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 10
    >>> torch.library.opcheck(tenth, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    found, results = _found(op), {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name.startswith("test_aot_dispatch"):
            continue
        if name not in _CHECKS:
            raise RuntimeError(f"opcheck: test_utils must be of {sorted(_CHECKS)}, got {name!r}")
        try:
            _CHECKS[name](found, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            results[name] = error  # type: ignore[assignment]
    return results


tell_missing(globals(), NO_COMPILER)
