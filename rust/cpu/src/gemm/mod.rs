//! Matrix multiplication of any strides: C = alpha * A B + beta * D.
//!
//! D is C itself, or anything that broadcasts to it, as a bias does (a step of zero). Products of
//! float32, float64 and the half types run in kernels of our own where there is AVX2, AVX-512 or NEON
//! (`kernel`), on panels that are packed once (`pack`) and shared by all threads (`drive`), or, where
//! the first cache is small, that a task packs for itself (`stream`), with the same bits; few rows
//! or columns take ways that read the large operand once (`gemv`). Where there is AMX, large
//! products of float32 and bfloat16 go through its tiles (`amx`). Elsewhere the `gemm` crate
//! multiplies. Integers wrap.
//!
//! # For other operators
//! [`product`] takes a [`Problem`]. An operand that is no matrix in memory, such as the patches
//! of an image, implements [`Pack`] and goes through [`multiply_packed`].
#[cfg(target_arch = "x86_64")]
mod amx;
mod choice;
mod drive;
mod gemv;
mod kernel;
mod native;
mod pack;
mod plain;
mod stream;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
#[cfg(target_arch = "x86_64")]
pub use kernel::pairs::Pairs;
pub use kernel::{Fused, Step};
use native::{Native, Set};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arithmetic that products are summed in: wrapping for integers.
pub trait Acc: Copy + PartialEq + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// self * b + c.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The kernels of this machine.
    #[doc(hidden)]
    fn set() -> Option<&'static Set<Self>> {
        None
    }
}

/// An element type that matrices may have.
pub trait GemmElem: Copy + Send + Sync + 'static {
    type Acc: Acc;
    fn widen(self) -> Self::Acc;
    fn narrow(x: Self::Acc) -> Self;
    /// Whether sums are of another type.
    const NARROW: bool = false;
    /// Narrows many sums.
    #[inline(always)]
    fn narrow_all<const N: usize>(x: &[Self::Acc; N], y: &mut [Self; N]) {
        for i in 0..N {
            y[i] = Self::narrow(x[i]);
        }
    }
    /// Narrows alpha * x of `n` sums that follow each other.
    ///
    /// # Safety
    /// There are `n` sums, and room for as many elements.
    #[inline(always)]
    unsafe fn narrow_row(alpha: Self::Acc, x: *const Self::Acc, y: *mut Self, n: usize) {
        // SAFETY: there are `n` sums, and room for as many elements.
        unsafe {
            for j in 0..n {
                *y.add(j) = Self::narrow(alpha.fma(*x.add(j), Acc::ZERO));
            }
        }
    }
    /// The kernels and the packing of this machine.
    #[doc(hidden)]
    fn native() -> Option<Native<Self>> {
        None
    }

    /// Multiplies where no special path applies.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[doc(hidden)]
    unsafe fn multiply(p: &Problem<Self>);
}

macro_rules! floats {
    ($($t:ty, $native:ident);*) => {$(
        impl Acc for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self { self.mul_add(b, c) }
            fn set() -> Option<&'static Set<Self>> { choice::$native().map(|x| x.set) }
        }
        impl GemmElem for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(x: $t) -> Self { x }
            #[inline]
            fn native() -> Option<Native<Self>> { choice::$native() }
            unsafe fn multiply(p: &Problem<Self>) {
                // SAFETY: what the sizes and steps of `p` name may be read, or written in C.
                unsafe { plain::panels(p) }
            }
        }
    )*};
}
floats!(f32, native_f32; f64, native_f64);

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Acc for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self { self.wrapping_mul(b).wrapping_add(c) }
        }
        impl GemmElem for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(x: $t) -> Self { x }
            unsafe fn multiply(p: &Problem<Self>) {
                // SAFETY: what the sizes and steps of `p` name may be read, or written in C.
                unsafe { plain::tiles(p, plain::wrapping_tile::<$t>) }
            }
        }
    )*};
}
integers!(u8, i8, i16, i32, i64);

impl GemmElem for bf16 {
    type Acc = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        // To the nearest, ties to even; a NaN stays one.
        let bits = x.to_bits();
        let round = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
        let bits = if x.is_nan() { bits | 0x40_0000 } else { round };
        bf16::from_bits((bits >> 16) as u16)
    }
    const NARROW: bool = true;
    fn native() -> Option<Native<Self>> {
        choice::native_bf16()
    }
    unsafe fn multiply(p: &Problem<Self>) {
        // SAFETY: what the sizes and steps of `p` name may be read, or written in C.
        unsafe { plain::tiles(p, plain::float_tile) }
    }
}

