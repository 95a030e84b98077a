"""Results live where their input does, also those of ops without a GPU kernel, and bad input is
refused by the class of error that the CPU raises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import child
import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "wgpu: .* runs on the CPU")
        yield


def leaves(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in leaves(v)]


X = torch.tensor([[0.5, -1.0, 2.0], [2.0, 7.0, -1.0]])
N = torch.tensor([3, 0, 3, 5])
Z = torch.tensor([1 + 2j, 3 - 4j])
HOSTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "quantile": (lambda x: torch.quantile(x, 0.3, dim=1), (X,)),
    "quantile_many": (torch.quantile, (X, torch.tensor([0.25, 0.5]))),
    "nanquantile": (lambda x: torch.nanquantile(x, 0.3, dim=0, interpolation="midpoint"), (X,)),
    "put": (lambda x, i: x.put(i, x.reshape(-1)[:4]), (X, N)),
    "histc": (lambda x: torch.histc(x, 4, -2, 8), (X,)),
    "histogram": (lambda x: torch.histogram(x, 4), (X,)),
    "bincount": (lambda n: (torch.bincount(n), torch.bincount(n, n.float(), 9)), (N,)),
    "unique": (lambda n: n.unique(return_inverse=True, return_counts=True), (N,)),
    "unique_unsorted": (lambda n: torch.unique(n, sorted=False, return_inverse=True), (N,)),
    "unique_dim": (lambda x: x.unique(return_inverse=True, return_counts=True, dim=1), (X,)),
    "searchsorted": (lambda n: torch.searchsorted(n.sort().values, 4), (N,)),
    "unravel_index": (lambda n: torch.unravel_index(n, (3, 2)), (N,)),
    "pinv": (lambda x: torch.linalg.pinv(x, rtol=1e-3, atol=1e-3), (X,)),
    "matrix_rank": (lambda x: torch.linalg.matrix_rank(x, rtol=1e-3, atol=1e-3), (X,)),
    "scatter_mean": (lambda n: n.scatter_reduce(0, n // 2, n, "mean"), (N,)),
    "addmm_huge": (lambda n: torch.addmm(n, n, n, alpha=2**53 + 1, beta=-3), (N.reshape(2, 2),)),
    "to_complex": (lambda x: x.to(torch.complex64), (X,)),
    "of_complex": (lambda z: (z.abs(), z.to(torch.complex128), z * z + 1), (Z,)),
    "fill_complex": (lambda z: (torch.zeros_like(z), torch.full_like(z, 2)), (Z,)),
    "assign_complex": (lambda z: z.clone().fill_(3).add_(z), (Z,)),
}


@pytest.mark.parametrize("name", HOSTED)
def test_result_of_an_op_on_the_host_lives_with_its_input(name: str) -> None:
    f, args = HOSTED[name]
    want, got = leaves(f(*args)), leaves(f(*[a.to("wgpu") for a in args]))
    for g, w in zip(got, want, strict=True):
        assert g.device.type == "wgpu"
        torch.testing.assert_close(g.cpu(), w)


def test_printing_indexing_and_numbers_read_the_gpu() -> None:
    x = X.to("wgpu")
    assert str(x) == str(X)[:-1] + ", device='wgpu:0')"
    assert x[1, 1].item() == 7 and float(x[0, 0]) == 0.5 and bool(x[0, 1] < 0)
    assert x.tolist() == X.tolist() and len(x) == 2 and [r.tolist() for r in x] == X.tolist()
    for index in (lambda x: x > 0, lambda x: (0, x[0] > 0), lambda x: (..., 1), lambda x: [1, 0]):
        assert torch.equal(x[index(x)].cpu(), X[index(X)])
    y = x.clone()
    y[y < 0] = 0
    y[:, 1] += torch.tensor([1.0, 2.0], device="wgpu")
    want = X.clone()
    want[want < 0] = 0
    want[:, 1] += torch.tensor([1.0, 2.0])
    assert torch.equal(y.cpu(), want)


def test_numpy_of_a_gpu_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="can't convert wgpu:0 device type tensor to numpy"):
        X.to("wgpu").numpy()


BAD: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "shapes": (RuntimeError, lambda x: x + x[:, :2]),
    "matmul": (RuntimeError, lambda x: x @ x),
    "dim": (IndexError, lambda x: x.sum(2)),
    "index": (IndexError, lambda x: x[2]),
    "mask": (IndexError, lambda x: x[x[:1] > 0]),
    "float_index": (IndexError, lambda x: x[x]),
    "cat": (RuntimeError, lambda x: torch.cat([x, x[:, :2]])),
    "devices": (RuntimeError, lambda x: x + x.cpu()),
    "module_devices": (RuntimeError, lambda x: nn.Linear(3, 2)(x)),
    "loss_target": (RuntimeError, lambda x: F.nll_loss(x, torch.zeros(2, device=x.device))),
    "bool_minus": (RuntimeError, lambda x: (x > 0) - (x > 0)),
    "empty_max": (RuntimeError, lambda x: x[:0].max()),
    "item": (RuntimeError, lambda x: x.item()),
    "truth": (RuntimeError, lambda x: bool(x)),
    "in_place_leaf": (RuntimeError, lambda x: x.clone().requires_grad_().add_(1)),
}


@pytest.mark.parametrize("name", BAD)
def test_error_on_the_gpu_is_of_the_class_that_the_cpu_raises(name: str) -> None:
    kind, f = BAD[name]
    with pytest.raises(kind) as got:
        f(X.to("wgpu"))
    assert got.type is kind
    if "devices" not in name:
        with pytest.raises(kind):
            f(X)


TWO = """
import os, sys
os.environ["PYTENSORLIB_ADAPTER"] = sys.argv[1] + "," + sys.argv[1]
import pytensorlib as torch
n = torch.wgpu.device_count()
last = torch.device("wgpu", n - 1)
a, b = torch.arange(6.0, device="wgpu"), torch.arange(6.0, device=last)
assert n >= 2 and a.device == torch.device("wgpu:0") and b.device == last != a.device
assert str(b[:1]) == f"tensor([0.], device='{last}')"
assert b.to("wgpu").device == a.device and torch.equal((b.to("wgpu") + a).cpu(), 2 * b.cpu())
a.copy_(b.reshape(2, 3).t().reshape(6) * 2)
assert a.tolist() == [0, 6, 2, 8, 4, 10]
x = torch.ones(3, device=last, requires_grad=True)
(x @ x + x.softmax(0).sum()).backward()
assert x.grad.device == last and torch.ones_like(x).device == last
linear = torch.nn.Linear(3, 2, device=last)
linear(x).sum().backward()
step = torch.optim.Adam(linear.parameters())
step.step()
assert step.state[linear.weight]["exp_avg"].device == last
held = torch.wgpu.memory_allocated(last)
c = torch.zeros(1 << 16, device=last)
assert torch.wgpu.memory_allocated(last) == held + (1 << 18)
assert torch.wgpu.memory_stats(last)["dispatches"] > 0
for f in (lambda: a + b, lambda: torch.cat([a, b]), lambda: torch.add(a, 1, out=b), lambda: b @ a):
    try:
        f()
    except RuntimeError as e:
        assert "wgpu:0" in str(e) and str(last) in str(e), e
    else:
        raise AssertionError("operands on two devices")
