"""``python -m pytensorlib info``: what there is on this machine, for people and for bug reports.

GPUs are asked in processes of their own: a driver that ends the program ends only that process.
"""

from __future__ import annotations

import argparse
import ctypes.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["advice", "main", "report", "text"]

MIB = 1 << 20
# Limits that decide what fits; the others are in the JSON.
SHOWN = ("max_buffer_size", "max_storage_buffer_binding_size", "max_compute_workgroup_storage_size")
VENDORS = {"0x1002": "AMD", "0x10de": "NVIDIA", "0x8086": "Intel"}
# What gives a system Vulkan, by the family of its distribution (ID and ID_LIKE of os-release).
PACKAGES = {
    "debian": "sudo apt install libvulkan1 mesa-vulkan-drivers",
    "fedora": "sudo dnf install vulkan-loader mesa-vulkan-drivers",
    "arch": "sudo pacman -S vulkan-icd-loader vulkan-radeon (AMD) or vulkan-intel (Intel)",
    "suse": "sudo zypper install libvulkan1 libvulkan_radeon (AMD) or libvulkan_intel (Intel)",
    "alpine": "sudo apk add vulkan-loader mesa-vulkan-ati (AMD) or mesa-vulkan-intel (Intel)",
}
ICDS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")


def _best(call: Any, wait: Any = None, seconds: float = 0.3) -> float:
    """Return the least seconds of a call among those that fit into some time."""
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        if wait:
            wait()
        begin = time.perf_counter()
        call()
        if wait:
            wait()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


