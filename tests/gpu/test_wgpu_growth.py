"""No operator on the GPU takes more than 20 times as long as a sort of as many elements as it reads
or writes, whichever are more: what grows with the square of its input is found here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib import wgpu

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter"),
]

N = 20_000
LIMIT = 20.0
SIDE = 141  # of a square matrix of as many elements

# What may take longer on software Vulkan, up to which ratio, and why. The sort is many short
# dispatches and takes several times as long on a busy machine, where the ratios fall: up to 4.3 was
# seen there for steps, 31 (svd) to 81 (eigh) for sweeps.
STEPS = "n^1.5 operations, column after column in one workgroup"
SWEEPS = "sweeps of rotations, n^1.5 operations each, in one workgroup"
EXCEPTIONS: dict[str, tuple[float, str]] = {
    **dict.fromkeys(("cholesky", "lu_factor", "lu", "inv", "det", "solve", "qr"), (40.0, STEPS)),
    **dict.fromkeys(("eigh", "eigvalsh", "svd", "svdvals"), (150.0, SWEEPS)),
}


def places(high: int = N) -> Any:
    return torch.randint(0, high, (N,), device="wgpu")


def line() -> Any:
    return torch.randn(N, device="wgpu")


def square() -> Any:
    return torch.randn(SIDE, SIDE, device="wgpu") + 20 * torch.eye(SIDE, device="wgpu")


def symmetric() -> Any:
    a = square()
    return a @ a.t()


# A name, what it takes, and the call.
CALLS: dict[str, tuple[Callable[[], tuple[Any, ...]], Callable[..., Any]]] = {
    "add": (lambda: (line(), line()), torch.add),
    "exp": (lambda: (line(),), torch.exp),
    "lgamma": (lambda: (line(),), torch.lgamma),
    "sum": (lambda: (line(),), torch.sum),
    "var": (lambda: (line(),), torch.var),
    "prod": (lambda: (line(),), torch.prod),
    "logsumexp": (lambda: (line(),), lambda x: x.logsumexp(0)),
    "softmax": (lambda: (line(),), lambda x: x.softmax(0)),
    "layer_norm": (lambda: (line(),), lambda x: F.layer_norm(x, (N,))),
    "cumsum": (lambda: (line(),), lambda x: x.cumsum(0)),
    "cumprod": (lambda: (line(),), lambda x: x.cumprod(0)),
    "cummax": (lambda: (line(),), lambda x: x.cummax(0)),
    "logcumsumexp": (lambda: (line(),), lambda x: x.logcumsumexp(0)),
    "argsort": (lambda: (line(),), torch.argsort),
    "topk": (lambda: (line(),), lambda x: x.topk(100)),
    "kthvalue": (lambda: (line(),), lambda x: x.kthvalue(N // 3)),
    "median": (lambda: (line(),), torch.median),
    "mode": (lambda: (places(),), torch.mode),
    "unique": (lambda: (places(),), torch.unique),
    "quantile": (lambda: (line(),), lambda x: x.quantile(0.3)),
    "histc": (lambda: (line(),), torch.histc),
    "bincount": (lambda: (places(),), torch.bincount),
    "bucketize": (lambda: (line(), line().sort()[0]), torch.bucketize),
    "isin": (lambda: (places(), places()), torch.isin),
    "gather": (lambda: (line(), places()), lambda x, i: x.gather(0, i)),
    "scatter": (lambda: (line(), places(), line()), lambda x, i, v: x.scatter(0, i, v)),
    "scatter_add": (lambda: (line(), places(), line()), lambda x, i, v: x.scatter_add(0, i, v)),
    "scatter_add to one place": (
        lambda: (line(), places(1), line()),
        lambda x, i, v: x.scatter_add(0, i, v),
    ),
    "index_add": (lambda: (line(), places(), line()), lambda x, i, v: x.index_add(0, i, v)),
    "index_put": (
        lambda: (line(), places(), line()),
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
    ),
    "masked_select": (lambda: (line(), line()), lambda x, y: x[y > 0]),
    "nonzero": (lambda: (places(2),), torch.nonzero),
    "embedding": (lambda: (places(), line().view(N, 1)), F.embedding),
    "roll": (lambda: (line(),), lambda x: x.roll(7)),
    "flip": (lambda: (line(),), lambda x: x.flip(0)),
    "diff": (lambda: (line(),), torch.diff),
    "dot": (lambda: (line(), line()), torch.dot),
    "matmul": (lambda: (square(), square()), torch.matmul),
    "cov": (lambda: (line().view(2, -1),), torch.cov),
    "corrcoef": (lambda: (line().view(2, -1),), torch.corrcoef),
    "diagflat": (lambda: (line()[:2000],), torch.diagflat),
    "combinations": (lambda: (line()[:200],), torch.combinations),
    "cross_entropy": (
        lambda: (line().view(-1, 10), places(10)[: N // 10]),
        F.cross_entropy,
    ),
    "conv1d": (lambda: (line().view(1, 1, N), line()[:9].view(1, 1, 9)), F.conv1d),
    "conv_transpose1d": (
        lambda: (line().view(1, 1, N), line()[:9].view(1, 1, 9)),
        F.conv_transpose1d,
    ),
    "max_pool1d": (lambda: (line().view(1, 1, N),), lambda x: F.max_pool1d(x, 9)),
    "interpolate": (lambda: (line().view(1, 1, N),), lambda x: F.interpolate(x, scale_factor=2)),
    "cholesky": (lambda: (symmetric(),), torch.linalg.cholesky),
    "lu_factor": (lambda: (square(),), torch.linalg.lu_factor),
    "lu": (lambda: (square(),), torch.linalg.lu),
    "inv": (lambda: (square(),), torch.linalg.inv),
    "det": (lambda: (square(),), torch.linalg.det),
    "solve": (lambda: (square(), square()), torch.linalg.solve),
    "qr": (lambda: (square(),), torch.linalg.qr),
    "eigh": (lambda: (symmetric(),), torch.linalg.eigh),
    "eigvalsh": (lambda: (symmetric(),), torch.linalg.eigvalsh),
    "svd": (lambda: (square(),), torch.linalg.svd),
    "svdvals": (lambda: (square(),), torch.linalg.svdvals),
}


def elements(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (tuple, list)):
        return sum(map(elements, value))
    return 0


def seconds(call: Callable[[], Any]) -> float:
    wgpu.synchronize()
    start = time.perf_counter()
    call()
    wgpu.synchronize()
    return time.perf_counter() - start


def ratio(name: str) -> float:
    """Return the least time of a call by the least of a sort, the two in turn."""
    make, function = CALLS[name]
    torch.manual_seed(0)
    args = make()
    result = function(*args)  # Shaders are compiled in the first call.
    keys = torch.randn(max(elements(args), elements(result)), device="wgpu")
    keys.sort()
    calls: list[Callable[[], Any]] = [lambda: function(*args), keys.sort]
    best = [float("inf"), float("inf")]
    for _ in range(4):
        for i, call in enumerate(calls):
            best[i] = min(best[i], seconds(call))
        if best[0] < LIMIT / 4 * best[1]:
            break  # Far from it.
    return best[0] / best[1]


def test_no_operator_takes_twenty_times_as_long_as_a_sort() -> None:
    assert set(EXCEPTIONS) <= set(CALLS)
    # On the CPU a call would keep to any rule of the GPU's.
    wgpu.set_fallback_error(True)
    try:
        found = {name: ratio(name) for name in CALLS}
    finally:
        wgpu.set_fallback_error(False)
    limits = {name: EXCEPTIONS.get(name, (LIMIT, ""))[0] for name in CALLS}
    over = {name: round(r, 1) for name, r in found.items() if r > limits[name]}
    assert not over, f"times a sort of as many elements: {over}"
