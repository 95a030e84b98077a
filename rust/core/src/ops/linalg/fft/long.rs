//! Transforms of long lines, as those of the columns and of the rows of a matrix: each fits a cache,
//! and threads share them out. Bailey 1990, J. Supercomputing 4: the four-step method.

use super::lines::{pitch, turn};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dtype::DType;
use crate::tensor::Tensor;
use crate::{alloc, error, per_isa};
use rustfft::num_complex::Complex;
use rustfft::{Direction, Fft as Plan, FftDirection, FftNum, Length};
use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

/// The length from which on it is quicker.
const LONG: usize = 1 << 16;
/// How many times the other one of the two factors may be.
const UNEVEN: usize = 64;
/// Bytes of a row that a thread reads at a time: two lines of the cache.
const RUN: usize = 128;

/// The factors of a long length, the smaller one first, where there are such.
pub(super) fn split(n: usize) -> Option<(usize, usize)> {
    if n < LONG {
        return None;
    }
    let a = (1..=n.isqrt()).rev().find(|&a| n.is_multiple_of(a))?;
    (n / a <= UNEVEN * a).then_some((a, n / a))
}

/// The transform of `a * b` values `x[j * b + i]`: that along j for each i, times roots of one, and
/// then that along i.
pub(super) struct Long<T: FftNum> {
    /// Of `a` values and of `b`.
    parts: [Arc<dyn Plan<T>>; 2],
    /// `exp(-+ 2 pi i k j / n)` for j < a, for each k < b.
    roots: Vec<Complex<T>>,
    forward: bool,
}

/// `exp(2 pi i k / n)` for k < n, its angle taken from the next quarter of the circle.
pub(super) fn root(k: usize, n: usize) -> (f64, f64) {
    let quarter = (4 * k + n / 2) / n;
    let rest = (4 * k) as i64 - (quarter * n) as i64;
    let (sin, cos) = (FRAC_PI_2 * (rest as f64 / n as f64)).sin_cos();
    match quarter % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

per_isa! {
    /// `y = x w`.
    fn multiply[T: FftNum](x: &[Complex<T>], w: &[Complex<T>], y: &mut [Complex<T>]) {
        for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
            *y = Complex::new(x.re * w.re - x.im * w.im, x.re * w.im + x.im * w.re);
        }
    }
}

impl<T: FftNum> Long<T> {
    pub(super) fn new(parts: [Arc<dyn Plan<T>>; 2], forward: bool) -> Self {
        let [a, b] = [parts[0].len(), parts[1].len()];
        let n = a * b;
        let sign = if forward { -1.0 } else { 1.0 };
        let number = |v: f64| T::from_f64(v).unwrap_or_else(T::zero);
        let roots = alloc::gathered((0..n).map(|i| {
            let (re, im) = root((i / a) * (i % a), n);
            Complex::new(number(re), number(sign * im))
        }));
        Long {
            parts,
            roots,
            forward,
        }
    }

    /// Columns of a block that are worked on together.
    fn block() -> usize {
        RUN / size_of::<Complex<T>>()
    }

    /// Calls `f` for blocks of `n` lines with room for one, and for `part`'s scratch.
    fn blocks(
        part: &Arc<dyn Plan<T>>,
        n: usize,
        f: impl Fn(usize, usize, &mut [Complex<T>], &mut [Complex<T>]) + Sync,
    ) {
        let (zero, block) = (Complex::new(T::zero(), T::zero()), Self::block());
        parallel_for(n.div_ceil(block), 1, |range| {
            let mut near = alloc::full(zero, block * pitch(part.len()));
            let mut scratch = alloc::full(zero, part.get_inplace_scratch_len());
            for first in range.map(|i| i * block) {
                f(first, block.min(n - first), &mut near, &mut scratch);
            }
        });
    }

