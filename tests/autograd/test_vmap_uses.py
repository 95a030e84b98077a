"""PyTorch's documented uses of `vmap`, beside loops and plain autograd, and none of them loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

F = nn.functional


@pytest.fixture(autouse=True)
def no_loop() -> Iterator[None]:
    before = torch._C._set_vmap_loops(2)
    torch.manual_seed(0)
    yield
    torch._C._set_vmap_loops(before)


def close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


class Images(nn.Module):
    """Convolutions, a pool, norms of groups and of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, groups=2, padding=1)
        self.groups, self.rows = nn.GroupNorm(2, 4), nn.LayerNorm(36)
        self.out = nn.Linear(36, 3)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.groups(self.one(x)))
        x = F.max_pool2d(torch.tanh(self.two(x)), 2).flatten(1)
        return F.log_softmax(self.out(self.rows(x)), dim=1)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 8, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 7)

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(self.table(x)))


def images() -> Any:
    net = Images().double()
    x, y = torch.randn(5, 2, 8, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 1, 0])
    return net, x, y, lambda out, y: F.nll_loss(out, y)


def words() -> Any:
    net = Words().double()
    x = torch.randint(0, 7, (5, 6))
    return net, x, torch.randint(0, 7, (5, 6)), lambda out, y: F.cross_entropy(out.mT, y)


def vectors() -> Any:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x = torch.randn(5, 3, dtype=torch.float64)
    return net, x, torch.randn(5, 2, dtype=torch.float64), F.mse_loss


