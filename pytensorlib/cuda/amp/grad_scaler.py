"""``torch.cuda.amp.GradScaler``: an older way to write `torch.amp.GradScaler`."""

from __future__ import annotations

import warnings

from ...amp import grad_scaler

__all__ = ["GradScaler"]


class GradScaler(grad_scaler.GradScaler):
    """As `torch.amp.GradScaler` of "cuda", which is what to write instead.

    Parameters
    ----------
    init_scale : float, default 65536.0
        The first number.
    growth_factor : float, default 2.0
        By what it is multiplied after `growth_interval` good steps; above 1.
    backoff_factor : float, default 0.5
        By what it is multiplied after a step that was left out; below 1.
    growth_interval : int, default 2000
        Good steps in a row.
    enabled : bool, default True
        Whether it does anything; it warns.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> warnings.simplefilter("ignore")
    >>> torch.cuda.amp.GradScaler().is_enabled()
    False
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use "
            "`torch.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
