// Products and quotients of complex numbers, the conjugate, the real part and a number that is real, the size by
// which pivots are compared, and the modulus.
fn times(a: Acc, b: Acc) -> Acc {
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// The squares of the parts stay in range.
fn fraction(a: Acc, b: Acc) -> Acc {
    let unit = pivot_size(b);
    let d = b / unit;
    return times(a / unit, conjugate(d)) / (d.x * d.x + d.y * d.y);
}
fn conjugate(v: Acc) -> Acc {
    return vec2(v.x, -v.y);
}
fn real_part(v: Acc) -> Real {
    return v.x;
}
fn of_real(v: Real) -> Acc {
    return Acc(v, 0.0);
}
fn pivot_size(v: Acc) -> Real {
    return abs(v.x) + abs(v.y);
}
fn modulus_of(v: Acc) -> Real {
    if (!is_true(v)) { return pivot_size(v); }
    let unit = pivot_size(v);
    let d = v / unit;
    return unit * sqrt(d.x * d.x + d.y * d.y);
}
