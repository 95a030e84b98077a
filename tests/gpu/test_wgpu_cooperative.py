"""Products by cooperative matrices, on adapters that have them, and a model of their arithmetic."""

from __future__ import annotations

from pathlib import Path

import child
import numpy as np
import pytest
from child import run

from pytensorlib import wgpu


def has_squares() -> bool:
    if not wgpu.is_available():
        return False
    listed = wgpu.get_device_properties()["cooperative_matrices"]
    return any(m == n == k and to == "f32" for m, n, k, _, to in listed)


need_squares = pytest.mark.skipif(not has_squares(), reason="no adapter with cooperative matrices")

PRODUCTS = """
    import numpy as np
    import pytensorlib as torch
    from pytensorlib.nn import functional as F

    rng = np.random.default_rng(0)

    def to_numpy(t):
        return t.detach().cpu().double().numpy()

    def check(got, a, b, error, plus=0.0):
        with np.errstate(all="ignore"):
            a, b = to_numpy(a), to_numpy(b)
            want, bound = a @ b + plus, abs(a) @ abs(b) + abs(plus)
            got = to_numpy(got)
            assert np.array_equal(np.isnan(got), np.isnan(want))
            infinite = np.isinf(want)
            assert np.array_equal(got[infinite], want[infinite])
            rest = np.isfinite(want)
            worst = (abs(got - want) / np.maximum(bound, 1e-300))[rest].max()
            assert worst <= error, (a.shape, b.shape, worst, error)

    def made(dtype, *shape):
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)

    def error(dtype, precision):
        own = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-19}[dtype]
        return 2.0**-10 if dtype is torch.float32 and precision == "medium" else own

    def each():
        for precision in "high", "medium":
            torch.set_float32_matmul_precision(precision)
            for dtype in torch.float32, torch.float16, torch.bfloat16:
                yield dtype, error(dtype, precision)
"""


@need_squares
def test_products_of_any_shape_and_layout_match_numpy() -> None:
    run(
        PRODUCTS
        + """
    sizes = (1, 1, 1), (64, 64, 32), (5, 7, 3), (130, 70, 90), (33, 257, 4100), (128, 128, 256)
    for dtype, most in each():
        for m, n, k in sizes:
            a, b = made(dtype, m, k), made(dtype, k, n)
            for x in a, a.t().contiguous().t(), made(dtype, m + 3, 2 * k + 1)[1:m + 1, ::2][:, :k]:
                for y in b, b.t().contiguous().t():
                    check(x.to("wgpu") @ y.to("wgpu"), x, y, most)
        # Batches, one of which broadcasts; what is added; sums of the rows beside a product.
        a, b = made(dtype, 3, 1, 40, 50), made(dtype, 2, 50, 70)
        check(a.to("wgpu") @ b.to("wgpu"), a, b, most)
        a, b, c = made(dtype, 40, 50), made(dtype, 50, 70), made(dtype, 70)
        got = torch.addmm(c.to("wgpu"), a.to("wgpu"), b.to("wgpu"), beta=3, alpha=0.5)
        check(2 * got.float(), a, b, 4 * most, 6 * to_numpy(c))
        inputs = [t.to("wgpu").requires_grad_() for t in (a, b.t().contiguous(), c)]
        y = F.linear(*inputs)
        seed = made(dtype, 40, 70)
        ga, gw, gb = torch.autograd.grad(y, inputs, seed.to("wgpu"))
        check(y, a, b, most, to_numpy(c))
        check(ga, seed, b.t(), most)
        check(gw, seed.t(), a, most)
        check(gb[None], torch.ones(1, 40), seed, max(most, 2.0**-20))
    """,
        PYTENSORLIB_WGPU_COOPERATIVE="force",
    )


@need_squares
def test_hostile_numbers_match_numpy() -> None:
    run(
        PRODUCTS
        + """
    for dtype, most in each():
        if dtype is torch.float16:
            continue  # its elements are multiplied as they are
        # Rows and columns of very different sizes, each alike within, and zeros among them.
        a, b = made(dtype, 70, 60), made(dtype, 60, 50)
        rows = torch.from_numpy(10.0 ** rng.integers(-30, 18, (70, 1)))
        columns = torch.from_numpy(10.0 ** rng.integers(-7, 18, (1, 50)))
        a, b = (a.double() * rows).to(dtype), (b.double() * columns).to(dtype)
        a[3], b[:, 4] = 0, 0
        a[:, 7] *= 0
        check((a.to("wgpu") @ b.to("wgpu")).float(), a, b, most)
        # What is not finite spoils what it should, and nothing beside.
        a[5, 2], a[6, 3], a[8, 1], a[8, 2] = float("inf"), float("nan"), float("inf"), -float("inf")
        b[2, 9], b[9, 11] = -float("inf"), float("nan")
        check((a.to("wgpu") @ b.to("wgpu")).float(), a, b, most)
        # An element of 2^-20 of the largest of its row is as exact as that.
        a, b = torch.zeros(64, 64, dtype=dtype), torch.zeros(64, 64, dtype=dtype)
        a[:, 0], a[:, 1] = 1, 2.0**-20 * 1.25
        b[1] = 1 + 2.0**-7
        check(a.to("wgpu") @ b.to("wgpu"), a, b, most)
    """,
        PYTENSORLIB_WGPU_COOPERATIVE="force",
    )


