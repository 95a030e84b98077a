"""What lies under the GPU's kernels: adapters, the pool, bind groups and what is kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import child
import pytest
from child import run

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


def test_properties_show_features_and_limits() -> None:
    told = wgpu.get_device_properties()
    assert told["limits"]["max_storage_buffers_per_shader_stage"] >= 8  # what WebGPU promises
    assert told["limits"]["max_compute_workgroup_size_x"] >= 256
    assert told["int64"] == ("shader_int64" in told["features"])
    assert told["float64"] == ("shader_f64" in told["features"])
    for m, n, k, _, _ in told["cooperative_matrices"]:
        assert m > 0 and n > 0 and k > 0


def mlp() -> tuple[nn.Module, Callable[[nn.Module], Any], type]:
    x, y = torch.randn(16, 20, device="wgpu"), torch.arange(16, device="wgpu") % 10
    net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
    return net, lambda net: F.cross_entropy(net(x), y), torch.optim.SGD


def cnn() -> tuple[nn.Module, Callable[[nn.Module], Any], type]:
    x, y = torch.randn(4, 1, 12, 12, device="wgpu"), torch.arange(4, device="wgpu")
    block = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    net = nn.Sequential(*block, nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10))
    return net, lambda net: F.cross_entropy(net(x), y), torch.optim.SGD


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(16, 16)
        self.norm, self.out = nn.LayerNorm(16), nn.Linear(16, 16)
        self.qkv, self.project = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, tokens: Any) -> Any:
        x = self.token(tokens)
        for _ in range(2):
            q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 8)).unbind(-3)
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(mixed.transpose(1, 2).flatten(-2))
            x = x + self.down(F.gelu(self.up(self.norm(x))))
        return self.out(x)


def gpt() -> tuple[nn.Module, Callable[[nn.Module], Any], type]:
    tokens = (torch.arange(24) % 7).view(2, 12).to("wgpu")
    loss = lambda net: F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())  # noqa: E731
    return GPT(), loss, torch.optim.AdamW


def lstm() -> tuple[nn.Module, Callable[[nn.Module], Any], type]:
    x = torch.randn(2, 4, 8, device="wgpu")
    return nn.LSTM(8, 8), lambda net: net(x)[0].square().mean(), torch.optim.AdamW


@pytest.mark.parametrize("model", [mlp, cnn, gpt, lstm])
def test_equal_steps_make_no_bind_group_or_pipeline_anew(model: Any) -> None:
    net, loss, optimizer = model()
    net = net.to("wgpu")
    steps = optimizer(net.parameters(), lr=1e-3)
    made = []
    for _ in range(10):
        before = wgpu.memory_stats()
        steps.zero_grad()
        loss(net).backward()
        steps.step()
        after = wgpu.memory_stats()
        made.append([after[k] - before[k] for k in ("bind_groups", "pipelines", "dispatches")])
    assert all(groups == pipelines == 0 for groups, pipelines, _ in made[4:]), made
    assert len({dispatches for *_, dispatches in made[4:]}) == 1


def test_the_pool_hands_out_the_oldest_buffer_first() -> None:
    wgpu.empty_cache()
    before = wgpu.memory_stats()["bind_groups"]
    x = torch.ones(1000, device="wgpu")
    for _ in range(3):
        # Freed in another order than made: the next turn still meets the same buffers.
        a, b, c = x + 1, x + 2, x + 3
        del b, a, c
    # `x` into each of three buffers, and the fill.
    assert wgpu.memory_stats()["bind_groups"] - before <= 4


# Rows of the operator table that run on the CPU under any limits, and what of them does: a general
# matrix's eigenvalues take double steps in float64, each decided by the numbers of the last.
HOSTED = {"linalg.eig": "linalg_eig", "linalg.eigvals": "linalg_eig"}


def every_operator(report: Path, **env: str) -> dict[str, str]:
    """Hold every operator to the CPU, in a process of its own; return what ran there, by row."""
    test = "ops/test_ops.py::test_wgpu_equals_cpu"
    words = "-m pytest -q -p no:cacheprovider -o junit_family=xunit1 --junitxml".split()
    env["PYTENSORLIB_WGPU_FALLBACK"] = "silent"
    done = child.python(*words, report, test, cwd=Path(__file__).parents[1], timeout=1800, **env)
    # Without an adapter all would be skipped.
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:]
    rows = ET.parse(report).iter("testcase")
    told = {row.get("name", ""): row.find(".//property[@name='fallbacks']") for row in rows}
    found = {
        name.partition("[")[2][:-1]: at.get("value", "")
        for name, at in told.items()
        if at is not None
    }
    assert len(found) > 300
    return {row: names for row, names in found.items() if names}


ADD = """
    import pytensorlib as torch
    print((torch.ones(3, device="wgpu") + 1).tolist())
"""


def test_pipelines_are_kept_on_disk_and_damage_is_no_harm(tmp_path: Path) -> None:
    if "pipeline_cache" not in wgpu.get_device_properties()["features"]:
        pytest.skip("the driver hands out no pipelines")
    where = tmp_path / "new" / "cache"
    assert run(ADD, PYTENSORLIB_CACHE_DIR=str(where)) == "[2.0, 2.0, 2.0]\n"
    (kept,) = where.iterdir()
    assert kept.suffix == ".pipelines" and kept.stat().st_size > 0
    kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2] + b"damage")
    assert run(ADD, PYTENSORLIB_CACHE_DIR=str(where)) == "[2.0, 2.0, 2.0]\n"
    assert list(where.iterdir()) == [kept]


def test_nothing_is_kept_where_nothing_may_be(tmp_path: Path) -> None:
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")}
    assert run(ADD, PYTENSORLIB_CACHE_DIR="", **home) == "[2.0, 2.0, 2.0]\n"
    assert not (tmp_path / "pytensorlib").exists()
    # A folder that cannot be made is no reason to fail.
    blocked = tmp_path / "file"
    blocked.touch()
    assert run(ADD, PYTENSORLIB_CACHE_DIR=str(blocked)) == "[2.0, 2.0, 2.0]\n"
