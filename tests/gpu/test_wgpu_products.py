"""Products of matrices larger than a binding take a kernel for each pair of windows."""

from __future__ import annotations

import json

import pytest
from child import run
from test_wgpu_cuts import PROGRAM, TELL

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

LIMIT = 65536
LIMITS = {
    "binding": {"PYTENSORLIB_WGPU_MAX_BINDING": str(LIMIT)},
    "buffer": {"PYTENSORLIB_WGPU_MAX_BUFFER": str(LIMIT)},
    # Buffers end within rows, and bindings before them.
    "seams": {"PYTENSORLIB_WGPU_MAX_BUFFER": "73000", "PYTENSORLIB_WGPU_MAX_BINDING": str(LIMIT)},
}
ERROR = {"PYTENSORLIB_WGPU_FALLBACK": "error"}

# Sides of square float32 matrices, which have 1, 2, 4, 5.5, 9 and 16 times the limit.
SIDES = (128, 181, 256, 300, 384, 512)
COUNTS = """
    import json
    import pytensorlib as torch
    import pytensorlib.nn.functional as F

    def count(f):
        before = torch.wgpu.memory_stats()["dispatches"]
        y = f()
        n = torch.wgpu.memory_stats()["dispatches"] - before
        return n, y

    found = {}
    for n in SIDES:
        torch.manual_seed(0)
        a, b = torch.randn(2, n, n, device="cpu").unbind()
        x, w = a.clone().to("wgpu"), b.clone().to("wgpu")
        bias = torch.zeros(n, device="wgpu", requires_grad=True)
        calls = {
            "plain": (lambda: x @ w, a @ b),
            "a transposed": (lambda: x.t() @ w, a.t() @ b),
            "b transposed": (lambda: x @ w.t(), a @ b.t()),
            "both transposed": (lambda: x.t() @ w.t(), a.t() @ b.t()),
            "added": (lambda: torch.addmm(w, x, w), b + a @ b),
            "half": (lambda: x.half() @ w.half(), (a.half().double() @ b.half().double())),
        }
        counts = {}
        for name, (f, want) in calls.items():
            counts[name], y = count(f)
            error = (y.cpu().double() - want.double()).abs().max() / want.abs().max()
            assert error < (1e-3 if name == "half" else 1e-5), (n, name, error)
        x.requires_grad_(), w.requires_grad_()
        counts["linear"], y = count(lambda: F.linear(x, w, bias))
        g = a.to("wgpu")
        counts["linear backward"], _ = count(lambda: y.backward(g))
        for got, want in ((x.grad, a @ b), (w.grad, a.t() @ a), (bias.grad, a.sum(0))):
            assert (got.cpu() - want).abs().max() / want.abs().max() < 1e-5, n
        found[n] = counts
    print(json.dumps(found))
"""


# Buffers that end within rows are the harder case; the others take half a minute and more.
SLOW = pytest.mark.slow


@pytest.fixture(scope="module", params=[pytest.param("binding", marks=SLOW), "buffer"])
def counts(request: pytest.FixtureRequest) -> tuple[str, dict[int, dict[str, int]]]:
    text = run(f"    SIDES = {SIDES}\n" + COUNTS, **LIMITS[request.param], **ERROR)
    return request.param, {int(n): found for n, found in json.loads(text).items()}


