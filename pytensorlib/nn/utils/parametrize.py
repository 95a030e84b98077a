"""Parameters that are computed from others at each use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .._convert import conversion
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], Tensor | None] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once within a block.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> from pytensorlib.nn.utils import parametrize
    >>> net = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    >>> with parametrize.cached():
    ...     net.weight is net.weight
    True
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _own(module: Any, tensor: Any, name: str) -> None:
    """Make a tensor a parameter or a buffer of a module."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _put(original: Any, value: Tensor) -> None:
    """Give a parameter other memory, or make it all of what another tensor is."""
    classes = type(original), type(value)
    if conversion.swap or any(
        map(pt.utils._python_dispatch.is_traceable_wrapper_subclass_type, classes)
    ):
        if isinstance(original, Parameter) and not isinstance(value, Parameter):
            value = Parameter(value, original.requires_grad)
        pt.utils.swap_tensors(original, value)
        return
    with pt.no_grad():
        original.set_(value)


def _check_kind(made: Any, shape: Any, dtype: Any) -> None:
    """Raise where a parametrization does not make a tensor of this shape and type."""
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what, own, new in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
        if new != own:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"the `unsafe` flag is enabled.\nunparametrized {what}: {own}\n"
                f"parametrized {what}: {new}"
            )


def _check_inverse(parametrization: Any, made: Tensor, name: str) -> None:
    """Raise where the inverse of a parametrization does not make a tensor of the same kind."""
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        got = type(back).__name__
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {got}")
    for what, own, new in (("dtype", made.dtype, back.dtype), ("shape", made.shape, back.shape)):
        if new != own:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} "
                f"as module.{name}, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{what}: {own}\nreturned {what}: {new}"
            )


