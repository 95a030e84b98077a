"""Tools for programs on a GPU: times of its kernels, comparison with the CPU, memory, errors."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child import run

import pytensorlib as torch
from pytensorlib import _C, nn, wgpu
from pytensorlib.nn import functional as F
from pytensorlib.profiler import profile

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

MIB = 1 << 20


@pytest.fixture
def timestamps() -> None:
    if "timestamp_query" not in wgpu.get_device_properties()["features"]:
        pytest.skip("the adapter has no timestamps")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.ReLU())

    def forward(self, x: Any) -> Any:
        return self.inner(x).sum()


# ---- times --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("timestamps")
def test_profile_tells_when_the_gpu_worked_for_what(tmp_path: Path) -> None:
    net, x = Net().to("wgpu"), torch.randn(4, 8, device="wgpu")
    want = net(x)
    with profile(record_shapes=True, with_flops=True, profile_memory=True) as prof:
        y = net(x)
        y.backward()
    assert torch.equal(y, want)
    product = next(e for e in prof.events() if e.name == "aten::addmm")
    assert product.modules == "Net > Sequential > Linear" and product.input_shapes[1] == [4, 8]
    assert product.kernels and all(k.name.startswith("matmul.wgsl") for k in product.kernels)
    assert product.device_time_total == sum(k.duration for k in product.kernels) > 0
    # Bias, input, weight and result, and one product and sum for each.
    assert product.moved == 4 * (16 + 4 * 8 + 8 * 16 + 4 * 16) and product.flops == 2 * 4 * 8 * 16
    assert product.self_device_memory_usage == 4 * 4 * 16
    assert any(e.kernels and e.modules == "" for e in prof.events())  # backward
    works = prof.events().works
    assert all(0 <= w.start <= w.end for w in works)
    # One in-order stream: what was recorded later does not begin earlier.
    assert [w.start for w in works] == sorted(w.start for w in works)
    table = prof.key_averages().table(sort_by="self_device_time_total")
    assert "GB/s" in table and "TFLOP/s" in table and "Peaks:" in table
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = [e for e in trace if e["pid"] == "wgpu:0"]
    assert len(rows) == len(works)
    row = next(e for e in rows if "aten::addmm" in e["args"]["op"])
    assert row["args"]["Module Hierarchy"].startswith("Net > Sequential > Linear")
    assert row["args"]["flops"] == product.flops
    call = next(e for e in trace if e["name"] == "aten::addmm")
    assert call["args"]["Input Dims"][1] == [4, 8]


@pytest.mark.usefixtures("timestamps")
def test_profile_of_many_batches_has_every_dispatch() -> None:
    x = torch.ones(100, device="wgpu")
    before = wgpu.memory_stats()["dispatches"]
    with profile() as outer, profile() as inner:
        for _ in range(700):
            x = x + 1
    recorded = wgpu.memory_stats()["dispatches"] - before
    assert x.tolist() == [701.0] * 100
    for prof in (outer, inner):
        works = prof.events().works
        # As many run as one as a group takes.
        assert 700 / 64 <= len(works) == recorded < 700
        assert sum(len(w.names) for w in works) == 700
        sums = [e for e in prof.events() if e.name == "aten::add"]
        assert len(sums) == 700 and all(len(e.kernels) == 1 for e in sums)
        times = sum(e.self_device_time_total for e in sums)
        assert times == pytest.approx(sum(w.duration for w in works))
    assert x.sum().item() == 70100
    with profile() as later:
        y = torch.zeros(100, device="wgpu") + 1
        y.tolist()
    assert [w.kernel for w in later.events().works] in (
        ["copy", "pointwise.wgsl", "copy"],
        ["pointwise.wgsl"],  # no timestamps outside passes
    )


@pytest.mark.usefixtures("timestamps")
@pytest.mark.parametrize("on", [False, True])
def test_profile_names_the_operators_that_ran_as_one_kernel(tmp_path: Path, on: bool) -> None:
    x, w, b = (torch.rand(n, 64, device="wgpu") for n in (64, 64, 1))
    before = _C._wgpu_set_fuse(0, on)
    try:
        with profile(with_flops=True) as prof:
            y = torch.tanh((x * 2 - b) + 1)
            z = F.gelu(x @ w)
        assert y.isfinite().all() and z.isfinite().all()
    finally:
        _C._wgpu_set_fuse(0, before)
    works = prof.events().works
    asked = ["aten::mul", "aten::sub", "aten::add", "aten::tanh", "aten::mm", "aten::gelu"]
    assert [name for w in works for name in w.names] == asked
    assert all(e.kernels for e in prof.events() if e.name in asked)
    rows = {a.key: a for a in prof.key_averages()}
    fused = "fused(aten::mul, aten::sub, aten::add, aten::tanh)"
    assert (fused in rows) == on and len(works) == (2 if on else 6)
    if not on:
        return
    assert rows[fused].count == 1 and rows[fused].device_type == "wgpu"
    # It reads x and b and writes the result; what is between is no memory.
    assert rows[fused].moved == 4 * 64 * (64 + 1 + 64) and rows[fused].flops == 0
    (product,) = [a for key, a in rows.items() if key.endswith("(aten::mm, aten::gelu)")]
    assert product.key.startswith("matmul") and product.moved == 3 * 4 * 64 * 64
    assert product.flops == rows["aten::mm"].flops == 2 * 64**3
    for row, names in ((rows[fused], asked[:4]), (product, asked[4:])):
        parts = [rows[name].self_device_time_total for name in names]
        assert sum(parts) == pytest.approx(row.self_device_time_total) and len(set(parts)) <= 2
    table = prof.key_averages().table(sort_by="cuda_time_total", max_name_column_width=80)
    assert fused in table and "GB/s" in table
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = {e["name"]: e["args"] for e in trace if e["pid"] == "wgpu:0"}
    assert kernels[fused]["ops"] == asked[:4] and kernels[product.key]["flops"] == 2 * 64**3


def test_profile_of_the_cpu_has_no_gpu_columns() -> None:
    with profile() as prof:
        torch.ones(3) + 1
    assert not prof.events().works and "GPU" not in prof.key_averages().table()


@pytest.mark.usefixtures("timestamps")
def test_peaks_are_measured_once_and_kept(tmp_path: Path) -> None:
    code = """
        import pytensorlib as torch
        print(*torch.wgpu.peaks())
        print(torch.wgpu.memory_stats()["dispatches"])
    """
    first = run(code, PYTENSORLIB_CACHE_DIR=str(tmp_path)).split()
    again = run(code, PYTENSORLIB_CACHE_DIR=str(tmp_path)).split()
    assert first[:2] == again[:2] and int(first[2]) > 0 and int(again[2]) == 0
    moved, computed = map(float, first[:2])
    # No machine copies less than 10 MB in a second, or more than 1000 TB.
    assert 1e7 < moved < 1e15 and 1e7 < computed < 1e18


# ---- comparison with the CPU --------------------------------------------------------------------


def test_check_against_cpu_passes_training_and_counts() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(), nn.Linear(16, 3)
    )
    net = net.to("wgpu")
    steps = torch.optim.AdamW(net.parameters())
    x, y = torch.randn(4, 8, device="wgpu"), torch.tensor([0, 2, 1, 1], device="wgpu")
    with wgpu.check_against("cpu") as check:
        F.cross_entropy(net(x), y).backward()
        steps.step()
        net.get_parameter("0.weight").data.mul_(2).clamp_(-1, 1)
    assert check.compared > 10
    compared = check.compared
    x + 1
    assert check.compared == compared
    with pytest.raises(ValueError, match='to be "cpu", but got: wgpu'):
        wgpu.check_against("wgpu")


def test_check_against_cpu_names_what_differs() -> None:
    net = Net().to("wgpu")
    # A tolerance of nothing: Stirling's series in float32 is not what the host computes.
    x = torch.rand(20000, 8, device="wgpu") * 20 + 0.5
    with pytest.raises(AssertionError) as raised, wgpu.check_against("cpu", tolerance=0):
        torch.lgamma(x)
    text = str(raised.value)
    assert "gives another result on wgpu:0 than on the CPU" in text and "of shape [" in text
    assert "The largest difference is" in text and "instead of" in text
    # What the error stopped is over.
    assert net(x).item() == net(x).item()


class Cube(nn.Module):
    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    def forward(self, x: Any) -> Any:
        return self.op(x)


@contextlib.contextmanager
def cubes(forward: float = 0.0, back: float = 0.0) -> Iterator[Any]:
    """Return an operator of a program's that is wrong on a GPU by so much."""

    @torch.library.custom_op("tools::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3 + (forward if x.device.type == "wgpu" else 0)

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad + (back if x.device.type == "wgpu" else 0)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    cube.register_autograd(backward, setup_context=keep)
    yield cube


def test_check_against_cpu_compares_operators_of_the_program() -> None:
    x = torch.rand(5, device="wgpu", requires_grad=True)
    for wrong in ({}, {"forward": 0.1}, {"back": 0.1}):
        with cubes(**wrong) as cube:
            net = nn.Sequential(nn.Identity(), Cube(cube))
            want = 3 * x.detach() ** 2
            x.grad = None
            with wgpu.check_against("cpu") as check:
                if "forward" not in wrong:
                    y = net(x)
                if not wrong:
                    y.sum().backward()
                    assert check.compared >= 3 and torch.allclose(x.grad, want)
                    # Outside it nothing is computed twice.
                    continue
                with pytest.raises(AssertionError) as raised:
                    y.sum().backward() if "back" in wrong else net(x)
        text = str(raised.value)
        what = "tools::cube" if "forward" in wrong else "the derivative of tools::cube"
        assert text.startswith(f"{what} gives another result on wgpu:0 than on the CPU")
        assert "float32 of shape [5]" in text and "in Sequential > Cube" in text
        if "forward" in wrong:
            assert raised.value.__notes__ == ["in module 1 of Sequential"]


def test_check_against_cpu_compares_what_an_operator_writes_to() -> None:
    @torch.library.custom_op("tools::fill", mutates_args={"x"})
    def fill(x: torch.Tensor, value: float) -> None:
        x.fill_(value + (x.device.type == "wgpu") * (value > 1))

    x = torch.zeros(4, device="wgpu")
    with wgpu.check_against("cpu") as check:
        fill(x, 1.0)
        assert x.tolist() == [1.0] * 4 and check.compared > 0
        with pytest.raises(AssertionError, match="tools::fill gives another result.*instead of 2"):
            fill(x, 2.0)


def test_check_against_cpu_leaves_random_operators_and_those_of_gpus_out() -> None:
    @torch.library.custom_op("tools::noise", mutates_args=())
    def noise(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x)

    @torch.library.custom_op("tools::there", mutates_args=(), device_types="wgpu")
    def there(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    x = torch.zeros(4, device="wgpu")
    torch.manual_seed(3)
    noise(x)
    want = torch.rand(3)
    torch.manual_seed(3)
    with wgpu.check_against("cpu"):
        noise(x)
        assert there(x).tolist() == [0.0] * 4
    assert torch.equal(torch.rand(3), want)


def test_check_against_cpu_names_the_module() -> None:
    net = nn.Sequential(nn.Identity(), Cube(torch.lgamma))
    x = torch.rand(20000, device="wgpu") * 20 + 0.5
    with pytest.raises(AssertionError) as raised, wgpu.check_against("cpu", tolerance=0):
        net(x)
    assert "lgamma gives another result" in str(raised.value)
    assert "in Sequential > Cube" in str(raised.value)
    assert raised.value.__notes__ == ["in module 1 of Sequential"]


# ---- fallbacks ----------------------------------------------------------------------------------

WITHOUT_KERNEL = """
    import warnings
    import pytensorlib as torch
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            torch.linalg.eigvals(torch.eye(2).to("wgpu"))
        except NotImplementedError as e:
            print("raised", e)
    print("warned", len(seen), [str(w.message)[:40] for w in seen])
    print(torch.wgpu.fallbacks() != {})
"""


@pytest.mark.parametrize("how", ["warn", "silent", "error", "loud"])
def test_fallback_does_what_the_environment_says(how: str) -> None:
    told = run(WITHOUT_KERNEL, PYTENSORLIB_WGPU_FALLBACK=how)
    assert ("raised" in told) == (how == "error")
    assert ("warned 0" in told) == (how in ("silent", "error"))
    if how == "loud":
        assert "warned 2" in told and "PYTENSORLIB_WGPU_FALLBACK" in told


def test_set_fallback_refuses_what_is_none_of_them() -> None:
    with pytest.raises(ValueError, match='"warn", "silent", "error" or None, but got: \'loud\''):
        wgpu.set_fallback("loud")


# ---- memory -------------------------------------------------------------------------------------


@pytest.fixture
def capped() -> Iterator[None]:
    wgpu.empty_cache()
    wgpu.set_memory_cap(wgpu.memory_stats()["reserved"] + 40 * MIB)
    yield
    wgpu.set_memory_cap(None)


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2


@pytest.mark.usefixtures("capped")
def test_out_of_memory_names_the_largest_tensors() -> None:
    x = torch.zeros(512, 1024, device="wgpu")
    assert "  2.00 MiB: [512, 1024] float32\n" in wgpu.memory_summary()
    kept = [Doubled()(x.view(1024, 512)), x.sqrt()]
    small = [x + i for i in range(9)]
    with pytest.raises(torch.OutOfMemoryError) as raised:
        kept += [x[:, None].expand(512, 32, 1024) + 1]
    lines = str(raised.value).splitlines()
    assert "The largest tensors:" in lines[0]
    named = [line for line in lines if line.startswith("  2.0 MiB: [")]
    assert len(named) == 10 and lines.count("  2.0 MiB: [512, 1024] float32 of add") >= 7
    assert "  2.0 MiB: [1024, 512] float32 of mul in Doubled" in lines
    text = wgpu.memory_summary(largest=12)
    assert "[1024, 512] float32 of mul in Doubled" in text and "[512, 1024] float32 of sqrt" in text
    assert "allocated" in text and "reserved" in text
    del small, kept, x
    assert "MiB: [" not in wgpu.memory_summary()
    assert torch.ones(4, device="wgpu").sum().item() == 4


@pytest.mark.usefixtures("capped")
def test_out_of_memory_lists_all_that_is_alive() -> None:
    held = wgpu.memory_stats()["live"]
    made = [
        torch.empty(700, 1024, device="wgpu"),
        torch.zeros(600, 1024, device="wgpu"),
        torch.ones(500, 1024).to("wgpu"),
        torch.arange(300_000, device="wgpu"),
    ]
    small = [torch.empty(10, device="wgpu") for _ in range(7)]
    more = [torch.empty(400, 1024, device="wgpu") for _ in range(12)]
    with pytest.raises(torch.OutOfMemoryError) as raised:
        torch.empty(1 << 24, device="wgpu")
    lines = str(raised.value).splitlines()[1:]
    for line in (
        "  2.7 MiB: [700, 1024] float32",
        "  2.3 MiB: [600, 1024] float32",
        "  2.0 MiB: [500, 1024] float32",
        "  2.3 MiB: [300000] int64",
    ):
        assert any(found.startswith(line) for found in lines), line
    *_, others, rest = lines
    assert re.fullmatch(r"  \d+\.\d MiB: \d+ others of 1 MiB and more", others)
    assert re.fullmatch(r"  0\.\d MiB: \d+ smaller than 1 MiB", rest)
    count = sum(int(line.split()[2]) for line in (others, rest))
    assert count + len(lines) - 2 == wgpu.memory_stats()["live"] == held + 23
    text = wgpu.memory_summary(largest=2)
    named = [line for line in text.splitlines() if "MiB: [" in line]
    assert [line.split("MiB: ")[1] for line in named][0] == "[700, 1024] float32"
    assert len(named) == 2 and "others of 1 MiB and more\n" in text
    del made, small, more
    assert "MiB: [" not in wgpu.memory_summary() and wgpu.memory_stats()["live"] == held


def test_memory_of_compiled_functions_is_told_too() -> None:
    call = torch.graph(lambda x: (torch.cumsum(x.sort(1)[0], 1), (x @ x.T).sum()), fullgraph=True)
    x = torch.rand(512, 640, device="wgpu")
    for _ in range(4):
        y = call(x)[0]
    assert call.programs[0].kept > 0
    lines = wgpu.memory_summary(largest=1000).splitlines()
    # The argument and the result, and what the program keeps for itself.
    assert sum("1.25 MiB: [512, 640] float32" in line for line in lines) >= 2
    assert any("MiB: workspace" in line for line in lines)
    assert y.shape == x.shape


# ---- errors -------------------------------------------------------------------------------------


def test_index_out_of_range_tells_the_line_that_asked() -> None:
    table = torch.randn(5, 3, device="wgpu")
    rows = F.embedding(torch.tensor([1, 7], device="wgpu"), table)  # the line
    table = table + 1
    with pytest.raises(IndexError, match="embedding.*index 7 .*size 5") as raised:
        rows.tolist()
    with open(__file__) as file:
        line = 1 + next(n for n, text in enumerate(file) if text.endswith("# the line\n"))
    assert f"asked for at {__file__}:{line}," in str(raised.value)


# ---- buffers of wgpu-py -------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("wgpu") is None, reason="wgpu-py is not installed")
def test_buffers_of_wgpu_py_hold_the_bytes_of_tensors() -> None:
    from shader_runs import device

    there = device()
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8):
        x = torch.tensor([[1, 0, 3], [4, 5, 0]], device="wgpu").to(dtype)
        buffer = wgpu.to_buffer(x.t(), there)
        assert buffer.size == -(-6 * x.element_size() // 4) * 4
        y = wgpu.from_buffer(buffer, there.queue, (3, 2), dtype)
        assert y.device == x.device and y.dtype == dtype and torch.equal(y, x.t())
    y = wgpu.from_buffer(wgpu.to_buffer(torch.ones(()), there), there.queue, (), device="cpu")
    assert y.device.type == "cpu" and y.item() == 1
    with pytest.raises(ValueError, match="has 40 bytes, and the buffer 4"):
        wgpu.from_buffer(wgpu.to_buffer(torch.ones(1), there), there.queue, (10,))


@pytest.mark.skipif(importlib.util.find_spec("wgpu") is None, reason="wgpu-py is not installed")
def test_buffers_of_what_has_no_memory_raise_errors_that_tell_why() -> None:
    from shader_runs import device

    there = device()
    pending = torch.ones(3, device="wgpu") * 2 + 1
    buffer = wgpu.to_buffer(pending, there)
    assert wgpu.from_buffer(buffer, there.queue, 3).tolist() == [3.0] * 3
    for x, error, text in (
        (torch.empty(0, 4, device="wgpu"), ValueError, r"to_buffer: .*\[0, 4\] has no elements"),
        (torch.empty(0), ValueError, "to_buffer: .*no elements"),
        (torch.empty(3, device="meta"), RuntimeError, r"to_buffer: .*meta has no data.*\[3\]"),
        (torch.eye(3).to_sparse(), RuntimeError, "to_buffer: .*dense tensor.*sparse_coo.*to_dense"),
        ([1.0], TypeError, "to_buffer: expected a tensor, but got list"),
    ):
        with pytest.raises(error, match=text):
            wgpu.to_buffer(x, there)
    with pytest.raises(TypeError, match="device to be a GPUDevice of wgpu-py, but got str"):
        wgpu.to_buffer(pending, "wgpu")
    with pytest.raises(TypeError, match="buffer to be a GPUBuffer of wgpu-py, but got Tensor"):
        wgpu.from_buffer(pending, there.queue, 3)
    with pytest.raises(TypeError, match="queue to be a GPUQueue of wgpu-py, but got NoneType"):
        wgpu.from_buffer(buffer, None, 3)
    with pytest.raises(RuntimeError, match="from_buffer: .*COPY_SRC"):
        wgpu.from_buffer(wgpu.to_buffer(pending, there, usage=0x80), there.queue, 3)


@pytest.mark.slow
def test_check_against_cpu_passes_every_operator() -> None:
    from op_calls import leaves, mapped, tensors
    from op_db import OPS

    wgpu.set_fallback("silent")
    compared = samples = 0
    try:
        for op in OPS:
            for sample in op.samples()[:2] if "float32" in op.dtypes else ():
                samples += 1
                call = tensors(sample, "float32")
                args, kwargs = (
                    mapped(v, lambda t: t.to("wgpu").requires_grad_(t.is_floating_point()))
                    for v in (call.args, call.kwargs)
                )
                # An AssertionError tells the operator; others are of those without a derivative.
                check = wgpu.check_against("cpu", tolerance=1e-4 * op.scale)
                try:
                    with check, contextlib.suppress(NotImplementedError, RuntimeError):
                        for y in leaves(op.function(torch)(*args, **kwargs)):
                            if y.requires_grad:
                                y.sum().backward(retain_graph=True)
                except AssertionError as e:
                    # Which way singular vectors and eigenvectors point is open.
                    if not re.search("linalg_(svd|eigh) gives another result", str(e)):
                        raise
                compared += check.compared
    finally:
        wgpu.set_fallback("warn")
    # One that stopped early would have compared next to nothing: on average five results a sample.
    assert compared > 5 * samples > 4000
