//! Hessenberg's form of a matrix by reflections, in one pass over it for each. Rows are padded with
//! zeros to whole vectors.

use super::lanes::{add, get, put, scale_add, sum, Lanes, LANES};
use super::{plain, Precision};
use crate::alloc::full;
use crate::per_isa;

/// R rows minus what the last reflector does to them; their products with the next, `x`, and what
/// they add to the products of columns with it.
#[inline(always)]
unsafe fn pass<T: Precision, const R: usize>(
    rows: *mut T,
    (from, width): (usize, usize),
    [x, dots, v, d]: [*mut T; 4],
    [xi, vi, si]: [&[T]; 3],
) -> [T; R] {
    let mut sums = [[T::default(); LANES]; R];
    let mut c = from;
    // SAFETY: R rows of `width` elements begin at `rows`, and the vectors are as wide.
    unsafe {
        while c < width {
            let (xc, vc, dc): (Lanes<T>, Lanes<T>, Lanes<T>) =
                (get(x.add(c)), get(v.add(c)), get(d.add(c)));
            let mut dot = get(dots.add(c));
            for r in 0..R {
                let p = rows.add(r * width + c);
                let row = scale_add(scale_add(get(p), -vi[r], dc), -si[r], vc);
                put(p, row);
                sums[r] = add(sums[r], row, xc);
                dot = scale_add(dot, xi[r], row);
            }
            put(dots.add(c), dot);
            c += LANES;
        }
    }
    std::array::from_fn(|r| sum(sums[r]))
}

per_isa! {
    /// Hessenberg's form of `t`; reflector k goes to row k of `v`, unless that is empty. A pass over
    /// the matrix applies a reflector from both sides and finds the products with the next.
    ///
    /// # Safety
    /// `t` has `n` rows of `width`, a multiple of [`LANES`], zero from column `n` on; `v` has as many
    /// or none, `tau` has `n` elements.
    pub unsafe fn hessenberg[T: Precision](
        t: &mut [T], n: usize, width: usize, v: &mut [T], tau: &mut [T],
    ) {
        let zeros = || full(T::default(), width);
        // The matrix is still to become T - last d' - s last'.
        let (mut x, mut dots, mut last, mut d) = (zeros(), zeros(), zeros(), zeros());
        let (mut s, mut next) = (zeros(), zeros());
        for k in 0..n.saturating_sub(1) {
            x.fill(T::default());
            for i in k + 1..n {
                x[i] = t[i * width + k] - last[i] * d[k] - s[i] * last[k];
            }
            // The last pass has nothing to reflect.
            let found = match k + 2 < n {
                true => plain::reflector(&mut x[k + 1..n]),
                false => None,
            };
            match found {
                Some((_, f)) => (x[k + 1], tau[k]) = (T::of_f64(1.0), f),
                None => x.fill(T::default()),
            }
            if !v.is_empty() {
                v[k * width..(k + 1) * width].copy_from_slice(&x);
            }
            let (from, f) = (k / LANES * LANES, tau[k]);
            dots.fill(T::default());
            let all = [&mut x, &mut dots, &mut last, &mut d].map(|x| x.as_mut_ptr());
            let (mut i, columns) = (0, (from, width));
            // SAFETY: rows up to `n` are of `width`, as the vectors are. Rows above the next
            // reflector have a zero in it.
            unsafe {
                let rows = t.as_mut_ptr();
                while i + 4 <= n {
                    let own = [&x[i..i + 4], &last[i..i + 4], &s[i..i + 4]];
                    let four = pass::<T, 4>(rows.add(i * width), columns, all, own);
                    next[i..i + 4].copy_from_slice(&four);
                    i += 4;
                }
                while i < n {
                    let own = [&x[i..=i], &last[i..=i], &s[i..=i]];
                    [next[i]] = pass::<T, 1>(rows.add(i * width), columns, all, own);
                    i += 1;
                }
            }
            // The reflected rows times the reflector.
            let mut both = T::default();
            for ((d, &dot), &x) in d[from..].iter_mut().zip(&dots[from..]).zip(&x[from..]) {
                *d = f * dot;
                both = both + *d * x;
            }
            for ((s, &next), &x) in s.iter_mut().zip(&next).zip(&x) {
                *s = f * (next - x * both);
            }
            if let Some((beta, _)) = found {
                t[(k + 1) * width + k] = beta;
                for i in k + 2..n {
                    t[i * width + k] = T::default();
                }
                // This column is done.
                d[from..=k].fill(T::default());
            }
            std::mem::swap(&mut x, &mut last);
        }
    }
}
