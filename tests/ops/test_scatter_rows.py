"""Rows of every length are gathered and scattered, and what no index may name is refused."""

import numpy as np
import pytest

import pytensorlib as torch


@pytest.mark.parametrize("n", [1, 7, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_rows_of_every_length_equal_those_of_numpy(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 3, (4, n))
    i = rng.integers(0, n, (4, n))
    # Few of one place, so that sums of narrow types are exact.
    t, index = torch.from_numpy(x).to(getattr(torch, dtype)), torch.from_numpy(i)
    assert np.array_equal(t.gather(1, index).long().numpy(), np.take_along_axis(x, i, 1))
    want = np.zeros_like(x)
    np.add.at(want, (np.arange(4)[:, None], i), x)
    got = torch.zeros(4, n, dtype=t.dtype).scatter_add_(1, index, t)
    assert np.array_equal(got.long().numpy(), want)
    want = np.zeros_like(x)
    np.put_along_axis(want, i, x, 1)
    assert np.array_equal(torch.zeros_like(t).scatter_(1, index, t).long().numpy(), want)
    # Along the rows, and into a view.
    rows = torch.from_numpy(rng.integers(0, 4, (4, n)))
    wide = torch.zeros(4, 2 * n, dtype=t.dtype)
    wide[:, ::2].scatter_add_(0, rows, t)
    want = np.zeros_like(x)
    np.add.at(want, (rows.numpy(), np.arange(n)), x)
    assert np.array_equal(wide[:, ::2].long().numpy(), want)


@pytest.mark.parametrize("n", [5, 1024, 2500])
@pytest.mark.parametrize("bad", [-1, "size", 2**40, -(2**63)])
def test_index_beyond_the_size_is_refused_wherever_it_stands(n, bad):
    bad = n if bad == "size" else bad
    x = torch.ones(2, n)
    for at in (0, n // 2, n - 1):
        index = torch.zeros(2, n, dtype=torch.int64)
        index[1, at] = bad
        calls = [
            lambda i: x.gather(1, i),
            lambda i: torch.zeros(2, n).scatter_(1, i, x),
            lambda i: torch.zeros(2, n).scatter_add_(1, i, x),
            lambda i: torch.zeros(2, n).scatter_reduce_(1, i, x, "amax"),
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match="out of bounds"):
                call(index)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
@pytest.mark.parametrize("width", [1, 5, 16, 37, 64, 100])
def test_added_rows_are_rounded_one_after_the_other(width: int, dtype: str) -> None:
    rng = np.random.default_rng(width)
    t = getattr(torch, dtype)
    x = torch.from_numpy(rng.normal(size=(6, width)) * 100).to(t)
    rows = torch.from_numpy(rng.normal(size=(50, width)) * 100).to(t)
    index = torch.from_numpy(rng.integers(0, 6, 50))
    want = x.clone()
    for i, row in zip(index.tolist(), rows, strict=True):
        want[i] = (want[i].double() + row.double()).to(t)
    assert torch.equal(x.clone().index_add_(0, index, rows), want)
    # Along the last dimension, and in a view of every second one.
    turned = x.t().clone().index_add_(1, index, rows.t().contiguous())
    assert torch.equal(turned.t(), want)
    wide = torch.zeros(12, width, dtype=t)
    wide[::2] = x
    wide[::2].index_add_(0, index, rows)
    assert torch.equal(wide[::2], want) and not wide[1::2].any()


# Of PyTorch 2.13: reduction, whether the start counts, float16, bfloat16.
STEPS = [
    ("prod", True, [float("-inf"), -3.8125, 1.25], [-4992.0, -3.828125, 1.25]),
    ("prod", False, [float("-inf"), -2.541015625, 5.0], [-2496.0, -2.53125, 5.0]),
    ("mean", True, [8.3984375, -0.000244140625, 2.625], [8.375, -0.0009765625, 2.625]),
    ("mean", False, [10.0, -0.50048828125, 5.0], [10.0, -0.494140625, 5.0]),
]


@pytest.mark.parametrize(("how", "itself", "half", "brain"), STEPS)
@pytest.mark.parametrize("width", [1, 21])
def test_index_reduce_of_half_types_rounds_each_step_as_pytorchs(how, itself, half, brain, width):
    at = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2])
    rows = torch.tensor([-250.0, 250, 40, 0.001, 1.1, -3.3, 0.7, 5])[:, None].expand(-1, width)
    for dtype, want in ((torch.float16, half), (torch.bfloat16, brain)):
        x = torch.tensor([2.0, 1.5, 0.25], dtype=dtype)[:, None].repeat(1, width)
        got = x.index_reduce(0, at, rows.to(dtype), how, include_self=itself)
        assert torch.equal(got, torch.tensor(want, dtype=dtype)[:, None].expand(-1, width))
        x.index_reduce_(0, at, rows.to(dtype), how, include_self=itself)
        assert torch.equal(x, got)
