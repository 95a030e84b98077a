"""Batch, instance, group and layer norms: statistics, their types, channels without variance."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib import nn


def test_instance_norm_with_one_tensor_for_both_statistics_writes_the_variance() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    for use in (torch.float32, torch.float64):
        both = torch.tensor([1.0, 2.0, 3.0], dtype=use)
        old = both.clone()
        F.instance_norm(x.to(use), both, both, momentum=0.25, use_input_stats=True)
        variance = x.to(use).var(2, unbiased=True).mean(0)
        torch.testing.assert_close(both, 0.75 * old + 0.25 * variance)


def test_instance_norm_with_overlapping_statistics_computes_from_what_was() -> None:
    memory = torch.tensor([1.0, 2.0, 3.0, 4.0])
    mean, variance = memory[:3], memory[1:]
    x = torch.arange(24.0).reshape(2, 3, 4)
    want = 0.5 * memory[1:].clone() + 0.5 * x.var(2, unbiased=True).mean(0)
    F.instance_norm(x, mean, variance, momentum=0.5, use_input_stats=True)
    torch.testing.assert_close(memory[1:], want)


def test_native_norms_give_statistics_in_the_type_of_any_parameter() -> None:
    x, one = torch.ones(1, 2).bfloat16(), torch.ones(2)
    single = [torch.bfloat16, torch.float32, torch.float32]
    for w, b in ((one, one), (None, one), (one, None)):
        assert [t.dtype for t in torch.native_layer_norm(x, (2,), w, b, 1e-5)] == single
        assert [t.dtype for t in torch.native_group_norm(x, w, b, 1, 2, 1, 1, 1e-5)] == single
        y = torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)
        assert [t.dtype for t in y] == single


def test_instance_norm_wants_both_statistics_or_none() -> None:
    with pytest.raises(ValueError, match="both"):
        F.instance_norm(torch.ones(1, 2, 3), running_var=torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4)])
def test_batch_norm_of_still_channels_without_eps_is_the_bias(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    x, bias = torch.ones(shape, dtype=dtype), torch.tensor([3.0, 4.0], dtype=dtype)
    y, mean, rstd = torch.native_batch_norm(x, None, bias, None, None, True, 0.1, 0.0)
    np.testing.assert_array_equal(
        y.transpose(1, -1).reshape(-1, 2).numpy(), np.tile([3.0, 4.0], (x.numel() // 2, 1))
    )
    assert (mean.tolist(), rstd.tolist()) == ([1, 1], [0, 0])
    if len(shape) == 3:
        assert F.instance_norm(x, eps=0.0).count_nonzero() == 0


def test_batch_norm_of_one_still_channel_leaves_the_others() -> None:
    y = torch.native_batch_norm(
        torch.tensor([[1.0, 2.0], [1.0, 3.0]]), None, None, None, None, True, 0.1, 0.0
    )
    assert y[0].tolist() == [[0, -1], [0, 1]]
    assert y[2].tolist() == [0, 2]


def test_synchronised_norm_takes_and_keeps_bias() -> None:
    assert nn.SyncBatchNorm(2, bias=False).bias is None
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2, bias=False))
    assert net.bias is None
    assert net.weight is not None
