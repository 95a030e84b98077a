"""``FullyShardedDataParallel``: a module around one whose parameters are shared out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytensorlib as pt

from ..._absent.modules import lacking
from ..._absent.table import BY_MPI
from ...nn.module import Module
from .._places import place_of
from .._process_group import member
from .._same_module import sync_tensors
from ._fully_shard._fully_shard import _cast, unowned
from ._shards import Shards
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalStateDictConfig",
    "MixedPrecision",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictType",
]

INSIDE = "_fsdp_wrapped_module."


class FullyShardedDataParallel(Module):
    """A module whose parameters are shared out: each process keeps some rows of each.

    Forward and backward passes gather them when they are needed. Between passes ``parameters()``
    are the rows of this process, and so are gradients and the optimizer's state; `state_dict`
    returns whole tensors.

    Parameters
    ----------
    module : Module
        What is shared out, in place.
    process_group : ProcessGroup, optional
        All processes by default.
    sharding_strategy : ShardingStrategy, optional
        FULL_SHARD by default; SHARD_GRAD_OP keeps gathered rows until the backward pass.
    cpu_offload : CPUOffload, optional
        Must not offload.
    auto_wrap_policy : callable, optional
        Says which modules inside are gathered on their own.
    backward_prefetch : BackwardPrefetch, optional
        Not used.
    mixed_precision : MixedPrecision, optional
        The types to compute in.
    ignored_modules : iterable of Module, optional
        Left alone.
    param_init_fn : callable, optional
        Must be None.
    device_id : device, optional
        To which the module is moved first.
    sync_module_states : bool, default False
        Give all processes the first one's parameters and buffers.
    forward_prefetch, limit_all_gathers : bool
        Not used.
    use_orig_params : bool, default False
        Not used: parameters stay apart.
    ignored_states : iterable of Parameter, optional
        Left alone.
    device_mesh : DeviceMesh, optional
        Its group, instead of `process_group`.

    Raises
    ------
    ValueError
        The process has joined no group, a parameter is a scalar, or an option is not here.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.fsdp import FullyShardedDataParallel
    >>> if torch.distributed.is_initialized():
    ...     net = FullyShardedDataParallel(torch.nn.Linear(2, 2))
    """

    _fsdp_wrapped_module: Any

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: Any = None,
        mixed_precision: Any = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if strategy not in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
            raise ValueError(
                f"FullyShardedDataParallel: {strategy.name} is not here; "
                "DistributedDataParallel shares nothing out"
            )
        if param_init_fn is not None or getattr(cpu_offload, "offload_params", False):
            raise ValueError("FullyShardedDataParallel: param_init_fn and cpu_offload are not here")
        if process_group is None and device_mesh is not None:
            process_group = device_mesh.get_group()
        group: Any = member("FullyShardedDataParallel", process_group)
        if device_id is not None:
            module.to(device_id)
        if sync_module_states:
            shared = [p for p in module.parameters() if place_of(p) is None]
            sync_tensors(group, [*shared, *module.buffers()])
        ignored = [p for m in ignored_modules or () for p in m.parameters()]
        ignored += list(ignored_states or ())
        if auto_wrap_policy is not None:
            options = {
                "process_group": group,
                "sharding_strategy": strategy,
                "mixed_precision": mixed_precision,
                "ignored_states": ignored,
            }
            _wrap_inside(module, auto_wrap_policy, options)
        self._fsdp_wrapped_module = module
        self.process_group, self.sharding_strategy = group, strategy
        self.mixed_precision = mixed_precision
        kinds: tuple[Any, Any] = (
            getattr(mixed_precision, "param_dtype", None),
            getattr(mixed_precision, "reduce_dtype", None),
        )
        again = strategy is ShardingStrategy.FULL_SHARD
        object.__setattr__(self, "_shards", Shards(unowned(module, ignored), group, again, *kinds))
        self._state_kind: Any = (StateDictType.FULL_STATE_DICT, FullStateDictConfig())

    _shards: Shards

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        """Return what this module has, or the one inside."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns, with all rows of its parameters.

        Parameters
        ----------
        *args, **kwargs
            The module's.
        """
        kind = self._shards.param_dtype
        if kind is not None and self.mixed_precision.cast_root_forward_inputs:
            args, kwargs = _cast((args, kwargs), kind)
        with self._shards.whole():
            return self.module(*args, **kwargs)

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[Any]:
        """Return the modules of this class in a module.

        Parameters
        ----------
        module : Module
            Where to look.
        root_only : bool, default False
            Only those that are in no other.
        """
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inner = {id(n) for m in found for n in m.modules() if n is not m}
        return [m for m in found if not (root_only and id(m) in inner)]

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Let modules have all rows of their parameters for a while.

        Parameters
        ----------
        module : Module
            Where to look.
        recurse : bool, default True
            Also in modules inside.
        writeback : bool, default True
            Keep this process's rows of what is written.
        rank0_only, offload_to_cpu : bool
            Not used: all processes get them, where the shards are.
        with_grads : bool, default False
            Must be False.
        """
        if with_grads:
            raise ValueError("summon_full_params: with_grads is not here")
        modules = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            modules = [m for m in modules if m is module]
        with contextlib.ExitStack() as stack:
            for one in modules:
                if one._shards.shards:
                    stack.enter_context(one._shards.summoned(writeback))
            yield

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let backward passes add gradients up on this process, until one sums them."""
        modules = self.fsdp_modules(self)
        before = [m._shards.syncs for m in modules]
        for m in modules:
            m._shards.syncs = False
        try:
            yield
        finally:
            for m, syncs in zip(modules, before):
                m._shards.syncs = syncs

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that the norm of those of all processes is at most `max_norm`.

        Parameters
        ----------
        max_norm : float
            The bound.
        norm_type : float, default 2.0
            Which norm; may be infinity.
        """
        return pt.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> None:
        """Set what `state_dict` holds.

        Parameters
        ----------
        module : Module
            Where to look.
        state_dict_type : StateDictType
            Whole tensors, or this process's rows.
        state_dict_config : StateDictConfig, optional
            How it is made.
        optim_state_dict_config : object, optional
            Not used.
        """
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._state_kind = (state_dict_type, state_dict_config or FullStateDictConfig())

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """Set what `state_dict` holds, for a while.

        Parameters
        ----------
        module, state_dict_type, state_dict_config, optim_state_dict_config
            As in `set_state_dict_type`.
        """
        modules = FullyShardedDataParallel.fsdp_modules(module)
        before = [m._state_kind for m in modules]
        FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config)
        try:
            yield
        finally:
            for m, kind in zip(modules, before):
                m._state_kind = kind

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module inside: all processes must call this.

        Parameters
        ----------
        *args, **kwargs
            As of any module.
        """
        kind, config = self._state_kind
        if kind is not StateDictType.FULL_STATE_DICT or self._summoned():
            return self._plain_names(super().state_dict(*args, **kwargs))
        with self.summon_full_params(self, writeback=False):
            found = self._plain_names(super().state_dict(*args, **kwargs))
        if getattr(config, "rank0_only", False) and self.process_group.rank() > 0:
            found.clear()
        if config.offload_to_cpu:
            for name, value in found.items():
                found[name] = value.cpu()
        return found

    def _summoned(self) -> bool:
        """Return whether the modules have all rows at the moment."""
        return any(
            uses[0][0]._parameters[uses[0][1]] is not shard
            for m in self.fsdp_modules(self)
            for uses, shard in zip(m._shards.owners, m._shards.shards)
        )

    @staticmethod
    def _plain_names(state: Any) -> Any:
        for name in [n for n in state if INSIDE in n]:
            state[name.replace(INSIDE, "")] = state.pop(name)
        return state

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take over this process's rows of a state.

        Parameters
        ----------
        state_dict : dict
            What `state_dict` returned, of the kind that is set.
        strict : bool, default True
            All names must be there, and no others.
        assign : bool, default False
            Must be False.
        """
        names = {n.replace(INSIDE, ""): n for n in super().state_dict()}
        given = {names.get(n, n): v for n, v in state_dict.items()}
        if self._state_kind[0] is not StateDictType.FULL_STATE_DICT:
            return super().load_state_dict(given, strict)
        with self.summon_full_params(self):
            return super().load_state_dict(given, strict)


lacking(
    FullyShardedDataParallel,
    BY_MPI,
    "optim_state_dict optim_state_dict_to_load rekey_optim_state_dict",
)


def _wrap_inside(module: Any, policy: Any, options: dict[str, Any]) -> int:
    """Wrap the modules inside that a policy names; returns how many elements that took."""
    taken = 0
    for name, child in list(module.named_children()):
        numel = sum(p.numel() for p in child.parameters() if place_of(p) is None)
        if not numel or isinstance(child, FullyShardedDataParallel):
            continue
        inner = _wrap_inside(child, policy, options) if policy(child, True, numel) else 0
        rest = numel - inner
        if policy(child, False, rest):
            setattr(module, name, FullyShardedDataParallel(child, **options))
            inner = numel
        taken += inner
    return taken