torch.set_default_device(last)
assert torch.zeros(1).device == last == torch.get_default_device()
torch.set_default_device(None)

# The current device is what "wgpu" means, on this thread; so it is for `torch.cuda.set_device`.
import threading
torch.accelerator.set_device_index(n - 1)
here = torch.accelerator.current_accelerator()
assert torch.ones(2, device="wgpu").device == last == torch.ones(2).to(here).device
assert torch.wgpu.memory_allocated() == torch.wgpu.memory_allocated(last)
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="wgpu").device))
thread.start()
thread.join()
assert seen == [torch.device("wgpu:0")]
made = torch.compile(lambda: torch.ones(2, device="wgpu") * 2)
assert all(made().device == last for _ in range(4))
with torch.accelerator.device_index(0):
    assert torch.ones(2, device="wgpu").device == made().device == torch.device("wgpu:0")
assert torch.ones(2, device="wgpu").device == made().device == last
try:
    torch.accelerator.set_device_index(n)
except RuntimeError:
    assert torch.accelerator.current_device_index() == n - 1
"""


def test_a_second_adapter_is_a_device_of_its_own() -> None:
    # The same adapter opened twice, in a process of its own.
    done = child.python("-c", TWO, wgpu.get_device_name())
    assert done.returncode == 0, done.stderr


PARALLEL = """
import copy, os, sys
os.environ["PYTENSORLIB_ADAPTER"] = sys.argv[1] + "," + sys.argv[1]
import pytensorlib as torch
from pytensorlib import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3))

class Halves(nn.Module):  # what two devices do, on one
    def __init__(self, net):
        super().__init__()
        self.net = net
    def forward(self, x):
        return torch.cat([self.net(half) for half in x.chunk(2)])

def trained(wrap, device):
    own = copy.deepcopy(net).to(device)
    model = wrap(own)
    optimizer = torch.optim.SGD(own.parameters(), lr=0.05, momentum=0.9)
    numbers = torch.Generator().manual_seed(1)
    for _ in range(4):
        x = torch.randn(10, 1, 8, 8, generator=numbers).to(device)
        y = torch.randint(0, 3, (10,), generator=numbers).to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, [p.detach().cpu() for p in own.parameters()]

_, expected = trained(Halves, "cpu")
before = torch.wgpu.memory_stats("wgpu:1")["dispatches"]
model, found = trained(nn.DataParallel, "wgpu:0")
assert len(model.device_ids) == 2
assert torch.wgpu.memory_stats("wgpu:1")["dispatches"] > before + 20
for p, q in zip(found, expected):
    torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
"""


def test_data_parallel_trains_on_two_adapters() -> None:
    name = wgpu.get_device_name().partition(",")[0]  # a comma would begin another name
    done = child.python("-c", PARALLEL, name)
    assert done.returncode == 0, done.stderr


def test_a_device_that_is_not_there_raises() -> None:
    n = wgpu.device_count()
    missing = torch.device("wgpu", n)
    assert repr(missing) == f"device(type='wgpu', index={n})" and str(missing) == f"wgpu:{n}"
    for f in (lambda: torch.zeros(1, device=missing), lambda: X.to(missing)):
        with pytest.raises(RuntimeError, match=f"invalid device ordinal: there is no wgpu:{n}"):
            f()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        wgpu.synchronize(missing)
    with pytest.raises(ValueError, match="Expected a wgpu device"):
        wgpu.memory_stats("cpu")
    with pytest.raises(RuntimeError, match="Invalid device string: 'wgpu:300'"):
        torch.device("wgpu:300")
