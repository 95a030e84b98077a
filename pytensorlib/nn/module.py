"""``Module``: a tree of parameters, buffers and submodules that can be called."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytensorlib as pt

from .. import Tensor
from ._hooks import Hookable, RemovableHandle
from ._state_dict import Stateful
from .parameter import Buffer, Parameter, is_lazy

M = TypeVar("M", bound="Module")

_global_parameter_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_buffer_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_module_hooks: OrderedDict[int, Callable] = OrderedDict()


def _watch(hooks: OrderedDict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, name, param)`` whenever a parameter is registered."""
    return _watch(_global_parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, name, buffer)`` whenever a buffer is registered."""
    return _watch(_global_buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, name, submodule)`` whenever a submodule is registered."""
    return _watch(_global_module_hooks, hook)


def _replaced(hooks: OrderedDict, module: Any, name: str, value: Any) -> Any:
    for hook in hooks.values():
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def _typename(value: Any) -> str:
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _parse_to(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory format out of the arguments of ``Module.to``."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    tensor, memory_format = kwargs.pop("tensor", None), kwargs.pop("memory_format", None)
    non_blocking = kwargs.pop("non_blocking", False)
    kwargs.pop("copy", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    for position, value in enumerate(args):
        if isinstance(value, Tensor):
            tensor = value
        elif isinstance(value, pt.dtype):
            dtype = value
        elif isinstance(value, bool) and position > 0:
            non_blocking = value
            break  # what may follow is `copy`, which modules ignore
        elif position == 0 and isinstance(value, (str, int, pt.device)):
            device = value
        elif value is not None:
            raise TypeError(
                "to() received an invalid combination of arguments: expected a device, a dtype "
                f"or a Tensor, got {type(value).__name__}"
            )
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    return None if device is None else pt.device(device), dtype, non_blocking, memory_format


def _missing_forward(self: Any, *input: Any) -> Any:
    """What the module computes; every subclass overrides it."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(Hookable, Stateful):
    """Base class of all neural network modules.

    Assigning a ``Parameter``, ``Buffer`` or ``Module`` to an attribute registers it.
    A subclass calls ``super().__init__()`` first and defines ``forward``.

    Examples
    --------
    >>> class Twice(nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(torch.ones(1))
    tensor([2.])
    """

    dump_patches = False
    call_super_init = False
    training: bool
    forward: Callable[..., Any] = _missing_forward

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (kwargs or args):
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")
        # Straight into __dict__: __setattr__ below looks for these names.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Registration

    def _check_name(self, kind: str, name: Any, registered: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registered:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep ``tensor`` as part of the module's state without training it.

        A buffer that is not persistent is left out of ``state_dict``.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = _replaced(_global_buffer_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name and keeps it out of ``state_dict``."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if not is_lazy(param) and param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. A parameter must be "
                    "a leaf of the graph: make it from values, and compute from it in forward()."
                )
            param = _replaced(_global_parameter_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under ``name``; None reserves the name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _replaced(_global_module_hooks, self, name, module)

    register_module = add_module

    # Attributes

    def _forget(self, name: str, *tables: Any) -> None:
        for table in tables:
            if isinstance(table, set):
                table.discard(name)
            elif table is not None:
                table.pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params, buffers = own.get("_parameters"), own.get("_buffers")
        modules, hidden = own.get("_modules"), own.get("_non_persistent_buffers_set")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, buffers, modules, hidden)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, params, buffers, hidden)
            modules[name] = _replaced(_global_module_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = _replaced(_global_module_hooks, self, name, value)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer):
                self.register_buffer(name, value, value.persistent)  # type: ignore[attr-defined]
            else:
                buffers[name] = _replaced(_global_buffer_hooks, self, name, value)
        elif isinstance(value, Tensor) and isinstance(value, Buffer):
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, own)
            self.register_buffer(name, value, value.persistent)  # type: ignore[attr-defined]
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__]
        names += [*self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Modules pickled by old versions lack what was added since.
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        tables = (self._forward_hooks, self._forward_pre_hooks)
        if any(tables) or self._backward_hooks or self._backward_pre_hooks:
            self.__dict__["_hooked"] = True

    # Looking up by dotted name

    def get_submodule(self, target: str) -> Module:
        """The submodule with this dotted name; ``""`` is the module itself."""
        module: Module = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` under a dotted name; with ``strict`` the name must exist."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_registered(self, target: str, table: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in getattr(module, table):
            raise AttributeError(f"`{name}` is not {kind}")
        return getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with this dotted name."""
        return self._get_registered(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with this dotted name."""
        return self._get_registered(target, "_buffers", "a buffer")

    # Walking the tree

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module and all below it, each with its dotted name, parents first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        memo = set()
        owners: Any = [(prefix, self)]
        if recurse:
            owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in owners:
            for name, value in get_members_fn(module):
                if value is None or id(value) in memo:
                    continue
                if remove_duplicate:
                    memo.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, as an optimizer takes them."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call ``fn`` on every submodule and then on the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Moving and converting

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Replace every parameter, gradient and buffer by ``fn`` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            grad = None if is_lazy(param) else param.grad
            with pt.no_grad():
                moved = fn(param)
                moved_grad = None if grad is None else fn(grad)
            if moved.is_meta != param.is_meta:  # a tensor cannot gain or lose its storage
                self._parameters[name] = replacement = Parameter(moved, param.requires_grad)
                replacement.grad = moved_grad
                continue
            if moved_grad is not None:
                param.grad = None
            param.data = moved
            if moved_grad is not None:
                param.grad = moved_grad.requires_grad_(grad.requires_grad)  # type: ignore[union-attr]
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Move to a device and convert floating point values to a dtype, in place.

        ``to(device, dtype, non_blocking)``, ``to(dtype)``, ``to(tensor)``; also
        ``memory_format`` by name, for parameters of 4 or 5 dimensions.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            options = {} if device is None else {"device": device}
            if dtype is not None and (t.is_floating_point() or t.is_complex()):
                options["dtype"] = dtype
            if memory_format is not None and not is_lazy(t) and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            return t.to(**options, non_blocking=non_blocking) if options else t

        return self._apply(convert)

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Move to a device without copying the values."""
        return self._apply(lambda t: pt.empty_like(t, device=device), recurse=recurse)

    def cpu(self: M) -> M:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: M, device: Any = None) -> M:
        """Move to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def type(self: M, dst_type: Any) -> M:
        """Convert every parameter and buffer to ``dst_type``."""
        return self._apply(lambda t: t.type(dst_type))

    def _to_float(self: M, dtype: Any) -> M:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: M) -> M:
        """Convert floating point values to float32."""
        return self._to_float(pt.float32)

    def double(self: M) -> M:
        """Convert floating point values to float64."""
        return self._to_float(pt.float64)

    def half(self: M) -> M:
        """Convert floating point values to float16."""
        return self._to_float(pt.float16)

    def bfloat16(self: M) -> M:
        """Convert floating point values to bfloat16."""
        return self._to_float(pt.bfloat16)

    def share_memory(self: M) -> M:
        """Move the storages to memory that other processes can see."""
        return self._apply(lambda t: t.share_memory_())

    # Training

    def train(self: M, mode: bool = True) -> M:
        """Set training mode, which changes dropout and batch normalisation."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Say whether gradients are computed for all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for param in self.parameters():
            if is_lazy(param) or param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    # Showing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What ``repr`` shows between the parentheses; override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(m))}" for name, m in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)" if body else f"{self._get_name()}()"
