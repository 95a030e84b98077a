// Orthogonal factors of matrices whose rows lie one after another. `householder`: R above reflectors,
// as LAPACK has them, and their factors, a workgroup for a matrix, columns from `first` to `end`.
// `reflected`: their product into the columns of an identity, the last reflector first. `sweep` and
// `turn`: Jacobi's rotations of rows (Hestenes 1958, doi:10.1137/0106005), whole sweeps over the rows of
// a matrix by a workgroup, or one round of disjoint pairs, a workgroup for each.
override WG: u32 = WORKGROUP;

struct Params {
    count: u32, // matrices
    rows: u32,
    columns: u32,
    width: u32, // of what is multiplied along, the columns of Q or of V
    first: u32,
    end: u32,
    least: vec2<u32>, // of the angle between rows, below which they are orthogonal
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> work: array<u32>;
@group(0) @binding(2) var<storage, read_write> more: array<u32>;
@group(0) @binding(3) var<storage, read_write> factors: array<u32>;

var<workgroup> found: array<vec3<Acc>, WG>;

fn read_work(i: u32) -> Acc {
    let w = word(ACC, i);
    return from_words(work[w], work[w + wide(ACC)]);
}
fn write_work(i: u32, v: Acc) {
    let w = word(ACC, i);
    let bits = encode(ACC, v);
    work[w] = bits.x;
    if (wide(ACC) == 1u) { work[w + 1u] = bits.y; }
}
fn read_more(i: u32) -> Acc {
    let w = word(ACC, i);
    return from_words(more[w], more[w + wide(ACC)]);
}
fn write_more(i: u32, v: Acc) {
    let w = word(ACC, i);
    let bits = encode(ACC, v);
    more[w] = bits.x;
    if (wide(ACC) == 1u) { more[w + 1u] = bits.y; }
}
fn read_factor(i: u32) -> Acc {
    let w = word(ACC, i);
    return from_words(factors[w], factors[w + wide(ACC)]);
}
fn write_factor(i: u32, v: Acc) {
    let w = word(ACC, i);
    let bits = encode(ACC, v);
    factors[w] = bits.x;
    if (wide(ACC) == 1u) { factors[w + 1u] = bits.y; }
}
fn meet() {
    storageBarrier();
    workgroupBarrier();
}
// Sums, or the largest, over the workgroup, in all of it.
fn whole(local: u32, v: vec3<Acc>, largest: bool) -> vec3<Acc> {
    found[local] = v;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s /= 2u) {
        if (local < s) {
            let other = found[local + s];
            let own = found[local];
            if (largest) {
                found[local] = vec3(larger(own.x, other.x), own.yz);
            } else {
                found[local] = own + other;
            }
        }
        workgroupBarrier();
    }
    let r = found[0];
    workgroupBarrier();
    return r;
}

@compute @workgroup_size(WG)
fn householder(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.count) { return; }
    let n = p.columns;
    let start = g * p.rows * n;
    for (var j = p.first; j < p.end; j++) {
        var top = Acc(0);
        for (var i = j + 1u + local; i < p.rows; i += WG) {
            let v = abs(read_work(start + i * n + j));
            if (v > top) { top = v; }
        }
        top = whole(local, vec3(top, Acc(0), Acc(0)), true).x;
        let alpha = read_work(start + j * n + j);
        let unit = larger(abs(alpha), top);
        let scale = select(Acc(1), Acc(1) / unit, is_true(unit));
        var sum = Acc(0);
        for (var i = j + 1u + local; i < p.rows; i += WG) {
            let v = read_work(start + i * n + j) * scale;
            sum += v * v;
        }
        sum = whole(local, vec3(sum, Acc(0), Acc(0)), false).x;
        let live = top > Acc(0);
        let own = alpha * scale;
        let norm = sqrt(sum + own * own);
        let beta = select(-norm, norm, less(alpha, Acc(0)));
        var t = Acc(0);
        if (live) { t = (beta - own) / beta; }
        for (var i = j + 1u + local; i < p.rows && live; i += WG) {
            let at = start + i * n + j;
            write_work(at, read_work(at) * scale / (own - beta));
        }
        meet();
        if (local == 0u) {
            if (live) { write_work(start + j * n + j, beta / scale); }
            write_factor(g * min(p.rows, n) + j, t);
        }
        for (var c = j + 1u + local; c < n && live; c += WG) {
            var dot = read_work(start + j * n + c);
            for (var i = j + 1u; i < p.rows; i++) {
                dot += read_work(start + i * n + j) * read_work(start + i * n + c);
            }
            dot *= t;
            write_work(start + j * n + c, read_work(start + j * n + c) - dot);
            for (var i = j + 1u; i < p.rows; i++) {
                let at = start + i * n + c;
                write_work(at, read_work(at) - read_work(start + i * n + j) * dot);
            }
        }
        meet();
    }
}

