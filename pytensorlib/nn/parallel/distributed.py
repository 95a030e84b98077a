"""``DistributedDataParallel``: one module on several processes, each with its part of the batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytensorlib as pt

from ..module import Module

__all__ = ["DistributedDataParallel"]

MiB = 1 << 20


class DistributedDataParallel(Module):
    """A module that is the same on all processes: backward passes average its gradients.

    The first process's parameters and buffers are given to all when it is made. Gradients travel
    in buckets while the backward pass still computes others, and all processes get the same bits,
    so that equal steps of equal optimizers keep the parameters equal.

    Parameters
    ----------
    module : Module
        At least one parameter requires grad.
    device_ids : list of device, optional
        The one GPU of this process, to which inputs are moved.
    output_device : device, optional
        Not used.
    dim : int, default 0
        Not used.
    broadcast_buffers : bool, default True
        Give all processes the first one's buffers at each forward pass.
    init_sync : bool, default True
        Compare the module and give all the first one's state when it is made.
    process_group : ProcessGroup, optional
        All processes by default.
    bucket_cap_mb : float, optional
        The size of a bucket in MiB; 25 by default. The first one has at most 1.
    find_unused_parameters : bool, default False
        Look at each pass's graph for parameters without a part in it: others would wait for them.
    check_reduction : bool, default False
        Not used.
    gradient_as_bucket_view : bool, default False
        Let gradients be views of the buckets, which saves their copy.
    static_graph : bool, default False
        Every pass uses the same parameters: look for unused ones once.
    device_mesh : DeviceMesh, optional
        Its group, instead of `process_group`.

    Raises
    ------
    ValueError
        The process has joined no group.
    RuntimeError
        No parameter requires grad, or the modules differ.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(1, 1)
    >>> if torch.distributed.is_initialized():
    ...     net = torch.nn.parallel.DistributedDataParallel(net)
    """

    module: Any

    @staticmethod
    def _get_data_parallel_params(module: Any, named_params: bool = False) -> Iterator[Any]:
        """Yield the parameters that processes share, or their names with them."""
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        for name, p in module.named_parameters():
            if name not in ignored:
                yield (name, p) if named_params else p

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        from ...distributed._process_group import member
        from ...distributed._reducer import Reducer

        if process_group is None and device_mesh is not None:
            process_group = device_mesh.get_group()
        group = member("DistributedDataParallel", process_group)
        if group is None:
            raise RuntimeError("DistributedDataParallel: this process is not in the group")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        learned = [(n, p) for n, p in named if p.requires_grad]
        if not learned:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        if any(isinstance(p, pt.nn.parameter.UninitializedParameter) for _, p in named):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with "
                "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
                "modules"
            )
        self.device_type = learned[0][1].device.type
        if device_ids and self.device_type == "cpu":
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                f"GPU modules, but got device_ids {device_ids}, and module parameters on the CPU"
            )
        self.device_ids: Any = [learned[0][1].device] if device_ids else None
        self.output_device = output_device
        self.module, self.process_group, self.dim = module, group, dim
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * MiB)
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        self._named_buffers = [(n, b) for n, b in module.named_buffers() if n not in ignored]
        self._join_config: Any = None
        if init_sync:
            from ...distributed._same_module import sync_tensors, verify_shapes

            verify_shapes(group, named)
            sync_tensors(group, [p for _, p in named] + [b for _, b in self._named_buffers])
        object.__setattr__(
            self,
            "reducer",
            Reducer(
                learned,
                group,
                self.bucket_bytes_cap,
                find_unused_parameters,
                gradient_as_bucket_view,
                static_graph,
            ),
        )

    reducer: Any

    def _sync_buffers(self) -> None:
        """Give all processes the buffers of one: the first, or one that still has inputs."""
        from ...distributed._same_module import sync_tensors

        src = 0 if self._join_config is None else self._common_rank(True)
        sync_tensors(self.process_group, [b for _, b in self._current_buffers()], src)

    def _current_buffers(self) -> list[tuple[str, Any]]:
        # Found anew: a module may have put others in their place.
        ignored = self.parameters_to_ignore
        return [(n, b) for n, b in self.module.named_buffers() if n not in ignored]

    def will_sync_module_buffers(self) -> bool:
        """Return whether the next forward pass begins with the first process's buffers."""
        return (
            self.require_forward_param_sync
            and self.broadcast_buffers
            and bool(self._current_buffers())
        )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return what the module returns; a backward pass from it averages the gradients.

        Parameters
        ----------
        *inputs, **kwargs
            The module's.
        """
        learns = pt.is_grad_enabled() and self.require_backward_grad_sync
        self._before_forward(learns)
        if self.will_sync_module_buffers():
            self._sync_buffers()
        if self.device_ids:
            inputs, kwargs = pt.utils._pytree.tree_map_only(
                pt.Tensor, lambda t: t.to(self.device_ids[0]), (inputs, kwargs)
            )
        out = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = learns
        if learns:
            self.reducer.begin(out)
        elif pt.is_grad_enabled():
            self.reducer.expects = False
        return out

    def _before_forward(self, learns: bool) -> None:
        if self._join_config is None or not pt.is_grad_enabled():
            return
        from ...distributed.algorithms.join import Join

        work = Join.notify_join_context(self)
        if work is not None:
            self.reducer.divisor = self._divisor(work)
        self._says_whether_it_syncs(learns)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let backward passes add gradients up without averaging them.

        What the forward passes inside it gave stays with this process until a pass outside adds
        to it and averages the sum.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Let a function reduce the buckets.

        Parameters
        ----------
        state : object
            Its first argument.
        hook : callable
            Gets `state` and a `GradBucket`, and returns a future of the reduced buffer, divided
            as it should be.

        Raises
        ------
        RuntimeError
            There is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be once")
        self.reducer.hook, self.reducer.state = hook, state

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Let one of the hooks of `default_hooks` reduce the buckets."""
        from ...distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            "ALLREDUCE": default_hooks.allreduce_hook,
            "FP16_COMPRESS": default_hooks.fp16_compress_hook,
        }
        self.register_comm_hook(self.process_group, hooks[comm_hook_type.name])

    def _set_static_graph(self) -> None:
        """Look for unused parameters once from now on."""
        self.static_graph = self.reducer.static = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, names: Any) -> None:
        """Leave some parameters and buffers of a module to each process."""
        module._ddp_params_and_buffers_to_ignore = names

    # Uneven inputs.

    @property
    def join_device(self) -> Any:
        """The device of what is counted."""
        return pt.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The group that counts."""
        return self.process_group

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:
        """Return a context in which processes may have different numbers of batches.

        Those that are through take part in the reductions of the others, with zeros.

        Parameters
        ----------
        divide_by_initial_world_size : bool, default True
            Divide by all processes; otherwise by those that still have inputs.
        enable : bool, default True
            False does nothing.
        throw_on_early_termination : bool, default False
            Raise on all processes as soon as one is through.
        """
        from ...distributed.algorithms.join import Join

        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """Return what a process that is through does for the others.

        Parameters
        ----------
        **kwargs
            ``divide_by_initial_world_size``.
        """
        from ...distributed._ddp_join import DDPJoinHook

        return DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    def _divisor(self, work: Any) -> float:
        if self._join_config.divide_by_initial_world_size:
            return self.process_group.size()
        return work.result()[0].item()

    def _says_whether_it_syncs(self, learns: bool) -> bool:
        """Tell those that are through whether a backward pass will reduce."""
        from ...distributed import all_reduce

        mark = pt.tensor([1.0 if learns else 0.0])
        all_reduce(mark, group=self.process_group)
        return bool(mark.item())

    def _common_rank(self, has_inputs: bool) -> int:
        """Return the last process that still has inputs, or was the last to have some."""
        from ...distributed import ReduceOp, all_reduce

        mark = pt.tensor([self.process_group.rank() if has_inputs else -1])
        all_reduce(mark, op=ReduceOp.MAX, group=self.process_group)
        if mark.item() < 0:
            raise RuntimeError("DistributedDataParallel.join: no process had any input")
        return int(mark.item())
