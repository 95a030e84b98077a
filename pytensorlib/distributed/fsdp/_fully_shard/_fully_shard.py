"""``fully_shard``: a module whose parameters are shared out over the processes, in place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytensorlib as pt

from ....nn.module import Module
from ..._places import place_of
from ..._process_group import member
from .._shards import Shards

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The types in which a module computes, sums gradients, and returns.

    Parameters
    ----------
    param_dtype : dtype, optional
        Of the gathered parameters and the inputs; the parameters' own by default.
    reduce_dtype : dtype, optional
        In which gradients are summed; that of the gathered parameters by default.
    output_dtype : dtype, optional
        To which results are cast.
    cast_forward_inputs : bool, default True
        Cast inputs to `param_dtype`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp import MixedPrecisionPolicy
    >>> MixedPrecisionPolicy(param_dtype=torch.bfloat16).cast_forward_inputs
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where shards live: where the parameters were.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import OffloadPolicy
    >>> OffloadPolicy()
    OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards that live on the CPU: not here, where the parameters' device keeps them.

    Parameters
    ----------
    pin_memory : bool, default True
        Not used.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import CPUOffloadPolicy
    >>> CPUOffloadPolicy().pin_memory
    True
    """

    pin_memory: bool = True


class UnshardHandle:
    """What `FSDPModule.unshard` returns: there is nothing to wait for.

    Examples
    --------
    >>> from pytensorlib.distributed.fsdp import UnshardHandle
    >>> UnshardHandle().wait()
    """

    def wait(self) -> None:
        """Return: each forward pass gathers what it needs."""


class FSDPModule:
    """What `fully_shard` adds to a module's class.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp import FSDPModule
    >>> isinstance(torch.nn.Linear(1, 1), FSDPModule)
    False
    """

    _shards: Shards
    _policy: MixedPrecisionPolicy

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns, with all rows of its parameters.

        Parameters
        ----------
        *args, **kwargs
            The module's.
        """
        policy = self._policy
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), policy.param_dtype)
        with self._shards.whole():
            out = super().forward(*args, **kwargs)  # type: ignore[misc]
        return out if policy.output_dtype is None else _cast(out, policy.output_dtype)

    def _each(self, recurse: bool) -> list[FSDPModule]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return [m for m in modules if isinstance(m, FSDPModule)]

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Set whether backward passes sum gradients, or keep them for the next that does.

        Parameters
        ----------
        requires_gradient_sync : bool
            False to add gradients up on this process.
        recurse : bool, default True
            Also for modules inside.
        """
        for module in self._each(recurse):
            module._shards.syncs = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether gathered rows are freed between the forward and the backward pass.

        Parameters
        ----------
        reshard_after_forward : bool
            False keeps them.
        recurse : bool, default True
            Also for modules inside.
        """
        for module in self._each(recurse):
            module._shards.again = reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set what sums of gradients are divided by: the number of processes by default.

        Parameters
        ----------
        factor : float
            The divisor.
        """
        self._shards.divisor = factor

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Do nothing: each forward pass gathers what it needs.

        Parameters
        ----------
        async_op : bool, default False
            Return a handle.
        """
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Do nothing: parameters are shards whenever no forward pass is under way."""


def _cast(value: Any, dtype: Any) -> Any:
    def cast(t: Any) -> Any:
        return t.to(dtype) if t.is_floating_point() else t

    return pt.utils._pytree.tree_map_only(pt.Tensor, cast, value)


def unowned(module: Any, ignored: Iterable[Any] = ()) -> list[list[tuple[Any, str]]]:
    """Return where each parameter is that no module inside shares out already."""
    leave = {id(p) for p in ignored}
    found: dict[int, list[tuple[Any, str]]] = {}
    for one in module.modules():
        for name, p in one._parameters.items():
            if p is not None and id(p) not in leave and place_of(p) is None:
                found.setdefault(id(p), []).append((one, name))
    return list(found.values())


def fully_shard(
    module: Any,
    *,
    mesh: Any = None,
    reshard_after_forward: Any = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
    ignored_params: Any = None,
) -> Any:
    """Share the parameters of a module out: each process keeps some rows of each.

    Apply it to the layers first and to the whole model last: what is applied to a module gathers
    its parameters together, but those of modules inside that have been shared out. Between passes
    ``parameters()`` are the rows of this process, and so are gradients and the optimizer's state.

    Parameters
    ----------
    module : Module or list of Module
        Changed in place; its class becomes one that is also an `FSDPModule`.
    mesh : DeviceMesh or ProcessGroup, optional
        All processes by default.
    reshard_after_forward : bool, default True
        Free the gathered rows after the forward pass, and gather them again for the backward one.
    shard_placement_fn : callable, optional
        Must be None: dimension 0 is cut.
    mp_policy : MixedPrecisionPolicy, optional
        The types to compute in.
    offload_policy : OffloadPolicy, optional
        Must be the default.
    ignored_params : set of Parameter, optional
        Left alone.

    Returns
    -------
    Module
        The module itself.

    Raises
    ------
    ValueError
        A parameter is a scalar, or an option is not here.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp import fully_shard
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    ...     for layer in net:
    ...         _ = fully_shard(layer)
    ...     _ = fully_shard(net)
    """
    if shard_placement_fn is not None:
        raise ValueError("fully_shard: shard_placement_fn is not here: dimension 0 is cut")
    if isinstance(offload_policy, CPUOffloadPolicy):
        raise ValueError("fully_shard: shards stay on the device of their parameters")
    if isinstance(module, (list, tuple)):
        for one in module:
            fully_shard(
                one,
                mesh=mesh,
                reshard_after_forward=reshard_after_forward,
                mp_policy=mp_policy,
                ignored_params=ignored_params,
            )
        return module
    if isinstance(module, FSDPModule):
        raise ValueError("fully_shard has already been applied to this module")
    group: Any = member("fully_shard", mesh.get_group() if hasattr(mesh, "get_group") else mesh)
    owners = unowned(module, ignored_params or ())
    kinds: tuple[Any, Any] = (mp_policy.param_dtype, mp_policy.reduce_dtype)
    module._shards = Shards(owners, group, reshard_after_forward is not False, *kinds)
    module._policy = mp_policy
    plain = type(module)
    module.__class__ = type(f"FSDP{plain.__name__}", (FSDPModule, plain), {})
    return module


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method of a shared-out module have all rows too, as `forward` has.

    Parameters
    ----------
    module : Module
        Of `fully_shard`; another one is left alone.
    method_name : str
        The method.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp import register_fsdp_forward_method
    >>> register_fsdp_forward_method(torch.nn.Linear(1, 1), "forward")
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)

    def gathered(*args: Any, **kwargs: Any) -> Any:
        with module._shards.whole():
            return method(*args, **kwargs)

    object.__setattr__(module, method_name, gathered)
