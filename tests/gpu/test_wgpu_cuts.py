"""Work on tensors larger than a binding is cut: the same as on the CPU, with no kernel there."""

from __future__ import annotations

from pathlib import Path

import pytest
from child import run
from test_wgpu_runtime import HOSTED, every_operator

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

# Bindings of 64 KiB, which 300 x 100 float32 exceed.
SMALL = {"PYTENSORLIB_WGPU_MAX_BINDING": "65536", "PYTENSORLIB_WGPU_FALLBACK": "error"}

# What each call is given: shapes of normal numbers, ("below", n, shape) of integers, or a tensor.
PROGRAM = """
    import pytensorlib as torch
    import pytensorlib.nn.functional as F

    torch.manual_seed(0)

    def made(x):
        if isinstance(x, torch.Tensor):
            return x
        return torch.randint(0, x[1], x[2]) if x[0] == "below" else torch.randn(x)

    def results(f, x, device):
        x = [t.clone().to(device).requires_grad_(t.is_floating_point()) for t in x]
        y = f(*x)
        if y.requires_grad:
            line = torch.linspace(-1, 1, y.numel(), device=device)
            (y * line.reshape(y.shape)).sum().backward()
        grads = [t.grad for t in x if t.grad is not None]
        return [t.detach().cpu() for t in (y, *grads)]

    def check(name, f, *x, tolerance=3e-5):
        x = [made(t) for t in x]
        pairs = zip(results(f, x, "cpu"), results(f, x, "wgpu"), strict=True)
        for i, (want, got) in enumerate(pairs):
            assert (want.shape, want.dtype) == (got.shape, got.dtype), (name, i)
            error = ((want.double() - got.double()).abs() / (1 + want.double().abs())).max()
            assert error <= tolerance, (name, i, error)
        names.append(name)

    names = []
    below = lambda n, *shape: ("below", n, shape)
"""
PRODUCTS = """
    check("rows and columns", lambda a, b: a @ b, (200, 150), (150, 180))
    check("transposed", lambda a, b: a.t() @ b.t(), (150, 200), (180, 150))
    check("depth", lambda a, b: a @ b, (3, 20_000), (20_000, 2), tolerance=1e-4)
    check("batch", lambda a, b: a @ b, (20, 30, 40), (20, 40, 50))
    check("broadcast batch", lambda a, b: a @ b, (3, 5, 30, 40), (5, 40, 50))
    check("vector", lambda a, b: a @ b, (500, 100), (100,))
    check("linear", F.linear, (30, 10, 64), (100, 64), (100,))
    check("addmm", lambda c, a, b: torch.addmm(c, a, b, alpha=2), (200, 150), (200, 64), (64, 150))
    check("integers", lambda a, b: a.int() @ b.int(), below(9, 200, 150), below(9, 150, 180))
    attend = F.scaled_dot_product_attention
    qkv = [(2, 8, 64, 16)] * 3
    check("attention", attend, *qkv)
    check("causal attention", lambda q, k, v: attend(q, k, v, is_causal=True), *qkv)
    check("masked attention", attend, *qkv, (1, 8, 64, 64))
    check("a mask by rows", lambda q, k, v, m: attend(q, k, v, m.detach()),
          *[(2, 2, 160, 16)] * 3, (160, 160))
    check("one sample", attend, *[(1, 16, 64, 16)] * 3)
    check("grouped", lambda q, k, v: attend(q, k, v, enable_gqa=True),
          (1, 16, 64, 16), (1, 4, 64, 16), (1, 4, 64, 16))
"""
ROWS = """
    check("softmax", lambda x: x.softmax(-1), (300, 100))
    check("softmax of columns", lambda x: x.softmax(0), (100, 300))
    check("log_softmax", lambda x: x.log_softmax(1), (2, 100, 300))
    norm = {"tolerance": 1e-4}
    check("layer_norm", lambda x, w, b: F.layer_norm(x, (100,), w, b), (1, 300, 100), (100,),
          (100,), **norm)
    check("rms_norm", lambda x, w: F.rms_norm(x, (100,), w), (300, 100), (100,), **norm)
    check("group_norm", lambda x, w, b: F.group_norm(x, 4, w, b), (20, 8, 10, 20), (8,), (8,),
          **norm)
    check("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
          (20, 16, 10, 10), (16,), (16,), **norm)
    check("instance_norm", F.instance_norm, (20, 16, 10, 10), **norm)
    for reduction in ("none", "sum", "mean"):
        loss = {"reduction": reduction}
        check("cross_entropy", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, **loss),
              (300, 100), below(100, 300))
        check("cross_entropy of planes", lambda x, t: F.cross_entropy(x, t, **loss),
              (1, 30, 20, 50), below(30, 1, 20, 50))
        check("nll_loss", lambda x, t: F.nll_loss(x, t, **loss), (300, 100), below(100, 300))
        check("mse_loss", lambda x, t: F.mse_loss(x, t, **loss), (300, 100), (300, 100))
    half = torch.randn(600, 100).bfloat16()
    check("cross_entropy of half", F.cross_entropy, half, below(100, 600), tolerance=1e-2)
    for name in ("sort", "topk", "median", "max", "min", "cummax", "kthvalue"):
        more = {"topk": (5,), "kthvalue": (5,)}.get(name, ())
        check(name, lambda x: getattr(x, name)(*more, dim=1)[0], (300, 100))
    check("sort of columns", lambda x: x.sort(0)[1], (100, 300))
    check("argsort", lambda x: x.argsort(1), (3, 100, 100))
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        check(name, lambda x: getattr(x, name)(-1), torch.rand(300, 100) + 0.5, tolerance=1e-3)
    check("inverse", lambda x: torch.linalg.inv(x + 9 * torch.eye(8, device=x.device)), (300, 8, 8))
"""
PLACES = """
    check("gather", lambda x, i: x.gather(1, i), (300, 100), below(100, 300, 100))
    check("gather of rows", lambda x, i: x.gather(0, i), (300, 100), below(300, 200, 100))
    check("index_select", lambda x, i: x.index_select(0, i), (300, 100), below(300, 500))
    check("index_select of columns", lambda x, i: x.index_select(1, i), (300, 100), below(100, 200))
    check("bytes", lambda x, i: x.to(torch.uint8)[i], below(256, 300, 300), below(300, 500))
    check("index", lambda x, i, j: x[i, :, j], (100, 3, 100), below(100, 500), below(100, 500))
    put = lambda x, i, v: x.index_put((i,), v, accumulate=True)
    check("index_put", put, (300, 100), below(300, 50), (50, 100))
    each = torch.randperm(300)[:250]
    check("index_put of each", lambda x, i, v: x.index_put((i,), v), (300, 100), each, (250, 100))
    check("index_add", lambda x, i, v: x.index_add(0, i, v), (300, 100), below(300, 2500),
          (2500, 100),
          tolerance=1e-4)
    check("scatter_add", lambda x, i, v: x.scatter_add(0, i, v), (300, 100),
          below(300, 50, 100), (50, 100))
    check("embedding", lambda w, i: F.embedding(i, w), (500, 50), below(500, 30, 20))
    check("padding", lambda w, i: F.embedding(i, w, padding_idx=3), (500, 50), below(500, 3000),
          tolerance=1e-4)
    check("flip", lambda x: x.flip(0, 1), (300, 100))
    check("roll", lambda x: x.roll((3, 7), (0, 1)), (300, 100))
    check("roll of all", lambda x: x.roll(3), (300, 100))
    check("cat", lambda a, b: torch.cat([a, b], 1), (300, 60), (300, 40))
    check("tril", lambda x: x.t().tril(), (200, 200))
    check("pad", lambda x: F.pad(x, (1, 2, 3, 4), mode="reflect"), (10, 3, 30, 60))
    check("nine dimensions", lambda x: x.permute(8, 0, 7, 1, 6, 2, 5, 3, 4).contiguous(),
          (3, 2) * 4 + (3,))
    check("sums of nine", lambda x: (x + x.permute(8, 0, 7, 1, 6, 2, 5, 3, 4)).sum((0, 2, 4)),
          (2,) * 9)
    check("sums of many", lambda x: x.permute(*range(9, -1, -1)).sum((0, 9)), (2,) * 10)
"""
IMAGES = """
    more = {"tolerance": 1e-4}
    check("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), (10, 8, 16, 16),
          (12, 8, 3, 3), (12,), **more)
    check("of one tap", F.conv2d, (10, 8, 16, 16), (12, 8, 1, 1), (12,), **more)
    check("one image", lambda x, w, b: F.conv2d(x, w, b, padding=1), (1, 8, 24, 24),
          (40, 8, 3, 3), (40,), **more)
    check("grouped", lambda x, w: F.conv2d(x, w, groups=2), (10, 8, 16, 16), (12, 4, 3, 3), **more)
    check("conv1d", F.conv1d, (40, 8, 64), (12, 8, 3), (12,), **more)
    check("conv3d", F.conv3d, (4, 3, 8, 12, 16), (4, 3, 3, 3, 3), (4,), **more)
    check("transposed", lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2),
          (10, 8, 8, 8), (8, 12, 2, 2), (12,), **more)
    check("max_pool", lambda x: F.max_pool2d(x, 2), (10, 8, 16, 16))
    check("avg_pool", lambda x: F.avg_pool2d(x, 2), (10, 8, 16, 16))
    check("adaptive", lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (10, 8, 16, 16))
    check("bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (10, 8, 16, 16))
    grid = torch.rand(10, 16, 16, 2) * 2 - 1
    check("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False), (10, 4, 16, 16),
          grid,
          tolerance=1e-3)
"""
# Rows of all steps are larger than a binding, or the weights are.
RECURRENT = """
    # Weights' gradients are sums of 1,500 terms: as far from the CPU where nothing is cut.
    more = {"tolerance": 4e-4}
    for name in ("rnn_tanh", "rnn_relu", "gru", "lstm"):
        weights = {"gru": 3, "lstm": 4}.get(name, 1)
        def layer(x, h, *w):
            state = (h, h * 0.5) if name == "lstm" else h
            y, *last = getattr(torch, name)(x, state, w, True, 1, 0.0, True, False, False)
            return y + sum(t.sum() for t in last) * 0.01
        for steps, n, inputs, width in ((70, 5, 30, 40), (500, 3, 10, 20), (3, 70, 50, 90)):
            w = [torch.randn(s) / width**0.5 for s in
                 ((weights * width, inputs), (weights * width, width), (weights * width,),
                  (weights * width,))]
            check(f"{name} {steps}", layer, (steps, n, inputs), (1, n, width), *w, **more)
    w = [torch.randn(s) / 10 for s in ((400, 20), (400, 100), (400,), (400,))]
    check("weights", lambda x, h, *w: torch.lstm(x, (h, h), w, True, 1, 0.0, True, False, False)[0],
          (5, 3, 20), (1, 3, 100), *w, **more)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(200, 9, 30), [200, 200, 150, 99,
                                                     80, 80, 20, 3, 1])
    net = torch.nn.LSTM(30, 20, bidirectional=True)
    def run(device):
        own = torch.nn.LSTM(30, 20, bidirectional=True)
        own.load_state_dict(net.state_dict())
        own = own.to(device)
        y, _ = own(packed.to(device))
        (y.data * torch.linspace(-1, 1, y.data.numel(), device=device).reshape(
            y.data.shape)).sum().backward()
        return [y.data.cpu(), *(p.grad.cpu() for p in own.parameters())]
    for a, b in zip(run("cpu"), run("wgpu"), strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)
    x = torch.ones(300, 200, device="wgpu", requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert abs(y.mean().item() - 1) < 5 * (1 / 3 / 60_000) ** 0.5
    # Every weight is kept, or none is.
    attend = F.scaled_dot_product_attention
    qkv = [(2, 8, 64, 20)] * 3
    check("dropout of images", lambda x: F.dropout2d(x, 1e-12), (10, 8, 16, 20))
    check("dropout of nothing", lambda *x: attend(*x, dropout_p=1e-12), *qkv)
    check("dropout of all", lambda *x: attend(*x, dropout_p=1.0), *qkv)
    q = torch.zeros(2, 8, 64, 20, device="wgpu")
    y = attend(q, q, torch.ones_like(q), dropout_p=0.25)
    # The mean of 65,536 weights, 0 or 4/3 each, by five deviations.
    assert abs(y.mean().item() - 1) < 5 * (1 / 3 / 65_536) ** 0.5
"""
# Each is one line, which no binding has.
LINES = """
    near = {"tolerance": 1e-4}
    for shape, dim in (((40_000,), 0), ((2, 30_000), 1), ((30_000, 2), 0)):
        check("softmax", lambda x: x.softmax(dim), shape)
        check("log_softmax", lambda x: x.log_softmax(dim), shape)
        # The sums of the weights that this is differentiated by reach 10,000.
        check("cumsum", lambda x: x.cumsum(dim), torch.randn(shape).double(), tolerance=1e-9)
    whole = torch.randint(-9, 9, (40_000,))
    check("cumsum of integers", lambda x: x.cumsum(0).flip(0).cumsum(0), whole, tolerance=0)
    near_one = 1 + torch.rand(40_000).double() / 10_000
    check("cumprod", lambda x: x.cumprod(0), near_one, tolerance=1e-9)
    check("cumprod from the end", lambda x: x.flip(0).cumprod(0), near_one, tolerance=1e-9)
    check("logcumsumexp", lambda x: x.detach().logcumsumexp(0), (40_000,), **near)
"""
ORDER = """
    wide = torch.randn(40_000).double()
    check("dropout", lambda x: F.dropout(x, 1e-12), wide)
    check("gradient of logcumsumexp", lambda x: x.logcumsumexp(0), wide, tolerance=1e-9)
    # Equal elements and NaN, in an odd number, so that halves differ.
    steps = torch.randint(-4000, 4000, (20_001,)).float()
    steps[[9000, 15_000]] = float("nan")
    for line in (steps, steps[:9000].int()):
        for k in range(2):
            for name in ("cummax", "cummin"):
                check(name, lambda x: getattr(x.detach(), name)(0)[k].nan_to_num(9e3), line)
            for down in (False, True):
                check("sort", lambda x: x.detach().sort(0, down)[k].nan_to_num(9e3), line)
        check("argsort", lambda x: x.argsort(0, True), line)
        check("topk", lambda x: x.detach().topk(9, 0)[0].nan_to_num(9e3), line)
        check("kthvalue", lambda x: x.detach().kthvalue(7, 0)[0], line)
"""
# Places along a line that no binding has.
ALONG = """
    place = torch.randint(0, 40_000, (30_000,))
    for shape, dim in (((40_000,), 0), ((2, 40_000), 1), ((40_000, 2), 0)):
        index = place.expand(2, -1) if dim else place[:, None].expand(-1, 2)
        index = place if len(shape) == 1 else index
        check("gather", lambda x: x.gather(dim, index.to(x.device)), shape)
        check("sort", lambda x: x.sort(dim)[0], shape)
        for few in (40, 30_000):
            at = index.narrow(dim, 0, few)
            added = lambda x, y: x.scatter_add(dim, at.to(x.device), y)
            check("scatter_add", added, shape, at.shape)
            check("scatter", lambda x: x.scatter(dim, at.to(x.device), 2.5), shape)
        last = lambda x, y: x.detach().scatter(dim, index.to(x.device), y.detach())
        check("scatter, where the last wins", last, shape, index.shape)
    column = lambda x: x[:, 1].scatter_add(0, place.to(x.device), x[:30_000, 0])
    check("scatter_add into a column", column, (40_000, 2))
    whole = torch.arange(40_000)
    check("scatter of integers", lambda x: x.scatter(0, place.to(x.device), 7), whole)

    target = torch.tensor([7, 29_999, 0])
    weight = torch.rand(30_000)
    for reduction in ("none", "sum", "mean"):
        for k in (-100, 7):
            options = {"ignore_index": k, "reduction": reduction}
            loss = lambda x: F.nll_loss(x, target.to(x.device), weight.to(x), **options)
            check("nll_loss", loss, (3, 30_000))
            loss = lambda x: F.cross_entropy(x, target.to(x.device), **options)
            check("cross_entropy", loss, (3, 30_000))
    check("nll_loss of one", lambda x: F.nll_loss(x, target[0].to(x.device)), (30_000,))
    places = lambda x: F.nll_loss(x, target[:, None].expand(3, 2).to(x.device))
    check("nll_loss of places", places, (3, 30_000, 2))
    half = torch.randn(3, 40_000).bfloat16()
    for f in (F.nll_loss, F.cross_entropy):
        check("losses of bfloat16", lambda x: f(x, target.to(x.device)), half, tolerance=1e-2)
    smooth = lambda x: F.cross_entropy(x, target.to(x.device), weight.to(x), label_smoothing=0.1)
    check("smoothed labels", smooth, (3, 30_000))
"""
# What is found in such a line, and written to places of it.
FOUND = """
    line, whole = torch.randn(40_000), torch.randint(-9000, 9000, (40_000,))
    check("nonzero", lambda x: (x > 0).nonzero(), line)
    check("argwhere", lambda x: (x > 0).argwhere(), (200, 200))
    check("masked_select", lambda x: x[x > 0.5], line)
    check("all selected", lambda x: x[x == x], line)
    check("masked_scatter", lambda x, y: x.masked_scatter(x.detach() > 0, y), line, line.flip(0))
    check("unique", lambda x: x.unique(), whole)
    for k in range(3):
        check("unique", lambda x: x.unique(return_inverse=True, return_counts=True)[k], whole)
        again = lambda x: x.unique_consecutive(return_inverse=True, return_counts=True)[k]
        check("unique_consecutive", again, whole // 3000)
    for right in (False, True):
        options = {"right": right}
        edges = line.sort()[0]
        check("searchsorted", lambda e, v: torch.searchsorted(e, v, **options), edges, line)
        few = edges[::1000].clone()
        check("few edges", lambda e, v: torch.searchsorted(e, v, **options), few, line)
        check("few values", lambda e, v: torch.searchsorted(e, v, **options), edges, few)
        lines = torch.randn(3, 20_000).sort(1)[0]
        check("lines", lambda e, v: torch.searchsorted(e, v, **options), lines, lines.flip(0))
        check("bucketize", lambda v, e: torch.bucketize(v, e, **options), whole, whole.sort()[0])
    check("isin", lambda x: torch.isin(x, x[::3] + 5), whole)

    place = torch.randperm(40_000)[:30_000]
    twice = place % 20_000
    for name in ("index_add", "index_copy"):
        call = lambda x, i, v: getattr(x, name)(0, i, v)
        check(name, call, line, twice if name == "index_add" else place, (30_000,))
    check("index_fill", lambda x, i: x.index_fill(0, i, 2.5), line, place)
    check("index_select", lambda x, i: x.index_select(0, i), line, twice)
    check("index", lambda x, i: x[i], line, -1 - twice)
    check("index of two", lambda x, i: x[i // 200, i % 200], (200, 200), place)
    put = lambda x, i, v: x.index_put((i,), v, accumulate=True)
    check("index_put", put, line, twice, (30_000,))
    check("index_put", lambda x, i, v: x.index_put((i,), v), line, place, (30_000,))
    check("index_put of one", lambda x, i, v: x.index_put((i,), v), line, place, torch.randn(()))
    check("put", lambda x, i, v: x.put(i, v), line, place, (30_000,))
    check("take", lambda x, i: x.take(i), line, twice)
"""
# One element of such a line, by its order or by how often it is there.
CHOSEN = """
    line, shapes = torch.randn(40_000), (((40_000,), 0), ((2, 30_000), 1), ((30_000, 2), 0))
    # Equal elements and NaN.
    steps = torch.randint(-4000, 4000, (20_001,)).float()
    steps[[9000, 15_000]] = float("nan")
    whole = torch.randint(0, 500, (40_000,))
    for name in ("argmax", "argmin"):
        for x in (line, steps, whole, torch.randn(200, 300)):
            check(name, lambda x: getattr(x.detach(), name)(), x)
        for shape, dim in shapes:
            check(name, lambda x: getattr(x.detach(), name)(dim, keepdim=True), shape)
    for name in ("max", "min", "median", "nanmedian"):
        for shape, dim in shapes:
            check(name, lambda x: getattr(x, name)(dim)[0], shape)
        for k in range(2):
            chosen = lambda x: getattr(x.detach(), name)(0)[k].nan_to_num(9e3)
            check(name, chosen, steps)
            check(name, chosen, whole)
    for name in ("median", "nanmedian"):
        check(name, lambda x: getattr(x, name)(), steps[:20_000].nan_to_num(3))
        check(name, lambda x: getattr(x.detach(), name)().nan_to_num(9e3), steps)
    for k in range(2):
        for x in (steps, whole, whole.reshape(2, -1)):
            check("mode", lambda x: x.detach().mode(-1)[k], x)
    check("mode", lambda x: x.mode(0)[0], steps.nan_to_num(1))
"""
# Statistics of such a line.
NORMS = """
    near = {"tolerance": 1e-4}
    for n in (1, 2):
        w = [(30_000,)] * 2
        layer = lambda x, w, b: F.layer_norm(x, (30_000,), w, b)
        check("layer_norm", layer, (n, 30_000), *w, **near)
        check("rms_norm", lambda x, w: F.rms_norm(x, (30_000,), w), (n, 30_000), w[0], **near)
    half = torch.randn(2, 40_000).bfloat16()
    # A step of bfloat16 is 2^-8 of a number, and results and gradients are rounded to it.
    check("layer_norm of half", lambda x: F.layer_norm(x, (40_000,)), half, tolerance=2e-2)
    for groups in (1, 4):
        for n in (1, 2):
            group = lambda x, w, b: F.group_norm(x, groups, w, b)
            check("group_norm", group, (n, 8, 5000), (8,), (8,), **near)
    for shape in ((1, 1, 40_000), (3, 2, 20_000), (30_000, 2), (2, 30_000)):
        w = [shape[1:2]] * 2
        batch = lambda x, w, b: F.batch_norm(x, None, None, w, b, True)
        check("batch_norm", batch, shape, *w, **near)
    def kept(x):
        statistics = torch.zeros(1, device=x.device), torch.ones(1, device=x.device)
        F.batch_norm(x, *statistics, None, None, True)
        return torch.cat(statistics)
    check("running statistics", lambda x: kept(x.detach()), (2, 1, 40_000))
    check("instance_norm", F.instance_norm, (1, 2, 40_000), **near)
    for size in (2, 5):
        local = lambda x: F.local_response_norm(x, size, alpha=1.0)
        check("local_response_norm", local, (1, 4, 20_000))
        check("local_response_norm", local, (1, 4, 100, 200))
"""
# What reads such a line by windows.
WINDOWS = """
    # Rounded to bfloat16, whose step is 2^-8, several times.
    near, half = {"tolerance": 1e-4}, {"tolerance": 3e-2}
    # What is added is not differentiated: that is a sum of 40,000 terms, of which nothing is left.
    for n, m in ((1, 1), (2, 3)):
        check("conv1d", lambda x, w, b: F.conv1d(x, w, b.detach(), padding=2),
              (1, n, 40_000), (m, n, 5), (m,), **near)
        check("with steps", lambda x, w, b: F.conv1d(x, w, b.detach(), 3, dilation=2),
              (1, n, 40_000), (m, n, 4), (m,), **near)
        check("transposed", lambda x, w, b: F.conv_transpose1d(x, w, b.detach(), 2, 1, 1),
              (1, n, 20_000), (n, m, 4), (m,), **near)
        check("transposed, of one tap", lambda x, w: F.conv_transpose1d(x, w, stride=3),
              (1, n, 20_000), (n, m, 1), **near)
    check("of one tap", F.conv1d, (1, 1, 40_000), (1, 1, 1), **near)
    check("grouped", lambda x, w: F.conv1d(x, w, groups=2, padding=1),
          (1, 2, 40_000), (4, 1, 3), **near)
    check("of half", lambda x, w: F.conv1d(x, w, padding=1),
          torch.randn(1, 1, 80_000).bfloat16(), torch.randn(1, 1, 3).bfloat16(), **half)
    check("a plane", lambda x, w: F.conv2d(x, w, padding=1), (1, 1, 200, 200), (1, 1, 3, 3), **near)
    check("two rows", lambda x, w: F.conv2d(x, w, padding=1), (1, 1, 2, 20_000), (1, 1, 3, 3),
          **near)
    line = (1, 1, 40_000)
    for size in (1, 3, 5000):
        check("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, size), line)
        check("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, size), line)
        check("avg_pool1d", lambda x: F.avg_pool1d(x, size), line)
        for k in range(2):
            at = lambda x: F.max_pool1d(x.detach(), size, return_indices=True)[k]
            check("max_pool1d", at, line)
    check("max_pool1d", lambda x: F.max_pool1d(x, 5, 2, 2, 2, ceil_mode=True), (1, 2, 40_000))
    check("avg_pool1d", lambda x: F.avg_pool1d(x, 5, 2, 2, count_include_pad=False), (1, 2, 40_000))
    # Windows of equal elements and NaN.
    steps = torch.randint(0, 9, line).float()
    steps[0, 0, [3, 700, 39_000]] = float("nan")
    for x in (steps, steps.nan_to_num(1)):
        places = lambda x: F.adaptive_max_pool1d(x.detach(), 2, return_indices=True)[1]
        check("adaptive_max_pool1d", places, x)
    for shape in ((1, 200, 200), (1, 2, 20_000)):
        check("max_pool2d", lambda x: F.max_pool2d(x, 2, 1), shape)
        check("avg_pool2d", lambda x: F.avg_pool2d(x, 2, 1), shape)
        places = lambda x: F.max_pool2d(x.detach(), (2, 3), 1, 1, return_indices=True)[1]
        check("max_pool2d", places, shape)
    for size in ((200, 200), (2, 20_000)):
        check("unfold", lambda x: F.unfold(x, (1, 3)), (1, 1, *size))
    check("fold", lambda x: F.fold(x, (200, 200), 3, padding=1), (1, 9, 40_000))
    grid = torch.rand(1, 150, 150, 2) * 2 - 1
    sample = lambda x, g: F.grid_sample(x, g, align_corners=False)
    # A place among 200 is known to 1e-5; its gradient is 100 times a difference of neighbours.
    for shape in ((1, 1, 200, 200), (1, 6, 100, 120), (1, 3, 8, 8)):
        check("grid_sample", sample, shape, grid, tolerance=5e-3)
    check("max_unpool1d", lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2),
          line)
"""
# Such lines made longer or shorter, or read again at their ends.
LENGTHS = """
    line = (1, 1, 40_000)
    for mode in ("linear", "nearest", "nearest-exact"):
        for factor in (2, 0.3):
            longer = lambda x: F.interpolate(x, scale_factor=factor, mode=mode)
            check("interpolate", longer, line)
    to = {"mode": "linear", "align_corners": True}
    check("interpolate", lambda x: F.interpolate(x, size=30_001, **to), line)
    # Gradients are sums of 6,000 terms.
    check("interpolate", lambda x: F.interpolate(x, size=40_000, **to), (1, 1, 7), tolerance=1e-3)
    for mode in ("bilinear", "bicubic"):
        check(mode, lambda x: F.interpolate(x, scale_factor=2, mode=mode), (1, 1, 100, 200))
    for mode in ("reflect", "replicate", "circular"):
        check(mode, lambda x: F.pad(x, (300, 7), mode=mode), line)
        check(mode, lambda x: F.pad(x, (-300, 7), mode=mode), (2, 40_000))
        check(mode, lambda x: F.pad(x, (3, 4, 5, 6), mode=mode), (1, 200, 200))
    check("the ends", lambda x: F.pad(x, (30_000, 30_000), mode="replicate"), (1, 1, 9))
    check("truth", lambda x: F.pad(x > 0, (300, 7), mode="circular"), (1, 100_000))
    parts = torch.view_as_real
    check("complex", lambda x: parts(F.pad(torch.complex(x, 2 * x), (300, 7), mode="reflect")),
          (1, 20_000))
"""
# What meets at places of such a line.
MEETINGS = """
    near = {"tolerance": 1e-4}
    place = torch.randint(0, 40_000, (30_000,))
    for how in ("prod", "mean", "amax", "amin", "sum"):
        for shape, dim in (((40_000,), 0), ((2, 40_000), 1), ((40_000, 2), 0)):
            index = place.expand(2, -1) if dim else place[:, None].expand(-1, 2)
            index = place if len(shape) == 1 else index
            for few in (50, 30_000):
                at = index.narrow(dim, 0, few)
                meet = lambda x, y: x.scatter_reduce(dim, at.to(x.device), y, how)
                check("scatter_reduce", meet, shape, at.shape, **near)
        alone = lambda x, y: x.scatter_reduce(0, place.to(x.device), y, how, include_self=False)
        check("scatter_reduce", alone, (40_000,), (30_000,), **near)
        if how != "sum":
            meet = lambda x, y: x.index_reduce(0, place.to(x.device), y, how)
            check("index_reduce", meet, (40_000,), (30_000,), **near)
    whole = torch.randint(0, 5, (40_000,))
    meet = lambda x, y: x.scatter_reduce(0, place.to(x.device), y, "prod")
    check("of integers", meet, whole, whole[:30_000].clone())
    zeros = whole.float()
    check("where some are zeros", meet, zeros, zeros[:30_000].clone(), **near)
    order = [torch.randperm(40_000, device="wgpu") for _ in range(2)]
    assert all(t.sort()[0].cpu().equal(torch.arange(40_000)) for t in order)
    assert not order[0].cpu().equal(order[1].cpu())
"""
# Transforms of such a line.
WAVES = """
    parts, waves = torch.view_as_real, {"tolerance": 1e-4}
    one = {"norm": "ortho"}
    both = lambda x: torch.complex(x, x.flip(0))
    # Powers of two, other products, a prime, and one with a large factor.
    for n in (16_384, 20_000, 40_000, 16_411, 20_022):
        check("fft", lambda x: parts(torch.fft.fft(x, **one)), (n,), **waves)
        check("ifft", lambda x: parts(torch.fft.ifft(both(x), **one)), (n,), **waves)
        check("rfft", lambda x: parts(torch.fft.rfft(x, **one)), (n,), **waves)
        check("irfft", lambda x: torch.fft.irfft(both(x), n=n, **one), (n // 2 + 1,), **waves)
    check("hfft", lambda x: torch.fft.hfft(both(x), **one), (20_001,), **waves)
    check("ihfft", lambda x: parts(torch.fft.ihfft(x, **one)), (20_000,), **waves)
    for n in (30_000, 20_000):
        other = lambda x: parts(torch.fft.fft(x, n=n, **one))
        check("of another length", other, (50_000 - n,), **waves)
    for shape, dim in (((2, 20_000), 1), ((20_000, 2), 0)):
        check("lines", lambda x: parts(torch.fft.fft(x, dim=dim, **one)), shape, **waves)
"""
# Segments of such a line.
SEGMENTS = """
    near = {"tolerance": 1e-4}
    # What has no elements is as large as nothing.
    finite = lambda x: x.nan_to_num(5, 7, -7)
    cut = torch.tensor([0, 3, 3, 9_000, 31_000, 40_000])
    for how in ("sum", "mean", "max", "min", "prod"):
        def reduced(x, **more):
            more = {k: v.to(x.device) if k != "initial" else v for k, v in more.items()}
            axis = [*more.values()][0].ndim - 1
            return finite(torch.segment_reduce(x, how, axis=axis, unsafe=True, **more))
        near_one = lambda x: 1 + x / 10_000 if how == "prod" else x
        drawn = lambda *shape: near_one(torch.randn(shape))
        check(how, lambda x: reduced(x, offsets=cut), drawn(40_000), **near)
        check(how, lambda x: reduced(x, offsets=cut, initial=1.5), drawn(40_000, 2), **near)
        check(how, lambda x: reduced(x, offsets=cut // 3), drawn(40_000), **near)
        check(how, lambda x: reduced(x, lengths=torch.tensor([1, 2])), drawn(3, 20_000), **near)
        lines = torch.stack([cut // 2, cut // 3])
        check(how, lambda x: reduced(x, offsets=lines), drawn(2, 20_000), **near)
        several = torch.full((20_000,), 2)
        check(how, lambda x: reduced(x, lengths=several), drawn(40_000), **near)
        check(how, lambda x: reduced(x, lengths=several.clamp(max=0)), drawn(9), **near)
        check(how, lambda x: reduced(x, offsets=cut), drawn(40_000).bfloat16(), tolerance=2e-2)
    # Equal elements and NaN.
    steps = torch.randint(-4000, 4000, (40_000,)).float()
    check("equal", lambda x: torch.segment_reduce(x, "max", offsets=cut[3:].to(x.device)), steps)
    steps[15_000] = float("nan")
    for how in ("max", "min", "sum"):
        own = lambda x: torch.segment_reduce(x.detach(), how, offsets=cut.to(x.device))
        check("NaN", lambda x: finite(own(x)), steps, **near)
"""
# Sequences of which no kernel binds all times, all classes, or one time of all.
PATHS = """
    finite = lambda x: x.nan_to_num(5, 7, -7)
    def paths(shape, times, lengths, **more):
        t, n, classes = shape
        target = torch.randint(1, classes, (n, max(lengths)))
        def loss(x):
            y = F.ctc_loss(x.log_softmax(-1), target.to(x.device), times, lengths,
                           reduction="none", **more)
            return y if more else finite(y)
        check("ctc_loss", loss, torch.randn(shape).double(), tolerance=1e-8)
    paths((1500, 2, 30), (1500, 1100), (20, 13))
    paths((1500, 2, 30), (900, 0), (13, 0))
    paths((900, 3, 9), (900, 3, 900), (40, 40, 1), zero_infinity=True)
    paths((40, 200, 9), (40,) * 200, (20,) * 200)
    paths((7, 1, 9_000), (6,), (3,))
    paths((7, 2, 9_000), (6, 7), (3, 4), blank=8_999)
    paths((7, 2, 9_000), (7, 2), (3, 4), zero_infinity=True)
    ones = torch.ones(1, 5, dtype=torch.int64)
    none = lambda x: F.ctc_loss(x.log_softmax(-1), ones.to(x.device), (3,), (5,), reduction="none")
    check("without a path", lambda x: finite(none(x.detach())), (3, 1, 20_000))
"""
# One head whose keys no kernel binds.
HEADS = """
    attend = F.scaled_dot_product_attention
    line = [(1, 1, 40, 16), (1, 1, 3000, 16), (1, 1, 3000, 16)]
    check("attention", attend, *line)
    check("of other widths", attend, (40, 20), (3000, 20), (3000, 5))
    causal = lambda q, k, v: attend(q, k, v, is_causal=True)
    check("causal attention", causal, *[(1, 1, 2000, 16)] * 3)
    check("more keys", causal, (1, 900, 16), (1, 2000, 16), (1, 2000, 16))
    check("more queries", causal, (1, 2000, 16), (1, 900, 16), (1, 900, 16))
    check("one mask", lambda q, k, v, m: attend(q, k, v, m.detach()), *line, (40, 3000))
    check("one row", lambda q, k, v, m: attend(q, k, v, m.detach()), *line, (1, 3000))
    check("one column", lambda q, k, v, m: attend(q, k, v, m.detach()), *line, (40, 1))
    check("a mask that learns", attend, *line, (40, 3000))
    hidden = torch.ones(40, 3000).bool()
    # Whole parts of the keys, or all of them.
    hidden[:9, :2000], hidden[9:20, 500:], hidden[20] = False, False, False
    check("hidden keys", attend, *line, hidden)
    check("grouped", lambda q, k, v: attend(q, k, v, enable_gqa=True),
          (1, 4, 40, 16), (1, 1, 3000, 16), (1, 1, 3000, 16))
    check("several", attend, (2, 3, 40, 16), (2, 3, 900, 16), (2, 3, 900, 16))
    half = [torch.randn(1, 1, n, 16).bfloat16() for n in (40, 3000, 3000)]
    # A step of bfloat16 is 2^-8.
    check("of half", attend, *half, tolerance=1e-2)
    check("dropout of nothing", lambda *x: attend(*x, dropout_p=1e-12), *line)
"""
# Matrices that no kernel binds, and systems of them.
SYSTEMS = """
    near, exact = {"tolerance": 1e-8}, {"tolerance": 0}
    linalg, parts = torch.linalg, torch.view_as_real
    drawn = lambda *shape: torch.randn(shape).double()
    square = drawn(150, 150)
    for x in (square, drawn(2, 100, 100), drawn(100, 200, 2)):
        whole = lambda x: x if x.shape[-1] > 2 else torch.view_as_complex(x)[:, :100]
        shown = lambda x: parts(x) if x.is_complex() else x
        check("inv", lambda x: shown(linalg.inv(whole(x))), x, **near)
        few = lambda x: linalg.solve(whole(x), whole(x)[..., :3] * 2 + 1)
        check("solve", lambda x: shown(few(x)), x, **near)
        scale = (x.shape[-2 if x.shape[-1] > 2 else 0] / 2.718) ** 0.5
        # Its gradient has the errors of an inverse: those of LAPACK's and ours differ by 1e-8, too.
        check("det", lambda x: shown(linalg.det(whole(x) / scale)), x, tolerance=3e-8)
        check("slogdet", lambda x: linalg.slogdet(whole(x))[1], x, **near)
        check("sign", lambda x: shown(linalg.slogdet(whole(x).detach())[0]), x, **near)
        check("lu_factor", lambda x: shown(linalg.lu_factor(whole(x))[0]), x, **near)
        check("pivots", lambda x: linalg.lu_factor(whole(x).detach())[1], x, **exact)
        def positive(x):
            x = whole(x)
            return x @ x.mH + torch.eye(x.shape[-1], device=x.device, dtype=x.dtype)
        check("cholesky", lambda x: shown(linalg.cholesky(positive(x))), x, **near)
        upper = lambda x: shown(linalg.cholesky(positive(x), upper=True))
        check("cholesky", upper, x, **near)
    check("single precision", lambda x: linalg.inv(x + 20 * torch.eye(200, device=x.device)),
          (200, 200))
    solve = lambda x, b: linalg.solve(x, b, left=False)
    check("from the right", solve, square, drawn(9, 150), **near)
    check("a vector", linalg.solve, square, drawn(150), **near)
    check("two of one", linalg.solve, square, drawn(2, 150, 3), **near)
    check("many", linalg.solve, drawn(8, 8), drawn(8, 4000), **near)
    steep = square / 20 + 3 * torch.eye(150).double()
    for upper in (False, True):
        for unit in (False, True):
            options = {"upper": upper, "unitriangular": unit}
            solve = lambda a, b: linalg.solve_triangular(a, b, **options)
            check("solve_triangular", solve, steep / 3, drawn(150, 4), **near)
        solve = lambda a, b: linalg.solve_triangular(a, b, upper=upper, left=False)
        check("from the right", solve, steep, drawn(4, 150), **near)
        solve = lambda b, a: torch.cholesky_solve(b, a.tril() if not upper else a.triu(), upper)
        check("cholesky_solve", solve, drawn(150, 4), steep, **near)
    solve = lambda a, b: linalg.solve_triangular(a, b, upper=True)
    check("many", solve, steep, drawn(150, 300), **near)
    check("cholesky_inverse", lambda x: torch.cholesky_inverse(x.tril()), steep, **near)
    check("lu", lambda x: torch.cat(linalg.lu(x)[1:]), square, **near)
    solve = lambda x, b: torch.lu_solve(b, *linalg.lu_factor(x))
    check("lu_solve", solve, square, drawn(150, 3), **near)
    check("matrix_power", lambda x: linalg.matrix_power(x, -2), square, **near)
    for shape in ((40_000, 2), (3000, 9), (9, 3000), (2, 40_000), (40_000, 1)):
        check("lu_factor", lambda x: linalg.lu_factor(x.detach())[0], drawn(*shape), **near)
        check("pivots", lambda x: linalg.lu_factor(x.detach())[1], drawn(*shape), **exact)
    # The first step that has no pivot.
    for at in (3, 140):
        lost = square.clone()
        lost[:, at] = 0
        check("info", lambda x: linalg.inv_ex(x.detach())[1], lost, **exact)
        low = square @ square.T
        low[at] = low[:, at] = 0
        check("info", lambda x: linalg.cholesky_ex(x.detach())[1], low, **exact)
        none = lambda x: linalg.det(x.detach())
        check("det", none, lost, **near)
"""
# Orthogonal factors of such matrices. Vectors may have either sign.
FACTORS = """
    near = {"tolerance": 1e-7}
    linalg = torch.linalg
    drawn = lambda *shape: torch.randn(shape).double()
    tall, square = (1100, 8), (110, 110)
    for shape in (tall, square, (100, 150), (20_000, 3), (2, 1000, 9)):
        for k in range(2):
            check("qr", lambda x: linalg.qr(x.detach())[k], drawn(*shape), **near)
        if shape[-1] < 120:
            check("qr", lambda x: sum(t.sum() for t in linalg.qr(x)), drawn(*shape), **near)
    check("complete", lambda x: linalg.qr(x.detach(), "complete")[0], drawn(200, 150), **near)
    lost = drawn(*square)
    lost[:, 60:] = lost[:, :50]
    check("what is lost", lambda x: torch.matmul(*linalg.qr(x.detach())), lost, **near)
    check("geqrf", lambda x: torch.geqrf(x.detach())[1], drawn(*square), **near)
    for shape in (tall, square, (8, 1100)):
        x = drawn(*shape)
        check("svdvals", linalg.svdvals, x, **near)
        for k in (0, 2):
            check("svd", lambda x: linalg.svd(x, full_matrices=False)[k].abs(), x, tolerance=1e-5)
        def again(x):
            u, s, v = linalg.svd(x, full_matrices=False)
            return (u * s) @ v
        check("svd", again, x, **near)
    def whole(x):
        u, s, v = linalg.svd(x.detach())
        return torch.cat([u.mT @ u, (u[:, :8] * s) @ v], 1)
    check("all vectors", whole, drawn(300, 8), **near)
    check("rank", lambda x: linalg.matrix_rank(x.detach()), lost, tolerance=0)
    check("pinv", linalg.pinv, drawn(*tall), **near)
    for driver in ("gels", "gelsy", "gelsd"):
        fit = lambda a, b: linalg.lstsq(a, b, driver=driver)[0]
        check("lstsq", fit, drawn(*tall), drawn(1100, 3), **near)
    check("lstsq", lambda a, b: linalg.lstsq(a, b)[0], drawn(140, 110), drawn(140, 3), **near)
    for upper in ("L", "U"):
        even = lambda x: (x + x.mT) / 2
        check("eigvalsh", lambda x: linalg.eigvalsh(even(x), upper), drawn(*square), **near)
        values = lambda x: linalg.eigh(even(x), upper)[0]
        check("eigh", values, drawn(*square), **near)
        vectors = lambda x: linalg.eigh(even(x), upper)[1].abs()
        check("eigh", vectors, drawn(*square), tolerance=1e-5)
    single = lambda x: linalg.eigvalsh((x + x.mT) / 2)
    check("single precision", single, (150, 150), tolerance=1e-4)
    parts, both = torch.view_as_real, torch.view_as_complex
    for shape in ((80, 80, 2), (900, 6, 2), (6, 900, 2), (13_000, 1, 2)):
        for k in range(2):
            own = lambda x: parts(linalg.qr(both(x).detach())[k])
            check("complex qr", own, drawn(*shape), **near)
    for shape in ((80, 80, 2), (900, 6, 2)):
        own = lambda x: parts(linalg.lstsq(both(x), both(x)[:, :2] * 1j + 1)[0])
        check("complex lstsq", own, drawn(*shape), **near)
        own = lambda x: linalg.svd(both(x), full_matrices=False)[2].abs()
        check("complex svd", own, drawn(*shape), tolerance=1e-5)
    for k in range(2):
        own = lambda x: linalg.eigh(both(x) + both(x).mH)[k].abs()
        check("complex eigh", own, drawn(80, 80, 2), tolerance=1e-5)
"""
TELL = """
    print(len(names))
"""


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        (PRODUCTS, 15),
        (ROWS, 34),
        (PLACES, 21),
        (IMAGES, 12),
        (RECURRENT, 16),
        (LINES, 13),
        (ORDER, 24),
        (ALONG, 40),
        (FOUND, 34),
        (CHOSEN, 53),
        (NORMS, 19),
        (WINDOWS, 45),
        (LENGTHS, 22),
        (MEETINGS, 41),
        (WAVES, 26),
        (SEGMENTS, 44),
        (PATHS, 8),
        (HEADS, 14),
        (SYSTEMS, 61),
        (FACTORS, 57),
    ],
)
def test_calls_on_tensors_larger_than_a_binding_equal_the_cpu(calls: str, count: int) -> None:
    assert run(PROGRAM + calls + TELL, **SMALL) == f"{count}\n"


