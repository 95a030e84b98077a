//! Blocks of a matrix transposed in registers: whole cache lines are read and written.

use super::simd::{Simd, MOST};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::{level, Level};

/// Writes `y[j][i] = x[i][j]` for `rows` rows of `cols` elements; strides in elements.
pub type Transpose<T> =
    unsafe fn(x: *const T, xs: isize, y: *mut T, ys: isize, rows: usize, cols: usize);

/// The transposition of elements of one size for this machine. `T` is any type of that size.
pub fn kernel<T: Copy>() -> Transpose<T> {
    #[cfg(target_arch = "x86_64")]
    {
        let level = level();
        // SAFETY: the types have the same size and are moved as they are.
        unsafe {
            use std::mem::transmute;
            match size_of::<T>() {
                1 => return transmute::<Transpose<u8>, Transpose<T>>(all::<u8, x86::Bytes>),
                2 => return transmute::<Transpose<u16>, Transpose<T>>(all::<u16, x86::Words>),
                4 if level == Level::Avx512 => {
                    return transmute::<Transpose<f32>, Transpose<T>>(x86::wide32)
                }
                4 if level == Level::Avx2 => {
                    return transmute::<Transpose<f32>, Transpose<T>>(x86::half32)
                }
                8 if level == Level::Avx512 => {
                    return transmute::<Transpose<f64>, Transpose<T>>(x86::wide64)
                }
                8 if level == Level::Avx2 => {
                    return transmute::<Transpose<f64>, Transpose<T>>(x86::half64)
                }
                _ => {}
            }
        }
    }
    #[cfg(target_arch = "aarch64")]
    if level() == Level::Neon {
        use super::simd::{F32x8, F64x4};
        use std::mem::transmute;
        // SAFETY: the types have the same size and are moved as they are.
        unsafe {
            match size_of::<T>() {
                1 => return transmute::<Transpose<u8>, Transpose<T>>(all::<u8, neon::Bytes>),
                2 => return transmute::<Transpose<u16>, Transpose<T>>(all::<u16, neon::Words>),
                4 => return transmute::<Transpose<f32>, Transpose<T>>(all::<f32, F32x8>),
                8 => return transmute::<Transpose<f64>, Transpose<T>>(all::<f64, F64x4>),
                _ => {}
            }
        }
    }
    plain::<T>
}

unsafe fn plain<T: Copy>(x: *const T, xs: isize, y: *mut T, ys: isize, rows: usize, cols: usize) {
    // SAFETY: `x` has `rows` rows of `cols` elements, and `y` room for them transposed.
    unsafe {
        for j in 0..cols as isize {
            for i in 0..rows as isize {
                *y.offset(j * ys + i) = *x.offset(i * xs + j);
            }
        }
    }
}

/// A square block that is transposed in registers.
pub trait Block<T> {
    const SIDE: usize;
    /// # Safety
    /// Both sides have a block there, and the machine has the instructions.
    unsafe fn transpose(x: *const T, xs: isize, y: *mut T, ys: isize);
}

impl<V: Simd> Block<V::Elem> for V {
    const SIDE: usize = V::LANES;
    #[inline(always)]
    unsafe fn transpose(x: *const V::Elem, xs: isize, y: *mut V::Elem, ys: isize) {
        // SAFETY: `x` and `y` have a block there, LANES rows of LANES elements; the caller has the
        // instructions of the vector.
        unsafe {
            let mut square = [V::splat(V::Elem::default()); MOST];
            for r in 0..V::LANES {
                square[r] = V::load(x.offset(r as isize * xs));
            }
            V::transpose(square.as_mut_ptr());
            for r in 0..V::LANES {
                square[r].store(y.offset(r as isize * ys));
            }
        }
    }
}

