"""The package as a whole: its names, its modules under the alias, its objects in pickles."""

import ast
import gc
import os
import weakref
from pathlib import Path

import child
import pytest
from public_objects import MODULES, PACKAGE

import pytensorlib as torch
from pytensorlib import _C, nn

# What an extension has on Windows alone.
WINDOWS = {"_map_section"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_every_name_read_off_the_extension_is_there(path):
    def attribute(node):
        """`_C.x.y` as ["x", "y"]; nothing for other expressions."""
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        return names[::-1] if isinstance(node, ast.Name) and node.id == "_C" else []

    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("_C"):
            names = [[alias.name] for alias in node.names if alias.name != "*"]
        else:
            names = [attribute(node)]
        for name in filter(None, names):
            there = hasattr(_C, name[0]) or (os.name != "nt" and name[0] in WINDOWS)
            assert there, f"{path.name} reads _C.{name[0]}"


def test_result_type_follows_the_ranks_of_operands():
    # PyTorch's answers.
    assert torch.result_type(torch.ones(1, dtype=torch.int8), 1.0) is torch.float32
    assert torch.result_type(torch.ones(1, dtype=torch.int8), 300) is torch.int8
    assert torch.result_type(torch.tensor(1.0, dtype=torch.float64), torch.ones(1)) is torch.float32
    assert torch.result_type(1, 2) is torch.int64
    assert torch.result_type(2.5, torch.ones(1, dtype=torch.bool)) is torch.float32
    assert torch.result_type(1j, torch.ones(1, dtype=torch.float64)) is torch.complex128
    with pytest.raises(TypeError, match="Tensor or Number"):
        torch.result_type([1], 2)


ALIAS = """
import importlib, sys
from pytensorlib._alias import install
install()
import torch
import pytensorlib

def held(m):
    return {k: v for k, v in vars(m).items() if not k.startswith("__")}

names = %r
for name in names:
    importlib.import_module(name)
    parent, _, child = name.rpartition(".")
    alias = "torch" + name[len("pytensorlib"):]
    packages = [n for n in list(sys.modules) if n.partition(".")[0] == "pytensorlib"]
    before = {n: held(sys.modules[n]) for n in packages}
    module = importlib.import_module(alias)
    assert module is sys.modules[name], name
    for n, attributes in before.items():
        after = held(sys.modules[n])
        assert after.keys() == attributes.keys(), (name, n)
        for k, v in attributes.items():
            assert after[k] is v, (name, n, k)
for name in names:
    ours, alias = sys.modules[name], sys.modules["torch" + name[len("pytensorlib"):]]
    assert ours is alias
from torch.autograd.gradcheck import gradcheck
assert torch.autograd.gradcheck is gradcheck
x = torch.ones(1, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda x: x * 2, x)
print("done", len(names))
"""


def test_importing_a_module_under_the_alias_changes_no_attribute():
    assert child.run(ALIAS % MODULES, "-W", "error").startswith("done")


PICKLE = """
import copy, pickle, sys
%s
sys.path.insert(0, %r)
import public_objects
lost = []
for name, value in public_objects.public().items():
    if getattr(value, "__module__", "").partition(".")[0] not in ("pytensorlib", "torch", None):
        continue
    for clone in (lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy):
        try:
            twin = clone(value)
        except Exception as e:
            lost.append((name, repr(e)[:200]))
            continue
        by_name = ("function", "builtin", "dtype")
        if (isinstance(value, type) or type(value).__name__ in by_name) and twin is not value:
            lost.append((name, "is another object"))
print(lost)
assert not lost
assert "torch" not in sys.modules or sys.modules["torch"] is sys.modules["pytensorlib"]
"""


@pytest.mark.parametrize("alias", ["", "from pytensorlib._alias import install; install()"])
def test_every_public_object_survives_a_pickle_and_copies(alias):
    child.run(PICKLE % (alias, str(Path(__file__).parents[1])), "-W", "error")


WORKER = """
import pickle, sys
import pytensorlib as torch
def fail(e):
    raise e
for e in (torch.OutOfMemoryError("a"), torch.linalg.LinAlgError("b")):
    twin = pickle.loads(pickle.dumps(e))
    assert type(twin) is type(e) and twin.args == e.args
for cls in (torch.FloatTensor, torch.LongTensor, torch.Size):
    assert pickle.loads(pickle.dumps(cls)) is cls
assert pickle.loads(pickle.dumps(torch.ones(2, 3).shape)) == torch.Size([2, 3])
g = torch.Generator().manual_seed(7)
torch.rand(3, generator=g)
twin = pickle.loads(pickle.dumps(g))
assert torch.equal(torch.rand(3, generator=g), torch.rand(3, generator=twin))
layer = torch.nn.TransformerEncoderLayer(8, 2, activation=torch.nn.functional.gelu)
assert pickle.loads(pickle.dumps(layer)).activation is torch.nn.functional.gelu
assert pickle.loads(pickle.dumps(torch.Tensor.add)) is torch.Tensor.add
assert pickle.loads(pickle.dumps(torch.linalg.inv)) is torch.linalg.inv
"""


def test_sizes_errors_generators_and_functions_survive_a_pickle():
    child.run(WORKER, "-W", "error")


def test_load_state_dict_leaves_no_reference_cycles():
    m = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    state = m.state_dict()
    while gc.collect():  # what other tests left may take more than one round
        pass
    gc.disable()
    try:
        m.load_state_dict(state)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_load_hook_does_not_keep_its_module():
    m = nn.Linear(2, 2)
    seen = []
    m._register_load_state_dict_pre_hook(lambda module, *rest: seen.append(module), True)
    m.load_state_dict(m.state_dict())
    assert seen == [m]
    seen.clear()
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(m)
        del m
        assert gone() is None
    finally:
        gc.enable()


def test_limits_of_what_is_no_dtype_raise_type_error():
    for function in (torch.finfo, torch.iinfo):
        for what in (torch.ones(1), 3, "float32"):
            with pytest.raises(TypeError, match="must be torch.dtype"):
                function(what)


def test_devices_that_are_not_here_have_names():
    assert repr(torch.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert torch.device("meta").type == "meta"
    assert torch.device("cuda") != torch.device("cuda:0") == torch.device("cuda", 0)
    for bad in ("cuda:x", "cuda:-1", "cuda:01", "gpu", "cpu:1", ""):
        with pytest.raises(RuntimeError):
            torch.device(bad)
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.ones(1, device="cuda")
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.ones(1).to(torch.device("cuda:0"))
    assert torch.ones(1).layout is torch.strided


def test_numpy_is_loaded_when_it_is_first_needed() -> None:
    code = (
        "import sys, pytensorlib as torch; x = torch.tensor([1.0, 2.0]) + 1;"
        "batch = torch.utils.data.default_collate([(1, 'a'), (2, 'b')]);"
        "y = torch.tensor([x[0], 2]).tolist(); torch.nn.Linear(2, 2)(x); str(x);"
        "import io; f = io.BytesIO(); torch.save({'x': x, 'none': x[:0]}, f); f.seek(0);"
        "assert torch.equal(torch.load(f)['x'], x);"
        "f = io.BytesIO(); torch.save(x, f, _use_new_zipfile_serialization=False); f.seek(0);"
        "assert torch.equal(torch.load(f), x);"
        "assert 'numpy' not in sys.modules; assert type(x.numpy()).__name__ == 'ndarray'"
    )
    child.run(code)


def test_import_loads_nothing_that_takes_long():
    loaded = child.run("import sys, pytensorlib; print(*sys.modules)", "-W", "error").split()
    late = {"dataclasses", "inspect", "pickle", "pytensorlib.optim", "pytensorlib.fft"}
    assert not late & set(loaded)
