//! Numbers, real or complex, as blocked factorisations see them, and where they lie. Real and imaginary
//! parts lie apart, so that products are those of real matrices, and vectors of parts (`wide`) need no
//! exchange of lanes.

use super::wide::{Pair, Real, Wide};
use super::Precision;
use crate::alloc::Workspace;
use crate::cpu::gemm::gemm;
use crate::cpu::pool::Ptr;
use crate::cpu::simd::Simd;
use std::ops::{Add, Mul, Neg, Sub};

/// A complex number as tensors hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

/// A real or complex number.
pub trait Entry:
    Copy
    + Default
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    type Part: Precision;
    fn of(x: Self::Part) -> Self;
    fn re(self) -> Self::Part;
    fn conj(self) -> Self;
    /// The size that LAPACK compares pivots by.
    fn size(self) -> Self::Part;
    /// The product with a real number.
    fn scaled(self, by: Self::Part) -> Self;
    /// The quotient, whose squares stay in range.
    fn over(self, d: Self) -> Self;
    fn in_range(self) -> bool;
    /// The square of the magnitude of the number times `by`.
    fn squared_by(self, by: f64) -> f64;
    #[inline(always)]
    fn squared(self) -> f64 {
        self.squared_by(1.0)
    }
}

impl<T: Precision> Entry for T {
    type Part = T;
    #[inline(always)]
    fn of(x: T) -> T {
        x
    }
    #[inline(always)]
    fn re(self) -> T {
        self
    }
    #[inline(always)]
    fn conj(self) -> T {
        self
    }
    #[inline(always)]
    fn size(self) -> T {
        Precision::abs(self)
    }
    #[inline(always)]
    fn scaled(self, by: T) -> T {
        self * by
    }
    #[inline(always)]
    fn over(self, d: T) -> T {
        self / d
    }
    #[inline(always)]
    fn in_range(self) -> bool {
        Precision::finite(self)
    }
    #[inline(always)]
    fn squared_by(self, by: f64) -> f64 {
        let x = self.to_f64() * by;
        x * x
    }
}

impl<T: Precision> Add for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        Complex {
            re: self.re + o.re,
            im: self.im + o.im,
        }
    }
}
impl<T: Precision> Sub for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        Complex {
            re: self.re - o.re,
            im: self.im - o.im,
        }
    }
}
impl<T: Precision> Mul for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        Complex {
            re: self.re * o.re - self.im * o.im,
            im: self.re * o.im + self.im * o.re,
        }
    }
}
impl<T: Precision> Neg for Complex<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Complex {
            re: -self.re,
            im: -self.im,
        }
    }
}

impl<T: Precision> Entry for Complex<T> {
    type Part = T;
    #[inline(always)]
    fn of(x: T) -> Self {
        Complex {
            re: x,
            im: T::default(),
        }
    }
    #[inline(always)]
    fn re(self) -> T {
        self.re
    }
    #[inline(always)]
    fn conj(self) -> Self {
        Complex {
            re: self.re,
            im: -self.im,
        }
    }
    #[inline(always)]
    fn size(self) -> T {
        Precision::abs(self.re) + Precision::abs(self.im)
    }
    #[inline(always)]
    fn scaled(self, by: T) -> Self {
        Complex {
            re: self.re * by,
            im: self.im * by,
        }
    }
    #[inline(always)]
    fn over(self, d: Self) -> Self {
        let unit = d.size();
        if !(unit > T::default() && Precision::finite(unit)) {
            let square = d.re * d.re + d.im * d.im;
            let x = self * d.conj();
            return Complex {
                re: x.re / square,
                im: x.im / square,
            };
        }
        let part = |x: Self| Complex {
            re: x.re / unit,
            im: x.im / unit,
        };
        let (x, d) = (part(self), part(d));
        let (x, square) = (x * d.conj(), d.re * d.re + d.im * d.im);
        Complex {
            re: x.re / square,
            im: x.im / square,
        }
    }
    #[inline(always)]
    fn in_range(self) -> bool {
        Precision::finite(self.re) && Precision::finite(self.im)
    }
    #[inline(always)]
    fn squared_by(self, by: f64) -> f64 {
        self.re.squared_by(by) + self.im.squared_by(by)
    }
}

/// Where numbers lie, one after another.
///
/// # Safety
/// What is read or written is there, for the sizes of operands too, and nobody else uses what is written.
pub trait Place: Copy + Send + Sync {
    type Part: Precision;
    type Entry: Entry<Part = Self::Part>;
    type Wide<V: Simd<Elem = Self::Part>>: Wide<V, At = Self, Entry = Self::Entry>;
    /// Parts of a number.
    const PARTS: usize;
    /// The place of `n` numbers in room for their parts.
    fn within(room: *mut Self::Part, n: usize) -> Self;
    /// The place `n` numbers on.
    fn add(self, n: usize) -> Self;
    /// # Safety
    /// There is a number at the place.
    unsafe fn get(self) -> Self::Entry;
    /// # Safety
    /// There is a number at the place, and nobody else uses it.
    unsafe fn put(self, x: Self::Entry);
    /// C = alpha A B + beta C, for sizes m, n and k.
    ///
    /// # Safety
    /// The operands have so many numbers, and nobody else uses those of C.
    unsafe fn product(
        size: (usize, usize, usize),
        alpha: f64,
        a: Operand<Self>,
        b: Operand<Self>,
        beta: f64,
        c: Operand<Self>,
    );
}

