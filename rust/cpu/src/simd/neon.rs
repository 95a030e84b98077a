//! The registers of NEON, two as one vector: the 32 of them hold what the 16 of AVX2 do, so that
//! kernels cut for the one fit the other.

use super::Simd;
use std::arch::aarch64::*;

/// Two registers; lanes of the first come first.
#[derive(Clone, Copy)]
pub struct Two<Q>(Q, Q);

impl<Q> Two<Q> {
    #[inline(always)]
    pub fn of(low: Q, high: Q) -> Self {
        Two(low, high)
    }
}

pub type F32x8 = Two<float32x4_t>;
pub type F64x4 = Two<float64x2_t>;

/// The first `n` of four elements; the others are zero.
///
/// # Safety
/// `p` has `n` elements, or four where `n` is more.
#[inline(always)]
unsafe fn first32(p: *const f32, n: usize) -> float32x4_t {
    // SAFETY: each arm reads `n` elements; NEON is part of every aarch64.
    unsafe {
        let zero = vdupq_n_f32(0.0);
        match n {
            0 => zero,
            1 => vld1q_lane_f32::<0>(p, zero),
            2 => vcombine_f32(vld1_f32(p), vget_low_f32(zero)),
            3 => {
                let two = vcombine_f32(vld1_f32(p), vget_low_f32(zero));
                vld1q_lane_f32::<2>(p.add(2), two)
            }
            _ => vld1q_f32(p),
        }
    }
}

/// # Safety
/// As for [`first32`], of two elements.
#[inline(always)]
unsafe fn first64(p: *const f64, n: usize) -> float64x2_t {
    // SAFETY: each arm reads `n` elements; NEON is part of every aarch64.
    unsafe {
        match n {
            0 => vdupq_n_f64(0.0),
            1 => vld1q_lane_f64::<0>(p, vdupq_n_f64(0.0)),
            _ => vld1q_f64(p),
        }
    }
}

/// # Safety
/// `p` has room for `n` elements, or four where `n` is more.
#[inline(always)]
unsafe fn put32(x: float32x4_t, p: *mut f32, n: usize) {
    // SAFETY: each arm writes `n` elements; NEON is part of every aarch64.
    unsafe {
        match n {
            0 => {}
            1 => vst1q_lane_f32::<0>(p, x),
            2 => vst1_f32(p, vget_low_f32(x)),
            3 => {
                vst1_f32(p, vget_low_f32(x));
                vst1q_lane_f32::<2>(p.add(2), x);
            }
            _ => vst1q_f32(p, x),
        }
    }
}

/// # Safety
/// As for [`put32`], of two elements.
#[inline(always)]
unsafe fn put64(x: float64x2_t, p: *mut f64, n: usize) {
    // SAFETY: each arm writes `n` elements; NEON is part of every aarch64.
    unsafe {
        match n {
            0 => {}
            1 => vst1q_lane_f64::<0>(p, x),
            _ => vst1q_f64(p, x),
        }
    }
}

/// Transposes four registers.
#[inline(always)]
fn square32(r: [float32x4_t; 4]) -> [float32x4_t; 4] {
    // SAFETY: NEON is part of every aarch64.
    unsafe {
        let pairs = |x| vreinterpretq_f64_f32(x);
        let (a, b) = (vtrn1q_f32(r[0], r[1]), vtrn2q_f32(r[0], r[1]));
        let (c, d) = (vtrn1q_f32(r[2], r[3]), vtrn2q_f32(r[2], r[3]));
        let (a, b, c, d) = (pairs(a), pairs(b), pairs(c), pairs(d));
        [
            vreinterpretq_f32_f64(vtrn1q_f64(a, c)),
            vreinterpretq_f32_f64(vtrn1q_f64(b, d)),
            vreinterpretq_f32_f64(vtrn2q_f64(a, c)),
            vreinterpretq_f32_f64(vtrn2q_f64(b, d)),
        ]
    }
}

/// Transposes two registers.
#[inline(always)]
fn square64(r: [float64x2_t; 2]) -> [float64x2_t; 2] {
    // SAFETY: NEON is part of every aarch64.
    unsafe { [vtrn1q_f64(r[0], r[1]), vtrn2q_f64(r[0], r[1])] }
}

