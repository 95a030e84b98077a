"""Where programs written for PyTorch went other ways here: PyTorch's answers, or closed forms."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest
from public_names import MEMBERS, owner, read

import pytensorlib as torch
from pytensorlib import nn

# Members of PyTorch's classes that are not here, and why.
LACKING = {
    "torch.SymFloat": "numbers of a trace: programs are not traced",
    "torch.SymInt": "numbers of a trace: programs are not traced",
    "torch.Tensor": "dimensions have no names",
    "torch.autograd.Function": "vmap calls a function once for each slice",
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
        if found is None:
            continue
        seen += len(names)
        if lost := [n for n in names if not hasattr(found, n)]:
            lacking[row] = lost
    assert seen > 400
    assert lacking.keys() == LACKING.keys()
    assert sum(map(len, lacking.values())) <= 26


# Modules that are compiled in place.


def test_module_compiles_in_place_and_gives_the_same_results() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    x = torch.randn(5, 3)
    want = [net(x * i) for i in range(5)]
    assert net.compile() is None
    assert all(torch.equal(net(x * i), y) for i, y in enumerate(want))
    assert net._compiled_call_impl.programs
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    assert type(net) is nn.Sequential


def test_compiled_module_calls_its_hooks_and_copies_are_not_compiled() -> None:
    net, x, calls = nn.Linear(2, 2), torch.ones(1, 2), []
    net.compile(backend="eager")
    handle = net.register_forward_hook(lambda *_: calls.append(1))
    net(x)
    handle.remove()
    net(x)
    assert calls == [1]
    assert net._compiled_call_impl is not None
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other._compiled_call_impl is None
        assert torch.equal(other(x), net(x))
    with pytest.raises(RuntimeError, match="Unrecognized mode=foo"):
        net.compile(mode="foo")


STEP = """
import torch
import torch.nn.functional as F

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.AdamW(net.parameters())

@torch.compile(fullgraph=True)
def step(x, y):
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

for _ in range(5):
    step(torch.randn(4, 8), torch.tensor([0, 1, 2, 3]))
print(len(step.programs))
"""


def test_compiled_step_is_recorded_in_a_script_that_imports_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytensorlib", "-c", STEP],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
