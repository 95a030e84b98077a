//! The passes of [`super::stockham`], in the vectors of AVX-512.

use crate::compiled;
use crate::cpu::simd::Simd;
use rustfft::num_traits::FromPrimitive;
use rustfft::FftNum;
use std::arch::x86_64::*;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_8};

/// What transforms are computed in.
pub(super) trait FftFloat: FftNum {
    type Wide: Pairs<Elem = Self>;
}
impl FftFloat for f32 {
    type Wide = __m512;
}
impl FftFloat for f64 {
    type Wide = __m512d;
}

/// Vectors of the first and of the second numbers of pairs.
///
/// # Safety
/// As for [`Simd`]; addresses are those of as many pairs as a vector has lanes.
pub(super) trait Pairs: Simd {
    unsafe fn unzip(p: *const Self::Elem) -> (Self, Self);
    /// The last pair first.
    unsafe fn unzip_back(p: *const Self::Elem) -> (Self, Self);
    unsafe fn zip(self, second: Self, p: *mut Self::Elem);
    unsafe fn zip_back(self, second: Self, p: *mut Self::Elem);
    /// Lanes in the opposite order.
    unsafe fn back(self) -> Self;
    /// c - self * b.
    unsafe fn less(self, b: Self, c: Self) -> Self;
}

macro_rules! pairs {
    ($v:ident, $t:ty, $load:ident, $store:ident, $two:ident, $one:ident, $less:ident,
     $orders:ident, [$($even:literal)*], [$($odd:literal)*], [$($low:literal)*],
     [$($high:literal)*], [$($low_back:literal)*], [$($high_back:literal)*], [$($back:literal)*]
    ) => {
        impl Pairs for $v {
            #[inline(always)]
            unsafe fn unzip(p: *const $t) -> (Self, Self) {
                // SAFETY: two vectors of the caller's pairs; the caller has AVX-512.
                unsafe {
                    let (a, b) = ($load(p), $load(p.add(Self::LANES)));
                    ($two(a, $orders($($even),*), b), $two(a, $orders($($odd),*), b))
                }
            }
            #[inline(always)]
            unsafe fn unzip_back(p: *const $t) -> (Self, Self) {
                // SAFETY: as for `unzip`.
                unsafe {
                    let (re, im) = Self::unzip(p);
                    (re.back(), im.back())
                }
            }
            #[inline(always)]
            unsafe fn zip(self, second: Self, p: *mut $t) {
                // SAFETY: as for `unzip`.
                unsafe {
                    $store(p, $two(self, $orders($($low),*), second));
                    $store(p.add(Self::LANES), $two(self, $orders($($high),*), second));
                }
            }
            #[inline(always)]
            unsafe fn zip_back(self, second: Self, p: *mut $t) {
                // SAFETY: as for `unzip`.
                unsafe {
                    $store(p, $two(self, $orders($($low_back),*), second));
                    $store(p.add(Self::LANES), $two(self, $orders($($high_back),*), second));
                }
            }
            #[inline(always)]
            unsafe fn back(self) -> Self {
                // SAFETY: the caller has AVX-512.
                unsafe { $one($orders($($back),*), self) }
            }
            #[inline(always)]
            unsafe fn less(self, b: Self, c: Self) -> Self {
                // SAFETY: the caller has AVX-512.
                unsafe { $less(self, b, c) }
            }
        }
    };
}
pairs!(
    __m512, f32, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_permutex2var_ps,
    _mm512_permutexvar_ps, _mm512_fnmadd_ps, _mm512_setr_epi32,
    [0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30],
    [1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31],
    [0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23],
    [8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31],
    [15 31 14 30 13 29 12 28 11 27 10 26 9 25 8 24],
    [7 23 6 22 5 21 4 20 3 19 2 18 1 17 0 16],
    [15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0]
);
pairs!(
    __m512d, f64, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_permutex2var_pd,
    _mm512_permutexvar_pd, _mm512_fnmadd_pd, _mm512_setr_epi64,
    [0 2 4 6 8 10 12 14],
    [1 3 5 7 9 11 13 15],
    [0 8 1 9 2 10 3 11],
    [4 12 5 13 6 14 7 15],
    [7 15 6 14 5 13 4 12],
    [3 11 2 10 1 9 0 8],
    [7 6 5 4 3 2 1 0]
);

