"""Layers on images in channels-last order give images in that order."""

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

X = torch.arange(2 * 4 * 6 * 6, dtype=torch.float32).sin().reshape(2, 4, 6, 6)
W = torch.arange(3 * 4 * 3 * 3, dtype=torch.float32).cos().reshape(3, 4, 3, 3)
ONE = torch.ones(4)

# What PyTorch keeps in the order of its input.
LAYERS = {
    "conv2d": lambda x: F.conv2d(x, W, torch.ones(3)),
    "depthwise": lambda x: F.conv2d(x, torch.ones(4, 1, 3, 3), groups=4),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, W.transpose(0, 1).contiguous()),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, ONE * 0, ONE),
    "batch_norm_training": lambda x: F.batch_norm(x, ONE * 0, ONE.clone(), training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "pad": lambda x: F.pad(x, (1, 1)),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "cat": lambda x: torch.cat([x, x], 1),
    "relu": F.relu,
}


def is_last(x):
    three = x.dim() == 5
    form = torch.channels_last_3d if three else torch.channels_last
    return x.is_contiguous(memory_format=form) and not x.is_contiguous()


@pytest.mark.parametrize("name", LAYERS)
def test_layer_keeps_the_order_the_values_and_the_gradients(name):
    results = []
    for last in (False, True):
        x = X.to(memory_format=torch.channels_last) if last else X.clone()
        x.requires_grad_()
        y = LAYERS[name](x)
        assert is_last(y) == last
        (y * torch.arange(y.numel()).reshape(y.shape)).sum().backward()
        results.append((y, x.grad, type(y.grad_fn).__name__, y.grad_fn.name()))
    (a, ga, *named), (b, gb, *same) = results
    assert named == same
    torch.testing.assert_close(a, b)
    torch.testing.assert_close(ga, gb)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 2, 3, 17])
def test_elements_that_are_moved_in_that_order(channels, dtype):
    x = torch.arange(2 * channels * 5 * 7).remainder(251).reshape(2, channels, 5, 7).to(dtype)
    y = x.to(memory_format=torch.channels_last)
    ways = [lambda t, s=s: F.interpolate(t, size=s) for s in ((10, 14), (10, 7), (3, 21), (5, 7))]
    ways += [lambda t: F.interpolate(t, size=(9, 4), mode="nearest-exact")]
    ways += [lambda t, m=m: F.pad(t, (2, 3, -1, 4), mode=m) for m in ("reflect", "replicate")]
    for way in ways:
        got = way(y)
        assert is_last(got) or channels == 1
        assert torch.equal(got, way(x))
        assert got.grad_fn is None and got._base is None


def test_weight_in_that_order_decides_too():
    assert is_last(F.conv2d(X, W.to(memory_format=torch.channels_last)))
    assert not is_last(F.conv2d(X, W))


def test_dropout_and_indices_keep_the_order():
    x = X.to(memory_format=torch.channels_last)
    assert is_last(F.dropout(x, 0.5))
    y, indices = F.max_pool2d(x, 2, return_indices=True)
    assert is_last(y)
    assert is_last(indices)
    assert torch.equal(indices, F.max_pool2d(X, 2, return_indices=True)[1])


def test_volumes_keep_their_order():
    x = X.reshape(2, 4, 6, 3, 2).to(memory_format=torch.channels_last_3d)
    for y in (
        F.conv3d(x, torch.ones(3, 4, 2, 2, 2)),
        F.max_pool3d(x, 2, 1),
        F.batch_norm(x, ONE * 0, ONE),
        F.interpolate(x, scale_factor=2),
    ):
        assert is_last(y)


def test_in_place_change_of_a_kept_result_reaches_the_gradient():
    x = X.to(memory_format=torch.channels_last).requires_grad_()
    y = F.avg_pool2d(x, 2)
    y.mul_(3)
    y[:, 0].zero_()
    y.sum().backward()
    assert x.grad[:, 0].abs().sum() == 0
    assert torch.equal(x.grad[:, 1:], torch.full((2, 3, 6, 6), 0.75))


@pytest.mark.parametrize("op", ["isnan", "isinf", "isfinite", "isreal"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32])
def test_kinds_of_numbers_keep_the_order_of_integers_too(op, dtype):
    # PyTorch's are `ones_like`, `zeros_like` or a comparison, all of which preserve strides.
    x = X.to(dtype).contiguous(memory_format=torch.channels_last)
    y = getattr(torch, op)(x)
    assert y.stride() == x.stride()
    assert y.dtype == torch.bool
    assert y.unique().tolist() == [op in {"isfinite", "isreal"}]
    assert getattr(torch, op)(torch.ones(2, 3, dtype=dtype).t()).stride() == (1, 3)
