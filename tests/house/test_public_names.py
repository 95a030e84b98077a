"""PyTorch's public names, as recorded, beside ours."""

from __future__ import annotations

import importlib
import importlib.util

import pytest
from public_names import (
    COUNTED,
    INTERNAL,
    MEMBERS,
    NAMES,
    counted,
    missing,
    owner,
    read,
    share,
    within,
)

import pytensorlib as torch
from pytensorlib._absent import LATER, reasons, spelled_out, why
from pytensorlib._alias import HOT

# In percent of the names that count; it may only rise.
FLOOR = 97.0


def test_share_of_public_names_that_are_here_does_not_fall() -> None:
    print(f"{share():.2f} % of PyTorch's public names")
    assert share() >= FLOOR


def test_list_of_names_covers_what_counts() -> None:
    rows = read(NAMES)
    assert set(COUNTED) <= set(rows)
    assert sum(len(names) for module, names in rows.items() if counted(module)) > 2300
    assert {"softmax", "float32", "no_grad"} <= set(rows["torch"])
    assert {"conv2d", "relu"} <= set(rows["torch.nn.functional"])
    assert {"svd", "lstsq"} <= set(rows["torch.linalg"])
    assert not missing("torch.special")


def lacking() -> list[tuple[str, str]]:
    """Return the module and name of each of PyTorch's public names that is not here."""
    rows = read(NAMES)
    return [(module.removesuffix(INTERNAL), name) for module in rows for name in missing(module)]


def test_every_missing_name_has_a_reason() -> None:
    assert not {f"{module}.{name}" for module, name in lacking() if why(f"{module}.{name}") is None}


def test_every_missing_name_raises_an_error_that_tells_the_reason() -> None:
    silent = []
    for module, name in lacking():
        place = owner(module)
        if place is None or module[len("torch.") :] in HOT:
            continue
        with pytest.raises(AttributeError) as error:
            getattr(place, name)
        if len(str(error.value)) < len(f"module '{module}' has no attribute '{name}'") + 20:
            silent.append(f"{module}.{name}")
    assert not silent


def test_every_module_is_here_or_tells_why_not() -> None:
    silent = []
    for module in read(NAMES):
        name = "pytensorlib" + module.removesuffix(INTERNAL)[len("torch") :]
        if owner(module) is not None:
            continue
        with pytest.raises(ModuleNotFoundError, match="No module named") as error:
            importlib.import_module(name)
        if "is not in pytensorlib" not in str(error.value):
            silent.append(name)
    assert not silent


def test_every_reason_is_needed() -> None:
    lost = {f"{module}.{name}" for module, name in lacking()}
    lost |= {m.removesuffix(INTERNAL) for m in read(NAMES) if owner(m) is None}
    later = set(spelled_out(LATER))
    unneeded = {
        entry
        for entry in reasons()
        if entry not in later and not any(within(name, [f"torch.{entry}"]) for name in lost)
    }
    assert not unneeded, "these are here: take them out of pytensorlib/_absent/__init__.py"


def test_missing_name_is_told_in_every_way_of_asking() -> None:
    with pytest.raises(AttributeError, match="PyTorch has.*nearest|is not in pytensorlib.*nearest"):
        _ = torch.quantized_max_pool1d
    assert not hasattr(torch, "quantized_max_pool1d")
    assert not hasattr(torch.Tensor, "to_mkldnn")
    assert not hasattr(torch.ones(1), "to_mkldnn")
    assert "to_mkldnn" not in dir(torch.ones(1))
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'to_mkldnn': .*own"):
        torch.ones(1).to_mkldnn()
    with pytest.raises(
        ImportError, match="cannot import name 'quantized_max_pool1d' from .*quantized"
    ):
        exec("from pytensorlib import quantized_max_pool1d")
    with pytest.raises(ImportError, match="DataChunk.*IterableDataset"):
        exec("from pytensorlib.utils.data import DataChunk")
    with pytest.raises(ModuleNotFoundError, match="hipify.*custom_op") as error:
        importlib.import_module("pytensorlib.utils.hipify.constants")
    assert error.value.name == "pytensorlib.utils.hipify"
    assert importlib.util.find_spec("pytensorlib.utils.hipify") is None


def test_name_that_pytorch_lacks_too_is_told_plainly() -> None:
    with pytest.raises(AttributeError) as error:
        _ = torch.no_such_name
    assert str(error.value) == "module 'pytensorlib' has no attribute 'no_such_name'"
    with pytest.raises(AttributeError, match="^module 'pytensorlib.nn' has no attribute 'Nope'$"):
        _ = torch.nn.Nope
    with pytest.raises(ModuleNotFoundError, match="^No module named 'pytensorlib.nope'$"):
        importlib.import_module("pytensorlib.nope")


# Members of PyTorch's classes that are not here, and why.
LACKING = {
    "torch.Tag": "members of an enumeration have names, the class does not",
    "torch.Tensor": "dimensions have no names",
    "torch.autograd.NestedIOFunction": "PyTorch no longer documents it",
    "torch.autograd.function.BackwardCFunction": "how PyTorch's engine calls it",
    "torch.autograd.profiler.FunctionEvent": "how PyTorch's profiler builds its tree",
    "torch.autograd.profiler.profile": "devices are not profiled apart",
    "torch.nn.attention.SDPBackend": "members of an enumeration have names, the class does not",
    "torch.nn.functional.ScalingType": "members of an enumeration have names, the class does not",
    "torch.nn.functional.SwizzleType": "members of an enumeration have names, the class does not",
    "torch.nn.modules.Module": "its devices are not supported",
    "torch.nn.modules.MultiheadAttention": "how PyTorch's fast path joins masks",
    "torch.optim.lr_scheduler.SequentialLR": "how PyTorch's constructor takes steps back",
}


def test_classes_have_the_members_that_pytorch_describes() -> None:
    lacking, seen = {}, 0
    for row, names in read(MEMBERS).items():
        module, _, kind = row.rpartition(".")
        place = owner(module)
        found = getattr(place, kind, None) if place is not None else None
        if found is None or (found.__doc__ or "").startswith("Not here:"):
            continue
        seen += len(names)
        if lost := [n for n in names if not hasattr(found, n)]:
            lacking[row] = lost
    assert seen > 400
    assert lacking.keys() == LACKING.keys()
    assert sum(map(len, lacking.values())) <= 26
