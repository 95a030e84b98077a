//! Rows by registers: extremes by the instructions for them, which know no NaN (whether there is one is
//! noted apart), the last elements of a row by masks, and the steps from registers to numbers for several
//! rows at once. In memory several rows are read as streams, each of which is fetched ahead of its own;
//! in caches one after another, since there short streams come slower than one.

use super::super::elements::Compute;
use super::super::{level, Level};
use super::registers::{Load, Wide};
use super::{columns, row, with_lines, Kernels, Rows, Widen, HELD, LANES, MOST_ROWS};
use crate::compiled;
use std::arch::x86_64::{__m256, __m512, __m512d, __m512i};

/// Adds the `i`-th LANES elements of a row to N registers.
// SAFETY: the row has as many, and the caller the instructions.
#[inline(always)]
unsafe fn lanes<S: Load<V>, T, V: Copy, F: Wide<T, V>, const N: usize>(
    x: *const S,
    i: usize,
    acc: &mut [V; N],
    missed: &mut u16,
) {
    // SAFETY: the row has as many, and the caller the instructions.
    unsafe {
        for j in (0..N).step_by(2) {
            let at = x.add(i + j * (LANES / N));
            let (a, b) = (S::load(at), S::load(at.add(LANES / N)));
            acc[j] = F::fold(acc[j], a);
            acc[j + 1] = F::fold(acc[j + 1], b);
            *missed |= F::missed(a, b);
        }
    }
}

/// One register of N, and of the last `n` elements, fewer than LANES, which are added first.
// SAFETY: there are as many, and the caller has the instructions.
#[inline(always)]
unsafe fn joined<S: Load<V>, T, V: Copy, F: Wide<T, V>, const N: usize>(
    x: *const S,
    n: usize,
    mut acc: [V; N],
    missed: &mut u16,
) -> V {
    // SAFETY: there are as many, and the caller has the instructions.
    unsafe {
        if n > 0 {
            for j in 0..N {
                let some = n.saturating_sub(j * (LANES / N)).min(LANES / N);
                if some == 0 {
                    break;
                }
                let v = S::load_first(x.wrapping_add(j * (LANES / N)), some);
                acc[j] = F::fold_first(acc[j], v, some);
                *missed |= F::missed(v, v);
            }
        }
        let mut half = N / 2;
        while half > 0 {
            for j in 0..half {
                acc[j] = F::fold(acc[j], acc[j + half]);
            }
            half /= 2;
        }
        acc[0]
    }
}

/// One register of a row.
// SAFETY: the row has `n` elements, at least LANES; the caller has the instructions.
#[inline(always)]
unsafe fn register<S: Load<V>, T, V: Copy, F: Wide<T, V>, const N: usize>(
    x: *const S,
    n: usize,
    missed: &mut u16,
) -> V {
    // SAFETY: the row has `n` elements, at least LANES; the caller has the instructions; whole
    // groups of lanes end at `n`.
    unsafe {
        let mut acc = [F::splat(F::init()); N];
        let mut i = 0;
        while i + LANES <= n {
            lanes::<S, T, V, F, N>(x, i, &mut acc, missed);
            i += LANES;
        }
        joined::<S, T, V, F, N>(x.add(i), n - i, acc, missed)
    }
}

/// The totals of R rows from one register of each.
// SAFETY: the rows have `n` elements; the caller has the instructions.
#[inline(always)]
unsafe fn totals<S: Widen<T>, T: Copy + Default, V: Copy, F: Wide<T, V>, const R: usize>(
    x: [*const S; R],
    n: usize,
    each: [V; R],
    missed: [u16; R],
) -> [T; R] {
    // SAFETY: the rows have `n` elements; the caller has the instructions.
    unsafe {
        let mut out = F::across_each(each);
        for r in 0..R {
            if missed[r] != 0 {
                out[r] = row::<S, T, F>(x[r].cast(), n, T::default());
            }
        }
        out
    }
}

