"""A program whose graph is defined once and run many times: a network of two layers, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

import pytensorlib as torch

ROWS, INPUTS, HIDDEN, OUTPUTS = 32, 40, 20, 5
RATE = 1e-4


def by_numpy(x: Any, y: Any, w: Any, v: Any, steps: int) -> tuple[list[float], Any, Any]:
    """Return the losses of gradient descent, and the weights that it ends with."""
    losses, w, v = [], w.copy(), v.copy()
    for _ in range(steps):
        h = x @ w
        p = np.maximum(h, 0) @ v
        losses.append(float(((p - y) ** 2).sum()))
        g = 2 * (p - y)
        dv = np.maximum(h, 0).T @ g
        dw = x.T @ (g @ v.T * (h > 0))
        w, v = w - RATE * dw, v - RATE * dv
    return losses, w, v


def test_a_graph_defined_once_descends_as_numpy_does() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((ROWS, INPUTS)), rng.standard_normal((ROWS, OUTPUTS))
    start = rng.standard_normal((INPUTS, HIDDEN)), rng.standard_normal((HIDDEN, OUTPUTS))
    w, v = (torch.tensor(a, requires_grad=True) for a in start)

    @torch.graph
    def step(x: Any, y: Any) -> Any:
        loss = ((x @ w).clamp(min=0) @ v - y).square().sum()
        dw, dv = torch.autograd.grad(loss, (w, v))
        with torch.no_grad():
            w.sub_(dw, alpha=RATE)
            v.sub_(dv, alpha=RATE)
        return loss.detach()

    given = torch.from_numpy(x), torch.from_numpy(y)
    losses = [step(*given).item() for _ in range(200)]
    expected, w_end, v_end = by_numpy(x, y, *start, 200)
    assert len(step.programs) == 1
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    np.testing.assert_allclose(w.detach().numpy(), w_end, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(v.detach().numpy(), v_end, rtol=1e-8, atol=1e-10)
    assert losses[-1] < losses[0] / 20
