//! Numbers of loops whose vector code does not cover every argument.
//!
//! Where it does not reach, the number is marked, and every number computed from it; the driver
//! computes those elements again with plain floats.

use super::super::real::{Half, Real, Special, Special2};
use crate::cpu::math::{f32x, f64x};
use std::ops::{Add, BitOr, Div, Mul, Neg, Sub};

/// A float and its marked counterpart.
pub trait Guarded: Real {
    type Near: Real;
    /// As wide as the float, so that marks are vectors like the numbers.
    type Mark: Copy + Default + PartialEq + BitOr<Output = Self::Mark>;
    fn near(self) -> Self::Near;
    fn parts(x: Self::Near) -> (Self, Self::Mark);
    /// Whether it is not a number up to `most` on either side of 0.
    fn beyond(self, most: f64) -> Self::Mark;
}

macro_rules! near {
    ($near:ident, $mask:ident, $t:ident, $bits:ident, $m:ident, [$($f:ident)*],
     [$($g:ident $at:ident $far:ident;)*], [$($h:ident $pair:ident;)*]) => {
        #[derive(Clone, Copy)]
        pub struct $near {
            v: $t,
            far: $bits,
        }

        #[derive(Clone, Copy)]
        pub struct $mask {
            v: bool,
            far: $bits,
        }

        impl Guarded for $t {
            type Near = $near;
            type Mark = $bits;
            #[inline(always)]
            fn near(self) -> $near {
                $near { v: self, far: 0 }
            }
            #[inline(always)]
            fn parts(x: $near) -> ($t, $bits) {
                (x.v, x.far)
            }
            #[inline(always)]
            fn beyond(self, most: f64) -> $bits {
                let within = self.abs() <= most as $t;
                !within as $bits
            }
        }

        near!(@ops $near, Add add, Sub sub, Mul mul, Div div);

        impl Neg for $near {
            type Output = $near;
            #[inline(always)]
            fn neg(self) -> $near {
                $near { v: -self.v, far: self.far }
            }
        }

        impl Real for $near {
            type Mask = $mask;
            #[inline(always)]
            fn lit(v: f64) -> Self {
                $t::lit(v).near()
            }
            near!(@compare $near, $mask, lt le equal);
            #[inline(always)]
            fn is_nan(self) -> $mask {
                $mask { v: self.v.is_nan(), far: self.far }
            }
            #[inline(always)]
            fn both(a: $mask, b: $mask) -> $mask {
                $mask { v: a.v & b.v, far: a.far | b.far }
            }
            #[inline(always)]
            fn either(a: $mask, b: $mask) -> $mask {
                $mask { v: a.v | b.v, far: a.far | b.far }
            }
            #[inline(always)]
            fn not(a: $mask) -> $mask {
                $mask { v: !a.v, far: a.far }
            }
            #[inline(always)]
            fn select(m: $mask, yes: Self, no: Self) -> Self {
                $near {
                    v: if m.v { yes.v } else { no.v },
                    far: m.far | yes.far | no.far,
                }
            }
            $(
                #[inline(always)]
                fn $f(self) -> Self {
                    $near { v: Real::$f(self.v), far: self.far }
                }
            )*
            $(
                #[inline(always)]
                fn $g(self) -> Self {
                    $near {
                        v: $m::$at(self.v),
                        far: self.far | ($m::$far(self.v) as $bits),
                    }
                }
            )*
            $(
                #[inline(always)]
                fn $h(self) -> Self {
                    let (v, far) = $m::$pair(self.v);
                    $near { v, far: self.far | (far as $bits) }
                }
            )*
            near!(@pairs $near, pow atan2 copysign);
            #[inline(always)]
            fn fmod(self, o: Self) -> Self {
                let (v, far) = $m::fmod_near(self.v, o.v);
                $near { v, far: self.far | o.far | (far as $bits) }
            }
            #[inline(always)]
            fn nearest(self, of: Half) -> Self {
                $near { v: self.v.nearest(of), far: self.far }
            }
            #[inline(always)]
            fn erf_exp(self) -> (Self, Self) {
                let (erf, exp) = self.v.erf_exp();
                ($near { v: erf, far: self.far }, $near { v: exp, far: self.far })
            }
            #[inline(always)]
            fn polygamma(self, n: u32) -> Self {
                let (v, far) = match n {
                    1 => ($m::trigamma_near(self.v), $m::is_negative(self.v)),
                    _ => (Real::polygamma(self.v, n), false),
                };
                $near { v, far: self.far | (far as $bits) }
            }
            #[inline(always)]
            fn special(self, f: Special) -> Self {
                let (v, far) = match f {
                    Special::Ndtri => ($m::ndtri_near(self.v), $m::is_tiny(self.v)),
                    Special::I1e => ($m::i1e(self.v), false),
                    _ => {
                        let (v, far) = f.near(self.v as f64);
                        (v as $t, far)
                    }
                };
                $near { v, far: self.far | (far as $bits) }
            }
            #[inline(always)]
            fn special2(self, o: Self, f: Special2) -> Self {
                $near { v: self.v.special2(o.v, f), far: self.far | o.far }
            }
        }
    };
    (@ops $near:ident, $($op:ident $f:ident),*) => { $(
        impl $op for $near {
            type Output = $near;
            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl)]
            fn $f(self, o: $near) -> $near {
                $near { v: self.v.$f(o.v), far: self.far | o.far }
            }
        }
    )* };
    (@compare $near:ident, $mask:ident, $($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self, o: Self) -> $mask {
            $mask { v: Real::$f(self.v, o.v), far: self.far | o.far }
        }
    )* };
    (@pairs $near:ident, $($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self, o: Self) -> Self {
            $near { v: Real::$f(self.v, o.v), far: self.far | o.far }
        }
    )* };
}
macro_rules! both {
    ($($f:ident)*) => {
        near!(Near32, Mask32, f32, u32, f32x, [$($f)*], [
            sin sin_near is_far;
            cos cos_near is_far;
            tan tan_near is_far;
            erfinv erfinv_near is_outer;
            digamma digamma_near is_negative;
        ], [lgamma lgamma_near;]);
        near!(Near64, Mask64, f64, u64, f64x, [$($f)* lgamma], [
            sin sin_near is_far;
            cos cos_near is_far;
            tan tan_near is_far;
            erfinv erfinv_near is_outer;
            digamma digamma_near is_negative;
        ], []);
    };
}
both!(abs sqrt floor ceil trunc round exp exp2 expm1 ln log2 log10 log1p asin acos atan sinh cosh
    tanh asinh acosh atanh sigmoid erf erfc rsqrt);
