"""Tensors and modules inside a module by their full names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ... import Tensor
from ..module import Module

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]

_MISSING: Any = object()


def _wants_tensor(tensor: Any) -> None:
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")


def _wants_leaf(name: str) -> None:
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Put a tensor in the place of one of a module's own.

    Parameters
    ----------
    module : Module
        Changed.
    name : str
        Of a parameter, a buffer or an attribute.
    tensor : Tensor or None
        Stays what it is: no parameter is made of it.

    Raises
    ------
    TypeError
        It is no tensor.
    KeyError
        The name is no name of the module's own.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils._named_member_accessor import set_tensor
    >>> net = torch.nn.Linear(2, 1)
    >>> set_tensor(net, "weight", torch.ones(1, 2))
    >>> net.weight
    tensor([[1., 1.]])
    """
    _wants_leaf(name)
    _wants_tensor(tensor)
    for table in (module._parameters, module._buffers):
        if name in table:
            table[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of one of a module's own; return what was there.

    Parameters
    ----------
    module : Module
        Changed.
    name : str
        Of a parameter, a buffer or an attribute that is a tensor.
    tensor : Tensor or None
        Stays what it is.
    allow_missing : bool, default False
        Whether there may be nothing of that name; the mark of that is returned, which means
        "nothing" where it is given.

    Returns
    -------
    Tensor or None
        What was there.

    Raises
    ------
    AttributeError
        There is nothing of that name.
    TypeError
        It is no tensor, or what was there is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils._named_member_accessor import swap_tensor
    >>> net = torch.nn.Linear(2, 1)
    >>> old = swap_tensor(net, "weight", torch.ones(1, 2))
    >>> old.shape
    torch.Size([1, 2])
    """
    _wants_leaf(name)
    _wants_tensor(tensor)
    for table in (module._parameters, module._buffers):
        if name in table:
            old = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return old
    old = getattr(module, name, _MISSING)
    if old is _MISSING:
        if not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    elif not isinstance(old, Tensor):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif hasattr(module, name):
        delattr(module, name)
    return old


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Put a module in the place of one of a module's own; return what was there.

    Parameters
    ----------
    module : Module
        Changed.
    name : str
        Of one of its modules.
    submodule : Module
        Another.

    Returns
    -------
    Module
        What was there.

    Raises
    ------
    KeyError
        There is no module of that name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils._named_member_accessor import swap_submodule
    >>> net = torch.nn.Sequential(torch.nn.ReLU())
    >>> swap_submodule(net, "0", torch.nn.Tanh()), net[0]
    (ReLU(), Tanh())
    """
    if name not in module._modules:
        raise KeyError(f"submodule name {name} does not exist")
    old = module._modules[name]
    module._modules[name] = submodule
    return old


class NamedMemberAccessor:
    """Gets and sets tensors of a module, and of those in it, by their full names.

    Parameters
    ----------
    module : Module
        Changed by what sets.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils._named_member_accessor import NamedMemberAccessor
    >>> net = NamedMemberAccessor(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    >>> net.set_tensor("0.weight", torch.ones(1, 2))
    >>> net.get_tensor("0.weight")
    tensor([[1., 1.]])
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    def _owner(self, name: str) -> tuple[Any, str]:
        path, _, leaf = name.rpartition(".")
        return self.get_submodule(path), leaf

    def get_submodule(self, name: str) -> Any:
        """Return the module of that name; the empty name is the module itself."""
        found, path = self.module, ""
        for part in name.split(".") if name else ():
            path = f"{path}.{part}" if path else part
            inner = found._modules.get(part) or getattr(found, part, _MISSING)
            if inner is _MISSING:
                raise AttributeError(f"{found._get_name()} has no attribute `{part}`")
            if not isinstance(inner, Module):
                raise TypeError(
                    f"submodule `{path}`: {inner} is not an instance of torch.nn.Module"
                )
            found = inner
        return found

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Put a module in the place of another; return that."""
        place, leaf = self._owner(path)
        return swap_submodule(place, leaf, value)

    def get_tensor(self, name: str) -> Any:
        """Return a tensor."""
        place, leaf = self._owner(name)
        found = getattr(place, leaf, _MISSING)
        if found is _MISSING:
            raise AttributeError(f"{place._get_name()} has no attribute `{name}`")
        if found is not None and not isinstance(found, Tensor):
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Any) -> None:
        """Put a tensor in the place of another."""
        place, leaf = self._owner(name)
        set_tensor(place, leaf, value)

    def del_tensor(self, name: str) -> None:
        """Take a tensor away."""
        place, leaf = self._owner(name)
        if not hasattr(place, leaf):
            raise AttributeError(f"{place._get_name()} has no attribute `{name}`")
        delattr(place, leaf)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Put a tensor in the place of another; return that."""
        place, leaf = self._owner(name)
        return swap_tensor(place, leaf, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """Return tensors."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Put tensors in the places of others."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Put tensors in the places of others."""
        self.set_tensors(named_tensors, named_tensors.values())

    def del_tensors(self, names: Iterable[str]) -> None:
        """Take tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False
    ) -> list[Any]:
        """Put tensors in the places of others; return those."""
        pairs = zip(names, values, strict=True)
        return [self.swap_tensor(name, value, allow_missing) for name, value in pairs]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Put tensors in the places of others; return those, and names of which there is none."""
        old: dict[str, Any] = {}
        missing = []
        try:
            for name, value in named_tensors.items():
                old[name] = self.swap_tensor(name, value, allow_missing=True)
                if old[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except BaseException:
            self.swap_tensors_dict(old, allow_missing=True)
            raise
        return old, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the names of tensors that are not among some, and those of no tensor."""
        given = set(keys)
        own = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - given), sorted(given - own)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield the parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield the buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield parameters, then buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield the modules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
