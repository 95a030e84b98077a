"""Shaders of lists of tensors, of searches, dropout, orthogonal factors and alignments."""

import numpy as np
import pytest
from scipy import special
from shader_runs import SHADERS, close, f32, floats, needs, rng, run

EPS = np.float32(1.2e-7)


def bindings(names, start):
    text = ""
    for k, (access, name) in enumerate(names):
        text += f"@group(0) @binding({start + k}) var<storage, {access}> {name}: array<f32>;\n"
    return text


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_norms_of_three_tensors(kind):
    x = [floats(700), floats(3, seed=1) * 9, floats(300, seed=2)]
    cases = "".join(f"case {k}u: {{ return x{k}[i]; }}\n" for k in range(3))
    tail = bindings([("read", f"x{k}") for k in range(3)], 3)
    tail += (
        f"fn load(s: u32, i: u32) -> f32 {{ switch s {{ {cases} default: {{ return 0.0; }} }} }}"
    )
    slots = [v for a in x for v in (a.size, 0, 0, 0)] + [0] * 20
    arrays = [np.zeros(6, np.float32), np.zeros(3, np.float32), *x]
    partial = run("list_norm", "f32", arrays, [0, 2, 0, 0, *slots], (6, 1, 1), tail, KIND=kind,
                  WG=64)[0]  # fmt: skip
    arrays[0] = partial
    got = run("list_norm", "f32", arrays, [3, 2, 0, 0, *[0] * 32], (3, 1, 1), tail,
              entry="finish", KIND=kind, WG=64)[1]  # fmt: skip
    order = {0: 1, 1: 2, 2: np.inf}[kind]
    close(got, [np.linalg.norm(a.astype(float), order) for a in x], 1e-5)


def test_tensors_are_scaled_in_place():
    x = [floats(70), floats(3, seed=1)]
    tail = bindings([("read_write", "x0"), ("read_write", "x1"), ("read", "factor")], 1)
    tail += """
fn update(s: u32, i: u32) {
    if (s == 0u) { x0[p.slot[0][0].y + i] *= factor[p.factor_offset]; }
    if (s == 1u) { x1[p.slot[1][0].y + i] *= factor[p.factor_offset]; }
}
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let s = min(group.x, COUNT - 1u);
    for (var i = local; i < p.slot[s][0].x; i += WG) { update(s, i); }
}
"""
    slots = [v for a in x for v in (a.size, 0, 0, 0, 0, 0, 0, 0)] + [0] * 48
    arrays = [*x, np.float32([7, -2])]
    got = run("list_scale", "f32", arrays, [1, 0, 0, 0, *slots], (2, 1, 1), tail, COUNT=2, WG=64)
    for a, b in zip(got, x, strict=False):
        np.testing.assert_array_equal(a, -2 * b)


@pytest.mark.parametrize("right", [False, True])
def test_search_finds_what_numpy_finds(right):
    edges, v = np.sort(rng().integers(0, 20, 33)), rng(1).integers(-2, 23, 300)
    edges, v = edges.astype(np.float32), v.astype(np.float32)
    params = [v.size, edges.size, v.size, 0, 0, 0, 0]
    got = run("search", "f32", [np.zeros(v.size, np.int32), edges, v], params, (2, 1, 1),
              RIGHT=right)[0]  # fmt: skip
    np.testing.assert_array_equal(got, np.searchsorted(edges, v, "right" if right else "left"))


def test_dropout_keeps_what_its_mask_says():
    philox = (SHADERS / "philox.wgsl").read_text()
    x = np.full(1001, 3, np.float32)
    bound = int(0.75 * 2**32)
    params = [x.size, 0, bound, 0, f32(2), 0, 0, 0, 5, 6, 7, 0]
    arrays = [np.zeros_like(x), np.zeros(1004, np.uint8), x]
    y, mask, _ = run("dropout", "f32", arrays, params, (1, 1, 1), philox)
    mask = mask[:1001]
    np.testing.assert_array_equal(y, 6.0 * mask)
    assert set(mask) == {0, 1} and abs(mask.mean() - 0.75) < 0.06


TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def normal(acc, *shape):
    """Returns numbers of a shader's type, complex ones with both parts."""
    x = rng().standard_normal((*shape, 2))
    return (x[..., 0] + 1j * x[..., 1] if acc[0] == "c" else x[..., 0]).astype(TYPES[acc])


