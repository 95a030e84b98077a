//! The regularised incomplete gamma functions.

use std::f64::consts::TAU;

/// From here on the next term of [`uniform`] is below 1e-13.
pub const LARGE: f64 = 1e7;
pub const MOST_TERMS: usize = 200_000;

/// x^a e^-x / gamma(a + 1), without forming the large powers.
fn front(a: f64, x: f64) -> f64 {
    if a < 20.0 {
        return (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
    }
    // Stirling: what is left of ln gamma after a ln a - a + ln(2 pi a) / 2.
    let z = 1.0 / (a * a);
    let rest = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0))) / a;
    let d = (x - a) / a;
    // Near the middle ln(x / a) is small and must be taken from d.
    let l = if d.abs() < 0.5 {
        d.ln_1p() - d
    } else {
        (x / a).ln() - d
    };
    (a * l - rest).exp() / (TAU * a).sqrt()
}

/// P(a, x) by its power series, for x below a + 1, whose terms end below `least` of the sum.
fn series(a: f64, x: f64, least: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..MOST_TERMS {
        term *= x / (a + k as f64);
        sum += term;
        if term <= sum * least {
            break;
        }
    }
    sum * front(a, x)
}

/// Q(a, x) by its continued fraction (DLMF 8.9.2), for x above a + 1, until a step changes less than
/// `least` of it. Numerators and denominators each by their recurrence, so that no step waits for a
/// quotient.
fn fraction(a: f64, x: f64, least: f64) -> f64 {
    const HUGE: f64 = 1e120;
    let scale = a * front(a, x);
    // Nor would the recurrences bear such numbers.
    if scale == 0.0 {
        return 0.0;
    }
    let mut b = x + 1.0 - a;
    let (mut above, mut below) = ([0.0, 1.0], [1.0, b]);
    for k in 1..MOST_TERMS {
        let k = k as f64;
        let n = -k * (k - a);
        b += 2.0;
        above = [above[1], b * above[1] + n * above[0]];
        below = [below[1], b * below[1] + n * below[0]];
        let (new, old) = (above[1] * below[0], above[0] * below[1]);
        if (new - old).abs() <= least * new.abs() {
            break;
        }
        if below[1].abs() > HUGE {
            above = above.map(|v| v / HUGE);
            below = below.map(|v| v / HUGE);
        }
    }
    above[1] / below[1] * scale
}

/// (P, Q) for large `a`, where sums would take too many terms: an error function of the distance
/// from the middle and the first term that corrects it (Temme 1979, SIAM J. Math. Anal. 10).
fn uniform(a: f64, x: f64) -> (f64, f64) {
    let d = (x - a) / a;
    // d - ln(1 + d), by its series where the difference would cancel.
    let half_square = if d.abs() < 1e-3 {
        d * d * (0.5 - d * (1.0 / 3.0 - d * (0.25 - d * (0.2 - d / 6.0))))
    } else {
        d - d.ln_1p()
    };
    let eta = d.signum() * (2.0 * half_square).sqrt();
    let first = if d.abs() < 1e-3 {
        -1.0 / 3.0 + eta / 12.0 - 2.0 * eta * eta / 135.0
    } else {
        1.0 / d - 1.0 / eta
    };
    let rest = (-a * half_square).exp() / (TAU * a).sqrt() * first;
    let z = eta * (0.5 * a).sqrt();
    let tail = |z: f64, rest: f64| (0.5 * libm::erfc(z) + rest).clamp(0.0, 1.0);
    (tail(-z, -rest), tail(z, rest))
}

/// Below it Q(a, x) loses digits as what P(a, x) lacks to one.
pub const SMALL: f64 = 0.01;

/// (P, Q) for `a` below [`SMALL`] and x below a + 1: what x^a / gamma(a + 1) lacks to one, and the
/// integral of (1 - e^-t) t^(a - 1) by its series.
fn small(a: f64, x: f64) -> (f64, f64) {
    // ln gamma(a + 1) by a: -gamma, then (-1)^k zeta(k) / k.
    const LN_GAMMA: [f64; 8] = [
        -0.577_215_664_901_532_9,
        0.822_467_033_424_113_2,
        -0.400_685_634_386_531_4,
        0.270_580_808_427_784_5,
        -0.207_385_551_028_673_98,
        0.169_557_176_997_408_2,
        -0.144_049_896_768_846_1,
        0.125_509_669_524_743_05,
    ];
    let ln_gamma = LN_GAMMA.iter().rev().fold(0.0, |y, c| y * a + c);
    let lacks = -(a * (x.ln() - ln_gamma)).exp_m1();
    let (mut term, mut sum) = (1.0, 0.0);
    for k in 1..24 {
        let k = k as f64;
        term *= -x / k;
        sum += term / (a + k);
    }
    let q = lacks - (1.0 - lacks) * a * sum;
    (1.0 - q, q)
}

/// Returns (P, Q), which sum to one, the smaller to about `least` of it or as a float64 can.
fn both(a: f64, x: f64, least: f64) -> (f64, f64) {
    let bad = a < 0.0 || x < 0.0 || a.is_nan() || x.is_nan();
    if bad || (a == 0.0 && x == 0.0) || (a.is_infinite() && x.is_infinite()) {
        return (f64::NAN, f64::NAN);
    }
    if x == 0.0 || a.is_infinite() {
        return (0.0, 1.0);
    }
    if a == 0.0 || x.is_infinite() {
        return (1.0, 0.0);
    }
    if a > LARGE {
        return uniform(a, x);
    }
    if a < SMALL && x < a + 1.0 {
        return small(a, x);
    }
    if x < a + 1.0 {
        let p = series(a, x, 0.1 * least).min(1.0);
        (p, 1.0 - p)
    } else {
        let q = fraction(a, x, least).min(1.0);
        (1.0 - q, q)
    }
}

/// What single and double precision ask for.
const SINGLE: f64 = 1e-10;
const DOUBLE: f64 = 1e-16;

/// The lower regularised incomplete gamma function P(a, x).
pub fn igamma(a: f64, x: f64) -> f64 {
    both(a, x, DOUBLE).0
}

/// The upper regularised incomplete gamma function Q(a, x).
pub fn igammac(a: f64, x: f64) -> f64 {
    both(a, x, DOUBLE).1
}

/// P(a, x) of a float32.
pub fn igamma_single(a: f32, x: f32) -> f32 {
    both(a as f64, x as f64, SINGLE).0 as f32
}

/// Q(a, x) of a float32.
pub fn igammac_single(a: f32, x: f32) -> f32 {
    both(a as f64, x as f64, SINGLE).1 as f32
}
