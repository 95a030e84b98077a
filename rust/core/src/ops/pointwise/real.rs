//! The number types that formulas are generic over, and their interpreters.

use crate::cpu::elements::Compute;
use crate::cpu::gemm::{Acc, GemmElem};
use crate::cpu::simd::Vectors;
use crate::dtype::DType;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A half type, to whose numbers a formula over float32 rounds in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    F16,
    BF16,
}

impl Half {
    pub fn of(dtype: DType) -> Option<Half> {
        match dtype {
            DType::F16 => Some(Half::F16),
            DType::BF16 => Some(Half::BF16),
            _ => None,
        }
    }

    /// The nearest number of the type, ties to even.
    #[inline(always)]
    fn nearest(self, x: f32) -> f32 {
        let bits = x.to_bits();
        let to = |shift: u32| {
            let up = (1 << (shift - 1)) - 1 + (bits >> shift & 1);
            f32::from_bits(bits.wrapping_add(up) >> shift << shift)
        };
        let y = match self {
            Half::BF16 => to(16),
            Half::F16 if x.abs() >= 65520.0 => f32::INFINITY.copysign(x),
            // The last place of numbers from a half on is that of its subnormals.
            Half::F16 if x.abs() < 6.103_515_6e-5 => ((x.abs() + 0.5) - 0.5).copysign(x),
            Half::F16 => to(13),
        };
        match x.is_nan() {
            true => x,
            false => y,
        }
    }
}

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
    #[inline(always)]
    fn param(v: f64) -> Self {
        Self::lit(v)
    }
    fn lt(self, o: Self) -> Self::Mask;
    fn le(self, o: Self) -> Self::Mask;
    fn equal(self, o: Self) -> Self::Mask;
    fn is_nan(self) -> Self::Mask;
    /// Whether it, or a part of it, is infinite.
    #[inline(always)]
    fn is_infinite(self) -> Self::Mask {
        self.abs().equal(Self::lit(f64::INFINITY))
    }
    /// Whether it, or each of its parts, is neither infinite nor NaN.
    #[inline(always)]
    fn is_finite(self) -> Self::Mask {
        self.abs().lt(Self::lit(f64::INFINITY))
    }
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn not(a: Self::Mask) -> Self::Mask;
    fn select(m: Self::Mask, yes: Self, no: Self) -> Self;
    #[inline(always)]
    fn gt(self, o: Self) -> Self::Mask {
        o.lt(self)
    }
    #[inline(always)]
    fn ge(self, o: Self) -> Self::Mask {
        o.le(self)
    }
    /// 1 where the mask holds, else 0.
    #[inline(always)]
    fn of(m: Self::Mask) -> Self {
        Self::select(m, Self::lit(1.0), Self::lit(0.0))
    }
    /// The complex conjugate; real numbers are their own.
    #[inline(always)]
    fn conj(self) -> Self {
        self
    }
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// To the nearest integer, ties to even.
    fn round(self) -> Self;
    /// To the nearest number of a half type; only for numbers of float32.
    #[inline(always)]
    fn nearest(self, _of: Half) -> Self {
        self
    }
    fn exp(self) -> Self;
    /// e^x where x is not above zero, as a weight beside others: may be zero where it would be
    /// subnormal.
    #[inline(always)]
    fn decay(self) -> Self {
        self.exp()
    }
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
    /// erf(x) and e^(-x^2), for less than the two cost apart.
    #[inline(always)]
    fn erf_exp(self) -> (Self, Self) {
        (self.erf(), (-self * self).exp())
    }
    fn copysign(self, sign: Self) -> Self;

    /// A special function without a WGSL counterpart.
    fn special(self, f: Special) -> Self;
    /// The same, of two numbers.
    fn special2(self, o: Self, f: Special2) -> Self;

    /// The smaller; NaN if either is.
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Self::select(Self::either(self.lt(o), self.is_nan()), self, o)
    }
    /// The larger; NaN if either is.
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self::select(Self::either(self.gt(o), self.is_nan()), self, o)
    }
    /// Numbers for NaN and the infinities; those of a complex number for each of its parts.
    #[inline(always)]
    fn finite(self, nan: f64, high: f64, low: f64) -> Self {
        let infinite = |sign| self.equal(Self::lit(sign * f64::INFINITY));
        let y = Self::select(infinite(1.0), Self::param(high), self);
        let y = Self::select(infinite(-1.0), Self::param(low), y);
        Self::select(self.is_nan(), Self::param(nan), y)
    }
    /// -1, 0 or 1; NaN gives 0, as PyTorch's `sign`.
    #[inline(always)]
    fn sign(self) -> Self {
        Self::of(self.gt(Self::lit(0.0))) - Self::of(self.lt(Self::lit(0.0)))
    }
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }
    /// To a small whole power, by products.
    #[inline(always)]
    fn whole_power(self, e: i64) -> Self {
        let product = match e.unsigned_abs() {
            0 => return Self::lit(1.0),
            1 => self,
            2 => self * self,
            3 => self * self * self,
            _ => (self * self) * (self * self),
        };
        match e < 0 {
            true => Self::lit(1.0) / product,
            false => product,
        }
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Self::lit(1.0) / self
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::lit(1.0) / self.sqrt()
    }
}

