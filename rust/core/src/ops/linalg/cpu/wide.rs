//! Vectors of numbers, real or complex. Each method asks of its caller what those of [`Simd`] do.

use super::field::{Complex, Entry, Place, Planes};
use super::Precision;
use crate::cpu::pool::Ptr;
use crate::cpu::simd::{Simd, MOST};

/// A vector of numbers whose parts lie in vectors of type V.
///
/// # Safety
/// As for [`Simd`].
pub trait Wide<V: Simd>: Copy {
    type At: Place<Part = V::Elem, Entry = Self::Entry>;
    type Entry: Entry<Part = V::Elem>;
    /// A number that vectors are multiplied by.
    type By: Copy;
    /// Groups that rows of a square of vectors are taken in, so that registers hold one.
    const GROUPS: usize;
    unsafe fn zero() -> Self;
    unsafe fn load(at: Self::At) -> Self;
    unsafe fn store(self, at: Self::At);
    unsafe fn load_first(at: Self::At, n: usize) -> Self;
    unsafe fn store_first(self, at: Self::At, n: usize);
    unsafe fn by(x: Self::Entry) -> Self::By;
    unsafe fn splat(x: Self::Entry) -> Self;
    /// self + by x.
    unsafe fn plus(self, by: Self::By, x: Self) -> Self;
    /// self + conj(factor) x, lane by lane.
    unsafe fn plus_conj(self, factor: Self, x: Self) -> Self;
    /// self + x times the number at a place.
    #[inline(always)]
    unsafe fn plus_by(self, at: Self::At, x: Self) -> Self {
        // SAFETY: the machine has the instructions of V; a number lies at the place.
        unsafe { self.plus(Self::by(at.get()), x) }
    }
    unsafe fn times(self, by: Self::By) -> Self;
    unsafe fn minus(self) -> Self;
    /// What LAPACK compares pivots by.
    unsafe fn size(self) -> V;
    unsafe fn sum(self) -> Self::Entry;
    /// Exchanges the rows and columns of as many vectors as they have lanes.
    unsafe fn transpose(x: &mut [Self; MOST]);
}

/// A vector of real numbers.
#[derive(Clone, Copy)]
pub struct Real<V>(V);

impl<V: Simd> Wide<V> for Real<V>
where
    V::Elem: Precision,
{
    type At = Ptr<V::Elem>;
    type Entry = V::Elem;
    type By = V;
    const GROUPS: usize = 1;
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe { Real(V::splat(V::Elem::default())) }
    }
    #[inline(always)]
    unsafe fn load(at: Self::At) -> Self {
        // SAFETY: the machine has the instructions of V; a vector of numbers lies there.
        unsafe { Real(V::load(Ptr::get(&at))) }
    }
    #[inline(always)]
    unsafe fn store(self, at: Self::At) {
        // SAFETY: the machine has the instructions of V; a vector of numbers has room there.
        unsafe { self.0.store(Ptr::get(&at)) }
    }
    #[inline(always)]
    unsafe fn load_first(at: Self::At, n: usize) -> Self {
        // SAFETY: the machine has the instructions of V; `n` numbers lie there.
        unsafe { Real(V::load_first(Ptr::get(&at), n)) }
    }
    #[inline(always)]
    unsafe fn store_first(self, at: Self::At, n: usize) {
        // SAFETY: the machine has the instructions of V; `n` numbers have room there.
        unsafe { self.0.store_first(Ptr::get(&at), n) }
    }
    #[inline(always)]
    unsafe fn by(x: V::Elem) -> V {
        // SAFETY: the machine has the instructions of V.
        unsafe { V::splat(x) }
    }
    #[inline(always)]
    unsafe fn splat(x: V::Elem) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe { Real(V::splat(x)) }
    }
    #[inline(always)]
    unsafe fn plus(self, by: V, x: Self) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe { Real(by.fma(x.0, self.0)) }
    }
    #[inline(always)]
    unsafe fn plus_conj(self, factor: Self, x: Self) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe { Real(factor.0.fma(x.0, self.0)) }
    }
    #[inline(always)]
    unsafe fn times(self, by: V) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe { Real(self.0.mul(by)) }
    }
    #[inline(always)]
    unsafe fn minus(self) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe { Real(V::splat(V::Elem::default()).sub(self.0)) }
    }
    #[inline(always)]
    unsafe fn size(self) -> V {
        // SAFETY: the machine has the instructions of V.
        unsafe { self.0.abs() }
    }
    #[inline(always)]
    unsafe fn sum(self) -> V::Elem {
        // SAFETY: the machine has the instructions of V.
        unsafe { self.0.sum() }
    }
    #[inline(always)]
    unsafe fn transpose(x: &mut [Self; MOST]) {
        // SAFETY: the machine has the instructions of V; the type is that of its one field, in
        // memory too where it is a vector.
        unsafe {
            let mut all = [x[0].0; MOST];
            for r in 0..V::LANES {
                all[r] = x[r].0;
            }
            V::transpose(all.as_mut_ptr());
            for r in 0..V::LANES {
                x[r] = Real(all[r]);
            }
        }
    }
}

