"""The tiles of products: which one is taken changes no bit, and what was timed is kept."""

from __future__ import annotations

from pathlib import Path

import child
import pytest
from child import run

from pytensorlib import wgpu

pytestmark = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

STEPS = """
    import hashlib
    import pytensorlib as torch
    from pytensorlib.nn import functional as F

    torch.manual_seed(0)
    def randn(*shape):
        return torch.randn(*shape).to("wgpu").requires_grad_()

    results, counts = [], []
    for _ in range(2):
        before = torch.wgpu.memory_stats()["dispatches"]
        a, b, c = randn(40, 70), randn(70, 50), randn(50)
        x, w = randn(2, 5, 9, 8), randn(12, 5, 3, 3)
        y = torch.addmm(c, a, b).relu()
        z = F.conv2d(x, w, stride=2, padding=1)
        inputs = [a, b, c, x, w]
        grads = torch.autograd.grad((y * y).sum() + (z * z).sum(), inputs)
        # In place: what is read is not there a second time.
        total = torch.ones(40, 50, device="wgpu")
        with torch.no_grad():
            total.addmm_(a, b)
        results += [t.detach().cpu().numpy().tobytes() for t in (y, z, total, *grads)]
        counts.append(torch.wgpu.memory_stats()["dispatches"] - before)
    print(hashlib.sha256(b"".join(results)).hexdigest(), *counts)
"""


def steps(**env: str) -> tuple[str, int, int]:
    """Run the steps; returns a digest of all results, and the dispatches of both turns."""
    digest, first, second = run(STEPS, **env).split()
    return digest, int(first), int(second)


def test_tuning_changes_no_bit_and_is_kept_between_runs(tmp_path: Path) -> None:
    if "timestamp_query" not in wgpu.get_device_properties()["features"]:
        pytest.skip("the adapter has no timestamps")
    folder = {"PYTENSORLIB_CACHE_DIR": str(tmp_path)}
    digest, plain, again = steps(PYTENSORLIB_TUNE="0", **folder)
    assert plain == again
    assert not list(tmp_path.glob("*.tiles"))

    tuned, first, second = steps(PYTENSORLIB_TUNE="full", **folder)
    assert tuned == digest
    # Two forward products and the gradients of both operands: every tile at least once each.
    assert first >= plain + 6 * 4
    assert second == plain
    (kept,) = tmp_path.glob("*.tiles")
    lines = kept.read_text().splitlines()
    assert len(lines) >= 6
    assert {tuple(line.split()[2:]) for line in lines} <= {
        ("128", "128"), ("64", "64"), ("32", "32"), ("8", "128"), ("128", "8")
    }  # fmt: skip

    # What is written there is taken, and nothing is timed again.
    kept.write_text("damage\n" + "".join(f"{line[:33]} 64 64\n" for line in lines))
    assert steps(PYTENSORLIB_TUNE="full", **folder) == (digest, plain, plain)


def test_a_value_that_means_nothing_is_an_error() -> None:
    code = "import pytensorlib as torch; torch.ones(1, device='wgpu')"
    done = child.python("-c", code, PYTENSORLIB_TUNE="2")
    assert "ValueError" in done.stderr
    assert "PYTENSORLIB_TUNE: expected 0, 1 or full, but found" in done.stderr


LOOPS = """
    import hashlib
    import pytensorlib as torch
    from pytensorlib.nn import functional as F

    results = []
    for dtype in (torch.float32, torch.float16):
        torch.manual_seed(0)
        def randn(*shape):
            return torch.randn(*shape).to(dtype).to("wgpu").requires_grad_()

        a, b = randn(40, 70), randn(70, 50)
        x, w = randn(2, 5, 9, 8), randn(12, 5, 3, 3)
        q, k, v = randn(2, 40, 24), randn(2, 40, 24), randn(2, 40, 24)
        y, z = a @ b, F.conv2d(x, w, stride=2, padding=1)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        inputs = [a, b, x, w, q, k, v]
        grads = torch.autograd.grad([y, z, attended], inputs, [y, z, attended])
        results += [t.detach().float().cpu().numpy().tobytes() for t in (y, z, attended, *grads)]
    print(hashlib.sha256(b"".join(results)).hexdigest())
"""


def test_loops_that_are_written_out_change_no_bit() -> None:
    written_out = run(LOOPS, PYTENSORLIB_WGPU_UNROLL="1")
    # A card's driver joins products and sums of the one or of the other.
    if wgpu.get_device_properties()["software"]:
        assert written_out == run(LOOPS, PYTENSORLIB_WGPU_UNROLL="0")
    with pytest.raises(AssertionError, match='expected 0 or 1, but found "x"'):
        run(LOOPS, PYTENSORLIB_WGPU_UNROLL="x")


# Steps of a network whose kernels all are new, copies between them, and what is read back.
COMPILED = """
    import hashlib
    import pytensorlib as torch
    from pytensorlib import nn

    torch.manual_seed(0)
    layers = nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)
    model = nn.Sequential(*layers).to("wgpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 8).to("wgpu"), torch.randint(0, 4, (32,)).to("wgpu")

    @torch.compile
    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step().item() for _ in range(5)]
    order = x.sort(1)[1].cumsum(0).cpu().numpy().tobytes()
    kept = torch.empty(32, 8, device="wgpu").copy_(x.exp().sin()).cpu().numpy().tobytes()
    stats = torch.wgpu.memory_stats()
    print(losses, hashlib.sha256(order + kept).hexdigest(), stats["dispatches"], stats["pipelines"])
"""


def test_threads_that_compile_change_no_bit() -> None:
    alone = run(COMPILED, PYTENSORLIB_WGPU_COMPILERS="0")
    assert all(run(COMPILED, PYTENSORLIB_WGPU_COMPILERS=n) == alone for n in ("1", "3"))


def test_a_process_that_ends_while_others_compile_ends_well() -> None:
    code = """
        import pytensorlib as torch
        x = torch.randn(20, 20).to("wgpu")
        kept = [x @ x, x.softmax(1), x.sort(1), x.cumsum(1), x.exp().sum(), torch.linalg.inv(x)]
        print("recorded")
    """
    assert run(code, PYTENSORLIB_WGPU_COMPILERS="4") == "recorded\n"
