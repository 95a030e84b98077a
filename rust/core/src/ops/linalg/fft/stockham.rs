//! Transforms of 2^k values with AVX-512: a few passes of large radix from one room to another, in
//! Stockham's order, which needs no exchange of places. Real and imaginary parts lie apart in between.
//! Swarztrauber 1984, Parallel Computing 1.

use super::long::root;
use super::passes::{bring_together, first, last, middle, tell_apart, FftFloat, Parts};
use crate::cpu::simd::Simd;
use crate::isa::Level;
use crate::{alloc, machine};
use rustfft::num_complex::Complex;
use rustfft::{Direction, Fft as Plan, FftDirection, Length};

/// Whether numbers are pairs or lie apart, and where.
#[derive(Clone, Copy)]
enum Place<T> {
    Pairs(*mut T),
    Apart(Parts<*mut T>),
}

/// A transform and its roots.
pub(super) struct Stockham<T> {
    n: usize,
    forward: bool,
    /// After the first one, which is the number of lanes.
    radices: Vec<usize>,
    /// Of each pass but the last one, one after another.
    roots: Vec<T>,
}

impl<T: FftFloat> Stockham<T> {
    /// Numbers between parts, so that those of one place do not meet in the caches.
    const GAP: usize = 32;
    const LANES: usize = <T::Wide as Simd>::LANES;

    /// The transform of `n` values, where it is quicker this way.
    pub(super) fn new(n: usize, forward: bool) -> Option<Stockham<T>> {
        let lanes = Self::LANES;
        if !n.is_power_of_two() || n < lanes * lanes || machine::level() != Level::Avx512 {
            return None;
        }
        // Eights, and one 16 or 4 for what is left.
        let bits = (n / lanes).trailing_zeros() as usize;
        let mut radices = alloc::full(8, bits / 3);
        match bits % 3 {
            1 => radices[0] = 16,
            2 => radices.push(4),
            _ => {}
        }
        let number = |v: f64| T::from_f64(v).unwrap_or_else(T::zero);
        // Exchanging real and imaginary parts on both sides makes it the inverse.
        let root = |k: usize, n: usize| {
            let (re, im) = root(k % n, n);
            [number(re), number(-im)]
        };
        let mut left = n / lanes;
        let mut roots = Vec::new();
        for p in (0..left).step_by(lanes) {
            for k in 1..lanes {
                let of = |part: usize| (p..p + lanes).map(move |p| root(p * k, n)[part]);
                roots.extend(of(0).chain(of(1)));
            }
        }
        for &r in &radices[..radices.len() - 1] {
            let all = left;
            left /= r;
            roots.extend((0..left).flat_map(|p| (1..r).flat_map(move |k| root(p * k, all))));
        }
        Some(Stockham {
            n,
            forward,
            radices,
            roots,
        })
    }

    /// Room that a transform needs.
    fn room(&self) -> usize {
        2 * (self.n + Self::GAP) + 64 / size_of::<Complex<T>>()
    }

    /// The two places of `n` values in it, at lines of the cache.
    fn places(&self, room: &mut [Complex<T>]) -> [Parts<*mut T>; 2] {
        assert!(room.len() >= self.room());
        let at = room.as_mut_ptr().cast::<T>();
        let at = at.wrapping_byte_add(at.addr().next_multiple_of(64) - at.addr());
        let part = |i: usize| at.wrapping_add(i * (self.n + Self::GAP));
        [0, 2].map(|i| Parts {
            re: part(i),
            im: part(i + 1),
        })
    }

    /// From one of the places, or elsewhere, to `y` or the place that is returned.
    /// SAFETY: `x` has `n` values, and `y` room for as many; it may be `x` where that is not a place.
    unsafe fn transform(
        &self,
        x: Place<T>,
        y: Option<*mut T>,
        scale: T,
        [mut from, mut to]: [Parts<*mut T>; 2],
    ) -> Parts<*mut T> {
        let back = !self.forward;
        let (mut s, mut m) = (Self::LANES, self.n / Self::LANES);
        let mut w = self.roots.as_ptr();
        // SAFETY: `x` has `n` values, and `y` room for as many; it may be `x` where that is not a
        // place; there are roots for each pass, and the machine has AVX-512.
        unsafe {
            macro_rules! first {
                ($apart:literal, $back:literal, $x:expr) => {
                    match Self::LANES {
                        16 => first::<T::Wide, 16, $apart, $back>($x, m, w, to),
                        _ => first::<T::Wide, 8, $apart, $back>($x, m, w, to),
                    }
                };
            }
            match x {
                Place::Pairs(re) if back => first!(false, true, Parts { re, im: re }),
                Place::Pairs(re) => first!(false, false, Parts { re, im: re }),
                Place::Apart(x) => first!(true, false, x.exchanged(back)),
            }
            w = w.add(2 * m * (s - 1));
            let [radices @ .., end] = &self.radices[..] else {
                return to;
            };
            for &r in radices {
                (from, to) = (to, from);
                m /= r;
                match r {
                    16 => middle::<T::Wide, 16>(from, m, s, w, to),
                    _ => middle::<T::Wide, 8>(from, m, s, w, to),
                }
                w = w.add(2 * m * (r - 1));
                s *= r;
            }
            macro_rules! last {
                ($apart:literal, $back:literal, $y:expr) => {
                    match end {
                        16 => last::<T::Wide, 16, $apart, $back>(to, s, scale, $y),
                        8 => last::<T::Wide, 8, $apart, $back>(to, s, scale, $y),
                        _ => last::<T::Wide, 4, $apart, $back>(to, s, scale, $y),
                    }
                };
            }
            match y {
                Some(re) if back => last!(false, true, Parts { re, im: re }),
                Some(re) => last!(false, false, Parts { re, im: re }),
                None => last!(true, false, from.exchanged(back)),
            }
        }
        from
    }

