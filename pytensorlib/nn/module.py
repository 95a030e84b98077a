"""``Module``: a tree of parameters, buffers and submodules that can be called."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from .. import Tensor
from ._convert import Convertible
from ._hooks import Hookable, RemovableHandle
from ._state_dict import Stateful
from ._tree import Tree
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
    """Run ``hook(module, name, param)`` whenever a parameter is registered, in any module.

    Parameters
    ----------
    hook : callable
        What it returns, unless that is None, takes the parameter's place.

    Returns
    -------
    RemovableHandle
        Takes the hook away.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> seen = []
    >>> register = nn.modules.module.register_module_parameter_registration_hook
    >>> handle = register(lambda module, name, param: seen.append(name))
    >>> _ = nn.Linear(3, 2)
    >>> handle.remove()
    >>> seen
    ['weight', 'bias']
    """
    return _watch(_global_parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, name, buffer)`` whenever a buffer is registered, in any module.

    Parameters
    ----------
    hook : callable
        What it returns, unless that is None, takes the buffer's place.

    Returns
    -------
    RemovableHandle
        Takes the hook away.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> seen = []
    >>> register = nn.modules.module.register_module_buffer_registration_hook
    >>> handle = register(lambda module, name, buffer: seen.append(name))
    >>> _ = nn.BatchNorm1d(2)
    >>> handle.remove()
    >>> seen
    ['running_mean', 'running_var', 'num_batches_tracked']
    """
    return _watch(_global_buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Run ``hook(module, name, submodule)`` whenever a submodule is registered, in any module.

    Parameters
    ----------
    hook : callable
        What it returns, unless that is None, takes the submodule's place.

    Returns
    -------
    RemovableHandle
        Takes the hook away.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> seen = []
    >>> register = nn.modules.module.register_module_module_registration_hook
    >>> handle = register(lambda module, name, submodule: seen.append(name))
    >>> _ = nn.Sequential(nn.ReLU())
    >>> handle.remove()
    >>> seen
    ['0']
    """
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


def _missing_forward(self: Any, *input: Any) -> Any:
    """Compute the module's output; every subclass overrides this."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class _CallSignature:
    """The signature that `inspect.signature` reports; the extension's own call has none."""

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None or type(module).__call__ is not Module.__call__:
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature

        kinds = {"args": Parameter.VAR_POSITIONAL, "kwargs": Parameter.VAR_KEYWORD}
        return Signature([Parameter(name, kind) for name, kind in kinds.items()])


class Module(Hookable, Stateful, Tree, Convertible):
    """Base class of all neural network modules: a tree of parameters, buffers and other modules.

    Assigning a `Parameter`, `Buffer` or `Module` to an attribute registers it: `parameters`,
    `state_dict` and `to` then see it. A subclass calls ``super().__init__()`` first and defines
    ``forward``, which a call of the module runs.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(3, 4)
    ...         self.output = nn.Linear(4, 2)
    ...
    ...     def forward(self, x):
    ...         return self.output(self.hidden(x).relu())
    >>> net = Net()
    >>> net(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'output.weight', 'output.bias']
    """

    dump_patches = False
    call_super_init = False
    __signature__ = _CallSignature()
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
        """Keep a tensor as part of the module's state without training it.

        Parameters
        ----------
        name : str
            The attribute's name, without dots.
        tensor : Tensor or None
            None reserves the name.
        persistent : bool, default True
            Whether it is part of ``state_dict``.

        Raises
        ------
        KeyError
            The name is taken, empty or has a dot.
        TypeError
            `tensor` is none.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> class Mean(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.register_buffer("count", torch.tensor(0))
        >>> Mean().state_dict()
        OrderedDict([('count', tensor(0))])
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
        """Add a parameter; the same as assigning it, but that None reserves the name.

        Parameters
        ----------
        name : str
            The attribute's name, without dots.
        param : Parameter or None
            None keeps the name out of ``state_dict``.

        Raises
        ------
        KeyError
            The name is taken, empty or has a dot.
        TypeError
            `param` is no `Parameter`.
        ValueError
            It is the result of an operation.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> net = nn.Module()
        >>> net.register_parameter("scale", nn.Parameter(torch.ones(2)))
        >>> net.scale.requires_grad
        True
        """
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
        """Add a submodule; the same as assigning it, also called ``register_module``.

        Parameters
        ----------
        name : str
            The attribute's name, without dots.
        module : Module or None
            None reserves the name.

        Raises
        ------
        KeyError
            The name is taken, empty or has a dot.
        TypeError
            `module` is none.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> net = nn.Sequential()
        >>> net.add_module("act", nn.ReLU())
        >>> net.act
        ReLU()
        """
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

    def __getstate__(self) -> dict[str, Any]:
        # What calls asked for belongs to this object: a copy is a module that is not compiled.
        # Whether there are hooks is found again; a pickle has the names of PyTorch's alone.
        left = ("_compiled_call_impl", "_hooked")
        return {k: v for k, v in self.__dict__.items() if k not in left}

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

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let this module's calls be matched with those before, as `torch.compile` does, in place.

        The module stays what it is: its ``state_dict`` and type do not change, and a copy of it
        is not compiled.

        Parameters
        ----------
        *args, **kwargs
            As `torch.compile` takes them.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> net = torch.nn.Linear(2, 1)
        >>> net.compile()
        >>> list(net.state_dict()), net(torch.ones(3, 2)).shape
        (['weight', 'bias'], torch.Size([3, 1]))
        """
        from ..compiler import compile as compiled  # slow to load

        self._compiled_call_impl = compiled(self._call_impl, *args, **kwargs)
        self.__dict__["_hooked"] = True

    # Training

    def train(self: M, mode: bool = True) -> M:
        """Set training mode, which changes dropout and batch normalisation, here and in all
        submodules.

        Parameters
        ----------
        mode : bool, default True
            False sets evaluation mode.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        ValueError
            `mode` is no bool.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> nn.Dropout(0.5).train(False)(torch.ones(3))
        tensor([1., 1., 1.])
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: ``train(False)``. It does not switch gradients off; `no_grad` does.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> nn.Sequential(nn.Dropout(0.5)).eval()(torch.ones(3))
        tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Say whether gradients are computed for all parameters: False freezes the module.

        Parameters
        ----------
        requires_grad : bool, default True
            Whether they are.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).requires_grad_(False).weight.requires_grad
        False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros.

        Parameters
        ----------
        set_to_none : bool, default True
            Drop them, which is quicker.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> net = nn.Linear(3, 2)
        >>> net(torch.ones(3)).sum().backward()
        >>> net.zero_grad()
        >>> net.weight.grad is None
        True
        """
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

    def _replicate_for_data_parallel(self) -> Any:
        """Return a copy that has its own tables, without parameters."""
        twin = type(self).__new__(type(self))
        Module.__init__(twin)
        tables = ("_parameters", "_buffers", "_modules")
        twin.__dict__.update({k: v for k, v in self.__dict__.items() if k not in tables})
        twin._buffers.update(self._buffers)
        twin._modules.update(self._modules)
        twin.__dict__["_is_replica"] = True
        return twin

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what ``repr`` shows between the parentheses; a subclass may override it.

        Returns
        -------
        str
            One line or several.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).extra_repr()
        'in_features=3, out_features=2, bias=True'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(m))}" for name, m in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)" if body else f"{self._get_name()}()"
