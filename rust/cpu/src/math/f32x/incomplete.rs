//! The regularised incomplete gamma functions of many numbers in step, in float64.

use super::super::{f64x, incomplete};
use super::gamma::lgamma_parts;
use super::{ln_d, poly_d};
use std::f64::consts::TAU;

/// Numbers in step.
const LANES: usize = 32;
/// Terms between two looks at what is left.
const STRIDE: usize = 8;
/// What a sum leaves out, by itself.
const LEAST: f64 = 1e-11;
/// Where both parts of a quotient are scaled: from there a stride's terms reach no infinity.
const HUGE: f64 = 1e100;

/// x^a e^-x / gamma(a + 1), for a of at most `incomplete::LARGE`; zero below 1e-130.
#[inline(always)]
fn front(a: f64, x: f64) -> f64 {
    const STIRLING: [f64; 4] = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0];
    let (ln_gamma, product) = lgamma_parts(a + 1.0);
    let small = a * ln_d(x) - x - ln_gamma;
    let w = 1.0 / a;
    let d = (x - a) * w;
    let large = a * (f64x::log1p(d) - d) - w * poly_d(w * w, &STIRLING);
    let few = a < 20.0;
    let e = if few { small } else { large };
    let scale = if few { product } else { 1.0 / (TAU * a).sqrt() };
    let y = f64x::exp_normal(if e < -300.0 { -300.0 } else { e }) * scale;
    if e < -300.0 {
        0.0
    } else {
        y
    }
}

/// Numbers of one kind, and where their results go.
struct Group {
    a: [f64; LANES],
    x: [f64; LANES],
    at: [usize; LANES],
    len: usize,
}

impl Group {
    fn new() -> Group {
        Group {
            a: [1.0; LANES],
            x: [1.0; LANES],
            at: [0; LANES],
            len: 0,
        }
    }

    #[inline(always)]
    fn fronts(&self) -> [f64; LANES] {
        let mut y = [0.0; LANES];
        for j in 0..LANES {
            y[j] = front(self.a[j], self.x[j]);
        }
        y
    }

    /// P(a, x) by the power series over one denominator, so that no term waits for a quotient.
    #[inline(always)]
    fn series(&self) -> [f64; LANES] {
        let mut term = [1.0_f64; LANES];
        let (mut above, mut below) = ([1.0_f64; LANES], [1.0; LANES]);
        let mut k = 0.0;
        while k < incomplete::MOST_TERMS as f64 {
            let mut left = false;
            for j in 0..LANES {
                let (a, x) = (self.a[j] + k, self.x[j]);
                let (mut t, mut n, mut d) = (term[j], above[j], below[j]);
                for s in 1..STRIDE + 1 {
                    let f = a + s as f64;
                    t *= x;
                    n = n.mul_add(f, t);
                    d *= f;
                }
                let scale = if n > HUGE { 1.0 / HUGE } else { 1.0 };
                // What is small enough adds nothing more.
                let more = t > LEAST * n;
                left |= more;
                term[j] = if more { t * scale } else { 0.0 };
                above[j] = n * scale;
                below[j] = d * scale;
            }
            k += STRIDE as f64;
            if !left {
                break;
            }
        }
        let mut y = self.fronts();
        for j in 0..LANES {
            y[j] *= above[j] / below[j];
        }
        y
    }

    /// Q(a, x) by the continued fraction of DLMF 8.9.2, numerators and denominators each by their
    /// recurrence.
    #[inline(always)]
    fn fraction(&self) -> [f64; LANES] {
        let mut y = self.fronts();
        let (mut above, mut below) = ([[0.0_f64; LANES], [1.0; LANES]], [[1.0_f64; LANES]; 2]);
        for j in 0..LANES {
            y[j] *= self.a[j];
            below[1][j] = self.x[j] + 1.0 - self.a[j];
        }
        let mut k = 0.0;
        while k < incomplete::MOST_TERMS as f64 {
            let mut left = false;
            for j in 0..LANES {
                let (a, x) = (self.a[j], self.x[j]);
                let (mut n, mut d) = ([above[0][j], above[1][j]], [below[0][j], below[1][j]]);
                let mut b = x + 1.0 - a + 2.0 * k;
                for s in 1..STRIDE / 2 + 1 {
                    let i = k + s as f64;
                    let c = i * (a - i);
                    b += 2.0;
                    n = [n[1], b.mul_add(n[1], c * n[0])];
                    d = [d[1], b.mul_add(d[1], c * d[0])];
                }
                let (new, old) = (n[1] * d[0], n[0] * d[1]);
                // A result of zero is one, whatever its fraction.
                left |= ((new - old).abs() > LEAST * new.abs()) & (y[j] != 0.0);
                let scale = if d[1].abs() > HUGE { 1.0 / HUGE } else { 1.0 };
                (above[0][j], above[1][j]) = (n[0] * scale, n[1] * scale);
                (below[0][j], below[1][j]) = (d[0] * scale, d[1] * scale);
            }
            k += (STRIDE / 2) as f64;
            if !left {
                break;
            }
        }
        for j in 0..LANES {
            let q = above[1][j] / below[1][j] * y[j];
            y[j] = if y[j] == 0.0 { 0.0 } else { q };
        }
        y
    }

    /// Writes the results: P or what it lacks to one by the series, Q or the same by the fraction.
    #[inline(always)]
    unsafe fn give<const LOWER: bool, const SERIES: bool>(&mut self, y: *mut f32) {
        for j in self.len..LANES {
            (self.a[j], self.x[j]) = (1.0, 1.0);
        }
        let v = if SERIES {
            self.series()
        } else {
            self.fraction()
        };
        for j in 0..self.len {
            let v = if v[j] < 1.0 { v[j] } else { 1.0 };
            // SAFETY: the places are those of elements of `y`.
            unsafe { *y.add(self.at[j]) = if LOWER == SERIES { v } else { 1.0 - v } as f32 };
        }
        self.len = 0;
    }
}

/// y = P(a, x), or Q(a, x) where not `LOWER`; `y` may be `a` or `x`.
// SAFETY: `a`, `x` and `y` have `n` elements.
#[inline(always)]
pub unsafe fn incomplete<const LOWER: bool>(a: *const f32, x: *const f32, y: *mut f32, n: usize) {
    let (mut sums, mut fractions) = (Group::new(), Group::new());
    for i in 0..n {
        // SAFETY: the element is below `n`. A result is written after its operands were read.
        unsafe {
            let (a, x) = (*a.add(i), *x.add(i));
            let plain = (a as f64 >= incomplete::SMALL)
                & (x >= f32::MIN_POSITIVE)
                & (a as f64 <= incomplete::LARGE)
                & (x < f32::INFINITY);
            if !plain {
                *y.add(i) = match LOWER {
                    true => incomplete::igamma_single(a, x),
                    false => incomplete::igammac_single(a, x),
                };
                continue;
            }
            let (a, x) = (a as f64, x as f64);
            // Both are written, so that nothing is guessed.
            let low = x < a + 1.0;
            for group in [&mut sums, &mut fractions] {
                (group.a[group.len], group.x[group.len]) = (a, x);
                group.at[group.len] = i;
            }
            sums.len += low as usize;
            fractions.len += !low as usize;
            if sums.len == LANES {
                sums.give::<LOWER, true>(y);
            }
            if fractions.len == LANES {
                fractions.give::<LOWER, false>(y);
            }
        }
    }
    // SAFETY: the element is below `n`. A result is written after its operands were read.
    unsafe {
        sums.give::<LOWER, true>(y);
        fractions.give::<LOWER, false>(y);
    }
}
