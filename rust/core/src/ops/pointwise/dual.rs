//! Dual numbers: a value and its derivative by the rules of calculus. They check that every `df`
//! is the derivative of its `f`.

use super::cost::reads;
use super::{activation::*, binary::*, compare::*, special::*, ternary::*, unary::*};
use super::{Pointwise, Real, Special, Special2};
use crate::dtype::Scalar;

const PI: f64 = std::f64::consts::PI;
const LN_2: f64 = std::f64::consts::LN_2;
const LN_10: f64 = std::f64::consts::LN_10;

#[derive(Clone, Copy, Debug)]
struct Dual(f64, f64);

macro_rules! operators {
    ($($tr:ident $m:ident |$a:ident, $b:ident| $value:expr, $slope:expr;)*) => { $(
        impl std::ops::$tr for Dual {
            type Output = Dual;
            fn $m(self, o: Dual) -> Dual {
                let ($a, $b) = (self, o);
                Dual($value, $slope)
            }
        }
    )* };
}
operators! {
    Add add |a, b| a.0 + b.0, a.1 + b.1;
    Sub sub |a, b| a.0 - b.0, a.1 - b.1;
    Mul mul |a, b| a.0 * b.0, a.1 * b.0 + a.0 * b.1;
    Div div |a, b| a.0 / b.0, (a.1 * b.0 - a.0 * b.1) / (b.0 * b.0);
}
impl std::ops::Neg for Dual {
    type Output = Dual;
    fn neg(self) -> Dual {
        Dual(-self.0, -self.1)
    }
}

/// Numerical slope of fourth order, for functions whose derivative has no rule of its own here.
fn slope(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let h = 1e-3 * x.abs().max(0.1);
    (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h)
}

macro_rules! rules {
    (|$x:ident, $y:ident| $($f:ident = $slope:expr;)*) => { $(
        fn $f(self) -> Dual {
            let $x = self.0;
            let $y = <f64 as Real>::$f($x);
            let slope: f64 = $slope;
            Dual($y, self.1 * slope)
        }
    )* };
}