    /// `n` values to as many, times `scale`.
    /// SAFETY: as for [`Self::transform`].
    pub(super) unsafe fn complex(
        &self,
        x: *const Complex<T>,
        y: *mut Complex<T>,
        scale: T,
        room: &mut [Complex<T>],
    ) {
        let x = Place::Pairs(x.cast_mut().cast());
        // SAFETY: `x` has `n` values, and `y` room for as many; it may be `x` where that is not a
        // place.
        unsafe { self.transform(x, Some(y.cast()), scale, self.places(room)) };
    }

    /// The first half of the transform of `2 * n` real values, and its middle; `re` and `im` are
    /// roots of one up to a quarter.
    /// SAFETY: `x` has `2 * n` values, `y` room for `n + 1`.
    pub(super) unsafe fn spectrum(
        &self,
        x: *const T,
        (re, im): (&[T], &[T]),
        y: *mut Complex<T>,
        scale: T,
        room: &mut [Complex<T>],
    ) {
        let w = roots_of(self.n, re, im);
        let half = scale / (T::one() + T::one());
        // SAFETY: `x` has `2 * n` values, `y` room for `n + 1`; two real values are a complex one,
        // and the machine has AVX-512.
        unsafe {
            let x = Place::Pairs(x.cast_mut());
            let z = self.transform(x, None, half, self.places(room));
            tell_apart::<T::Wide>(z, self.n, w, y.cast());
        }
    }

    /// `2 * n` real values from the first half of their transform, and its middle; the ends count
    /// `ends` times what the others do.
    /// SAFETY: `x` has `n + 1` values, `y` room for `2 * n`.
    pub(super) unsafe fn signal(
        &self,
        x: *const T,
        (re, im): (&[T], &[T]),
        ends: T,
        y: *mut T,
        scale: T,
        room: &mut [Complex<T>],
    ) {
        let (w, places) = (roots_of(self.n, re, im), self.places(room));
        // SAFETY: as for `spectrum`.
        unsafe {
            bring_together::<T::Wide>(x, self.n, w, ends, places[0]);
            self.transform(Place::Apart(places[0]), Some(y), scale, places);
        }
    }
}

/// Roots up to the middle of `m` values.
fn roots_of<T>(m: usize, re: &[T], im: &[T]) -> Parts<*mut T> {
    assert!(re.len() > m / 2 && im.len() > m / 2);
    let (re, im) = (re.as_ptr().cast_mut(), im.as_ptr().cast_mut());
    Parts { re, im }
}

impl<T: FftFloat> Length for Stockham<T> {
    fn len(&self) -> usize {
        self.n
    }
}

impl<T: FftFloat> Direction for Stockham<T> {
    fn fft_direction(&self) -> FftDirection {
        match self.forward {
            true => FftDirection::Forward,
            false => FftDirection::Inverse,
        }
    }
}

impl<T: FftFloat> Plan<T> for Stockham<T> {
    fn process_with_scratch(&self, buffer: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        for line in buffer.chunks_exact_mut(self.n) {
            let at = line.as_mut_ptr();
            // SAFETY: from a line to itself.
            unsafe { self.complex(at, at, T::one(), scratch) };
        }
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
        scratch: &mut [Complex<T>],
    ) {
        let lines = output.chunks_exact_mut(self.n);
        for (x, y) in input.chunks_exact(self.n).zip(lines) {
            // SAFETY: both have as many values as a transform.
            unsafe { self.complex(x.as_ptr(), y.as_mut_ptr(), T::one(), scratch) };
        }
    }
    fn get_inplace_scratch_len(&self) -> usize {
        self.room()
    }
    fn get_outofplace_scratch_len(&self) -> usize {
        self.room()
    }
    fn get_immutable_scratch_len(&self) -> usize {
        self.room()
    }
}