@need_squares
def test_what_follows_a_product_runs_in_its_store() -> None:
    run(
        PRODUCTS
        + """
    from pytensorlib import _C

    def launched(call, on):
        _C._wgpu_set_fuse(0, on)
        before = torch.wgpu.memory_stats()["dispatches"]
        y = call()
        count = torch.wgpu.memory_stats()["dispatches"] - before
        return count, [to_numpy(t) for t in y]

    for precision in "high", "medium":
        torch.set_float32_matmul_precision(precision)
        most = error(torch.float32, precision)
        # Of more than one workgroup, one whose edges are not full, and some products at once.
        for shape in (5, 33, 17), (150, 40, 70), (2, 64, 64, 64):
            *stack, m, k, n = shape
            x, w = made(torch.float32, *stack, m, k), made(torch.float32, *stack, k, n)
            b, z = made(torch.float32, n), made(torch.float32, *stack, m, n)
            a, c, bias, plus = (t.to("wgpu") for t in (x, w, b, z))

            def chain():
                y = a @ c + bias
                return y, torch.relu(y) * plus, y.half()

            def over():
                return ((a @ c).mul_(plus).sub_(1),)

            for call, joined in (chain, 3), (over, 2):
                alone, want = launched(call, False)
                count, got = launched(call, True)
                assert all(np.array_equal(u, v) for u, v in zip(got, want))
                assert count == alone - joined, (count, alone)
            y = to_numpy(x) @ to_numpy(w)
            bound = abs(to_numpy(x)) @ abs(to_numpy(w)) * most + 1e-6
            assert (abs(got[0] - (y * to_numpy(z) - 1)) <= bound * (abs(to_numpy(z)) + 1)).all()
    # Results whose elements share words.
    for dtype in torch.float16, torch.bfloat16:
        sizes = (75, 40), (40, 67), (67,), (75, 67)
        a, c, bias, plus = (made(dtype, *s).to("wgpu") for s in sizes)
        call = lambda: (torch.relu(a @ c + bias) * plus,)
        (alone, want), (count, got) = launched(call, False), launched(call, True)
        assert np.array_equal(got[0], want[0])
        assert count == alone - 3, (count, alone)
    """,
        PYTENSORLIB_WGPU_COOPERATIVE="force",
    )


BITS = """
    import hashlib
    import pytensorlib as torch

    torch.manual_seed(0)
    torch.set_float32_matmul_precision(PRECISION)
    a, b = torch.randn(96, 80).to(DTYPE), torch.randn(80, 64).to(DTYPE)
    a, b = a.to("wgpu"), b.to("wgpu")
    bits = [(a @ b).cpu().view(torch.uint8).numpy().tobytes() for _ in range(3)]
    assert bits[1] == bits[2]
    print(hashlib.sha256(bits[1]).hexdigest(), torch.wgpu.memory_stats()["dispatches"])
"""


def bits(dtype: str, precision: str, **env: str) -> list[str]:
    code = BITS.replace("DTYPE", f"torch.{dtype}").replace("PRECISION", repr(precision))
    return run(code, **env).split()


@pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
def test_the_highest_precision_and_refusals_change_no_bit() -> None:
    # Trials of tiles are dispatches too: one was made for the third product, or none.
    plain, count = bits("float32", "highest", PYTENSORLIB_TUNE="0")
    assert count == "3"
    assert bits("float32", "medium", PYTENSORLIB_TUNE="0") == [plain, count]
    for precision, allowed in [("highest", "0"), ("highest", "force"), ("medium", "0")]:
        found = bits("float32", precision, PYTENSORLIB_WGPU_COOPERATIVE=allowed)
        assert found[0] == plain, (precision, allowed)
        fixed = {"PYTENSORLIB_TUNE": "0", "PYTENSORLIB_WGPU_COOPERATIVE": allowed}
        assert bits("float32", precision, **fixed) == [plain, count], (precision, allowed)
    if has_squares():
        assert bits("float32", "medium", PYTENSORLIB_WGPU_COOPERATIVE="force")[0] != plain


