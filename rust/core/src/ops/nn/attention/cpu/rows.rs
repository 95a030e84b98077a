//! Rows of scores in vectors: their largest, the weights that they become and the sum of these.

use super::product::PAD;
use super::KEYS;
use crate::cpu::simd::{Exp, Simd};
use crate::cpu::transpose;
use crate::ops::pointwise::Float;

/// The largest of each of `LANES` vectors, NaN aside.
#[inline(always)]
pub unsafe fn largest<V: Simd>(x: &mut [V]) -> V {
    // SAFETY: `x` has `LANES` vectors; the caller has their instructions.
    unsafe {
        V::transpose(x.as_mut_ptr());
        let mut n = V::LANES;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                x[i] = x[i].max(x[i + n]);
            }
        }
        x[0]
    }
}

/// The sum of each of `LANES` vectors.
#[inline(always)]
pub unsafe fn sums<V: Simd>(x: &mut [V]) -> V {
    // SAFETY: `x` has `LANES` vectors; the caller has their instructions.
    unsafe {
        V::transpose(x.as_mut_ptr());
        let mut n = V::LANES;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                x[i] = x[i].add(x[i + n]);
            }
        }
        x[0]
    }
}

/// e^(v - from) of a row, as weights; returns the lanes of their sum.
#[inline(always)]
pub unsafe fn weigh<T: Float, V: Exp<Elem = T>>(row: &mut [T], from: T) -> V {
    // SAFETY: the caller has the instructions of `V`.
    unsafe {
        // As many in step as a multiplication takes cycles, for two a cycle; in AVX-512 half as many,
        // whose multiplications fill the scheduler with fewer others between. The vectors of float64
        // are the compiler's, of as many elements as rows are multiples of.
        match (size_of::<V>(), V::LANES) {
            (32, 8) => weigh_by::<T, V, 8>(row, from),
            (64, 16) | (_, 4) => weigh_by::<T, V, 4>(row, from),
            (_, 8) => weigh_by::<T, V, 2>(row, from),
            _ => weigh_by::<T, V, 8>(row, from),
        }
    }
}

#[inline(always)]
unsafe fn weigh_by<T: Float, V: Exp<Elem = T>, const N: usize>(row: &mut [T], from: T) -> V {
    // SAFETY: blocks have as many elements as are loaded and stored; the caller has the instructions
    // of `V`.
    unsafe {
        let (from, mut sum) = (V::splat(from), V::splat(T::default()));
        let mut blocks = row.chunks_exact_mut(N * V::LANES);
        for block in &mut blocks {
            let mut x = [sum; N];
            for i in 0..N {
                x[i] = V::load(block.as_ptr().add(i * V::LANES)).sub(from);
            }
            let x = V::decay(x);
            for i in 0..N {
                x[i].store(block.as_mut_ptr().add(i * V::LANES));
                sum = sum.add(x[i]);
            }
        }
        for block in blocks.into_remainder().chunks_exact_mut(V::LANES) {
            let [x] = V::decay([V::load(block.as_ptr()).sub(from)]);
            x.store(block.as_mut_ptr());
            sum = sum.add(x);
        }
        sum
    }
}

/// The transposed of `rows` x `cols` elements, in rows of [`KEYS`].
#[inline(always)]
pub unsafe fn transpose<T: Float, V: Simd<Elem = T>>(
    rows: usize,
    cols: usize,
    x: *const T,
    ldx: usize,
    y: *mut T,
) {
    // SAFETY: `x` has `rows` rows and `y` room for rows of KEYS elements; the caller has the
    // instructions of `V`.
    unsafe {
        transpose::all::<T, V>(x, ldx as isize, y, KEYS as isize, rows, cols);
    }
}

/// The inner product of two rows, in lanes.
#[inline(always)]
pub fn inner<T: Float>(a: &[T], b: &[T]) -> T {
    let mut lanes = [T::default(); PAD];
    for (a, b) in a.chunks(PAD).zip(b.chunks(PAD)) {
        for (l, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *l += a * b;
        }
    }
    lanes.iter().fold(T::default(), |s, &l| s + l)
}

/// Whether all are: zero times NaN or infinity is NaN.
#[inline(always)]
pub fn is_finite<T: Float>(x: &[T]) -> bool {
    let mut lanes = [T::default(); PAD];
    for block in x.chunks(PAD) {
        let lanes = lanes.iter_mut().zip(block);
        lanes.for_each(|(l, &v)| *l += v * T::default());
    }
    lanes.iter().all(|&l| l == T::default())
}

/// Applies `f` to blocks, which become vectors.
#[inline(always)]
pub fn each<T>(row: &mut [T], f: impl Fn(&mut T)) {
    for block in row.chunks_exact_mut(PAD) {
        block.iter_mut().for_each(&f);
    }
}
