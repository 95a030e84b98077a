//! Arithmetic of complex numbers in the precision of their parts, by vectors of many numbers.

use crate::dtype::DType;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;
#[cfg(target_arch = "x86_64")]
use crate::machine::level;
use crate::ops::pointwise::Float;
use crate::per_isa;

/// A loop over numbers that are pairs of parts: the operands, the results, and how many. The results may
/// take the place of an operand.
pub type Parts = unsafe fn(x: *const *const u8, y: *mut u8, n: usize);
/// Numbers that are read before the first of them is written.
pub const BLOCK: usize = 128;

/// Smith's method, as that of single numbers, by choices in the place of questions.
#[inline(always)]
fn quotient<R: Float>(a: [R; 2], b: [R; 2]) -> [R; 2] {
    let (x, y, c, d) = (a[0].to_f64(), a[1].to_f64(), b[0].to_f64(), b[1].to_f64());
    let swapped = c.abs() < d.abs();
    let (large, small) = if swapped { (d, c) } else { (c, d) };
    let (u, v) = if swapped { (y, x) } else { (x, y) };
    let q = small / large;
    let size = large + small * q;
    let (re, im) = (
        (u + v * q) / size,
        if swapped { u * q - v } else { v - u * q } / size,
    );
    let zero = c == 0.0 && d == 0.0;
    let (re, im) = if zero {
        (x * f64::INFINITY, y * f64::INFINITY)
    } else {
        (re, im)
    };
    [R::of_f64(re), R::of_f64(im)]
}

/// By squares in float64, which hold those of float32.
#[inline(always)]
fn modulus(a: [f32; 2]) -> f32 {
    let (x, y) = (a[0] as f64, a[1] as f64);
    let r = (x * x + y * y).sqrt();
    let infinite = x.is_infinite() || y.is_infinite();
    (if infinite { f64::INFINITY } else { r }) as f32
}

