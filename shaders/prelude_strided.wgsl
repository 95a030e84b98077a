// Where element i of up to four tensors of one shape is: DIMS dimensions, innermost first, with a
// vector of strides for each.
fn strided(i: u32) -> vec4<u32> {
    var o = vec4(0u);
    var rest = i;
    for (var d = 0u; d < DIMS; d++) {
        let q = rest / p.dim_size[d / 4u][d % 4u];
        o += (rest - q * p.dim_size[d / 4u][d % 4u]) * p.strides[d];
        rest = q;
    }
    return o;
}