@pytest.mark.parametrize("acc", TYPES)
@pytest.mark.parametrize(("m", "n"), [(20, 6), (5, 9), (7, 7), (40, 43)])
def test_reflectors_make_r_and_their_product_q(acc, m, n):
    needs(acc)
    dtype, tol = TYPES[acc], 1e-5 if acc in ("f32", "c64") else 1e-13
    a = normal(acc, 2, m, n)
    # What is left of the columns of these is less and less.
    a[1] = a[1, :1]
    k = min(m, n)
    arrays = [a, np.zeros(2, dtype), np.zeros((2, k), dtype)]
    work, _, tau = run("orthogonal", acc, arrays, [2, m, n, 1, 0, k, 0, 0], (2, 1, 1),
                       entry="householder", WG=64)  # fmt: skip
    q = np.broadcast_to(np.eye(m, dtype=dtype), (2, m, m)).copy()
    q = run("orthogonal", acc, [work, q, tau], [2, m, n, m, 0, k, 0, 0], (2, 1, 1),
            entry="reflected", WG=64)[1]  # fmt: skip
    close(q @ np.triu(work), a, 10 * tol)
    close(q.conj().transpose(0, 2, 1) @ q, np.broadcast_to(np.eye(m), (2, m, m)), 10 * tol)
    # LAPACK's signs.
    close(np.triu(work[0]), np.linalg.qr(a[0], "complete")[1], 100 * tol)


@pytest.mark.parametrize("acc", TYPES)
@pytest.mark.parametrize("entry", ["sweep", "turn"])
def test_turns_make_rows_orthogonal(entry, acc):
    needs(acc)
    n, m = 7, 12
    work, v = normal(acc, 2, n, m), np.broadcast_to(np.eye(n, dtype=TYPES[acc]), (2, n, n)).copy()
    kind = np.finfo(TYPES[acc]).dtype
    least = [*np.array([np.finfo(kind).eps], kind).view(np.uint32), 0][:2]
    a, factors = work.copy(), np.zeros(1, np.uint32)
    for _ in range(8):
        for first, end in [(0, 7)] if entry == "sweep" else [(r, r + 1) for r in range(7)]:
            params = [2, n, m, n, first, end, *least]
            groups = (2 if entry == "sweep" else 2 * 4, 1, 1)
            work, v, factors = run("orthogonal", acc, [work, v, factors], params, groups,
                                   entry=entry, WG=64)  # fmt: skip
    close(v @ a, work, 1e-4)
    lengths = np.sort(np.linalg.norm(work, axis=2))[:, ::-1]
    close(lengths, np.linalg.svd(a.astype(complex), compute_uv=False), 1e-5)
    gram = work @ work.conj().transpose(0, 2, 1)
    assert np.abs(gram - gram * np.eye(n)).max() < 1e-4


@pytest.mark.parametrize("parts", [[(0, 4)], [(0, 3), (3, 1)]])
def test_ctc_sums_over_all_alignments(parts):
    steps, classes, labels = 4, 3, [1, 2]
    x = special.log_softmax(floats(steps, 1, classes), axis=2).astype(np.float32)
    places = 2 * len(labels) + 1
    by_class = {0: [0, 2, 4], 1: [1], 2: [3]}
    entries, listed = [], []
    for c, found in by_class.items():
        entries += [c, len(found), 5 + 2 + 9 + len(listed)]
        listed += found
    table = np.int32([steps, 2, 5, 3, 7, *labels, *entries, *listed])
    spare, loss, alphas = np.zeros(1, np.float32), np.zeros(1, np.float32), []

    def params(first, n):
        return [1, first, n, classes, places, 0, 3, 0, 0, 0, 0, 0, f32(-np.inf), 0]

    for first, n in parts:
        # One row more is for the time before.
        cells = np.zeros((n + 1, places), np.float32)
        cells[0] = alphas[-1][-1] if alphas else 0
        arrays = [cells, spare, loss, x[first:][:n], table, x, x]
        made = run("ctc", "f32", arrays, params(first, n), (1, 1, 1), entry="forward")
        alphas.append(made[0].reshape(n + 1, places))
        loss = made[2]

    def collapsed(path):
        kept = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        return [c for c in kept if c != 0]

    every = [p for p in np.ndindex(*[classes] * steps) if collapsed(p) == labels]
    weights = np.array([sum(x[t, 0, c] for t, c in enumerate(p)) for p in every], float)
    close(loss, [-special.logsumexp(weights)], 1e-5)
    g, got, behind = np.float32([2]), [], 0
    for (first, n), alpha in zip(parts[::-1], alphas[::-1], strict=True):
        cells, own = np.zeros((n + 1, places), np.float32), x[first:][:n]
        cells[-1] = behind
        arrays = [alpha, cells, np.zeros_like(own), own, table, loss, g]
        for entry, which in (("backward", 1), ("spread", 2), ("gather", 2)):
            made = run("ctc", "f32", arrays, params(first, n), (1, 1, 1), entry=entry)
            arrays[which] = made[which].reshape(arrays[which].shape)
        got.insert(0, arrays[2])
        behind = arrays[1][0]
    got = np.concatenate(got)
    # What is expected of a class at a time, less how often the alignments are there.
    share = np.exp(weights - special.logsumexp(weights))
    there = np.zeros((steps, classes))
    for p, w in zip(every, share, strict=True):
        for t, c in enumerate(p):
            there[t, c] += w
    close(got[:, 0], 2 * (np.exp(x[:, 0].astype(float)) - there), 1e-5)
