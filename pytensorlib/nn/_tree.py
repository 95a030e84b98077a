"""The part of ``Module`` that visits its submodules."""

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
        """Return the submodule with a dotted name.

        Parameters
        ----------
        target : str
            Such as ``"encoder.0"``; ``""`` is the module itself.

        Returns
        -------
        Module
            The one of that name.

        Raises
        ------
        AttributeError
            There is none, or it is no module.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
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
        """Put a module under a dotted name.

        Parameters
        ----------
        target : str
            Where; all but its last part must exist.
        module : Module
            What.
        strict : bool, default False
            The last part must exist too.

        Raises
        ------
        AttributeError
            A part does not exist, or is no module.
        ValueError
            `target` is empty, or `module` is no module.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> net = nn.Sequential(nn.ReLU())
        >>> net.set_submodule("0", nn.Tanh())
        >>> net[0]
        Tanh()
        """
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
        """Return the parameter with a dotted name.

        Parameters
        ----------
        target : str
            Such as ``"encoder.0.weight"``.

        Returns
        -------
        Parameter
            The one of that name.

        Raises
        ------
        AttributeError
            There is none.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Sequential(nn.Linear(3, 2)).get_parameter("0.weight").shape
        torch.Size([2, 3])
        """
        return self._get_registered(target, "_parameters", "an nn.Parameter")

    def get_buffer(self: Any, target: str) -> Tensor:
        """Return the buffer with a dotted name.

        Parameters
        ----------
        target : str
            Such as ``"norm.running_mean"``.

        Returns
        -------
        Tensor
            The one of that name.

        Raises
        ------
        AttributeError
            There is none.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Sequential(nn.BatchNorm1d(2)).get_buffer("0.running_mean")
        tensor([0., 0.])
        """
        return self._get_registered(target, "_buffers", "a buffer")

    # Walking the tree

    def named_modules(
        self: Any, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Walk over the module and all below it, each once, with their dotted names; parents come
        first.

        Parameters
        ----------
        memo : set of Module, optional
            What was seen already.
        prefix : str
            Goes before every name.
        remove_duplicate : bool, default True
            Give a module that occurs twice only once.

        Yields
        ------
        (str, Module)
            Name and module.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> [name for name, _ in nn.Sequential(nn.Sequential(nn.ReLU())).named_modules()]
        ['', '0', '0.0']
        """
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
        """Walk over the module and all below it, each once; parents come first.

        Parameters
        ----------
        remove_duplicate : bool, default True
            Give a module that occurs twice only once.

        Yields
        ------
        Module
            One after the other.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> sum(isinstance(m, nn.ReLU) for m in nn.Sequential(nn.ReLU(), nn.ReLU()).modules())
        2
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self: Any) -> Iterator[tuple[str, Module]]:
        """Walk over the direct submodules with their names, each once.

        Yields
        ------
        (str, Module)
            Name and module.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> list(nn.Sequential(nn.ReLU(), nn.Tanh()).named_children())
        [('0', ReLU()), ('1', Tanh())]
        """
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self: Any) -> Iterator[Module]:
        """Walk over the direct submodules, each once.

        Yields
        ------
        Module
            One after the other.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> list(nn.Sequential(nn.ReLU(), nn.Tanh()).children())
        [ReLU(), Tanh()]
        """
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
        """Walk over all parameters with their dotted names, each once.

        Parameters
        ----------
        prefix : str
            Goes before every name.
        recurse : bool, default True
            Also those of submodules.
        remove_duplicate : bool, default True
            Give a parameter that occurs twice only once.

        Yields
        ------
        (str, Parameter)
            Name and parameter.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> [(name, tuple(p.shape)) for name, p in nn.Linear(3, 2).named_parameters()]
        [('weight', (2, 3)), ('bias', (2,))]
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self: Any, recurse: bool = True) -> Iterator[Parameter]:
        """Walk over all parameters, each once: what an optimizer takes.

        Parameters
        ----------
        recurse : bool, default True
            Also those of submodules.

        Yields
        ------
        Parameter
            One after the other.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> sum(p.numel() for p in nn.Linear(3, 2).parameters())
        8
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Walk over all buffers with their dotted names, each once.

        Parameters
        ----------
        prefix : str
            Goes before every name.
        recurse : bool, default True
            Also those of submodules.
        remove_duplicate : bool, default True
            Give a buffer that occurs twice only once.

        Yields
        ------
        (str, Tensor)
            Name and buffer.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> [name for name, _ in nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self: Any, recurse: bool = True) -> Iterator[Tensor]:
        """Walk over all buffers, each once.

        Parameters
        ----------
        recurse : bool, default True
            Also those of submodules.

        Yields
        ------
        Tensor
            One after the other.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> len(list(nn.BatchNorm1d(2).buffers()))
        3
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call a function on every submodule and then on the module itself.

        Parameters
        ----------
        fn : callable
            Takes a module.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> def ones(module):
        ...     if isinstance(module, nn.Linear):
        ...         nn.init.ones_(module.weight)
        >>> nn.Sequential(nn.Linear(2, 1)).apply(ones)[0].weight.detach()
        tensor([[1., 1.]])
        """
        own: Any = self
        for module in own.children():
            module.apply(fn)
        fn(own)
        return self
