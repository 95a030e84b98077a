//! The exponential of a matrix: a polynomial of Taylor's in few products, of the matrix by a power of
//! two, then squared as often (Bader, Blanes and Casas 2019, Mathematics 7, 1174).

use super::Precision;
use crate::alloc::full;
use crate::cpu::gemm::{product, Mat, Problem};
use crate::per_isa;

/// Up to these norms the polynomials of degree 8 and 18 are right to rounding: backward errors of
/// 2^-24 and 2^-53.
pub fn reach<T: Precision>() -> (f64, f64) {
    match size_of::<T>() {
        4 => (0.580_052_462_768_876_8, 3.010_066_362_817_634),
        _ => (0.049_912_288_711_153_23, 1.090_863_719_290_036),
    }
}

/// Powers are taken of a matrix of at most this norm, which none leaves the range of numbers by.
pub const TOP: f64 = 1024.0;
/// What squarings the powers' norms save must not leave more than this: terms that cancel are
/// rounded.
const STEEP: f64 = 16.0;

/// Square matrices in rows. A complex one, X + i Y, is [X -Y; Y X], and of a product the left half is
/// computed.
#[derive(Clone, Copy)]
struct Square {
    side: usize,
    complex: bool,
}

impl Square {
    /// Z = X Y, or with Z added.
    fn multiply<T: Precision>(self, x: &[T], y: &[T], z: &mut [T], add: bool) {
        let n = self.side;
        let rows = |x: &[T]| Mat::new(x.as_ptr(), n as isize, 1);
        let c = z.as_mut_ptr();
        let p = Problem {
            m: n,
            n: if self.complex { n / 2 } else { n },
            k: n,
            alpha: T::of_f64(1.0),
            a: rows(x),
            b: rows(y),
            beta: T::of_f64(if add { 1.0 } else { 0.0 }),
            d: Mat::new(c.cast_const(), n as isize, 1),
            c: Mat::new(c, n as isize, 1),
            reduced: false,
        };
        // SAFETY: all three are of `n` rows of `n`.
        unsafe { product(&p) };
        self.mirror(z);
    }

    /// The right half of a complex matrix from the left.
    fn mirror<T: Precision>(self, z: &mut [T]) {
        if !self.complex {
            return;
        }
        let (n, h) = (self.side, self.side / 2);
        let (upper, lower) = z.split_at_mut(h * n);
        for (x, y) in upper.chunks_exact_mut(n).zip(lower.chunks_exact_mut(n)) {
            let ((re, minus), (im, same)) = (x.split_at_mut(h), y.split_at_mut(h));
            same.copy_from_slice(re);
            for (to, &im) in minus.iter_mut().zip(&*im) {
                *to = -im;
            }
        }
    }

    fn add_identity<T: Precision>(self, x: &mut [T], f: f64) {
        let f = T::of_f64(f);
        for i in 0..self.side {
            x[i * (self.side + 1)] = x[i * (self.side + 1)] + f;
        }
    }
}

per_isa! {
    /// The largest sum of a row's absolute values; NaN where there is one.
    fn norm[T: Precision](x: &[T], n: usize) -> f64 {
        let mut most = 0.0;
        for row in x.chunks_exact(n) {
            let mut sums = [T::default(); 8];
            let whole = row.chunks_exact(8);
            let rest = whole.remainder();
            for x in whole {
                for (s, &x) in sums.iter_mut().zip(x) {
                    *s = *s + Precision::abs(x);
                }
            }
            let all = sums.iter().chain(rest).map(|x| x.to_f64().abs());
            let sum: f64 = all.sum();
            most = if sum > most || sum.is_nan() { sum } else { most };
        }
        most
    }
}

/// The sums of four powers, A, A^2, A^3 and A^6, that the polynomial of degree 18 is made of, and of
/// the identity.
pub const SUMS: [[f64; 5]; 5] = [
    [
        0.0,
        -1.003_655_810_301_446_2e-1,
        -8.029_246_482_411_57e-3,
        -8.921_384_980_457_3e-4,
        0.0,
    ],
    [
        0.0,
        3.978_497_494_996_451e-1,
        1.367_837_784_604_117_2,
        4.982_896_225_253_826_7e-1,
        -6.378_981_945_947_233e-4,
    ],
    [
        -1.096_763_960_529_620_6e1,
        1.680_158_138_789_062,
        5.717_798_464_788_655e-2,
        -6.982_101_224_880_52e-3,
        3.349_750_170_860_705e-5,
    ],
    [
        -9.043_168_323_908_106e-2,
        -6.764_045_190_713_819e-2,
        6.759_613_017_704_597e-2,
        2.955_525_704_293_155e-2,
        -1.391_802_575_160_607e-5,
    ],
    [
        0.0,
        0.0,
        -9.233_646_193_671_186e-2,
        -1.693_649_390_020_817e-2,
        -1.400_867_981_820_361e-5,
    ],
];

per_isa! {
    /// In place of four powers, and to a fifth matrix, their sums by `f`.
    fn mix[T: Precision](x: &mut [&mut [T]; 5], f: &[[T; 5]; 5]) {
        let [a, b, c, d, e] = x;
        for ((((a, b), c), d), e) in
            a.iter_mut().zip(b.iter_mut()).zip(c.iter_mut()).zip(d.iter_mut()).zip(e.iter_mut())
        {
            let sum = |f: &[T; 5]| f[1] * *a + f[2] * *b + (f[3] * *c + f[4] * *d);
            let sums = [sum(&f[0]), sum(&f[1]), sum(&f[2]), sum(&f[3]), sum(&f[4])];
            [*a, *b, *c, *d, *e] = sums;
        }
    }
}

