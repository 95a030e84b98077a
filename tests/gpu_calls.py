"""A call of each public name of `torch.cuda` and its submodules, in the process that it runs in.

``python -m pytensorlib --gpu-as cuda tests/gpu_calls.py`` prints as JSON what is wrong with each:
null, or what its call raised or gave. A call is an expression that is true where the answer is
right; a name of `REFUSED` raises NotImplementedError, which says what to do.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import torch

warnings.simplefilter("ignore")
C, G = torch.cuda, torch.backends.cuda
CLASSES = "Double Float Half BFloat16 Long Int Short Char Byte Bool".split()
DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()


def on_gpu(*tensors: Any) -> bool:
    return all(t.is_cuda and t.device == torch.device("cuda:0") for t in tensors)


def filled(n: int, value: float = 1.0) -> Any:
    return torch.full((n,), value, device="cuda")


def raises(kind: Any, call: Any, text: str = "") -> bool:
    try:
        call()
    except kind as e:
        return text in str(e)
    return False


def stream_of_a_block() -> bool:
    stream = C.Stream()
    with C.stream(stream):
        inside = C.current_stream() == stream
        y = filled(4) * 3
    C.current_stream().wait_stream(stream)
    y.record_stream(C.current_stream())
    stream.synchronize()
    return inside and C.current_stream() != stream and stream.query() and y.sum().item() == 12


def event_between() -> bool:
    first, last = C.Event(enable_timing=True), C.Event(enable_timing=True)
    new = "uninitialized" in repr(first) and first.cuda_event == 0
    first.record()
    x = torch.rand(200, 200, device="cuda")
    (x @ x).sum()
    C.current_stream().record_event(last)
    last.synchronize()
    return new and last.query() and 0 < first.elapsed_time(last) < 60_000


def events_are_refused() -> bool:
    plain, timed = C.Event(), C.Event(enable_timing=True)
    plain.record()
    return (
        raises(RuntimeError, lambda: plain.elapsed_time(timed), "enable_timing=True")
        and raises(RuntimeError, lambda: timed.elapsed_time(timed), "recorded")
        and raises(NotImplementedError, plain.ipc_handle)
    )


def replayed() -> bool:
    """Inputs are read, and results written, where they are; what was written before is undone."""
    x, total = filled(3), torch.zeros((), device="cuda")
    graph = C.CUDAGraph()
    with C.graph(graph, pool=C.graph_pool_handle(), stream=C.Stream()):
        assert C.is_current_stream_capturing() and graph.get_currently_capturing_graph() is graph
        y = (x * 2).exp()
        total += x.sum()
    assert not C.is_current_stream_capturing() and total.item() == 0
    found = []
    for i in range(6):
        x.fill_(i / 8)
        graph.replay()
        found.append((y.tolist(), total.item()))
    want, so_far = [], 0.0
    for i in range(6):
        so_far += 3 * i / 8
        want.append((torch.full((3,), i / 4).exp().tolist(), so_far))
    return all(
        abs(total - w_total) < 1e-5 and max(abs(a - b) for a, b in zip(y, w_y, strict=True)) < 1e-5
        for (y, total), (w_y, w_total) in zip(found, want, strict=True)
    )


def trained_by_replays() -> bool:
    """A whole step, with its optimizer, gives the parameters of steps that are not captured."""

    def parts() -> Any:
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
        return net.cuda()

    ends = []
    data = [torch.randn(6, 4, generator=torch.Generator().manual_seed(i)) for i in range(5)]
    for kind in (torch.optim.SGD, torch.optim.Adam):
        for captured in (False, True):
            net = parts()
            optimizer = kind(net.parameters(), 0.05)
            x = torch.zeros(6, 4, device="cuda")

            def step(x: Any = x, net: Any = net, optimizer: Any = optimizer) -> Any:
                optimizer.zero_grad(set_to_none=True)
                loss = net(x).square().mean()
                loss.backward()
                optimizer.step()
                return loss

            for batch in data[:2]:
                x.copy_(batch)
                step()
            if captured:
                graph = C.CUDAGraph()
                optimizer.zero_grad(set_to_none=True)
                with C.graph(graph):
                    loss = net(x).square().mean()
                    loss.backward()
                    optimizer.step()
            for batch in data[2:]:
                x.copy_(batch)
                if captured:
                    graph.replay()
                else:
                    loss = step()
            ends.append((loss.item(), [p.detach().cpu() for p in net.parameters()]))
    for (a, p), (b, q) in (ends[:2], ends[2:]):
        assert abs(a - b) < 1e-6, (a, b)
        for one, two in zip(p, q, strict=True):
            torch.testing.assert_close(one, two)
    return True


def random_in_replays() -> bool:
    torch.manual_seed(5)
    graph, before = C.CUDAGraph(), C.get_rng_state()
    with C.graph(graph):
        y = torch.rand(8, device="cuda")
    kept = torch.equal(before, C.get_rng_state())
    graph.replay()
    first = y.clone()
    graph.replay()
    return kept and not torch.equal(first, y) and bool(((y >= 0) & (y < 1)).all())


def graphs_are_refused() -> bool:
    graph = C.CUDAGraph()
    empty = raises(RuntimeError, graph.replay, "nothing was captured")
    with C.graph(graph):
        filled(2).exp()
        inner = raises(RuntimeError, C.CUDAGraph().capture_begin, "captured on this thread")
    twice = raises(RuntimeError, graph.capture_begin, "reset()")
    graph.reset()

    class Stop(Exception): ...

    try:
        with C.graph(graph):
            raise Stop
    except Stop:
        pass
    other, x = C.CUDAGraph(), filled(2)
    with C.graph(other):
        y = x * 2
        reads = [
            raises(RuntimeError, call, "stream is capturing") for call in (y.cpu, x.sum().item)
        ]
    after = y.tolist() == [2, 2]
    return (
        empty and inner and twice and all(reads) and after and not C.is_current_stream_capturing()
    )


def sync_is_told() -> bool:
    x = filled(2)
    modes = []
    for mode in ("warn", "error", 0):
        C.set_sync_debug_mode(mode)
        modes.append(C.get_sync_debug_mode())
    C.set_sync_debug_mode("error")
    try:
        told = raises(RuntimeError, (x * 2).sum().item, "called a synchronizing CUDA operation")
        C.synchronize()
    finally:
        C.set_sync_debug_mode("default")
    unknown = raises(RuntimeError, lambda: C.set_sync_debug_mode("loud"), "invalid value")
    return modes == [1, 2, 0] and told and unknown and x.sum().item() == 2


def dumped() -> bool:
    graph = C.CUDAGraph()
    with C.graph(graph):
        filled(2).exp()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.txt"
        graph.enable_debug_mode()
        graph.debug_dump(str(path))
        return "aten.exp" in path.read_text()


def graphed_callable() -> bool:
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2).cuda()
    x = torch.randn(4, 3, device="cuda", requires_grad=True)
    want = net(x)
    (grad,) = torch.autograd.grad(want.square().sum(), x)
    net = C.make_graphed_callables(net, (x,))
    for _ in range(4):
        got = net(x)
        (again,) = torch.autograd.grad(got.square().sum(), x)
    function = C.make_graphed_callables(lambda a: a * 2, (filled(3),))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(again, grad)
    return function(filled(3, 4.0)).tolist() == [8, 8, 8]


def memory_grows_and_shrinks() -> bool:
    C.empty_cache()
    C.reset_peak_memory_stats()
    before = C.memory_allocated()
    x = torch.empty(3 << 20, device="cuda")
    grown = C.memory_allocated() - before
    del x
    after, peak = C.memory_allocated(), C.max_memory_allocated()
    return grown == 12 << 20 and after == before and peak == before + grown


def cap_refuses() -> bool:
    _, total = C.mem_get_info()
    C.set_per_process_memory_fraction(max(C.memory_reserved(), 1 << 16) / total)
    try:
        refused = raises(
            C.OutOfMemoryError, lambda: torch.empty(1 << 26, device="cuda"), "CUDA out of memory."
        )
        counted = C.memory_stats()["num_ooms"] >= 1
        part = C.get_per_process_memory_fraction()
    finally:
        C.set_per_process_memory_fraction(1.0)
    return refused and counted and 0 < part < 1 and torch.empty(1 << 20, device="cuda").is_cuda


def snapshot_names_a_tensor() -> bool:
    x = torch.empty(2 << 20, device="cuda")
    sizes = [block["size"] for part in C.memory_snapshot() for block in part["blocks"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        C.memory._record_memory_history()
        C.memory._dump_snapshot(str(path))
        kept = pickle.loads(path.read_bytes())
    return x.nbytes in sizes and len(kept["segments"]) == len(sizes)


def marked() -> bool:
    with torch.profiler.profile() as prof:
        C.nvtx.range_push("outer")
        with C.nvtx.range("step {}", 3):
            C.nvtx.mark("here")
        C.nvtx.range_pop()
        C.nvtx.range_end(C.nvtx.range_start("load"))
    return {"outer", "step 3", "here", "load"} <= {e.key for e in prof.key_averages()}


def chosen(name: str, value: Any) -> bool:
    """A switch is kept and put back."""
    before = getattr(C.tunable, f"get_{name}")()
    getattr(C.tunable, f"set_{name}")(value)
    after = getattr(C.tunable, f"get_{name}")()
    getattr(C.tunable, f"set_{name}")(before)
    return after == value


def switched(name: str, enable: Any) -> bool:
    module = C.tunable if hasattr(C.tunable, name) else G
    before = getattr(module, name)()
    enable(not before)
    after = getattr(module, name)()
    enable(before)
    return after is not before


def on_a_thread(call: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def reduced(op: int) -> list[float]:
    x = [filled(2, 2.0), filled(2, 3.0)]
    C.nccl.all_reduce(x, op=op)
    assert torch.equal(x[0], x[1])
    return x[0].tolist()


def half_block() -> bool:
    x = torch.ones(2, 2, device="cuda")
    with C.amp.autocast():
        half = (x @ x).dtype
    with C.amp.autocast(dtype=torch.bfloat16):
        other = (x @ x).dtype
    with C.amp.autocast(enabled=False):
        plain = (x @ x).dtype
    return (half, other, plain) == (torch.float16, torch.bfloat16, torch.float32)


class Twice(torch.autograd.Function):
    @staticmethod
    @C.amp.custom_fwd(cast_inputs=torch.float32)
    def forward(ctx: Any, x: Any) -> Any:
        assert not torch.is_autocast_enabled("cuda")
        return x * 2

    @staticmethod
    @C.amp.custom_bwd
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def custom_functions() -> bool:
    x = torch.ones(2, device="cuda", dtype=torch.float16, requires_grad=True)
    with C.amp.autocast():
        y = Twice.apply(x)
    y.sum().backward()
    return y.dtype == torch.float32 and x.grad.tolist() == [2, 2]


def scaled_steps() -> bool:
    w = torch.ones(2, device="cuda", requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=0.5), C.amp.GradScaler(init_scale=8.0)
    scaler.scale((w * w).sum()).backward()
    scaler.unscale_(optimizer)
    unscaled = w.grad.tolist()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return unscaled == [2, 2] and w.tolist() == [0, 0] and scaler.get_scale() == 4.0


def tf32() -> bool:
    before = torch.get_float32_matmul_precision()
    G.matmul.allow_tf32 = True
    high = torch.get_float32_matmul_precision(), G.matmul.fp32_precision
    G.matmul.allow_tf32 = False
    low = torch.get_float32_matmul_precision(), G.matmul.fp32_precision
    G.matmul.fp32_precision = "tf32"
    again = torch.get_float32_matmul_precision(), G.matmul.allow_tf32
    torch.backends.fp32_precision = "ieee"
    told = raises(RuntimeError, lambda: setattr(G.matmul, "fp32_precision", "fp8"), "Unknown")
    unknown = raises(AttributeError, lambda: G.matmul.allow_fp8, "Unknown attribute allow_fp8")
    end = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    return (high, low, again, told, unknown, end) == (
        ("high", "tf32"), ("highest", "ieee"), ("high", True), True, True, "highest",
    )  # fmt: skip


def attention(params: Any = None) -> Any:
    q = torch.ones(1, 2, 4, 8, device="cuda")
    return G.SDPAParams(q, q, q, None, 0.0, False, False)


CALLS: dict[str, Any] = {
    # Devices
    "is_available": lambda: C.is_available() is True,
    "device_count": lambda: C.device_count() >= 1,
    "current_device": lambda: C.current_device() == 0 == on_a_thread(C.current_device),
    "set_device": lambda: (
        C.set_device("cuda:0") is C.set_device(-1) is C.set_device(0) is None
        and raises(RuntimeError, lambda: C.set_device(C.device_count()), "invalid device ordinal")
        and raises(ValueError, lambda: C.set_device("cpu"), "Expected a cuda device, but got: cpu")
    ),
    "device": lambda: (
        [C.current_device() for _ in [0] for d in [C.device(0)] if not d.__enter__()] == [0]
        and raises(RuntimeError, C.device(C.device_count()).__enter__)
    ),
    "device_of": lambda: C.device_of(filled(1)).idx == 0 and C.device_of(torch.ones(1)).idx is None,
    "init": lambda: C.init() is None,
    "is_initialized": lambda: C.is_initialized() is True,
    "synchronize": lambda: all(
        C.synchronize(d) is None for d in (None, 0, "cuda", "cuda:0", torch.device("cuda", 0))
    ),
    "get_device_name": lambda: (
        C.get_device_name() == C.get_device_name("cuda:0") == torch.wgpu.get_device_name(0)
    ),
    "get_device_properties": lambda: (
        (p := C.get_device_properties(0)).total_memory > 1 << 20
        and p.name == C.get_device_name(0)
        and p.multi_processor_count >= 1
        and p.warp_size >= 1
        and p.shared_memory_per_block >= 16384
        and p.max_threads_per_block >= 256
        and str(p)
    ),
    "get_device_capability": lambda: (
        C.get_device_capability() in ((6, 0), (7, 0), (8, 0))
        and C.get_device_capability() == (C.get_device_properties().major, 0)
    ),
    "get_arch_list": lambda: "sm_{}{}".format(*C.get_device_capability()) in C.get_arch_list(),
    "get_gencode_flags": lambda: C.get_gencode_flags() == "",
    "is_bf16_supported": lambda: (
        C.is_bf16_supported() is True
        and C.is_bf16_supported(including_emulation=False) is (C.get_device_capability()[0] >= 8)
    ),
    "is_tf32_supported": lambda: C.is_tf32_supported() is (C.get_device_capability()[0] >= 8),
    "can_device_access_peer": lambda: C.can_device_access_peer(0, 0) is False,
    "device_memory_used": lambda: C.device_memory_used() == C.memory_reserved(),
    "ipc_collect": lambda: C.ipc_collect() is None,
    "default_generators": lambda: len(C.default_generators) == C.device_count(),
    "has_half": lambda: C.has_half is True,
    "has_magma": lambda: C.has_magma is True,
    "cudart": lambda: C.cudart().cudaMemGetInfo(0)[1] > 0 and C.cudart().cudaProfilerStart() == 0,
    "check_error": lambda: (
        C.check_error(0) is None and raises(C.CudaError, lambda: C.check_error(2), "2")
    ),
    "cudaStatus": lambda: (C.cudaStatus.SUCCESS, C.cudaStatus.ERROR_NOT_READY) == (0, 34),
    "CudaError": lambda: issubclass(C.CudaError, RuntimeError),
    "DeferredCudaCallError": lambda: issubclass(C.DeferredCudaCallError, Exception),
    "OutOfMemoryError": lambda: (
        C.OutOfMemoryError is torch.OutOfMemoryError
        and raises(
            C.OutOfMemoryError, lambda: torch.empty(1 << 46, device="cuda"), "CUDA out of memory"
        )
    ),
    "AcceleratorError": lambda: C.AcceleratorError is torch.AcceleratorError,
    "set_sync_debug_mode": sync_is_told,
    "get_sync_debug_mode": lambda: C.get_sync_debug_mode() == 0,
    # Memory
    "memory_allocated": memory_grows_and_shrinks,
    "max_memory_allocated": memory_grows_and_shrinks,
    "memory_reserved": lambda: C.memory_reserved() >= C.memory_allocated(),
    "max_memory_reserved": lambda: C.max_memory_reserved() >= C.memory_reserved(),
    "memory_cached": lambda: C.memory_cached() == C.memory_reserved(),
    "max_memory_cached": lambda: C.max_memory_cached() == C.max_memory_reserved(),
    "reset_peak_memory_stats": memory_grows_and_shrinks,
    "reset_max_memory_allocated": lambda: (
        C.reset_max_memory_allocated() is None and C.max_memory_allocated() == C.memory_allocated()
    ),
    "reset_max_memory_cached": lambda: (
        C.reset_max_memory_cached() is None and C.max_memory_cached() == C.memory_cached()
    ),
    "reset_accumulated_memory_stats": lambda: (
        C.reset_accumulated_memory_stats() is None
        and C.memory_stats()["allocated_bytes.all.allocated"] == 0
    ),
    "memory_stats": lambda: (
        (s := C.memory_stats())["allocated_bytes.all.current"] == C.memory_allocated()
        and s["reserved_bytes.all.peak"] == C.max_memory_reserved()
        and s["allocation.all.peak"] >= s["allocation.all.current"] >= 0
        and "num_alloc_retries" in s
    ),
    "memory_stats_as_nested_dict": lambda: (
        C.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == C.memory_allocated()
    ),
    "memory_snapshot": snapshot_names_a_tensor,
    "memory_summary": lambda: (
        "Allocated" in C.memory_summary(abbreviated=True)
        and C.get_device_name() in C.memory_summary()
    ),
    "mem_get_info": lambda: (
        0 < C.mem_get_info()[0] <= C.mem_get_info()[1] == C.get_device_properties().total_memory
    ),
    "empty_cache": lambda: C.empty_cache() is None,
    "set_per_process_memory_fraction": lambda: (
        cap_refuses()
        and raises(ValueError, lambda: C.set_per_process_memory_fraction(1.5), "0~1")
        and raises(TypeError, lambda: C.set_per_process_memory_fraction(1), "float")
    ),
    "get_per_process_memory_fraction": lambda: C.get_per_process_memory_fraction() == 1.0,
    "host_memory_stats": lambda: dict(C.host_memory_stats()) == {},
    "host_memory_stats_as_nested_dict": lambda: C.host_memory_stats_as_nested_dict() == {},
    "reset_peak_host_memory_stats": lambda: C.reset_peak_host_memory_stats() is None,
    "reset_accumulated_host_memory_stats": lambda: C.reset_accumulated_host_memory_stats() is None,
    "list_gpu_processes": lambda: str(os.getpid()) in C.list_gpu_processes(),
    "get_allocator_backend": lambda: C.get_allocator_backend() == "native",
    "caching_allocator_enable": lambda: C.caching_allocator_enable(True) is None,
    "caching_allocator_disabled": lambda: C.memory.caching_allocator_disabled().__enter__() is None,
    "MemPool": lambda: (
        (p := C.MemPool()).use_count() == 1
        and isinstance(p.snapshot(), list)
        and p.id != C.MemPool().id
    ),
    "use_mem_pool": lambda: C.use_mem_pool(C.MemPool()).__enter__() is None,
    # Streams, events, graphs
    "Stream": stream_of_a_block,
    "StreamContext": lambda: isinstance(C.stream(C.Stream()), C.StreamContext),
    "stream": stream_of_a_block,
    "set_stream": lambda: (
        C.set_stream(C.default_stream()) is C.set_stream(None) is None
        and C.current_stream() == C.default_stream()
    ),
    "current_stream": lambda: (
        isinstance(C.current_stream(), C.Stream)
        and isinstance(C.current_stream(), torch.Stream)
        and C.current_stream().cuda_stream == 0
    ),
    "default_stream": lambda: C.default_stream("cuda:0").stream_id == 0,
    "Event": lambda: event_between() and events_are_refused(),
    "CUDAGraph": lambda: replayed() and random_in_replays() and graphs_are_refused() and dumped(),
    "graph": lambda: replayed() and trained_by_replays(),
    "graph_pool_handle": lambda: C.graph_pool_handle() != C.graph_pool_handle(),
    "is_current_stream_capturing": lambda: C.is_current_stream_capturing() is False and replayed(),
    "make_graphed_callables": graphed_callable,
    # Random numbers
    "manual_seed": lambda: (
        [C.manual_seed(7) or torch.rand(3, device="cuda").tolist() for _ in range(2)][0]
        == (C.manual_seed(7) or torch.rand(3, device="cuda").tolist())
    ),
    "manual_seed_all": lambda: C.manual_seed_all(9) is None and C.initial_seed() == 9,
    "initial_seed": lambda: C.manual_seed(11) or C.initial_seed() == 11,
    "seed": lambda: C.seed() is None and C.initial_seed() != 11,
    "seed_all": lambda: C.seed_all() is None,
    "get_rng_state": lambda: C.get_rng_state("cuda:0").dtype == torch.uint8,
    "set_rng_state": lambda: (
        (s := C.get_rng_state(), a := torch.rand(4, device="cuda"), C.set_rng_state(s))[2] is None
        and torch.equal(a, torch.rand(4, device="cuda"))
    ),
    "get_rng_state_all": lambda: len(C.get_rng_state_all()) == C.device_count(),
    "set_rng_state_all": lambda: (
        (s := C.get_rng_state_all(), a := torch.rand(4, device="cuda"), C.set_rng_state_all(s))[2]
        is None
        and torch.equal(a, torch.rand(4, device="cuda"))
    ),
    # Ranges, profilers
    "nvtx.range_push": lambda: C.nvtx.range_push("a") == 0 and C.nvtx.range_pop() == 0,
    "nvtx.range_pop": lambda: C.nvtx.range_pop() == -1,
    "nvtx.range": marked,
    "nvtx.mark": marked,
    "nvtx.range_start": marked,
    "nvtx.range_end": lambda: C.nvtx.range_end(-5) is None,
    "profiler.start": lambda: C.profiler.start() is None,
    "profiler.stop": lambda: C.profiler.stop() is None,
    "profiler.profile": lambda: C.profiler.profile().__enter__() is None,
    # Mixed precision
    "amp.autocast": half_block,
    "amp.autocast_mode.autocast": half_block,
    "amp.custom_fwd": custom_functions,
    "amp.custom_bwd": custom_functions,
    "amp.autocast_mode.custom_fwd": custom_functions,
    "amp.autocast_mode.custom_bwd": custom_functions,
    "amp.GradScaler": scaled_steps,
    "amp.grad_scaler.GradScaler": scaled_steps,
    "amp.amp_definitely_not_available": lambda: C.amp.amp_definitely_not_available() is False,
    "amp.common.amp_definitely_not_available": lambda: (
        C.amp.common.amp_definitely_not_available() is False
    ),
    # Several GPUs
    "comm.broadcast": lambda: (
        on_gpu(*C.comm.broadcast(torch.ones(2), [0, 0]))
        and C.comm.broadcast(torch.ones(2), out=[filled(2, 5.0)])[0].tolist() == [1, 1]
        and raises(RuntimeError, lambda: C.comm.broadcast(torch.ones(2)), "Exactly one")
    ),
    "comm.broadcast_coalesced": lambda: (
        [len(t) for t in C.comm.broadcast_coalesced([filled(2), filled(3)], [0, 0])] == [2, 2]
    ),
    "comm.reduce_add": lambda: (
        C.comm.reduce_add([filled(2), torch.ones(2)]).tolist() == [2, 2]
        and raises(RuntimeError, lambda: C.comm.reduce_add([]), "at least one")
    ),
    "comm.reduce_add_coalesced": lambda: (
        [
            t.tolist()
            for t in C.comm.reduce_add_coalesced(
                [[filled(1), filled(1, 2.0)], [filled(1), filled(1)]]
            )
        ]
        == [[2], [3]]
    ),
    "comm.scatter": lambda: (
        [t.tolist() for t in C.comm.scatter(torch.arange(5.0), [0, 0], [2, 3])]
        == [[0, 1], [2, 3, 4]]
    ),
    "comm.gather": lambda: (
        on_gpu(t := C.comm.gather([filled(1), filled(2, 3.0)]))
        and t.tolist() == [1, 3, 3]
        and C.comm.gather([filled(1)], destination=-1).is_cpu
    ),
    "nccl.all_reduce": lambda: [reduced(op) for op in range(4)] == [[5, 5], [6, 6], [3, 3], [2, 2]],
    "nccl.reduce": lambda: (
        C.nccl.reduce(x := [filled(1), filled(1, 4.0)]) is None and x[0].item() == 5
    ),
    "nccl.broadcast": lambda: (
        C.nccl.broadcast(x := [filled(1, 9.0), filled(1)]) is None and x[1].item() == 9
    ),
    "nccl.all_gather": lambda: (
        C.nccl.all_gather([filled(1), filled(1, 2.0)], x := [filled(2), filled(2)]) is None
        and [t.tolist() for t in x] == [[1, 2], [1, 2]]
    ),
    "nccl.reduce_scatter": lambda: (
        C.nccl.reduce_scatter([filled(2), filled(2)], x := [filled(1), filled(1)]) is None
        and [t.tolist() for t in x] == [[2], [2]]
    ),
    "nccl.SUM": lambda: C.nccl.SUM == 0,
    "nccl.is_available": lambda: C.nccl.is_available([filled(1)]) is False,
    "nccl.version": lambda: C.nccl.version() == (0, 0, 0),
    # Settings that are kept
    "tunable.enable": lambda: switched("is_enabled", C.tunable.enable),
    "tunable.is_enabled": lambda: C.tunable.is_enabled() is False,
    "tunable.tuning_enable": lambda: switched("tuning_is_enabled", C.tunable.tuning_enable),
    "tunable.tuning_is_enabled": lambda: C.tunable.tuning_is_enabled() is True,
    "tunable.record_untuned_enable": lambda: switched(
        "record_untuned_is_enabled", C.tunable.record_untuned_enable
    ),
    "tunable.record_untuned_is_enabled": lambda: C.tunable.record_untuned_is_enabled() is False,
    "tunable.set_filename": lambda: chosen("filename", "a.csv"),
    "tunable.get_filename": lambda: C.tunable.get_filename() == "tunableop_results.csv",
    "tunable.set_max_tuning_duration": lambda: chosen("max_tuning_duration", 5),
    "tunable.get_max_tuning_duration": lambda: C.tunable.get_max_tuning_duration() == 30,
    "tunable.set_max_tuning_iterations": lambda: chosen("max_tuning_iterations", 5),
    "tunable.get_max_tuning_iterations": lambda: C.tunable.get_max_tuning_iterations() == 100,
    "tunable.set_rotating_buffer_size": lambda: chosen("rotating_buffer_size", 5),
    "tunable.get_rotating_buffer_size": lambda: C.tunable.get_rotating_buffer_size() == -1,
    "tunable.set_numerical_check_tolerances": lambda: (
        C.tunable.set_numerical_check_tolerances(True, 1e-3, 1e-3) is None
    ),
    "tunable.get_results": lambda: C.tunable.get_results() == (),
    "tunable.get_validators": lambda: C.tunable.get_validators() == (),
    "tunable.read_file": lambda: C.tunable.read_file() is False,
    # torch.backends.cuda
    "backends.SDPAParams": lambda: attention().dropout == 0.0,
    "backends.is_built": lambda: G.is_built() is True,
    "backends.matmul": tf32,
    "backends.cuBLASModule": lambda: isinstance(G.matmul, G.cuBLASModule),
    "backends.cufft_plan_cache": lambda: (
        G.cufft_plan_cache[0].size == 0 and G.cufft_plan_cache.clear() is None
    ),
    "backends.cuFFTPlanCache": lambda: isinstance(G.cufft_plan_cache["cuda:0"], G.cuFFTPlanCache),
    "backends.cuFFTPlanCacheManager": lambda: isinstance(
        G.cufft_plan_cache, G.cuFFTPlanCacheManager
    ),
    "backends.cuFFTPlanCacheAttrContextProp": lambda: (
        type("T", (), {"x": G.cuFFTPlanCacheAttrContextProp(lambda: 3, "read only")})().x == 3
    ),
    "backends.enable_flash_sdp": lambda: switched("flash_sdp_enabled", G.enable_flash_sdp),
    "backends.flash_sdp_enabled": lambda: G.flash_sdp_enabled() is True,
    "backends.enable_math_sdp": lambda: switched("math_sdp_enabled", G.enable_math_sdp),
    "backends.math_sdp_enabled": lambda: G.math_sdp_enabled() is True,
    "backends.enable_mem_efficient_sdp": lambda: switched(
        "mem_efficient_sdp_enabled", G.enable_mem_efficient_sdp
    ),
    "backends.mem_efficient_sdp_enabled": lambda: G.mem_efficient_sdp_enabled() is True,
    "backends.enable_cudnn_sdp": lambda: switched("cudnn_sdp_enabled", G.enable_cudnn_sdp),
    "backends.cudnn_sdp_enabled": lambda: G.cudnn_sdp_enabled() is True,
    "backends.allow_fp16_bf16_reduction_math_sdp": lambda: switched(
        "fp16_bf16_reduction_math_sdp_allowed", G.allow_fp16_bf16_reduction_math_sdp
    ),
    "backends.fp16_bf16_reduction_math_sdp_allowed": lambda: (
        G.fp16_bf16_reduction_math_sdp_allowed() is False
    ),
    "backends.is_flash_attention_available": lambda: G.is_flash_attention_available() is True,
    "backends.is_ck_sdpa_available": lambda: G.is_ck_sdpa_available() is False,
    "backends.can_use_flash_attention": lambda: G.can_use_flash_attention(attention()) is True,
    "backends.can_use_efficient_attention": lambda: (
        G.can_use_efficient_attention(attention()) is True
    ),
    "backends.can_use_cudnn_attention": lambda: G.can_use_cudnn_attention(attention()) is False,
    "backends.preferred_linalg_library": lambda: G.preferred_linalg_library() == "default",
    "backends.preferred_blas_library": lambda: G.preferred_blas_library() == "default",
    "backends.preferred_rocm_fa_library": lambda: G.preferred_rocm_fa_library() == "default",
    "backends.sdp_kernel": lambda: G.sdp_kernel(enable_math=False).__enter__() is None,
}
for name, dtype in zip(CLASSES, DTYPES, strict=True):
    kind, element = getattr(C, f"{name}Tensor"), getattr(torch, dtype)
    CALLS[f"{name}Tensor"] = lambda kind=kind, element=element, name=name: (
        on_gpu(x := kind(2, 3))
        and x.shape == (2, 3)
        and x.dtype == element
        and isinstance(x, kind)
        and not isinstance(x.cpu(), kind)
        and x.type() == f"torch.cuda.{name}Tensor"
        and kind([1, 0]).tolist() == [1, 0]
        and on_gpu(torch.ones(2).type(kind))
        and torch.ones(1).type(f"torch.cuda.{name}Tensor").dtype == element
    )
    if name != "Bool":
        old = getattr(C.sparse, f"{name}Tensor")
        CALLS[f"sparse.{name}Tensor"] = lambda old=old, element=element: (
            (x := old(2, 3)).is_sparse and on_gpu(x) and x.dtype == element and isinstance(x, old)
        )
for name in [*CLASSES, "ComplexFloat", "ComplexDouble"]:
    CALLS[f"{name}Storage"] = lambda name=name: (
        (s := getattr(C, f"{name}Storage")(3)).is_cuda
        and s.size() == 3
        and isinstance(s, getattr(C, f"{name}Storage"))
        and not isinstance(s.cpu(), getattr(C, f"{name}Storage"))
    )

# What has no meaning here, and a call that says so.
REFUSED: dict[str, Any] = {
    "CUDAPluggableAllocator": lambda: C.CUDAPluggableAllocator("a.so", "take", "give"),
    "change_current_allocator": lambda: C.memory.change_current_allocator(None),
    "caching_allocator_alloc": lambda: C.caching_allocator_alloc(64),
    "caching_allocator_delete": lambda: C.caching_allocator_delete(0),
    "ExternalStream": lambda: C.ExternalStream(1),
    "get_stream_from_external": lambda: C.get_stream_from_external(1),
    "GreenContext": lambda: C.GreenContext(),
    "green_contexts.GreenContext": lambda: C.GreenContext.create(1),
    "current_blas_handle": C.current_blas_handle,
    "current_solver_handle": C.current_solver_handle,
    "clock_rate": C.clock_rate,
    "memory_usage": C.memory_usage,
    "power_draw": C.power_draw,
    "temperature": C.temperature,
    "utilization": C.utilization,
    "gds.GdsFile": lambda: __import__("torch.cuda.gds").cuda.gds.GdsFile("a", 0),
    "gds.gds_register_buffer": lambda: C.gds.gds_register_buffer(None),
    "gds.gds_deregister_buffer": lambda: C.gds.gds_deregister_buffer(None),
    "nccl.init_rank": lambda: C.nccl.init_rank(2, b"", 0),
    "nccl.unique_id": C.nccl.unique_id,
    "tunable.tune_gemm_in_file": lambda: C.tunable.tune_gemm_in_file("a.csv"),
    "tunable.mgpu_tune_gemm_in_file": lambda: C.tunable.mgpu_tune_gemm_in_file("a.csv", 1),
    "backends.blas_workspace_size": G.blas_workspace_size,
    "backends.cublas_workspace_size": G.cublas_workspace_size,
    "backends.cublaslt_workspace_size": G.cublaslt_workspace_size,
    # Compilers for GPUs, which programs ask in other places
    "cpp_extension.load_inline": lambda: torch.utils.cpp_extension.load_inline("a", ["int x;"]),
    "cpp_extension.load": lambda: torch.utils.cpp_extension.load("a", ["a.cu"]),
    "cpp_extension.CUDAExtension": lambda: torch.utils.cpp_extension.CUDAExtension("a", ["a.cu"]),
    "jiterator": lambda: C.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }"),
    "library.triton_op": lambda: torch.library.triton_op("a::b", mutates_args=()),
}


def wrong(call: Any, refused: bool) -> str | None:
    """Return what is wrong with a call."""
    try:
        found = call()
    except NotImplementedError as e:
        text = str(e)
        return None if refused and len(text) > 60 and text.startswith("torch.") else text
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    if refused:
        return f"gave {found!r}"
    return None if found else f"gave {found!r}"


if __name__ == "__main__":
    found = {name: wrong(call, False) for name, call in CALLS.items()}
    found |= {name: wrong(call, True) for name, call in REFUSED.items()}
    print(json.dumps(found))
    sys.exit(0)
