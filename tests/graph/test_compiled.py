"""A compiled function does what the function does, with which everything is compared."""

import copy
import gc
import pickle
import textwrap
import threading
import weakref
from pathlib import Path

import child
import pytest
from fuzz import compiled as law

import pytensorlib as torch
from pytensorlib import _C, nn

F = nn.functional
HERE = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def small_work_waits():
    """Let work on few elements wait too, as that on many does."""
    _C._Matched.set_tiny(0)
    yield
    _C._Matched.set_tiny(16)


def same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and torch.equal(x, y)


def test_random_programs_with_effects_of_python_are_what_they_are_without_compile():
    done = child.python("-m", "fuzz", "compiled", "--count", "400", cwd=HERE, timeout=600)
    assert done.returncode == 0 and "400 run" in done.stdout, done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore")
def test_law_finds_a_compiled_function_that_leaves_python_out():
    def once(f):
        results = []

        def call(number):
            if not results:
                results.append(f(number))
            return results[0]

        return call

    class Broken:
        def __getattr__(self, name):
            return once if name == "compile" else getattr(torch, name)

    assert any(law.findings(seed, Broken()) for seed in range(5))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(4 * 16, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(self.drop(x.flatten(1)))


def trained(
    steps, wrap=lambda f: f, module=lambda m: m, scaler=False, sizes=(8,), optimizer="AdamW"
):
    """Return losses, parameters, buffers and state of a small network after some steps."""
    torch.manual_seed(3)
    net = Net()
    opt = getattr(torch.optim, optimizer)(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    scale = torch.amp.GradScaler("cpu", enabled=scaler)
    called = module(net)

    @wrap
    def step(x, y):
        opt.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=scaler):
            loss = F.cross_entropy(called(x), y)
        scale.scale(loss).backward()
        scale.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scale.step(opt)
        scale.update()
        schedule.step()
        return loss

    losses = []
    for i in range(steps):
        n = sizes[i % len(sizes)]
        losses.append(step(torch.randn(n, 1, 8, 8), torch.randint(0, 5, (n,))).detach())
    state = [v for s in opt.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return [*losses, *net.state_dict().values(), *state, torch.get_rng_state()], step, called


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "NAdam", "Adafactor"])
@pytest.mark.parametrize("options", [{}, {"scaler": True}, {"sizes": (8, 3, 8, 5)}], ids=str)
def test_training_step(optimizer, options):
    plain, *_ = trained(9, optimizer=optimizer, **options)
    got, step, _ = trained(9, torch.compile, optimizer=optimizer, **options)
    assert all(map(same, plain, got))
    assert step.counts["runs"] >= 4 and step.counts["matched"] > 40


def test_loop_around_a_compiled_module_runs_its_backward_together():
    plain, *_ = trained(8)
    got, _, module = trained(8, module=torch.compile)
    assert all(map(same, plain, got))
    calls, back = module._compiled._calls.counts
    assert calls[3] > 0 and back[3] > 0


def test_submodule_compiled_alone_and_within_a_compiled_step():
    def part(net):
        net.out = torch.compile(net.out)
        return net

    plain, *_ = trained(6)
    for wrap in (lambda f: f, torch.compile):
        got, *_ = trained(6, wrap, part)
        assert all(map(same, plain, got))


def test_learning_rate_and_other_numbers_may_change_in_each_call():
    def run(wrap):
        torch.manual_seed(0)
        w = torch.randn(40, requires_grad=True)
        opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)

        @wrap
        def step(x, k):
            opt.zero_grad()
            ((w * x * k).lerp(w, k / 10) ** 2).sum().backward()
            opt.step()

        for i in range(8):
            opt.param_groups[0]["lr"] = 0.1 / (i + 1)
            step(torch.randn(40), 0.5 + i)
        return w.detach(), step

    (plain, _), (got, step) = run(lambda f: f), run(torch.compile)
    assert same(plain, got)
    # Numbers are no part of what is matched: all calls but the first are the same way.
    assert step.counts["programs"] <= 2 and step.counts["runs"] >= 6