class ParametrizationList(ModuleList):
    """The functions that make a parameter, applied one after the other, and what they start from.

    Parameters
    ----------
    modules : sequence of Module
        The first may have ``right_inverse``, which gives what to start from; where that is several
        tensors they are ``original0``, ``original1`` and so on, else ``original``.
    original : Parameter or Tensor
        What is parametrized.
    unsafe : bool, default False
        Whether shapes and types may change.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2))
    >>> type(net.parametrizations.weight).__name__
    'ParametrizationList'
    """

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        start: Any = original
        shape, dtype = original.shape, original.dtype
        with pt.no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        start = module.right_inverse(start)
        self.is_tensor = bool(isinstance(start, Tensor))
        if not self.is_tensor and not isinstance(start, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(start).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            if start.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {start.dtype}"
                )
            if start.device != original.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\n"
                    f"right_inverse(original).device: {start.device}"
                )
            if start is not original:
                _put(original, start)
            _own(self, original, "original")
        else:
            for i, tensor in enumerate(start):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {i} of the sequence with type "
                        f"{type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)  # noqa: PLW2901
                tensor.requires_grad_(original.requires_grad)
                _own(self, tensor, f"original{i}")
        if not unsafe:
            _check_kind(self(), shape, dtype)

    def _steps(self) -> list[Any]:
        # A list that is parametrized itself has a module more, which has no number.
        return [module for name, module in self._modules.items() if name.isdigit()]

    def _starts(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set what is started from so that the parametrized tensor is `value`.

        Parameters
        ----------
        value : Tensor
            Of the parametrized tensor's shape and type.
        """
        with pt.no_grad():
            start: Any = value
            for module in reversed(self._steps()):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                start = module.right_inverse(start)
            if self.is_tensor and not isinstance(start, Tensor):
                raise ValueError(
                    f"`right_inverse` should return a tensor. Got {type(start).__name__}"
                )
            if not self.is_tensor and not isinstance(start, Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. "
                    f"Got {type(start).__name__}."
                )
            starts = [start] if self.is_tensor else list(start)
            if len(starts) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(starts)}."
                )
            for i, (own, new) in enumerate(zip(self._starts(), starts, strict=True)):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. Got element "
                        f"{i} of type {type(new).__name__}."
                    )
                if own.dtype != new.dtype:
                    which, name = ("The tensor", "original")
                    if not self.is_tensor:
                        which, name = f"Tensor {i}", f"original{i}"
                    raise ValueError(
                        f"{which} returned by `right_inverse` has dtype {new.dtype} while "
                        f"`{name}` has dtype {own.dtype}"
                    )
                _put(own, new)

    def forward(self) -> Tensor:
        """Compute the parametrized tensor."""
        first, *others = self._steps()
        made = first(*self._starts())
        for module in others:
            made = module(made)
        return made


def _give_class(module: Any) -> None:
    """Give a module a class of its own, to which properties can be added."""
    cls = type(module)

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "Make the parametrized module again and load its state into it."
        )

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        twin = self.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__ = deepcopy(self.__dict__, memo)
        # Properties are of the class, and the copy may lose its parametrizations: it needs its own.
        twin.__class__ = cls
        names = list(twin.parametrizations)
        _give_class(twin)
        for name in names:
            _show_result(twin, name)
        return twin

    space = {"__getstate__": refuse, "__module__": cls.__module__}
    if not hasattr(cls, "__deepcopy__"):
        space["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), space)


def _show_result(module: Any, name: str) -> None:
    def get(self: Any) -> Any:
        if not _cache_enabled:
            return self.parametrizations[name]()
        key = (id(self), name)
        if _cache.get(key) is None:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a function make a parameter or buffer of a module from here on.

    Parameters
    ----------
    module : Module
        Changed in place: its class becomes one of its own.
    tensor_name : str
        The parameter, which goes on as ``parametrizations.<name>.original``.
    parametrization : Module
        ``forward`` makes the tensor; ``right_inverse`` gives what to start from, so that the
        tensor can be assigned to. After one is registered, another takes what it makes; what is
        started from stays.
    unsafe : bool, default False
        Whether shape and type may change.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ValueError
        There is no such tensor, or shape or type would change.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> net = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> torch.equal(net.weight, net.weight.mT)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_kind(after, before.shape, before.dtype)
            _check_inverse(parametrization, after, tensor_name)
        known.append(parametrization)
        known.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        if not is_parametrized(module):
            _give_class(module)
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = made
        delattr(module, tensor_name)
        _show_result(module, tensor_name)
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Return whether a module, or one tensor of it, is parametrized.

    Parameters
    ----------
    module : Module
        Any.
    tensor_name : str, optional
        Ask for this tensor.

    Returns
    -------
    bool
        Submodules do not count.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.utils.parametrize.is_parametrized(nn.Linear(1, 1))
    False
    """
    known = module._modules.get("parametrizations")
    if known is None or not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrized tensor a parameter or buffer again.

    Parameters
    ----------
    module : Module
        Changed in place.
    tensor_name : str
        The tensor.
    leave_parametrized : bool, default True
        Whether it has the value that was computed last, or what that was computed from.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ValueError
        The tensor is not parametrized, or was computed from several and these are wanted.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    >>> _ = nn.utils.parametrize.remove_parametrizations(net, "weight")
    >>> [name for name, _ in net.named_parameters()]
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    known = module.parametrizations[tensor_name]
    if known.is_tensor:
        kept = known.original
        if leave_parametrized:
            with pt.no_grad():
                _put(kept, getattr(module, tensor_name))
    else:
        if not leave_parametrized:
            raise ValueError(
                "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
                "parametrized in terms of a sequence of tensors."
            )
        made = getattr(module, tensor_name)
        kept = Parameter(made.detach()) if made.requires_grad else made
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _own(module, kept, tensor_name)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class that a module had before it was parametrized.

    Parameters
    ----------
    module : Module
        Any.

    Returns
    -------
    type
        Its class, where it is not.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    >>> nn.utils.parametrize.type_before_parametrizations(net).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Parametrize a module as another is, with the same values.

    Parameters
    ----------
    from_module : Module
        A parametrized one.
    to_module : Module
        Changed in place.
    tensor_name : str, optional
        Only this tensor.

    Returns
    -------
    Module
        `to_module`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> net = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    >>> other = nn.utils.parametrize.transfer_parametrizations_and_params(net, nn.Linear(2, 1))
    >>> torch.equal(net.weight, other.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name else list(from_module.parametrizations):
        known = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for module in known._steps():
            register_parametrization(to_module, name, deepcopy(module), unsafe=known.unsafe)
        own = to_module.parametrizations[name]
        for old, new in zip(own._starts(), known._starts(), strict=True):
            _put(old, new.detach().clone())
    return to_module
