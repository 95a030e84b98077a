//! What an LU factorisation has beside large products, in vectors along columns: panels of a few
//! columns, triangles, and products with few columns on both sides. Columns lie one after another,
//! `step` from each other.

use crate::cpu::simd::{Lane, Simd, MOST};
use crate::{compiled, per_isa};
use std::ops::{Div, Mul, Neg, Sub};

/// Columns that are factored one after another.
pub const WIDTH: usize = 16;
/// Rows of a triangle that are solved for at once.
pub const TALL: usize = 64;
/// Columns on both sides of a product with few.
pub const FEW: usize = 32;

/// What the steps that are no vectors take.
trait Real:
    Lane + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    const TINY: Self;
}
impl Real for f32 {
    const TINY: f32 = f32::MIN_POSITIVE;
}
impl Real for f64 {
    const TINY: f64 = f64::MIN_POSITIVE;
}

/// The first row from `from` on whose magnitude is `top`.
#[inline(always)]
unsafe fn find<T: Real>(x: *const T, from: usize, m: usize, top: T) -> Option<usize> {
    let mut i = from;
    // SAFETY: the column has `m` rows.
    unsafe {
        while i + MOST <= m {
            let all: [T; MOST] = x.add(i).cast::<[T; MOST]>().read_unaligned();
            let mut some = false;
            for l in 0..MOST {
                some |= all[l].magnitude() == top;
            }
            if some {
                break;
            }
            i += MOST;
        }
        (i..m).find(|&i| (*x.add(i)).magnitude() == top)
    }
}

/// `R` vectors of `v`, minus columns times `u`, of which are the negatives, for `k` of them.
#[inline(always)]
unsafe fn reduce<V: Simd, const R: usize>(
    mut v: [V; R],
    l: *const V::Elem,
    step: usize,
    minus: &[V::Elem],
) -> [V; R] {
    for (k, &u) in minus.iter().enumerate() {
        // SAFETY: the caller's columns have rows for R vectors.
        unsafe {
            let u = V::splat(u);
            for r in 0..R {
                v[r] = u.fma(V::load(l.add(k * step + r * V::LANES)), v[r]);
            }
        }
    }
    v
}

/// Factors `m` rows of `n` columns, at most WIDTH: each column gets what those before it owe it, then
/// its pivot.
/// SAFETY: nobody else uses the columns; the machine has the instructions of V.
#[inline(always)]
unsafe fn factor<V: Simd>(a: *mut V::Elem, m: usize, n: usize, step: usize, pivots: &mut [usize])
where
    V::Elem: Real,
{
    const ROWS: usize = 4;
    let zero = V::Elem::default();
    // SAFETY: the caller's.
    unsafe {
        for j in 0..n {
            let x = a.add(j * step);
            let mut minus = [zero; WIDTH];
            for k in 0..j {
                let u = *x.add(k);
                for i in k + 1..j {
                    *x.add(i) = *x.add(i) - *a.add(k * step + i) * u;
                }
                minus[k] = -u;
            }
            let minus = &minus[..j];
            let mut top = V::splat(zero);
            let mut i = j;
            while i + ROWS * V::LANES <= m {
                let mut v = [top; ROWS];
                for r in 0..ROWS {
                    v[r] = V::load(x.add(i + r * V::LANES));
                }
                v = reduce(v, a.add(i), step, minus);
                for r in 0..ROWS {
                    v[r].store(x.add(i + r * V::LANES));
                    top = v[r].abs().max(top);
                }
                i += ROWS * V::LANES;
            }
            while i + V::LANES <= m {
                let [v] = reduce([V::load(x.add(i))], a.add(i), step, minus);
                v.store(x.add(i));
                top = v.abs().max(top);
                i += V::LANES;
            }
            if i < m {
                let mut v = V::load_first(x.add(i), m - i);
                for (k, &u) in minus.iter().enumerate() {
                    v = V::splat(u).fma(V::load_first(a.add(k * step + i), m - i), v);
                }
                v.store_first(x.add(i), m - i);
                top = v.abs().max(top);
            }
            let p = find(x, j, m, top.largest()).unwrap_or(j);
            pivots[j] = p;
            if p != j {
                for c in 0..n {
                    let x = a.add(c * step);
                    std::ptr::swap(x.add(j), x.add(p));
                }
            }
            let pivot = *x.add(j);
            let by = V::Elem::UNIT / pivot;
            let mut i = j + 1;
            if by.magnitude() < V::Elem::TINY {
                // The inverse is less precise than the quotients.
                for i in i..m {
                    *x.add(i) = *x.add(i) / pivot;
                }
                continue;
            }
            let by = V::splat(by);
            while i + V::LANES <= m {
                V::load(x.add(i)).mul(by).store(x.add(i));
                i += V::LANES;
            }
            if i < m {
                let v = V::load_first(x.add(i), m - i);
                v.mul(by).store_first(x.add(i), m - i);
            }
        }
    }
}