per_isa! {
    fn add_to[T: Precision](x: &mut [T], y: &[T]) {
        for (x, &y) in x.iter_mut().zip(y) {
            *x = *x + y;
        }
    }
}

/// How often a matrix is halved that has these norms, as do its second, third and sixth power: until
/// all powers from the 19th on, which are products of these, are below those of `reach`.
pub fn halvings([a, a2, a3, a6]: [f64; 4], reach: f64) -> i32 {
    let rest = [1.0, a, a2, a3, (a2 * a2).min(a3 * a), a2 * a3];
    let each = rest.iter().zip(18..);
    let top = each
        .map(|(r, k)| (a6 * a6 * a6 * r).powf(1.0 / f64::from(k)))
        .fold(0.0, f64::max);
    let most = (top / reach).max(a / STEEP);
    most.log2().ceil().max(0.0) as i32
}

/// Degree 18 in five products, into the second; how often it is to be squared.
fn long<T: Precision>(s: Square, size: f64, x: &mut [&mut [T]; 5]) -> i32 {
    let [a, a2, a3, a6, _] = x;
    s.multiply(a, a, a2, false);
    s.multiply(a2, a, a3, false);
    s.multiply(a3, a3, a6, false);
    let norms = [size, norm(a2, s.side), norm(a3, s.side), norm(a6, s.side)];
    let times = halvings(norms, reach::<T>().1);
    // The powers are those of the matrix halved so often.
    let scales = [0, 1, 2, 3, 6].map(|k| 2f64.powi(-k * times));
    let f = SUMS.map(|row| std::array::from_fn(|k| T::of_f64(row[k] * scales[k])));
    mix(x, &f);
    let [p, q, r, t, u] = x;
    s.add_identity(r, SUMS[2][0]);
    s.add_identity(t, SUMS[3][0]);
    s.multiply(p, u, t, true);
    add_to(r, t);
    s.multiply(r, t, q, true);
    times
}

/// Degree 8 in three products, into the second.
fn short<T: Precision>(s: Square, x: &mut [&mut [T]; 5]) {
    let root = 177f64.sqrt();
    let x3 = 2.0 / 3.0;
    let x1 = x3 * (1.0 + root) / 88.0;
    let x2 = x1 / 4.0;
    let x4 = (29.0 * root - 271.0) / (315.0 * x3);
    let x5 = 11.0 * (root - 1.0) / (1260.0 * x3);
    let x6 = 11.0 * (root - 9.0) / (5040.0 * x3);
    let x7 = (89.0 - root) / (5040.0 * x3 * x3);
    let y2 = (857.0 - 58.0 * root) / 630.0;
    let [a, a2, p, a4, q] = x;
    s.multiply(a, a, a2, false);
    let by = T::of_f64;
    let (f, g) = (by(x1), by(x2));
    for (p, (&a, &b)) in p.iter_mut().zip(a.iter().zip(&**a2)) {
        *p = f * a + g * b;
    }
    s.multiply(a2, p, a4, false);
    let (first, f) = (by(x3), [by(x5), by(x6), by(x7), by(y2)]);
    let powers = a.iter().zip(a2.iter_mut()).zip(&**a4);
    for (((&a, b), &c), (p, q)) in powers.zip(p.iter_mut().zip(q.iter_mut())) {
        *p = first * *b + c;
        *q = f[0] * a + f[1] * *b + f[2] * c;
        *b = a + f[3] * *b;
    }
    s.add_identity(q, x4);
    s.add_identity(a2, 1.0);
    s.multiply(p, q, a2, true);
}

/// Of the `n` rows of `a`, where `complex` of pairs of real numbers.
pub fn exponential<T: Precision>(a: &[T], n: usize, complex: bool, y: &mut [T]) {
    let side = if complex { 2 * n } else { n };
    let (s, all) = (Square { side, complex }, side * side);
    let mut room = full(T::default(), 5 * all);
    let mut parts = room.chunks_exact_mut(all);
    let mut x: [&mut [T]; 5] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    if complex {
        let (re, im) = x[0].split_at_mut(n * side);
        for (i, row) in a.chunks_exact(side).enumerate() {
            for (j, pair) in row.chunks_exact(2).enumerate() {
                (re[i * side + j], im[i * side + j]) = (pair[0], pair[1]);
            }
        }
        s.mirror(x[0]);
    } else {
        x[0].copy_from_slice(a);
    }
    let mut size = norm(x[0], side);
    if !size.is_finite() {
        return y.fill(T::of_f64(f64::NAN));
    }
    let mut times = 0;
    if size > TOP {
        times = (size / TOP).log2().ceil() as i32;
        // In two steps: the power of two may be less than the least number.
        for part in [times / 2, times - times / 2] {
            let f = T::of_f64(2f64.powi(-part));
            x[0].iter_mut().for_each(|x| *x = *x * f);
            size *= 2f64.powi(-part);
        }
    }
    if size <= reach::<T>().0 {
        short(s, &mut x);
    } else {
        times += long(s, size, &mut x);
    }
    let [other, from, ..] = x;
    let (mut from, mut other) = (from, other);
    for _ in 0..times {
        s.multiply(from, from, other, false);
        std::mem::swap(&mut from, &mut other);
    }
    if complex {
        let (re, im) = from.split_at(n * side);
        for (i, row) in y.chunks_exact_mut(side).enumerate() {
            for (j, pair) in row.chunks_exact_mut(2).enumerate() {
                (pair[0], pair[1]) = (re[i * side + j], im[i * side + j]);
            }
        }
    } else {
        y.copy_from_slice(from);
    }
}
