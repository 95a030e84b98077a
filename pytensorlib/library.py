"""Operators that programs define in Python, under a name of their own in `torch.ops`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from . import _alias, _gpu
from ._absent.modules import fill, tell_missing
from ._ops import ops, registered
from ._ops.check import opcheck
from ._ops.custom import CustomOpDef, _found, _split, custom_op
from ._ops.schema import infer_schema

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
_alias.adopt(globals(), ["CustomOpDef", "custom_op", "infer_schema", "opcheck"])

NO_COMPILER = "there is no compiler for kernels of GPUs here; an operator is a Python function."
fill(globals(), NO_COMPILER, "get_ctx get_kernel triton_op wrap_triton")

# The keys under which PyTorch's programs register kernels, and the devices that they mean here.
_KEYS = {"CPU": "cpu", "cpu": "cpu", _gpu.OWN: _gpu.OWN, "PrivateUse1": _gpu.OWN}
_ALL = ("", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "default", None)
_ELSEWHERE = {"CUDA", "cuda", "XPU", "xpu", "MPS", "mps", "HPU", "QuantizedCPU", "AutocastCPU"}


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
        elif key in _KEYS or key.lower() == _gpu.name():
            op.register_kernel(_KEYS.get(key, _gpu.OWN), fn)
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
    """Say how `torch.vmap` computes an operator for all slices; also a decorator.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    func : callable, optional
        ``func(info, in_dims, *args)`` returns the results for all slices and the dimensions of
        these. `in_dims` has the form of the arguments, with None for what all slices share.
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
    """Say what a mode or a class of tensors does with an operator; also a decorator.

    Parameters
    ----------
    op : str or operator
        One that a program defined.
    torch_dispatch_class : type
        A class of modes, or of tensors, with ``__torch_dispatch__``.
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
        "cpu", or what GPUs answer as; other kinds of PyTorch's are kept and change nothing.
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


tell_missing(globals(), NO_COMPILER)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """Give a library whose operators are gone after the block."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()
