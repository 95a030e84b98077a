// Where an element is by its number in the OUTER and in the INNER dimensions, innermost first.
fn outer_offset(i: u32) -> u32 {
    if (OUTER == 1u) { return i * p.outer_stride[0].x; }
    var o = 0u;
    var rest = i;
    for (var d = 0u; d < OUTER; d++) {
        let q = rest / p.outer_size[d / 4u][d % 4u];
        o += (rest - q * p.outer_size[d / 4u][d % 4u]) * p.outer_stride[d / 4u][d % 4u];
        rest = q;
    }
    return o;
}
fn inner_offset(i: u32) -> u32 {
    if (INNER == 1u) { return i * p.inner_stride[0].x; }
    var o = 0u;
    var rest = i;
    for (var d = 0u; d < INNER; d++) {
        let q = rest / p.inner_size[d / 4u][d % 4u];
        o += (rest - q * p.inner_size[d / 4u][d % 4u]) * p.inner_stride[d / 4u][d % 4u];
        rest = q;
    }
    return o;
}