@need_squares
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_trial_compares_and_is_kept(dtype: str, tmp_path: Path) -> None:
    env = {"PYTENSORLIB_TUNE": "full", "PYTENSORLIB_CACHE_DIR": str(tmp_path)}
    plain, _ = bits(dtype, "medium", PYTENSORLIB_WGPU_COOPERATIVE="0")
    forced, _ = bits(dtype, "medium", PYTENSORLIB_WGPU_COOPERATIVE="force")
    chosen, dispatches = bits(dtype, "medium", **env)
    assert chosen in (plain, forced)
    (kept,) = tmp_path.glob("*.tiles")
    lines = [line.split() for line in kept.read_text().splitlines()]
    # One of the tile, and one of whether and which matrices are quicker.
    assert len(lines) == 2
    again, fewer = bits(dtype, "medium", **env)
    assert again == chosen
    assert int(fewer) < int(dispatches)
    # Whatever is written there is taken.
    listed = [line for line in lines if int(line[2]) == 0 or int(line[2]) > 1 << 16]
    assert len(listed) == 1
    other = [*lines]
    other[lines.index(listed[0])] = [*listed[0][:2], "0", "0"]
    kept.write_text("".join(" ".join(line) + "\n" for line in other))
    assert bits(dtype, "medium", **env)[0] == plain


@pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
def test_a_value_that_means_nothing_is_an_error() -> None:
    code = "import pytensorlib as torch; torch.ones(1, device='wgpu')"
    done = child.python("-c", code, PYTENSORLIB_WGPU_COOPERATIVE="2")
    assert "ValueError" in done.stderr
    assert "PYTENSORLIB_WGPU_COOPERATIVE: expected 0, 1 or force, but found" in done.stderr


def terms(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two float16 terms of each element as the kernel makes them, and the factor of results."""
    top = np.abs(x).max(axis=axis, keepdims=True).view(np.uint32)
    exponent = np.minimum(268 - (top >> 23), 253).astype(np.uint32)
    scaled = x * (exponent << 23).view(np.float32)
    bits = (scaled.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    first = bits.view(np.float32)
    back = ((np.uint32(254) - exponent) << 23).view(np.float32).astype(np.float64)
    return first.astype(np.float16), (scaled - first).astype(np.float16), back


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-20, 20), (-37, 0), (0, 38), (-3, 3)])
def test_two_float16_terms_keep_22_bits(low: int, high: int) -> None:
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        a = rng.standard_normal((50, 64)) * 10.0 ** rng.uniform(low, high, (50, 64))
        b = rng.standard_normal((64, 40)) * 10.0 ** rng.uniform(low, high, (64, 40))
        a, b = (x.clip(-3e38, 3e38).astype(np.float32) for x in (a, b))
        a[3], a[4, ::2] = 0, 1e-41
        (a1, a2, back_a), (b1, b2, back_b) = terms(a, 1), terms(b, 0)
    assert np.isfinite(a1).all() and np.isfinite(b1).all()
    wide = [x.astype(np.float64) for x in (a1, a2, b1, b2)]
    for x, first, rest, back in (a, wide[0], wide[1], back_a), (b, wide[2], wide[3], back_b):
        # Of each element 2^-22, and never more than 2^-38 of the largest of its row or column.
        top = np.abs(x).max(axis=1 if back is back_a else 0, keepdims=True).astype(np.float64)
        left = np.abs((first + rest) * back - x)
        assert (left <= 2.0**-22 * np.abs(x) + 2.0**-38 * top + 1e-45).all()
    a1, a2, b1, b2 = wide
    got = (a1 @ b1 + a1 @ b2 + a2 @ b1) * back_a * back_b
    a, b = a.astype(np.float64), b.astype(np.float64)
    tops = np.abs(a).max(1, keepdims=True) * np.abs(b).max(0, keepdims=True)
    bound = 3 * 2.0**-22 * (np.abs(a) @ np.abs(b)) + 64 * 2.0**-37 * tops + 1e-75
    assert (np.abs(got - a @ b) <= bound).all()
    # With the first terms alone: 2^-10.
    left = np.abs(a1 @ b1 * back_a * back_b - a @ b)
    assert (left <= 2.0**-10 * (np.abs(a) @ np.abs(b)) + 64 * 2.0**-37 * tops + 1e-75).all()
