// Orthogonal factors of matrices whose rows lie one after another. `householder`: R above reflectors,
// as LAPACK has them, and their factors, a workgroup for a matrix, columns from `first` to `end`.
// `reflected`: their product into the columns of an identity, the last reflector first. `sweep` and
// `turn`: Jacobi's rotations of rows (Hestenes 1958, doi:10.1137/0106005), whole sweeps over the rows of
// a matrix by a workgroup, or one round of disjoint pairs, a workgroup for each. Of complex numbers R has a real
// diagonal.
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

// The squares of two rows, and the product of one with the conjugate of the other.
struct Products {
    x: Real,
    y: Real,
    both: Acc,
}
var<workgroup> found: array<Products, WG>;

fn read_work(i: u32) -> Acc {
    let w = word(ACC, i);
    let v = from_words(work[w], work[w + wide(ACC)]);
    if (ACC != C128) { return v; }
    return of_parts(v, from_words(work[w + 2u], work[w + 3u]));
}
fn write_work(i: u32, v: Acc) {
    let w = word(ACC, i);
    let bits = encode(ACC, v);
    work[w] = bits.x;
    if (wide(ACC) == 1u) { work[w + 1u] = bits.y; }
    if (ACC == C128) {
        let second = encode(ACC, second_part(v));
        work[w + 2u] = second.x;
        work[w + 3u] = second.y;
    }
}
fn read_more(i: u32) -> Acc {
    let w = word(ACC, i);
    let v = from_words(more[w], more[w + wide(ACC)]);
    if (ACC != C128) { return v; }
    return of_parts(v, from_words(more[w + 2u], more[w + 3u]));
}
fn write_more(i: u32, v: Acc) {
    let w = word(ACC, i);
    let bits = encode(ACC, v);
    more[w] = bits.x;
    if (wide(ACC) == 1u) { more[w + 1u] = bits.y; }
    if (ACC == C128) {
        let second = encode(ACC, second_part(v));
        more[w + 2u] = second.x;
        more[w + 3u] = second.y;
    }
}
fn read_factor(i: u32) -> Acc {
    let w = word(ACC, i);
    let v = from_words(factors[w], factors[w + wide(ACC)]);
    if (ACC != C128) { return v; }
    return of_parts(v, from_words(factors[w + 2u], factors[w + 3u]));
}
fn write_factor(i: u32, v: Acc) {
    let w = word(ACC, i);
    let bits = encode(ACC, v);
    factors[w] = bits.x;
    if (wide(ACC) == 1u) { factors[w + 1u] = bits.y; }
    if (ACC == C128) {
        let second = encode(ACC, second_part(v));
        factors[w + 2u] = second.x;
        factors[w + 3u] = second.y;
    }
}
fn meet() {
    storageBarrier();
    workgroupBarrier();
}
fn nothing() -> Products {
    return Products(Real(0), Real(0), of_real(Real(0)));
}
// The least number whose reciprocal is one.
fn tiny() -> Real {
    let long = ACC == F64 || ACC == C128;
    return real_part(from_words(select(0x00800000u, 0u, long), select(0u, 0x00100000u, long)));
}
fn square(v: Acc) -> Real {
    return real_part(times(v, conjugate(v)));
}
// Sums, or the largest, over the workgroup, in all of it.
fn whole(local: u32, v: Products, largest: bool) -> Products {
    found[local] = v;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s /= 2u) {
        if (local < s) {
            let other = found[local + s];
            let own = found[local];
            if (largest) {
                found[local].x = larger(own.x, other.x);
            } else {
                found[local] = Products(own.x + other.x, own.y + other.y, own.both + other.both);
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
        var top = nothing();
        for (var i = j + 1u + local; i < p.rows; i += WG) {
            let v = pivot_size(read_work(start + i * n + j));
            if (v > top.x) { top.x = v; }
        }
        top = whole(local, top, true);
        let alpha = read_work(start + j * n + j);
        let unit = larger(pivot_size(alpha), top.x);
        let scale = select(Real(1), Real(1) / unit, is_true(of_real(unit)));
        var sum = nothing();
        for (var i = j + 1u + local; i < p.rows; i += WG) {
            sum.x += square(read_work(start + i * n + j) * scale);
        }
        sum = whole(local, sum, false);
        // What is left of a column that depends on others may be as good as nothing.
        let counts = is_nan(of_real(unit)) || less(tiny(), unit);
        let live = counts && (less(Real(0), top.x) || is_true(alpha - of_real(real_part(alpha))));
        let own = alpha * scale;
        let norm = sqrt(sum.x + square(own));
        let beta = select(-norm, norm, less(real_part(alpha), Real(0)));
        var t = of_real(Real(0));
        if (live) { t = (of_real(beta) - own) / beta; }
        for (var i = j + 1u + local; i < p.rows && live; i += WG) {
            let at = start + i * n + j;
            write_work(at, fraction(read_work(at) * scale, own - of_real(beta)));
        }
        meet();
        if (local == 0u) {
            if (live) { write_work(start + j * n + j, of_real(beta / scale)); }
            write_factor(g * min(p.rows, n) + j, t);
        }
        for (var c = j + 1u + local; c < n && live; c += WG) {
            var dot = read_work(start + j * n + c);
            for (var i = j + 1u; i < p.rows; i++) {
                dot += times(conjugate(read_work(start + i * n + j)), read_work(start + i * n + c));
            }
            dot = times(dot, conjugate(t));
            write_work(start + j * n + c, read_work(start + j * n + c) - dot);
            for (var i = j + 1u; i < p.rows; i++) {
                let at = start + i * n + c;
                write_work(at, read_work(at) - times(read_work(start + i * n + j), dot));
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
                dot += times(conjugate(read_work(start + i * n + j)), read_more(to + i * p.width + c));
            }
            dot = times(dot, t);
            write_more(to + j * p.width + c, read_more(to + j * p.width + c) - dot);
            for (var i = j + 1u; i < p.rows; i++) {
                let at = to + i * p.width + c;
                write_more(at, read_more(at) - times(read_work(start + i * n + j), dot));
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
// Of a complex number this small the digits do not do to tell its direction, and a row would change its length.
fn faint() -> Real {
    let long = ACC == F64 || ACC == C128;
    return real_part(from_words(select(0x0d800000u, 0u, long), select(0u, 0x03800000u, long)));
}
// The turn that makes two rows orthogonal: its cosine, and its sine times the number of modulus one that makes
// their product positive; a sine of zero where they are.
struct Turn {
    c: Real,
    s: Acc,
}
fn angle(v: Products) -> Turn {
    let least = real_part(from_words(p.least.x, p.least.y));
    let size = modulus_of(v.both);
    if (!less(least * sqrt(v.x) * sqrt(v.y), size) || !less(faint(), size)) {
        return Turn(Real(1), of_real(Real(0)));
    }
    let zeta = (v.y - v.x) / (Real(2) * size);
    let t = select(Real(1), Real(-1), zeta < Real(0)) / (abs(zeta) + sqrt(Real(1) + zeta * zeta));
    let c = Real(1) / sqrt(Real(1) + t * t);
    return Turn(c, v.both / size * (c * t));
}
fn turned(a: u32, b: u32, i: u32, t: Turn) {
    let x = read_work(a + i);
    let y = read_work(b + i);
    write_work(a + i, t.c * x - times(t.s, y));
    write_work(b + i, times(conjugate(t.s), x) + t.c * y);
}
fn turned_along(a: u32, b: u32, i: u32, t: Turn) {
    let x = read_more(a + i);
    let y = read_more(b + i);
    write_more(a + i, t.c * x - times(t.s, y));
    write_more(b + i, times(conjugate(t.s), x) + t.c * y);
}
fn add_products(sum: ptr<function, Products>, a: u32, b: u32, i: u32) {
    let x = read_work(a + i);
    let y = read_work(b + i);
    (*sum).x += square(x);
    (*sum).y += square(y);
    (*sum).both += times(x, conjugate(y));
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
    var sum = nothing();
    for (var i = local; i < p.columns && live; i += WG) { add_products(&sum, a, b, i); }
    sum = whole(local, sum, false);
    let t = angle(sum);
    if (!live || !is_true(t.s)) { return; }
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
                var sum = nothing();
                for (var i = 0u; i < p.columns; i++) { add_products(&sum, a, b, i); }
                let t = angle(sum);
                if (is_true(t.s)) {
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
