"""The part of ``Module`` that finds what is below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .. import Tensor
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

M = TypeVar("M", bound="Tree")


class Tree:
    """Lookups by dotted name, and walks over submodules, parameters and buffers."""

    # Looking up by dotted name

    def get_submodule(self: Any, target: str) -> Module:
        """The submodule with this dotted name; ``""`` is the module itself."""
        from .module import Module

        module: Module = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self: Any, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` under a dotted name; with ``strict`` the name must exist."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        from .module import Module

        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_registered(self: Any, target: str, table: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in getattr(module, table):
            raise AttributeError(f"`{name}` is not {kind}")
        return getattr(module, name)

    def get_parameter(self: Any, target: str) -> Parameter:
        """The parameter with this dotted name."""
        return self._get_registered(target, "_parameters", "an nn.Parameter")

    def get_buffer(self: Any, target: str) -> Tensor:
        """The buffer with this dotted name."""
        return self._get_registered(target, "_buffers", "a buffer")

    # Walking the tree

    def named_modules(
        self: Any, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
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

    def modules(self: Any, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self: Any) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names, each once."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self: Any) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self: Any,
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
        self: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted names."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self: Any, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, as an optimizer takes them."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self: Any, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call ``fn`` on every submodule and then on the module itself."""
        own: Any = self
        for module in own.children():
            module.apply(fn)
        fn(own)
        return self
