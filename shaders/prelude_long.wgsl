// Numbers of float64 by their bits, where the adapter has the type (and 64-bit integers).
fn long_value(lo: u32, hi: u32) -> f64 {
    return bitcast<f64>(u64(lo) | (u64(hi) << 32u));
}
fn long_bits(v: f64) -> vec2<u32> {
    let u = bitcast<u64>(v);
    return vec2(u32(u & 0xfffffffflu), u32(u >> 32u));
}
fn long_nan(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}
fn long_true(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) != 0lu;
}

// As `order` in float32.
fn long_order(x: f64) -> i64 {
    let size = i64(bitcast<u64>(x) & 0x7ffffffffffffffflu);
    return select(size, -size, (bitcast<u64>(x) >> 63u) != 0lu);
}
fn less(a: f64, b: f64) -> bool {
    let x = long_order(a);
    let y = long_order(b);
    return (x < y) & (x >= -0x7ff0000000000000li) & (y <= 0x7ff0000000000000li);
}
fn at_most(a: f64, b: f64) -> bool {
    let x = long_order(a);
    let y = long_order(b);
    return (x <= y) & (x >= -0x7ff0000000000000li) & (y <= 0x7ff0000000000000li);
}
fn equal(a: f64, b: f64) -> bool {
    return (long_order(a) == long_order(b)) & !long_nan(a);
}
// NaN where either is NaN.
fn larger(a: f64, b: f64) -> f64 {
    return select(b, a, long_nan(a) | less(b, a));
}
fn smaller(a: f64, b: f64) -> f64 {
    return select(b, a, long_nan(a) | less(a, b));
}
