"""Modules and parameters in sequences and dictionaries."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ... import Tensor
from ..module import Module, _indent
from ..parameter import Parameter


def _position(index: Any, length: int) -> int:
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


def _pairs(name: str, items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for position, item in enumerate(items):
        if not isinstance(item, Iterable):
            raise TypeError(
                f"{name} update sequence element #{position} should be Iterable; "
                f"is {type(item).__name__}"
            )
        pair = tuple(item)
        if len(pair) != 2:
            raise ValueError(
                f"{name} update sequence element #{position} has length {len(pair)}; 2 is required"
            )
        yield pair


class Container(Module):
    """The deprecated base of containers; it warns. Use `Module`.

    Parameters
    ----------
    **kwargs
        Modules by name.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     nn.Container(act=nn.ReLU())
    Container(
      (act): ReLU()
    )
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Modules under consecutive numbers."""

    def _key(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        doomed = keys[index] if isinstance(index, slice) else [self._key(index)]
        for key in doomed:
            delattr(self, key)
        # The rest move up so that the numbers have no gap.
        self._modules = OrderedDict(zip(map(str, range(len(self))), self._modules.values()))

    def pop(self, index: Any) -> Any:
        """Remove and return one module."""
        module = self._modules[self._key(index)]
        del self[index]
        return module


class Sequential(_Numbered):
    """Modules called one after the other; each gets what the one before returned.

    Parameters
    ----------
    *args : Module, or one OrderedDict of them
        Named by number, or by the keys.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> net(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    >>> net[1]
    ReLU()
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        both = Sequential()
        for module in chain(self, other):
            both.append(module)
        return both

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        for module in list(other):
            self.append(module)
        return self

    def __mul__(self, times: int) -> Any:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        many = Sequential()
        for _ in range(times):
            for module in self:
                many.append(module)
        return many

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Any:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        modules = list(self)
        for _ in range(times - 1):
            self.extend(modules)
        return self

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before position ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        index += length if index < 0 else 0
        for position in range(length, index, -1):
            self._modules[str(position)] = self._modules[str(position - 1)]
        self._modules[str(index)] = module
        return self

    def extend(self, sequential: Iterable[Module]) -> Any:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(_Numbered):
    """A list whose modules are registered: the module that has it sees their parameters.

    Parameters
    ----------
    modules : iterable of Module, optional
        The first members.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
    >>> layers.append(nn.Linear(2, 1))[-1]
    Linear(in_features=2, out_features=1, bias=True)
    >>> sum(p.numel() for p in layers.parameters())
    9
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __iadd__(self, modules: Iterable[Module]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        lines = []
        first = 0
        for position in range(1, len(texts) + 1):
            if position < len(texts) and texts[position] == texts[first]:
                continue
            label, count = f"({first})", position - first
            if count > 1:
                label = f"({first}-{position - 1}): {count} x {texts[first]}"
                lines.append(_indent(label))
            else:
                lines.append(_indent(f"{label}: {texts[first]}"))
            first = position
        body = "\n  ".join(lines)
        return f"{self._get_name()}(\n  {body}\n)"

    def insert(self, index: int, module: Module) -> None:
        """Add a module before position ``index``."""
        for position in range(len(self), index, -1):
            self._modules[str(position)] = self._modules[str(position - 1)]
        self._modules[str(index)] = module

    def append(self, module: Module | None) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self


class ModuleDict(Module):
    """A dictionary whose modules are registered: the module that has it sees their parameters.

    Parameters
    ----------
    modules : mapping or iterable of (str, Module), optional
        The first members.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> acts = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    >>> list(acts), acts["relu"](torch.tensor([-1.0]))
    (['relu', 'tanh'], tensor([0.]))
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: Any) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove everything."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove and return one module."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names with modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add or replace modules, from a mapping or from (name, module) pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        if isinstance(modules, (Mapping, ModuleDict)):
            modules = modules.items()
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _as_parameter(value: Any) -> Any:
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


def _describe(value: Any, kind: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    label = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(str(size) for size in value.shape)
    device = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    return f"{label} containing: [{kind} of size {sizes}{device}]"


def _values_repr(items: Iterable[tuple[Any, Any]], by_type: bool) -> str:
    lines = []
    for key, value in items:
        kind = getattr(value, "dtype", None)
        if by_type and isinstance(value, Tensor):
            kind = value.type()
        lines.append(f"  ({key}): {_describe(value, kind)}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list whose tensors become registered parameters; other values are kept as they are.

    Parameters
    ----------
    values : iterable, optional
        The first members.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> terms = nn.ParameterList([torch.ones(2), torch.zeros(3)])
    >>> [p.shape for p in terms.parameters()]
    [torch.Size([2]), torch.Size([3])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            found = type(self)()
            for position in range(*index.indices(len(self))):
                found.append(self[position])
            return found
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[position] for position in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Any:
        """Add a value at the end."""
        position = len(self)
        self._size += 1
        self[position] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return _values_repr(enumerate(self), by_type=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors become registered parameters; other values are kept as they are.

    Parameters
    ----------
    parameters : mapping or iterable of (str, value), optional
        The first members.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> terms = nn.ParameterDict({"scale": torch.ones(2)})
    >>> terms["scale"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need "
                "non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._attribute(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        both = other.copy()
        both.update(self)
        return both

    def __ior__(self, other: ParameterDict) -> Any:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A new dictionary that holds the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, which becomes ``default`` when it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return one value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last pair."""
        key, _ = self._keys.popitem()
        value = getattr(self, key)
        delattr(self, key)
        return key, value

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with the same value for all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names with values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add or replace values, from a mapping or from (name, value) pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, "
                f"but got {type(parameters).__name__}"
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            parameters = parameters.items()
        elif isinstance(parameters, Mapping):
            parameters = sorted(parameters.items())
        for key, value in _pairs("ParameterDict", parameters):
            self[key] = value

    def extra_repr(self) -> str:
        return _values_repr(self.items(), by_type=True)

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
