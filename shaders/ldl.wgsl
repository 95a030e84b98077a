// L D L' of symmetric matrices that need not be definite, and systems of equations with it, as Bunch and
// Kaufman (1977) have it. `ldl`: a workgroup works on a matrix, whose part above the diagonal is zero; a
// dispatch takes as many pivots as `steps`, one row or two, and leaves in `state` the row that comes
// next. `forward`, `backward`: an invocation has a right-hand side; the pivots are a last column.
override WG: u32 = WORKGROUP;

struct Params {
    count: u32, // matrices
    rows: u32,
    columns: u32, // of the right-hand sides
    steps: u32,
    work_offset: u32,
    pivot_offset: u32,
    info_offset: u32,
    a_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> work: array<u32>;
@group(0) @binding(2) var<storage, read_write> pivots: array<u32>;
@group(0) @binding(3) var<storage, read_write> info: array<u32>;
@group(0) @binding(4) var<storage, read_write> state: array<u32>;
@group(0) @binding(5) var<storage, read> a: array<u32>;

// (1 + sqrt(17)) / 8: from what share of the largest element on a pivot may be.
const SHARE: f32 = 0.6403882;

var<workgroup> best: array<Acc, WG>;
var<workgroup> best_row: array<u32, WG>;

fn read_work(i: u32) -> Acc {
    let w = word(ACC, p.work_offset + i);
    return from_words(work[w], work[w + wide(ACC)]);
}
fn write_work(i: u32, v: Acc) {
    let w = word(ACC, p.work_offset + i);
    let bits = encode(ACC, v);
    work[w] = bits.x;
    if (wide(ACC) == 1u) { work[w + 1u] = bits.y; }
}
fn exchange(i: u32, j: u32) {
    let v = read_work(i);
    write_work(i, read_work(j));
    write_work(j, v);
}
fn given(i: u32) -> Acc {
    let w = word(ACC, p.a_offset + i);
    return from_words(a[w], a[w + wide(ACC)]);
}
fn meet() {
    storageBarrier();
    workgroupBarrier();
}
// The largest over the workgroup, the first of several, in the first places.
fn largest(local: u32, v: Acc, row: u32) {
    best[local] = v;
    best_row[local] = row;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s /= 2u) {
        if (local < s) {
            let other = best[local + s];
            let at = best_row[local + s];
            if (other > best[local] || (other == best[local] && at < best_row[local])) {
                best[local] = other;
                best_row[local] = at;
            }
        }
        workgroupBarrier();
    }
}

