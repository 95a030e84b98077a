"""Adapters that lack features: the same results, random numbers and training as with them."""

from __future__ import annotations

import json

import pytest
from child import run

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

STRICT = {"PYTENSORLIB_WGPU_FALLBACK": "error", "PYTENSORLIB_CACHE_DIR": ""}

# Results in int64, as text. Numbers at the ends of the range, and around a word.
INTEGERS = """
    import json, sys
    import pytensorlib as torch

    device = sys.argv[1] if len(sys.argv) > 1 else DEVICE
    ends = [0, 1, -1, 2, -2, 7, -7, 10**6 + 3, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32]
    ends += [2**32 + 1, -(2**32), -(2**32) - 1, 3 * 2**40 + 5, -5 * 2**50 - 9, 2**62, -(2**62)]
    ends += [2**63 - 1, -(2**63)]
    a = torch.tensor(ends, device=device)[:, None].expand(-1, len(ends)).contiguous()
    b = a.t().contiguous()
    safe = torch.where((b == 0) | ((b == -1) & (a == -(2**63))), torch.tensor(3, device=device), b)
    n = (b % 64).abs() % 64
    found = {}

    def put(name, t):
        found[name] = t.cpu().tolist()

    for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum",
                 "bitwise_and", "bitwise_or", "bitwise_xor", "gcd"):
        put(name, getattr(torch, name)(a, b))
    for name in ("remainder", "fmod", "floor_divide"):
        put(name, getattr(torch, name)(a, safe))
    put("trunc", torch.div(a, safe, rounding_mode="trunc"))
    put("left", a << n)
    put("right", a >> n)
    for name in ("neg", "abs", "sign", "bitwise_not", "square"):
        put(name, getattr(torch, name)(a))
    for dtype in (torch.float32, torch.int32, torch.int16, torch.uint8, torch.bool):
        put(f"to {dtype}", a[:, 0].to(dtype))
    floats = [0.0, 0.5, -0.5, 1.9, -1.9, 8388609.0, 2.0**31, -(2.0**33), 1e15, -9e18]
    put("from float32", torch.tensor(floats, device=device).to(torch.int64))
    short = torch.tensor([-5, 2**31 - 1], dtype=torch.int32, device=device)
    put("from int32", short.to(torch.int64))
    put("pow", a[:, :1] ** torch.arange(5, device=device))
    x = (torch.arange(300, device=device).reshape(20, 15) * 1234567891) % 2000003 - 1000001
    big = x * 4294967311
    of_rows = "sum prod amax amin argmax argmin cumsum cumprod any all".split()
    for name in of_rows:
        put(name, getattr(torch, name)(big, dim=1))
    put("total", big.sum())
    values, at = big.sort(dim=1)
    put("sorted", values)
    put("places", at)
    put("topk", big.topk(4, dim=1).values)
    index = (x.abs() % 15)
    put("gather", big.gather(1, index))
    put("scatter_add", torch.zeros_like(big).scatter_add_(1, index, big))
    put("scatter_amax", torch.zeros_like(big).scatter_reduce_(1, index, big, "amax"))
    line = torch.zeros(15, dtype=torch.int64, device=device)
    put("index_add", line.index_add(0, index[0], big[0]))
    put("index_put", line.index_put((index[0],), big[0], accumulate=True))
    put("bincount", torch.bincount(index.flatten()))
    put("unique", torch.unique(index))
    put("where", torch.where(x > 0, big, -big))
    put("tril", big.tril())
    put("mm", x[:, :8] @ x[:8])
    put("arange", torch.arange(-3, 2**40, 2**37 + 1, device=device))
    put("searchsorted", torch.searchsorted(values[0].contiguous(), big[0]))
    image = torch.arange(2 * 3 * 8 * 8, device=device).reshape(2, 3, 8, 8).float().sin()
    put("max_pool2d", torch.nn.functional.max_pool2d(image, 2, return_indices=True)[1])
    put("max_pool3d", torch.nn.functional.max_pool3d(image[:, None], 2, return_indices=True)[1])
    pool = torch.nn.functional.adaptive_max_pool2d
    put("adaptive", pool(image, 3, return_indices=True)[1])
    if device != "cpu":
        torch.manual_seed(5)
        for low, high in ((0, 10), (-(2**40), 2**41), (-(2**63), 2**63 - 1)):
            put(f"randint {low}", torch.randint(low, high, (50,), device=device))
        put("randperm", torch.randperm(37, device=device))
        put("random_", torch.empty(20, dtype=torch.int64, device=device).random_())
        put("multinomial", torch.multinomial(torch.ones(3, 9, device=device), 4))
    print(json.dumps(found))
"""

# Ten steps of a classifier with int64 labels and counters, dropout and an optimizer.
TRAINING = """
    import pytensorlib as torch
    from pytensorlib import nn

    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 32), nn.Dropout(0.3), nn.GELU(), nn.Linear(32, 10),
    ).to("wgpu")
    words = nn.Embedding(12, 10).to("wgpu")
    optimizer = torch.optim.AdamW([*model.parameters(), *words.parameters()], lr=1e-2)
    x, y = torch.randn(16, 1, 8, 8).to("wgpu"), torch.randint(0, 10, (16,)).to("wgpu")
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x) + words(y), y, ignore_index=3)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        hits = (model(x).argmax(1) == y).sum()
    # Numbers of the host are of float64, and become what they are written to there.
    rows = torch.zeros(4, 3, device="wgpu").index_fill(0, torch.tensor([1], device="wgpu"), 0.5)
    rows[0, 1] = 0.25
    rows = rows.masked_fill(rows > 1, 2.5).clamp(max=torch.tensor(9.5, dtype=torch.float64))
    assert rows.sum().item() == 1.75, rows
    print(loss.item(), int(hits), int(model[1].num_batches_tracked))
"""


def integers(device: str, **env: str) -> dict[str, object]:
    found = json.loads(run(INTEGERS.replace("DEVICE", repr(device)), **STRICT, **env))
    assert isinstance(found, dict)
    return found


def test_int64_without_the_feature_is_that_of_the_cpu_and_of_adapters_that_have_it() -> None:
    words = integers("wgpu", PYTENSORLIB_WGPU_WITHOUT="int64")
    host = integers("cpu")
    drawn = words.keys() - host.keys()
    assert {k: v for k, v in words.items() if k in host} == host
    if wgpu.get_device_properties()["int64"]:
        own = integers("wgpu")
        assert {k: own[k] for k in drawn} == {k: words[k] for k in drawn}


@pytest.mark.parametrize("profile", ["webgpu", "metal", "dx12"])
def test_training_is_the_same_on_an_adapter_that_lacks_features(profile: str) -> None:
    loss, hits, batches = run(TRAINING, **STRICT).split()
    few = run(TRAINING, **STRICT, PYTENSORLIB_WGPU_WITHOUT=profile).split()
    assert float(few[0]) == pytest.approx(float(loss), rel=1e-4)
    assert few[1:] == [hits, batches]


def test_features_hidden_are_not_there_and_other_names_are_refused() -> None:
    code = """
        from pytensorlib import wgpu
        print(wgpu.get_device_properties()["features"])
    """
    assert "shader_int64" not in run(code, PYTENSORLIB_WGPU_WITHOUT="int64, float64")
    wrong = """
        import pytensorlib as torch
        try:
            torch.ones(1, device="wgpu")
        except ValueError as e:
            print(e)
    """
    told = run(wrong, PYTENSORLIB_WGPU_WITHOUT="int65")
    assert "PYTENSORLIB_WGPU_WITHOUT must be names with commas between them, of int64" in told
