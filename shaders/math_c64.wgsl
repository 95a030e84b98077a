// What math_complex.wgsl knows of float32.
// Beyond these a modulus is taken of a scaled number.
const MUCH: Real = 1.0e37;
const LITTLE: Real = 1.0e-30;
// From here on e^x is taken in two halves, and 2^x.
const FAR: Real = 80.0;
const FAR2: Real = 110.0;
// From here on the hyperbolic tangent is one.
const FLAT: Real = 10.0;
// ln 2 in two parts; products of the first one with leading bits are exact.
const LN2_HIGH: Real = 0.693115234;
const LN2_LOW: Real = 3.1946183e-5;

fn r_less(a: Real, b: Real) -> bool {
    return below(a, b);
}
fn r_at_most(a: Real, b: Real) -> bool {
    return not_above(a, b);
}
fn r_equal(a: Real, b: Real) -> bool {
    return same(a, b);
}
fn ratio(a: Real, b: Real) -> Real {
    return quotient(a, b);
}
// cos y and sin y.
fn turned(y: Real) -> Acc {
    return vec2(r_cos(y), r_sin(y));
}
// Of what rounding takes from an angle.
fn turned_little(y: Real) -> Acc {
    return turned(y);
}