@compute @workgroup_size(WG)
fn ldl(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.count) { return; }
    let n = p.rows;
    let start = g * n * n;
    for (var step = 0u; step < p.steps; step++) {
        let k = state[g];
        let live = k < n;
        meet();
        // The column below the diagonal, then the row of its largest.
        var top = Acc(0);
        var row = k;
        for (var i = k + 1u + local; i < n; i += WG) {
            let v = abs(read_work(start + i * n + k));
            if (v > top) {
                top = v;
                row = i;
            }
        }
        largest(local, top, row);
        let most = best[0];
        row = best_row[0];
        workgroupBarrier();
        top = Acc(0);
        for (var j = k + local; j < n; j += WG) {
            let v = abs(read_work(start + select(j * n + row, row * n + j, j < row)));
            if (j != row && v > top) { top = v; }
        }
        largest(local, top, 0u);
        let beside = best[0];
        var own = Acc(0);
        if (live) { own = abs(read_work(start + k * n + k)); }
        let none = own == Acc(0) && most == Acc(0);
        var pair = false;
        let plain = none || own >= Acc(SHARE) * most || own / most * (beside / most) >= Acc(SHARE);
        if (plain || !live) {
            row = k;
        } else {
            pair = abs(read_work(start + row * n + row)) < Acc(SHARE) * beside;
        }
        let last = select(k, k + 1u, pair);
        meet();
        if (row != last) {
            for (var t = last + 1u + local; t < n; t += WG) {
                if (t == row) {
                    exchange(start + last * n + last, start + row * n + row);
                } else {
                    exchange(start + t * n + last, start + select(row * n + t, t * n + row, t > row));
                }
            }
            if (pair && local == 0u) { exchange(start + last * n + k, start + row * n + k); }
        }
        meet();
        // Of a block of two, D over the element beside its diagonal.
        var off = Acc(1);
        var d = Acc(1);
        var e = Acc(0);
        if (live) { d = read_work(start + k * n + k); }
        if (pair) {
            off = read_work(start + last * n + k);
            e = d / off;
            d = read_work(start + last * n + last) / off;
        }
        let scale = Acc(1) / (d * e - Acc(1)) / off;
        let width = select(0u, n - last - 1u, live && !none);
        for (var t = local; t < width * width; t += WG) {
            let i = last + 1u + t / width;
            let j = last + 1u + t % width;
            if (i >= j) {
                let at = start + i * n + j;
                let x = read_work(start + j * n + k);
                var change = read_work(start + i * n + k) * (x / d);
                if (pair) {
                    let y = read_work(start + j * n + last);
                    change = read_work(start + i * n + k) * (scale * (d * x - y))
                        + read_work(start + i * n + last) * (scale * (e * y - x));
                }
                write_work(at, read_work(at) - change);
            }
        }
        meet();
        for (var j = last + 1u + local; j < last + 1u + width; j += WG) {
            let at = start + j * n + k;
            let x = read_work(at);
            if (pair) {
                let y = read_work(start + j * n + last);
                write_work(at, scale * (d * x - y));
                write_work(start + j * n + last, scale * (e * y - x));
            } else {
                write_work(at, x / d);
            }
        }
        if (local == 0u && live) {
            let found = select(row + 1u, ~row, pair);
            pivots[p.pivot_offset + g * n + k] = found;
            pivots[p.pivot_offset + g * n + last] = found;
            if (none && info[p.info_offset + g] == 0u) { info[p.info_offset + g] = k + 1u; }
            state[g] = last + 1u;
        }
        meet();
    }
}

// Element of the factors, the row that one was exchanged with, and whether it is of a block of two.
fn factor(matrix: u32, i: u32, j: u32) -> Acc {
    return given((matrix * p.rows + i) * (p.rows + 1u) + j);
}
fn exchanged(matrix: u32, i: u32) -> u32 {
    return u32(abs(factor(matrix, i, p.rows))) - 1u;
}
fn paired(matrix: u32, i: u32) -> bool {
    return factor(matrix, i, p.rows) < Acc(0);
}

// L and D; two rows of a block at once.
@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.count * p.columns) { return; }
    let n = p.rows;
    let w = p.columns;
    let m = id / w;
    let x = m * n * w + id % w;
    var k = state[id];
    for (var step = 0u; step < p.steps && k < n; step++) {
        let pair = paired(m, k);
        let last = select(k, k + 1u, pair);
        exchange(x + last * w, x + exchanged(m, k) * w);
        let u = read_work(x + k * w);
        let v = read_work(x + last * w);
        for (var i = last + 1u; i < n; i++) {
            var change = factor(m, i, k) * u;
            if (pair) { change += factor(m, i, last) * v; }
            write_work(x + i * w, read_work(x + i * w) - change);
        }
        if (pair) {
            let off = factor(m, last, k);
            let d = factor(m, last, last) / off;
            let e = factor(m, k, k) / off;
            let scale = d * e - Acc(1);
            write_work(x + k * w, (d * (u / off) - v / off) / scale);
            write_work(x + last * w, (e * (v / off) - u / off) / scale);
        } else {
            write_work(x + k * w, u / factor(m, k, k));
        }
        k = last + 1u;
    }
    state[id] = k;
}

// L', from the last row on.
@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.count * p.columns) { return; }
    let n = p.rows;
    let w = p.columns;
    let m = id / w;
    let x = m * n * w + id % w;
    var k = state[id];
    for (var step = 0u; step < p.steps && k > 0u; step++) {
        let last = k - 1u;
        let first = select(last, last - 1u, paired(m, last));
        for (var j = first; j < k; j++) {
            var v = read_work(x + j * w);
            for (var i = k; i < n; i++) { v -= factor(m, i, j) * read_work(x + i * w); }
            write_work(x + j * w, v);
        }
        exchange(x + last * w, x + exchanged(m, last) * w);
        k = first;
    }
    state[id] = k;
}
