"""Tensors that a module owns: parameters, buffers and their not yet shaped forms."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from .. import Tensor

_disabled: Any = Tensor._disabled_torch_function  # type: ignore[attr-defined]
_make: Any = Tensor._make_subclass  # type: ignore[attr-defined]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Also counts a tensor of a user's subclass that was marked as a parameter."""

    def __instancecheck__(self, instance: Any) -> bool:
        if type.__instancecheck__(self, instance):
            return True
        marked = self is Parameter and isinstance(instance, Tensor)
        return marked and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that registers itself when it is assigned to a module.

    Parameters
    ----------
    data : Tensor, optional
        Values; an empty tensor when left out. Storage is shared with it.
    requires_grad : bool, default True
        Whether gradients are computed for it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.Parameter(torch.ones(2)).requires_grad
    True
    """

    # Results of functions of parameters are plain tensors.
    __torch_function__ = _disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = pt.empty(0)
        if type(data) is Tensor or isinstance(data, Parameter):
            return _make(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter: data must be a Tensor, got {type(data).__name__}. "
                "Make one with pytensorlib.tensor(...)."
            )
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            return _make(cls, marked, requires_grad)
        marked._is_param = True  # type: ignore[attr-defined]
        return marked  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            copy = self.data.clone(memory_format=pt.preserve_format)
            memo[id(self)] = type(self)(copy, self.requires_grad)
        return memo[id(self)]

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__(**options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (type(self), self.data, self.requires_grad, dict(self.__dict__))


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(self, instance: Any) -> bool:
        if type.__instancecheck__(self, instance):
            return True
        marked = self is Buffer and isinstance(instance, Tensor)
        return marked and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module stores as a buffer when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        The values.
    persistent : bool, default True
        Whether it is part of the module's ``state_dict``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> class Counter(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.count = nn.Buffer(torch.zeros(()))
    >>> Counter().state_dict()
    OrderedDict([('count', tensor(0.))])
    """

    __torch_function__ = _disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = pt.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def _rebuild(kind: Any, data: Tensor, requires_grad: bool, state: dict[str, Any]) -> Any:
    param = kind(data, requires_grad)
    param.__dict__.update(state)
    return param


def _misused(what: Any) -> str:
    """Return what is said of a parameter that is used before it has a shape."""
    return (
        f"Attempted to use an uninitialized parameter in {what}: run the lazy module once on an "
        "input, or load a state_dict, before using its parameters"
    )


def _answer(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Refuse functions and operators; attributes were asked for by name before."""
    name = func.__name__
    if name in ("__get__", "__set__", "__delete__") or name in cls._allowed:
        return _disabled(func, types, args, kwargs)
    raise ValueError(_misused(func))


def _guard() -> None:
    """Have functions ask parameters without a shape, once there are some; all calls ask then."""
    if UninitializedTensorMixin.__torch_function__ is _disabled:
        UninitializedTensorMixin.__torch_function__ = classmethod(_answer)
        Tensor._enable_torch_function()  # type: ignore[attr-defined]


class UninitializedTensorMixin:
    """Operations that a tensor without a shape refuses until ``materialize`` gives it one."""

    __torch_function__: Any = _disabled
    cls_to_become: Any
    _allowed = frozenset(
        {
            "__class__",
            "__deepcopy__",
            "__dict__",
            "__reduce_ex__",
            "__repr__",
            "cls_to_become",
            "data",
            "device",
            "dtype",
            "grad",
            "is_leaf",
            "materialize",
            "requires_grad",
            "requires_grad_",
            "to",
            "cpu",
            "float",
            "double",
            "half",
            "bfloat16",
            "is_floating_point",
            "is_complex",
            "register_hook",
            "_backward_hooks",
            "_is_param",
            "_is_buffer",
            "persistent",
            "detach",
            "is_sparse",
            "layout",
            "is_meta",
            "is_cuda",
            "copy_",
            "size",
            "get_device",
            "_allowed",
        }
    )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor a shape and uninitialised values, and make it an ordinary one."""
        data = self.data  # type: ignore[has-type]
        self.data = pt.empty(
            shape,
            device=data.device if device is None else device,
            dtype=data.dtype if dtype is None else dtype,
        )
        self.__class__ = self.cls_to_become

    def __getattribute__(self, name: str) -> Any:
        if name in UninitializedTensorMixin._allowed:
            return super().__getattribute__(name)
        if name == "shape":
            raise RuntimeError(
                "Can't access the shape of an uninitialized parameter or buffer. This error "
                "usually happens in `load_state_dict` when trying to load an uninitialized "
                "parameter into an initialized one. Call `forward` to initialize the parameters "
                "before accessing their attributes."
            )
        if name == "share_memory_":
            raise RuntimeError(
                "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
                "initialize the parameters before calling `module.share_memory()`."
            )
        if name.startswith("_"):
            return super().__getattribute__(name)
        raise ValueError(_misused(name))

    def __len__(self) -> int:
        raise ValueError(_misused("len"))

    def __repr__(self, **options: Any) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is known only at the first forward; `materialize` gives it one.

    Parameters
    ----------
    requires_grad : bool, default True
        Whether gradients are computed.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> p = nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> type(p).__name__, p.shape
    ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        _guard()
        data = pt.empty(0, device=device, dtype=dtype)
        return _make(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is known only at the first forward; `materialize` gives it one.

    Parameters
    ----------
    requires_grad : bool, default False
        Whether gradients are computed.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    persistent : bool, default True
        Whether it is part of the module's ``state_dict``.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> b = nn.UninitializedBuffer()
    >>> b.materialize((2, 3))
    >>> b.shape
    torch.Size([2, 3])
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        _guard()
        data = pt.empty(0, device=device, dtype=dtype)
        buffer = _make(cls, data, requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(
                self.requires_grad, self.device, self.dtype, self.persistent
            )
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)


def check_initialized(module: Any, name: str, use: str, before: str) -> None:
    """Raise where a parameter of a module has no shape yet, which its use needs."""
    if is_lazy(module._parameters.get(name)):
        raise ValueError(
            f"The module passed to `{use}` can't have uninitialized parameters. Make sure to run "
            f"the dummy forward before applying {before}"
        )


def is_lazy(param: Any) -> bool:
    """Whether ``param`` still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)