macro_rules! registers {
    ($v:ident, $t:ident, $half:literal, $splat:ident, $load:ident, $store:ident, $fma:ident,
     $abs:ident, [$($two:ident = $of_two:ident),*], $greater:ident, $choose:ident,
     $first:ident, $put:ident, $sum:ident, $largest:ident,
     |$x:ident, $one:ident| $some:expr, |$a:ident, $i:ident| $lane:expr, $square:ident
    ) => {
        impl Simd for $v {
            type Elem = $t;
            const LANES: usize = 2 * $half;
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                // SAFETY: NEON is part of every aarch64.
                let x = unsafe { $splat(x) };
                Two(x, x)
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: `p` has all lanes.
                unsafe { Two($load(p), $load(p.add($half))) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: `p` has room for all lanes.
                unsafe {
                    $store(p, self.0);
                    $store(p.add($half), self.1);
                }
            }
            $(
                #[inline(always)]
                unsafe fn $two(self, o: Self) -> Self {
                    // SAFETY: NEON is part of every aarch64.
                    unsafe { Two($of_two(self.0, o.0), $of_two(self.1, o.1)) }
                }
            )*
            #[inline(always)]
            unsafe fn abs(self) -> Self {
                // SAFETY: NEON is part of every aarch64.
                unsafe { Two($abs(self.0), $abs(self.1)) }
            }
            #[inline(always)]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                // SAFETY: NEON is part of every aarch64.
                unsafe { Two($fma(c.0, self.0, b.0), $fma(c.1, self.1, b.1)) }
            }
            #[inline(always)]
            unsafe fn max(self, o: Self) -> Self {
                // The machine's own maximum is NaN where either is.
                // SAFETY: NEON is part of every aarch64.
                unsafe {
                    Two(
                        $choose($greater(self.0, o.0), self.0, o.0),
                        $choose($greater(self.1, o.1), self.1, o.1),
                    )
                }
            }
            #[inline(always)]
            unsafe fn count(self, x: Self) -> Self {
                // SAFETY: NEON is part of every aarch64.
                unsafe {
                    let $one = $splat(1.0);
                    let some = |$x| $some;
                    Two(some(x.0), some(x.1)).add(self)
                }
            }
            #[inline(always)]
            unsafe fn load_first(p: *const $t, n: usize) -> Self {
                // SAFETY: `p` has the first `n` elements.
                unsafe { Two($first(p, n), $first(p.wrapping_add($half), n.saturating_sub($half))) }
            }
            #[inline(always)]
            unsafe fn store_first(self, p: *mut $t, n: usize) {
                // SAFETY: `p` has room for the first `n` elements.
                unsafe {
                    $put(self.0, p, n);
                    $put(self.1, p.wrapping_add($half), n.saturating_sub($half));
                }
            }
            #[inline(always)]
            unsafe fn transpose(x: *mut Self) {
                // SAFETY: `x` has as many vectors as they have lanes.
                unsafe {
                    let corner = |i: usize, right: bool| -> [_; $half] {
                        std::array::from_fn(|r| {
                            let v = *x.add(i + r);
                            if right { v.1 } else { v.0 }
                        })
                    };
                    let (a, b) = ($square(corner(0, false)), $square(corner($half, false)));
                    let (c, d) = ($square(corner(0, true)), $square(corner($half, true)));
                    for i in 0..$half {
                        *x.add(i) = Two(a[i], b[i]);
                        *x.add($half + i) = Two(c[i], d[i]);
                    }
                }
            }
            #[inline(always)]
            unsafe fn largest(self) -> $t {
                // SAFETY: NEON is part of every aarch64.
                unsafe { $largest(self.max(Two(self.1, self.0)).0) }
            }
            #[inline(always)]
            unsafe fn sum(self) -> $t {
                // SAFETY: NEON is part of every aarch64.
                unsafe { $sum(self.add(Two(self.1, self.0)).0) }
            }
            #[inline(always)]
            unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut $t) {
                for (i, x) in x.iter().enumerate() {
                    // SAFETY: `p` has as many numbers as there are vectors.
                    unsafe { *p.add(i) += x.sum() };
                }
            }
            #[inline(always)]
            unsafe fn add_outer<const M: usize, const N: usize>(
                a: *const $t,
                y: &[Self; N],
                sum: &mut [[Self; N]; M],
            ) {
                for $i in 0..M {
                    let from = $i - $i % $half;
                    // SAFETY: `a` has M elements.
                    unsafe {
                        // A multiplication takes its factor from a lane: one load is for several.
                        let $a = $first(a.add(from), M - from);
                        let x = $lane;
                        for j in 0..N {
                            sum[$i][j] = Two(x, x).fma(y[j], sum[$i][j]);
                        }
                    }
                }
            }
        }
    };
}

registers!(
    F32x8,
    f32,
    4,
    vdupq_n_f32,
    vld1q_f32,
    vst1q_f32,
    vfmaq_f32,
    vabsq_f32,
    [add = vaddq_f32, sub = vsubq_f32, mul = vmulq_f32],
    vcgtq_f32,
    vbslq_f32,
    first32,
    put32,
    vaddvq_f32,
    vmaxnmvq_f32,
    |x, one| vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(one), vceqzq_f32(x))),
    |a, i| match i % 4 {
        0 => vdupq_laneq_f32::<0>(a),
        1 => vdupq_laneq_f32::<1>(a),
        2 => vdupq_laneq_f32::<2>(a),
        _ => vdupq_laneq_f32::<3>(a),
    },
    square32
);

registers!(
    F64x4,
    f64,
    2,
    vdupq_n_f64,
    vld1q_f64,
    vst1q_f64,
    vfmaq_f64,
    vabsq_f64,
    [add = vaddq_f64, sub = vsubq_f64, mul = vmulq_f64],
    vcgtq_f64,
    vbslq_f64,
    first64,
    put64,
    vaddvq_f64,
    vmaxnmvq_f64,
    |x, one| vreinterpretq_f64_u64(vbicq_u64(vreinterpretq_u64_f64(one), vceqzq_f64(x))),
    |a, i| match i % 2 {
        0 => vdupq_laneq_f64::<0>(a),
        _ => vdupq_laneq_f64::<1>(a),
    },
    square64
);