def windows(n: int) -> int:
    """Return how many windows of whole rows a square matrix has."""
    return -(-n // (LIMIT // (4 * n)))


def test_a_product_is_a_kernel_for_each_pair_of_windows(
    counts: tuple[str, dict[int, dict[str, int]]],
) -> None:
    which, found = counts
    for n, of in found.items():
        w = windows(n)
        # Where rows fill windows nothing is copied.
        if which == "binding" or LIMIT % (4 * n) == 0:
            assert of["plain"] <= w * w, (n, of)
        assert of["plain"] <= w * w + 6 * (w - 1), (n, of)


def test_products_of_any_layout_take_few_kernels_for_each_pair(
    counts: tuple[str, dict[int, dict[str, int]]],
) -> None:
    _, found = counts
    for n, of in found.items():
        # Casts to half types, and sums for the bias, are a few more for each window.
        w = windows(n)
        for name in ("a transposed", "b transposed", "added", "linear"):
            assert of[name] <= max(3 * w * w, 2), (n, name, of)
        # Windows of either are apart: gathered, multiplied in two parts, put in their place.
        assert of["both transposed"] <= max(4 * w * w, 2), (n, of)
        assert of["half"] <= 3 * w * w + 6 * w, (n, of)
        assert of["linear backward"] <= 2 * 4 * w * w + 6 * w, (n, of)


LAYOUTS = """
    for n in (181, 256):
        for m, k in ((n, n), (40, 3 * n), (3 * n, 40)):
            check("a b", lambda a, b: a @ b, (m, n), (n, k))
            check("a' b", lambda a, b: a.t() @ b, (n, m), (n, k))
            check("a b'", lambda a, b: a @ b.t(), (m, n), (k, n))
            check("a' b'", lambda a, b: a.t() @ b.t(), (n, m), (k, n))
    check("apart", lambda a, b: a[::2, 1::2] @ b[1::2, ::3], (400, 300), (300, 500))
    check("linear", F.linear, (300, 200), (400, 200), (400,), **loose)
    check("linear of a batch", F.linear, (7, 50, 200), (400, 200), (400,), **loose)
    check("linear of turned rows", lambda x, w, b: F.linear(x.transpose(0, 1), w, b),
          (50, 7, 200), (400, 200), (400,), **loose)
    check("addmm", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (200, 150), (200, 160),
          (160, 150))
    check("a column", lambda c, a, b: torch.addmm(c, a, b), (200, 1), (200, 160), (160, 150))
    check("turned", lambda c, a, b: torch.addmm(c.t(), a, b), (150, 200), (200, 160), (160, 150))
    check("dot", torch.dot, (50_000,), (50_000,), **loose)
    check("mv", torch.mv, (300, 200), (200,))
    check("mv of columns", lambda a, v: a.t() @ v, (300, 200), (300,))
    check("vector", lambda v, a: v @ a, (300,), (300, 200))
    check("outer", torch.outer, (300,), (200,))
    check("deep", lambda a, b: a @ b, (128, 20_000), (20_000, 128), tolerance=1e-3)
    check("deep rows", lambda a, b: a @ b, (2, 40_000), (40_000, 3), tolerance=1e-3)
    nothing = torch.zeros(300, 0)
    check("no depth", lambda a: a.detach() @ a.detach().t(), nothing)
"""
BATCHES = """
    check("bmm", torch.bmm, (20, 40, 50), (20, 50, 60))
    check("matrices larger than a binding", torch.bmm, (3, 150, 160), (3, 160, 170))
    check("turned", lambda a, b: a.mT @ b.mT, (3, 160, 150), (3, 170, 160))
    check("b of all", lambda a, b: a @ b, (4, 90, 200), (200, 150))
    check("a of all", lambda a, b: a @ b, (200, 150), (6, 150, 40))
    check("b' of all", lambda a, b: a.mT @ b.t(), (4, 200, 90), (150, 200))
    check("two batches", lambda a, b: a @ b, (3, 1, 60, 70), (4, 70, 80))
    check("two batches of large ones", lambda a, b: a @ b, (2, 1, 150, 160), (2, 160, 130))
    check("vectors of a batch", lambda a, b: a @ b, (6, 60, 70), (70,))
    check("baddbmm", torch.baddbmm, (6, 60, 80), (6, 60, 70), (6, 70, 80))
    check("one row for all", torch.baddbmm, (80,), (6, 60, 70), (6, 70, 80))
    check("addbmm", torch.addbmm, (60, 80), (9, 60, 70), (9, 70, 80))
    check("large sums", torch.addbmm, (150, 160), (3, 150, 140), (3, 140, 160), tolerance=1e-4)
    check("b expanded", lambda a, b: torch.bmm(a, b.expand(5, -1, -1)), (5, 90, 200), (200, 150))
    check("a expanded", lambda a, b: torch.bmm(a.expand(5, -1, -1), b), (150, 200), (5, 200, 90))
    check("both expanded", lambda a, b: torch.bmm(a.expand(5, -1, -1), b.expand(5, -1, -1)),
          (150, 100), (100, 160))
    check("a' expanded", lambda a, b: a.mT.expand(5, -1, -1) @ b, (200, 150), (5, 200, 90))
    # Gradients that repeat elements: one number, one row, or the matrices of a batch. Of sums of
    # up to 60,000 products most cancel.
    sums = {"tolerance": 2e-3}
    for shape in ((5, 60, 200), (300, 200)):
        for total in (lambda y: y.sum(), lambda y: y.sum(-1).sum(), lambda y: y.sum(0)[0].sum()):
            check("one gradient", lambda x, w, b: total(F.linear(x, w, b)), shape, (150, 200),
                  (150,), **sums)
        check("rows", lambda x, w: F.linear(x, w).sum(0), shape, (150, 200), **sums)
        check("columns", lambda x, w: F.linear(x, w).sum(-1), shape, (150, 200), **sums)
    check("a row of all", lambda x, w: (x.expand(50, -1) @ w).sum(1), (300,), (300, 200), **sums)
    check("matrices of all", lambda x, w: F.linear(x.expand(6, -1, -1), w).sum(0), (60, 200),
          (150, 200), **sums)
    check("a batch of all", lambda x, w: (x.expand(6, -1, -1) @ w).sum(0), (60, 300),
          (300, 200), **sums)
"""
TYPES = """
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 1.6e-2)):
        for n, m, k in ((300, 200, 250), (40, 900, 128), (256, 256, 256)):
            a, b, c = [torch.randn(s).div(4).to(dtype) for s in ((n, m), (m, k), (k,))]
            near = {"tolerance": tolerance}
            check("half", lambda a, b: a @ b, a, b, **near)
            check("half, transposed", lambda a, b: a.t() @ b.t(), a.t().clone(), b.t().clone(),
                  **near)
            check("half and a row", lambda a, b, c: torch.addmm(c, a, b), a, b, c, **near)
            check("half linear", F.linear, a, b.t().clone(), c, **near)
        check("half batches", torch.bmm, torch.randn(9, 70, 80).to(dtype),
              torch.randn(9, 80, 60).to(dtype) / 9, **near)
    exact = {"tolerance": 0}
    whole = lambda *shape: torch.randint(-(1 << 20), 1 << 20, shape)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8):
        a, b = whole(200, 90).to(dtype), whole(90, 210).to(dtype)
        check("integers", lambda a, b: a @ b, a, b, **exact)
        check("integers, transposed", lambda a, b: a.t() @ b.t(), a.t().clone(), b.t().clone(),
              **exact)
        check("an integer matrix", lambda a, b: torch.addmm(a[:, :1], a, b, alpha=3), a, b, **exact)
    check("double", lambda a, b: a @ b, torch.randn(150, 90).double(),
          torch.randn(90, 160).double(), tolerance=1e-12)
    parts = lambda *shape: torch.randn(*shape, 2)
    turn = torch.view_as_complex
    check("complex", lambda a, b: torch.view_as_real(turn(a) @ turn(b)), parts(100, 110),
          parts(110, 120))
    check("complex, transposed", lambda a, b: torch.view_as_real(turn(a).mH @ turn(b).t()),
          parts(110, 100), parts(120, 110))
"""
OUT = """
    a, b = torch.randn(300, 200), torch.randn(200, 250)
    x, w = a.to("wgpu"), b.to("wgpu")
    places = {
        "rows": lambda: torch.zeros(300, 250, device="wgpu"),
        "columns": lambda: torch.zeros(250, 300, device="wgpu").t(),
        "within": lambda: torch.zeros(700, 300, device="wgpu")[3:603:2, 20:270],
    }
    for name, place in places.items():
        y = place()
        torch.mm(x, w, out=y)
        assert (y.cpu() - a @ b).abs().max() < 1e-3, name
        torch.addmm(y, x, w, beta=0.5, out=y)
        assert (y.cpu() - 1.5 * (a @ b)).abs().max() < 1e-3, name
        y.addmm_(x, w, alpha=-1.5)
        assert y.abs().max() < 1e-3, name
        names.append(name)
    square = torch.randn(200, 200)
    y = square.to("wgpu")
    torch.mm(y, y, out=y)
    assert (y.cpu() - square @ square).abs().max() < 1e-3
    names.append("its own factor")
    again = [(x @ w).cpu() for _ in range(2)]
    assert torch.equal(*again)
    names.append("again")
"""


@pytest.mark.parametrize(
    "limits", [pytest.param("binding", marks=SLOW), pytest.param("buffer", marks=SLOW), "seams"]
)
@pytest.mark.parametrize(("calls", "count"), [(LAYOUTS, 39), (BATCHES, 30), (TYPES, 41), (OUT, 5)])
def test_products_of_windows_equal_the_cpu(limits: str, calls: str, count: int) -> None:
    text = PROGRAM + '    loose = {"tolerance": 1e-4}\n' + calls + TELL
    assert run(text, **LIMITS[limits], **ERROR) == f"{count}\n"
