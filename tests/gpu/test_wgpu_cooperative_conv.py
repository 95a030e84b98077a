"""Convolutions by cooperative matrices, on adapters that have them, beside NumPy in float64."""

from __future__ import annotations

from pathlib import Path

import pytest
from child import run
from test_wgpu_cooperative import PRODUCTS, need_squares

CONVOLUTIONS = (
    PRODUCTS
    + """
    import itertools

    def three(v, n):
        return (v,) * n if isinstance(v, int) else v

    def reads(shape, kernel, stride, padding, dilation):
        '''Each tap with its places in the output and in the input, those outside left out.'''
        for tap in itertools.product(*map(range, kernel)):
            to, of = [], []
            for d, t in enumerate(tap):
                size = shape[d]
                reach = dilation[d] * (kernel[d] - 1) + 1
                n = (size + 2 * padding[d] - reach) // stride[d] + 1
                at = np.arange(n) * stride[d] + t * dilation[d] - padding[d]
                inside = (at >= 0) & (at < size)
                to.append(np.arange(n)[inside])
                of.append(at[inside])
            yield tap, np.ix_(*to), np.ix_(*of), n

    class Case:
        def __init__(self, batch, channels, out, shape, kernel, groups=1, **how):
            n = len(shape)
            self.how = {k: three(how.get(k, d), n) for k, d in
                        (("stride", 1), ("padding", 0), ("dilation", 1))}
            self.groups, self.dims = groups, n
            self.x = (batch, channels, *shape)
            self.w = (out, channels // groups, *kernel)
            sizes = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in
                     zip(shape, kernel, *(self.how[h] for h in ("stride", "padding", "dilation")))]
            self.y = (batch, out, *sizes)

        def taps(self):
            return reads(self.x[2:], self.w[2:], *(self.how[h] for h in
                                                   ("stride", "padding", "dilation")))

        def sums(self, x, w, g):
            '''The convolution of x, and the gradients for x and w of its product with g.'''
            batch, out = self.y[:2]
            s = self.groups
            x = x.reshape(batch, s, -1, *self.x[2:])
            w = w.reshape(s, out // s, -1, *self.w[2:])
            g = g.reshape(batch, s, out // s, *self.y[2:])
            y, dx, dw = np.zeros_like(g), np.zeros_like(x), np.zeros_like(w)
            for tap, to, of, _ in self.taps():
                at = (slice(None),) * 3
                part, seed, by = x[(*at, *of)], g[(*at, *to)], w[(*at, *tap)]
                y[(*at, *to)] += np.einsum("bsc...,soc->bso...", part, by)
                dx[(*at, *of)] += np.einsum("bso...,soc->bsc...", seed, by)
                dw[(*at, *tap)] += np.einsum("bsox,bscx->soc", seed.reshape(*seed.shape[:3], -1),
                                             part.reshape(*part.shape[:3], -1))
            return y.reshape(self.y), dx.reshape(self.x), dw.reshape(self.w)

        def run(self, x, w, g, b=None):
            f = getattr(F, f"conv{self.dims}d")
            x, w = (t.to("wgpu").requires_grad_() for t in (x, w))
            b = None if b is None else b.to("wgpu")
            y = f(x, w, b, groups=self.groups, **self.how)
            return y, *torch.autograd.grad(y, (x, w), g.to("wgpu"))

    def near(got, want, bound, most):
        got = to_numpy(got)
        assert np.array_equal(np.isnan(got), np.isnan(want))
        infinite = np.isinf(want)
        assert np.array_equal(got[infinite], want[infinite])
        rest = np.isfinite(want)
        worst = (abs(got - want) / np.maximum(bound, 1e-300))[rest].max(initial=0)
        assert worst <= most, worst

    def check_case(case, most, x, w, g, b=None, which=(0, 1, 2)):
        results = case.run(x, w, g, b)
        x, w, g = map(to_numpy, (x, w, g))
        with np.errstate(all="ignore"):
            wants, bounds = case.sums(x, w, g), case.sums(abs(x), abs(w), abs(g))
        if b is not None:
            plus = to_numpy(b).reshape(-1, *[1] * case.dims)
            wants[0][...] += plus
            bounds[0][...] += abs(plus)
        for i in which:
            near(results[i], wants[i], bounds[i], most)
"""
)


@need_squares
def test_convolutions_of_any_shape_match_numpy() -> None:
    run(
        CONVOLUTIONS
        + """
    cases = (
        Case(2, 6, 9, (12, 11), (3, 3), padding=1),
        Case(1, 8, 70, (9, 20), (3, 2), stride=2, padding=(1, 0)),
        Case(3, 12, 20, (7, 8), (3, 3), groups=2, padding=2, dilation=2),
        Case(1, 130, 66, (6, 6), (3, 3), padding=1),  # of several parts
        Case(1, 6, 140, (30, 30), (2, 2), stride=(2, 3), dilation=(3, 2)),
        Case(4, 6, 6, (4, 4), (4, 4), stride=5, padding=3),  # some classes have no tap
    )
    others = (
        Case(2, 6, 10, (40,), (5,), stride=3, padding=4),
        Case(2, 5, 6, (5, 6, 7), (2, 3, 2), stride=(2, 1, 3), padding=1),
    )
    torch.set_float32_matmul_precision("high")
    for case in others:
        check_case(case, 2.0**-19, *(made(torch.float32, *s) for s in (case.x, case.w, case.y)))
    for dtype, most in each():
        for case in cases:
            x, w, g, b = (made(dtype, *s) for s in (case.x, case.w, case.y, case.y[1:2]))
            check_case(case, most, x, w, g, b)
    """,
        PYTENSORLIB_WGPU_COOPERATIVE="force",
    )


