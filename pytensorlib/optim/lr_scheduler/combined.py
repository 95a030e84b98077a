"""Schedules that follow a metric or combine other schedules."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer, number
from .base import EPOCH, LRScheduler, as_optimizer, copied, per_group, set_option

__all__ = ["ChainedScheduler", "ReduceLROnPlateau", "SequentialLR"]


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric has not improved for more than `patience` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups to set.
    mode : {"min", "max"}
        Whether the metric should fall or rise.
    factor : float, default 0.1
        Below 1.
    patience, cooldown : int
        Epochs to wait before a cut, and after one.
    threshold, threshold_mode : float, {"rel", "abs"}
        The least change that counts as better.
    min_lr : float or list of float
        Lower bound, of all groups or of each.
    eps : float, default 1e-8
        A smaller change of the rate is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     optimizer.step()
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = as_optimizer(optimizer)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = per_group("min_lr", min_lr, optimizer.param_groups)
        self.mode = mode
        self.mode_worse = float("inf") if mode == "min" else float("-inf")
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [copied(group["lr"]) for group in optimizer.param_groups]
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take the metric of one more epoch into account."""
        current = float(number(metrics))
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually "
                    "due to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_option(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether the last cut is less than `cooldown` epochs ago."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Return whether `a` is better than `best` by the threshold."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bar = best * (1 + sign * self.threshold)
        else:
            bar = best + sign * self.threshold
        return a < bar if self.mode == "min" else a > bar


class _Several(LRScheduler):
    """Holds schedules of one optimizer."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this schedule and of those it holds."""
        state = {k: v for k, v in super().state_dict().items() if k != "_schedulers"}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


def _check_members(what: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    if not schedulers:
        raise ValueError(f"{what} expects at least one scheduler, got none")
    for i, scheduler in enumerate(schedulers):
        if getattr(scheduler, "optimizer", None) is not optimizer:
            raise ValueError(
                f"{what} expects all schedulers to belong to the same optimizer, but the one at "
                f"index {i} ({type(scheduler).__name__}) does not"
            )
        if isinstance(scheduler, ReduceLROnPlateau) and what == "SequentialLR":
            raise ValueError(
                f"{what} does not support ReduceLROnPlateau, whose step needs a metric (index {i})"
            )


class SequentialLR(_Several):
    """One schedule after another, changing at the epochs `milestones`.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    schedulers : list of LRScheduler
        Of this optimizer.
    milestones : list of int
        One less than there are schedules.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        The optimizers differ, or the numbers do not fit.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> warm = optim.lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=2)
    >>> fall = optim.lr_scheduler.ExponentialLR(optimizer, 0.1)
    >>> schedule = optim.lr_scheduler.SequentialLR(optimizer, [warm, fall], milestones=[2])
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 1 0.1 0.01
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        _check_members("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR expects one milestone fewer than schedulers, got "
                f"{len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self.optimizer = as_optimizer(optimizer)
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Each schedule has taken its first step when it was made: start again with the first.
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Move on to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._restart()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Several schedules that all step together, each on the rate the last one left.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        Of one optimizer.
    optimizer : Optimizer, optional
        Theirs.

    Raises
    ------
    ValueError
        The optimizers differ, or there is no schedule.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [optim.lr_scheduler.ExponentialLR(optimizer, g) for g in (0.5, 0.1)]
    >>> schedule = optim.lr_scheduler.ChainedScheduler(parts)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.05]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Any = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler, got none")
        self.optimizer = optimizer or schedulers[0].optimizer
        _check_members("ChainedScheduler", schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, metrics: Any = None) -> None:
        """Move all on to the next epoch; `metrics` goes to those that need one."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, ReduceLROnPlateau):
                scheduler.step(metrics)
            else:
                scheduler.step()
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]