/// A matrix: its first element, the steps to the next row and column, and whether its conjugate is meant.
#[derive(Clone, Copy)]
pub struct Operand<P> {
    pub at: P,
    pub rs: usize,
    pub cs: usize,
    pub conj: bool,
}

impl<P> Operand<P> {
    /// A matrix whose columns lie `step` from each other.
    pub fn columns(at: P, step: usize) -> Self {
        Operand {
            at,
            rs: 1,
            cs: step,
            conj: false,
        }
    }
    /// Its conjugate transpose.
    pub fn adjoint(self) -> Self {
        Operand {
            at: self.at,
            rs: self.cs,
            cs: self.rs,
            conj: !self.conj,
        }
    }
}

impl<T: Precision> Place for Ptr<T> {
    type Part = T;
    type Entry = T;
    type Wide<V: Simd<Elem = T>> = Real<V>;
    const PARTS: usize = 1;
    fn within(room: *mut T, _: usize) -> Self {
        Ptr::new(room)
    }
    #[inline(always)]
    fn add(self, n: usize) -> Self {
        Ptr::new(Ptr::get(&self).wrapping_add(n))
    }
    #[inline(always)]
    unsafe fn get(self) -> T {
        // SAFETY: the caller's place has a number.
        unsafe { *Ptr::get(&self) }
    }
    #[inline(always)]
    unsafe fn put(self, x: T) {
        // SAFETY: the caller's place has a number, and nobody else uses it.
        unsafe { *Ptr::get(&self) = x }
    }
    unsafe fn product(
        (m, n, k): (usize, usize, usize),
        alpha: f64,
        a: Operand<Self>,
        b: Operand<Self>,
        beta: f64,
        c: Operand<Self>,
    ) {
        let (alpha, beta) = (T::of_f64(alpha), T::of_f64(beta));
        let [(ars, acs), (brs, bcs), (crs, ccs)] =
            [&a, &b, &c].map(|x| (x.rs as isize, x.cs as isize));
        // SAFETY: the caller gives operands for these sizes.
        unsafe {
            let [a, b, c] = [a, b, c].map(|x| Ptr::get(&x.at));
            gemm(m, n, k, alpha, a, ars, acs, b, brs, bcs, beta, c, crs, ccs);
        }
    }
}

/// Where complex numbers lie: their real parts and their imaginary parts.
#[derive(Clone, Copy)]
pub struct Planes<T> {
    pub re: Ptr<T>,
    pub im: Ptr<T>,
}

impl<T: Precision> Place for Planes<T> {
    type Part = T;
    type Entry = Complex<T>;
    type Wide<V: Simd<Elem = T>> = Pair<V>;
    const PARTS: usize = 2;
    fn within(room: *mut T, n: usize) -> Self {
        Planes {
            re: Ptr::new(room),
            im: Ptr::new(room.wrapping_add(n)),
        }
    }
    #[inline(always)]
    fn add(self, n: usize) -> Self {
        Planes {
            re: self.re.add(n),
            im: self.im.add(n),
        }
    }
    #[inline(always)]
    unsafe fn get(self) -> Complex<T> {
        // SAFETY: the caller's place has a number.
        unsafe {
            Complex {
                re: self.re.get(),
                im: self.im.get(),
            }
        }
    }
    #[inline(always)]
    unsafe fn put(self, x: Complex<T>) {
        // SAFETY: the caller's place has a number, and nobody else uses it.
        unsafe {
            self.re.put(x.re);
            self.im.put(x.im);
        }
    }
    unsafe fn product(
        size: (usize, usize, usize),
        alpha: f64,
        a: Operand<Self>,
        b: Operand<Self>,
        beta: f64,
        c: Operand<Self>,
    ) {
        fn part<T: Precision>(x: &Operand<Planes<T>>, im: bool) -> Operand<Ptr<T>> {
            Operand {
                at: if im { x.at.im } else { x.at.re },
                rs: x.rs,
                cs: x.cs,
                conj: false,
            }
        }
        let sign = |x: &Operand<Self>| if x.conj { -1.0 } else { 1.0 };
        let (p, q) = (sign(&a), sign(&b));
        let (re, im) = (part(&c, false), part(&c, true));
        let run = |alpha, x, y, beta, to| {
            // SAFETY: parts of the caller's operands.
            unsafe { Ptr::product(size, alpha, part(&a, x), part(&b, y), beta, to) }
        };
        run(alpha, false, false, beta, re);
        run(-alpha * p * q, true, true, 1.0, re);
        run(alpha * q, false, true, beta, im);
        run(alpha * p, true, false, 1.0, im);
    }
}

/// Room for numbers, zeros at first.
pub struct Held<P: Place> {
    room: Workspace<P::Part>,
    n: usize,
}

impl<P: Place> Held<P> {
    pub fn zeros(n: usize) -> Self {
        Held {
            room: Workspace::full(P::Part::default(), n * P::PARTS),
            n,
        }
    }
    pub fn at(&mut self) -> P {
        P::within(self.room.as_mut_ptr(), self.n)
    }
    /// The same, only to be read.
    pub fn seen(&self) -> P {
        P::within(self.room.as_ptr().cast_mut(), self.n)
    }
}