compiled! { avx512:
    /// R rows in turn, in R * N registers.
    unsafe fn rows<
        S: Widen<T> + Load<V>,
        T: Copy + Default,
        V: Copy,
        F: Wide<T, V>,
        const R: usize,
        const N: usize,
    >(
        x: &[*const u8; MOST_ROWS],
        n: usize,
        out: &mut [T; MOST_ROWS],
    ) {
        // SAFETY: R rows have `n` elements, at least LANES, and whole groups of lanes end there;
        // `with_rows` asked for AVX-512.
        unsafe {
            // One by one: a load of two addresses would wait until both, just stored, are in the cache.
            let mut at = [std::ptr::null::<S>(); R];
            for r in 0..R {
                at[r] = (&raw const x[r]).read_volatile().cast();
            }
            let x = at;
            let mut acc = [[F::splat(F::init()); N]; R];
            let mut missed = [0; R];
            let mut i = 0;
            while i + LANES <= n {
                for r in 0..R {
                    lanes::<S, T, V, F, N>(x[r], i, &mut acc[r], &mut missed[r]);
                }
                i += LANES;
            }
            let mut each = [acc[0][0]; R];
            for r in 0..R {
                each[r] = joined::<S, T, V, F, N>(x[r].add(i), n - i, acc[r], &mut missed[r]);
            }
            let y = totals::<S, T, V, F, R>(x, n, each, missed);
            out[..R].copy_from_slice(&y);
        }
    }
}

macro_rules! by_line {
    ($d:tt $set:ident: $lines:ident $one:ident) => {
        compiled! { $set:
            /// Rows one after another, of which R share the steps from registers to numbers.
            unsafe fn $lines<
                S: Widen<T> + Load<V>,
                T: Copy + Default,
                V: Copy,
                F: Wide<T, V>,
                const R: usize,
                const N: usize,
            >(
                x: *const u8,
                step: isize,
                n: usize,
                count: usize,
                out: *mut T,
            ) {
                // SAFETY: there are `count` rows of `n` elements, at least LANES, and room for as many
                // results; `with_rows` asked for the instructions.
                unsafe {
                    let mut r = 0;
                    while r + R <= count {
                        let mut at = [x.cast::<S>(); R];
                        let mut each = [F::splat(F::init()); R];
                        let mut missed = [0; R];
                        // Written out: registers cannot be counted through.
                        macro_rules! each {
                            ($d($i:literal)*) => {$d(
                                if $i < R {
                                    at[$i] = at[$i].byte_offset((r + $i) as isize * step);
                                    each[$i] =
                                        register::<S, T, V, F, N>(at[$i], n, &mut missed[$i]);
                                }
                            )*};
                        }
                        each!(0 1 2 3);
                        let y = totals::<S, T, V, F, R>(at, n, each, missed);
                        out.add(r).cast::<[T; R]>().write(y);
                        r += R;
                    }
                    while r < count {
                        let x = x.byte_offset(r as isize * step);
                        *out.add(r) = $one::<S, T, V, F, N>(x, n, T::default());
                        r += 1;
                    }
                }
            }
        }
        compiled! { $set:
            /// One row of any length.
            unsafe fn $one<
                S: Widen<T> + Load<V>,
                T: Copy + Default,
                V: Copy,
                F: Wide<T, V>,
                const N: usize,
            >(
                x: *const u8,
                n: usize,
                c: T,
            ) -> T {
                // SAFETY: the row has `n` elements, and `register` gets LANES or more; `with_rows`
                // asked for the instructions.
                unsafe {
                    if n < LANES {
                        return row::<S, T, F>(x, n, c);
                    }
                    let mut missed = 0;
                    let each = register::<S, T, V, F, N>(x.cast(), n, &mut missed);
                    let [y] = totals::<S, T, V, F, 1>([x.cast()], n, [each], [missed]);
                    y
                }
            }
        }
    };
}
by_line!($ avx512: lines_512 one_512);
by_line!($ avx2: lines_256 one_256);

