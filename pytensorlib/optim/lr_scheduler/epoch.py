"""Schedules that are functions of the epoch."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, as_optimizer, per_group, warn_outside_step


class _ByFunctions(LRScheduler):
    """A schedule given by one function of the epoch, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = as_optimizer(optimizer).param_groups
        self.lr_lambdas = per_group("lr_lambda", lr_lambda, groups)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state; of the functions, only what callable objects hold."""
        state = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; the functions stay."""
        saved = state_dict["lr_lambdas"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, state in zip(self.lr_lambdas, saved, strict=True):
            if state is not None:
                fn.__dict__.update(state)


class LambdaLR(_ByFunctions):
    """``initial_lr * lr_lambda(epoch)``.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    lr_lambda : callable or list of callable
        A function of the epoch, or one for each group.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 0.25 0.125 0.0625 0.0312
    """

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [lr * fn(self.last_epoch) for lr, fn in pairs]


class MultiplicativeLR(_ByFunctions):
    """``lr * lr_lambda(epoch)``, from the second epoch on.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    lr_lambda : callable or list of callable
        A function of the epoch, or one for each group.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 0.25 0.125 0.0625 0.0312
    """

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        if self._is_initial:
            return self._scaled(1)
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * fn(self.last_epoch) for group, fn in pairs]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    step_size : int
        Epochs between the drops.
    gamma : float, default 0.1
        The factor.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    1 0.1 0.1 0.01 0.01
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        drop = not self._is_initial and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if drop else 1)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [lr * factor for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each of the epochs `milestones`.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    milestones : iterable of int
        When the rate drops.
    gamma : float, default 0.1
        The factor.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 4])
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.1 0.1 0.1 0.01 0.01
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        times = 0 if self._is_initial else self.milestones[self.last_epoch]
        return self._scaled(self.gamma**times)

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times `factor` until epoch `total_iters`.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    factor : float, default 1/3
        In [0, 1].
    total_iters : int, default 5
        The epoch from which on the rate is the initial one.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        `factor` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=3)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 0.5 1 1 1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must be between 0 and 1, got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        ends = not self._is_initial and self.last_epoch == self.total_iters
        return self._scaled(1 / self.factor if ends else 1)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = 1 if self.last_epoch >= self.total_iters else self.factor
        return [lr * factor for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs: a
    warm-up.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    start_factor : float, default 1/3
        In (0, 1].
    end_factor : float, default 1.0
        In [0, 1].
    total_iters : int, default 5
        How many epochs it takes.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        A factor is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 0.75 1 1 1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR: start_factor must be above 0 and at most 1, got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor must be between 0 and 1, got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._scaled(1)
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1 + rise / before)

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [lr * factor for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    gamma : float
        The factor.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 0.25 0.125 0.0625 0.0312
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        return self._scaled(1 if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """``initial_lr * (1 - epoch / total_iters) ** power``, then zero.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    total_iters : int, default 5
        How many epochs it takes to zero.
    power : float, default 1.0
        The power.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.75 0.5 0.25 0 0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        t, n = self.last_epoch, self.total_iters
        if self._is_initial or t > n:
            return self._scaled(1)
        return self._scaled(((1 - t / n) / (1 - (t - 1) / n)) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left**self.power for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from ``initial_lr`` down to `eta_min` in `T_max` epochs, then up again.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    T_max : int
        Epochs of half a period.
    eta_min : float, default 0.0
        The least rate.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    References
    ----------
    Loshchilov and Hutter 2016, arXiv:1608.03983.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.854 0.5 0.146 0 0.146
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        t, n, low = self.last_epoch, self.T_max, self.eta_min
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if self._is_initial:
            return self._scaled(1)
        if (t - 1 - n) % (2 * n) == 0:  # leaving the minimum, where the ratio below is 0 / 0
            rise = (1 - math.cos(math.pi / n)) / 2
            pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            return [group["lr"] + (base - low) * rise for base, group in pairs]
        ratio = (1 + math.cos(math.pi * t / n)) / (1 + math.cos(math.pi * (t - 1) / n))
        return [ratio * (group["lr"] - low) + low for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min` in `T_0` epochs, then again, each time `T_mult` times as
    long.

    ``step(epoch)`` takes fractions of an epoch too.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    T_0 : int
        Epochs of the first run.
    T_mult : int, default 1
        The factor of the length.
    eta_min : float, default 0.0
        The least rate.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        `T_0` is not positive, or `T_mult` is less than 1.

    References
    ----------
    Loshchilov and Hutter 2016, arXiv:1608.03983.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.5 1 0.5 1 0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {type(eta_min)}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Move on to the next epoch, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        self._step_count += 1
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self.T_cur, self.T_i = epoch, self.T_0
            if self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                while self.T_cur >= self.T_i:
                    self.T_cur -= self.T_i
                    self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._apply(values)
