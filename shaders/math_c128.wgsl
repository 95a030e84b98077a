// What math_complex.wgsl knows of float64, as math_c64.wgsl.
const MUCH: Real = 1.0e307lf;
const LITTLE: Real = 1.0e-290lf;
const FAR: Real = 700.0lf;
const FAR2: Real = 1000.0lf;
const FLAT: Real = 20.0lf;
const LN2_HIGH: Real = 0.6931471675634384lf;
const LN2_LOW: Real = 1.2996506893889889e-08lf;

fn r_less(a: Real, b: Real) -> bool {
    return less(a, b);
}
fn r_at_most(a: Real, b: Real) -> bool {
    return at_most(a, b);
}
fn r_equal(a: Real, b: Real) -> bool {
    return equal(a, b);
}
fn ratio(a: Real, b: Real) -> Real {
    return a / b;
}
// By one reduction.
fn turned(y: Real) -> Acc {
    if (r_is_nan(y) || r_is_inf(y)) { return Acc(r_nan()); }
    let t = r_turns(r_abs(y));
    var c = r_cos_series(t.rest);
    var s = r_sin_series(t.rest);
    if ((t.whole & 1u) == 1u) {
        let other = c;
        c = -s;
        s = other;
    }
    if ((t.whole & 2u) == 2u) {
        c = -c;
        s = -s;
    }
    return vec2(c, select(s, -s, r_differ(y, 1.0)));
}
fn turned_little(y: Real) -> Acc {
    let z = y * y;
    return vec2(1.0 - 0.5 * z, y - y * z / 6.0);
}
