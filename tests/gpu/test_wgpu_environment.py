"""What the environment and programs ask of a GPU is refused where it means nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from child import run

import pytensorlib as torch
from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

# The second call raises what the first one did.
OPENED = """
    import pytensorlib as torch
    for _ in range(2):
        try:
            torch.ones(3, device="wgpu")
        except Exception as e:
            print(f"{type(e).__name__}: {e}")
    print(torch.ones(3).sum().item())
"""
BYTES = "a number of bytes, a multiple of 4 and at least 4096"
NAMES = "parts of adapters' names with commas between them"
REFUSED = [
    *((name, value, BYTES) for name in ("WGPU_MAX_BINDING", "WGPU_MAX_BUFFER") for value in (
        "many", "0", "-1", "4092", "65537", "64K", "1e6", "65536.0", str(2**64),
    )),
    *(("WGPU_FUSE", value, "0 or 1") for value in ("2", "on", "-1")),
    *(("WGPU_COMPILERS", value, "a number of threads, 0 to 64") for value in ("all", "-1", "65")),
    *(("ADAPTER", value, NAMES) for value in (",", "a,,b")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "must"), REFUSED)
def test_opening_a_gpu_refuses_a_variable_that_means_nothing(
    name: str, value: str, must: str
) -> None:
    name = f"PYTENSORLIB_{name}"
    first, second, host = run(OPENED, **{name: value}).splitlines()
    assert first == second and host == "3.0" and first.startswith("ValueError: ")
    assert first.endswith(f"environment variable {name} must be {must}, got '{value}'")


@pytest.mark.parametrize("value", ["", " ", "4096", " 65536 ", str(2**40)])
@pytest.mark.parametrize("name", ["MAX_BINDING", "MAX_BUFFER"])
def test_opening_a_gpu_takes_limits_that_mean_something(name: str, value: str) -> None:
    assert run(OPENED, **{f"PYTENSORLIB_WGPU_{name}": value}) == "3.0\n"


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_opening_a_gpu_takes_switches(value: str) -> None:
    assert run(OPENED, PYTENSORLIB_WGPU_FUSE=value, PYTENSORLIB_ADAPTER="") == "3.0\n"


@pytest.mark.parametrize("number", [-1, 7, 255, 256, 300, 2**70])
def test_a_number_that_no_gpu_has_is_an_invalid_ordinal(number: int) -> None:
    what = f"invalid device ordinal: there is no wgpu:{number}"
    for f in (
        wgpu.synchronize,
        wgpu.memory_stats,
        wgpu.empty_cache,
        wgpu.get_device_properties,
        lambda n: wgpu.set_memory_cap(None, n),
    ):
        with pytest.raises(RuntimeError, match=what):
            f(number)
    with pytest.raises(RuntimeError, match="there are|invalid device ordinal"):
        torch.accelerator.set_device_index(number)


@pytest.mark.parametrize("text", ["wgpu:-1", "wgpu:+1", "wgpu:01", "wgpu:256", "wgpu:one", "wgpu:"])
def test_a_device_without_a_number_of_a_gpu_is_refused(text: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(f"Invalid device string: '{text}'")):
        torch.ones(2, device=text)


@pytest.mark.parametrize("size", [-1, 0, 2**64, 1.5, True, "1GB"])
def test_a_memory_cap_that_means_nothing_is_refused(size: Any) -> None:
    what = re.escape(f"from 1 to 2**64 - 1, got {size!r}")
    with pytest.raises(ValueError, match=f"^wgpu.set_memory_cap: size must be None, .* {what}"):
        wgpu.set_memory_cap(size)