/// `$body` for each `$k` below `$n`, which is at most 16, written out: the arrays that it indexes
/// stay in registers.
macro_rules! each {
    ($k:ident < $n:ident, $body:block) => {
        each!(@ $k < $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $k:ident < $n:ident, $body:block, $($i:literal)*) => {
        $(if $i < $n { let $k: usize = $i; $body })*
    };
}

/// Real and imaginary parts: of as many complex numbers as a vector has lanes, or the addresses of
/// many.
#[derive(Clone, Copy)]
pub(super) struct Parts<V> {
    pub re: V,
    pub im: V,
}

impl<T> Parts<*mut T> {
    /// Those from number `i` on.
    #[inline(always)]
    pub(super) fn at(self, i: usize) -> Self {
        let (re, im) = (self.re.wrapping_add(i), self.im.wrapping_add(i));
        Parts { re, im }
    }
    pub(super) fn exchanged(self, which: bool) -> Self {
        match which {
            true => Parts {
                re: self.im,
                im: self.re,
            },
            false => self,
        }
    }
}

/// # Safety
/// As for [`Simd`].
impl<V: Pairs> Parts<V> {
    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the machine has the instructions of the vector.
        let zero = unsafe { V::splat(V::Elem::default()) };
        Parts { re: zero, im: zero }
    }
    #[inline(always)]
    unsafe fn load(p: Parts<*mut V::Elem>) -> Self {
        // SAFETY: the machine has the instructions of the vector; a vector of numbers lies there.
        unsafe {
            Parts {
                re: V::load(p.re),
                im: V::load(p.im),
            }
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: Parts<*mut V::Elem>) {
        // SAFETY: the machine has the instructions of the vector; a vector of numbers has room
        // there.
        unsafe {
            self.re.store(p.re);
            self.im.store(p.im);
        }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.re.add(o.re),
                im: self.im.add(o.im),
            }
        }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.re.sub(o.re),
                im: self.im.sub(o.im),
            }
        }
    }
    /// `self - i o`.
    #[inline(always)]
    unsafe fn add_rotated(self, o: Self) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.re.add(o.im),
                im: self.im.sub(o.re),
            }
        }
    }
    /// `self + i o`.
    #[inline(always)]
    unsafe fn sub_rotated(self, o: Self) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.re.sub(o.im),
                im: self.im.add(o.re),
            }
        }
    }
    #[inline(always)]
    unsafe fn times(self, w: Self) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.im.less(w.im, self.re.mul(w.re)),
                im: self.im.fma(w.re, self.re.mul(w.im)),
            }
        }
    }
    /// `self (re - i im)`.
    #[inline(always)]
    unsafe fn rotated(self, re: V, im: V) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.im.fma(im, self.re.mul(re)),
                im: self.re.less(im, self.im.mul(re)),
            }
        }
    }
    /// `self h (1 - i)`.
    #[inline(always)]
    unsafe fn eighth(self, h: V) -> Self {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            Parts {
                re: self.re.add(self.im).mul(h),
                im: self.im.sub(self.re).mul(h),
            }
        }
    }

    #[inline(always)]
    unsafe fn four(x: [Self; 4]) -> [Self; 4] {
        // SAFETY: the machine has the instructions of the vector.
        unsafe {
            let (a, b) = (x[0].add(x[2]), x[0].sub(x[2]));
            let (c, d) = (x[1].add(x[3]), x[1].sub(x[3]));
            [a.add(c), b.add_rotated(d), a.sub(c), b.sub_rotated(d)]
        }
    }
}

