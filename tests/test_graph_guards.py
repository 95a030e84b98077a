"""What changes after a call was recorded is seen by the next call, whatever it is, at any depth."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu

DEVICES = ["cpu", *(["wgpu"] if wgpu.is_available() else [])]


class Inner(nn.Module):
    """A layer with a parameter, a buffer, a number and a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.drop = nn.Linear(3, 3), nn.Dropout(0.25)
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.zeros(3))
        self.factor = 1.5

    def forward(self, x: Any) -> Any:
        return self.drop(self.lin(x)) * self.w * self.factor + self.shift


class Other(Inner):
    """Another layer of the same parts."""

    def forward(self, x: Any) -> Any:
        return self.lin(x) - self.w


class Doubled(nn.Module):
    """A parametrization."""

    def forward(self, w: Any) -> Any:
        return w * 2


def to_cpu_and_back(root: Any, inner: Any) -> None:
    device = inner.w.device
    root.to("cpu")
    with torch.no_grad():
        inner.w.fill_(4.0)
    root.to(device)


def ones(t: Any) -> Any:
    return torch.full_like(t, 0.5).detach()


def load(root: Any, inner: Any) -> None:
    root.load_state_dict({k: ones(v) for k, v in root.state_dict().items()}, assign=True)


def prune(root: Any, inner: Any) -> None:
    torch.manual_seed(3)
    nn.utils.prune.random_unstructured(inner.lin, "weight", 0.5)


def one_forward(root: Any, inner: Any) -> None:
    inner.forward = types.MethodType(lambda self, x: self.lin(x) * 3, inner)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "data": lambda _, m: setattr(m.lin.weight, "data", ones(m.lin.weight)),
    "parameter": lambda _, m: setattr(m.lin, "weight", nn.Parameter(ones(m.lin.weight))),
    "load_state_dict": load,
    "prune": prune,
    "module": lambda _, m: setattr(m, "lin", nn.Sequential(m.lin, nn.Tanh())),
    "another layer": lambda _, m: setattr(m, "drop", nn.Tanh()),
    "a layer's number": lambda _, m: setattr(m.drop, "p", 0.99999),
    "a number": lambda _, m: setattr(m, "factor", -2.5),
    "to cpu and back": to_cpu_and_back,
    "eval": lambda _, m: m.eval(),
    "requires_grad": lambda _, m: m.lin.weight.requires_grad_(False),
    "buffer": lambda _, m: setattr(m, "shift", torch.ones_like(m.shift)),
    "forward": one_forward,
    "class": lambda _, m: setattr(m, "__class__", Other),
    "parametrization": lambda _, m: nn.utils.parametrize.register_parametrization(
        m.lin, "weight", Doubled()
    ),
    "forward hook": lambda _, m: m.lin.register_forward_hook(lambda m, x, y: y * 2),
    "forward pre-hook": lambda _, m: m.lin.register_forward_pre_hook(lambda m, x: (x[0] * 2,)),
    "backward hook": lambda _, m: m.drop.register_full_backward_hook(lambda m, i, o: (i[0] * 3,)),
    "backward pre-hook": lambda _, m: m.register_full_backward_pre_hook(lambda m, o: (o[0] * 3,)),
    "hook of a tensor": lambda _, m: m.w.register_hook(lambda g: g * 2),
    "hook after a gradient": lambda _, m: m.w.register_post_accumulate_grad_hook(
        lambda p: p.grad.mul_(3)
    ),
    "a gradient that is gone": lambda _, m: setattr(m.w, "grad", None),
    "a new gradient": lambda _, m: setattr(m.w, "grad", torch.full_like(m.w, 7.0).detach()),
    "hook of all modules": lambda _, m: nn.modules.module.register_module_forward_hook(
        lambda m, x, y: y * 2 if isinstance(m, nn.Linear) else None
    ),
}