impl GemmElem for f16 {
    type Acc = f32;
    /// Without branches, so that it becomes vector code.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = self.to_bits() as u32;
        // The product with 2^112 moves the exponent's bias, for subnormals too.
        let x = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
        let x = if bits & 0x7c00 == 0x7c00 {
            x.to_bits() | 0x7f80_0000
        } else {
            x.to_bits()
        };
        f32::from_bits(x | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        f16::from_f32(x)
    }
    const NARROW: bool = true;
    #[inline(always)]
    fn narrow_all<const N: usize>(x: &[f32; N], y: &mut [f16; N]) {
        y.convert_from_f32_slice(x);
    }
    #[inline(always)]
    unsafe fn narrow_row(alpha: f32, x: *const f32, y: *mut f16, n: usize) {
        const BLOCK: usize = 64;
        let mut wide = [0.0; BLOCK];
        for start in (0..n).step_by(BLOCK) {
            let len = BLOCK.min(n - start);
            // SAFETY: there are `n` sums, and room for as many elements; blocks end at `n`.
            unsafe {
                for j in 0..len {
                    wide[j] = alpha.mul_add(*x.add(start + j), 0.0);
                }
                let to = std::slice::from_raw_parts_mut(y.add(start), len);
                to.convert_from_f32_slice(&wide[..len]);
            }
        }
    }
    fn native() -> Option<Native<Self>> {
        choice::native_f16()
    }
    unsafe fn multiply(p: &Problem<Self>) {
        // SAFETY: what the sizes and steps of `p` name may be read, or written in C.
        unsafe { plain::tiles(p, plain::float_tile) }
    }
}

/// A matrix in memory: its first element, and the steps to the next row and column.
#[derive(Clone, Copy)]
pub struct Mat<P> {
    pub ptr: P,
    pub rs: isize,
    pub cs: isize,
}

impl<T> Mat<*const T> {
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize) -> *const T {
        // SAFETY: row `i` and column `j` lie inside the matrix.
        unsafe { self.ptr.offset(i as isize * self.rs + j as isize * self.cs) }
    }

    #[inline(always)]
    unsafe fn get(&self, i: usize, j: usize) -> T::Acc
    where
        T: GemmElem,
    {
        // SAFETY: row `i` and column `j` lie inside the matrix, which may be read.
        unsafe { (*self.at(i, j)).widen() }
    }
}

impl<T> Mat<*mut T> {
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize) -> *mut T {
        // SAFETY: row `i` and column `j` lie inside the matrix.
        unsafe { self.ptr.offset(i as isize * self.rs + j as isize * self.cs) }
    }
}

impl<P> Mat<P> {
    pub fn new(ptr: P, rs: isize, cs: isize) -> Self {
        Mat { ptr, rs, cs }
    }

    fn transposed(self) -> Self {
        Mat::new(self.ptr, self.cs, self.rs)
    }
}

/// The bfloat16 terms of a float32 number in products that may be reduced.
static TERMS: AtomicUsize = AtomicUsize::new(3);

/// Sets the precision of float32 products that ask for it, where machines have faster ones: of 16
/// bits (2), of 8 (1), or their own (3).
pub fn set_precision(terms: usize) {
    TERMS.store(terms.clamp(1, 3), Ordering::Relaxed);
}

/// What [`set_precision`] said.
pub fn precision() -> usize {
    TERMS.load(Ordering::Relaxed)
}

/// One multiplication, whole or a part of it: C = alpha * A B + beta * D.
///
/// A is m x k and B k x n. Steps may have any sign, and be zero for all but C. D is not read where
/// `beta` is zero; it may be C itself.
#[derive(Clone, Copy)]
pub struct Problem<T: GemmElem> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: T::Acc,
    pub a: Mat<*const T>,
    pub b: Mat<*const T>,
    pub beta: T::Acc,
    pub d: Mat<*const T>,
    pub c: Mat<*mut T>,
    /// Whether float32 may have the precision of [`set_precision`].
    pub reduced: bool,
}

