"""The names of PyTorch that libraries above it mention, as recorded, are here."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Prefixes of names that are not here, and why that is what libraries need.
ABSENT = {
    "torch.testing._internal": "PyTorch's own helpers for its own tests are no part of its API",
    # A method that is not there says why as an AttributeError, so that `hasattr` is False.
    **dict.fromkeys(
        """
        torch.Tensor.dequantize torch.Tensor.int_repr torch.Tensor.is_distributed
        torch.Tensor.q_per_channel_axis torch.Tensor.q_per_channel_scales
        torch.Tensor.q_per_channel_zero_points torch.Tensor.q_scale torch.Tensor.q_zero_point
        torch.Tensor.qscheme torch.Tensor.to_mkldnn torch.Tensor.to_padded_tensor
        torch.Tensor._autocast_to_full_precision torch.Tensor._autocast_to_reduced_precision
        torch.Tensor._nested_tensor_size torch.Tensor._nested_tensor_storage_offsets
        torch.Tensor._nested_tensor_strides torch.Tensor._philox_normal_
        torch.Tensor._philox_uniform_
        """.split(),
        "a method of tensors of a kind that is not here",
    ),
    "torch.Tensor._sparse_mask_projection": "only PyTorch's own tests mention it",
    **dict.fromkeys(
        """
        torch.ByteStorage._from_buffer
        torch.UntypedStorage._new_shared_filename_cpu
        """.split(),
        "storages are made by tensors",
    ),
    **dict.fromkeys(
        """
        torch.utils.data._DatasetKind
        torch.utils.data._utils.pin_memory
        torch.utils.data.dataloader
        """.split(),
        "the parts of PyTorch's loader: a loader made of them would not fit this one's workers",
    ),
    **dict.fromkeys(
        """
        torch._C._TorchFunctionState torch._C._get_torch_function_state
        torch._C._set_torch_function_state
        torch.overrides.enable_reentrant_dispatch
        """.split(),
        "the state of PyTorch's dispatcher",
    ),
    "torch.nn.attention._get_flash_version": "xformers asks whether it is there, then calls it",
    "torch.classes.profiler": "a class of C++ that is not registered raises, as in PyTorch",
    "torch._custom_op": "the module of this name holds this package's own `custom_op`",
    "torch.nn.functional.scaled_grouped_mm": "its numbers have 4 bits: there are none of them",
}


@pytest.fixture(scope="module")
def scan() -> ModuleType:
    """Return tests/programs/names.py."""
    spec = importlib.util.spec_from_file_location("names_scan", ROOT / "tests/programs/names.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Asks for every name, as a library does: modules are imported, all else are attributes.
ASK = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
from pytensorlib._alias import install
install()
import torch

def found(name):
    place, _, last = name.rpartition(".")
    if not place:
        return importlib.import_module(name)
    home = found(place)
    try:
        return getattr(home, last)
    except AttributeError:
        if not isinstance(home, type(sys)):
            raise
    return importlib.import_module(name)

missing = {}
for name in json.load(sys.stdin):
    try:
        found(name)
    except Exception as e:
        missing[name] = f"{type(e).__name__}: {e}"
print(json.dumps(missing))
"""


def missing(names: list[str]) -> dict[str, str]:
    """Return the names that are not found where ``torch`` means this package, and the errors."""
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def excepted(name: str) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in ABSENT)


def test_every_name_that_libraries_mention_is_here(scan: ModuleType) -> None:
    names = [name for name in scan.read() if not excepted(name)]
    assert len(names) > 3000
    lost = missing(names)
    assert not lost, "\n".join(f"{name} {scan.read()[name]}: {e}" for name, e in lost.items())


def test_every_exception_is_needed(scan: ModuleType) -> None:
    names = [name for name in scan.read() if excepted(name)]
    lost = missing(names)
    unneeded = [p for p in ABSENT if not any(n == p or n.startswith(p + ".") for n in lost)]
    assert not unneeded, "these are here: take them out of ABSENT"
