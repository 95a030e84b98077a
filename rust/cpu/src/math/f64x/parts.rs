//! What the functions share: polynomials, exponents by their bits, sums and products in two
//! parts. All of it without branches, so that loops over it become vector code.

/// Adding and subtracting this rounds to an integer, which the low bits of the sum hold.
pub const MAGIC: f64 = 6_755_399_441_055_744.0;

/// ln 2 with its last 32 bits zero, so that multiples by an exponent are exact, and the rest.
pub const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
pub const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// A polynomial, lowest coefficient first. A long one begins in two chains, of the even and of the odd powers, since each
/// step of Horner's rule waits for the step before; its last steps, which decide the rounding, are that rule's.
#[inline(always)]
pub fn poly<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let mut i = N - 1;
    let mut y = c[i];
    if N >= 14 {
        let z = x * x;
        i -= 1;
        let mut even = c[i];
        while i > 3 {
            i -= 2;
            y = y.mul_add(z, c[i + 1]);
            even = even.mul_add(z, c[i]);
        }
        y = y.mul_add(x, even);
    }
    while i > 0 {
        i -= 1;
        y = y.mul_add(x, c[i]);
    }
    y
}

/// Clamps, and lets NaN through.
#[inline(always)]
pub fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x < lo { lo } else { x };
    if x > hi {
        hi
    } else {
        x
    }
}

/// The rounded sum and what rounding took off.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// As [`two_sum`] where |a| >= |b| or a is zero.
#[inline(always)]
pub fn fast_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// The rounded product and what rounding took off.
#[inline(always)]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, a.mul_add(b, -p))
}

/// The largest exponent of the first factor of [`scale`], plus [`MAGIC`].
pub const MOST: f64 = MAGIC + 970.0;

/// m * 2^n for n from -1075 to 2040, rounded once, also where that is subnormal or infinite; and
/// zero for -1076, which is not computed: some processors take a hundred cycles for an underflow.
/// `magic` is n + MAGIC.
#[inline(always)]
pub fn scale(m: f64, magic: f64) -> f64 {
    // Two factors, the first with the bits of zero for the least n. The comparison is of floats:
    // vectors of 64-bit integers often have none.
    let part = if magic > MOST { MOST } else { magic };
    let n = part.to_bits().wrapping_sub(MAGIC.to_bits());
    let rest = magic.to_bits().wrapping_sub(part.to_bits());
    let two_to = |biased: u64| f64::from_bits(biased << 52);
    m * two_to(n.wrapping_add(53 + 1023)) * two_to(rest.wrapping_add(1023 - 53))
}

/// Splits x = 2^e * m with m from sqrt(1/2) to sqrt(2); x is positive and finite.
#[inline(always)]
pub fn split(x: f64) -> (f64, f64) {
    const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let tiny = x < f64::MIN_POSITIVE;
    let x = if tiny {
        x * 18_014_398_509_481_984.0
    } else {
        x
    };
    let bits = x.to_bits().wrapping_add((1023 << 52) - ROOT);
    let bias = if tiny { 1023.0 + 54.0 } else { 1023.0 };
    let e = f64::from_bits((bits >> 52) | TWO_52) - (f64::from_bits(TWO_52) + bias);
    let m = f64::from_bits((bits & ((1 << 52) - 1)).wrapping_add(ROOT));
    (e, m)
}