/// Loops of the parts of each result.
macro_rules! loops {
    ($($name:ident[$($R:ident: $B:path)?]($($x:ident in $i:literal),*: $X:ty) -> $Y:ty { $e:expr })*) => { $(
        per_isa! {
            fn $name[$($R: $B)?] -> Parts = (x: *const *const u8, y: *mut u8, n: usize) {
                // SAFETY: operands have `n` numbers, and there is room for as many results.
                unsafe {
                    $(let $x = (*x.add($i)).cast::<$X>();)*
                    let y = y.cast::<$Y>();
                    let mut start = 0;
                    while start < n {
                        let len = BLOCK.min(n - start);
                        // Written when all are read, since they may take an operand's place.
                        let mut block = [<$Y>::default(); BLOCK];
                        for i in 0..len {
                            $(let $x = *$x.add(start + i);)*
                            block[i] = $e;
                        }
                        std::ptr::copy_nonoverlapping(block.as_ptr(), y.add(start), len);
                        start += len;
                    }
                }
            }
        }
    )* };
}
loops! {
    add[R: Float](a in 0, b in 1: [R; 2]) -> [R; 2] { [a[0] + b[0], a[1] + b[1]] }
    subtract[R: Float](a in 0, b in 1: [R; 2]) -> [R; 2] { [a[0] - b[0], a[1] - b[1]] }
    multiply[R: Float](a in 0, b in 1: [R; 2]) -> [R; 2] {
        [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
    }
    divide[R: Float](a in 0, b in 1: [R; 2]) -> [R; 2] { quotient(a, b) }
    negate[R: Float](a in 0: [R; 2]) -> [R; 2] { [-a[0], -a[1]] }
    conjugate[R: Float](a in 0: [R; 2]) -> [R; 2] { [a[0], -a[1]] }
    measure[](a in 0: [f32; 2]) -> f32 { modulus(a) }
}

/// `multiply` by instructions that tell even places from odd ones, with the same bits.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::compiled;
    use std::arch::x86_64::*;

    macro_rules! products {
        ($($level:ident $name:ident: $t:ty = $v:ty, $load:ident $store:ident $even:ident $odd:ident
           $swap:ident<$how:literal> $mul:ident $join:ident;)*) => { $(
            compiled! { $level:
                pub unsafe fn $name(x: *const *const u8, y: *mut u8, n: usize) {
                    // SAFETY: operands have `n` numbers, and there is room for as many; those of a
                    // register are read before they are written, as their place may be the same.
                    unsafe {
                        let (a, b) = ((*x).cast::<$t>(), (*x.add(1)).cast::<$t>());
                        let y = y.cast::<$t>();
                        let lanes = size_of::<$v>() / size_of::<$t>();
                        let whole = 2 * n - 2 * n % lanes;
                        let mut i = 0;
                        while i < whole {
                            let (v, w) = ($load(a.add(i)), $load(b.add(i)));
                            let by_re = $mul($even(v), w);
                            let by_im = $mul($odd(v), $swap::<$how>(w));
                            $store(y.add(i), $join(by_re, by_im));
                            i += lanes;
                        }
                        while i < 2 * n {
                            let (v, w) = ([*a.add(i), *a.add(i + 1)], [*b.add(i), *b.add(i + 1)]);
                            *y.add(i) = v[0] * w[0] - v[1] * w[1];
                            *y.add(i + 1) = v[0] * w[1] + v[1] * w[0];
                            i += 2;
                        }
                    }
                }
            }
        )* };
    }
    // Of float64 an even place is that of a pair's first number.
    compiled! { avx512:
        #[inline]
        fn first(v: __m512d) -> __m512d {
            _mm512_movedup_pd(v)
        }
        #[inline]
        fn second(v: __m512d) -> __m512d {
            _mm512_permute_pd::<0b1111_1111>(v)
        }
    }
    // Nothing is rounded by the product with one.
    compiled! { avx512:
        #[inline]
        fn join_f32(re: __m512, im: __m512) -> __m512 {
            _mm512_fmaddsub_ps(re, _mm512_set1_ps(1.0), im)
        }
        #[inline]
        fn join_f64(re: __m512d, im: __m512d) -> __m512d {
            _mm512_fmaddsub_pd(re, _mm512_set1_pd(1.0), im)
        }
    }
    compiled! { avx2:
        #[inline]
        fn first_of_four(v: __m256d) -> __m256d {
            _mm256_movedup_pd(v)
        }
        #[inline]
        fn second_of_four(v: __m256d) -> __m256d {
            _mm256_permute_pd::<0b1111>(v)
        }
    }
    products! {
        avx512 wide_f32: f32 = __m512, _mm512_loadu_ps _mm512_storeu_ps _mm512_moveldup_ps
            _mm512_movehdup_ps _mm512_permute_ps<0b10_11_00_01> _mm512_mul_ps join_f32;
        avx512 wide_f64: f64 = __m512d, _mm512_loadu_pd _mm512_storeu_pd first second
            _mm512_permute_pd<0b0101_0101> _mm512_mul_pd join_f64;
        avx2 f32s: f32 = __m256, _mm256_loadu_ps _mm256_storeu_ps _mm256_moveldup_ps
            _mm256_movehdup_ps _mm256_permute_ps<0b10_11_00_01> _mm256_mul_ps _mm256_addsub_ps;
        avx2 f64s: f64 = __m256d, _mm256_loadu_pd _mm256_storeu_pd first_of_four second_of_four
            _mm256_permute_pd<0b0101> _mm256_mul_pd _mm256_addsub_pd;
    }
}

/// The loop for a complex type, where it has one.
macro_rules! by_type {
    ($($(#[$doc:meta])* $name:ident: $of:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name(dtype: DType) -> Option<Parts> {
            match dtype {
                DType::C64 => Some($of::<f32>()),
                DType::C128 => Some($of::<f64>()),
                _ => None,
            }
        }
    )* };
}
by_type! {
    sums: add;
    plain_products: multiply;
    differences: subtract;
    quotients: divide;
    negatives: negate;
    conjugates: conjugate;
}

pub fn products(dtype: DType) -> Option<Parts> {
    #[cfg(target_arch = "x86_64")]
    match (level(), dtype) {
        (Level::Avx512, DType::C64) => return Some(x86::wide_f32),
        (Level::Avx512, DType::C128) => return Some(x86::wide_f64),
        (Level::Avx2, DType::C64) => return Some(x86::f32s),
        (Level::Avx2, DType::C128) => return Some(x86::f64s),
        _ => (),
    }
    plain_products(dtype)
}

/// Squares of float64 may be none of its numbers.
pub fn moduli(dtype: DType) -> Option<Parts> {
    (dtype == DType::C64).then(measure)
}
