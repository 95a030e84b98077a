// The sum or the largest over the LANES invocations that share a row, in all of them; a NaN is the
// largest.
var<workgroup> partial: array<Acc, WG>;

fn row_max(local: u32, lane: u32, v: Acc) -> Acc {
    partial[local] = v;
    workgroupBarrier();
    for (var s = LANES / 2u; s > 0u; s /= 2u) {
        if (lane < s) { partial[local] = larger(partial[local], partial[local + s]); }
        workgroupBarrier();
    }
    let r = partial[local - lane];
    workgroupBarrier();
    return r;
}
fn row_sum(local: u32, lane: u32, v: Acc) -> Acc {
    partial[local] = v;
    workgroupBarrier();
    for (var s = LANES / 2u; s > 0u; s /= 2u) {
        if (lane < s) { partial[local] += partial[local + s]; }
        workgroupBarrier();
    }
    let r = partial[local - lane];
    workgroupBarrier();
    return r;
}
