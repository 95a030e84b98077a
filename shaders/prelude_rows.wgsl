// The sum or the largest over the LANES invocations that share a row, in all of them; a NaN is the
// largest. Halves are joined, as two steps at a time.
var<workgroup> partial: array<Acc, WG>;

fn row_max(local: u32, lane: u32, v: Acc) -> Acc {
    partial[local] = v;
    workgroupBarrier();
    var s = LANES;
    for (; s > 2u; s /= 4u) {
        let q = s / 4u;
        if (lane < q) {
            let a = larger(partial[local], partial[local + 2u * q]);
            partial[local] = larger(a, larger(partial[local + q], partial[local + 3u * q]));
        }
        workgroupBarrier();
    }
    for (; s > 1u; s /= 2u) {
        if (lane == 0u) { partial[local] = larger(partial[local], partial[local + 1u]); }
        workgroupBarrier();
    }
    let r = partial[local - lane];
    workgroupBarrier();
    return r;
}
fn row_sum(local: u32, lane: u32, v: Acc) -> Acc {
    partial[local] = v;
    workgroupBarrier();
    var s = LANES;
    for (; s > 2u; s /= 4u) {
        let q = s / 4u;
        if (lane < q) {
            let a = partial[local] + partial[local + 2u * q];
            partial[local] = a + (partial[local + q] + partial[local + 3u * q]);
        }
        workgroupBarrier();
    }
    for (; s > 1u; s /= 2u) {
        if (lane == 0u) { partial[local] += partial[local + 1u]; }
        workgroupBarrier();
    }
    let r = partial[local - lane];
    workgroupBarrier();
    return r;
}
