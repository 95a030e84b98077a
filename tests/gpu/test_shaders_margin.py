"""margin.wgsl and margin_backward.wgsl against NumPy through wgpu-py."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import close, fmt, needs, run
from test_shaders_centred import both

ROWS, CLASSES, LANES, PER = 5, 7, 4, 2
LABELS = np.array([[3, 0, 3, -1, 1, 1, 1], [-1, 2, 2, 2, 2, 2, 2], [6, 5, 4, 3, 2, 1, 0],
                   [0, -1, 9, 9, 9, 9, 9], [1, 2, 1, 1, -1, 0, 0]])  # fmt: skip


def expected(x, labels, weight, margin, power):
    """Returns the loss of each row, its gradient, and how often each class is a label."""
    loss, slopes, times = np.zeros(ROWS), np.zeros(x.shape), np.zeros(x.shape, np.int32)
    for i, row in enumerate(labels):
        named = list(row[: list(row).index(-1)] if -1 in row else row)
        for t in named:
            times[i, t] += 1
            for c in set(range(CLASSES)) - set(named):
                z = x[i, c] - x[i, t] + margin
                if z > 0:
                    loss[i] += weight[t] / CLASSES * z**power
                    slope = weight[t] / CLASSES * power * z ** (power - 1)
                    slopes[i, c] += slope
                    slopes[i, t] -= slope
    return loss, slopes, times


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("many", "square", "weighted"), [(1, 0, 0), (0, 0, 1), (0, 1, 0)])
@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_margin_and_its_gradient_match_numpy(acc, many, square, weighted, parts):
    needs(acc)
    if parts > 1 and not many:
        pytest.skip("the slope at a label is a sum over its row")
    rng = np.random.default_rng(0)
    real = "float64" if acc == "f64" else "float32"
    x = rng.standard_normal((ROWS, CLASSES)).astype(real)
    labels = LABELS if many else np.array([[3], [0], [6], [2], [2]])
    w = rng.random(CLASSES).astype(real)
    w[2] = 0
    loss, slopes, times = expected(
        x.astype(np.float64), labels, w if weighted else np.ones(CLASSES), 0.5, 1 + square
    )
    constants = {"MANY": many, "SQUARE": square, "HAS_WEIGHT": weighted, "ROWS": PER}
    constants |= {"WG": LANES * PER, **{name: fmt(x) for name in "XYW"}}
    size = [ROWS, CLASSES, parts, -(-CLASSES // parts), 0, 0, 0, 0, 0]
    numbers = [*both(0.5, acc), *both(1 / CLASSES, acc), *both(0.25, acc)]
    tolerance = 1e-5 if acc == "f32" else 1e-12
    groups = (-(-ROWS * parts // PER), 1, 1)
    for alone in range(2 if parts == 1 else 1):
        y = np.zeros(1 if alone else ROWS * parts, real)
        lanes = {"SHARE": LANES, "LANES": LANES * PER if alone else LANES, "ALONE": alone}
        y, found, fault, *_ = run(
            "margin", acc,
            [y, np.full(x.shape, 77, np.int32), np.zeros(8, np.int32), x, labels, w],
            [*size, 1, 2, 0, *numbers], (1, 1, 1) if alone else groups, **lanes, **constants,
        )  # fmt: skip
        assert not fault.any()
        close(y.sum() if alone else y.reshape(ROWS, parts).sum(1),
              0.25 * (loss.sum() if alone else loss), tolerance)  # fmt: skip
        if many:
            assert (found == times).all()
    g = rng.standard_normal(2 * ROWS).astype(real)
    d, *_ = run(
        "margin_backward", acc, [np.zeros(x.shape, real), g, x, labels, times, w],
        [*size, 1, 2, 0, *numbers], groups, LANES=LANES, G=fmt(x), **constants,
    )  # fmt: skip
    close(d, 0.25 * g[1::2, None] * slopes, tolerance)


def test_margin_notes_a_label_that_there_is_not():
    x, labels = np.zeros((ROWS, CLASSES), "float32"), np.full((ROWS, 1), 2)
    labels[3] = CLASSES
    size = [ROWS, CLASSES, 1, CLASSES, 0, 0, 0, 0, 0]
    numbers = [*both(1.0, "f32"), *both(1.0, "f32"), *both(1.0, "f32")]
    arrays = [np.zeros(ROWS, "float32"), x, np.zeros(8, np.int32), x, labels, x]
    _, _, fault, *_ = run(
        "margin", "f32", arrays, [*size, 5, 6, 0, *numbers], (ROWS, 1, 1), SHARE=4, LANES=4, WG=4
    )
    assert fault.tolist()[:6] == [1, CLASSES, 0, CLASSES, 5, 6]