/// The transform of R numbers, in each lane.
/// SAFETY: as for [`Simd`].
#[inline(always)]
unsafe fn butterfly<V: Pairs, const R: usize>(x: &mut [Parts<V>; R])
where
    V::Elem: FftFloat,
{
    // SAFETY: the machine has the instructions of the vector; indices stay below R.
    unsafe {
        let x = x.as_mut_ptr();
        macro_rules! at {
            ($($i:literal)*) => { [$(*x.add($i)),*] };
        }
        macro_rules! put {
            ($($i:literal = $y:expr),* $(,)?) => { $(*x.add($i) = $y;)* };
        }
        let number = |v: f64| V::Elem::from_f64(v).unwrap_or_default();
        let h = V::splat(number(FRAC_1_SQRT_2));
        if R == 2 {
            let [a, b] = at!(0 1);
            put!(0 = a.add(b), 1 = a.sub(b));
        } else if R == 4 {
            let y = Parts::four(at!(0 1 2 3));
            put!(0 = y[0], 1 = y[1], 2 = y[2], 3 = y[3]);
        } else if R == 8 {
            let e = Parts::four(at!(0 2 4 6));
            let o = Parts::four(at!(1 3 5 7));
            // Times h each: o[1] (1 - i) and o[3] (1 + i), the latter to be subtracted.
            let (a, b) = (o[1].add_rotated(o[1]), o[3].sub_rotated(o[3]));
            put!(
                0 = e[0].add(o[0]),
                1 = Parts {
                    re: a.re.fma(h, e[1].re),
                    im: a.im.fma(h, e[1].im)
                },
                2 = e[2].add_rotated(o[2]),
                3 = Parts {
                    re: b.re.less(h, e[3].re),
                    im: b.im.less(h, e[3].im)
                },
                4 = e[0].sub(o[0]),
                5 = Parts {
                    re: a.re.less(h, e[1].re),
                    im: a.im.less(h, e[1].im)
                },
                6 = e[2].sub_rotated(o[2]),
                7 = Parts {
                    re: b.re.fma(h, e[3].re),
                    im: b.im.fma(h, e[3].im)
                },
            );
        } else {
            let (sin, cos) = FRAC_PI_8.sin_cos();
            let (s, c) = (V::splat(number(sin)), V::splat(number(cos)));
            let a = Parts::four(at!(0 4 8 12));
            let b = Parts::four(at!(1 5 9 13));
            let d = Parts::four(at!(2 6 10 14));
            let e = Parts::four(at!(3 7 11 15));
            let y = Parts::four([a[0], b[0], d[0], e[0]]);
            put!(0 = y[0], 4 = y[1], 8 = y[2], 12 = y[3]);
            let third = e[1].rotated(s, c);
            let y = Parts::four([a[1], b[1].rotated(c, s), d[1].eighth(h), third]);
            put!(1 = y[0], 5 = y[1], 9 = y[2], 13 = y[3]);
            // The last two times -i.
            let (p, q) = (a[2].add_rotated(d[2]), a[2].sub_rotated(d[2]));
            let (b, f) = ([b[2].eighth(h), b[3].rotated(s, c)], e[2].eighth(h));
            let (u, v) = (b[0].add_rotated(f), b[0].sub_rotated(f));
            put!(
                2 = p.add(u),
                6 = q.add_rotated(v),
                10 = p.sub(u),
                14 = q.sub_rotated(v)
            );
            // The third times -i, the last one times -1.
            let (d, f) = (d[3].eighth(h), e[3].rotated(c, s));
            let (p, q) = (a[3].add_rotated(d), a[3].sub_rotated(d));
            let (u, v) = (b[1].sub(f), b[1].add(f));
            put!(
                3 = p.add(u),
                7 = q.add_rotated(v),
                11 = p.sub(u),
                15 = q.sub_rotated(v)
            );
        }
    }
}

