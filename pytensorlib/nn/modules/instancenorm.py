"""Instance normalisation."""

from __future__ import annotations

from typing import Any

from ... import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            stale = [
                prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict
            ]
            if stale:
                names = " and ".join(f'"{key}"' for key in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If the checkpoint is older than version 0.4, "
                    "delete these entries or make the layer with track_running_stats=True."
                )
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _get_no_batch_dim(self) -> int:
        """Return the number of dimensions of an input without a batch."""
        return self._dims[0]

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        unbatched = input.dim() == self._dims[0]
        axis = input.dim() - self._dims[0]
        if input.size(axis) != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={axis} to match num_features "
                f"({self.num_features}), but got: {input.size(axis)}."
            )
        out = F.instance_norm(
            input.unsqueeze(0) if unbatched else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if unbatched else out


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, L) or (C, L) by its own mean and variance.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float, default 0.1
        The batch's share in the running statistics.
    affine : bool, default False
        Learn a factor and an offset for each channel.
    track_running_stats : bool, default False
        Keep running statistics, and use them in evaluation.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Raises
    ------
    ValueError
        The input has another number of dimensions, or one value per channel.

    References
    ----------
    Ulyanov et al. 2016, arXiv:1607.08022.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.InstanceNorm1d(1)(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, H, W) or (C, H, W) by its own mean and
    variance.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float, default 0.1
        The batch's share in the running statistics.
    affine : bool, default False
        Learn a factor and an offset for each channel.
    track_running_stats : bool, default False
        Keep running statistics, and use them in evaluation.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Raises
    ------
    ValueError
        The input has another number of dimensions, or one value per channel.

    References
    ----------
    Ulyanov et al. 2016, arXiv:1607.08022.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.InstanceNorm2d(3)(torch.rand(2, 3, 4, 4)).mean().abs().item() < 1e-5
    True
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, D, H, W) or (C, D, H, W) by its own
    statistics.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float, default 0.1
        The batch's share in the running statistics.
    affine : bool, default False
        Learn a factor and an offset for each channel.
    track_running_stats : bool, default False
        Keep running statistics, and use them in evaluation.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Raises
    ------
    ValueError
        The input has another number of dimensions, or one value per channel.

    References
    ----------
    Ulyanov et al. 2016, arXiv:1607.08022.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.InstanceNorm3d(2)(torch.ones(1, 2, 2, 2, 2)).abs().max().item()
    0.0
    """

    _dims = (4, 5)


class _LazyInstanceNorm(_LazyNormBase):
    def _channel_axis(self, input: Tensor) -> int:
        own: Any = self
        return 0 if input.dim() == own._dims[0] else 1


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """InstanceNorm1d that takes `num_features` from its first input.

    Parameters
    ----------
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The batch's share in the running statistics; None averages over all batches.
    affine : bool, default True
        Learn a factor and an offset for each channel.
    track_running_stats : bool, default True
        Keep running statistics for evaluation.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> norm = nn.LazyInstanceNorm1d()
    >>> _ = norm(torch.ones(2, 3, 4))
    >>> norm.num_features
    3
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """InstanceNorm2d that takes `num_features` from its first input.

    Parameters
    ----------
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The batch's share in the running statistics; None averages over all batches.
    affine : bool, default True
        Learn a factor and an offset for each channel.
    track_running_stats : bool, default True
        Keep running statistics for evaluation.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> norm = nn.LazyInstanceNorm2d()
    >>> _ = norm(torch.ones(2, 3, 4, 4))
    >>> norm.num_features
    3
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """InstanceNorm3d that takes `num_features` from its first input.

    Parameters
    ----------
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The batch's share in the running statistics; None averages over all batches.
    affine : bool, default True
        Learn a factor and an offset for each channel.
    track_running_stats : bool, default True
        Keep running statistics for evaluation.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.
    bias : bool, default True
        Learn the offset.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> norm = nn.LazyInstanceNorm3d()
    >>> _ = norm(torch.ones(2, 3, 4, 4, 4))
    >>> norm.num_features
    3
    """

    cls_to_become = InstanceNorm3d
