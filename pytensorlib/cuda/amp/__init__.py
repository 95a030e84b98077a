"""Older names of `torch.amp` on "cuda"; where no GPU answers as that it is disabled."""

from . import autocast_mode, common, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd
from .common import amp_definitely_not_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
