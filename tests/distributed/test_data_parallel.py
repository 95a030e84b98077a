"""One batch over several devices: the CPU named twice stands for two."""

from collections import namedtuple

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import parallel

Pair = namedtuple("Pair", "a b")


def test_data_parallel_gives_the_results_and_gradients_of_the_module():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    x = torch.randn(7, 4, dtype=torch.float64)
    want = net(x)
    want.square().sum().backward()
    grads = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    both = nn.DataParallel(net, device_ids=["cpu", "cpu", "cpu"])
    found = both(x)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), rtol=1e-12)
    found.square().sum().backward()
    for p, g in zip(net.parameters(), grads, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-10)
    assert list(both.state_dict()) == [f"module.{k}" for k in net.state_dict()]


def test_data_parallel_on_the_cpu_calls_the_module():
    net = nn.Linear(2, 1)
    seen = []
    net.register_forward_hook(lambda *a: seen.append(1))
    assert nn.DataParallel(net).device_ids == []
    nn.DataParallel(net)(torch.ones(3, 2))
    assert seen == [1]


def test_scatter_and_gather_go_through_containers():
    x = torch.arange(5)
    value = {"a": [x, "s"], "b": Pair(x, None)}
    parts = parallel.scatter(value, ["cpu", "cpu"])
    assert parts[0]["a"][0].tolist() == [0, 1, 2]
    assert parts[1]["b"].a.tolist() == [3, 4]
    assert isinstance(parts[1]["b"], Pair)
    joined = parallel.gather([{"a": p["a"][0], "b": p["b"]} for p in parts], "cpu")
    assert torch.equal(joined["a"], x) and torch.equal(joined["b"].a, x)
    assert parallel.gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1, 2]
    with pytest.raises(ValueError, match="same number of keys"):
        parallel.gather([{"a": x}, {}], "cpu")


def test_sync_batch_norm_of_one_process_is_batch_norm():
    torch.manual_seed(0)
    x = torch.randn(6, 3, 4)
    plain = nn.BatchNorm1d(3)
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3), nn.ReLU()))
    assert type(converted[0]) is nn.SyncBatchNorm
    assert torch.equal(converted[0](x), plain(x))
    assert torch.equal(converted[0].running_var, plain.running_var)
    converted[0].load_state_dict(plain.state_dict())