def test_what_waits_is_there_for_other_threads():
    def f(x):
        y = (x * 2).sin()
        found = []
        thread = threading.Thread(target=lambda: found.append(y.sum().item()))
        thread.start()
        thread.join()
        y.mul_(2)
        return y, found[0]

    g, x = torch.compile(f), torch.randn(500)
    for _ in range(5):
        (y, s), (z, t) = f(x), g(x)
        assert same(y, z) and s == t


def test_threads_call_one_compiled_function():
    net = torch.compile(nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5)))
    xs = [torch.randn(n, 20) for n in (3, 3, 7, 7)]
    want = [net._orig_mod(x) for x in xs]
    wrong = []

    def work(x, y):
        for _ in range(100):
            with torch.no_grad():
                if not same(net(x), y):
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(xs, want)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_two_compiled_functions_write_to_one_tensor_in_turn():
    shared = torch.zeros(100)
    add = torch.compile(lambda: shared.add_(1))
    double = torch.compile(lambda: shared.mul_(2))
    want = 0.0
    for _ in range(6):
        add(), double()
        want = (want + 1) * 2
    assert shared.tolist() == [want] * 100


def test_an_error_in_the_middle_leaves_what_was_done_before():
    state = torch.zeros(64)

    def f(x, fail):
        state.add_(x)
        y = x * 3
        if fail:
            raise KeyError("stop")
        return y + state

    g = torch.compile(f)
    x = torch.arange(64.0)
    for i in range(6):
        fail = i % 2 == 1
        if fail:
            with pytest.raises(KeyError, match="stop"):
                g(x, fail)
        else:
            assert same(g(x, fail), x * 3 + x * (i + 1))
        assert same(state, x * (i + 1))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (lambda w: F.embedding(torch.tensor([99]), w), IndexError),
        (lambda w: w[torch.tensor([0, 99])], IndexError),
        (lambda w: w.gather(0, torch.full((1, 4), 99)), RuntimeError),
        (lambda w: F.cross_entropy(w, torch.full((8,), 99)), IndexError),
        (lambda w: torch.linalg.cholesky(w @ w.T), RuntimeError),
        (lambda w: w.int() // torch.zeros(4, dtype=torch.int32), RuntimeError),
    ],
    ids=["embedding", "index", "gather", "cross_entropy", "cholesky", "division"],
)
def test_an_error_that_elements_cause_is_raised_where_they_are_used(bad, error):
    def f(w):
        done.append("before")
        y = w * 2
        try:
            bad(y)
        except error as e:
            done.append(str(e))
        done.append("after")
        return y

    w, done = -torch.eye(8, 4), []
    f(w)
    want, g = done.copy(), torch.compile(f)
    for _ in range(4):
        done.clear()
        assert same(g(w), w * 2) and done == want


def test_elements_are_what_they_are_where_python_looks_at_them():
    def f(x):
        y = x * 2
        seen = [y.sum().item(), y.tolist(), str(y), y.numpy().copy().tolist(), y.data_ptr() != 0]
        seen += [
            bool((y > 0).all()),
            len(y.nonzero()),
            y.untyped_storage().nbytes(),
            y.is_contiguous(),
        ]
        z = y.clone()
        return [
            *seen,
            pickle.dumps(z) != b"",
            copy.deepcopy(z).tolist(),
            bytes(z.untyped_storage()) != b"",
        ]

    g, x = torch.compile(f), torch.randn(50)
    for _ in range(4):
        assert f(x) == g(x)


def test_memory_that_numpy_shares_is_read_and_written_at_once():
    import numpy as np

    array = np.zeros(40)
    shared = torch.from_numpy(array)

    def f():
        seen = []
        shared.add_(1)
        seen.append(array.sum())
        array[:] += 1
        y = shared * 2
        array[:] = 0
        return [*seen, y.sum().item()]

    g = torch.compile(f)
    assert [g() for _ in range(5)] == [[40.0, 160.0]] * 5


def test_nothing_stays_alive():
    class Batch:
        def __init__(self, x):
            self.x = x

    f = torch.compile(lambda b: (b.x * 2).sin())
    refs = []
    for _ in range(6):
        batch = Batch(torch.randn(1000))
        y = f(batch)
        refs += [weakref.ref(batch), weakref.ref(batch.x), weakref.ref(y)]
        del batch, y
    gc.collect()
    assert [r() for r in refs] == [None] * 18


