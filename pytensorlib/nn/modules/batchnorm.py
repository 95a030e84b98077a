"""Batch normalisation, and what instance normalisation shares with it."""

from __future__ import annotations

import sys
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from .. import init
from .._advice import advise
from ..module import Module
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin


class _NormBase(Module):
    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    _dims: tuple[int, ...] = ()
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        made = {"device": device, "dtype": dtype}
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(pt.empty(num_features, **made))
            if bias:
                self.bias = Parameter(pt.empty(num_features, **made))
        if track_running_stats:
            self.register_buffer("running_mean", pt.zeros(num_features, **made))
            self.register_buffer("running_var", pt.ones(num_features, **made))
            count = pt.tensor(0, dtype=pt.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the running statistics; weight 1, bias 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            expected = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        # Version 1 did not count the batches.
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            known = count is not None and not count.is_meta
            state_dict[key] = count if known else pt.tensor(0, dtype=pt.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a plain average over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        try:
            return F.batch_norm(
                input,
                self.running_mean if keep else None,
                self.running_var if keep else None,
                self.weight,
                self.bias,
                use_batch,
                momentum,
                self.eps,
            )
        except RuntimeError as error:
            like = self.running_mean if self.weight is None else self.weight
            advise(error, input, like, self.num_features)
            raise


class BatchNorm1d(_BatchNorm):
    """Normalise each channel of (N, C) or (N, C, L) by the batch's mean and variance.

    In evaluation the running mean and variance take their place.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
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

    Attributes
    ----------
    running_mean, running_var : Tensor or None
        (C,).

    Raises
    ------
    ValueError
        The input has another number of dimensions, or one value per channel in training.

    References
    ----------
    Ioffe and Szegedy 2015, arXiv:1502.03167.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.BatchNorm1d(1)(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of (N, C, H, W) by the batch's mean and variance.

    In evaluation the running mean and variance take their place.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
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

    Attributes
    ----------
    running_mean, running_var : Tensor or None
        (C,).

    Raises
    ------
    ValueError
        The input has another number of dimensions, or one value per channel in training.

    References
    ----------
    Ioffe and Szegedy 2015, arXiv:1502.03167.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> norm = nn.BatchNorm2d(3)
    >>> norm(torch.rand(2, 3, 4, 4)).mean().abs().item() < 1e-5
    True
    >>> norm.running_mean.shape
    torch.Size([3])
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of (N, C, D, H, W) by the batch's mean and variance.

    In evaluation the running mean and variance take their place.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
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

    Raises
    ------
    ValueError
        The input has another number of dimensions, or one value per channel in training.

    References
    ----------
    Ioffe and Szegedy 2015, arXiv:1502.03167.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.BatchNorm3d(2)(torch.ones(1, 2, 2, 2, 2)).abs().max().item()
    0.0
    """

    _dims = (5,)


class _LazyNormBase(LazyModuleMixin):
    """Takes ``num_features`` from the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        own: Any = self
        super().__init__(0, eps, momentum, False, False, device, dtype)
        own.affine = affine
        own.track_running_stats = track_running_stats
        made = {"device": device, "dtype": dtype}
        if own.affine:
            own.weight = UninitializedParameter(**made)
            if bias:
                own.bias = UninitializedParameter(**made)
        if own.track_running_stats:
            own.running_mean = UninitializedBuffer(**made)
            own.running_var = UninitializedBuffer(**made)
            own.num_batches_tracked = pt.tensor(0, dtype=pt.int64, device=device)

    def _channel_axis(self, input: Tensor) -> int:
        return 1

    def reset_parameters(self) -> None:
        """Draw the starting values, once the sizes are known."""
        own: Any = self
        if not self.has_uninitialized_params() and own.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        own: Any = self
        if self.has_uninitialized_params():
            own.num_features = input.shape[self._channel_axis(input)]
            for tensor in (own.weight, own.bias, own.running_mean, own.running_var):
                if tensor is not None:
                    tensor.materialize((own.num_features,))
            self.reset_parameters()
        elif own.num_features == 0:  # its state was loaded
            own.num_features = input.shape[self._channel_axis(input)]


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """BatchNorm1d that takes `num_features` from its first input.

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
    >>> norm = nn.LazyBatchNorm1d()
    >>> _ = norm(torch.ones(2, 3))
    >>> norm.num_features
    3
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """BatchNorm2d that takes `num_features` from its first input.

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
    >>> norm = nn.LazyBatchNorm2d()
    >>> _ = norm(torch.ones(2, 3, 1, 1))
    >>> norm.num_features
    3
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """BatchNorm3d that takes `num_features` from its first input.

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
    >>> norm = nn.LazyBatchNorm3d()
    >>> _ = norm(torch.ones(2, 3, 1, 1, 1))
    >>> norm.num_features
    3
    """

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with the statistics of all processes' batches together.

    Parameters
    ----------
    num_features : int
        The size of dimension 1.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        The weight of a batch in the running statistics; None for a plain average.
    affine : bool, default True
        Whether there are a weight and a bias.
    track_running_stats : bool, default True
        Whether there are running statistics, for evaluation.
    process_group : ProcessGroup, optional
        Whose processes; all by default, and without a group this one alone.
    device : device, optional
        Where the parameters live.
    dtype : dtype, optional
        Their type.
    bias : bool, default True
        With `affine`, whether there is a bias.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2))).__name__
    'SyncBatchNorm'
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _processes(self) -> Any:
        """Return the group whose batches are one, if there is more than this process."""
        dist = sys.modules.get(f"{pt.__name__}.distributed")
        if dist is None or (not self.training and self.track_running_stats):
            return None
        if not dist.is_initialized():
            return None
        group = self.process_group or dist.group.WORLD
        return group if dist.get_world_size(group) > 1 else None

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input.

        Parameters
        ----------
        input : Tensor
            Channels in dimension 1.
        """
        self._check_input_dim(input)
        group = self._processes()
        if group is None:
            return super().forward(input)
        from ...distributed.nn.functional import all_reduce

        x = input.float() if input.dtype in (pt.float16, pt.bfloat16) else input
        dims = [d for d in range(x.dim()) if d != 1]
        shape = [1, -1] + [1] * (x.dim() - 2)
        own = pt.tensor([x.numel() / max(1, x.size(1))], dtype=x.dtype, device=x.device)
        sums = all_reduce(pt.cat([x.sum(dims), own]), group=group)
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centred = x - mean.reshape(shape)
        var = all_reduce((centred * centred).sum(dims), group=group) / count
        if self.track_running_stats:
            self._learn(mean.detach(), var.detach() * (count / (count - 1)))
        y = centred * (var + self.eps).rsqrt().reshape(shape)
        if self.weight is not None:
            y = y * self.weight.reshape(shape)
        if self.bias is not None:
            y = y + self.bias.reshape(shape)
        return y.to(input.dtype)

    def _learn(self, mean: Tensor, var: Tensor) -> None:
        """Move the running statistics on; `var` is unbiased."""
        self.num_batches_tracked.add_(1)
        momentum = self.momentum
        if momentum is None:  # a plain average over all batches
            momentum = 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(var.to(self.running_var.dtype), momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Return a module in which this class has the place of other batch normalisations.

        Parameters
        ----------
        module : Module
            Changed in place, unless it is a batch normalisation itself.
        process_group : ProcessGroup, optional
            That of the class.
        """
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                made._buffers[name] = module._buffers[name]
            made.training = module.training
        for name, child in list(module.named_children()):
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