/// A vector of complex numbers.
#[derive(Clone, Copy)]
pub struct Pair<V> {
    re: V,
    im: V,
}

/// A complex number in all lanes, with the negative of its imaginary part.
#[derive(Clone, Copy)]
pub struct Triple<V> {
    re: V,
    im: V,
    minus: V,
}

impl<V: Simd> Wide<V> for Pair<V>
where
    V::Elem: Precision,
{
    type At = Planes<V::Elem>;
    type Entry = Complex<V::Elem>;
    type By = Triple<V>;
    const GROUPS: usize = 2;
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the machine has the instructions of V.
        let zero = unsafe { V::splat(V::Elem::default()) };
        Pair { re: zero, im: zero }
    }
    #[inline(always)]
    unsafe fn load(at: Self::At) -> Self {
        // SAFETY: the machine has the instructions of V; a vector of numbers lies there.
        unsafe {
            Pair {
                re: V::load(Ptr::get(&at.re)),
                im: V::load(Ptr::get(&at.im)),
            }
        }
    }
    #[inline(always)]
    unsafe fn store(self, at: Self::At) {
        // SAFETY: the machine has the instructions of V; a vector of numbers has room there.
        unsafe {
            self.re.store(Ptr::get(&at.re));
            self.im.store(Ptr::get(&at.im));
        }
    }
    #[inline(always)]
    unsafe fn load_first(at: Self::At, n: usize) -> Self {
        // SAFETY: the machine has the instructions of V; `n` numbers lie there.
        unsafe {
            Pair {
                re: V::load_first(Ptr::get(&at.re), n),
                im: V::load_first(Ptr::get(&at.im), n),
            }
        }
    }
    #[inline(always)]
    unsafe fn store_first(self, at: Self::At, n: usize) {
        // SAFETY: the machine has the instructions of V; `n` numbers have room there.
        unsafe {
            self.re.store_first(Ptr::get(&at.re), n);
            self.im.store_first(Ptr::get(&at.im), n);
        }
    }
    #[inline(always)]
    unsafe fn by(x: Self::Entry) -> Triple<V> {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            Triple {
                re: V::splat(x.re),
                im: V::splat(x.im),
                minus: V::splat(-x.im),
            }
        }
    }
    #[inline(always)]
    unsafe fn splat(x: Self::Entry) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            Pair {
                re: V::splat(x.re),
                im: V::splat(x.im),
            }
        }
    }
    #[inline(always)]
    unsafe fn plus(self, by: Triple<V>, x: Self) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            Pair {
                re: by.minus.fma(x.im, by.re.fma(x.re, self.re)),
                im: by.im.fma(x.re, by.re.fma(x.im, self.im)),
            }
        }
    }
    #[inline(always)]
    unsafe fn plus_conj(self, factor: Self, x: Self) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            let minus = V::splat(V::Elem::default()).sub(factor.im);
            Pair {
                re: factor.im.fma(x.im, factor.re.fma(x.re, self.re)),
                im: minus.fma(x.re, factor.re.fma(x.im, self.im)),
            }
        }
    }
    #[inline(always)]
    unsafe fn times(self, by: Triple<V>) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            Pair {
                re: by.minus.fma(self.im, by.re.mul(self.re)),
                im: by.im.fma(self.re, by.re.mul(self.im)),
            }
        }
    }
    #[inline(always)]
    unsafe fn minus(self) -> Self {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            let zero = V::splat(V::Elem::default());
            Pair {
                re: zero.sub(self.re),
                im: zero.sub(self.im),
            }
        }
    }
    #[inline(always)]
    unsafe fn size(self) -> V {
        // SAFETY: the machine has the instructions of V.
        unsafe { self.re.abs().add(self.im.abs()) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> Self::Entry {
        // SAFETY: the machine has the instructions of V.
        unsafe {
            Complex {
                re: self.re.sum(),
                im: self.im.sum(),
            }
        }
    }
    #[inline(always)]
    unsafe fn transpose(x: &mut [Self; MOST]) {
        // SAFETY: the machine has the instructions of V; as many vectors as one has lanes lie
        // there.
        unsafe {
            let (mut re, mut im) = ([x[0].re; MOST], [x[0].im; MOST]);
            for r in 0..V::LANES {
                (re[r], im[r]) = (x[r].re, x[r].im);
            }
            V::transpose(re.as_mut_ptr());
            V::transpose(im.as_mut_ptr());
            for r in 0..V::LANES {
                x[r] = Pair {
                    re: re[r],
                    im: im[r],
                };
            }
        }
    }
}