def test_hooks_run_once_in_each_backward():
    calls = []
    net = nn.Linear(4, 4)
    net.weight.register_hook(lambda g: calls.append(float(g.sum())))
    net.register_full_backward_hook(lambda *a: calls.append("module"))
    step = torch.compile(lambda x: net(x).sum().backward())
    for _ in range(5):
        step(torch.ones(2, 4))
    assert calls == ["module", 8.0 * 4] * 5 or calls == [8.0 * 4, "module"] * 5


def test_second_derivatives():
    def f(x):
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return g

    c = torch.compile(f)
    for _ in range(4):
        x = torch.randn(30, requires_grad=True)
        c(x).sum().backward()
        assert torch.allclose(x.grad, 6 * x)


def test_compiled_module_hands_attributes_on():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    c = torch.compile(net)
    c.note, c[0].bias.requires_grad = 3, False
    assert net.note == 3 and len(c) == 2 and "note" in dir(c) and [*c] == [*net]
    del c.note
    assert not hasattr(net, "note")
    c.extra = nn.Linear(3, 3)
    assert [n for n, _ in net.named_children()] == ["0", "1", "extra"]
    c.eval()
    assert not net.training and not net[0].training and not c.training
    c.training = True
    assert net.training
    assert list(c.state_dict())[0] == "_orig_mod.0.weight"
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert type(other) is type(c) and other._orig_mod is not net
        assert same(other(torch.ones(1, 2)), c(torch.ones(1, 2)))


@torch.compile
def tripled(x):
    return 3 * x


def test_compiled_functions_are_pickled_as_functions_are():
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    other = pickle.loads(pickle.dumps(torch.compile(torch.neg)))
    assert same(other(torch.ones(2)), -torch.ones(2)) and type(other) is type(tripled)
    assert copy.deepcopy(tripled)(torch.ones(1)) == 3


def test_ctrl_c_ends_a_compiled_loop_and_leaves_tensors_whole():
    program = textwrap.dedent("""
        import os, signal, threading
        import pytensorlib as torch

        # A process in the background may ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        w = torch.zeros(1000)

        @torch.compile
        def step():
            return w.add_(1)

        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        n = 0
        try:
            while True:
                step()
                n += 1
        except KeyboardInterrupt:
            pass
        assert w.unique().numel() == 1 and n <= w[0].item() <= n + 1
        print("whole")
    """)
    done = child.python("-c", program)
    assert done.stdout == "whole\n", done.stderr


def test_module_compiles_in_place_and_gives_the_same_results() -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
    x = torch.randn(5, 3)
    want = [net(x * i) for i in range(5)]
    assert net.compile() is None
    assert all(torch.equal(net(x * i), y) for i, y in enumerate(want))
    assert net._compiled_call_impl.counts["runs"] > 0
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
print(step.counts["runs"] > 0)
"""


def test_compiled_step_runs_together_in_a_script_that_imports_torch() -> None:
    told = child.run_as_torch(STEP, "-W", "error")
    assert told == "True\n"


def test_transforms_go_on_after_a_compiled_call_and_around_one():
    net = nn.Linear(4, 3)
    state = {name: p.detach() for name, p in net.named_parameters()}
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))

    def loss(state, x, y):
        out = torch.func.functional_call(net, state, (x[None],))
        return nn.functional.cross_entropy(out, y[None])

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    want = [torch.func.grad(loss)(state, a, b) for a, b in zip(x, y, strict=True)]
    compiled = torch.compile(each)
    inner = torch.vmap(torch.func.grad(torch.compile(loss)), in_dims=(None, 0, 0))
    for f in (compiled, compiled, compiled, each, inner, inner, each):
        found = f(state, x, y)
        for name in state:
            torch.testing.assert_close(found[name], torch.stack([w[name] for w in want]))
    slope = torch.compile(lambda v: (v.sin() * v).exp())
    for f in (slope, slope, slope):
        value, tangent = torch.func.jvp(f, (x,), (torch.ones_like(x),))
        d = (x.cos() * x + x.sin()) * (x.sin() * x).exp()
        torch.testing.assert_close(tangent, d)
        torch.testing.assert_close(f(x), value)