STEPS = """
    import pytensorlib as torch

    def trained(kind, device, **options):
        torch.manual_seed(1)
        large = torch.nn.Parameter(torch.randn(300, 100, device="cpu").to(device))
        small = torch.nn.Parameter(torch.randn(40, device="cpu").to(device))
        optimizer = kind([large, small], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            ((large * large).sum() + (small * small * small).sum()).backward()
            optimizer.step()
        return [large.detach().cpu(), small.detach().cpu()]

    for kind, options in [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {"amsgrad": True}),
        (torch.optim.AdamW, {}),
    ]:
        pairs = zip(trained(kind, "cpu", **options), trained(kind, "wgpu", **options), strict=True)
        print(all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs))
"""


def test_optimizers_of_parameters_larger_than_a_binding_equal_the_cpu() -> None:
    assert run(STEPS, **SMALL) == "True\n" * 3


@pytest.mark.slow
def test_every_operator_under_bindings_of_four_kilobytes_equals_the_cpu(tmp_path: Path) -> None:
    # The least that can be forced: no more runs on the CPU than without it.
    found = every_operator(tmp_path / "report.xml", PYTENSORLIB_WGPU_MAX_BINDING="4096")
    assert found == HOSTED


LARGE = """
    import pytensorlib as torch
    n = 1 << 28
    x = torch.ones(n, device="wgpu")
    y = x + 1
    del x
    print(y.sum().item() == 2 * n, y[n // 2 : n // 2 + 3].tolist(), y[-2:].cpu().tolist())
    y[n - 5] = 7
    rows = y.view(1 << 14, -1).sum(1)
    print(y.amax().item(), abs((y[n // 3 :] * 2).mean().item() - 4) < 1e-6, rows[-1].item())
"""
ATTENTION = """
    import pytensorlib as torch
    import pytensorlib.nn.functional as F
    torch.manual_seed(0)
    # Software Vulkan ends a kernel after 65,535 turns of its loops, fewer than 64 components need.
    q, k, v = torch.randn(3, 2, 4096, 32)
    mask = torch.randn(4096, 4096)
    y = F.scaled_dot_product_attention(*(t.to("wgpu") for t in (q, k, v, mask))).cpu()
    scores = q[:, ::512].double() @ k.double().mT / 32**0.5 + mask[::512].double()
    rows = scores.softmax(-1) @ v.double()
    print((y[:, ::512].double() - rows).abs().max().item() < 1e-5)
"""


@pytest.mark.slow
def test_a_gigabyte_and_long_attention_under_bindings_of_32_megabytes() -> None:
    env = {"PYTENSORLIB_WGPU_MAX_BINDING": str(32 << 20), "PYTENSORLIB_WGPU_FALLBACK": "error"}
    assert run(LARGE, **env) == "True [2.0, 2.0, 2.0] [2.0, 2.0]\n7.0 True 32773.0\n"
    assert run(ATTENTION, **env) == "True\n"
