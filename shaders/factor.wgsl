// Factorisations of small matrices, and systems of equations with their factors. A workgroup works on
// a matrix, in memory; of right-hand sides an invocation has a column. Rows lie one after another.
override UPPER: bool = false;
override UNIT: bool = false;
override WG: u32 = 64u;

struct Params {
    count: u32, // matrices
    rows: u32,
    columns: u32, // of the matrix, or of the right-hand side
    work_offset: u32,
    pivot_offset: u32,
    info_offset: u32,
    a_offset: u32,
    exchange: u32, // whether rows may be exchanged
    first: u32, // of the steps that a dispatch takes
    end: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> work: array<u32>;
@group(0) @binding(2) var<storage, read_write> pivots: array<u32>;
@group(0) @binding(3) var<storage, read_write> info: array<u32>;
@group(0) @binding(4) var<storage, read> a: array<u32>;

var<workgroup> best: array<Real, WG>;
var<workgroup> best_row: array<u32, WG>;

fn read_work(i: u32) -> Acc {
    let w = word(ACC, p.work_offset + i);
    let v = from_words(work[w], work[w + wide(ACC)]);
    if (ACC != C128) { return v; }
    return of_parts(v, from_words(work[w + 2u], work[w + 3u]));
}
fn write_work(i: u32, v: Acc) {
    let w = word(ACC, p.work_offset + i);
    let bits = encode(ACC, v);
    work[w] = bits.x;
    if (wide(ACC) == 1u) { work[w + 1u] = bits.y; }
    if (ACC == C128) {
        let more = encode(ACC, second_part(v));
        work[w + 2u] = more.x;
        work[w + 3u] = more.y;
    }
}
fn given(i: u32) -> Acc {
    let w = word(ACC, p.a_offset + i);
    let v = from_words(a[w], a[w + wide(ACC)]);
    if (ACC != C128) { return v; }
    return of_parts(v, from_words(a[w + 2u], a[w + 3u]));
}
fn meet() {
    storageBarrier();
    workgroupBarrier();
}

// P A = L U in place: multipliers below the diagonal, U on and above it; the row that each was
// exchanged with, from 1 on; the first pivot that is zero, from 1 on.
@compute @workgroup_size(WG)
fn lu(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.count) { return; }
    let n = p.columns;
    let start = g * p.rows * n;
    let steps = min(p.rows, n);
    // Steps before have left what they found.
    var failed = 0u;
    if (p.first > 0u) { failed = info[p.info_offset + g]; }
    for (var j = p.first; j < p.end; j++) {
        // The largest of the column, the first of several.
        var row = j;
        var top = pivot_size(read_work(start + j * n + j));
        if (p.exchange == 1u) {
            for (var i = j + 1u + local; i < p.rows; i += WG) {
                let v = pivot_size(read_work(start + i * n + j));
                if (v > top) {
                    top = v;
                    row = i;
                }
            }
        }
        best[local] = top;
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
        row = best_row[0];
        meet();
        if (local == 0u) { pivots[p.pivot_offset + g * steps + j] = row + 1u; }
        if (row != j) {
            for (var c = local; c < n; c += WG) {
                let v = read_work(start + j * n + c);
                write_work(start + j * n + c, read_work(start + row * n + c));
                write_work(start + row * n + c, v);
            }
        }
        meet();
        let d = read_work(start + j * n + j);
        if (!is_true(d)) {
            if (failed == 0u) { failed = j + 1u; }
        } else {
            for (var i = j + 1u + local; i < p.rows; i += WG) {
                write_work(start + i * n + j, fraction(read_work(start + i * n + j), d));
            }
        }
        meet();
        let width = n - j - 1u;
        if (is_true(d)) {
            for (var e = local; e < (p.rows - j - 1u) * width; e += WG) {
                let i = j + 1u + e / width;
                let c = j + 1u + e % width;
                let at = start + i * n + c;
                let product = times(read_work(start + i * n + j), read_work(start + j * n + c));
                write_work(at, read_work(at) - product);
            }
        }
        meet();
    }
    if (local == 0u) { info[p.info_offset + g] = failed; }
}

// The lower factor of A = L L*, into zeros; the order of the first leading minor that is not positive.
@compute @workgroup_size(WG)
fn cholesky(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.count) { return; }
    let n = p.columns;
    let start = g * n * n;
    var failed = 0u;
    if (p.first > 0u) { failed = info[p.info_offset + g]; }
    for (var j = p.first; j < p.end; j++) {
        var square = real_part(given(start + j * n + j));
        for (var k = 0u; k < j; k++) {
            let v = read_work(start + j * n + k);
            square -= real_part(times(v, conjugate(v)));
        }
        // A NaN is not positive. All invocations found the same.
        if (failed == 0u && !less(Real(0), square)) { failed = j + 1u; }
        meet();
        let d = sqrt(square);
        for (var i = j + local; i < n && failed == 0u; i += WG) {
            var v = given(start + i * n + j);
            for (var k = 0u; k < j; k++) {
                v -= times(read_work(start + i * n + k), conjugate(read_work(start + j * n + k)));
            }
            write_work(start + i * n + j, select(v / d, of_real(d), i == j));
        }
        meet();
    }
    if (local == 0u) { info[p.info_offset + g] = failed; }
}

// A column of T X = B in place, for a triangle of the matrix; the rows of this dispatch.
fn substitute(start: u32, column: u32, upper: bool, unit: bool) {
    let n = p.rows;
    let matrix = start / p.columns;
    for (var s = p.first; s < p.end; s++) {
        let i = select(s, n - 1u - s, upper);
        let at = start + i * p.columns + column;
        var v = read_work(at);
        let first = select(0u, i + 1u, upper);
        let end = select(i, n, upper);
        for (var k = first; k < end; k++) {
            v -= times(given((matrix + i) * n + k), read_work(start + k * p.columns + column));
        }
        if (!unit) { v = fraction(v, given((matrix + i) * n + i)); }
        write_work(at, v);
    }
}

@compute @workgroup_size(WG)
fn solve(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.count * p.columns) { return; }
    let column = id % p.columns;
    let start = id / p.columns * p.rows * p.columns;
    substitute(start, column, UPPER, UNIT);
}

// The rows of B exchanged as those of the matrix were.
@compute @workgroup_size(WG)
fn permute(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.count * p.columns) { return; }
    let column = id % p.columns;
    let start = id / p.columns * p.rows * p.columns;
    for (var i = p.first; i < p.end; i++) {
        let row = pivots[p.pivot_offset + id / p.columns * p.rows + i] - 1u;
        let here = start + i * p.columns + column;
        let there = start + row * p.columns + column;
        let v = read_work(here);
        write_work(here, read_work(there));
        write_work(there, v);
    }
}