macro_rules! by_column {
    ($set:ident: $held:ident $columns:ident, $rows:literal rows) => {
        compiled! { $set:
            /// [`columns`] of HELD bytes, of rows that follow each other.
            unsafe fn $held<S: Load<V>, T, V: Copy, F: Wide<T, V>>(
                acc: *mut T,
                x: *const u8,
                rows: usize,
            ) {
                // SAFETY: `acc` and a row of `x` have HELD / size_of::<T>() elements; `with_rows` asked
                // for the instructions.
                unsafe {
                    const N: usize = 8;
                    let lanes = size_of::<V>() / size_of::<T>();
                    let all = HELD / size_of::<V>();
                    for part in (0..all).step_by(N) {
                        let at = acc.cast::<V>().add(part);
                        let x = x.cast::<S>().add(part * lanes);
                        let mut y = [at.read_unaligned(); N];
                        for j in 0..N {
                            y[j] = at.add(j).read_unaligned();
                        }
                        for r in 0..rows {
                            for j in 0..N {
                                y[j] = F::seen(y[j], S::load(x.add((all * r + j) * lanes)));
                            }
                        }
                        for j in 0..N {
                            at.add(j).write_unaligned(y[j]);
                        }
                    }
                }
            }
        }
        compiled! { $set:
            /// [`columns`] by whole registers, several rows at once.
            unsafe fn $columns<S: Widen<T> + Load<V>, T: Copy, V: Copy, F: Wide<T, V>>(
                acc: *mut T,
                x: *const u8,
                c: *const T,
                n: usize,
                rows: usize,
                step: isize,
            ) {
                // SAFETY: `acc`, a row of `x` (of `S`) and `c` have `n` elements, and `acc` overlaps
                // neither; `with_rows` asked for the instructions.
                unsafe {
                    let lanes = size_of::<V>() / size_of::<T>();
                    if n * size_of::<T>() == HELD && step == (n * size_of::<S>()) as isize {
                        return $held::<S, T, V, F>(acc, x, rows);
                    }
                    let whole = n - n % lanes;
                    let mut r = 0;
                    while r < rows {
                        let count = (rows - r).min($rows);
                        let x = x.offset(r as isize * step);
                        let mut i = 0;
                        while i < whole {
                            let at = acc.add(i).cast::<V>();
                            let mut y = at.read_unaligned();
                            let x = x.cast::<S>().add(i);
                            if count == $rows {
                                for k in 0..$rows {
                                    y = F::seen(y, S::load(x.byte_offset(k as isize * step)));
                                }
                            } else {
                                for k in 0..count {
                                    y = F::seen(y, S::load(x.byte_offset(k as isize * step)));
                                }
                            }
                            at.write_unaligned(y);
                            i += lanes;
                        }
                        r += count;
                    }
                    let x = x.cast::<S>().add(whole).cast();
                    columns::<S, T, F>(acc.add(whole), x, c.add(whole), n - whole, rows, step);
                }
            }
        }
    };
}
by_column!(avx512: held_512 columns_512, 4 rows);
by_column!(avx2: held_256 columns_256, 8 rows);

/// The register of eight elements.
pub(super) trait Eight {
    type V: Copy;
}
impl Eight for f64 {
    type V = __m512d;
}
impl Eight for i64 {
    type V = __m512i;
}

/// [`with_lines`], by registers with AVX-512; streams are as many as sixteen registers hold.
pub(super) fn with_rows<S: Widen<T> + Load<T::V>, T: Compute + Eight, F: Wide<T, T::V>>(
) -> Kernels<T> {
    let mut k = with_lines::<S, T, F>();
    if level() == Level::Avx512 {
        k.columns = columns_512::<S, T, T::V, F>;
        k.row = one_512::<S, T, T::V, F, 8>;
        k.lines = Some(lines_512::<S, T, T::V, F, 2, 8>);
        k.rows = Some(Rows {
            count: 2,
            run: rows::<S, T, T::V, F, 2, 8>,
        });
    }
    k
}

/// [`with_rows`] of float32, by registers with AVX2 too.
pub(super) fn with_float_rows<
    S: Widen<T> + Load<__m512> + Load<__m256>,
    T: Compute,
    F: Wide<T, __m512> + Wide<T, __m256>,
>() -> Kernels<T> {
    let mut k = with_lines::<S, T, F>();
    match level() {
        Level::Avx512 => {
            k.columns = columns_512::<S, T, __m512, F>;
            k.row = one_512::<S, T, __m512, F, 4>;
            k.lines = Some(lines_512::<S, T, __m512, F, 4, 4>);
            k.rows = Some(Rows {
                count: 4,
                run: rows::<S, T, __m512, F, 4, 4>,
            });
        }
        Level::Avx2 => {
            k.columns = columns_256::<S, T, __m256, F>;
            k.row = one_256::<S, T, __m256, F, 8>;
            k.lines = Some(lines_256::<S, T, __m256, F, 4, 8>);
        }
        _ => (),
    }
    k
}
