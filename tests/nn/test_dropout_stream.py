"""What dropout drops: one number of 53 bits for each element, in the order of memory."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F

P = 0.3
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def kept(*shape: int) -> torch.Tensor:
    """Return where numbers of the stream lie below 1 - P; `rand` draws them in float64."""
    return torch.rand(shape, dtype=torch.float64) < 1 - P


def after(seed: int, f: Callable[[], Any]) -> tuple[Any, float]:
    torch.manual_seed(seed)
    return f(), torch.rand(1).item()


def check(got: Callable[[], torch.Tensor], want: Callable[[], torch.Tensor]) -> None:
    for seed in (0, 5):
        (a, i), (b, j) = after(seed, got), after(seed, want)
        np.testing.assert_allclose(
            a.detach().double().numpy(), b.detach().double().numpy(), rtol=1e-5, atol=1e-6
        )
        assert i == j, "other numbers were drawn"


def scale(dtype: torch.dtype) -> torch.Tensor:
    return torch.ones((), dtype=dtype) / (1 - P)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (7,), (1000,), (3, 5, 7), (70001,), (0, 3)])
def test_dropout_keeps_what_the_stream_says(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = (torch.arange(math.prod(shape)).reshape(shape) % 100 / 32).to(dtype)

    def want() -> torch.Tensor:
        return x * kept(*shape).to(dtype) * scale(dtype)

    check(lambda: F.dropout(x, P), want)
    check(lambda: F.dropout(x.clone(), P, inplace=True), want)

    def mask() -> torch.Tensor:
        return torch.native_dropout(x, P, True)[1]

    check(mask, lambda: kept(*shape))
    check(lambda: torch.empty(shape, dtype=dtype).bernoulli_(1 - P), lambda: kept(*shape))


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: (x.transpose(1, 3), (0, 3, 2, 1)),
        lambda x: (x.contiguous(memory_format=torch.channels_last), (0, 2, 3, 1)),
        lambda x: (x[:, :, ::2], (0, 1, 2, 3)),
        lambda x: (x[:, :1].expand(2, 4, 6, 10), (0, 1, 2, 3)),
    ],
    ids=["transposed", "channels_last", "sliced", "expanded"],
)
def test_dropout_draws_in_the_order_of_memory(layout: Any) -> None:
    x, order = layout(torch.arange(1.0, 481.0).reshape(2, 4, 6, 10))
    lies = x.permute(order)

    def want() -> torch.Tensor:
        y = lies * kept(*lies.shape) / (1 - P)
        return y.permute([order.index(i) for i in range(4)])

    check(lambda: F.dropout(x, P), want)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_dropout_of_channels_draws_one_number_for_each(n: int) -> None:
    x = torch.rand(3, 4, *[5] * n) + 1

    def want() -> torch.Tensor:
        return x * kept(3, 4).reshape(3, 4, *[1] * n) / (1 - P)

    check(lambda: getattr(F, f"dropout{n}d")(x, P), want)
    check(lambda: getattr(nn, f"Dropout{n}d")(P)(x), want)


@pytest.mark.parametrize("feature", [False, True])
def test_alpha_dropout_draws_the_same_numbers(feature: bool) -> None:
    x = torch.rand(3, 4, 5)
    a2 = 1.7580993408473766
    a = 1 / math.sqrt((a2**2 * P + 1) * (1 - P))
    shape = (3, 4, 1) if feature else (3, 4, 5)

    def want() -> torch.Tensor:
        m = kept(*shape).float()
        return x * m * a + (m - 1) * (a2 * a) + a2 * a * P

    check(lambda: (F.feature_alpha_dropout if feature else F.alpha_dropout)(x, P, True), want)


def test_attention_drops_weights_by_the_stream() -> None:
    q = torch.randn(2, 3, 6, 8)

    def want() -> torch.Tensor:
        weights = torch.softmax(q @ q.mT / math.sqrt(8), -1)
        return (weights * kept(2, 3, 6, 6) / (1 - P)) @ q

    check(lambda: F.scaled_dot_product_attention(q, q, q, dropout_p=P), want)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_recurrent_layers_drop_between_layers_in_the_order_of_time(
    kind: str, batch_first: bool
) -> None:
    torch.manual_seed(1)
    both = getattr(nn, kind)(4, 4, 2, dropout=P, batch_first=batch_first)
    one, two = getattr(nn, kind)(4, 4), getattr(nn, kind)(4, 4)
    for layer, number in ((one, 0), (two, 1)):
        layer.load_state_dict(
            {k: both.state_dict()[k.replace("l0", f"l{number}")] for k in layer.state_dict()}
        )
    x = torch.randn(5, 3, 4)
    turn = (lambda t: t.transpose(0, 1)) if batch_first else lambda t: t

    def want() -> torch.Tensor:
        return two(one(x)[0] * kept(5, 3, 4) / (1 - P))[0]

    check(lambda: turn(both(turn(x))[0]), want)


def test_rrelu_draws_a_slope_of_53_bits_where_it_falls() -> None:
    x = torch.linspace(-1, 1, 101)

    def want() -> torch.Tensor:
        below = x <= 0
        slope = torch.ones(101, dtype=torch.float64)
        slope[below] = torch.rand(int(below.sum()), dtype=torch.float64) * 0.8 + 0.1
        return x * slope

    check(lambda: F.rrelu(x, 0.1, 0.9, True), want)


def test_gradient_of_dropout_uses_the_same_mask() -> None:
    x = torch.rand(50, requires_grad=True)
    y = F.dropout(x, P)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), (y / x).detach().numpy(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:dropout3d")
def test_dropout3d_of_fewer_dimensions_is_one_example() -> None:
    x = torch.rand(7)
    check(lambda: F.dropout3d(x, P), lambda: x * kept(7) / (1 - P))
    y = torch.rand(3, 4, 5)
    check(lambda: F.dropout3d(y, P), lambda: y * kept(3)[:, None, None] / (1 - P))


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_after_attention_draws_in_the_order_of_length(need_weights: bool) -> None:
    """PyTorch's result of a batch-first layer lies as (length, batch, width) in memory."""
    batch, length, width = 3, 5, 8
    layer = nn.MultiheadAttention(width, 2, batch_first=True)
    x = torch.randn(batch, length, width)
    out = layer(x, x, x, need_weights=need_weights)[0].detach()
    assert out.stride() == (width, batch * width, 1)

    def want() -> torch.Tensor:
        mask = kept(length, batch, width).transpose(0, 1)
        return out * mask.float() * scale(torch.float32)

    check(lambda: F.dropout(out, P), want)


@pytest.mark.parametrize("f", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d])
def test_dropout_of_everything_takes_integers(f: object) -> None:
    x = torch.ones((2, 3, 2) if f is F.dropout1d else (2, 3, 2, 2), dtype=torch.int32)
    y = f(x, p=1.0, training=True)  # type: ignore[operator]
    assert y.dtype == torch.int32 and not y.any()
