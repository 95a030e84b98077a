// Real numbers as complex ones have them: products and quotients, the conjugate, the real part and a number that is
// real, the size by which pivots are compared, and the modulus.
fn times(a: Acc, b: Acc) -> Acc {
    return a * b;
}
fn fraction(a: Acc, b: Acc) -> Acc {
    return a / b;
}
fn conjugate(v: Acc) -> Acc {
    return v;
}
fn real_part(v: Acc) -> Real {
    return v;
}
fn of_real(v: Real) -> Acc {
    return v;
}
fn pivot_size(v: Acc) -> Real {
    return abs(v);
}
fn modulus_of(v: Acc) -> Real {
    return abs(v);
}
