"""Collectives that a process without inputs joins for `DistributedDataParallel`."""

from __future__ import annotations

from typing import Any

from ._same_module import sync_tensors
from .algorithms.join import JoinHook

__all__ = ["DDPJoinHook"]


class DDPJoinHook(JoinHook):
    """Takes part in the calls of the others' passes.

    Parameters
    ----------
    ddp : DistributedDataParallel
        The module.
    divide_by_initial_world_size : bool
        Whether sums are divided by all processes.
    """

    def __init__(self, ddp: Any, divide_by_initial_world_size: bool) -> None:
        super().__init__()
        self.ddp, self.divide_by_initial_world_size = ddp, divide_by_initial_world_size
        ddp._join_config = self

    def main_hook(self) -> None:
        """Do what a forward and a backward pass of the others ask of all."""
        syncs = self.ddp._says_whether_it_syncs(False)
        if self.ddp.will_sync_module_buffers():
            src = self.ddp._common_rank(False)
            tensors = [b for _, b in self.ddp._current_buffers()]
            sync_tensors(self.ddp.process_group, tensors, src)
        self.ddp.require_forward_param_sync = syncs
        if syncs:
            self.ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take the state of one that had inputs to the end."""
        ddp = self.ddp
        src = ddp._common_rank(is_last_joiner)
        sync_tensors(
            ddp.process_group,
            [*ddp.module.parameters(), *(b for _, b in ddp._current_buffers())],
            src,
        )
        ddp._join_config = None
        ddp.reducer.divisor = ddp.process_group.size()
