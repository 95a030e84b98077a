"""Tensors larger than one binding of the adapter, which limits made small make quick to test."""

from __future__ import annotations

import json

import pytest
from child import run

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

SMALL = {"PYTENSORLIB_WGPU_MAX_BINDING": "65536", "PYTENSORLIB_WGPU_FALLBACK": "error"}

# Every expectation is NumPy's. 50,000 float32 are four bindings.
PROGRAM = """
    import json
    import numpy as np
    import pytensorlib as torch

    def same(name, got, want, tolerance=0):
        assert got.device.type == "wgpu", name
        got, want = got.cpu().numpy(), np.asarray(want)
        assert got.shape == want.shape and got.dtype == want.dtype, (name, got.dtype, want.dtype)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)
        seen.append(name)

    seen = []
    n = 50_000
    host = np.arange(n, dtype=np.float32)
    x = torch.from_numpy(host).to("wgpu")
    same("moved", x, host)
    same("fill", torch.full((n,), 2.5, device="wgpu"), np.full(n, 2.5, np.float32))
    same("zeros", torch.zeros(n, device="wgpu"), np.zeros(n, np.float32))
    same("arange", torch.arange(n, device="wgpu"), np.arange(n))
    same("pointwise", x * 2 + x, host * 3)
    same("slice", x[40_001:40_011] + 1, host[40_001:40_011] + 1)
    same("far slice", x[-3:].clone(), host[-3:])
    same("compare", x > 25_000, host > 25_000)
    same("cast", x.to(torch.uint8), host.astype(np.int64).astype(np.uint8))
    same("wide", x.to(torch.int64) * 3, host.astype(np.int64) * 3)
    same("sum", x.sum(), np.float32(host.astype(np.float64).sum()), 1e-6)
    same("mean", x.mean(), np.float32(host.astype(np.float64).mean()), 1e-6)
    same("amax", x.amax(), host.max())
    same("any", (x == 49_999).any(), np.True_)
    same("all", (x >= 0).all(), np.True_)

    m = host.reshape(200, 250)
    a = x.view(200, 250)
    same("row sums", a.sum(1), m.sum(1), 1e-6)
    same("column sums", a.sum(0), m.sum(0), 1e-6)
    same("mean of columns", a.mean(0), m.mean(0), 1e-6)
    same("middle", x.view(40, 50, 25).sum(1), host.reshape(40, 50, 25).sum(1), 1e-6)
    same("outer and inner", x.view(40, 50, 25).amax((0, 2)), host.reshape(40, 50, 25).max((0, 2)))
    same("transposed", a.t().contiguous(), m.T)
    same("transposed sum", a.t() + torch.ones(200, device="wgpu"), m.T + 1)
    same("broadcast", a[:, :1] - a[:1], m[:, :1] - m[:1])
    same("lower triangle", a.tril(), np.tril(m))
    same("cat", torch.cat([x, x[:7]]), np.concatenate([host, host[:7]]))
    x[30_000:30_005] = -1
    host[30_000:30_005] = -1
    same("written", x, host)
    x.mul_(2)
    same("in place", x, host * 2)
    b = torch.zeros(n, dtype=torch.bool, device="wgpu")
    b[12_345::2] = True
    want = np.zeros(n, bool)
    want[12_345::2] = True
    same("bytes", b, want)
    torch.manual_seed(3)
    drawn = torch.rand(n, device="wgpu").cpu().tolist()
    grad = torch.ones(n, device="wgpu", requires_grad=True)
    (grad * grad).sum().backward()
    same("gradient", grad.grad, np.full(n, 2, np.float32))
    print(json.dumps([seen, drawn]))
"""


def test_ops_on_tensors_larger_than_a_binding_match_numpy() -> None:
    seen, drawn = json.loads(run(PROGRAM, **SMALL))
    assert len(seen) == 29
    plain = json.loads(run(PROGRAM, PYTENSORLIB_WGPU_FALLBACK="error"))
    # Where tensors are cut leaves random numbers what they are.
    assert plain == [seen, drawn]


def test_ops_that_are_not_cut_run_on_the_cpu() -> None:
    told = run(
        """
        import pytensorlib as torch
        y = torch.linalg.ldl_factor(2 * torch.eye(200, device="wgpu")).LD[7, 7]
        print(y.device, y.item(), torch.wgpu.fallbacks() != {})
        """,
        PYTENSORLIB_WGPU_MAX_BINDING="65536",
        PYTENSORLIB_WGPU_FALLBACK="silent",
    )
    assert told == "wgpu:0 2.0 True\n"


def test_more_buffers_than_there_is_memory_for_are_out_of_memory() -> None:
    told = run(
        """
        import pytensorlib as torch
        torch.wgpu.set_memory_cap(1 << 18)
        live = torch.wgpu.memory_stats()["allocated"]
        try:
            torch.ones(100_000, device="wgpu")
        except torch.OutOfMemoryError as e:
            print("as buffers of 0.1 MiB, the adapter's largest" in str(e))
        print(torch.wgpu.memory_stats()["allocated"] - live)
        print(torch.ones(30_000, device="wgpu").sum().item())
        """,
        PYTENSORLIB_WGPU_MAX_BUFFER="65536",
    )
    assert told == "True\n0\n30000.0\n"


VARIED = """
    import random
    import pytensorlib as torch
    random.seed(0)
    layers = torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
    net = torch.nn.Sequential(*layers).to("wgpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for i in range(400):
        x = torch.ones(random.randint(1, 300), 32, device="wgpu")
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        if i % 20 == 0:
            torch.wgpu.synchronize()
    stats = torch.wgpu.memory_stats()
    print(stats["reserved"] / stats["peak_allocated"])
"""


def test_random_batch_sizes_hold_less_than_four_times_the_peak() -> None:
    assert float(run(VARIED)) < 4
