//! Numbers that formulas are written over, and what interprets them.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A real number or something that stands for one: an element, a WGSL expression, a tensor in a
/// graph, a dual number. A formula written over `Real` means all of them.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    type Mask: Copy;
    /// A constant of the formula.
    fn lit(v: f64) -> Self;
    /// A parameter of the op: same as `lit`, but a uniform in shaders.
    fn param(v: f64) -> Self {
        Self::lit(v)
    }
    fn lt(self, o: Self) -> Self::Mask;
    fn le(self, o: Self) -> Self::Mask;
    fn equal(self, o: Self) -> Self::Mask;
    fn is_nan(self) -> Self::Mask;
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn not(a: Self::Mask) -> Self::Mask;
    fn select(m: Self::Mask, yes: Self, no: Self) -> Self;
    fn gt(self, o: Self) -> Self::Mask {
        o.lt(self)
    }
    fn ge(self, o: Self) -> Self::Mask {
        o.le(self)
    }
    /// 1 where the mask holds, else 0.
    fn of(m: Self::Mask) -> Self {
        Self::select(m, Self::lit(1.0), Self::lit(0.0))
    }
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// To the nearest integer, ties to even.
    fn round(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn expm1(self) -> Self;
    fn ln(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn log1p(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn erfinv(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    /// The n-th derivative of digamma, n >= 1.
    fn polygamma(self, n: u32) -> Self;
    fn pow(self, e: Self) -> Self;
    fn atan2(self, x: Self) -> Self;
    /// The remainder with the sign of the dividend (C's `fmod`).
    fn fmod(self, o: Self) -> Self;
    fn copysign(self, sign: Self) -> Self;

    /// The smaller; NaN if either is.
    fn min(self, o: Self) -> Self {
        Self::select(Self::either(self.lt(o), self.is_nan()), self, o)
    }
    /// The larger; NaN if either is.
    fn max(self, o: Self) -> Self {
        Self::select(Self::either(self.gt(o), self.is_nan()), self, o)
    }
    /// -1, 0 or 1; NaN gives 0, as PyTorch's `sign`.
    fn sign(self) -> Self {
        Self::of(self.gt(Self::lit(0.0))) - Self::of(self.lt(Self::lit(0.0)))
    }
    fn square(self) -> Self {
        self * self
    }
    fn recip(self) -> Self {
        Self::lit(1.0) / self
    }
    fn rsqrt(self) -> Self {
        Self::lit(1.0) / self.sqrt()
    }
}

/// A constant in a formula.
pub fn c<R: Real>(v: f64) -> R {
    R::lit(v)
}

/// A parameter in a formula.
pub fn k<R: Real>(v: f64) -> R {
    R::param(v)
}

macro_rules! scalar {
    ($t:ident, $m:ident) => {
        impl Real for $t {
            type Mask = bool;
            #[inline(always)]
            fn lit(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn lt(self, o: Self) -> bool {
                self < o
            }
            #[inline(always)]
            fn le(self, o: Self) -> bool {
                self <= o
            }
            #[inline(always)]
            fn equal(self, o: Self) -> bool {
                self == o
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn both(a: bool, b: bool) -> bool {
                a & b
            }
            #[inline(always)]
            fn either(a: bool, b: bool) -> bool {
                a | b
            }
            #[inline(always)]
            fn not(a: bool) -> bool {
                !a
            }
            #[inline(always)]
            fn select(m: bool, yes: Self, no: Self) -> Self {
                if m {
                    yes
                } else {
                    no
                }
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $t::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $t::ceil(self)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $t::trunc(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                $t::round_ties_even(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $t::copysign(self, sign)
            }
            #[inline(always)]
            fn fmod(self, o: Self) -> Self {
                self % o
            }
            scalar!(@math $t $m exp exp2 expm1 ln log2 log10 log1p sin cos tan asin acos atan sinh
                cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma rsqrt);
            #[inline(always)]
            fn polygamma(self, n: u32) -> Self {
                crate::cpu::math::$m::polygamma(n as _, self)
            }
            #[inline(always)]
            fn pow(self, e: Self) -> Self {
                crate::cpu::math::$m::pow(self, e)
            }
            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                $t::atan2(self, x)
            }
        }
    };
    (@math $t:ident $m:ident $($f:ident)*) => { $(
        #[inline(always)]
        fn $f(self) -> Self {
            crate::cpu::math::$m::$f(self)
        }
    )* };
}
scalar!(f32, f32x);
scalar!(f64, f64x);
