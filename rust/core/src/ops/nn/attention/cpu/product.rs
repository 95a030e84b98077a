//! Products of small matrices that stay in cache, in vector registers.

use crate::cpu::simd::Simd;
use crate::ops::pointwise::Float;

/// Columns of `b` and `c` are padded to a multiple of this, whatever the vectors' width.
pub const PAD: usize = 16;

/// C = A B, or C += A B: `m` x `k` by `k` x `n`. Rows of B and C are contiguous and `n` is a
/// multiple of [`PAD`].
#[derive(Clone, Copy)]
pub struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    /// Steps of A to the next row and column.
    pub a_steps: (usize, usize),
    pub b: *const T,
    pub ldb: usize,
    pub c: *mut T,
    pub ldc: usize,
    pub add: bool,
}

impl<T: Float> Product<T> {
    /// # Safety
    /// The matrices lie in memory, C apart from the others; the machine has the instructions.
    #[inline(always)]
    pub unsafe fn run<V: Simd<Elem = T>>(&self) {
        // SAFETY: strips end at `n`; the matrices lie in memory, C apart; the caller has the
        // instructions of `V`.
        unsafe {
            // AVX-512 has twice the registers. Nothing wider is compiled for the others.
            let most = if size_of::<V>() == 64 { 4 } else { 2 };
            let mut j = 0;
            while j < self.n {
                let width = ((self.n - j) / V::LANES).min(most);
                match width {
                    1 => self.strip::<V, 1>(j),
                    2 => self.strip::<V, 2>(j),
                    3 if most > 2 => self.strip::<V, 3>(j),
                    4 if most > 2 => self.strip::<V, 4>(j),
                    _ => unreachable!("columns are padded"),
                }
                j += width * V::LANES;
            }
        }
    }

    #[inline(always)]
    unsafe fn strip<V: Simd<Elem = T>, const N: usize>(&self, j: usize) {
        // SAFETY: tiles end at `m`, and the strip lies inside C; the caller has the instructions of
        // `V`.
        unsafe {
            let mut i = 0;
            while i + 6 <= self.m {
                self.tile::<V, 6, N>(i, j);
                i += 6;
            }
            match self.m - i {
                1 => self.tile::<V, 1, N>(i, j),
                2 => self.tile::<V, 2, N>(i, j),
                3 => self.tile::<V, 3, N>(i, j),
                4 => self.tile::<V, 4, N>(i, j),
                5 => self.tile::<V, 5, N>(i, j),
                _ => {}
            }
        }
    }

    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    unsafe fn tile<V: Simd<Elem = T>, const M: usize, const N: usize>(&self, i: usize, j: usize) {
        // SAFETY: the tile of M rows and N vectors lies inside C, A and B have its rows and
        // columns; the caller has the instructions of `V`.
        unsafe {
            let zero = T::default();
            let mut acc = [[V::splat(zero); N]; M];
            let c = self.c.add(i * self.ldc + j);
            // Plain indices: iterators over registers do not always become registers.
            if self.add {
                for s in 0..M {
                    for t in 0..N {
                        acc[s][t] = V::load(c.add(s * self.ldc + t * V::LANES));
                    }
                }
            }
            let (rs, cs) = self.a_steps;
            let (mut a, mut b) = (self.a.add(i * rs), self.b.add(j));
            for _ in 0..self.k {
                let mut row = [V::splat(zero); N];
                for t in 0..N {
                    row[t] = V::load(b.add(t * V::LANES));
                }
                for s in 0..M {
                    let x = V::splat(*a.add(s * rs));
                    for t in 0..N {
                        acc[s][t] = x.fma(row[t], acc[s][t]);
                    }
                }
                a = a.add(cs);
                b = b.add(self.ldb);
            }
            for s in 0..M {
                for t in 0..N {
                    acc[s][t].store(c.add(s * self.ldc + t * V::LANES));
                }
            }
        }
    }
}