// SAFETY: threads get parts of C that are disjoint; A, B and D are only read.
unsafe impl<T: GemmElem> Sync for Problem<T> {}

impl<T: GemmElem> Problem<T> {
    /// Writes alpha * x + beta * d.
    #[inline(always)]
    unsafe fn put(&self, i: usize, j: usize, x: T::Acc) {
        let (zero, one) = (T::Acc::ZERO, T::Acc::ONE);
        // SAFETY: row `i` and column `j` lie inside C, and no other thread touches that element.
        unsafe {
            // Factors of one leave sums, with the same bits: where the compiler has no fused instruction,
            // outside of kernels, each product and sum would be a call.
            let whole = match (self.alpha == one, self.beta == zero, self.beta == one) {
                (true, true, _) => x.fma(one, zero),
                (true, _, true) => x.fma(one, self.d.get(i, j).fma(one, zero)),
                _ => self.scaled(i, j, x),
            };
            *self.c.at(i, j) = T::narrow(whole);
        }
    }

    // SAFETY: row `i` and column `j` lie inside D, which may be read unless `beta` is zero.
    #[inline(always)]
    unsafe fn scaled(&self, i: usize, j: usize, x: T::Acc) -> T::Acc {
        let rest = if self.beta == Acc::ZERO {
            T::Acc::ZERO
        } else {
            // SAFETY: D has row `i` and column `j`, and is readable where `beta` is not zero.
            self.beta.fma(unsafe { self.d.get(i, j) }, T::Acc::ZERO)
        };
        self.alpha.fma(x, rest)
    }

    /// The same problem with the roles of A and B exchanged: C' = B' A'.
    fn transposed(self) -> Self {
        Problem {
            m: self.n,
            n: self.m,
            a: self.b.transposed(),
            b: self.a.transposed(),
            d: self.d.transposed(),
            c: self.c.transposed(),
            ..self
        }
    }

    /// The part that makes `m` rows and `n` columns from row `i` and column `j` on.
    fn block(&self, i: usize, j: usize, m: usize, n: usize) -> Self {
        let (i_, j_) = (i as isize, j as isize);
        let (a, b, d) = (self.a, self.b, self.d);
        // Operands that pack themselves have no address, and D need not.
        Problem {
            m,
            n,
            a: Mat {
                ptr: a.ptr.wrapping_offset(i_ * a.rs),
                ..a
            },
            b: Mat {
                ptr: b.ptr.wrapping_offset(j_ * b.cs),
                ..b
            },
            d: Mat {
                ptr: d.ptr.wrapping_offset(i_ * d.rs + j_ * d.cs),
                ..d
            },
            c: Mat {
                ptr: self.c.ptr.wrapping_offset(i_ * self.c.rs + j_ * self.c.cs),
                ..self.c
            },
            ..*self
        }
    }
}

/// An operand that brings itself into panels, for products that have no matrix in memory.
///
/// A lane is a row of A or a column of B; both are packed the same way.
pub trait Pack<E>: Sync {
    /// Writes `dst[(q - depth.start) * width + (l - lanes.start)]` for all lanes and depths, and
    /// zeros for lanes from `lanes.len()` up to `width`.
    ///
    /// A panel has at most 32 lanes and 256 depths. Called by several threads at once.
    ///
    /// # Safety
    /// The ranges lie inside the operand, `lanes` is not longer than `width`, and `dst` has room
    /// for `depth.len() * width` elements, no other thread's.
    unsafe fn pack(&self, lanes: Range<usize>, depth: Range<usize>, width: usize, dst: *mut E);
}

/// [`product`] of operands that pack themselves; `p.a` and `p.b` are not read.
///
/// # Safety
/// As for [`product`]; A has `p.m` lanes and B `p.n`, of depth `p.k`. C's columns are contiguous.
#[allow(dead_code)]
pub unsafe fn multiply_packed<T: GemmElem>(
    a: &dyn Pack<T::Acc>,
    b: &dyn Pack<T::Acc>,
    p: &Problem<T>,
) where
    T::Acc: GemmElem<Acc = T::Acc>,
{
    if p.m == 0 || p.n == 0 {
        return;
    }
    if p.k == 0 || p.alpha == Acc::ZERO {
        // SAFETY: `p` names elements of C that may be written, and of D that may be read.
        return unsafe { plain::nothing(p) };
    }
    if let Some(set) = T::Acc::set() {
        // SAFETY: A and B have lanes and depths as `p` says, and C's columns are contiguous; the
        // machine has the set.
        return unsafe { drive::blocked(&drive::Vectors { set, a, b }, None, p.k, p) };
    }
    // SAFETY: A and B have lanes and depths as `p` says, which names elements of C and D.
    unsafe { plain::unpacked(a, b, p) }
}

