"""Steps of optimizers in shaders, through wgpu-py, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from shader_runs import close, f32, floats, run


def step_of(file, fields, lists, head, more=(0, 0), **constants):
    """Runs an optimizer's step; `lists` has the fields of each parameter and its gradient last.

    Returns the fields afterwards. The tail binds the fields of all parameters, then the gradients.
    """
    n = len(lists)
    tail, arrays, slots, groups = "", [], [], 0
    for k, fs in enumerate(lists):
        tail += "".join(
            f"@group(0) @binding({k * len(fields) + j + 1}) "
            f"var<storage, read_write> {f}{k}: array<u32>;\n" for j, f in enumerate(fields)
        )  # fmt: skip
        arrays += fs[:-1]
        slots += [fs[0].size, *[0] * 5, *more]
        groups += -(-fs[0].size // 256)
    for k in range(n):
        tail += (
            f"@group(0) @binding({n * len(fields) + k + 1}) var<storage, read> g{k}: array<u32>;\n"
        )
    tail += """@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var i = id.x;
"""
    for k in range(n):
        load = "".join(f"s.{f} = bitcast<f32>({f}{k}[i]); " for f in fields)
        store = "".join(f"{f}{k}[i] = bitcast<u32>(s.{f}); " for f in fields)
        tail += f"""
    if (i < {-(-lists[k][0].size // 256) * 256}u) {{
        if (i >= p.slot[{k}][0].x) {{ return; }}
        var s: State;
        {load}
        stepped(&s, bitcast<f32>(g{k}[i]), {k}u);
        {store}
        return;
    }}
    i -= {-(-lists[k][0].size // 256) * 256}u;
"""
    out = run(file, "f32", [*arrays, *[fs[-1] for fs in lists]], [*head, *slots], (groups, 1, 1),
              tail + "}\n", **constants)  # fmt: skip
    return [out[k * len(fields) : (k + 1) * len(fields)] for k in range(n)]


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_two_steps_match_numpy(nesterov):
    sizes = (300, 70)
    x = [floats(n, seed=n) for n in sizes]
    g = [floats(n, seed=n + 1) for n in sizes]
    lr, decay, mu, damp = 0.1, 0.01, 0.9, 0.0 if nesterov else 0.2
    got = [[a, np.zeros_like(a)] for a in x]
    want, buffers = [a.astype(np.float64) for a in x], [None, None]
    for step in range(2):
        constants = {"HAS_MOMENTUM": 1, "FIRST": step == 0, "NESTEROV": nesterov}
        lists = [[*fields, a] for fields, a in zip(got, g)]
        got = step_of("sgd", "xm", lists, map(f32, (lr, decay, mu, damp)), **constants)
        for k in range(2):
            d = g[k] + decay * want[k]
            buffers[k] = d if buffers[k] is None else mu * buffers[k] + (1 - damp) * d
            want[k] -= lr * (d + mu * buffers[k] if nesterov else buffers[k])
    for k in range(2):
        close(got[k][0], want[k], 1e-6)


@pytest.mark.parametrize(("decoupled", "amsgrad"), [(False, False), (True, False), (False, True)])
def test_adam_three_steps_match_numpy(decoupled, amsgrad):
    x = floats(300)
    lr, b1, b2, eps, decay = 0.01, 0.9, 0.99, 1e-8, 0.1
    got = [x, *[np.zeros_like(x) for _ in range(3)]]
    want = x.astype(np.float64)
    wm, wv, wtop = np.zeros(300), np.zeros(300), np.zeros(300)
    for t in range(1, 4):
        g = floats(300, seed=t) * (5 if t == 1 else 0.1)
        step, root = lr / (1 - b1**t), np.sqrt(1 - b2**t)
        head = [*map(f32, (lr, decay, 1 - b1, b2, 1 - b2, eps)), 0, 0]
        constants = {"DECOUPLED": decoupled, "AMSGRAD": amsgrad}
        fields, lists = ("x", "m", "v", "top"), [[*got, g.astype(np.float32)]]
        [got] = step_of("adam", fields, lists, head, (f32(step), f32(root)), **constants)
        d = g.astype(np.float64)
        if decoupled:
            want -= lr * decay * want
        else:
            d = d + decay * want
        wm = b1 * wm + (1 - b1) * d
        wv = b2 * wv + (1 - b2) * d * d
        wtop = np.maximum(wtop, wv) if amsgrad else wv
        want -= step * wm / (np.sqrt(wtop) / root + eps)
    close(got[0], want, 1e-5)
