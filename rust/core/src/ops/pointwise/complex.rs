//! Complex numbers: formulas of analytic functions hold for them as they are. The gradient of an
//! analytic function is `conj(df(x, y, conj(g)))`, PyTorch's convention.

use super::{cost, Pointwise, Real, Special, Special2};
use crate::cpu::pool::parallel_for;
use crate::dtype::DType;
use crate::error::{self, Error, Kind, Result};
use crate::tensor::Tensor;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What an op means for complex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complex {
    /// Nothing: they raise.
    No,
    /// Formula and derivative hold, or the result is a truth value.
    Analytic,
    /// The formula holds, the derivative does not.
    Forward,
    /// The result is real.
    Modulus,
}

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct C(pub f64, pub f64);

const I: C = C(0.0, 1.0);
const ONE: C = C(1.0, 0.0);
const HALF: C = C(0.5, 0.0);

impl Add for C {
    type Output = C;
    fn add(self, o: C) -> C {
        C(self.0 + o.0, self.1 + o.1)
    }
}
impl Sub for C {
    type Output = C;
    fn sub(self, o: C) -> C {
        C(self.0 - o.0, self.1 - o.1)
    }
}
impl Mul for C {
    type Output = C;
    fn mul(self, o: C) -> C {
        C(self.0 * o.0 - self.1 * o.1, self.0 * o.1 + self.1 * o.0)
    }
}
impl Div for C {
    type Output = C;
    /// Smith's method: no overflow of the squared modulus.
    fn div(self, o: C) -> C {
        if o.0.abs() >= o.1.abs() {
            if o.0 == 0.0 && o.1 == 0.0 {
                return C(self.0 / o.0.abs(), self.1 / o.0.abs());
            }
            let q = o.1 / o.0;
            let d = o.0 + o.1 * q;
            C((self.0 + self.1 * q) / d, (self.1 - self.0 * q) / d)
        } else {
            let q = o.0 / o.1;
            let d = o.0 * q + o.1;
            C((self.0 * q + self.1) / d, (self.1 * q - self.0) / d)
        }
    }
}
impl Neg for C {
    type Output = C;
    fn neg(self) -> C {
        C(-self.0, -self.1)
    }
}

/// Functions that no complex op calls: the ops that need them declare [`Complex::No`].
macro_rules! none {
    ($($f:ident($($x:ident: $t:ty),*))*) => { $(
        fn $f(self $(, $x: $t)*) -> C {
            $(let _ = $x;)*
            error::unwind(Error::new(
                Kind::NotImplemented,
                concat!("\"", stringify!($f), "\" not implemented for complex numbers"),
            ))
        }
    )* };
}

