"""Small systems of a batch, solved side by side, have the results of each by itself."""

from __future__ import annotations

import numpy as np
import pytest

import pytensorlib as torch

# On both sides of what is taken together.
COUNTS = (2, 15, 16, 33)


def matrices(count: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    """Return matrices, with some among them that are singular, not finite, or permutations."""
    a = torch.randn(count, n, n, dtype=dtype)
    if count > 15:
        a[1], a[2, 0], a[3, :, 0], a[4] = 0, 0, 0, a[4].round()
        a[5, 0, 0], a[6, 0, 0] = float("nan"), float("inf")
        a[7], a[8, :, -1] = torch.eye(n, dtype=dtype).flip(0), a[8, :, 0]
    return a


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n", range(1, 10))
def test_each_system_has_the_result_that_it_has_alone(n: int, dtype: torch.dtype) -> None:
    torch.manual_seed(n)
    for count in COUNTS:
        a = matrices(count, n, dtype)
        for k in (1, 8, 9):
            b = torch.randn(count, n, k, dtype=dtype)
            calls = [torch.linalg.solve_ex(a, b), torch.linalg.inv_ex(a), (torch.linalg.det(a),)]
            for i in range(count):
                alone = [torch.linalg.solve_ex(a[i], b[i]), torch.linalg.inv_ex(a[i])]
                alone.append((torch.linalg.det(a[i]),))
                for got, want in zip(calls, alone, strict=True):
                    for g, w in zip(got, want, strict=True):
                        np.testing.assert_array_equal(g[i].numpy(), w.numpy())


def test_systems_of_a_batch_are_solved() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((40, 5, 5))
    b = rng.standard_normal((40, 5, 2))
    got = torch.linalg.solve(torch.tensor(a), torch.tensor(b)).numpy()
    np.testing.assert_allclose(got, np.linalg.solve(a, b), 1e-9, 1e-9)
    np.testing.assert_allclose(torch.linalg.det(torch.tensor(a)).numpy(), np.linalg.det(a), 1e-12)
    np.testing.assert_allclose(
        torch.linalg.inv(torch.tensor(a)).numpy(), np.linalg.inv(a), 1e-9, 1e-9
    )


def test_empty_batches_and_right_sides() -> None:
    assert torch.linalg.solve(torch.ones(0, 3, 3), torch.ones(0, 3, 2)).shape == (0, 3, 2)
    eyes = torch.eye(3).expand(4, 3, 3)
    assert torch.linalg.solve(eyes, torch.ones(4, 3, 0)).shape == (4, 3, 0)
    assert torch.linalg.det(torch.ones(4, 0, 0)).tolist() == [1] * 4