@pytest.mark.parametrize("make", [images, words, vectors])
def test_gradients_for_each_sample(make: Any) -> None:
    net, x, y, loss = make()
    params = {k: v.detach() for k, v in net.named_parameters()}

    def one(params: Any, x: Any, y: Any) -> Any:
        return loss(functional_call(net, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    found = vmap(grad(one), in_dims=(None, 0, 0))(params, x, y)
    for i in range(len(x)):
        net.zero_grad()
        loss(net(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in net.named_parameters():
            close(found[name][i], p.grad)
    assert not any(g.requires_grad for g in found.values())
    parts = vmap(grad(one), in_dims=(None, 0, 0), chunk_size=2)(params, x, y)
    for name, g in found.items():
        close(parts[name], g)


@pytest.mark.parametrize("make", [images, vectors])
def test_gradients_flow_through_those_of_samples(make: Any) -> None:
    """The slope of the sum of squared norms of gradients, as by double backward."""
    net, x, y, loss = make()
    params = {k: v.detach() for k, v in net.named_parameters()}

    def one(params: Any, x: Any, y: Any) -> Any:
        return loss(functional_call(net, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    def penalty(params: Any) -> Any:
        slopes = vmap(grad(one), in_dims=(None, 0, 0))(params, x, y)
        return sum((g * g).sum() for g in slopes.values())

    found = grad(penalty)(params)
    total = 0
    for i in range(len(x)):
        value = loss(net(x[i : i + 1]), y[i : i + 1])
        slopes = torch.autograd.grad(value, list(net.parameters()), create_graph=True)
        total = total + sum((g * g).sum() for g in slopes)
    want = torch.autograd.grad(total, list(net.parameters()))
    for g, w in zip(found.values(), want, strict=True):
        close(g, w)


def test_ensemble_computes_and_learns_as_its_models() -> None:
    nets = [images()[0] for _ in range(3)]
    _, x, y, loss = images()
    params, buffers = stack_module_state(nets)

    def call(params: Any, buffers: Any, x: Any, y: Any) -> Any:
        return loss(functional_call(nets[0], (params, buffers), (x,)), y)

    vmap(call, in_dims=(0, 0, None, None))(params, buffers, x, y).sum().backward()
    for i, net in enumerate(nets):
        loss(net(x), y).backward()
        for name, p in net.named_parameters():
            close(params[name].grad[i], p.grad)


def test_jacobians_and_hessians_of_a_batch() -> None:
    net, x, _, _ = vectors()
    f = lambda v: net(v)  # noqa: E731
    rows = vmap(jacrev(f))(x)
    close(vmap(jacfwd(f))(x), rows)
    close(jacrev(f, chunk_size=1)(x[0]), rows[0])
    for i in range(len(x)):
        close(rows[i], torch.autograd.functional.jacobian(f, x[i]))
    square = lambda v: (net(v) ** 2).sum()  # noqa: E731
    found = vmap(hessian(square))(x)
    for i in range(len(x)):
        close(found[i], torch.autograd.functional.hessian(square, x[i]))


def test_products_with_hessians() -> None:
    net, x, _, _ = vectors()
    square = lambda v: (net(v) ** 2).sum()  # noqa: E731
    v = torch.randn_like(x)
    whole = vmap(hessian(square))(x)
    want = torch.einsum("nij,nj->ni", whole, v)
    close(vmap(lambda x, v: jvp(grad(square), (x,), (v,))[1])(x, v), want)
    close(vmap(lambda x, v: vjp(grad(square), x)[1](v)[0])(x, v), want)
    close(vmap(lambda x, v: grad(lambda x: (grad(square)(x) * v).sum())(x))(x, v), want)
    _, push = linearize(grad(square), x[0])
    close(vmap(push)(torch.eye(3, dtype=torch.float64)), whole[0])


def test_tangent_kernel() -> None:
    net, x, _, _ = images()
    params = {k: v.detach() for k, v in net.named_parameters()}

    def one(params: Any, x: Any) -> Any:
        return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    slopes = vmap(jacrev(one), in_dims=(None, 0))(params, x)
    flat = [s.flatten(2) for s in slopes.values()]
    kernel = sum(torch.einsum("naf,mbf->nmab", j, j) for j in flat)

    def product(x1: Any, x2: Any) -> Any:
        def column(v: Any) -> Any:
            (along,) = vjp(lambda p: one(p, x1), params)[1](v)
            return jvp(lambda p: one(p, x2), (params,), (along,))[1]

        return vmap(column)(torch.eye(3, dtype=torch.float64))

    other = vmap(vmap(product, (None, 0)), (0, None))(x, x)
    close(other, kernel, 1e-8)


def test_slices_of_slices() -> None:
    x, y = torch.randn(3, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    dots = vmap(vmap(torch.dot, (None, 0)), (0, None))(x, y)
    close(dots, x @ y.T)
    slopes = vmap(vmap(grad(lambda a, b: (a * b).sin().sum()), (None, 0)), (0, None))(x, y)
    products = x[:, None] * y[None]
    close(slopes, y[None] * products.cos())


def test_batched_gradients_are_one_backward() -> None:
    net, x, _, _ = vectors()
    out = net(x.requires_grad_())
    directions = torch.randn(6, *out.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad(out, x, directions, is_grads_batched=True, retain_graph=True)
    for i in range(6):
        close(found[i], torch.autograd.grad(out, x, directions[i], retain_graph=True)[0])


def test_dropout_of_slices() -> None:
    x = torch.ones(4, 1000)
    same = vmap(lambda r: F.dropout(r, 0.5), randomness="same")(x)
    assert bool((same == same[0]).all()) and 300 < int((same[0] == 0).sum()) < 700
    different = vmap(lambda r: F.dropout(r, 0.5), randomness="different")(x)
    assert not bool((different == different[0]).all())
    torch.manual_seed(5)
    found = vmap(lambda r: F.dropout(r, 0.5), randomness="different")(x)
    torch.manual_seed(5)
    assert torch.equal(found, F.dropout(x, 0.5))


def test_writes_within_the_function_reach_only_slices() -> None:
    x = torch.arange(6.0).view(3, 2)

    def f(r: Any) -> Any:
        y = r.clone()
        y[0] = 10 * y[1]
        y.view(2, 1).mul_(2)
        return y

    want = torch.stack([20 * x[:, 1], 2 * x[:, 1]], 1)
    assert torch.equal(vmap(f)(x), want)
    slopes = vmap(grad(lambda r: f(r).sum()))(x)
    assert slopes.tolist() == [[0.0, 22.0]] * 3
    assert grad(lambda x: vmap(f)(x).sum())(x).tolist() == [[0.0, 22.0]] * 3


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="needs a GPU, or software for one")
@pytest.mark.parametrize("make", [images, words, vectors])
def test_gradients_for_each_sample_on_the_gpu(make: Any) -> None:
    net, x, y, loss = make()
    net = net.float()
    x, y = (t.float() if t.is_floating_point() else t for t in (x, y))
    params = {k: v.detach() for k, v in net.named_parameters()}

    def one(params: Any, x: Any, y: Any) -> Any:
        return loss(functional_call(net, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    want = vmap(grad(one), in_dims=(None, 0, 0))(params, x, y)
    there = {k: v.to("wgpu") for k, v in params.items()}
    found = vmap(grad(one), in_dims=(None, 0, 0))(there, x.to("wgpu"), y.to("wgpu"))
    for name, g in found.items():
        assert g.device.type != "cpu"
        close(g.cpu(), want[name], 1e-4)
