// Functions for pointwise bodies in float64. Vulkan has only the algebraic ones.
fn m_is_nan(x: f64) -> bool {
    return is_nan(x);
}
fn m_copysign(x: f64, s: f64) -> f64 {
    let magnitude = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    return bitcast<f64>(magnitude | (bitcast<u64>(s) & 0x8000000000000000lu));
}
fn m_abs(x: f64) -> f64 {
    return m_copysign(x, f64(1.0));
}
fn m_neg(x: f64) -> f64 {
    return -x;
}
fn m_max(a: f64, b: f64) -> f64 {
    return select(select(b, a, a > b), a, is_nan(a));
}
fn m_min(a: f64, b: f64) -> f64 {
    return select(select(b, a, a < b), a, is_nan(a));
}
fn m_sign(x: f64) -> f64 {
    let zero = f64(0.0);
    let s = select(select(zero, f64(-1.0), x < zero), f64(1.0), x > zero);
    return select(s, zero, is_nan(x));
}
fn m_sqrt(x: f64) -> f64 {
    return sqrt(x);
}
fn m_rsqrt(x: f64) -> f64 {
    return f64(1.0) / sqrt(x);
}
fn m_floor(x: f64) -> f64 {
    return m_copysign(floor(x), x);
}
fn m_ceil(x: f64) -> f64 {
    return m_copysign(ceil(x), x);
}
fn m_trunc(x: f64) -> f64 {
    return m_copysign(trunc(x), x);
}
fn m_round(x: f64) -> f64 {
    return m_copysign(round(x), x);
}