/// Special functions of one number, computed in float64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    I0,
    I0e,
    I1,
    I1e,
    Ndtri,
    LogNdtr,
    Erfcx,
    BesselJ0,
    BesselJ1,
    BesselY0,
    BesselY1,
    /// The same of what is at most [`CLOSE`](crate::cpu::math::f64x::CLOSE).
    CloseJ0,
    CloseJ1,
    CloseY0,
    CloseY1,
    K0,
    K0e,
    K1,
    K1e,
    AiryAi,
    /// The fraction of `frexp`, from 1/2 to 1.
    Mantissa,
    Exponent,
}

impl Special {
    #[inline(always)]
    pub fn at(self, x: f64) -> f64 {
        use crate::cpu::math::f64x as m;
        match self {
            Special::I0 => m::i0(x),
            Special::I0e => m::i0e(x),
            Special::I1 => m::i1(x),
            Special::I1e => m::i1e(x),
            Special::Ndtri => m::ndtri(x),
            Special::LogNdtr => m::log_ndtr(x),
            Special::Erfcx => m::erfcx(x),
            Special::BesselJ0 if m::is_far(x) => libm::j0(x),
            Special::BesselJ0 => m::j0_near(x),
            Special::BesselJ1 if m::is_far(x) => libm::j1(x),
            Special::BesselJ1 => m::j1_near(x),
            Special::BesselY0 if m::is_far(x) => libm::y0(x),
            Special::BesselY0 => m::y0_near(x),
            Special::BesselY1 if m::is_far(x) => libm::y1(x),
            Special::BesselY1 => m::y1_near(x),
            Special::CloseJ0 => m::j0_close(x),
            Special::CloseJ1 => m::j1_close(x),
            Special::CloseY0 => m::y0_close(x),
            Special::CloseY1 => m::y1_close(x),
            Special::K0 => m::bessel_k0(x, false),
            Special::K0e => m::bessel_k0(x, true),
            Special::K1 => m::bessel_k1(x, false),
            Special::K1e => m::bessel_k1(x, true),
            Special::AiryAi => m::airy_ai(x),
            Special::Mantissa => libm::frexp(x).0,
            Special::Exponent if x.is_finite() => libm::frexp(x).1 as f64,
            Special::Exponent => 0.0,
        }
    }

    /// The function where its vector code reaches, and whether it does not.
    #[inline(always)]
    pub fn near(self, x: f64) -> (f64, bool) {
        use crate::cpu::math::f64x as m;
        match self {
            Special::BesselJ0 => (m::j0_near(x), m::is_far(x)),
            Special::BesselJ1 => (m::j1_near(x), m::is_far(x)),
            Special::BesselY0 => (m::y0_near(x), m::is_far(x)),
            Special::BesselY1 => (m::y1_near(x), m::is_far(x)),
            _ => (self.at(x), false),
        }
    }
}

/// Special functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special2 {
    /// Hurwitz's zeta function.
    Zeta,
    Igamma,
    Igammac,
    /// The next number of a type whose floats are every `n`-th bit pattern of the compute type,
    /// or of float16 for [`HALF_STEP`].
    NextAfter(u32),
    /// An orthogonal polynomial; the second number is the degree.
    Polynomial(Polynomial),
}

/// The `NextAfter` step of float16: the distance of its normal numbers in the bits of a float32.
pub const HALF_STEP: u32 = 1 << 13;

/// The float16 after x toward y; neither is NaN and they differ.
fn next_half(x: f64, y: f64) -> f64 {
    const SMALLEST: f64 = 1.0 / (1 << 24) as f64;
    let h = half::f16::from_f64(x);
    if x == 0.0 {
        return SMALLEST.copysign(y);
    }
    let away = (y > x) == (x > 0.0);
    half::f16::from_bits(if away {
        h.to_bits() + 1
    } else {
        h.to_bits() - 1
    })
    .to_f64()
}

/// Families of polynomials by their three-term recurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Polynomial {
    ChebyshevT,
    ChebyshevU,
    ChebyshevV,
    ChebyshevW,
    HermiteH,
    HermiteHe,
    Laguerre,
    Legendre,
}

