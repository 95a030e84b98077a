// A sparse matrix along one dimension: y[o, i, c] is the sum of weight[t] x[o, index[t], c] for t in
// start[i]..start[i + 1]. The table holds the starts, then indices, weights and divisors.
// uses store, each
override X: u32 = F32;
override Y: u32 = F32;
override WEIGHTED: bool = false;
// Whether sums are divided by what belongs to the output, or terms by what belongs to the input.
override OVER_SUM: bool = false;
override OVER_TERM: bool = false;
// Binary digits of the weights of bytes, which are whole numbers.
override DIGITS: u32 = 0u;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    inputs: u32,
    outputs: u32,
    inner: u32,
    x_offset: u32,
    y_offset: u32,
    index_at: u32,
    weight_at: u32,
    divisor_at: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> table: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn number(base: u32, i: u32) -> Acc {
    let w = base + (i << wide(ACC));
    return from_words(table[w], table[w + wide(ACC)]);
}

// To the nearest number of a byte.
fn byte(sum: i32) -> Acc {
    return Acc(clamp((sum + ((1 << DIGITS) >> 1u)) >> DIGITS, 0, 255));
}

fn element(id: u32) -> Acc {
    let c = id % p.inner;
    let i = id / p.inner % p.outputs;
    let start = p.x_offset + id / p.inner / p.outputs * p.inputs * p.inner + c;
    var sum = Acc(0);
    for (var t = table[i]; t < table[i + 1u]; t++) {
        let at = table[p.index_at + t];
        var v = load_x(start + at * p.inner);
        if (OVER_TERM) { v /= number(p.divisor_at, at); }
        if (WEIGHTED) { v *= number(p.weight_at, t); }
        sum += v;
    }
    if (OVER_SUM) { sum /= number(p.divisor_at, i); }
    if (DIGITS > 0u) { return byte(i32(sum)); }
    return sum;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}
