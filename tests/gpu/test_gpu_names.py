"""The names of PyTorch's modules of devices, as recorded from it, are here and answer.

``data/gpu_names.json`` has, by module of PyTorch 2.13 (``__all__``, or what a module without one
defines), each name with the parameters that it takes and, of a class, its members.
"""

from __future__ import annotations

import importlib
import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

import child
import pytest

from pytensorlib import wgpu

HERE = Path(__file__).parents[1]
NAMES: dict[str, dict[str, Any]] = json.loads((HERE / "data" / "gpu_names.json").read_text())
# Where `gpu_calls.py` has a name of these modules: among those of `torch.cuda`.
SHARED = {"memory", "random", "streams", "graphs"}


def rows() -> list[tuple[str, str, Any]]:
    return [(module, name, what) for module, row in NAMES.items() for name, what in row.items()]


def place(module: str) -> Any:
    return importlib.import_module("pytensorlib" + module.removeprefix("torch"))


def test_every_name_is_here() -> None:
    print(f"{len(rows())} names of {len(NAMES)} modules")
    assert len(rows()) > 390
    assert not [f"{m}.{n}" for m, n, _ in rows() if not hasattr(place(m), n)]


def test_every_class_has_its_members() -> None:
    lost = [
        f"{module}.{name}.{member}"
        for module, name, what in rows()
        for found in [getattr(place(module), name)]
        for member in (what.get("class", ()) if isinstance(what, dict) else ())
        if not (hasattr(found, member) or member in getattr(found, "__annotations__", {}))
    ]
    # Those of an object alone, or of what cannot be made.
    own = {"device", "priority", "stream_id", "id"}
    assert not [name for name in lost if name.rpartition(".")[2] not in own]


def test_every_function_takes_what_pytorchs_takes() -> None:
    other = []
    for module, name, what in rows():
        wanted = what.get("takes") if isinstance(what, dict) else None
        try:
            signature = inspect.signature(getattr(place(module), name))
        except (TypeError, ValueError):
            continue
        any_ = {p.kind for p in signature.parameters.values()}
        if wanted is None or inspect.Parameter.VAR_POSITIONAL in any_:
            continue
        named = [n for n in wanted if n != "*" and not n.startswith("_")]
        found = list(signature.parameters)
        if inspect.Parameter.VAR_KEYWORD in any_:
            named = [n for n in named if n in found]
        if found[: len(named)] != named:
            other.append((f"{module}.{name}", named, found))
    assert not other


@cache
def answers(adapter: bool = True) -> dict[str, str | None]:
    """Return what is wrong with each call, made in a process where GPUs answer as "cuda"."""
    words = ("-m", "pytensorlib", "--gpu-as", "cuda", HERE / "gpu_calls.py")
    done = child.python(*words, CUDA_VISIBLE_DEVICES=None)
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def called() -> dict[str, str]:
    """Return the name of each call by the name of what PyTorch has."""
    found = {}
    for module, name, what in rows():
        if what == "module" or module.startswith(("torch.mps", "torch.xpu")):
            continue
        if module.startswith("torch.backends"):
            if module == "torch.backends.cuda":
                found[f"{module}.{name}"] = f"backends.{name}"
            continue
        part = module.removeprefix("torch.cuda").removeprefix(".")
        known = part in SHARED or not part
        found[f"{module}.{name}"] = name if known else f"{part}.{name}"
    return found


@pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
def test_a_call_of_each_name_answers() -> None:
    done = answers()
    assert not [name for name, call in called().items() if call not in done]
    assert not {name: what for name, what in done.items() if what is not None}
