//! Rows as vectors of a width that every machine's divides.

use super::Precision;
use crate::per_isa;

pub const LANES: usize = 8;
pub type Lanes<T> = [T; LANES];

/// The width of padded rows.
pub fn width(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

// SAFETY: `p` has LANES elements.
#[inline(always)]
pub unsafe fn get<T: Copy>(p: *const T) -> Lanes<T> {
    // SAFETY: `p` has LANES elements; their alignment does not matter.
    unsafe { p.cast::<Lanes<T>>().read_unaligned() }
}

// SAFETY: `p` has room for LANES elements.
#[inline(always)]
pub unsafe fn put<T: Copy>(p: *mut T, x: Lanes<T>) {
    // SAFETY: `p` has room for LANES elements; their alignment does not matter.
    unsafe { p.cast::<Lanes<T>>().write_unaligned(x) }
}

/// x + f y.
#[inline(always)]
pub fn scale_add<T: Precision>(x: Lanes<T>, f: T, y: Lanes<T>) -> Lanes<T> {
    std::array::from_fn(|l| x[l] + f * y[l])
}

/// s + x y.
#[inline(always)]
pub fn add<T: Precision>(s: Lanes<T>, x: Lanes<T>, y: Lanes<T>) -> Lanes<T> {
    std::array::from_fn(|l| s[l] + x[l] * y[l])
}

/// Halves are added, so that it is a few instructions.
#[inline(always)]
pub fn sum<T: Precision>(x: Lanes<T>) -> T {
    let x: [T; 4] = std::array::from_fn(|l| x[l] + x[l + 4]);
    (x[0] + x[2]) + (x[1] + x[3])
}

/// R rows minus `tau` times their products with `v`, times `v`.
// SAFETY: R rows of `width` elements, a multiple of LANES, begin at `rows`, and `v` has as many.
#[inline(always)]
pub unsafe fn reflect_rows<T: Precision, const R: usize>(
    rows: *mut T,
    (from, width): (usize, usize),
    v: *const T,
    tau: T,
) {
    let mut sums = [[T::default(); LANES]; R];
    // SAFETY: R rows of `width` elements begin at `rows`, and `v` has as many.
    unsafe {
        let mut c = from;
        while c < width {
            let vc: Lanes<T> = get(v.add(c));
            for r in 0..R {
                sums[r] = add(sums[r], get(rows.add(r * width + c)), vc);
            }
            c += LANES;
        }
        let f: [T; R] = std::array::from_fn(|r| -tau * sum(sums[r]));
        c = from;
        while c < width {
            let vc: Lanes<T> = get(v.add(c));
            for r in 0..R {
                let p = rows.add(r * width + c);
                put(p, scale_add(get(p), f[r], vc));
            }
            c += LANES;
        }
    }
}

per_isa! {
    /// The product of two vectors.
    pub fn dot[T: Precision](a: &[T], x: &[f64]) -> f64 {
        let (mut sums, n) = ([0.0; LANES], a.len().min(x.len()));
        let whole = n / LANES * LANES;
        // Of a known length, so that the compiler makes vectors of them.
        for (a, x) in a[..whole].chunks_exact(LANES).zip(x.chunks_exact(LANES)) {
            for l in 0..LANES {
                sums[l] += a[l].to_f64() * x[l];
            }
        }
        for (sum, (a, x)) in sums.iter_mut().zip(a[whole..n].iter().zip(&x[whole..n])) {
            *sum += a.to_f64() * x;
        }
        sums.iter().sum()
    }
}
