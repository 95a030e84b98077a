"""Products of matrices against float64 NumPy, at the sizes where another kernel takes over."""

import itertools
from pathlib import Path

import child
import numpy as np
import pytest

import pytensorlib as t
import pytensorlib as torch

# Tiny, a row, few rows, one packed panel, blocks, more than one block, depth alone.
SIZES = [
    (1, 1, 1),
    (1, 1, 20_001),
    (1, 67, 70),
    (7, 300, 300),
    (9, 5, 130),
    (16, 3, 66),
    (17, 33, 65),
    (64, 100, 100),
    (130, 129, 257),
    (1300, 40, 30),
    (5, 7, 9000),
    (5, 1290, 40),
    (30, 40, 1030),
    (7, 90, 2111),
    (16, 40, 193),
    (4, 5, 0),
    (300, 70, 0),
]
# The layout of an operand of the given rows and columns.
LAYOUTS = {
    "rows": lambda m, n: (m, n, slice(None), slice(None), False),
    "columns": lambda m, n: (n, m, slice(None), slice(None), True),
    "steps": lambda m, n: (2 * m, 3 * n + 1, slice(None, None, 2), slice(1, None, 3), False),
}
# Bounds of |error| / (|A| |B|): some units in the last place of the sum, and of what is stored.
BOUNDS = {"float32": 4e-7, "float64": 1e-15, "float16": 1e-3, "bfloat16": 8e-3}


def operand(m: int, n: int, layout: str, dtype: str, seed: int) -> tuple[t.Tensor, np.ndarray]:
    rows, cols, i, j, transposed = LAYOUTS[layout](m, n)
    a = np.random.default_rng(seed).standard_normal((rows, cols))
    x = t.from_numpy(a).to(getattr(t, dtype))[i, j]
    x = x.t() if transposed else x
    return x, x.to(t.float64).numpy()


def close(y: t.Tensor, want: np.ndarray, scale: np.ndarray, dtype: str) -> None:
    assert tuple(y.shape) == want.shape
    error = np.abs(y.to(t.float64).numpy() - want)
    assert (error <= BOUNDS[dtype] * scale).all(), (error / np.maximum(scale, 1e-30)).max()


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_of_any_layout(size: tuple[int, int, int], dtype: str) -> None:
    m, n, k = size
    pairs = [*itertools.product(("rows", "columns"), repeat=2), ("steps", "steps")]
    for left, right in pairs:
        (a, x), (b, y) = operand(m, k, left, dtype, 0), operand(k, n, right, dtype, 1)
        close(a @ b, x @ y, np.abs(x) @ np.abs(y), dtype)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("size", [(3, 4, 5), (16, 70, 80), (33, 65, 70), (200, 190, 300)], ids=str)
def test_what_is_added_may_have_any_steps(size: tuple[int, int, int], dtype: str) -> None:
    m, n, k = size
    (a, x), (b, y) = operand(m, k, "rows", dtype, 0), operand(k, n, "columns", dtype, 1)
    for rows, cols in [(m, n), (1, n), (m, 1), (1, 1)]:
        for layout in LAYOUTS:
            c, z = operand(rows, cols, layout, dtype, 2)
            want = 0.5 * z + 2.0 * (x @ y)
            scale = 0.5 * np.abs(z) + 2.0 * (np.abs(x) @ np.abs(y))
            close(t.addmm(c, a, b, beta=0.5, alpha=2), want, scale, dtype)
    c = t.full((m, n), float("nan"), dtype=a.dtype)
    close(t.addmm(c, a, b, beta=0), x @ y, np.abs(x) @ np.abs(y), dtype)


# Two are as deep as the `gemm` crate cuts by the sides of the result, two would leave it a row.
SHAPES = [(64, 100, 100), (256, 300, 520), (8, 640, 512), (128, 16, 541), (300, 32, 600)]
SHAPES += [(33, 33, 513), (513, 128, 300)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_do_not_depend_on_the_number_of_threads(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    before = t.get_num_threads()
    x, w, b = t.randn(m, k), t.randn(n, k), t.randn(n)
    try:
        results = []
        for threads in (1, 2, 5):
            t.set_num_threads(threads)
            dot = t.dot(x.view(-1), x.view(-1))
            results.append([t.nn.functional.linear(x, w, b), x @ w.t().contiguous(), dot])
        for y in results[1:]:
            assert all(t.equal(a, b) for a, b in zip(results[0], y))
    finally:
        t.set_num_threads(before)


def test_values_that_are_not_finite_reach_only_their_row() -> None:
    for m, n, k in [(3, 40, 100), (40, 40, 40), (150, 150, 150)]:
        a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        a[1, 2], a[2, 3] = np.inf, np.nan
        y = (t.from_numpy(a) @ t.from_numpy(b)).numpy()
        assert np.isinf(y[1]).all() and np.isnan(y[2]).all() and (y[0] == k).all()
        tiny = t.full((m, k), 1e-40) @ t.ones(k, n)
        assert (tiny.numpy() > 0).all()
        large = t.full((m, k), 3e38) @ t.full((k, n), 1.0 / k)
        np.testing.assert_allclose(large.numpy(), 3e38, rtol=1e-5)


# Products in a software model of AMX tiles, on any processor with AVX2.
MODELLED = """
import numpy as np
import pytensorlib as t
a, b = (np.random.default_rng(i).standard_normal((96, 1024)).astype("float32") for i in (0, 1))
scale = np.abs(a).astype(float) @ np.abs(b).T.astype(float)
for precision in ("highest", "high", "medium"):
    t.set_float32_matmul_precision(precision)
    y = t.nn.functional.linear(t.from_numpy(a), t.from_numpy(b)).numpy()
    print((np.abs(y - a.astype(float) @ b.T.astype(float)) / scale).max())
"""


def test_precision_chooses_the_terms_of_tiles() -> None:
    cpu = Path("/proc/cpuinfo")
    if not cpu.exists() or "avx2" not in cpu.read_text():
        pytest.skip("needs AVX2")
    told = child.run(MODELLED, PYTENSORLIB_CPU="amx-model")
    highest, high, medium = map(float, told.split())
    # PyTorch's largest error with "highest" is 1.3e-7.
    assert highest < 1.3e-7 < 4e-7 < high < 4e-6 < 2e-5 < medium < 1e-3


def test_linear_of_a_transposed_batch_takes_a_bias_of_another_type() -> None:
    # PyTorch 2.13: only where the batch is not contiguous.
    x, w, b = t.ones(4, 2, 3), t.ones(5, 3), t.full((5,), 2.0, dtype=t.float16)
    y = t.nn.functional.linear(x.transpose(0, 1), w, b)
    assert y.dtype == t.float32
    assert y.tolist() == [[[5.0] * 5] * 4] * 2
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        t.nn.functional.linear(x, w, b)


def test_addr_scales_in_the_promoted_type() -> None:
    c, a, b = torch.tensor([[0.3007]]).bfloat16(), torch.tensor([1.2345]), torch.tensor([1.777])
    want = 0.6 * 0.30078125 + 0.2 * 1.2345 * 1.777
    assert torch.addr(c, a, b, beta=0.6, alpha=0.2).item() == pytest.approx(want, rel=1e-6)


def test_einsum_sums_small_integers_in_int64() -> None:
    x = torch.full((1, 2, 3), 100, dtype=torch.int8)
    y = torch.einsum("...ik,...j->ij", x, torch.ones(3, dtype=torch.int8))
    assert y.dtype == torch.int64
    assert y.tolist() == [[300] * 3] * 2
