"""Processes with different numbers of inputs: those that are through go along with the others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .._process_group import member
from .._reductions import all_reduce

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What one that is through does for the others, once for each of their batches, and then.

    Examples
    --------
    >>> from pytensorlib.distributed.algorithms import JoinHook
    >>> JoinHook().main_hook()
    """

    def main_hook(self) -> None:
        """Take part in what the others do for one batch."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take part in what all do once nobody has a batch.

        Parameters
        ----------
        is_last_joiner : bool
            Whether this process had inputs to the end.
        """


class Joinable:
    """Something whose calls others that are through can go along with.

    Examples
    --------
    >>> from pytensorlib.distributed.algorithms import Joinable
    >>> class Counter(Joinable):
    ...     join_process_group = None
    """

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what one that is through does.

        Parameters
        ----------
        **kwargs
            Those of `Join`.
        """
        return JoinHook()


class Join:
    """A context in which processes may have different numbers of inputs.

    Parameters
    ----------
    joinables : list of Joinable
        Modules or optimizers that communicate; the first one's calls are counted.
    enable : bool, default True
        False does nothing.
    throw_on_early_termination : bool, default False
        Raise on all processes as soon as one is through.
    **kwargs
        For the hooks.

    Raises
    ------
    ValueError
        There are no joinables, or they are of different groups.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(1, 1)
    >>> if torch.distributed.is_initialized():
    ...     ddp = torch.nn.parallel.DistributedDataParallel(net)
    ...     with torch.distributed.algorithms.Join([ddp]):
    ...         pass
    """

    def __init__(
        self,
        joinables: Sequence[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = [member("Join", one.join_process_group) for one in joinables]
        if any(g is not groups[0] for g in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._group = list(joinables), groups[0]
        self._enable, self._throws = enable, throw_on_early_termination
        self._hooks = [one.join_hook(**kwargs) for one in joinables] if enable else []
        for i, one in enumerate(joinables):
            one._join_counts = (self if i == 0 else None) if enable else None

    def __enter__(self) -> Join:
        return self

    def _still_at_it(self) -> int:
        """Return how many others have just begun with a batch."""
        count = pt.zeros(1)
        all_reduce(count, group=self._group)
        return int(count.item())

    def _tell_end(self, ended: bool) -> bool:
        mark = pt.ones(1) if ended else pt.zeros(1)
        all_reduce(mark, group=self._group)
        return bool(mark.item())

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            return
        is_last, batches = True, 0
        while self._still_at_it():
            if self._throws:
                self._tell_end(True)
                self._raise()
            for hook in self._hooks:
                hook.main_hook()
            is_last = False
            batches += 1
            if batches == 1000:
                warnings.warn(
                    "Detected uneven input skew of greater than 1000: this process has waited "
                    "for that many batches of the others",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(is_last)
        for one in self._joinables:
            one._join_counts = None

    def _raise(self) -> None:
        raise RuntimeError(
            "Detected at least one rank that exhausted inputs. Throwing across all ranks."
        )

    @staticmethod
    def notify_join_context(joinable: Any) -> Any:
        """Tell those that are through that a batch begins.

        Parameters
        ----------
        joinable : Joinable
            Which of them communicates.

        Returns
        -------
        Work or None
            The call that counts who has a batch; None outside of the context, and for all but the
            first joinable.
        """
        join = getattr(joinable, "_join_counts", None)
        if join is None or not join._enable:
            return None
        work = all_reduce(pt.ones(1), group=join._group, async_op=True)
        if join._throws and join._tell_end(False):
            join._raise()
        return work
