"""Sorting, selecting, indexing and reducing against NumPy, at sizes where another path is taken."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch

RNG = np.random.default_rng(0)
# Below and above what one thread sorts, and what is sorted by comparison.
LENGTHS = [1, 127, 129, 9000, 70_000]
TYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def sample(n: int, dtype: str) -> np.ndarray:
    """Return values with many equal ones, and NaN and both zeros among floats."""
    if dtype == "bool":
        return RNG.integers(0, 2, n).astype(bool)
    if not dtype.startswith("float"):
        wide = np.iinfo(dtype)
        return RNG.integers(max(wide.min, -(2**40)), min(wide.max, 2**40), n).astype(dtype)
    x = (RNG.standard_normal(n) * 100).astype(dtype)
    x[RNG.integers(0, n, n // 10)] = 0.0
    x[RNG.integers(0, n, n // 10)] = -0.0
    x[RNG.integers(0, n, n // 50)] = np.nan
    return x


def order(x: np.ndarray, *, descending: bool) -> np.ndarray:
    """Return a stable order in which NaN counts as largest."""
    if not descending:
        return np.argsort(x, kind="stable")
    return (len(x) - 1 - np.argsort(x[::-1], kind="stable"))[::-1]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_sort_any_type_is_stable_and_nan_is_last(n: int, dtype: str) -> None:
    x = sample(n, dtype)
    for descending in (False, True):
        want = order(x, descending=descending)
        values, at = torch.sort(torch.from_numpy(x), descending=descending, stable=True)
        np.testing.assert_array_equal(at.numpy(), want)
        np.testing.assert_array_equal(values.numpy(), x[want])
        got = torch.argsort(torch.from_numpy(x), descending=descending, stable=True)
        np.testing.assert_array_equal(got.numpy(), want)
        k = min(n, 7)
        values, at = torch.topk(torch.from_numpy(x), k, largest=descending)
        np.testing.assert_array_equal(at.numpy(), want[:k])
        np.testing.assert_array_equal(values.numpy(), x[want[:k]])


@pytest.mark.parametrize("shape", [(3, 600, 5), (600, 40), (2, 1030)])
def test_sort_any_dimension_equals_numpy(shape: tuple[int, ...]) -> None:
    x = RNG.integers(-300, 300, shape)
    for dim in range(len(shape)):
        want = np.argsort(x, dim, kind="stable")
        values, at = torch.sort(torch.from_numpy(x), dim, stable=True)
        np.testing.assert_array_equal(at.numpy(), want)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, want, dim))
        top = torch.topk(torch.from_numpy(x), 2, dim, largest=False).values
        np.testing.assert_array_equal(top.numpy(), np.sort(x, dim).take([0, 1], dim))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_unique_by_counting_and_by_sorting_equals_numpy(n: int, dtype: str) -> None:
    for x in (np.nan_to_num(sample(n, dtype)), RNG.integers(-20, 20, n).astype(dtype)):
        want = np.unique(x, return_inverse=True, return_counts=True)
        got = torch.unique(torch.from_numpy(x), return_inverse=True, return_counts=True)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b)


def test_unique_each_nan_is_one_of_its_own() -> None:
    values, counts = torch.unique(torch.tensor([np.nan, 1.0, np.nan, 1.0]), return_counts=True)
    assert values.numel() == 3
    assert counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize("edges", [0, 1, 2, 3, 1000, 1025])
def test_searchsorted_any_number_of_edges_equals_numpy(edges: int) -> None:
    s = np.sort(RNG.integers(-50, 50, edges).astype("float32"))
    x = np.concatenate([RNG.integers(-60, 60, 5003).astype("float32"), [np.nan, np.inf]])
    x = x.astype("float32")
    for side in ("left", "right"):
        got = torch.searchsorted(torch.from_numpy(s), torch.from_numpy(x), side=side)
        np.testing.assert_array_equal(got.numpy(), np.searchsorted(s, x, side))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1,), (63,), (3, 70), (300, 301), (7, 50, 90)])
def test_masks_any_type_equals_numpy(shape: tuple[int, ...], dtype: str) -> None:
    x = sample(int(np.prod(shape)), dtype).reshape(shape)
    m = RNG.integers(0, 2, shape).astype(bool)
    tx, tm = torch.from_numpy(x), torch.from_numpy(m)
    np.testing.assert_array_equal(tx[tm].numpy(), x[m])
    np.testing.assert_array_equal(torch.masked_select(tx, tm).numpy(), x[m])
    np.testing.assert_array_equal(tx.nonzero().numpy(), np.argwhere(x))
    for got, want in zip(tx.nonzero(as_tuple=True), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(tx.masked_fill(tm, 1).numpy(), np.where(m, np.ones_like(x), x))
    back = tuple(reversed(range(len(shape))))
    np.testing.assert_array_equal(tx.permute(back)[tm.permute(back)].numpy(), x.T[m.T])


@pytest.mark.parametrize("shape", [(40, 50), (400, 300), (30, 40, 50), (70_000,)])
def test_gather_and_scatter_add_any_dimension_equals_numpy(shape: tuple[int, ...]) -> None:
    x = RNG.integers(-9, 9, shape)
    for dim, n in enumerate(shape):
        at = RNG.integers(0, n, shape)
        tx, ta = torch.from_numpy(x), torch.from_numpy(at)
        np.testing.assert_array_equal(tx.gather(dim, ta).numpy(), np.take_along_axis(x, at, dim))
        where = list(np.indices(shape, sparse=True))
        where[dim] = at
        want = x.copy()
        np.add.at(want, tuple(where), x)
        np.testing.assert_array_equal(tx.scatter_add(dim, ta, tx).numpy(), want)
        rows = RNG.integers(0, n, 500)
        source = np.take(x, rows[::-1], dim)
        want = np.moveaxis(x.copy(), dim, 0)
        np.add.at(want, rows, np.moveaxis(source, dim, 0))
        got = tx.index_add(dim, torch.from_numpy(rows), torch.from_numpy(source))
        np.testing.assert_array_equal(np.moveaxis(got.numpy(), dim, 0), want)


@pytest.mark.parametrize("kind", ["gather", "scatter_add", "index_select", "index"])
def test_index_out_of_range_in_a_long_row_raises(kind: str) -> None:
    x, at = torch.zeros(50_000), torch.zeros(50_000, dtype=torch.int64)
    at[44_000] = 50_000
    calls = {
        "gather": lambda: x.gather(0, at),
        "scatter_add": lambda: x.scatter_add(0, at, x),
        "index_select": lambda: x.index_select(0, at),
        "index": lambda: x[at],
    }
    with pytest.raises((IndexError, RuntimeError), match="50000"):
        calls[kind]()


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 700), (700, 5), (3, 40, 50), (100_000,), (20, 64, 3)])
def test_any_and_all_any_dimension_equals_numpy(shape: tuple[int, ...], dtype: str) -> None:
    for share in (0.0, 0.001, 0.999, 1.0):
        x = (RNG.random(shape) < share).astype("float32")
        x[x == 0] = -0.0
        t = torch.from_numpy(x).to(getattr(torch, dtype))
        assert t.any().item() == x.any()
        assert t.all().item() == x.all()
        for dim in range(len(shape)):
            np.testing.assert_array_equal(t.any(dim).numpy() != 0, x.any(dim))
            np.testing.assert_array_equal(t.all(dim).numpy() != 0, x.all(dim))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "uint8"])
def test_sum_of_narrow_types_is_added_up_in_wider_ones(dtype: str) -> None:
    x = torch.from_numpy(RNG.integers(0, 100, (40, 3000))).to(getattr(torch, dtype))
    exact = x.double().numpy()
    for dim in (0, 1, (0, 1)):
        got, want = x.sum(dim).double().numpy(), exact.sum(dim)
        # One rounding to the result's type.
        bound = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(dtype, 2.0**-24)
        want = np.where(want > 65504, np.inf, want) if dtype == "float16" else want
        np.testing.assert_allclose(got, want, rtol=bound)


def test_float16_values_widen_exactly() -> None:
    bits = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for x in (bits, bits[::-1].copy()):
        # Rows of 64 equal values: their largest is the value itself.
        rows = np.repeat(x[:, None], 64, 1)
        with np.errstate(all="ignore"):
            got = torch.from_numpy(rows).sum(1, dtype=torch.float32).numpy()
            np.testing.assert_array_equal(got, x.astype("float32") * np.float32(64))


@pytest.mark.parametrize("shape", [(64, 3000), (3000, 64), (8, 5, 900), (20, 100_000)])
def test_variance_and_logsumexp_equal_float64(shape: tuple[int, ...]) -> None:
    x = (RNG.standard_normal(shape) * 3 + 100).astype("float32")
    t, exact = torch.from_numpy(x), x.astype("float64")
    for dim in range(len(shape)):
        var, mean = torch.var_mean(t, dim)
        np.testing.assert_allclose(mean.numpy(), exact.mean(dim), rtol=1e-6)
        np.testing.assert_allclose(var.numpy(), exact.var(dim, ddof=1), rtol=1e-4)
        top = exact.max(dim, keepdims=True)
        want = np.log(np.exp(exact - top).sum(dim)) + top.squeeze(dim)
        np.testing.assert_allclose(t.logsumexp(dim).numpy(), want, rtol=1e-6)
        values, at = t.max(dim)
        np.testing.assert_array_equal(at.numpy(), x.argmax(dim))
        np.testing.assert_array_equal(values.numpy(), x.max(dim))


@pytest.mark.parametrize("shape", [(1, 5), (7, 300), (9, 2, 33), (100, 257)])
def test_cumsum_of_several_lines_at_a_time_equals_numpy(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape).astype("float32")
    for dim in range(len(shape)):
        got = torch.from_numpy(x).cumsum(dim).numpy()
        np.testing.assert_allclose(got, x.astype("float64").cumsum(dim), rtol=1e-5, atol=1e-5)


def test_counts_equal_numpy() -> None:
    x = RNG.integers(0, 300, 50_000)
    got = torch.bincount(torch.from_numpy(x), minlength=400)
    np.testing.assert_array_equal(got.numpy(), np.bincount(x, minlength=400))
    w = RNG.random(50_000)
    got = torch.bincount(torch.from_numpy(x), torch.from_numpy(w))
    np.testing.assert_allclose(got.numpy(), np.bincount(x, w), rtol=1e-12)
    y = RNG.integers(-40, 40, 70_000) / 8
    got = torch.histc(torch.from_numpy(y), 16, -4, 4)
    np.testing.assert_array_equal(got.numpy(), np.histogram(y, 16, (-4, 4))[0])
