//! Gamma and binomial numbers, whose samplers draw until one is accepted.
//!
//! PyTorch computes partly in the parameters' type, partly in float64. Steps are rounded as there,
//! for one that is not would draw another number of times.

use super::engine::Engine;
use super::fill::Sample;

/// Rounds to the type in which PyTorch computes with a number of `T` and a float32 constant.
#[inline(always)]
fn wide<T: Sample>(x: f64) -> f64 {
    if T::DOUBLE {
        x
    } else {
        x as f32 as f64
    }
}

/// Rounds to `T`.
#[inline(always)]
fn own<T: Sample>(x: f64) -> f64 {
    T::from_f64(x).to_f64()
}

/// A gamma number of scale 1 by Marsaglia and Tsang (2000), "A simple method for generating gamma
/// variables"; NaN where `shape` is negative or NaN.
pub(super) fn gamma<T: Sample>(e: &mut Engine, shape: f64) -> f64 {
    const THIRD: f64 = (1.0f32 / 3.0) as f64;
    const SQUEEZE: f64 = 0.0331f32 as f64;
    if shape == 0.0 {
        return 0.0;
    }
    if shape.is_nan() || shape < 0.0 {
        return f64::NAN;
    }
    // Below 1 a number of the shape one larger is scaled down.
    let (mut scale, mut shape) = (1.0, shape);
    if shape < 1.0 {
        scale = (1.0 - e.next_uniform()).powf(wide::<T>(1.0 / shape));
        shape = own::<T>(wide::<T>(shape + 1.0));
    }
    let d = wide::<T>(shape - THIRD);
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = e.next_normal();
        let y = 1.0 + c * x;
        if y <= 0.0 {
            continue;
        }
        let v = y * y * y;
        let u = 1.0 - e.next_uniform();
        let xx = x * x;
        let sure = u < 1.0 - SQUEEZE * xx * xx;
        if sure || u.ln() < 0.5 * xx + d * (1.0 - v + v.ln()) {
            return own::<T>(scale * d * v);
        }
    }
}

/// A number of successes in `count` trials; NaN where a parameter is, and where `count` is infinite
/// as many.
pub(super) fn binomial<T: Sample>(e: &mut Engine, count: f64, prob: f64) -> f64 {
    if count <= 0.0 || prob <= 0.0 {
        return 0.0;
    }
    if count.is_nan() || prob.is_nan() {
        return f64::NAN;
    }
    if prob >= 1.0 || count.is_infinite() {
        return count;
    }
    let small = if prob <= 0.5 {
        prob
    } else {
        own::<T>(1.0 - prob)
    };
    let draw = if own::<T>(count * small) >= 10.0 {
        transformed::<T>(e, count, small)
    } else {
        waited::<T>(e, count, small)
    };
    if prob <= 0.5 {
        draw
    } else {
        own::<T>(count - draw)
    }
}

/// Successes by the trials up to each: geometric numbers, until they are more than `count`.
fn waited<T: Sample>(e: &mut Engine, count: f64, prob: f64) -> f64 {
    let log_failure = own::<T>((-prob).ln_1p());
    let (mut trials, mut successes) = (0.0, 0.0);
    loop {
        trials += (e.next_uniform().ln() / log_failure).ceil();
        if trials > count {
            return successes;
        }
        successes = own::<T>(successes + 1.0);
    }
}

/// What Stirling's formula leaves of log(k!).
fn stirling_tail(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.0810614667953272,
        0.0413406959554092,
        0.0276779256849983,
        0.02079067210376509,
        0.0166446911898211,
        0.0138761288230707,
        0.0118967099458917,
        0.0104112652619720,
        0.00925546218271273,
        0.00833056343336287,
    ];
    if let Some(&tail) = FIRST.get(k as usize) {
        return tail;
    }
    let n = k + 1.0;
    let squared = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / squared) / squared) / n
}

/// The transformed rejection with squeeze of Hormann (1993), "The generation of binomial random
/// variates", for `count * prob` of at least 10 and `prob` of at most one half.
fn transformed<T: Sample>(e: &mut Engine, count: f64, prob: f64) -> f64 {
    let r = own::<T>;
    let mean = r(count * prob);
    let failure = r(1.0 - prob);
    let deviation = r(r(mean * failure).sqrt());
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * prob;
    let c = mean + 0.5;
    let box_height = 0.92 - 4.2 / b;
    let odds = r(prob / failure);
    let alpha = (2.83 + 5.1 / b) * deviation;
    let mode = r(r(count + 1.0) * prob).floor();
    let above_mode = count - mode + 1.0;
    loop {
        let u = e.next_uniform() - 0.5;
        let v = e.next_uniform();
        let side = 0.5 - u.abs();
        let k = r(((2.0 * a / side + b) * u + c).floor());
        if k < 0.0 || k > count {
            continue;
        }
        if side >= 0.07 && v <= box_height {
            return k;
        }
        let left = r(r(count - k) + 1.0);
        let height = (v * alpha / (a / (side * side) + b)).ln();
        let bound = (mode + 0.5) * ((mode + 1.0) / (odds * above_mode)).ln()
            + r(count + 1.0) * (above_mode / left).ln()
            + (k + 0.5) * (odds * left / r(k + 1.0)).ln()
            + stirling_tail(mode)
            + stirling_tail(count - mode)
            - stirling_tail(k)
            - stirling_tail(r(count - k));
        if height <= bound {
            return k;
        }
    }
}