/// Solves L X = B for the `k` rows of `n` columns of `b`, at most TALL, by the unit triangle below the
/// diagonal of `l`. A vector is a row of as many columns as it has lanes.
/// SAFETY: nobody else uses the columns of `b`; the machine has the instructions of V, of at most R
/// lanes, which are R.
#[inline(always)]
unsafe fn solve<V: Simd, const R: usize>(
    (l, step): (*const V::Elem, usize),
    k: usize,
    (b, b_step): (*mut V::Elem, usize),
    n: usize,
) where
    V::Elem: Real,
{
    // SAFETY: the caller's.
    unsafe {
        let zero = V::splat(V::Elem::default());
        let mut done = [zero; TALL];
        for j in (0..n).step_by(R) {
            let (b, wide) = (b.add(j * b_step), R.min(n - j));
            for i in (0..k).step_by(R) {
                let high = R.min(k - i);
                let mut x = [zero; R];
                for c in 0..wide {
                    let from = b.add(c * b_step + i);
                    x[c] = match high == R {
                        true => V::load(from),
                        false => V::load_first(from, high),
                    };
                }
                V::transpose(x.as_mut_ptr());
                if high == R {
                    for p in 0..i {
                        let minus = zero.sub(done[p]);
                        let l = l.add(p * step + i);
                        for r in 0..R {
                            x[r] = V::splat(*l.add(r)).fma(minus, x[r]);
                        }
                    }
                    for p in 0..R {
                        let minus = zero.sub(x[p]);
                        let l = l.add((i + p) * step + i);
                        for r in p + 1..R {
                            x[r] = V::splat(*l.add(r)).fma(minus, x[r]);
                        }
                    }
                } else {
                    for p in 0..i + high {
                        let minus = zero.sub(if p < i { done[p] } else { x[p - i] });
                        let l = l.add(p * step + i);
                        for r in (p + 1).saturating_sub(i)..high {
                            x[r] = V::splat(*l.add(r)).fma(minus, x[r]);
                        }
                    }
                }
                done[i..i + high].copy_from_slice(&x[..high]);
                V::transpose(x.as_mut_ptr());
                for c in 0..wide {
                    let to = b.add(c * b_step + i);
                    match high == R {
                        true => x[c].store(to),
                        false => x[c].store_first(to, high),
                    }
                }
            }
        }
    }
}

