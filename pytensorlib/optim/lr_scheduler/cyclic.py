"""Schedules that move the learning rate and the momentum in cycles."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, as_optimizer, per_group, set_option, warn_outside_step


def _uses_beta1(optimizer: Optimizer) -> bool:
    if not {"betas", "momentum"} & optimizer.defaults.keys():
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], use_beta1: bool, value: float) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Up and down between two rates, once every ``step_size_up + step_size_down`` batches.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    base_lr, max_lr : float or list of float
        The bounds, for all groups or for each.
    step_size_up : int, default 2000
        Batches on the way up.
    step_size_down : int, optional
        Batches on the way down; as many by default.
    mode : {'triangular', 'triangular2', 'exp_range'}, default 'triangular'
        The same height for all cycles, half of it each time, or times ``gamma ** batch``.
    gamma : float, default 1.0
        For 'exp_range'.
    scale_fn : callable, optional
        The height as a function of one's own; `mode` then does not count.
    scale_mode : {'cycle', 'iterations'}, default 'cycle'
        What `scale_fn` takes.
    cycle_momentum : bool, default True
        Move the momentum the other way; the optimizer must have one.
    base_momentum, max_momentum : float or list of float
        Its bounds, 0.8 and 0.9 by default.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        `mode` is none of these, or the optimizer has no momentum.

    References
    ----------
    Smith 2015, arXiv:1506.01186.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.1, 2, cycle_momentum=False)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.6 1.1 0.6 0.1 0.6
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = as_optimizer(optimizer).param_groups
        base_lrs = per_group("base_lr", base_lr, groups)
        if last_epoch == -1:
            for group, lr in zip(groups, base_lrs, strict=True):
                set_option(group, "lr", lr)
        self.max_lrs = per_group("max_lr", max_lr, groups)
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = float(step_size_up) + down
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            self.base_momentums = per_group("base_momentum", base_momentum, groups)
            self.max_momentums = per_group("max_momentum", max_momentum, groups)
            if last_epoch == -1:
                for group, value in zip(groups, self.max_momentums, strict=True):
                    _set_momentum(group, self.use_beta1, value)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of cycle (or iteration) `x`, 1 being the full one."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"
        self._scale_fn_ref: Callable[[float], float]
        if self.mode == "triangular":
            self._scale_fn_ref = self._triangular_scale_fn
        elif self.mode == "triangular2":
            self._scale_fn_ref = self._triangular2_scale_fn
        elif self.mode == "exp_range":
            self._scale_fn_ref = partial(self._exp_range_scale_fn, self.gamma)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / 2.0 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[Any]:
        """Return the rate of each group, and set its momentum."""
        warn_outside_step(self)
        position = 1 + self.last_epoch / self.total_size
        cycle = math.floor(position)
        x = position - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (1 - x) / (1 - self.step_ratio)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            rows = zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            )
            for group, low, high in rows:
                _set_momentum(group, self.use_beta1, high - (high - low) * height)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer and a plain `scale_fn`."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        fn = state.pop("_scale_fn_custom")
        plain = fn is None or isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else fn.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        state = dict(state_dict)
        custom = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if custom is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(custom)
        self._init_scale_fn()


def _phase(end: float, rate: tuple[str, str], momentum: tuple[str, str]) -> dict[str, Any]:
    """A phase's last step, and the options between which rate and momentum go."""
    return {
        "end_step": end,
        "start_lr": rate[0],
        "end_lr": rate[1],
        "start_momentum": momentum[0],
        "end_momentum": momentum[1],
    }


class OneCycleLR(LRScheduler):
    """One warm-up to the largest rate and one way down far below the first, step by step.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    max_lr : float or list of float
        The largest rate, for all groups or for each.
    total_steps : int, optional
        How many steps there are; or give `epochs` and `steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
        Their product is the number of steps.
    pct_start : float, default 0.3
        The part of the steps that goes up.
    anneal_strategy : {'cos', 'linear'}, default 'cos'
        The shape of the ways.
    cycle_momentum : bool, default True
        Move the momentum the other way; the optimizer must have one.
    base_momentum, max_momentum : float or list of float
        Its bounds, 0.85 and 0.95 by default.
    div_factor : float, default 25.0
        The first rate is ``max_lr / div_factor``.
    final_div_factor : float, default 1e4
        The last rate is the first divided by this.
    three_phase : bool, default False
        Go down to the first rate as fast as up, and then to the last.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        The number of steps is missing, an option is out of range, or too many steps were
        taken.

    References
    ----------
    Smith and Topin 2017, arXiv:1708.07120.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.OneCycleLR(optimizer, 1.0, 6, cycle_momentum=False)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.994 0.812 0.463 0.133 4e-06
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        groups = as_optimizer(optimizer).param_groups
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            for what, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if value <= 0 or not isinstance(value, int):
                    raise ValueError(f"Expected positive integer {what}, but got {value}")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self.total_steps = total_steps
        self._anneal_func_type = anneal_strategy
        middle = float(pct_start * total_steps) - 1
        last = total_steps - 1
        if three_phase:
            back = float(2 * pct_start * total_steps) - 2
            self._schedule_phases = [
                _phase(middle, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum")),
                _phase(back, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
                _phase(last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
            ]
        else:
            self._schedule_phases = [
                _phase(middle, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum")),
                _phase(last, ("max_lr", "min_lr"), ("base_momentum", "max_momentum")),
            ]
        if last_epoch == -1:
            highs = per_group("max_lr", max_lr, groups)
            for group, high in zip(groups, highs, strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            if last_epoch == -1:
                bases = per_group("base_momentum", base_momentum, groups)
                tops = per_group("max_momentum", max_momentum, groups)
                for group, base, top in zip(groups, bases, tops, strict=True):
                    _set_momentum(group, self.use_beta1, top)
                    group["base_momentum"], group["max_momentum"] = base, top
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def get_lr(self) -> list[Any]:
        """Return the rate of each group, and set its momentum."""
        warn_outside_step(self)
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(
                f"Tried to step {t} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        begin = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if t <= end or phase is self._schedule_phases[-1]:
                break
            begin = end
        share = (t - begin) / (end - begin)
        values = []
        for group in self.optimizer.param_groups:
            low, high = group[phase["start_lr"]], group[phase["end_lr"]]
            values.append(self._between(low, high, share))
            if self.cycle_momentum:
                start, stop = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, self.use_beta1, self._between(start, stop, share))
        return values
