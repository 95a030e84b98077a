"""Averages of a model's weights over training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import pytensorlib as pt
from pytensorlib import nn

from .lr_scheduler.base import LRScheduler, per_group, warn_outside_step
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return ``decay * average + (1 - decay) * value``, for `AveragedModel`'s `avg_fn`.

    Parameters
    ----------
    decay : float, default 0.999
        The share of the average, in [0, 1].

    Returns
    -------
    callable
        Takes an average, a value and the number of values so far.

    Raises
    ------
    ValueError
        `decay` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> update = optim.swa_utils.get_ema_avg_fn(0.5)
    >>> update(torch.tensor(1.0), torch.tensor(3.0), 1)
    tensor(2.)
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided, must be in range [0, 1]")

    def average(ema: Any, value: Any, count: Any) -> Any:
        return decay * ema + (1 - decay) * value

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return what `get_ema_avg_fn` does for lists, in place; for `multi_avg_fn`.

    Parameters
    ----------
    decay : float, default 0.999
        The share of the average, in [0, 1].

    Returns
    -------
    callable
        Takes a list of averages, a list of values and the number of values so far.

    Raises
    ------
    ValueError
        `decay` is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> averages = [torch.tensor(1.0)]
    >>> optim.swa_utils.get_ema_multi_avg_fn(0.5)(averages, [torch.tensor(3.0)], 1)
    >>> averages
    [tensor(2.)]
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided, must be in range [0, 1]")

    def average(emas: Any, values: Any, count: Any) -> None:
        with pt.no_grad():
            for ema, value in zip(emas, values, strict=True):
                if ema.is_floating_point() or ema.is_complex():
                    ema.lerp_(value, 1 - decay)
                else:
                    ema.copy_(ema * decay + value * (1 - decay))

    return average


def get_swa_avg_fn() -> Callable[..., Any]:
    """Return the mean of equal weights, for `AveragedModel`'s `avg_fn`.

    Returns
    -------
    callable
        Takes an average, a value and the number of values so far.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optim.swa_utils.get_swa_avg_fn()(torch.tensor(1.0), torch.tensor(4.0), 2)
    tensor(2.)
    """

    def average(mean: Any, value: Any, count: Any) -> Any:
        return mean + (value - mean) / (count + 1)

    return average


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """Return what `get_swa_avg_fn` does for lists, in place; for `multi_avg_fn`.

    Returns
    -------
    callable
        Takes a list of averages, a list of values and the number of values so far.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> averages = [torch.tensor(1.0)]
    >>> optim.swa_utils.get_swa_multi_avg_fn()(averages, [torch.tensor(4.0)], 2)
    >>> averages
    [tensor(2.)]
    """

    def average(means: Any, values: Any, count: Any) -> None:
        with pt.no_grad():
            for mean, value in zip(means, values, strict=True):
                mean.add_((value - mean) / (count + 1))

    return average


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are the average of those it is updated with.

    Parameters
    ----------
    model : Module
        What to copy.
    device : device, optional
        Where the copy lives.
    avg_fn : callable, optional
        ``avg_fn(average, value, number_averaged)``; the default is the equal-weight mean.
    use_buffers : bool
        Average the buffers too, instead of copying them.
    multi_avg_fn : callable, optional
        As `avg_fn`, for lists of all averages and values at once.

    References
    ----------
    Izmailov et al. 2018, arXiv:1803.05407.

    Examples
    --------
    >>> from pytensorlib import nn, optim
    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = model.weight.data.fill_(value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    2.0
    """

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: give avg_fn or multi_avg_fn, got both")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", pt.tensor(0, dtype=pt.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the averaged model returns."""
        return self.module(*args, **kwargs)

    def _tensors(self, model: Any) -> list[Any]:
        buffers = list(model.buffers()) if self.use_buffers else []
        return [*model.parameters(), *buffers]

    @pt.no_grad()
    def update_parameters(self, model: Any) -> None:
        """Take the present parameters of `model` into the average."""
        mine = self._tensors(self.module)
        theirs = [t.to(m.device) for m, t in zip(mine, self._tensors(model), strict=True)]
        count = int(self.n_averaged)
        if count == 0:
            for m, t in zip(mine, theirs, strict=True):
                m.copy_(t)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(mine, theirs, self.n_averaged)
        else:
            for m, t in zip(mine, theirs, strict=True):
                if self.avg_fn is not None:
                    m.copy_(self.avg_fn(m, t, self.n_averaged))
                elif m.is_floating_point() or m.is_complex():
                    m.add_((t - m) / (count + 1))
                else:
                    m.copy_(t)
        if not self.use_buffers:
            for m, t in zip(self.module.buffers(), model.buffers(), strict=True):
                m.copy_(t)
        self.n_averaged += 1


@pt.no_grad()
def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of the batch norms of a model anew over a data set.

    Parameters
    ----------
    loader : iterable
        Batches, or tuples whose first member is one.
    model : Module
        Changed in place; its mode comes back.
    device : optional
        Move the batches there first.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn, optim
    >>> norm = nn.BatchNorm1d(1)
    >>> optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], norm)
    >>> norm.running_mean
    tensor([2.])
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal each group's rate to `swa_lr` in `anneal_epochs` epochs, then keep it.

    Parameters
    ----------
    optimizer : Optimizer
        Whose rates are set.
    swa_lr : float or list of float
        The last rate, for all groups or for each.
    anneal_epochs : int, default 10
        How many epochs it takes.
    anneal_strategy : {'cos', 'linear'}, default 'cos'
        The shape of the way.
    last_epoch : int, default -1
        The last epoch done, when training goes on; groups must then have ``initial_lr``.

    Raises
    ------
    ValueError
        An option is out of range.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    ...     print(f"{schedule.get_last_lr()[0]:.3g}", end=" ")
    0.75 0.5 0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, lr in zip(
            optimizer.param_groups,
            per_group("swa_lr", swa_lr, optimizer.param_groups),
            strict=True,
        ):
            group["swa_lr"] = lr
        self.anneal_epochs = anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        done = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self.anneal_strategy == "cos" else done

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        warn_outside_step(self)
        epoch = self._step_count - 1
        if self.anneal_epochs == 0:
            epoch = max(1, epoch)
        before = self._share(max(0, epoch - 1))
        now = self._share(epoch)
        values = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            if before == 1:
                values.append(target)
                continue
            start = (group["lr"] - before * target) / (1 - before)
            values.append(target * now + start * (1 - now))
        return values
