"""Losses multiplied by a number, so that small gradients of few bits are not lost."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable
from typing import Any

import pytensorlib as pt
from pytensorlib import _gpu

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """What a `GradScaler` has done with an optimizer since the last `update`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.amp.grad_scaler.OptState.READY.value
    0
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Record:
    """An optimizer since the last update."""

    __slots__ = ("found", "stage")

    def __init__(self) -> None:
        self.stage = OptState.READY
        # By device: 1 where a gradient is infinite or NaN.
        self.found: dict[Any, Any] = {}


def _joined(found: list[Any], device: Any) -> Any:
    """Return whether any of several tensors is not zero, as one of them."""
    first, *others = (bad.to(device) for bad in found)
    for bad in others:
        first = pt.maximum(first, bad)
    return first


class GradScaler:
    """Multiplies losses by a number, and divides gradients by it before an optimizer sees them.

    Where a gradient comes out infinite or NaN the step is left out and the number made smaller;
    after many steps without any it is made larger.

    Parameters
    ----------
    device : str, default "cuda"
        "cpu" or "wgpu"; with that of a device that is not here it warns and is disabled.
    init_scale : float, default 65536.0
        The first number.
    growth_factor : float, default 2.0
        By what it is multiplied after `growth_interval` good steps; above 1.
    backoff_factor : float, default 0.5
        By what it is multiplied after a step that was left out; below 1.
    growth_interval : int, default 2000
        Good steps in a row.
    enabled : bool, default True
        False makes a scaler that changes nothing: `step` is that of the optimizer.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu")
    >>> scaler.scale(w.sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0.9000, 0.9000], requires_grad=True)

    Notes
    -----
    Micikevicius et al. 2018, arXiv:1710.03740.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = _gpu.name() if device == _gpu.OWN else device
        self._enabled = enabled
        if enabled and not _gpu.is_here(self._device):
            warnings.warn(
                f"torch.amp.GradScaler: there is no device {device!r}, so it is disabled; GPUs of "
                f"every maker are device {_gpu.name()!r}",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled and growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: growth_factor must be above 1, got {growth_factor}")
        if self._enabled and backoff_factor >= 1.0:
            raise AssertionError(
                f"GradScaler: backoff_factor must be below 1, got {backoff_factor}"
            )
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        # Tensors on the device of the first loss.
        self._init_scale = init_scale
        self._scale: Any = None
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, _Record] = {}

    def scale(self, outputs: Any) -> Any:
        """Multiply losses.

        Parameters
        ----------
        outputs : Tensor or iterable of Tensor
            Lists and tuples, also nested, stay what they are.

        Returns
        -------
        Tensor or iterable of Tensor
            The products; `outputs` where disabled.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, pt.Tensor):
            if self._scale is None:
                self._start(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            found = map(self.scale, outputs)
            return type(outputs)(found) if isinstance(outputs, (list, tuple)) else found
        raise ValueError(
            f"GradScaler.scale: outputs must be a Tensor or an iterable of Tensors, got "
            f"{type(outputs).__name__}"
        )

    def _start(self, device: Any) -> None:
        self._scale = pt.full((), self._init_scale, dtype=pt.float32, device=device)
        tracker = self._init_growth_tracker
        self._growth_tracker = pt.full((), tracker, dtype=pt.int32, device=device)

    def _record(self, optimizer: Any, asked: str) -> _Record:
        self._check(asked)
        return self._per_optimizer_states.setdefault(id(optimizer), _Record())

    def _check(self, asked: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"GradScaler.{asked}: _scale is None, so no loss was scaled; call "
                "scaler.scale(loss).backward() first"
            )

    def unscale_(self, optimizer: Any) -> None:
        """Divide an optimizer's gradients, in place; `step` does it where the program did not.

        Parameters
        ----------
        optimizer : Optimizer
            All gradients of its parameters are there.
        """
        if not self._enabled:
            return
        record = self._record(optimizer, "unscale_")
        if record.stage is not OptState.READY:
            done = "unscale_() has already been called on this optimizer since the last update()."
            late = "unscale_() is being called after step()."
            raise RuntimeError(done if record.stage is OptState.UNSCALED else late)
        record.found = self._unscaled(optimizer)
        record.stage = OptState.UNSCALED

    def _unscaled(self, optimizer: Any) -> dict[Any, Any]:
        inverse = self._scale.reciprocal()
        found: dict[Any, Any] = {}
        with pt.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if grad.dtype == pt.float16:
                        raise ValueError(
                            "Attempting to unscale FP16 gradients: parameters must be float32 and "
                            "autocast makes the float16 of them"
                        )
                    if grad.is_sparse:
                        grad = grad._values()
                    # Tensors, so that the GPU goes on meanwhile.
                    bad = (~pt.isfinite(grad)).any().float()
                    device = grad.device
                    found[device] = pt.maximum(found[device], bad) if device in found else bad
                    grad.mul_(inverse.to(device))
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer, unless a gradient is infinite or NaN.

        Parameters
        ----------
        optimizer : Optimizer
            What to step.
        *args, **kwargs
            Of its `step`; no closure.

        Returns
        -------
        object
            What its `step` returns; None where that was left out.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        record = self._record(optimizer, "step")
        if record.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if record.stage is OptState.READY:
            self.unscale_(optimizer)
        if not record.found:
            raise AssertionError(
                "No inf checks were recorded for this optimizer: none of its parameters has a "
                "gradient"
            )
        good = not any(bad.item() for bad in record.found.values())
        result = optimizer.step(*args, **kwargs) if good else None
        record.stage = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Make the number smaller or larger, as the steps since the last call went.

        Parameters
        ----------
        new_scale : float or Tensor, optional
            The number itself: a float, or a tensor of one element on the scaler's device.
        """
        if not self._enabled:
            return
        self._check("update")
        scale, tracker = self._scale, self._growth_tracker
        if isinstance(new_scale, (int, float)):
            scale.fill_(float(new_scale))
        elif new_scale is not None:
            one = isinstance(new_scale, pt.Tensor) and new_scale.numel() == 1
            if not one or new_scale.requires_grad or new_scale.device.type != self._device:
                raise AssertionError(
                    "GradScaler.update: new_scale should be a float or a tensor of one element on "
                    f"{self._device!r} with requires_grad=False"
                )
            scale.copy_(new_scale.reshape(()))
        else:
            records = self._per_optimizer_states.values()
            found = [bad for record in records for bad in record.found.values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            # Tensors, so that the GPU goes on meanwhile.
            bad, counted = _joined(found, scale.device) != 0, tracker + 1
            full = counted == self._growth_interval
            grown = scale * self._growth_factor
            good = pt.where(full & pt.isfinite(grown), grown, scale)
            scale.copy_(pt.where(bad, scale * self._backoff_factor, good))
            tracker.copy_(counted.masked_fill(bad | full, 0))
        self._per_optimizer_states = {}

    def get_scale(self) -> float:
        """Return the number, which is 1 where disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_scale_async(self) -> Any:
        return self._scale

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._record(optimizer, "_found_inf_per_device").found

    def get_growth_factor(self) -> float:
        """Return by what the number is multiplied after good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the number is multiplied after good steps.

        Parameters
        ----------
        new_factor : float
            Above 1.
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return by what the number is multiplied after a step that was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the number is multiplied after a step that was left out.

        Parameters
        ----------
        new_factor : float
            Below 1.
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many good steps in a row the number grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps in a row the number grows.

        Parameters
        ----------
        new_interval : int
            At least 1.
        """
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return numbers to go on from, none where disabled; call it after `update`."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from numbers.

        Parameters
        ----------
        state_dict : dict
            As of `state_dict`, of an enabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._start(self._scale.device)

    def __getstate__(self) -> dict[str, Any]:
        if self._per_optimizer_states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or "
                "at the end after scaler.update()."
            )
        state = dict(vars(self))
        state["_init_scale"] = self.get_scale() if self._enabled else self._init_scale
        state["_init_growth_tracker"] = self._get_growth_tracker()
        return state | {"_scale": None, "_growth_tracker": None}


class _MultiDeviceReplicator:
    """A tensor on each device that asks for it, moved there once."""

    def __init__(self, master_tensor: Any) -> None:
        self.master = master_tensor
        self._per_device_tensors: dict[Any, Any] = {}

    def get(self, device: Any) -> Any:
        """Return the tensor on a device."""
        if device not in self._per_device_tensors:
            self._per_device_tensors[device] = self.master.to(device, non_blocking=True)
        return self._per_device_tensors[device]