impl Real for Dual {
    type Mask = bool;
    fn lit(v: f64) -> Dual {
        Dual(v, 0.0)
    }
    fn lt(self, o: Dual) -> bool {
        self.0 < o.0
    }
    fn le(self, o: Dual) -> bool {
        self.0 <= o.0
    }
    fn equal(self, o: Dual) -> bool {
        self.0 == o.0
    }
    fn is_nan(self) -> bool {
        self.0.is_nan()
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
    fn select(m: bool, yes: Dual, no: Dual) -> Dual {
        if m {
            yes
        } else {
            no
        }
    }
    rules! { |x, y|
        abs = x.signum();
        sqrt = 0.5 / y;
        exp = y;
        exp2 = y * LN_2;
        expm1 = y + 1.0;
        ln = 1.0 / x;
        log2 = 1.0 / (x * LN_2);
        log10 = 1.0 / (x * LN_10);
        log1p = 1.0 / (1.0 + x);
        sin = x.cos();
        cos = -x.sin();
        tan = 1.0 + y * y;
        asin = 1.0 / (1.0 - x * x).sqrt();
        acos = -1.0 / (1.0 - x * x).sqrt();
        atan = 1.0 / (1.0 + x * x);
        sinh = x.cosh();
        cosh = x.sinh();
        tanh = 1.0 - y * y;
        asinh = 1.0 / (x * x + 1.0).sqrt();
        acosh = 1.0 / (x * x - 1.0).sqrt();
        atanh = 1.0 / (1.0 - x * x);
        sigmoid = y * (1.0 - y);
        erf = 2.0 / PI.sqrt() * (-x * x).exp();
        erfc = -2.0 / PI.sqrt() * (-x * x).exp();
        erfinv = PI.sqrt() / 2.0 * (y * y).exp();
        lgamma = Real::digamma(x);
        digamma = Real::polygamma(x, 1);
        rsqrt = -0.5 * y / x;
        floor = 0.0 * x * y;
        ceil = 0.0 * x * y;
        trunc = 0.0 * x * y;
        round = 0.0 * x * y;
    }
    fn polygamma(self, n: u32) -> Dual {
        let x = self.0;
        Dual(Real::polygamma(x, n), self.1 * Real::polygamma(x, n + 1))
    }
    fn pow(self, e: Dual) -> Dual {
        let y = self.0.powf(e.0);
        let base = if self.1 == 0.0 {
            0.0
        } else {
            self.1 * e.0 * self.0.powf(e.0 - 1.0)
        };
        let exponent = if e.1 == 0.0 {
            0.0
        } else {
            e.1 * y * self.0.ln()
        };
        Dual(y, base + exponent)
    }
    fn atan2(self, x: Dual) -> Dual {
        let r = self.0 * self.0 + x.0 * x.0;
        Dual(self.0.atan2(x.0), (self.1 * x.0 - x.1 * self.0) / r)
    }
    fn fmod(self, o: Dual) -> Dual {
        Dual(self.0 % o.0, self.1 - o.1 * (self.0 / o.0).trunc())
    }
    fn copysign(self, sign: Dual) -> Dual {
        let same = self.0.signum() == sign.0.signum();
        Dual(self.0.copysign(sign.0), if same { self.1 } else { -self.1 })
    }
    fn special(self, f: Special) -> Dual {
        Dual(f.at(self.0), self.1 * slope(|x| f.at(x), self.0))
    }
    fn special2(self, o: Dual, f: Special2) -> Dual {
        let at = |x: f64, y: f64| x.special2(y, f);
        let first = if self.1 == 0.0 {
            0.0
        } else {
            self.1 * slope(|x| at(x, o.0), self.0)
        };
        let second = if o.1 == 0.0 {
            0.0
        } else {
            o.1 * slope(|y| at(self.0, y), o.0)
        };
        Dual(at(self.0, o.0), first + second)
    }
}

/// Compares `df` with the dual numbers of `f` at points of a box, and checks that a gradient reads
/// nothing that is not kept for it: other inputs are NaN.
fn law<P: Pointwise<N>, const N: usize>(op: P, range: [(f64, f64); N]) {
    for step in 0..200 {
        // Steps of irrational size fill the box evenly and avoid round numbers.
        let x: [f64; N] = std::array::from_fn(|j| {
            let t = (0.137
                + 0.211 * j as f64
                + step as f64 * [0.618_033_988_75, 0.414_213_562_37, 0.732_050_807_57][j])
                .fract();
            range[j].0 + t * (range[j].1 - range[j].0)
        });
        for i in 0..N {
            if P::FACTS.opaque >> i & 1 == 1 {
                continue;
            }
            let dual = std::array::from_fn(|j| Dual(x[j], if i == j { 1.0 } else { 0.0 }));
            let want = op.f(dual).1;
            let y = op.f(x);
            let (reads, reads_output) = reads(&op)[i];
            let seen = std::array::from_fn(|j| if reads >> j & 1 == 1 { x[j] } else { f64::NAN });
            let got = op.df(seen, if reads_output { y } else { f64::NAN }, 1.0)[i];
            let off = (got - want).abs() / want.abs().max(1.0);
            assert!(
                off < 1e-7 || (got.is_nan() && want.is_nan()),
                "{op:?} at {x:?}, input {i}: df {got}, dual {want}"
            );
        }
    }
}

macro_rules! laws {
    ($($op:expr, $($lo:literal .. $hi:literal),+;)*) => { $( law($op, [$(($lo, $hi)),+]); )* };
}

#[test]
fn df_of_one_input_is_derivative_of_f() {
    laws! {
        Neg, -3.0..3.0; Abs, -3.0..3.0; Sign, -3.0..3.0; Sgn, -3.0..3.0; Floor, -3.0..3.0; Ceil, -3.0..3.0;
        Trunc, -3.0..3.0; Round, -3.0..3.0; Square, -3.0..3.0; Cube, -3.0..3.0;
        PowNumber { e: 2.5, n: 2 }, 0.1..3.0; PowNumber { e: 5.0, n: 5 }, -2.0..2.0;
        PowNumber { e: 0.0, n: 0 }, -2.0..2.0; RootPower { inverse: true }, 0.1..2.0; SmallPower { e: -2 }, 0.5..2.0; SmallPower { e: -1 }, 0.5..2.0; SmallPower { e: 4 }, -2.0..2.0; PowNumber { e: -2.0, n: -2 }, 0.5..2.0;
        Reciprocal, 0.2..3.0; Sqrt, 0.1..3.0; Rsqrt, 0.2..3.0; Exp, -3.0..3.0; Exp2, -3.0..3.0;
        Expm1, -3.0..3.0; Log, 0.1..3.0; Log2, 0.1..3.0; Log10, 0.1..3.0; Log1p, -0.9..3.0;
        Sin, -3.0..3.0; Cos, -3.0..3.0; Tan, -1.4..1.4; Asin, -0.9..0.9; Acos, -0.9..0.9;
        Atan, -3.0..3.0; Sinh, -3.0..3.0; Cosh, -3.0..3.0; Tanh, -3.0..3.0; Asinh, -3.0..3.0;
        Acosh, 1.1..3.0; Atanh, -0.9..0.9; Sigmoid, -9.0..9.0; Erf, -3.0..3.0; Erfc, -3.0..3.0;
        Erfinv, -0.9..0.9; Lgamma, 0.2..5.0; Digamma, 0.3..5.0; Polygamma { n: 2 }, 0.5..5.0;
        Frac, -3.0..3.0; RoundDecimals { decimals: 1 }, -3.0..3.0;
        Clamp { low: Some(Scalar::Float(-1.0)), high: Some(Scalar::Float(1.0)) }, -3.0..3.0;
        Clamp { low: None, high: Some(Scalar::Int(1)) }, -3.0..3.0;
        NanToNum { nan: 0.0, high: 1.0, low: -1.0 }, -3.0..3.0;
        Deg2rad, -3.0..3.0; Rad2deg, -3.0..3.0; Angle, -3.0..3.0;
        Logit { low: f64::NEG_INFINITY, high: f64::INFINITY }, 0.1..0.9;
        Logit { low: 0.2, high: 0.8 }, 0.0..1.0; Sinc, 0.1..3.0;
        IsNan, -1.0..1.0; LogicalNot, 0.5..1.0;
        I0, -3.0..3.0; I0e, 0.5..3.0; I1, -3.0..3.0; I1e, 0.5..3.0; Ndtri, 0.1..0.9;
        LogNdtr, -5.0..3.0; Ndtr, -3.0..3.0; Erfcx, -2.0..5.0; Entr, 0.1..3.0;
    }
}

#[test]
fn df_of_activations_is_derivative_of_f() {
    let (low, high) = (Scalar::Float(-1.5), Scalar::Float(0.5));
    laws! {
        Silu, -5.0..5.0; Relu, -3.0..3.0; Mish, -5.0..5.0; Gelu, -5.0..5.0; GeluTanh, -5.0..5.0;
        Elu { alpha: 1.3, scale: 0.7, input_scale: 1.9 }, -3.0..3.0; Celu { alpha: 1.7 }, -3.0..3.0;
        Hardtanh { low, high }, -3.0..3.0; Hardsigmoid, -5.0..5.0; Hardswish, -5.0..5.0;
        Hardshrink { lambda: 0.5 }, -3.0..3.0; Softshrink { lambda: 0.5 }, -3.0..3.0;
        Softplus { beta: 1.5, threshold: 20.0 }, -9.0..9.0; LeakyRelu { slope: 0.1 }, -3.0..3.0;
        Prelu, -3.0..3.0, 0.1..0.9; Threshold { threshold: high, value: low }, -3.0..3.0;
        LogSigmoid, -9.0..9.0; Softsign, -9.0..9.0;
    }
}

#[test]
fn df_of_two_inputs_is_derivative_of_f() {
    let alpha = Scalar::Float(1.5);
    laws! {
        Add { alpha }, -3.0..3.0, -3.0..3.0; Sub { alpha }, -3.0..3.0, -3.0..3.0;
        Mul, -3.0..3.0, -3.0..3.0; Div, -3.0..3.0, 0.5..3.0; Pow, 0.1..3.0, -2.0..2.0;
        Atan2, -3.0..3.0, 0.1..3.0; Fmod, -3.0..3.0, 0.3..2.0; Remainder, -3.0..3.0, 0.3..2.0;
        DivTrunc, -3.0..3.0, 0.3..2.0; DivFloor, -3.0..3.0, 0.3..2.0;
        Copysign, -3.0..3.0, -3.0..3.0; Maximum, -3.0..3.0, -3.0..3.0;
        Minimum, -3.0..3.0, -3.0..3.0; ClampMin, -3.0..3.0, -3.0..3.0;
        ClampMax, -3.0..3.0, -3.0..3.0; Fmax, -3.0..3.0, -3.0..3.0; Fmin, -3.0..3.0, -3.0..3.0;
        Hypot, -3.0..3.0, 0.1..3.0; Ldexp, -3.0..3.0, -3.0..3.0; Xlogy, -3.0..3.0, 0.1..3.0;
        Xlog1py, -3.0..3.0, -0.9..3.0; Logaddexp, -3.0..3.0, -3.0..3.0;
        LerpNumber { w: 0.3 }, -3.0..3.0, -3.0..3.0;
        Logaddexp2, -3.0..3.0, -3.0..3.0; Zeta, 1.5..4.0, 0.5..3.0; Igamma, 0.5..3.0, 0.5..3.0;
        Igammac, 0.5..3.0, 0.5..3.0; Lt, -3.0..3.0, -3.0..3.0; Eq, -3.0..3.0, -3.0..3.0;
    }
}

#[test]
fn df_of_three_inputs_is_derivative_of_f() {
    laws! {
        Where, -3.0..3.0, -3.0..3.0, 0.5..1.0; Lerp, -3.0..3.0, -3.0..3.0, 0.01..0.99;
        Addcmul { value: Scalar::Float(1.5) }, -3.0..3.0, -3.0..3.0, -3.0..3.0;
        Addcdiv { value: Scalar::Float(1.5) }, -3.0..3.0, -3.0..3.0, 0.5..3.0;
        ClampTensor, -3.0..3.0, -2.0..1.0, -1.0..2.0;
    }
}
