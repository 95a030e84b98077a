"""Programs as people write them for CUDA (``programs/cuda_*.py``), on the GPU that they ask for.

Their numbers are PyTorch's, on the CPU in float32. Nothing may run on the CPU for want of a kernel.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import child
import pytest

from pytensorlib import wgpu

FOLDER = Path(__file__).parents[1] / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("cuda_*.py"))
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
# How far numbers may be off, in parts of the largest: sums of half types round at 2^-11 and 2^-8,
# and a few steps multiply that.
BOUNDS = {"float32": 1e-5, "float16": 2e-2, "bfloat16": 4e-2}
# In half types those with the most kinds of layers.
HALVES = ["cuda_char_gpt", "cuda_image_classifier", "cuda_diffusion", "cuda_lora"]
CASES = [(name, "float32") for name in NAMES]
CASES += [(name, dtype) for name in HALVES for dtype in ("float16", "bfloat16")]
pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


def run(name: str, dtype: str, *more: str) -> dict[str, list[float]]:
    """Return what a program reports, with its device's types chosen by its own variable."""
    env = {"DTYPE": dtype, "PYTENSORLIB_WGPU_FALLBACK": "error", "CUDA_VISIBLE_DEVICES": None}
    words = ("-W", "ignore", "-m", "pytensorlib", *more, f"{name}.py")
    done = child.python(*words, cwd=FOLDER, **env)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def difference(got: list[float], want: list[float]) -> float:
    spec = importlib.util.spec_from_file_location("programs_run", FOLDER / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return float(module.difference(got, want))


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_program_trains_on_the_gpu_as_pytorch_on_the_cpu(name: str, dtype: str) -> None:
    found = run(name, dtype, "--gpu-as", "cuda")
    want = EXPECTED[name]["values"]
    assert found.keys() == want.keys()
    gaps = {key: difference(found[key], want[key]) for key in want}
    assert not {key: gap for key, gap in gaps.items() if not gap <= BOUNDS[dtype]}


def test_no_program_names_this_package() -> None:
    assert len(NAMES) >= 7
    for name in NAMES:
        text = (FOLDER / f"{name}.py").read_text()
        assert "cuda.is_available()" in text and "wgpu" not in text and "pytensorlib" not in text