impl Polynomial {
    /// The polynomial of degree `n` at `x`; 0 for negative degrees.
    pub fn at(self, x: f64, n: f64) -> f64 {
        use Polynomial::*;
        if n.is_nan() || x.is_nan() {
            return f64::NAN;
        }
        // Beyond this every recurrence has overflowed or is noise, and the loop would not end.
        let n = n.clamp(-1.0, 1e6) as i64;
        if n < 0 {
            return 0.0;
        }
        let (mut before, mut at) = match self {
            ChebyshevT | Legendre | HermiteHe => (1.0, x),
            ChebyshevU | HermiteH => (1.0, x + x),
            ChebyshevV => (1.0, x + x - 1.0),
            ChebyshevW => (1.0, x + x + 1.0),
            Laguerre => (1.0, 1.0 - x),
        };
        if n == 0 {
            return before;
        }
        // In the middle signs change in ways that only finite numbers tell: what grows is scaled.
        let mut scaled = 0;
        for k in 1..n {
            let m = k as f64;
            let next = match self {
                ChebyshevT | ChebyshevU | ChebyshevV | ChebyshevW => (x + x) * at - before,
                HermiteH => (x + x) * at - 2.0 * m * before,
                HermiteHe => x * at - m * before,
                Laguerre => ((2.0 * m + 1.0 - x) * at - m * before) / (m + 1.0),
                Legendre => ((2.0 * m + 1.0) * x * at - m * before) / (m + 1.0),
            };
            (before, at) = (at, next);
            if next.abs() > HUGE {
                if next.is_infinite() {
                    // So far outside each further step is a product with x, or its opposite.
                    let turns = (self == Laguerre) != (x < 0.0);
                    let odd = (n - 1 - k) % 2 == 1;
                    return if turns && odd { -next } else { next };
                }
                (before, at) = (before / HUGE, at / HUGE);
                scaled += 1;
            }
        }
        (0..scaled).fold(at, |at, _| at * HUGE)
    }
}

/// Where recurrences are scaled. Up to 1e100, x and the degree cannot take a step from here to
/// infinity.
const HUGE: f64 = 1e200;

/// A float that kernels compute in, with all that formulas, products, vectors and their loops need
/// of it.
pub trait Float:
    Real<Mask = bool> + Compute + Vectors + GemmElem<Acc = Self> + Acc + AddAssign
{
}
impl Float for f32 {}
impl Float for f64 {}

/// A constant in a formula.
#[inline(always)]
pub fn c<R: Real>(v: f64) -> R {
    R::lit(v)
}

/// A parameter in a formula.
#[inline(always)]
pub fn k<R: Real>(v: f64) -> R {
    R::param(v)
}

macro_rules! scalar {
    ($t:ident, $m:ident, $bits:ident) => {
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
            fn nearest(self, of: Half) -> Self {
                of.nearest(self as f32) as $t
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
            fn decay(self) -> Self {
                crate::cpu::math::$m::decay(self)
            }
            #[inline(always)]
            fn polygamma(self, n: u32) -> Self {
                crate::cpu::math::$m::polygamma(n as _, self)
            }
            #[inline(always)]
            fn erf_exp(self) -> (Self, Self) {
                crate::cpu::math::$m::erf_exp(self)
            }
            #[inline(always)]
            fn pow(self, e: Self) -> Self {
                crate::cpu::math::$m::pow(self, e)
            }
            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                crate::cpu::math::$m::atan2(self, x)
            }
            #[inline(always)]
            fn special(self, f: Special) -> Self {
                match f {
                    // float32 asks for fewer terms.
                    Special::I1e => crate::cpu::math::$m::i1e(self),
                    _ => f.at(self as f64) as $t,
                }
            }
            #[inline(always)]
            fn special2(self, o: Self, f: Special2) -> Self {
                let (x, y) = (self as f64, o as f64);
                match f {
                    Special2::Zeta => crate::cpu::math::f64x::zeta(x, y) as $t,
                    Special2::Igamma => crate::cpu::math::f64x::igamma(x, y) as $t,
                    Special2::Igammac => crate::cpu::math::f64x::igammac(x, y) as $t,
                    Special2::Polynomial(p) => p.at(x, y) as $t,
                    Special2::NextAfter(step) => {
                        if self != self || o != o {
                            return $t::NAN;
                        }
                        if self == o {
                            return o;
                        }
                        if step == HALF_STEP {
                            return next_half(x, y) as $t;
                        }
                        let step = step as $bits;
                        if self == 0.0 {
                            return $t::copysign($t::from_bits(step), o);
                        }
                        let away = (o > self) == (self > 0.0);
                        let bits = self.to_bits();
                        $t::from_bits(if away { bits + step } else { bits - step })
                    }
                }
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
scalar!(f32, f32x, u32);
scalar!(f64, f64x, u64);
