"""Sampling at a grid, beside its definition: a point sums the elements near it by their weights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F

HOW, BORDER = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
WAYS = list(itertools.product(HOW, BORDER, (False, True)))


def bounded(x: float, n: int, border: str, corners: bool) -> float:
    """Return a coordinate as the padding has it."""
    if border == "reflection":
        low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
        while high > low and not low <= x <= high:
            x = 2 * low - x if x < low else 2 * high - x
        x = 0.0 if high == low else x
    return x if border == "zeros" else min(max(x, 0.0), n - 1.0)


def taps(x: float, n: int, how: str, border: str, corners: bool) -> list[tuple[int, float]]:
    """Return the elements along one dimension that a coordinate reads, and their weights."""
    x = (x + 1) / 2 * (n - 1) if corners else ((x + 1) * n - 1) / 2
    if how == "nearest":
        found = [(round(bounded(x, n, border, corners)), 1.0)]  # ties go to the even one
    elif how == "bilinear":
        x = bounded(x, n, border, corners)
        low = int(np.floor(x))
        found = [(low, 1 - (x - low)), (low + 1, x - low)]
    else:
        low, found = int(np.floor(x)), []
        for at in range(low - 1, low + 3):
            d = abs(x - at)
            near, far = (1.25 * d - 2.25) * d * d + 1, ((-0.75 * d + 3.75) * d - 6) * d + 3
            found.append((round(bounded(at, n, border, corners)), near if d <= 1 else far))
    return [(at, w) for at, w in found if 0 <= at < n]


def sampled(x: np.ndarray, grid: np.ndarray, *way: Any) -> np.ndarray:
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        along = [taps(c, n, *way) for c, n in zip(grid[at], x.shape[:1:-1])]
        for each in itertools.product(*along):
            place = tuple(i for i, _ in reversed(each))
            weight = np.prod([w for _, w in each])
            out[(at[0], slice(None), *at[1:])] += weight * x[(at[0], slice(None), *place)]
    return out


def made(shape: tuple[int, ...], points: tuple[int, ...], far: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    grid = rng.uniform(-far, far, (shape[0], *points, len(shape) - 2))
    return rng.standard_normal(shape), grid


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize(("how", "border", "corners"), WAYS)
def test_points_inside_at_the_edge_and_far_beyond(
    how: str, border: str, corners: bool, dtype: torch.dtype
) -> None:
    x, grid = (torch.tensor(v).to(dtype) for v in made((2, 3, 6, 9), (17, 19), 1.6))
    if dtype == torch.float16:
        # Coordinates of half types are rounded on the way, as PyTorch's are: not these.
        x, grid = F.pad(x[..., :8], (0, 0, 1, 1)), (grid * 8).round() / 8
    else:
        grid[0, 0] = 40 * grid[0, 0]
    want = sampled(x.double().numpy(), grid.double().numpy(), how, border, corners)
    got = F.grid_sample(x, grid, mode=how, padding_mode=border, align_corners=corners)
    within = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 6e-3}[dtype]
    np.testing.assert_allclose(got.double().numpy(), want, rtol=within, atol=within)


@pytest.mark.parametrize(("how", "border", "corners"), [w for w in WAYS if w[0] != "bicubic"])
def test_points_of_volumes(how: str, border: str, corners: bool) -> None:
    x, grid = made((2, 2, 4, 5, 3), (7, 6, 9), 1.4)
    got = F.grid_sample(
        torch.tensor(x), torch.tensor(grid), mode=how, padding_mode=border, align_corners=corners
    )
    want = sampled(x, grid, how, border, corners)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("how", "border", "corners"), WAYS)
def test_gradients_of_points_inside_and_beyond(how: str, border: str, corners: bool) -> None:
    x, grid = made((2, 2, 5, 4), (3, 6), 1.5)
    leaves = [torch.tensor(v, requires_grad=True) for v in (x, grid)]
    way = {"mode": how, "padding_mode": border, "align_corners": corners}
    assert torch.autograd.gradcheck(lambda x, grid: F.grid_sample(x, grid, **way), leaves)
    if how != "bicubic":
        x, grid = made((1, 2, 3, 4, 2), (2, 3, 3), 1.5)
        leaves = [torch.tensor(v, requires_grad=True) for v in (x, grid)]
        assert torch.autograd.gradcheck(lambda x, grid: F.grid_sample(x, grid, **way), leaves)


@pytest.mark.parametrize("how", HOW)
def test_gradients_of_many_points_are_sums_over_blocks(how: str) -> None:
    x, grid = made((1, 2, 6, 7), (23, 29), 1.3)
    leaves = [torch.tensor(v, requires_grad=True) for v in (x, grid)]
    F.grid_sample(*leaves, mode=how, align_corners=False).sum().backward()
    total, each = torch.zeros(1, 2, 6, 7).double(), []
    for row in leaves[1].detach().split(1, 1):
        own = leaves[0].detach().requires_grad_(), row.clone().requires_grad_()
        F.grid_sample(*own, mode=how, align_corners=False).sum().backward()
        total += own[0].grad
        each.append(own[1].grad)
    torch.testing.assert_close(leaves[0].grad, total)
    assert torch.equal(leaves[1].grad, torch.cat(each, 1))


def test_what_lies_nowhere_and_what_is_not_a_number() -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[[[1.0, inf], [-0.0, 4.0]]]])
    grid = torch.tensor([[[[nan, 0.0], [inf, 0.0], [1e30, 0.0], [-1.0, 1.0], [-1.0, -1.0]]]])
    zeros = F.grid_sample(x, grid, align_corners=True)[0, 0, 0].tolist()
    assert np.isnan(zeros[:2]).all()  # between no two elements
    assert zeros[2] == 0
    nearest = F.grid_sample(x, grid, mode="nearest", align_corners=True)[0, 0, 0]
    assert nearest.tolist() == [0, 0, 0, 0, 1]
    assert nearest.signbit().tolist() == [False, False, False, True, False]
    # An element beyond the image is zero, however large those in it are.
    beyond = F.grid_sample(x, torch.tensor([[[[5.0, -1.0]]]]), align_corners=True)
    assert beyond.item() == 0
    edge = F.grid_sample(x, grid, padding_mode="border", align_corners=True)[0, 0, 0]
    assert edge.isfinite().tolist()[-2:] == [True, False]
