"""`torch.accelerator`, streams and events, as programs written for PyTorch use them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import accelerator, wgpu

gpu = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
MIB = 1 << 20


@gpu
def test_memory_counts_follow_tensors_and_peaks_begin_anew() -> None:
    accelerator.empty_cache()
    before = accelerator.memory_allocated()
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.max_memory_allocated() == before
    x = torch.empty(MIB, device="wgpu")
    y = torch.empty(2 * MIB, device="wgpu")
    assert accelerator.memory_allocated() == before + 12 * MIB
    del x
    held = accelerator.memory_allocated("wgpu:0")
    assert held == before + 8 * MIB
    assert accelerator.max_memory_allocated() == before + 12 * MIB
    stats = accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == held
    assert stats["allocated_bytes.all.peak"] == before + 12 * MIB
    assert stats["allocated_bytes.all.allocated"] == 12 * MIB
    assert stats["allocated_bytes.all.freed"] == 4 * MIB
    assert stats["allocation.all.allocated"] == 2 and stats["allocation.all.freed"] == 1
    assert stats["reserved_bytes.all.current"] == accelerator.memory_reserved()
    accelerator.reset_peak_memory_stats("wgpu")
    assert accelerator.max_memory_allocated() == held
    reserved = accelerator.memory_reserved()
    accelerator.empty_cache()
    assert accelerator.memory_reserved() <= reserved - 4 * MIB
    assert accelerator.max_memory_reserved() == reserved
    freed = accelerator.memory_stats()["reserved_bytes.all.freed"]
    assert freed >= reserved - accelerator.memory_reserved()
    del y


@gpu
def test_memory_of_the_card_and_the_cap_are_told() -> None:
    properties = wgpu.get_device_properties()
    assert properties["cap"] is None
    wgpu.set_memory_cap(1 << 40)
    try:
        assert wgpu.get_device_properties()["cap"] == 1 << 40
    finally:
        wgpu.set_memory_cap(None)
    if properties["backend"] != "Vulkan":
        assert properties["memory"] is None
        with pytest.raises(RuntimeError, match="does not tell how much memory"):
            accelerator.get_memory_info()
        return
    assert properties["memory"] > 64 * MIB
    free, total = accelerator.get_memory_info(0)
    assert total == properties["memory"] and free == total - accelerator.memory_reserved(0)


@gpu
def test_capability_names_the_types_that_the_adapter_has() -> None:
    found = accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bool, torch.bfloat16} <= found
    assert (torch.float64 in found) == wgpu.get_device_properties()["float64"]


@gpu
def test_events_are_reached_in_order_and_measure_time() -> None:
    timed = "timestamp_query" in wgpu.get_device_properties()["features"]
    start, end = (torch.Event("wgpu", enable_timing=timed) for _ in range(2))
    assert start.query() and start.event_id == 0
    start.synchronize()
    x = torch.ones(200, 200, device="wgpu")
    start.record()
    for _ in range(20):
        x = x @ x / 200
    end.record(accelerator.current_stream())
    end.synchronize()
    assert end.query() and start.query() and end.event_id != 0
    assert x[0, 0].item() == pytest.approx(1)
    if not timed:
        with pytest.raises(RuntimeError, match="enable_timing=True"):
            start.elapsed_time(end)
        return
    took = start.elapsed_time(end)
    assert 0 < took < 60_000 and end.elapsed_time(start) == -took
    # It can be asked again, and an event recorded anew.
    assert start.elapsed_time(end) == took
    start.record()
    start.synchronize()
    assert end.elapsed_time(start) > 0


@gpu
def test_events_without_a_time_refuse_to_tell_one() -> None:
    plain, timed, other = torch.Event(), *(torch.Event(enable_timing=True) for _ in range(2))
    plain.record()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(RuntimeError, match="must be recorded before calculating"):
        timed.elapsed_time(other)
    with pytest.raises(NotImplementedError, match="one process"):
        plain.ipc_handle()


def test_cpu_has_no_events_and_a_stream_that_is_done() -> None:
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
        torch.Event("cpu").record()
    stream = torch.Stream("cpu")
    assert stream.query() and (stream.device_index, stream.device_type) == (-1, 0)
    stream.synchronize()
    with pytest.raises(RuntimeError, match="meta has no streams"):
        torch.Stream("meta")


@gpu
def test_streams_are_the_one_queue_of_their_gpu() -> None:
    first = accelerator.current_stream()
    assert first.stream_id == 0 and first == accelerator.current_stream(0)
    assert first.device == torch.device("wgpu:0") and hash(first) == hash(torch.Stream(
        stream_id=0, device_index=0, device_type=first.device_type
    ))  # fmt: skip
    side = torch.Stream(device="wgpu")
    assert side != first and "device_type=wgpu" in repr(side)
    x = torch.ones(3, device="wgpu") * 2
    side.wait_stream(first)
    with side:
        assert accelerator.current_stream() == side
        y = x + 1
        done = side.record_event()
    assert accelerator.current_stream() == first
    first.wait_event(done)
    done.wait(first)
    assert (y * 2).tolist() == [6.0] * 3
    side.synchronize()
    assert side.query() and done.query() and not side.is_capturing()
    accelerator.set_stream(side)
    try:
        assert accelerator.current_stream() == side
        seen: list[Any] = []
        other = threading.Thread(target=lambda: seen.append(accelerator.current_stream()))
        other.start()
        other.join()
        assert seen == [first]
    finally:
        accelerator.set_stream(first)
    with pytest.raises(RuntimeError, match="there is no wgpu:200"):
        torch.Stream("wgpu:200")
    with pytest.raises(ValueError, match="stream of a GPU"):
        accelerator.set_stream(torch.Stream("cpu"))
    with pytest.raises(ValueError, match="expected a GPU"):
        accelerator.current_stream("cpu")


@gpu
def test_device_index_is_set_for_a_block() -> None:
    assert accelerator.device_count() == wgpu.device_count() >= 1
    with accelerator.device_index(0):
        assert accelerator.current_device_index() == 0
    accelerator.synchronize("wgpu:0")
    accelerator.set_device_index(torch.device("wgpu", 0))
    assert accelerator.current_device_index() == 0
