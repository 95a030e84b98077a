"""Recurrent layers against their formulas in NumPy, and their gradients by differences."""

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(gates, h, c, w, b):
    i, f, g, o = np.split(gates + h @ w.T + b, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(gates, h, c, w, b):
    (xr, xz, xn), (hr, hz, hn) = np.split(gates, 3, 1), np.split(h @ w.T + b, 3, 1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    return z * h + (1 - z) * np.tanh(xn + r * hn), c


def tanh(gates, h, c, w, b):
    return np.tanh(gates + h @ w.T + b), c


STEPS = {nn.LSTM: lstm, nn.GRU: gru, nn.RNN: tanh}


@pytest.mark.parametrize("layer", STEPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("width", "batch"), [(1, 1), (5, 3), (33, 13), (64, 50)])
def test_layer_follows_its_formula(layer, dtype, width, batch):
    torch.manual_seed(width)
    m = layer(7, width, dtype=dtype, bidirectional=True)
    x = torch.randn(4, batch, 7, dtype=dtype)
    y, state = m(x)
    with torch.no_grad():
        assert torch.equal(m(x)[0], y)
    for d, suffix in enumerate(("", "_reverse")):
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        w_ih, b_ih, w_hh, b_hh = (
            getattr(m, f"{name}_l0{suffix}").double().detach().numpy() for name in names
        )
        h = c = np.zeros((batch, width))
        for k in range(4)[:: -1 if d else 1]:
            gates = x[k].double().numpy() @ w_ih.T + b_ih
            h, c = STEPS[layer](gates, h, c, w_hh, b_hh)
            got = y[k, :, d * width : (d + 1) * width].detach().double().numpy()
            assert np.allclose(got, h, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-12)
        last = state if layer is not nn.LSTM else state[0]
        assert np.allclose(last[d].detach().double().numpy(), h, rtol=0, atol=1e-5)
        if layer is nn.LSTM:
            assert np.allclose(state[1][d].detach().double().numpy(), c, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("sizes", [None, [4, 3, 1]])
def test_gradients_of_all_orders_agree_with_differences(name, sizes):
    torch.manual_seed(0)
    layer = {"lstm": nn.LSTM, "gru": nn.GRU}.get(name, nn.RNN)
    weights = list(layer(2, 3, bidirectional=True, dtype=torch.float64).parameters())
    options = (True, 1, 0.0, False, True)

    def f(x, h, *w):
        hx = (h, h * h) if name == "lstm" else h
        if sizes:
            return getattr(torch, name)(x, torch.tensor(sizes), hx, w, *options)
        return getattr(torch, name)(x, hx, w, *options, False)

    shape = (8, 2) if sizes else (3, 4, 2)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    h = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x, h, *weights))
    assert torch.autograd.gradgradcheck(lambda x, h: f(x, h, *weights), (x, h))


def test_gradient_does_not_change_with_frozen_inputs():
    m = nn.LSTM(4, 6, num_layers=2)
    x = torch.randn(5, 3, 4)
    m(x)[0].sum().backward()
    want = [p.grad.clone() for p in m.parameters()]
    m.zero_grad()
    m(x.requires_grad_())[0].sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(m.parameters(), want))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_one_step_follows_its_formulas(kind, bias):
    torch.manual_seed(0)
    cell = getattr(torch.nn, kind)(5, 7, bias=bias, dtype=torch.float64)
    x, h, c = (torch.randn(3, n, dtype=torch.float64, requires_grad=True) for n in (5, 7, 7))

    def by_hand(x, h, c):
        a, b = x @ cell.weight_ih.T, h @ cell.weight_hh.T
        if bias:
            a, b = a + cell.bias_ih, b + cell.bias_hh
        if kind == "RNNCell":
            return ((a + b).tanh(),)
        if kind == "GRUCell":
            (r, z, n), (r2, z2, n2) = a.chunk(3, 1), b.chunk(3, 1)
            r, z = (r + r2).sigmoid(), (z + z2).sigmoid()
            n = (n + r * n2).tanh()
            return ((1 - z) * n + z * h,)
        i, f, g, o = (a + b).chunk(4, 1)
        new = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * new.tanh(), new

    def by_cell(x, h, c):
        y = cell(x, (h, c) if kind == "LSTMCell" else h)
        return y if isinstance(y, tuple) else (y,)

    inputs = [x, h, c] if kind == "LSTMCell" else [x, h]
    leaves = [*inputs, *cell.parameters()]
    got, want = by_cell(x, h, c), by_hand(x, h, c)
    for p, q in zip(got, want, strict=True):
        torch.testing.assert_close(p, q)
    grads = [
        torch.autograd.grad(sum((y * y).sum() for y in out), leaves, create_graph=True)
        for out in (got, want)
    ]
    for p, q in zip(*grads, strict=True):
        torch.testing.assert_close(p, q)
    second = [torch.autograd.grad(sum((g * g).sum() for g in gs), leaves) for gs in grads]
    for p, q in zip(*second, strict=True):
        torch.testing.assert_close(p, q)
    # Empty batches, single steps without one, and half precision.
    empty = by_cell(x[:0].detach(), h[:0].detach(), c[:0].detach())
    assert all(y.shape == (0, 7) for y in empty)
    one = by_cell(x[0], h[0], c[0])
    torch.testing.assert_close(one[0], want[0][0])
    cell.bfloat16()
    half = by_cell(*(t.detach().bfloat16() for t in (x, h, c)))
    torch.testing.assert_close(half[0].double(), want[0], rtol=0.05, atol=0.05)


def test_weights_and_states_of_other_sizes_or_types_are_refused() -> None:
    t = torch.ones
    flags = (False, 1, 0.0, False, False, False)
    for call, what in [
        (lambda: torch.gru_cell(t(1, 2), t(1, 1), t(3, 2), t(99, 1)), "weight_hh of size"),
        (lambda: torch.gru(t(2, 1, 2), t(1, 1, 3), [t(9, 2), t(3, 3)], *flags), "weight_hh of"),
        (lambda: torch.rnn_relu(t(2, 1, 2), t(1, 1, 1), [t(1, 2), t(1)], *flags), "weight_hh of"),
        (lambda: torch.rnn_tanh_cell(t(2, 2), t(2, 1), t(1, 2), t(1, 1), t(7), t(1)), "bias_ih"),
        (
            lambda: torch.lstm(
                t(2, 1, 2), [t(1, 1, 1), t(1, 1, 1).half()], [t(4, 2), t(4, 1)], *flags
            ),
            "cell state must have one dtype",
        ),
    ]:
        with pytest.raises(RuntimeError, match=what):
            call()


def test_one_number_is_a_bias_of_all_gates() -> None:
    t = torch.ones
    many = torch.rnn_tanh_cell(t(2, 2), t(2, 3), t(3, 2), t(3, 3), t(3), t(3))
    one = torch.rnn_tanh_cell(t(2, 2), t(2, 3), t(3, 2), t(3, 3), t(1), t(1))
    assert torch.equal(many, one)


def test_packed_sequences_convert_to_integers() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.tensor([1.5, 2.5]), torch.tensor([3.0])])
    for name, dtype in {
        "byte": torch.uint8, "char": torch.int8, "short": torch.int16,
        "int": torch.int32, "long": torch.int64,
    }.items():  # fmt: skip
        other = getattr(packed, name)()
        assert other.data.dtype == dtype
        assert (other.data.tolist(), other.batch_sizes.tolist()) == ([1, 3, 2], [2, 1])