@need_squares
def test_hostile_numbers_match_numpy() -> None:
    run(
        CONVOLUTIONS
        + """
    def scaled(t, shape, low, high):
        by = torch.from_numpy(10.0 ** rng.integers(low, high, shape))
        return (t.double() * by).to(t.dtype)

    case = Case(2, 6, 9, (12, 11), (3, 3), padding=1, stride=(2, 1))
    for dtype, most in each():
        if dtype is torch.float16:
            continue  # its elements are multiplied as they are
        # Places and channels of very different sizes, each alike within, and zeros among them.
        x, w, g = (made(dtype, *s) for s in (case.x, case.w, case.y))
        far = [scaled(t, (2, 1, *t.shape[2:]), -7, 18) for t in (x, g)]
        rows = scaled(w, (9, 1, 1, 1), -30, 18)
        rows[3], far[0][1, :, 2:8, 2:8], far[1][0, :, :3] = 0, 0, 0
        check_case(case, most, far[0], rows, far[1], which=(0, 1))
        near_x, near_g = scaled(x, (1, 6, 1, 1), -7, 18), scaled(g, (1, 9, 1, 1), -30, 18)
        near_x[:, 2], near_g[:, 4] = 0, 0
        check_case(case, most, near_x, w, near_g, which=(2,))
        # What is not finite spoils what it should, and nothing beside.
        x[0, 1, 3, 4], x[1, 0, 0, 0], x[1, 5, 11, 10] = float("inf"), float("nan"), -float("inf")
        x[0, 3, 3, 4] = -float("inf")
        check_case(case, most, x, w, g, which=(0,))
        g[0, 1, 3, 4], g[1, 8, 5, 10] = float("nan"), float("inf")
        check_case(case, most, made(dtype, *case.x), w, g, which=(1,))
        # Zeros outside count as such: an infinite weight makes NaN of them, as tiles do.
        w[4, 2, 0, 1], w[7, 1, 2, 2] = float("inf"), float("nan")
        got = case.run(x, w, g)
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        want = case.run(x.float(), w.float(), g.float())
        torch.set_float32_matmul_precision(before)
        x, w, g = (np.nan_to_num(abs(to_numpy(t)), posinf=0) for t in (x, w, g))
        for i, bound in enumerate(case.sums(x, w, g)):
            near(got[i], to_numpy(want[i]), bound, most)
    """,
        PYTENSORLIB_WGPU_COOPERATIVE="force",
    )


@need_squares
def test_what_follows_a_convolution_runs_in_its_store() -> None:
    run(
        CONVOLUTIONS
        + """
    from pytensorlib import _C

    torch.set_float32_matmul_precision("high")
    case = Case(2, 6, 70, (9, 11), (3, 3), padding=1)
    x, w, b, z = (made(torch.float32, *s).to("wgpu") for s in (case.x, case.w, (70,), case.y))
    found = []
    for on in False, True:
        _C._wgpu_set_fuse(0, on)
        before = torch.wgpu.memory_stats()["dispatches"]
        y = torch.relu(F.conv2d(x, w, b, padding=1)) * z
        found.append((torch.wgpu.memory_stats()["dispatches"] - before, to_numpy(y)))
    (alone, want), (count, got) = found
    assert count == alone - 2, (count, alone)
    assert np.array_equal(got, want)
    """,
        PYTENSORLIB_WGPU_COOPERATIVE="force",
    )


BITS = """
    import hashlib
    import pytensorlib as torch
    from pytensorlib.nn import functional as F

    torch.manual_seed(0)
    torch.set_float32_matmul_precision(PRECISION)
    torch.use_deterministic_algorithms(DETERMINISTIC)
    x = torch.randn(2, 8, 10, 10).to(DTYPE).to("wgpu").requires_grad_()
    w = torch.randn(40, 8, 3, 3).to(DTYPE).to("wgpu").requires_grad_()
    for _ in range(2):
        y = F.conv2d(x, w, padding=1)
        found = y, *torch.autograd.grad(y, (x, w), torch.ones_like(y))
        found = [t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() for t in found]
    print(*(hashlib.sha256(bits).hexdigest() for bits in found))
"""


def bits(
    dtype: str, precision: str = "medium", deterministic: bool = False, **env: str
) -> list[str]:
    code = BITS.replace("DTYPE", f"torch.{dtype}").replace("PRECISION", repr(precision))
    return run(code.replace("DETERMINISTIC", str(deterministic)), **env).split()


@need_squares
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_trial_compares_and_is_kept(dtype: str, tmp_path: Path) -> None:
    env = {"PYTENSORLIB_TUNE": "full", "PYTENSORLIB_CACHE_DIR": str(tmp_path)}
    plain = bits(dtype, PYTENSORLIB_WGPU_COOPERATIVE="0")
    forced = bits(dtype, PYTENSORLIB_WGPU_COOPERATIVE="force")
    assert bits(dtype, deterministic=True, **env) == plain
    chosen = bits(dtype, **env)
    assert all(c in pair for c, *pair in zip(chosen, plain, forced))
    assert bits(dtype, **env) == chosen
    # One line of the tile, and one of whether and which matrices are quicker, of each of the three
    # but the gradient of the input, which has too few rows for matrices.
    (kept,) = tmp_path.glob("*.tiles")
    assert len(kept.read_text().splitlines()) == 5
    if dtype == "float32":
        assert all(f != p for f, p in zip(forced, plain))
        assert bits(dtype, "highest", PYTENSORLIB_WGPU_COOPERATIVE="force") == plain
        assert bits(dtype, PYTENSORLIB_TUNE="0") == plain