compiled! { avx512:
    /// The first pass, of as many numbers as a vector has lanes, `m` from each other: pairs at `x.re`,
    /// or parts where they lie apart.
    pub(super) unsafe fn first<V: Pairs, const R: usize, const APART: bool, const EXCHANGED: bool>(
        x: Parts<*mut V::Elem>, m: usize, w: *const V::Elem, y: Parts<*mut V::Elem>
    )
    where
        V::Elem: FftFloat,
    {
        // SAFETY: the caller gives `m * R` numbers, their roots and room for as many; `m` is a
        // multiple of the lanes, which are R.
        unsafe {
            for p in (0..m).step_by(R) {
                let mut z = [Parts::<V>::zero(); R];
                each!(k < R, {
                    z[k] = if APART {
                        Parts::load(x.at(p + m * k))
                    } else {
                        let (re, im) = V::unzip(x.re.add(2 * (p + m * k)));
                        if EXCHANGED { Parts { re: im, im: re } } else { Parts { re, im } }
                    };
                });
                butterfly::<V, R>(&mut z);
                let (mut re, mut im) = ([z[0].re; R], [z[0].im; R]);
                let w = w.add(2 * p * (R - 1));
                each!(k < R, {
                    if k > 0 {
                        let w = w.add(2 * k.saturating_sub(1) * R).cast_mut();
                        let t = z[k].times(Parts::load(Parts { re: w, im: w.add(R) }));
                        (re[k], im[k]) = (t.re, t.im);
                    }
                });
                let y = y.at(R * p);
                V::transpose(re.as_mut_ptr());
                each!(k < R, { re[k].store(y.re.add(R * k)); });
                V::transpose(im.as_mut_ptr());
                each!(k < R, { im[k].store(y.im.add(R * k)); });
            }
        }
    }

    /// A pass between: of numbers that are `m * s` from each other, for each of `m` roots.
    pub(super) unsafe fn middle<V: Pairs, const R: usize>(
        x: Parts<*mut V::Elem>, m: usize, s: usize, w: *const V::Elem, y: Parts<*mut V::Elem>
    )
    where
        V::Elem: FftFloat,
    {
        // SAFETY: the caller gives `m * s * R` numbers, their roots and room for as many; `s` is a
        // multiple of the lanes.
        unsafe {
            for p in 0..m {
                let w = w.add(2 * (R - 1) * p);
                for q in (0..s).step_by(V::LANES) {
                    let (x, y) = (x.at(q + s * p), y.at(q + s * R * p));
                    let mut z = [Parts::<V>::zero(); R];
                    each!(k < R, { z[k] = Parts::load(x.at(s * m * k)); });
                    butterfly::<V, R>(&mut z);
                    z[0].store(y);
                    each!(k < R, {
                        if k > 0 {
                            let w = w.add(2 * k.saturating_sub(1));
                            let w = Parts { re: V::splat(*w), im: V::splat(*w.add(1)) };
                            z[k].times(w).store(y.at(s * k));
                        }
                    });
                }
            }
        }
    }

    /// The last pass: of numbers that are `s` from each other, times `scale`, to pairs at `y.re`, or
    /// to parts that lie apart.
    pub(super) unsafe fn last<V: Pairs, const R: usize, const APART: bool, const EXCHANGED: bool>(
        x: Parts<*mut V::Elem>, s: usize, scale: V::Elem, y: Parts<*mut V::Elem>
    )
    where
        V::Elem: FftFloat,
    {
        // SAFETY: the caller gives `s * R` numbers and room for as many; `s` is a multiple of the
        // lanes.
        unsafe {
            let scale = V::splat(scale);
            for q in (0..s).step_by(V::LANES) {
                let mut z = [Parts::<V>::zero(); R];
                each!(k < R, { z[k] = Parts::load(x.at(q + s * k)); });
                butterfly::<V, R>(&mut z);
                each!(k < R, {
                    let t = Parts { re: z[k].re.mul(scale), im: z[k].im.mul(scale) };
                    if APART {
                        t.store(y.at(q + s * k));
                    } else {
                        let to = y.re.add(2 * (q + s * k));
                        if EXCHANGED { t.im.zip(t.re, to) } else { t.re.zip(t.im, to) }
                    }
                });
            }
        }
    }

    /// From half of the transform `z` of even places as real and odd ones as imaginary parts, that of
    /// all: its first `m + 1` values.
    pub(super) unsafe fn tell_apart<V: Pairs>(
        z: Parts<*mut V::Elem>, m: usize, w: Parts<*mut V::Elem>, y: *mut V::Elem
    )
    where
        V::Elem: FftFloat,
    {
        // SAFETY: `z` has `m` values, and roots go up to their middle; `y` has room for one more. The
        // last vector may be computed twice, as `y` overlaps nothing.
        unsafe {
            let (a, b, middle) = (*z.re + *z.re, *z.im + *z.im, m / 2);
            (*y, *y.add(1)) = (a + b, V::Elem::default());
            (*y.add(2 * m), *y.add(2 * m + 1)) = (a - b, V::Elem::default());
            for k in (1..middle).step_by(V::LANES) {
                let k = k.min(middle - V::LANES);
                let l = m - k - (V::LANES - 1);
                let (a, b) = (Parts::<V>::load(z.at(k)), Parts::<V>::load(z.at(l)));
                let b = Parts { re: b.re.back(), im: b.im.back() };
                let e = Parts { re: a.re.add(b.re), im: a.im.sub(b.im) };
                let o = Parts { re: a.im.add(b.im), im: b.re.sub(a.re) };
                let t = o.times(Parts::load(w.at(k)));
                e.re.add(t.re).zip(e.im.add(t.im), y.add(2 * k));
                e.re.sub(t.re).zip_back(t.im.sub(e.im), y.add(2 * l));
            }
            // The root is -i or i.
            let (re, im) = (*z.re.add(middle), *z.im.add(middle) * *w.im.add(middle));
            (*y.add(m), *y.add(m + 1)) = (re + re, im + im);
        }
    }

    /// The way back, from the first `m + 1` values, of which the ends count `ends`.
    pub(super) unsafe fn bring_together<V: Pairs>(
        x: *const V::Elem, m: usize, w: Parts<*mut V::Elem>, ends: V::Elem, z: Parts<*mut V::Elem>
    )
    where
        V::Elem: FftFloat,
    {
        // SAFETY: as for `tell_apart`; `z` has room for `m` values.
        unsafe {
            let (a, b, middle) = (*x * ends, *x.add(2 * m) * ends, m / 2);
            (*z.re, *z.im) = (a + b, a - b);
            for k in (1..middle).step_by(V::LANES) {
                let k = k.min(middle - V::LANES);
                let l = m - k - (V::LANES - 1);
                let (a_re, a_im) = V::unzip(x.add(2 * k));
                let (b_re, b_im) = V::unzip_back(x.add(2 * l));
                let e = Parts { re: a_re.add(b_re), im: a_im.sub(b_im) };
                let d = Parts { re: a_re.sub(b_re), im: a_im.add(b_im) };
                let o = d.times(Parts::load(w.at(k)));
                e.sub_rotated(o).store(z.at(k));
                let t = e.add_rotated(o);
                let zero = V::splat(V::Elem::default());
                Parts { re: t.re.back(), im: zero.sub(t.im).back() }.store(z.at(l));
            }
            let (re, im) = (*x.add(m), -(*x.add(m + 1) * *w.im.add(middle)));
            (*z.re.add(middle), *z.im.add(middle)) = (re + re, im + im);
        }
    }
}
