"""What is paid once: the import, the installed bytes, the memory of a training step."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from statistics import median
from typing import Any
from zipfile import ZipFile

import pytest

Benchmark = Any  # pytest-benchmark's fixture ships no types
ROOT = Path(__file__).resolve().parent.parent
PEAK = """
import importlib, re
from pathlib import Path
def resident(what):
    return int(re.search(what + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3
t = importlib.import_module(name)
import models
t.set_num_threads(2)
models.mlp(t, (8, 8), 8, 'SGD')()
step = models.cnn(t, 256)
Path("/proc/self/clear_refs").write_text("5")  # forget the highest mark
before = resident("VmRSS")
for _ in range(5):
    step()
print(resident("VmHWM") - before)
"""
IMPORT = "import time; s = time.perf_counter(); __import__(name); print(time.perf_counter() - s)"


def reported(request: pytest.FixtureRequest, program: str) -> float:
    """Run a program in a fresh interpreter and return the number that it prints."""
    name, site = request.config.getoption("--lib"), request.config.getoption("--site")
    if name == "numpy":
        pytest.skip("nothing to compare")
    folders = [str(ROOT / "bench"), str(ROOT), site]
    program = f"import sys; name = {name!r}; sys.path += {folders!r}\n{program}"
    command = [sys.executable, "-c", program]
    # Installed packages have compiled files; without them an import is mostly compilation.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


def record(benchmark: Benchmark, label: str, value: float, unit: str) -> None:
    """Keep a value that is not a time of the benchmark's own."""
    benchmark.extra_info |= {"label": label, "value": value, "unit": unit}
    benchmark.pedantic(lambda: None, rounds=1)


def test_import(benchmark: Benchmark, request: pytest.FixtureRequest) -> None:
    """The import statement in a fresh interpreter; ours loads NumPy when something needs it."""
    reported(request, IMPORT)  # the first one fills the file cache
    seconds = median(reported(request, IMPORT) for _ in range(7))
    record(benchmark, "costs: import", seconds * 1e9, "ns")


def test_peak(benchmark: Benchmark, request: pytest.FixtureRequest) -> None:
    """What five training steps of the digits CNN on batches of 256 add to resident memory."""
    if sys.platform != "linux":
        pytest.skip("the highest mark can be reset on Linux only")
    record(benchmark, "costs: peak memory of a CNN step", reported(request, PEAK), "MB")


def installed_bytes(name: str) -> int:
    """Return the size on disk of what the distribution installed."""
    return sum(path.locate().stat().st_size for path in files(name) or () if path.locate().exists())


def test_size(benchmark: Benchmark, request: pytest.FixtureRequest) -> None:
    """The unpacked files, of our wheel or of what is installed."""
    name = request.config.getoption("--lib")
    wheels = sorted((ROOT / "target/wheels").glob(f"{name}-*.whl"), key=lambda p: p.stat().st_mtime)
    if wheels:
        with ZipFile(wheels[-1]) as z:
            size = sum(entry.file_size for entry in z.infolist())
        benchmark.extra_info["wheel"] = wheels[-1].stat().st_size / 1e6
    elif name == "pytensorlib":
        pytest.skip("an editable install has no files of its own: build the wheel")
    else:
        try:
            size = installed_bytes(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
    record(benchmark, "costs: installed size", size / 1e6, "MB")