/// Solves U X = B for the `k` rows of `n` columns of `b`, at most TALL, by the triangle above the
/// diagonal of `u`, from the last row up.
/// SAFETY: as for [`solve`].
#[inline(always)]
unsafe fn solve_upper<V: Simd, const R: usize>(
    (u, step): (*const V::Elem, usize),
    k: usize,
    (b, b_step): (*mut V::Elem, usize),
    n: usize,
) where
    V::Elem: Real,
{
    // SAFETY: the caller's.
    unsafe {
        let zero = V::splat(V::Elem::default());
        let mut done = [zero; TALL];
        let mut by = [V::Elem::UNIT; TALL];
        for (p, by) in by[..k].iter_mut().enumerate() {
            *by = V::Elem::UNIT / *u.add(p * step + p);
        }
        for j in (0..n).step_by(R) {
            let (b, wide) = (b.add(j * b_step), R.min(n - j));
            for i in (0..k).step_by(R).rev() {
                let high = R.min(k - i);
                let mut x = [zero; R];
                for c in 0..wide {
                    let from = b.add(c * b_step + i);
                    x[c] = match high == R {
                        true => V::load(from),
                        false => V::load_first(from, high),
                    };
                }
                V::transpose(x.as_mut_ptr());
                if high == R {
                    for p in i + R..k {
                        let minus = zero.sub(done[p]);
                        let u = u.add(p * step + i);
                        for r in 0..R {
                            x[r] = V::splat(*u.add(r)).fma(minus, x[r]);
                        }
                    }
                    for p in (0..R).rev() {
                        x[p] = x[p].mul(V::splat(by[i + p]));
                        let minus = zero.sub(x[p]);
                        let u = u.add((i + p) * step + i);
                        for r in 0..p {
                            x[r] = V::splat(*u.add(r)).fma(minus, x[r]);
                        }
                    }
                } else {
                    // The last rows, below which are none.
                    for p in (0..high).rev() {
                        x[p] = x[p].mul(V::splat(by[i + p]));
                        let minus = zero.sub(x[p]);
                        let u = u.add((i + p) * step + i);
                        for r in 0..p {
                            x[r] = V::splat(*u.add(r)).fma(minus, x[r]);
                        }
                    }
                }
                done[i..i + high].copy_from_slice(&x[..high]);
                V::transpose(x.as_mut_ptr());
                for c in 0..wide {
                    let to = b.add(c * b_step + i);
                    match high == R {
                        true => x[c].store(to),
                        false => x[c].store_first(to, high),
                    }
                }
            }
        }
    }
}

/// C = C - L U, of `m` rows, with `k` and `n` at most FEW.
/// SAFETY: nobody else uses the columns of `c`; the machine has the instructions of V.
#[inline(always)]
unsafe fn subtract<V: Simd>(
    (m, n, k): (usize, usize, usize),
    l: *const V::Elem,
    u: *const V::Elem,
    c: *mut V::Elem,
    step: usize,
) where
    V::Elem: Real,
{
    const COLUMNS: usize = 4;
    const ROWS: usize = 2;
    // SAFETY: the caller's.
    unsafe {
        let mut minus = [[V::Elem::default(); FEW]; COLUMNS];
        for j in (0..n).step_by(COLUMNS) {
            let wide = COLUMNS.min(n - j);
            for (c, minus) in minus[..wide].iter_mut().enumerate() {
                for (p, minus) in minus[..k].iter_mut().enumerate() {
                    *minus = -*u.add((j + c) * step + p);
                }
            }
            let c = c.add(j * step);
            let mut i = 0;
            if wide == COLUMNS {
                while i + ROWS * V::LANES <= m {
                    let mut x = [[V::splat(minus[0][0]); ROWS]; COLUMNS];
                    for j in 0..COLUMNS {
                        for r in 0..ROWS {
                            x[j][r] = V::load(c.add(j * step + i + r * V::LANES));
                        }
                    }
                    for p in 0..k {
                        let l = l.add(p * step + i);
                        let (low, high) = (V::load(l), V::load(l.add(V::LANES)));
                        for j in 0..COLUMNS {
                            let u = V::splat(minus[j][p]);
                            x[j][0] = u.fma(low, x[j][0]);
                            x[j][1] = u.fma(high, x[j][1]);
                        }
                    }
                    for j in 0..COLUMNS {
                        for r in 0..ROWS {
                            x[j][r].store(c.add(j * step + i + r * V::LANES));
                        }
                    }
                    i += ROWS * V::LANES;
                }
            }
            while i < m {
                let high = V::LANES.min(m - i);
                for j in 0..wide {
                    let to = c.add(j * step + i);
                    let mut x = V::load_first(to, high);
                    for p in 0..k {
                        let l = V::load_first(l.add(p * step + i), high);
                        x = V::splat(minus[j][p]).fma(l, x);
                    }
                    x.store_first(to, high);
                }
                i += V::LANES;
            }
        }
    }
}

