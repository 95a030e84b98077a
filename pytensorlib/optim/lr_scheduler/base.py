"""The base of all schedules."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from ..optimizer import Optimizer

_MORE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before "
    "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first value of "
    f"the learning rate schedule. {_MORE}"
)
OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    f"{_MORE}"
)

EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def as_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def warn_outside_step(scheduler: LRScheduler) -> None:
    """Say where rates are that were asked for between steps."""
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=3,
        )


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, pt.Tensor) else value


def set_option(group: dict[str, Any], key: str, value: Any) -> None:
    """Set a group's option, in place if it is a tensor."""
    if isinstance(group[key], pt.Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def per_group(what: str, value: Any, groups: Sequence[Any]) -> list[Any]:
    """Return one value for each group from one value or one for each."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(
            f"{what} must have the same length as optimizer.param_groups. {what} has {len(value)} "
            f"values, param_groups has {len(groups)}."
        )
    return list(value)


class LRScheduler:
    """Base class of the schedules; a subclass defines `get_lr`.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups to set.
    last_epoch : int, default -1
        The last epoch done when training goes on; its groups must then have ``initial_lr``.

    Raises
    ------
    TypeError
        `optimizer` is none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> class Halving(optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate * 0.5**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = Halving(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _is_initial = False
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = as_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    f"scheduler with last_epoch >= 0, got last_epoch={last_epoch}"
                )
        self.base_lrs: list[Any] = [copied(g["initial_lr"]) for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        # A step of its own, which the optimizer got before there was a schedule.
        self.optimizer._known_step = vars(self.optimizer).get("step")
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rate of each group as the last step left it."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Return the rate of each group for ``self.last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Move on to the next epoch, or to `epoch`."""
        if self._step_count == 1:
            if vars(self.optimizer).get("step") is not self.optimizer._known_step:
                warnings.warn(OVERRIDDEN, UserWarning, stacklevel=2)
            elif not self.optimizer._opt_called:
                warnings.warn(EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _restart(self) -> None:
        """Go to epoch 0, as a schedule of several does with the next one."""
        if type(self).step is not LRScheduler.step:
            return self.step(0)
        self._step_count += 1
        return self._update_lr(0)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                values = getattr(self, "_get_closed_form_lr", self.get_lr)()
        finally:
            self._get_lr_called_within_step = False
        self._apply(values)

    def _apply(self, values: list[Any]) -> None:
        groups = self.optimizer.param_groups
        for group, value in zip(groups, values, strict=True):
            set_option(group, "lr", value)
        self._last_lr: list[Any] = [copied(group["lr"]) for group in groups]