/// C = alpha * A B + beta * D. Splits the work over the pool unless called inside it.
///
/// # Safety
/// Every element that the sizes and steps name lies in memory that may be read (A, B, D) or
/// written (C). Elements of C are distinct, none lies in A or B, and none in D but at the same
/// place.
pub unsafe fn product<T: GemmElem>(p: &Problem<T>) {
    // SAFETY: `p` names elements that may be read, or written in C, and the kernels keep to its
    // sizes.
    unsafe {
        let (m, n, k) = (p.m, p.n, p.k);
        if m == 0 || n == 0 {
        } else if k == 0 || p.alpha == Acc::ZERO {
            plain::nothing(p);
        } else {
            if let Some(x) = T::native() {
                return choice::multiply(&x, p);
            }
            if n == 1 {
                plain::vector(p);
            } else if m == 1 {
                plain::vector(&p.transposed());
            } else if m.saturating_mul(n).saturating_mul(k) <= plain::TINY {
                plain::tiny(p);
            } else {
                T::multiply(p);
            }
        }
    }
}

/// The elements of C where they are contiguous, for who goes on from its tiles; or none.
fn whole_result<T: GemmElem>(p: &Problem<T>) -> usize {
    match p.c.cs == 1 && p.c.rs == p.n as isize {
        true => p.m * p.n,
        false => 0,
    }
}

/// The part `i` of `n` things in `parts` parts of almost the same size.
#[inline]
fn part(n: usize, parts: usize, i: usize) -> Range<usize> {
    n * i / parts..n * (i + 1) / parts
}

/// C = alpha * A B + beta * C for an m x k matrix A and a k x n matrix B. See [`product`].
///
/// # Safety
/// As for [`product`].
pub unsafe fn gemm<T: GemmElem>(
    m: usize,
    n: usize,
    k: usize,
    alpha: T::Acc,
    a: *const T,
    a_rs: isize,
    a_cs: isize,
    b: *const T,
    b_rs: isize,
    b_cs: isize,
    beta: T::Acc,
    c: *mut T,
    c_rs: isize,
    c_cs: isize,
) {
    // SAFETY: sizes and steps name elements that may be read, or written in C.
    unsafe {
        product(&Problem {
            m,
            n,
            k,
            alpha,
            a: Mat::new(a, a_rs, a_cs),
            b: Mat::new(b, b_rs, b_cs),
            beta,
            d: Mat::new(c as *const T, c_rs, c_cs),
            c: Mat::new(c, c_rs, c_cs),
            reduced: false,
        })
    }
}

/// The sum of x[i] * y[i] over `n` elements.
///
/// # Safety
/// Both steps name elements that may be read.
pub unsafe fn dot<T: GemmElem>(n: usize, x: *const T, dx: isize, y: *const T, dy: isize) -> T {
    let mut c = T::narrow(Acc::ZERO);
    // SAFETY: the steps name `n` elements of both, and `c` is one.
    unsafe {
        gemm(
            1,
            1,
            n,
            Acc::ONE,
            x,
            0,
            dx,
            y,
            dy,
            0,
            Acc::ZERO,
            &mut c,
            1,
            1,
        )
    };
    c
}

/// y = alpha * A x + beta * y for an m x k matrix A.
///
/// # Safety
/// As for [`gemm`].
pub unsafe fn gemv<T: GemmElem>(
    m: usize,
    k: usize,
    alpha: T::Acc,
    a: *const T,
    a_rs: isize,
    a_cs: isize,
    x: *const T,
    dx: isize,
    beta: T::Acc,
    y: *mut T,
    dy: isize,
) {
    // SAFETY: sizes and steps name elements that may be read, or written in `y`.
    unsafe {
        gemm(m, 1, k, alpha, a, a_rs, a_cs, x, dx, 0, beta, y, dy, 0);
    }
}

#[cfg(test)]
mod tests;