impl Real for C {
    type Mask = bool;
    fn lit(v: f64) -> C {
        C(v, 0.0)
    }
    fn lt(self, o: C) -> bool {
        self.0 < o.0
    }
    fn le(self, o: C) -> bool {
        self.0 <= o.0
    }
    fn equal(self, o: C) -> bool {
        self == o
    }
    fn is_nan(self) -> bool {
        self.0.is_nan() || self.1.is_nan()
    }
    fn both(a: bool, b: bool) -> bool {
        a && b
    }
    fn either(a: bool, b: bool) -> bool {
        a || b
    }
    fn not(a: bool) -> bool {
        !a
    }
    fn select(m: bool, yes: C, no: C) -> C {
        if m {
            yes
        } else {
            no
        }
    }
    fn conj(self) -> C {
        C(self.0, -self.1)
    }
    fn abs(self) -> C {
        C(self.0.hypot(self.1), 0.0)
    }
    fn sign(self) -> C {
        let r = self.0.hypot(self.1);
        if r == 0.0 {
            return C(0.0, 0.0);
        }
        C(self.0 / r, self.1 / r)
    }
    fn sqrt(self) -> C {
        if self == C(0.0, 0.0) {
            return C(0.0, self.1);
        }
        let s = ((self.0.abs() + self.0.hypot(self.1)) / 2.0).sqrt();
        if self.0 >= 0.0 {
            C(s, self.1 / (2.0 * s))
        } else {
            C(self.1.abs() / (2.0 * s), s.copysign(self.1))
        }
    }
    fn exp(self) -> C {
        let e = self.0.exp();
        if self.1 == 0.0 {
            return C(e, self.1);
        }
        C(e * self.1.cos(), e * self.1.sin())
    }
    fn exp2(self) -> C {
        (self * C(std::f64::consts::LN_2, 0.0)).exp()
    }
    fn expm1(self) -> C {
        let h = (0.5 * self.1).sin();
        let e = self.0.exp();
        C(self.0.exp_m1() - 2.0 * e * h * h, e * self.1.sin())
    }
    fn ln(self) -> C {
        C(self.0.hypot(self.1).ln(), self.1.atan2(self.0))
    }
    fn log2(self) -> C {
        self.ln() * C(std::f64::consts::LOG2_E, 0.0)
    }
    fn log10(self) -> C {
        self.ln() * C(std::f64::consts::LOG10_E, 0.0)
    }
    fn log1p(self) -> C {
        let near = self.0.abs() < 0.5 && self.1.abs() < 0.5;
        let modulus = match near {
            true => 0.5 * (self.0 * (2.0 + self.0) + self.1 * self.1).ln_1p(),
            false => (self.0 + 1.0).hypot(self.1).ln(),
        };
        C(modulus, self.1.atan2(self.0 + 1.0))
    }
    fn sin(self) -> C {
        C(self.0.sin() * self.1.cosh(), self.0.cos() * self.1.sinh())
    }
    fn cos(self) -> C {
        C(self.0.cos() * self.1.cosh(), -self.0.sin() * self.1.sinh())
    }
    fn tan(self) -> C {
        // -i tanh(i z)
        let t = (I * self).tanh();
        C(t.1, -t.0)
    }
    fn sinh(self) -> C {
        C(self.0.sinh() * self.1.cos(), self.0.cosh() * self.1.sin())
    }
    fn cosh(self) -> C {
        C(self.0.cosh() * self.1.cos(), self.0.sinh() * self.1.sin())
    }
    fn tanh(self) -> C {
        if self.0.abs() > 20.0 {
            let e = 4.0 * (-2.0 * self.0.abs()).exp();
            return C(1f64.copysign(self.0), e * self.1.sin() * self.1.cos());
        }
        let t = self.1.tan();
        let (s, c) = (self.0.sinh(), self.0.cosh());
        let d = 1.0 / (1.0 + t * t);
        let r = s * s + d;
        C(s * c / r, t * d / r)
    }
    fn asin(self) -> C {
        // -i asinh(i z)
        let t = (I * self).asinh();
        C(t.1, -t.0)
    }
    fn acos(self) -> C {
        C(std::f64::consts::FRAC_PI_2, 0.0) - self.asin()
    }
    fn atan(self) -> C {
        let t = (I * self).atanh();
        C(t.1, -t.0)
    }
    fn asinh(self) -> C {
        if self.0 < 0.0 {
            // The logarithm would cancel.
            return -(-self).asinh();
        }
        (self + (self * self + ONE).sqrt()).ln()
    }
    fn acosh(self) -> C {
        let (a, b) = (((self + ONE) * HALF).sqrt(), ((self - ONE) * HALF).sqrt());
        (a + b).ln() * C(2.0, 0.0)
    }
    fn atanh(self) -> C {
        (self.log1p() - (-self).log1p()) * HALF
    }
    fn sigmoid(self) -> C {
        ONE / (ONE + (-self).exp())
    }
    fn pow(self, e: C) -> C {
        if e == C(0.0, 0.0) {
            return ONE;
        }
        if self == C(0.0, 0.0) {
            return match e.0 > 0.0 {
                true => C(0.0, 0.0),
                false => C(f64::NAN, f64::NAN),
            };
        }
        (e * self.ln()).exp()
    }
    none! {
        floor() ceil() trunc() round() erf() erfc() erfinv() lgamma() digamma()
        polygamma(n: u32) atan2(x: C) fmod(o: C) copysign(sign: C)
        special(f: Special) special2(o: C, f: Special2)
    }
}

/// The real type of a complex type's parts; other types are their own.
pub fn part_type(t: DType) -> DType {
    match t {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// Computes `y` from `x`, at least one of which is complex, in float64.
pub fn compute<P: Pointwise<N>, const N: usize>(op: &P, x: &[&Tensor], y: &Tensor) -> Result<()> {
    let mut prepared: [Option<Tensor>; N] = [const { None }; N];
    for (slot, t) in prepared.iter_mut().zip(x) {
        *slot = Some(
            t.detach()
                .prepared(DType::C128)?
                .expand_to(y.shape())?
                .contiguous()?,
        );
    }
    let at: [usize; N] =
        std::array::from_fn(|i| prepared[i].as_ref().map_or(0, |t| t.bytes_ptr() as usize));
    let out = Tensor::empty(y.shape(), DType::C128, y.device())?;
    let to = out.bytes_ptr() as usize;
    parallel_for(out.numel(), cost::grain(op, true) / 4, |range| {
        for i in range {
            // SAFETY: all are contiguous, of this type and size; ranges are disjoint.
            unsafe {
                let x = std::array::from_fn(|j| *(at[j] as *const C).add(i));
                *(to as *mut C).add(i) = op.f(x);
            }
        }
    });
    y.write_from(&out)
}