/// The functions of this file, for each type by the best instructions.
///
/// # Safety
/// Nobody else uses the columns that are written.
pub trait Columns: Sized {
    /// Factors `m` rows of `n` columns, at most WIDTH.
    unsafe fn factor(a: *mut Self, m: usize, n: usize, step: usize, pivots: &mut [usize]);
    /// Solves L X = B for `k` rows, at most TALL, of `n` columns, by a unit triangle.
    unsafe fn solve(l: (*const Self, usize), k: usize, b: (*mut Self, usize), n: usize);
    /// Solves U X = B for `k` rows, at most TALL, of `n` columns, by a triangle above the diagonal.
    unsafe fn solve_upper(u: (*const Self, usize), k: usize, b: (*mut Self, usize), n: usize);
    /// C = C - L U of `m` rows, `n` columns and `k` between, both at most FEW.
    unsafe fn subtract(
        size: (usize, usize, usize),
        l: *const Self,
        u: *const Self,
        c: *mut Self,
        step: usize,
    );
}

macro_rules! columns {
    ($t:ident, $wide:ident $w:literal, $middle:ident $two:ident $m:literal, $n:literal) => {
        columns!(@ $t, $wide $w, $middle $two $m, $n,
            factor[](a: *mut $t, m: usize, n: usize, step: usize, pivots: &mut [usize]);
            solve[lanes](l: (*const $t, usize), k: usize, b: (*mut $t, usize), n: usize);
            solve_upper[lanes](u: (*const $t, usize), k: usize, b: (*mut $t, usize), n: usize);
            subtract[](
                size: (usize, usize, usize), l: *const $t, u: *const $t, c: *mut $t, step: usize
            );
        );
    };
    (@ $t:ident, $wide:ident $w:literal, $middle:ident $two:ident $m:literal, $n:literal,
     $($f:ident[$($lanes:ident)?]($($arg:ident: $of:ty),* $(,)?);)*) => {
        impl Columns for $t {
            $(unsafe fn $f($($arg: $of),*) {
                compiled! { avx512:
                    unsafe fn avx512($($arg: $of),*) {
                        // SAFETY: the caller's; it has AVX-512.
                        unsafe { columns!(@call $f[$($lanes)?] std::arch::x86_64::$wide, $w)($($arg),*) }
                    }
                }
                compiled! { avx2:
                    unsafe fn avx2($($arg: $of),*) {
                        // SAFETY: the caller's; it has AVX2.
                        unsafe { columns!(@call $f[$($lanes)?] std::arch::x86_64::$middle, $m)($($arg),*) }
                    }
                }
                // SAFETY: the caller's; the machine has the instructions.
                unsafe {
                    per_isa!(match avx512 => avx512($($arg),*), avx2 => avx2($($arg),*),
                        neon => columns!(@call $f[$($lanes)?] crate::cpu::simd::$two, $m)($($arg),*),
                        portable => columns!(@call $f[$($lanes)?] Portable<$t>, $n)($($arg),*))
                }
            })*
        }
    };
    (@call $f:ident[] $v:ty, $n:literal) => { $f::<$v> };
    (@call $f:ident[lanes] $v:ty, $n:literal) => { $f::<$v, $n> };
}
type Portable<T> = <T as crate::cpu::simd::Vectors>::Portable;
columns!(f32, __m512 16, __m256 F32x8 8, 4);
columns!(f64, __m512d 8, __m256d F64x4 4, 2);