/// Blocks first, what is left at the edges one by one.
#[inline(always)]
pub unsafe fn all<T: Copy, B: Block<T>>(
    x: *const T,
    xs: isize,
    y: *mut T,
    ys: isize,
    rows: usize,
    cols: usize,
) {
    // SAFETY: `x` has `rows` rows of `cols` elements and `y` room for them transposed; the caller
    // has the instructions of the block.
    unsafe {
        let (whole_rows, whole_cols) = (rows - rows % B::SIDE, cols - cols % B::SIDE);
        let mut i = 0;
        while i < whole_rows {
            let mut j = 0;
            while j < whole_cols {
                let (r, c) = (i as isize, j as isize);
                B::transpose(x.offset(r * xs + c), xs, y.offset(c * ys + r), ys);
                j += B::SIDE;
            }
            i += B::SIDE;
        }
        for i in 0..rows as isize {
            let from = if (i as usize) < whole_rows {
                whole_cols
            } else {
                0
            };
            for j in from as isize..cols as isize {
                *y.offset(j * ys + i) = *x.offset(i * xs + j);
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::Block;
    use std::arch::aarch64::*;

    macro_rules! blocks {
        ($name:ident, $T:ty, $load:ident, $store:ident,
         $($distance:literal: $even:ident $odd:ident $cast:ident $back:ident),*) => {
            pub struct $name;
            impl Block<$T> for $name {
                const SIDE: usize = 8;
                #[inline(always)]
                unsafe fn transpose(x: *const $T, xs: isize, y: *mut $T, ys: isize) {
                    // SAFETY: both sides have 8 rows of 8; NEON is part of every aarch64.
                    unsafe {
                        let mut r: [_; 8] =
                            std::array::from_fn(|i| $load(x.offset(i as isize * xs)));
                        $(
                            for i in (0..8).filter(|i| i & $distance == 0) {
                                let (a, b) = ($cast(r[i]), $cast(r[i + $distance]));
                                r[i] = $back($even(a, b));
                                r[i + $distance] = $back($odd(a, b));
                            }
                        )*
                        for (i, v) in r.into_iter().enumerate() {
                            $store(y.offset(i as isize * ys), v);
                        }
                    }
                }
            }
        };
    }
    use std::convert::identity;
    blocks!(
        Bytes, u8, vld1_u8, vst1_u8,
        1: vtrn1_u8 vtrn2_u8 identity identity,
        2: vtrn1_u16 vtrn2_u16 vreinterpret_u16_u8 vreinterpret_u8_u16,
        4: vtrn1_u32 vtrn2_u32 vreinterpret_u32_u8 vreinterpret_u8_u32
    );
    blocks!(
        Words, u16, vld1q_u16, vst1q_u16,
        1: vtrn1q_u16 vtrn2q_u16 identity identity,
        2: vtrn1q_u32 vtrn2q_u32 vreinterpretq_u32_u16 vreinterpretq_u16_u32,
        4: vtrn1q_u64 vtrn2q_u64 vreinterpretq_u64_u16 vreinterpretq_u16_u64
    );
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{all, Block};
    use std::arch::x86_64::*;

    macro_rules! blocks {
        ($name:ident, $T:ty, $block:ty, $set:ident) => {
            crate::compiled! { $set:
                pub unsafe fn $name(
                    x: *const $T, xs: isize, y: *mut $T, ys: isize, rows: usize, cols: usize,
                ) {
                    // SAFETY: `kernel` picks this where the machine has the instructions; its user
                    // has `rows` rows of `cols` in both places.
                    unsafe { all::<$T, $block>(x, xs, y, ys, rows, cols) }
                }
            }
        };
    }
    blocks!(wide32, f32, __m512, avx512);
    blocks!(half32, f32, __m256, avx2);
    blocks!(wide64, f64, __m512d, avx512);
    blocks!(half64, f64, __m256d, avx2);

    pub struct Bytes;
    impl Block<u8> for Bytes {
        const SIDE: usize = 8;
        #[inline(always)]
        unsafe fn transpose(x: *const u8, xs: isize, y: *mut u8, ys: isize) {
            // SAFETY: `x` and `y` have 8 rows of 8 bytes there; SSE2 is part of every x86-64
            // machine.
            unsafe {
                let r: [__m128i; 8] =
                    std::array::from_fn(|i| _mm_loadl_epi64(x.offset(i as isize * xs).cast()));
                let a: [__m128i; 4] =
                    std::array::from_fn(|i| _mm_unpacklo_epi8(r[2 * i], r[2 * i + 1]));
                let b = [
                    _mm_unpacklo_epi16(a[0], a[1]),
                    _mm_unpackhi_epi16(a[0], a[1]),
                    _mm_unpacklo_epi16(a[2], a[3]),
                    _mm_unpackhi_epi16(a[2], a[3]),
                ];
                let c = [
                    _mm_unpacklo_epi32(b[0], b[2]),
                    _mm_unpackhi_epi32(b[0], b[2]),
                    _mm_unpacklo_epi32(b[1], b[3]),
                    _mm_unpackhi_epi32(b[1], b[3]),
                ];
                for (i, v) in c.into_iter().enumerate() {
                    let to = y.offset(2 * i as isize * ys);
                    _mm_storel_epi64(to.cast(), v);
                    _mm_storel_epi64(to.offset(ys).cast(), _mm_unpackhi_epi64(v, v));
                }
            }
        }
    }

    pub struct Words;
    impl Block<u16> for Words {
        const SIDE: usize = 8;
        #[inline(always)]
        unsafe fn transpose(x: *const u16, xs: isize, y: *mut u16, ys: isize) {
            // SAFETY: `x` and `y` have 8 rows of 8 words there; SSE2 is part of every x86-64
            // machine.
            unsafe {
                let r: [__m128i; 8] =
                    std::array::from_fn(|i| _mm_loadu_si128(x.offset(i as isize * xs).cast()));
                let lo: [__m128i; 4] =
                    std::array::from_fn(|i| _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]));
                let hi: [__m128i; 4] =
                    std::array::from_fn(|i| _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]));
                for (half, a) in [lo, hi].into_iter().enumerate() {
                    let b = [
                        _mm_unpacklo_epi32(a[0], a[1]),
                        _mm_unpackhi_epi32(a[0], a[1]),
                        _mm_unpacklo_epi32(a[2], a[3]),
                        _mm_unpackhi_epi32(a[2], a[3]),
                    ];
                    let c = [
                        _mm_unpacklo_epi64(b[0], b[2]),
                        _mm_unpackhi_epi64(b[0], b[2]),
                        _mm_unpacklo_epi64(b[1], b[3]),
                        _mm_unpackhi_epi64(b[1], b[3]),
                    ];
                    for (i, v) in c.into_iter().enumerate() {
                        _mm_storeu_si128(y.offset((half * 4 + i) as isize * ys).cast(), v);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + PartialEq + std::fmt::Debug>(of: fn(usize) -> T) {
        for (rows, cols) in [(1, 1), (3, 40), (16, 16), (33, 17), (40, 65)] {
            let (xs, ys) = (cols + 3, rows + 5);
            let x: Vec<T> = (0..rows * xs).map(of).collect();
            let mut y = vec![of(0); cols * ys];
            let transpose = kernel::<T>();
            // SAFETY: both sides have these rows.
            unsafe {
                transpose(
                    x.as_ptr(),
                    xs as isize,
                    y.as_mut_ptr(),
                    ys as isize,
                    rows,
                    cols,
                )
            };
            for j in 0..cols {
                for i in 0..rows {
                    assert_eq!(y[j * ys + i], x[i * xs + j], "{rows} {cols} {i} {j}");
                }
                for i in rows..ys {
                    assert_eq!(y[j * ys + i], of(0));
                }
            }
        }
    }

    #[test]
    fn every_size_is_transposed() {
        check::<u8>(|i| i as u8);
        check::<u16>(|i| i as u16);
        check::<u32>(|i| i as u32);
        check::<u64>(|i| i as u64);
        check::<[u64; 2]>(|i| [i as u64, 1]);
    }
}