class Twin:
    """A nest of modules and a step of training, as it is or recorded."""

    def __init__(self, depth: int, device: str, recorded: bool) -> None:
        torch.manual_seed(0)
        self.inner = Inner().to(device)
        self.root: Any = self.inner
        for _ in range(depth - 1):
            self.root = nn.Sequential(self.root)

        def step(x: Any) -> Any:
            loss = (root(x) * weight).sum()
            loss.backward()
            return loss.detach()

        root, weight = self.root, torch.arange(1.0, 7.0).reshape(2, 3).to(device)
        self.x = torch.arange(6.0).reshape(2, 3).to(device)
        self.step = torch.compile(step) if recorded else step

    def calls(self, n: int) -> list[Any]:
        """Return losses and gradients."""
        found = []
        for i in range(n):
            torch.manual_seed(i)
            found.append(self.step(self.x).cpu())
            grads = [p.grad for p in self.root.parameters()]
            found += [None if g is None else g.detach().cpu().clone() for g in grads]
        return found


def equal(a: list[Any], b: list[Any]) -> bool:
    both = zip(a, b, strict=True)
    return all(x is y if x is None or y is None else torch.equal(x, y) for x, y in both)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("depth", "device"), [(1, "cpu"), (4, "cpu"), (8, "cpu"), *[(6, d) for d in DEVICES[1:]]]
)
def test_change_of_a_module_at_any_depth_is_seen(depth: int, change: str, device: str) -> None:
    plain, recorded = Twin(depth, device, False), Twin(depth, device, True)
    assert equal(plain.calls(5), recorded.calls(5))
    assert len(recorded.step.programs) == 1
    handles = [CHANGES[change](twin.root, twin.inner) for twin in (plain,)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = plain.calls(4)
        if change == "hook of all modules":
            handles.pop().remove()
        handles += [CHANGES[change](recorded.root, recorded.inner)]
        try:
            assert equal(expected, recorded.calls(4))
        finally:
            if change == "hook of all modules":
                handles.pop().remove()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("depth", range(1, 9))
def test_parameter_that_gets_other_memory_is_seen_at_any_depth(depth: int, device: str) -> None:
    inner = Inner().to(device)
    net: nn.Module = inner
    for _ in range(depth - 1):
        net = nn.Sequential(net)
    net.eval()
    call = torch.compile(net)
    x = torch.ones(2, 3, device=device)
    for _ in range(5):
        call(x)
    assert len(call._recorded.programs) == 1
    inner.w.data = torch.full((3,), 5.0, device=device)
    with pytest.warns(UserWarning, match=r"is recorded anew: .*\.w changed"):
        assert torch.equal(call(x).detach(), net(x).detach())


# What is run first, with `f` the function, and what changes then.
STATES: dict[str, tuple[str, str]] = {
    "a class's attribute": (
        "class Cfg:\n  scale = 2.0\ndef f(x): return x * Cfg.scale",
        "Cfg.scale = 3.0",
    ),
    "an attribute of a base": (
        "class Base:\n  scale = 2.0\nclass Cfg(Base): pass\ndef f(x): return x * Cfg.scale",
        "Base.scale = 3.0",
    ),
    "an attribute that hides a base's": (
        "class Base:\n  scale = 2.0\nclass Cfg(Base): pass\ndef f(x): return x * Cfg().scale",
        "Cfg.scale = 3.0",
    ),
    "a module's class": (
        "class Net(nn.Module):\n  scale = 2.0\n  def forward(self, x): return x * self.scale\n"
        "f = Net()",
        "Net.scale = 3.0",
    ),
    "behind a property": (
        "class Net(nn.Module):\n  _s = 2.0\n  @property\n  def s(self): return self._s\n"
        "  def forward(self, x): return x * self.s\nf = Net()",
        "Net._s = 3.0",
    ),
    "a class's forward": (
        "class Net(nn.Module):\n  def forward(self, x): return x * 2\nf = Net()",
        "Net.forward = lambda self, x: x * 3",
    ),
    "a layer's forward": (
        "f = nn.Sequential(nn.ReLU())",
        "old = nn.ReLU.forward\nnn.ReLU.forward = lambda self, x: x * 3",
    ),
    "SimpleNamespace": (
        "cfg = types.SimpleNamespace(scale=2.0)\ndef f(x): return x * cfg.scale",
        "cfg.scale = 3.0",
    ),
    "OrderedDict": (
        "cfg = collections.OrderedDict(a=2.0)\ndef f(x): return x * cfg['a']",
        "cfg['a'] = 3.0",
    ),
    "the order of an OrderedDict": (
        "cfg = collections.OrderedDict(a=2.0, b=3.0)\n"
        "def f(x): return x * next(iter(cfg.values()))",
        "cfg.move_to_end('a')",
    ),
    "the order of a dict": (
        "cfg = dict(a=2.0, b=3.0)\ndef f(x): return x * list(cfg.values())[0]",
        "cfg['a'] = cfg.pop('a')",
    ),
    "defaultdict": (
        "cfg = collections.defaultdict(float, a=2.0)\ndef f(x): return x * cfg['a']",
        "cfg['a'] = 3.0",
    ),
    "a new key": ("cfg = {'a': 1}\ndef f(x): return x * (3 if 'b' in cfg else 2)", "cfg['b'] = 1"),
    "set": ("cfg = {'a'}\ndef f(x): return x * (3 if 'b' in cfg else 2)", "cfg.add('b')"),
    "deque": ("cfg = collections.deque([2.0])\ndef f(x): return x * cfg[0]", "cfg[0] = 3.0"),
    "nested containers": (
        "cfg = {'a': [(1, {'b': [2.0]})]}\ndef f(x): return x * cfg['a'][0][1]['b'][0]",
        "cfg['a'][0][1]['b'][0] = 3.0",
    ),
    "slots": (
        "@dataclasses.dataclass(slots=True)\nclass Cfg:\n  scale: float = 2.0\n"
        "cfg = Cfg()\ndef f(x): return x * cfg.scale",
        "cfg.scale = 3.0",
    ),
    "slots of a base": (
        "class Base:\n  __slots__ = ('scale',)\nclass Cfg(Base):\n  __slots__ = ()\n"
        "cfg = Cfg()\ncfg.scale = [2.0]\ndef f(x): return x * cfg.scale[0]",
        "cfg.scale[0] = 3.0",
    ),
    "NumPy": ("c = np.array([2.0])\ndef f(x): return x * float(c[0])", "c[0] = 3.0"),
    "a global": ("scale = 2.0\ndef f(x): return x * scale", "scale = 3.0"),
    "the sign of zero": ("shift = 0.0\ndef f(x): return 1 / (x * shift)", "shift = -0.0"),
    "a global of a helper": (
        "scale = 2.0\ndef g(x): return x * scale\ndef h(x): return g(x)\ndef f(x): return h(x)",
        "scale = 3.0",
    ),
    "a global of a method": (
        "scale = 2.0\nclass Net(nn.Module):\n  def part(self, x): return x * scale\n"
        "  def forward(self, x): return self.part(x)\nf = Net()",
        "scale = 3.0",
    ),
    "a helper": (
        "def g(x): return x * 2\ndef h(x): return g(x)\ndef f(x): return h(x)",
        "def g(x): return x * 3",
    ),
    "a helper's code": (
        "def g(x): return x * 2\ndef k(x): return x * 3\ndef f(x): return g(x)",
        "g.__code__ = k.__code__",
    ),
    "a closure": (
        "def make():\n  scale = 2.0\n  def put(v):\n    nonlocal scale\n    scale = v\n"
        "  def g(x): return x * scale\n  return g, put\n"
        "g, put = make()\ntable = {'g': g}\ndef f(x): return table['g'](x)",
        "put(3.0)",
    ),
    "a closure that a decorator hides": (
        "def make():\n  scale = 2.0\n  def put(v):\n    nonlocal scale\n    scale = v\n"
        "  @torch.no_grad()\n  def g(x): return x * scale\n  return g, put\nf, put = make()",
        "put(3.0)",
    ),
    "defaults": ("def g(x, s=2.0): return x * s\ndef f(x): return g(x)", "g.__defaults__ = (3.0,)"),
    "named defaults": (
        "def g(x, *, s=2.0): return x * s\ndef f(x): return g(x)",
        "g.__kwdefaults__['s'] = 3.0",
    ),
    "a list among defaults": (
        "s = [2.0]\ndef g(x, s=s): return x * s[0]\ndef f(x): return g(x)",
        "s[0] = 3.0",
    ),
    "partial": (
        "cfg = types.SimpleNamespace(scale=2.0)\ndef g(cfg, x): return x * cfg.scale\n"
        "f = functools.partial(g, cfg)",
        "cfg.scale = 3.0",
    ),
    "keywords of partial": (
        "def g(x, s): return x * s\np = functools.partial(g, s=2.0)\ndef f(x): return p(x)",
        "p.keywords['s'] = 3.0",
    ),
    "a bound method": (
        "class Cfg:\n  def __init__(self): self.scale = 2.0\n"
        "  def times(self, x): return x * self.scale\ncfg = Cfg()\nf = cfg.times",
        "cfg.scale = 3.0",
    ),
    "another module": (
        "cfgmod = types.ModuleType('cfgmod')\ncfgmod.scale = 2.0\n"
        "def f(x): return x * cfgmod.scale",
        "cfgmod.scale = 3.0",
    ),
    "a module imported where it is used": (
        "m = types.ModuleType('pt_cfgmod')\nm.scale = 2.0\nsys.modules['pt_cfgmod'] = m\n"
        "def f(x):\n  import pt_cfgmod\n  return x * pt_cfgmod.scale",
        "m.scale = 3.0",
    ),
    "another dictionary of attributes": (
        "class Cfg: pass\ncfg = Cfg()\ncfg.scale = 2.0\ndef f(x): return x * cfg.scale",
        "cfg.__dict__ = {'scale': 3.0}",
    ),
    "getattr": (
        "class Cfg: pass\ncfg = Cfg()\ncfg.scale = 2.0\nname = 'sca' + 'le'\n"
        "def f(x): return x * getattr(cfg, name)",
        "cfg.scale = 3.0",
    ),
    "vars": (
        "class Cfg: pass\ncfg = Cfg()\ncfg.scale = 2.0\n"
        "def f(x): return x * sum(vars(cfg).values())",
        "cfg.scale = 3.0",
    ),
    "attrgetter": (
        "class Cfg: pass\ncfg = Cfg()\ncfg.scale = 2.0\nget = operator.attrgetter('scale')\n"
        "def f(x): return x * get(cfg)",
        "cfg.scale = 3.0",
    ),
    "a function's attribute": (
        "def g(x): return x * g.scale\ng.scale = 2.0\ndef f(x): return g(x)",
        "g.scale = 3.0",
    ),
    "a tensor's attribute": (
        "t = torch.ones(3)\nt.scale = 2.0\ndef f(x): return x * t.scale",
        "t.scale = 3.0",
    ),
    "a variable that was not there": (
        "def f(x):\n  try: return x * scale\n  except NameError: return x * 2",
        "scale = 3.0",
    ),
    "a name that hides a builtin": (
        "def f(x): return x * max(1, 2)",
        "max = lambda *a: 3",
    ),
    "an instance that hides its class": (
        "class Cfg:\n  scale = 2.0\ncfg = Cfg()\ndef f(x): return x * cfg.scale",
        "cfg.scale = 3.0",
    ),
    "a cached result": (
        "class Cfg: pass\n@functools.lru_cache\ndef get():\n  c = Cfg()\n"
        "  c.scale = 2.0\n  return c\n"
        "def f(x): return x * get().scale",
        "get().scale = 3.0",
    ),
    "a context variable": (
        "v = contextvars.ContextVar('v')\nv.set(2.0)\ndef f(x): return x * v.get()",
        "v.set(3.0)",
    ),
    "the environment": (
        "os.environ['PT_SCALE'] = '2'\ndef f(x): return x * float(os.environ['PT_SCALE'])",
        "os.environ['PT_SCALE'] = '3'",
    ),
    "getenv": (
        "os.environ['PT_SCALE'] = '2'\ndef f(x): return x * float(os.getenv('PT_SCALE'))",
        "os.environ['PT_SCALE'] = '3'",
    ),
    "an object's operator": (
        "class Num:\n  def __init__(self, v): self.v = v\n"
        "  def __rmul__(self, x): return torch.mul(x, self.v)\n"
        "  def __float__(self): return self.v\nn = Num(2.0)\ndef f(x): return x * float(n)",
        "n.v = 3.0",
    ),
    "a layer by a list": (
        "layers = [nn.Linear(3, 3), nn.Linear(3, 3)]\n"
        "for l in layers: l.weight.data.fill_(0.1); l.bias.data.fill_(0.2)\n"
        "def f(x): return layers[0](x).detach()",
        "layers[0].weight.data = torch.full((3, 3), 0.5)",
    ),
    "a function of this package": (
        "def f(x): return F.relu(x)",
        "F = types.SimpleNamespace(relu=lambda x: x * 3)",
    ),
    "a distribution": (
        "d = torch.distributions.Normal(0.0, 1.0, validate_args=False)\n"
        "def f(x): return d.log_prob(x)",
        "d.loc = torch.tensor(2.0)",
    ),
}
NAMES = """
import collections, contextvars, dataclasses, functools, operator, os, sys, types
import numpy as np, pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F
"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("state", STATES)
def test_change_of_what_a_function_reads_is_seen(
    state: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, then = STATES[state]
    if "layers" in then or "torch.tensor" in then:
        device = "cpu"
    monkeypatch.setenv("PT_SCALE", "1")
    monkeypatch.setattr(nn.ReLU, "forward", nn.ReLU.forward)
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    found = []
    for recorded in (False, True):
        monkeypatch.setitem(sys.modules, "case", types.ModuleType("case"))
        names = vars(sys.modules["case"])
        exec(NAMES + first, names)
        call = torch.compile(names["f"]) if recorded else names["f"]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            results = [call(x).cpu() for _ in range(5)]
            n_told = len(told)
            exec(then, names)
            if state == "a function of this package" and not recorded:
                call = names["f"]
            results += [call(x).cpu() for _ in range(4)]
        monkeypatch.undo()
        monkeypatch.setenv("PT_SCALE", "1")
        monkeypatch.setattr(nn.ReLU, "forward", nn.ReLU.forward)
        found.append(results)
    assert equal(*found)
    assert not torch.equal(found[0][0], found[0][-1])
    # Recorded before, and again once what changed was told, in one line.
    assert n_told == 0
    (line,) = [str(w.message) for w in told]
    assert "is recorded anew" in line


REFUSED: dict[str, tuple[str, str]] = {
    "an iterator": (
        "it = itertools.cycle([1.0, 1.0, 1.0, 1.0, 5.0])\ndef f(x): return x * next(it)",
        "what it gives next",
    ),
    "a generator of random numbers": (
        "r = random.Random(0)\ndef f(x): return x * round(r.random() / 9)",
        "draws random numbers of r",
    ),
    "eval": ("scale = 2.0\ndef f(x): return x * eval('scale')", "asks eval"),
    "globals": ("scale = 2.0\ndef f(x): return x * globals()['sca' + 'le']", "asks globals"),
    "a large array": ("c = np.ones(4096)\ndef f(x): return x * float(c[9])", "too large"),
    "a counter": ("n = [0]\ndef f(x):\n  n[0] += 1\n  return x * 2", r"n(\[0\])? changed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_runs_as_it_is_with_a_line_that_names_it(name: str) -> None:
    first, why = REFUSED[name]
    found = []
    x = torch.ones(3)
    for recorded in (False, True):
        names: dict[str, Any] = {"__name__": "case"}
        exec("import itertools, random\n" + NAMES + first, names)
        call = torch.compile(names["f"]) if recorded else names["f"]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found.append([call(x) for _ in range(12)])
    assert equal(*found)
    assert len(told) == 1
    with pytest.warns(UserWarning, match=why):
        warnings.warn_explicit(told[0].message, None, "", 0)  # type: ignore[arg-type]


def test_settings_and_modes_are_told_apart() -> None:
    w = torch.ones(3, requires_grad=True)
    call = torch.compile(lambda x: (x * w + torch.zeros(3)).detach())
    x = torch.ones(3)
    for _ in range(4):
        call(x)
    for default in (torch.float64, torch.float32):
        torch.set_default_dtype(default)
        try:
            assert [call(x).dtype for _ in range(3)] == [default] * 3
        finally:
            torch.set_default_dtype(torch.float32)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        call(x)
    assert packed
    seen = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(f)
            return f(*args, **kwargs or {})

    with Watch():
        call(x)
    assert seen
    assert len(call.programs) == 2
    torch.set_float32_matmul_precision("high")
    try:
        call(x)
        assert len(call._kinds) == 3
    finally:
        torch.set_float32_matmul_precision("highest")


def test_more_changes_than_are_kept_cost_no_more_than_the_function() -> None:
    cfg, calls = {"scale": 0.0}, []
    count = torch.compiler.allow_in_graph(lambda: calls.append(1))

    def f(x: Any) -> Any:
        count()
        return x * cfg["scale"]

    call = torch.compile(f)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for i in range(60):
            cfg["scale"] = float(i)
            assert [call(torch.ones(2)).tolist() for _ in range(2)] == [[i, i]] * 2
    assert [str(w.message) for w in told] == [
        "torch.compile: f is recorded anew: cfg.scale changed",
        "torch.compile: f runs as it is: it was recorded 8 times, the last time because "
        "cfg.scale changed",
    ]
    assert len(call.programs) <= 8
    # What then stays is recorded in the end.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(400):
            call(torch.ones(2))
    calls.clear()
    assert call(torch.ones(2)).tolist() == [59.0, 59.0] and not calls


def test_shapes_in_turn_each_have_their_program() -> None:
    call = torch.compile(lambda x: x * 2)
    for _ in range(4):
        for n in range(1, 21):
            assert call(torch.ones(n)).shape == (n,)
    assert len(call.programs) == 20
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in [*range(1, 40)] * 3:
            assert call(torch.ones(n)).shape == (n,)
    (line,) = told
    assert "more than 32 kinds" in str(line.message)


def test_shapes_whose_calls_are_never_alike_leave_others_alone() -> None:
    number = torch.zeros(())

    def f(x: Any) -> Any:
        return x * 2 if len(x) > 2 else x + torch.randn(2).sum() + len(torch.unique(number))

    call = torch.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(6):
            call(torch.ones(2))
    for _ in range(3):
        call(torch.ones(3))
    assert len(call.programs) == 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["plain", "dropout", "batch norm", "views"])
def test_second_derivatives_are_those_of_the_function(kind: str, device: str) -> None:
    # Where gradients meet they are added in another order, which norms make larger.
    dtype, tolerance = (torch.float64, 1e-12) if device == "cpu" else (torch.float32, 1e-4)

    def run(recorded: bool) -> list[Any]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(device, dtype)
        if kind == "dropout":
            net.insert(1, nn.Dropout(0.5))
        if kind == "batch norm":
            net.insert(1, nn.BatchNorm1d(4).to(device, dtype))
        f = lambda x: {"out": [net(x), x * x]}  # noqa: E731
        call = torch.compile(f) if recorded else f
        base = torch.arange(12.0, device=device, dtype=dtype).reshape(4, 3) / 10
        found = []
        for i in range(6):
            x = (base + i).requires_grad_()
            y = x * 2 if kind == "views" else x
            out, square = call(y)["out"]
            loss = out.square().sum() + square.sum()
            if i < 4:
                loss.backward()
            else:
                (g,) = torch.autograd.grad(loss, x, create_graph=True)
                (loss + g.square().sum()).backward()
                found.append(g)
            found += [x.grad, *[p.grad for p in net.parameters()], torch.rand(2)]
            net.zero_grad()
        if recorded:
            assert len(call.programs) == 1
        return [t.detach().cpu() for t in [*found, *net.buffers()]]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plain, recorded = run(False), run(True)
    for a, b in zip(plain, recorded, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    (line,) = [str(w.message) for w in told]
    assert "create_graph=True" in line


def test_second_derivative_of_a_call_whose_state_changed_since_raises() -> None:
    cfg, w = {"scale": 2.0}, torch.ones(3, requires_grad=True)
    call = torch.compile(lambda x: (w * w * x * cfg["scale"]).sum())
    for _ in range(4):
        loss = call(torch.ones(3))
    cfg["scale"] = 3.0
    with (
        pytest.warns(UserWarning, match="create_graph"),
        pytest.raises(RuntimeError, match="changed since"),
    ):
        torch.autograd.grad(loss, w, create_graph=True)


def test_array_that_is_read_by_a_kernel_is_no_condition() -> None:
    array = np.zeros(3, np.float32)
    t = torch.from_numpy(array)
    call = torch.compile(lambda x: x + t)
    for i in range(5):
        array[:] = i
        assert call(torch.ones(3)).tolist() == [i + 1.0] * 3
    assert len(call.programs) == 1


def test_compile_refuses_what_cannot_be_called_and_runs_what_it_cannot_tell() -> None:
    for record in (torch.compile, torch.graph):
        for x in (3, "f", torch.ones(2)):
            with pytest.raises(TypeError, match=f"expected a function.*got {type(x).__name__}"):
                record(x)
        knot: list[Any] = [torch.ones(2)]
        knot.append(knot)
        with pytest.warns(UserWarning, match="contains itself"):
            assert record(lambda x: x[0] + 1)(knot).tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="contains itself"):
            record(lambda x: x[0] + 1, fullgraph=True)(knot)
