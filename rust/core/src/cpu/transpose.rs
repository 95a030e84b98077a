//! Blocks of a matrix turned by registers: whole cache lines are read and written.

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
                1 => return transmute::<Transpose<u8>, Transpose<T>>(x86::all::<u8, x86::Bytes>),
                2 => return transmute::<Transpose<u16>, Transpose<T>>(x86::all::<u16, x86::Words>),
                4 if level == Level::Avx512 => {
                    return transmute::<Transpose<u32>, Transpose<T>>(x86::wide32)
                }
                4 if level == Level::Avx2 => {
                    return transmute::<Transpose<u32>, Transpose<T>>(x86::half32)
                }
                8 if level == Level::Avx512 => {
                    return transmute::<Transpose<u64>, Transpose<T>>(x86::wide64)
                }
                8 if level == Level::Avx2 => {
                    return transmute::<Transpose<u64>, Transpose<T>>(x86::half64)
                }
                _ => {}
            }
        }
    }
    plain::<T>
}

// SAFETY: both sides lie within their memory and do not overlap.
unsafe fn plain<T: Copy>(x: *const T, xs: isize, y: *mut T, ys: isize, rows: usize, cols: usize) {
    for j in 0..cols as isize {
        for i in 0..rows as isize {
            *y.offset(j * ys + i) = *x.offset(i * xs + j);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// A square block that registers turn.
    pub trait Block<T> {
        const SIDE: usize;
        /// # Safety
        /// Both sides have a block there, and the machine has the instructions.
        unsafe fn turn(x: *const T, xs: isize, y: *mut T, ys: isize);
    }

    /// Blocks first, what is left at the edges one by one.
    // SAFETY: as for `plain`; the machine has the instructions of the block.
    #[inline(always)]
    pub unsafe fn all<T: Copy, B: Block<T>>(
        x: *const T,
        xs: isize,
        y: *mut T,
        ys: isize,
        rows: usize,
        cols: usize,
    ) {
        let (whole_rows, whole_cols) = (rows - rows % B::SIDE, cols - cols % B::SIDE);
        let mut i = 0;
        while i < whole_rows {
            let mut j = 0;
            while j < whole_cols {
                let (r, c) = (i as isize, j as isize);
                B::turn(x.offset(r * xs + c), xs, y.offset(c * ys + r), ys);
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

    macro_rules! blocks {
        ($name:ident, $T:ty, $block:ty, $set:ident) => {
            crate::compiled! { $set:
                // SAFETY: as for `all`.
                pub unsafe fn $name(
                    x: *const $T, xs: isize, y: *mut $T, ys: isize, rows: usize, cols: usize,
                ) {
                    all::<$T, $block>(x, xs, y, ys, rows, cols)
                }
            }
        };
    }
    blocks!(wide32, u32, Wide32, avx512);
    blocks!(half32, u32, Half32, avx2);
    blocks!(wide64, u64, Wide64, avx512);
    blocks!(half64, u64, Half64, avx2);

    pub struct Bytes;
    impl Block<u8> for Bytes {
        const SIDE: usize = 8;
        // SAFETY: as the trait demands.
        #[inline(always)]
        unsafe fn turn(x: *const u8, xs: isize, y: *mut u8, ys: isize) {
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

    pub struct Words;
    impl Block<u16> for Words {
        const SIDE: usize = 8;
        // SAFETY: as the trait demands.
        #[inline(always)]
        unsafe fn turn(x: *const u16, xs: isize, y: *mut u16, ys: isize) {
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

    pub struct Half32;
    impl Block<u32> for Half32 {
        const SIDE: usize = 8;
        // SAFETY: as the trait demands.
        #[inline(always)]
        unsafe fn turn(x: *const u32, xs: isize, y: *mut u32, ys: isize) {
            let r: [__m256; 8] =
                std::array::from_fn(|i| _mm256_loadu_ps(x.offset(i as isize * xs).cast()));
            let mut a = r;
            for i in 0..4 {
                a[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                a[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let mut b = a;
            for i in 0..2 {
                let (p, q) = (4 * i, 4 * i + 2);
                b[p] = _mm256_shuffle_ps::<0x44>(a[p], a[q]);
                b[p + 1] = _mm256_shuffle_ps::<0xee>(a[p], a[q]);
                b[p + 2] = _mm256_shuffle_ps::<0x44>(a[p + 1], a[q + 1]);
                b[p + 3] = _mm256_shuffle_ps::<0xee>(a[p + 1], a[q + 1]);
            }
            for i in 0..4 {
                let lo = _mm256_permute2f128_ps::<0x20>(b[i], b[i + 4]);
                let hi = _mm256_permute2f128_ps::<0x31>(b[i], b[i + 4]);
                _mm256_storeu_ps(y.offset(i as isize * ys).cast(), lo);
                _mm256_storeu_ps(y.offset((i + 4) as isize * ys).cast(), hi);
            }
        }
    }

    pub struct Wide32;
    impl Block<u32> for Wide32 {
        const SIDE: usize = 16;
        // SAFETY: as the trait demands.
        #[inline(always)]
        unsafe fn turn(x: *const u32, xs: isize, y: *mut u32, ys: isize) {
            let r: [__m512i; 16] =
                std::array::from_fn(|i| _mm512_loadu_si512(x.offset(i as isize * xs).cast()));
            let mut a = r;
            for i in 0..8 {
                a[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
                a[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
            }
            // Column 4 l + k of each group of four rows lies in lane l of b[4 g + k].
            let mut b = a;
            for g in 0..4 {
                let p = 4 * g;
                b[p] = _mm512_unpacklo_epi64(a[p], a[p + 2]);
                b[p + 1] = _mm512_unpackhi_epi64(a[p], a[p + 2]);
                b[p + 2] = _mm512_unpacklo_epi64(a[p + 1], a[p + 3]);
                b[p + 3] = _mm512_unpackhi_epi64(a[p + 1], a[p + 3]);
            }
            for k in 0..4 {
                let (p, q) = (
                    _mm512_shuffle_i32x4::<0x88>(b[k], b[4 + k]),
                    _mm512_shuffle_i32x4::<0x88>(b[8 + k], b[12 + k]),
                );
                let (s, t) = (
                    _mm512_shuffle_i32x4::<0xdd>(b[k], b[4 + k]),
                    _mm512_shuffle_i32x4::<0xdd>(b[8 + k], b[12 + k]),
                );
                let lanes = [
                    _mm512_shuffle_i32x4::<0x88>(p, q),
                    _mm512_shuffle_i32x4::<0x88>(s, t),
                    _mm512_shuffle_i32x4::<0xdd>(p, q),
                    _mm512_shuffle_i32x4::<0xdd>(s, t),
                ];
                for (l, v) in lanes.into_iter().enumerate() {
                    _mm512_storeu_si512(y.offset((4 * l + k) as isize * ys).cast(), v);
                }
            }
        }
    }

    pub struct Half64;
    impl Block<u64> for Half64 {
        const SIDE: usize = 4;
        // SAFETY: as the trait demands.
        #[inline(always)]
        unsafe fn turn(x: *const u64, xs: isize, y: *mut u64, ys: isize) {
            let r: [__m256i; 4] =
                std::array::from_fn(|i| _mm256_loadu_si256(x.offset(i as isize * xs).cast()));
            let a = [
                _mm256_unpacklo_epi64(r[0], r[1]),
                _mm256_unpackhi_epi64(r[0], r[1]),
                _mm256_unpacklo_epi64(r[2], r[3]),
                _mm256_unpackhi_epi64(r[2], r[3]),
            ];
            for i in 0..2 {
                let lo = _mm256_permute2x128_si256::<0x20>(a[i], a[i + 2]);
                let hi = _mm256_permute2x128_si256::<0x31>(a[i], a[i + 2]);
                _mm256_storeu_si256(y.offset(i as isize * ys).cast(), lo);
                _mm256_storeu_si256(y.offset((i + 2) as isize * ys).cast(), hi);
            }
        }
    }

    pub struct Wide64;
    impl Block<u64> for Wide64 {
        const SIDE: usize = 8;
        // SAFETY: as the trait demands.
        #[inline(always)]
        unsafe fn turn(x: *const u64, xs: isize, y: *mut u64, ys: isize) {
            let r: [__m512i; 8] =
                std::array::from_fn(|i| _mm512_loadu_si512(x.offset(i as isize * xs).cast()));
            for k in 0..2 {
                // Column 2 l + k of a pair of rows lies in lane l.
                let a: [__m512i; 4] = std::array::from_fn(|i| {
                    let (p, q) = (r[2 * i], r[2 * i + 1]);
                    if k == 0 {
                        _mm512_unpacklo_epi64(p, q)
                    } else {
                        _mm512_unpackhi_epi64(p, q)
                    }
                });
                let (p, q) = (
                    _mm512_shuffle_i64x2::<0x88>(a[0], a[1]),
                    _mm512_shuffle_i64x2::<0x88>(a[2], a[3]),
                );
                let (s, t) = (
                    _mm512_shuffle_i64x2::<0xdd>(a[0], a[1]),
                    _mm512_shuffle_i64x2::<0xdd>(a[2], a[3]),
                );
                let lanes = [
                    _mm512_shuffle_i64x2::<0x88>(p, q),
                    _mm512_shuffle_i64x2::<0x88>(s, t),
                    _mm512_shuffle_i64x2::<0xdd>(p, q),
                    _mm512_shuffle_i64x2::<0xdd>(s, t),
                ];
                for (l, v) in lanes.into_iter().enumerate() {
                    _mm512_storeu_si512(y.offset((2 * l + k) as isize * ys).cast(), v);
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
            let turn = kernel::<T>();
            // SAFETY: both sides have these rows.
            unsafe {
                turn(
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
    fn every_size_is_turned() {
        check::<u8>(|i| i as u8);
        check::<u16>(|i| i as u16);
        check::<u32>(|i| i as u32);
        check::<u64>(|i| i as u64);
        check::<[u64; 2]>(|i| [i as u64, 1]);
    }
}
