"""An optimizer whose state is shared out: each process steps a part of the parameters.

Rajbhandari et al. 2019, arXiv:1910.02054, stage 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...optim.optimizer import Optimizer
from .._collectives import _broadcast_coalesced
from .._objects import gather_object
from .._process_group import member
from ..algorithms.join import Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _Steps(JoinHook):
    """Takes part in the others' steps: each process has parameters of its own to give."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """Step with the gradients that the others' reduction left."""
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Another optimizer whose state is shared out over the processes.

    Each process keeps state for its part of the parameters, steps those, and gives them to all.
    Parameters and gradients must be the same on all processes, as `DistributedDataParallel` has
    them.

    Parameters
    ----------
    params : iterable
        As of any optimizer.
    optimizer_class : type
        Of the optimizer of each part.
    process_group : ProcessGroup, optional
        All processes by default.
    parameters_as_bucket_view : bool, default False
        Not used.
    overlap_with_ddp : bool, default False
        Must be False.
    **defaults
        The options of `optimizer_class`.

    Raises
    ------
    ValueError
        The process has joined no group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.optim import ZeroRedundancyOptimizer
    >>> net = torch.nn.Linear(2, 1)
    >>> if torch.distributed.is_initialized():
    ...     optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.01)
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Any],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not here; step after the backward "
                "pass, whose reductions overlap with it already"
            )
        self.process_group = member("ZeroRedundancyOptimizer", process_group)
        self._class, self._own = optimizer_class, defaults
        self._sizes = [0] * self.process_group.size()  # type: ignore[union-attr]
        self._owner: dict[int, int] = {}
        self._whole: dict[str, Any] | None = None
        self.optim: Any = None
        super().__init__(params, defaults)
        rank = self.process_group.rank()  # type: ignore[union-attr]
        parts = [self._part(group, rank) for group in self.param_groups]
        self.optim = optimizer_class(parts, **defaults)
        self._take_options(self.optim.param_groups, self.param_groups)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return next(self._all_params()).device

    @property
    def join_process_group(self) -> Any:
        """The group whose processes step."""
        return self.process_group

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a process without inputs does: it steps.

        Parameters
        ----------
        **kwargs
            Not used.
        """
        return _Steps(self)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, and share its parameters out.

        Parameters
        ----------
        param_group : dict
            As of any optimizer.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        # The largest first, each to whom has least: all processes come to the same shares.
        for p in sorted(group["params"], key=lambda p: -p.numel()):
            owner = self._sizes.index(min(self._sizes))
            self._owner[id(p)] = owner
            self._sizes[owner] += p.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._part(group, self.process_group.rank()))  # type: ignore[union-attr]

    def _part(self, group: dict[str, Any], rank: int) -> dict[str, Any]:
        """Return the group with the parameters of one process."""
        mine = [p for p in group["params"] if self._owner[id(p)] == rank]
        options = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        return {**options, "params": mine}

    @staticmethod
    def _take_options(source: list[Any], target: list[Any]) -> None:
        """Let groups have the options of others, such as what a scheduler set."""
        for given, group in zip(source, target):
            group |= {k: v for k, v in given.items() if k not in ("params", "param_names")}

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this process's parameters, and give all processes all parameters.

        Parameters
        ----------
        closure : callable, optional
            As of any optimizer.
        **kwargs
            For the optimizer of each part.
        """
        from ..algorithms.join import Join

        Join.notify_join_context(self)
        self._take_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure=closure, **kwargs) if closure else self.optim.step(**kwargs)
        self._take_options(self.optim.param_groups, self.param_groups)
        self._whole = None
        for rank in range(len(self._sizes)):
            some = [p for p in self._all_params() if self._owner[id(p)] == rank]
            if some:
                _broadcast_coalesced(self.process_group, some, src=rank)  # type: ignore[arg-type]
        return loss

    def _mine(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return what a state of all says of this process's parameters, by its numbers."""
        numbers = {id(p): i for i, p in enumerate(self._all_params())}
        own = list(self.optim._all_params())
        state = {
            i: whole["state"][numbers[id(p)]]
            for i, p in enumerate(own)
            if numbers[id(p)] in whole["state"]
        }
        return {"state": state, "param_groups": self.optim.state_dict()["param_groups"]}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all processes to one, which may then ask for `state_dict`.

        Parameters
        ----------
        to : int, default 0
            The process, by its number in the world.
        """
        numbers = {id(p): i for i, p in enumerate(self._all_params())}
        own = [numbers[id(p)] for p in self.optim._all_params()]
        mine = {own[i]: value for i, value in self.optim.state_dict()["state"].items()}
        group: Any = self.process_group
        here = group._place("consolidate_state_dict", "dst", to, None) == group.rank()
        found: list[Any] | None = [None] * group.size() if here else None
        gather_object(mine, found, dst=to, group=group)
        if found is not None:
            state = {i: value for part in found for i, value in part.items()}
            self._whole = dict(sorted(state.items()))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all, as `optimizer_class` itself would.

        Raises
        ------
        RuntimeError
            `consolidate_state_dict` did not bring it here since the last step.
        """
        if self._whole is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                "`consolidate_state_dict(to=...)` on all ranks beforehand if you meant to save the "
                "global state."
            )
        return {**super().state_dict(), "state": dict(self._whole)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over this process's part of a state of all.

        Parameters
        ----------
        state_dict : dict
            What `state_dict` returned, here or of `optimizer_class`.
        """
        self._take_options(state_dict["param_groups"], self.param_groups)
        self.optim.load_state_dict(self._mine(state_dict))
        self._take_options(self.param_groups, self.optim.param_groups)