    /// SAFETY: `x` has as many values as a transform, `y` room for as many, and `z` too, apart from
    /// both; `y` may be `x`.
    unsafe fn transform(&self, x: *const Complex<T>, z: *mut Complex<T>, y: *mut Complex<T>) {
        let [first, second] = &self.parts;
        let (a, b) = (first.len(), second.len());
        let (x, y, z) = (Ptr::read(x), Ptr::new(y), Ptr::new(z));
        Self::blocks(first, b, |i, width, near, scratch| {
            let ys = pitch(a);
            // SAFETY: columns i to i + width of `a` rows, and as many rows of `z`, this call's own.
            unsafe {
                turn(x.at(i), b, near.as_mut_ptr(), ys, (a, width));
                for c in 0..width {
                    let line = &mut near[c * ys..][..a];
                    first.process_with_scratch(line, scratch);
                    let at = (i + c) * a;
                    multiply(line, &self.roots[at..at + a], z.part(at..at + a));
                }
            }
        });
        Self::blocks(second, a, |j, width, near, scratch| {
            let ys = pitch(b);
            // SAFETY: columns j to j + width of `b` rows of `z`, and of `y`, this call's own.
            unsafe {
                turn(z.at(j), a, near.as_mut_ptr(), ys, (b, width));
                for c in 0..width {
                    second.process_with_scratch(&mut near[c * ys..][..b], scratch);
                }
                turn(near.as_ptr(), ys, y.at(j), a, (width, b));
            }
        });
    }

    /// [`Self::transform`] of one after another.
    /// SAFETY: `all` is how many values `x` has, and `y` has room for.
    unsafe fn each(&self, x: *const Complex<T>, y: *mut Complex<T>, all: usize) {
        let n = self.len();
        // Memory of tensors is used again, so that it need not be mapped for each call.
        let bytes = n * size_of::<Complex<T>>();
        let z = match Tensor::empty(&[bytes], DType::U8, Device::Cpu) {
            Ok(z) => z,
            Err(e) => error::unwind(e),
        };
        for at in (0..all / n).map(|i| i * n) {
            // SAFETY: as for this function, and `z` has room for a transform, aligned to a line.
            unsafe { self.transform(x.add(at), z.ptr::<u8>().cast(), y.add(at)) };
        }
    }
}

impl<T: FftNum> Length for Long<T> {
    fn len(&self) -> usize {
        self.parts[0].len() * self.parts[1].len()
    }
}

impl<T: FftNum> Direction for Long<T> {
    fn fft_direction(&self) -> FftDirection {
        match self.forward {
            true => FftDirection::Forward,
            false => FftDirection::Inverse,
        }
    }
}

impl<T: FftNum> Plan<T> for Long<T> {
    fn process_with_scratch(&self, buffer: &mut [Complex<T>], _: &mut [Complex<T>]) {
        let (at, n) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: from a place to itself.
        unsafe { self.each(at, at, n) }
    }
    fn process_outofplace_with_scratch(
        &self,
        input: &mut [Complex<T>],
        output: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) {
        self.process_immutable_with_scratch(input, output, scratch);
    }
    fn process_immutable_with_scratch(
        &self,
        input: &[Complex<T>],
        output: &mut [Complex<T>],
        _: &mut [Complex<T>],
    ) {
        let n = input.len().min(output.len());
        // SAFETY: both have as many values.
        unsafe { self.each(input.as_ptr(), output.as_mut_ptr(), n) }
    }
    fn get_inplace_scratch_len(&self) -> usize {
        0
    }
    fn get_outofplace_scratch_len(&self) -> usize {
        0
    }
    fn get_immutable_scratch_len(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_near_to_each_other() {
        let cases = [(1 << 16, Some((256, 256))), (1_000_000, Some((1000, 1000)))];
        for (n, want) in cases {
            assert_eq!(split(n), want);
        }
        assert_eq!(split(1 << 15), None);
        assert_eq!(split(65_537), None);
    }

    #[test]
    fn roots_lie_on_the_circle_at_exact_quarters() {
        for n in [7, 8, 12, 1000] {
            for k in 0..n {
                let (re, im) = root(k, n);
                let angle = std::f64::consts::TAU * k as f64 / n as f64;
                assert!((re - angle.cos()).abs() < 2e-15 && (im - angle.sin()).abs() < 2e-15);
            }
        }
        assert_eq!(
            [root(2, 8), root(4, 8), root(6, 8)],
            [(0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]
        );
    }
}