@compute @workgroup_size(WG)
fn reflected(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.count) { return; }
    let n = p.columns;
    let k = min(p.rows, n);
    let start = g * p.rows * n;
    let to = g * p.rows * p.width;
    for (var back = p.first; back < p.end; back++) {
        let j = k - 1u - back;
        let t = read_factor(g * k + j);
        for (var c = local; c < p.width && is_true(t); c += WG) {
            var dot = read_more(to + j * p.width + c);
            for (var i = j + 1u; i < p.rows; i++) {
                dot += read_work(start + i * n + j) * read_more(to + i * p.width + c);
            }
            dot *= t;
            write_more(to + j * p.width + c, read_more(to + j * p.width + c) - dot);
            for (var i = j + 1u; i < p.rows; i++) {
                let at = to + i * p.width + c;
                write_more(at, read_more(at) - read_work(start + i * n + j) * dot);
            }
        }
        meet();
    }
}

// The rows that meet in a round: all but the last go round a circle, and it stays.
fn pair(round: u32, i: u32) -> vec2<u32> {
    let players = (p.rows + 1u) / 2u * 2u;
    let circle = players - 1u;
    if (i == 0u) { return vec2(circle, round % circle); }
    return vec2((round + i) % circle, (round + circle - i) % circle);
}
// Cosine and sine of the turn that makes two rows orthogonal, by their squares and their product; a
// sine of zero where they are.
fn angle(v: vec3<Acc>) -> vec2<Acc> {
    let least = from_words(p.least.x, p.least.y);
    if (!less(least * sqrt(v.x) * sqrt(v.y), abs(v.z)) || v.z == Acc(0)) { return vec2(Acc(1), Acc(0)); }
    let zeta = (v.y - v.x) / (Acc(2) * v.z);
    let t = select(Acc(1), Acc(-1), zeta < Acc(0)) / (abs(zeta) + sqrt(Acc(1) + zeta * zeta));
    let c = Acc(1) / sqrt(Acc(1) + t * t);
    return vec2(c, c * t);
}
fn turned(a: u32, b: u32, i: u32, t: vec2<Acc>) {
    let x = read_work(a + i);
    let y = read_work(b + i);
    write_work(a + i, t.x * x - t.y * y);
    write_work(b + i, t.y * x + t.x * y);
}
fn turned_along(a: u32, b: u32, i: u32, t: vec2<Acc>) {
    let x = read_more(a + i);
    let y = read_more(b + i);
    write_more(a + i, t.x * x - t.y * y);
    write_more(b + i, t.y * x + t.x * y);
}
fn products(a: u32, b: u32, i: u32) -> vec3<Acc> {
    let x = read_work(a + i);
    let y = read_work(b + i);
    return vec3(x * x, y * y, x * y);
}

@compute @workgroup_size(WG)
fn turn(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let half = (p.rows + 1u) / 2u;
    let id = group.x + group.y * groups.x;
    let g = id / half;
    let both = pair(p.first, id % half);
    let live = g < p.count && max(both.x, both.y) < p.rows;
    let a = (g * p.rows + both.x) * p.columns;
    let b = (g * p.rows + both.y) * p.columns;
    var sum = vec3(Acc(0), Acc(0), Acc(0));
    for (var i = local; i < p.columns && live; i += WG) { sum += products(a, b, i); }
    sum = whole(local, sum, false);
    let t = angle(sum);
    if (!live || t.y == Acc(0)) { return; }
    for (var i = local; i < p.columns; i += WG) { turned(a, b, i, t); }
    let c = (g * p.rows + both.x) * p.width;
    let d = (g * p.rows + both.y) * p.width;
    for (var i = local; i < p.width; i += WG) { turned_along(c, d, i, t); }
    if (local == 0u) { factors[0] = 1u; }
}

@compute @workgroup_size(WG)
fn sweep(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let g = group.x + group.y * groups.x;
    if (g >= p.count) { return; }
    let half = (p.rows + 1u) / 2u;
    for (var round = p.first; round < p.end; round++) {
        for (var k = local; k < half; k += WG) {
            let both = pair(round, k);
            if (max(both.x, both.y) < p.rows) {
                let a = (g * p.rows + both.x) * p.columns;
                let b = (g * p.rows + both.y) * p.columns;
                var sum = vec3(Acc(0), Acc(0), Acc(0));
                for (var i = 0u; i < p.columns; i++) { sum += products(a, b, i); }
                let t = angle(sum);
                if (is_true(t.y)) {
                    for (var i = 0u; i < p.columns; i++) { turned(a, b, i, t); }
                    let c = (g * p.rows + both.x) * p.width;
                    let d = (g * p.rows + both.y) * p.width;
                    for (var i = 0u; i < p.width; i++) { turned_along(c, d, i, t); }
                }
            }
        }
        meet();
    }
}