def _timed(device: str, side: int, megabytes: int) -> dict[str, float]:
    """Return what a product of square matrices and a copy reach, in operations and bytes."""
    import pytensorlib as torch

    wait = None if device == "cpu" else torch.wgpu.synchronize
    a = torch.rand(side, side).to(device)
    source = torch.rand(megabytes * MIB // 4).to(device)
    target = torch.empty_like(source)
    return {
        "matrix_side": side,
        "flops": 2 * side**3 / _best(lambda: a @ a, wait),
        "copy_megabytes": megabytes,
        "bytes": 2 * megabytes * MIB / _best(lambda: target.copy_(source), wait),
    }


def _cpu() -> dict[str, Any]:
    """Return the processor, and what was chosen for it."""
    import pytensorlib as torch

    from ..utils import collect_env

    machine = torch._C._machine()
    return {
        "name": collect_env.get_cpu_info().splitlines()[0],
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "kernels": machine["level"],
        "amx": machine["amx"] if _has_amx() or machine["amx"] == "model" else "never",
        "caches": {name: machine[name] for name in ("l1", "l2", "last")},
        "measured": _timed("cpu", 1024, 64),
    }


def _has_amx() -> bool:
    """Return whether Linux says that the processor has AMX's tiles."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return "amx_tile" in file.read()
    except OSError:
        return False


def _memory() -> dict[str, int]:
    """Return the bytes of the machine's memory, where the system tells."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            rows = dict(line.split(":", 1) for line in file)
        found = {"total": rows["MemTotal"], "available": rows["MemAvailable"]}
        return {name: int(row.split()[0]) * 1024 for name, row in found.items()}
    except (OSError, KeyError, ValueError):
        pass
    try:
        return {"total": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}
    except (AttributeError, ValueError, OSError):
        return {}


def _notes(found: dict[str, Any]) -> list[str]:
    """Return what will be slow on an adapter, or run on the CPU, and why."""
    features = set(found["features"])
    notes = []
    if found["software"]:
        notes.append("it runs on the processor: right for tests, slow for work")
    if not found["int64"]:
        notes.append(
            "no 64-bit integers in shaders: int64 is computed as two 32-bit words, which is slower"
        )
    if not found["float64"]:
        notes.append("no 64-bit floats in shaders: operators of float64 run on the CPU")
    if not found["cooperative_matrices"]:
        notes.append(
            "no cooperative matrices (tensor cores): products of half types run as float32 ones do"
        )
    if "timestamp_query" not in features:
        notes.append("no timestamps: profiles have no times of kernels, and peaks are not known")
    if "pipeline_cache" not in features and found["backend"] == "Vulkan":
        notes.append("no pipeline cache: kernels are compiled again in each process")
    return notes


def _adapter(index: int, tried: bool) -> dict[str, Any]:
    """Return what there is to say of one adapter; run in a process of its own."""
    import pytensorlib as torch

    found = torch.wgpu.get_device_properties(index)
    found["notes"] = _notes(found)
    if not tried:
        return found
    device, software = f"wgpu:{index}", found["software"]
    torch.accelerator.set_device_index(index)  # what `synchronize` waits for
    measured = _timed(device, 512 if software else 2048, 16 if software else 256)
    peaks = torch.wgpu.peaks(index)
    if peaks:
        measured["peak_bytes"], measured["peak_flops"] = peaks
    found["measured"] = measured
    return found


def _ask(*words: str, limit: float = 120) -> Any:
    """Return what another process of ours answers, or a text that says why it does not."""
    command = [sys.executable, "-m", "pytensorlib", "info", "--json", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"no answer within {limit:.0f} seconds"
    try:
        return json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines()[-1:] or [f"it ended with status {done.returncode}"]
        return said[0]


def _cards() -> list[str]:
    """Return the makers of the cards that Linux sees, whether or not there is a driver."""
    files = sorted(Path("/sys/class/drm").glob("card[0-9]*/device/vendor"))
    found = []
    for file in files:
        try:
            vendor = file.read_text().strip()
        except OSError:
            continue
        found.append(VENDORS.get(vendor, vendor))
    if Path("/proc/driver/nvidia/version").exists() and "NVIDIA" not in found:
        found.append("NVIDIA")
    return found


def _distribution() -> str | None:
    """Return which row of `PACKAGES` is for this system."""
    try:
        said = platform.freedesktop_os_release()
    except (AttributeError, OSError):
        return None
    words = f"{said.get('ID', '')} {said.get('ID_LIKE', '')}".replace("opensuse", "suse").split()
    words += ["debian"] if "ubuntu" in words else []
    return next((name for name in PACKAGES if name in words), None)


def advice(system: str | None = None) -> list[str]:
    """Return what to install or look at where there is no adapter.

    Parameters
    ----------
    system : str, optional
        "Linux", "Darwin" or "Windows"; this one where it is left out.

    Returns
    -------
    list of str
        One step each.

    Examples
    --------
    >>> from pytensorlib._system.doctor import advice
    >>> advice("Darwin")[0]
    'Metal comes with macOS; a virtual machine may have none.'
    """
    system = system or platform.system()
    if system == "Darwin":
        return ["Metal comes with macOS; a virtual machine may have none."]
    if system == "Windows":
        return ["Direct3D 12 comes with Windows 10 and later. Install the card maker's driver."]
    steps, cards = [], _cards()
    if ctypes.util.find_library("vulkan") is None:
        steps.append("The Vulkan loader (libvulkan.so.1) is missing.")
    if not any(Path(folder).glob("*.json") for folder in map(Path, ICDS)):
        steps.append("No Vulkan driver is registered (there is no file in " + ICDS[0] + ").")
    name = _distribution()
    steps.append(
        f"Install both: {PACKAGES[name]}"
        if name
        else "Install the Vulkan loader and Mesa's Vulkan drivers by your system's packages."
    )
    if "NVIDIA" in cards:
        steps.append(
            "NVIDIA's card: its driver brings Vulkan. In a container, ask for it: "
            "NVIDIA_DRIVER_CAPABILITIES=all, and install libvulkan1 in the image."
        )
    nodes = sorted(Path("/dev/dri").glob("renderD*")) if Path("/dev/dri").is_dir() else []
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if closed:
        steps.append(f"{closed[0]} is not open to you: sudo usermod -aG render,video $USER")
    elif not nodes and not cards:
        steps.append("Linux shows no card here; Mesa's software Vulkan will do for tests.")
    return steps


def report(tried: bool = False) -> dict[str, Any]:
    """Return what there is on this machine.

    Parameters
    ----------
    tried : bool, default False
        Whether each adapter computes something.

    Returns
    -------
    dict
        What ``python -m pytensorlib info --json`` prints.

    Examples
    --------
    >>> from pytensorlib._system.doctor import report
    >>> sorted(report())  # doctest: +SKIP
    ['adapters', 'advice', 'cpu', 'environment', 'memory', 'versions']
    """
    import numpy as np

    import pytensorlib as torch

    from ..utils import collect_env

    count = _ask("--count")
    adapters: list[Any] = []
    steps: list[str] = []
    if isinstance(count, int):
        words = ["--gpu"] if tried else []
        for k in range(count):
            found = _ask(f"--adapter={k}", *words)
            adapters.append({"error": found} if isinstance(found, str) else found)
    else:
        steps = [f"GPUs could not be listed: {count}"]
    if not adapters:
        steps += advice()
    return {
        "versions": {
            "pytensorlib": str(torch.__version__),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "system": collect_env.get_os(),
            "libc": collect_env.get_libc_version(),
        },
        "environment": {k: v for k, v in sorted(os.environ.items()) if _matters(k)},
        "memory": _memory(),
        "cpu": _cpu(),
        "adapters": adapters,
        "advice": steps,
    }


def _matters(variable: str) -> bool:
    """Return whether a variable of the environment changes what happens here."""
    return variable.startswith("PYTENSORLIB_") or variable in {
        "OMP_NUM_THREADS",
        "CUDA_VISIBLE_DEVICES",
        "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",
    }


def _rate(value: float, unit: str, peak: float | None) -> str:
    """Return a rate with its share of the peak."""
    scale, prefix = next((s, p) for s, p in ((1e12, "T"), (1e9, "G"), (0, "M")) if value >= s)
    share = f" ({value / peak:.0%} of its peak)" if peak else ""
    return f"{value / (scale or 1e6):.3g} {prefix}{unit}{share}"


def _measured(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    n, size = found["matrix_side"], found["copy_megabytes"]
    yield (
        f"product {n} x {n}, float32",
        _rate(found["flops"], "FLOP/s", found.get("peak_flops")),
    )
    yield f"copy of {size} MiB", _rate(found["bytes"], "B/s", found.get("peak_bytes"))


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str] | str]:
    """Yield headings, and rows of a name and a value."""
    yield "Versions"
    yield from found["versions"].items()
    yield from found["environment"].items()
    cpu, memory = found["cpu"], found["memory"]
    yield "Processor"
    yield "name", cpu["name"]
    yield "cores, threads", f"{cpu['cores']}, {cpu['threads']}"
    amx = "" if cpu["amx"] == "never" else f", AMX: {cpu['amx']}"
    yield "kernels", cpu["kernels"] + amx
    yield "caches", ", ".join(f"{name} {size // 1024} KB" for name, size in cpu["caches"].items())
    if memory:
        sizes = (f"{size / 2**30:.1f} GiB {name}" for name, size in memory.items())
        yield "memory", ", ".join(sizes)
    yield from _measured(cpu["measured"])
    for k, adapter in enumerate(found["adapters"]):
        yield f"GPU wgpu:{k}"
        if "error" in adapter:
            yield "failed", adapter["error"]
            continue
        yield "name", adapter["name"]
        yield "backend, driver", f"{adapter['backend']}, {adapter['driver']}"
        if adapter["memory"]:
            yield "memory", f"{adapter['memory'] / 2**30:.1f} GiB"
        yield "features", ", ".join(adapter["features"])
        limits = adapter["limits"]
        yield "limits", ", ".join(f"{name} {limits[name]}" for name in SHOWN if name in limits)
        yield from _measured(adapter["measured"]) if "measured" in adapter else ()
        for note in adapter["notes"]:
            yield "note", note
    if not found["adapters"]:
        yield "No GPU"
    for step in found["advice"]:
        yield "do", step


def text(found: dict[str, Any]) -> str:
    """Return what `report` found as text for people.

    Parameters
    ----------
    found : dict
        What was found.

    Returns
    -------
    str
        In lines.

    Examples
    --------
    >>> from pytensorlib._system.doctor import report, text
    >>> text(report()).splitlines()[0]  # doctest: +SKIP
    'Versions'
    """
    return "\n".join(
        f"\n{row}" if isinstance(row, str) else f"  {row[0]:<28} {row[1]}" for row in _rows(found)
    ).strip()


def main(argv: list[str]) -> int:
    """Print the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pytensorlib info",
        description="Say what there is on this machine: text to paste into a bug report.",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--gpu", action="store_true", help="let each GPU compute something")
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--adapter", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    found: Any
    if options.count:
        from .. import wgpu

        found = wgpu.device_count()
    elif options.adapter is not None:
        found = _adapter(options.adapter, options.gpu)
    else:
        found = report(options.gpu)
        if not options.json:
            print(text(found))
            return 0
    print(json.dumps(found, indent=1))
    return 0
