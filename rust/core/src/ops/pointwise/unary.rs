//! Functions of one tensor.

use super::cpu::complex::{self as parts, Parts};
use super::pointwise;
use super::types::{no_bool, refuse_complex};
use super::{c, k, Cpu, Integer, Own, Real};
use crate::cpu::pointwise::Kernel;
use crate::dtype::{DType, Scalar};
use crate::{bail, ensure};

/// The larger; x if it is NaN.
#[inline(always)]
fn at_least<R: Real>(x: R, low: R) -> R {
    R::select(x.lt(low), low, x)
}

/// The smaller; x if it is NaN.
#[inline(always)]
fn at_most<R: Real>(x: R, high: R) -> R {
    R::select(x.gt(high), high, x)
}

crate::per_isa! {
    unsafe fn neg_bits[](_p: *const (), x: *const *const u16, y: *mut u16, n: usize) {
        // SAFETY: `x` points to `n` elements, and `y` has room for `n`.
        unsafe {
            let x = *x;
            for i in 0..n {
                *y.add(i) = *x.add(i) ^ 0x8000;
            }
        }
    }
}
crate::per_isa! {
    unsafe fn abs_bits[](_p: *const (), x: *const *const u16, y: *mut u16, n: usize) {
        // SAFETY: `x` points to `n` elements, and `y` has room for `n`.
        unsafe {
            let x = *x;
            for i in 0..n {
                *y.add(i) = *x.add(i) & 0x7fff;
            }
        }
    }
}

const PI: f64 = std::f64::consts::PI;
const LN_2: f64 = std::f64::consts::LN_2;
const LN_10: f64 = std::f64::consts::LN_10;

pointwise! {
    /// -x. Bool raises.
    op Neg[1] = "NegBackward0", Same;
    f |_, [x]| -x;
    int |_, [x]| x.wrapping_neg();
    df |_, _, _, g| -g;
    check |_, t, _| if t == DType::Bool {
        bail!(
            Runtime,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to \
             invert a mask, use the `~` or `logical_not()` operator instead."
        )
    } else {
        Ok(())
    };
    complex Analytic;
    cpu impl;

    /// |x|. The gradient at 0 is 0.
    op Abs[1] = "AbsBackward0", Same;
    f |_, [x]| x.abs();
    int |_, [x]| x.wrapping_abs();
    df |_, [x], _, g| g * x.sign().conj();
    check |_, t, _| no_bool("abs", t);
    complex Modulus;
    facts { float8: true };
    cpu impl;

    /// The complex conjugate.
    op Conj[1] = "ConjBackward0", Same;
    f |_, [x]| x.conj();
    int |_, [x]| x;
    df |_, _, _, g| g.conj();
    complex Analytic;
    facts { casts: true };
    cpu impl;

    /// -1, 0 or 1; z / |z| for complex numbers.
    op Sign[1] = "SignBackward0", Same;
    f |_, [x]| x.sign();
    int |_, [x]| (x > 0) as i64 - (x < 0) as i64;
    df |_, _, _, _g| c(0.0);
    complex Forward;
    cpu impl;

    /// z / |z|, and 0 for 0, whose gradient is 0: what `sign` is for complex numbers.
    op Sgn[1] = "SgnBackward0", Same;
    f |_, [x]| x.sign();
    int |_, [x]| (x > 0) as i64 - (x < 0) as i64;
    df |_, [x], y, g| {
        // What turns the number counts, what stretches it does not; g and the result are conjugates.
        // Both selections keep a second derivative at 0 from dividing by it.
        let (zero, y) = (x.equal(c(0.0)), y.conj());
        let size = R::select(zero, c(1.0), x.abs());
        R::select(zero, c(0.0), g - y * y * g.conj()) / (size + size)
    };
    complex Analytic;

    /// The largest integer not above x.
    op Floor[1] = "FloorBackward0", Same;
    f |_, [x]| x.floor();
    int |_, [x]| x;
    df |_, _, _, _g| c(0.0);
    check |_, t, _| no_bool("floor", t);
    facts { half_loops: true, unsigned: true };

    /// The smallest integer not below x.
    op Ceil[1] = "CeilBackward0", Same;
    f |_, [x]| x.ceil();
    int |_, [x]| x;
    df |_, _, _, _g| c(0.0);
    check |_, t, _| no_bool("ceil", t);
    facts { half_loops: true, unsigned: true };

    /// The integer part of x.
    op Trunc[1] = "TruncBackward0", Same;
    f |_, [x]| x.trunc();
    int |_, [x]| x;
    df |_, _, _, _g| c(0.0);
    check |_, t, _| no_bool("trunc", t);
    facts { half_loops: true, unsigned: true };

    /// To the nearest integer, ties to even.
    op Round[1] = "RoundBackward0", Same;
    f |_, [x]| x.round();
    int |_, [x]| x;
    df |_, _, _, _g| c(0.0);
    check |_, t, _| no_bool("round", t);
    facts { half_loops: true, unsigned: true };

    /// x * x.
    op Square[1] = "PowBackward0", Same;
    f |_, [x]| x * x;
    int |_, [x]| x.wrapping_mul(x);
    df |_, [x], _, g| g * (c::<R>(2.0) * x);
    complex Analytic;
    facts { half_loops: true, casts: true };

    /// x to the power of `e`; integers to the power of `n`, which is the same number.
    op PowNumber { e: f64, n: i64 }[1] = "PowBackward0", Same;
    f |p, [x]| x.pow(k(p.e));
    int |p, [x]| super::integer::power(x, p.n);
    df |p, [x], _, g| if p.e == 0.0 {
        c(0.0)
    } else {
        g * (k::<R>(p.e) * x.pow(k(p.e - 1.0)))
    };
    complex Analytic;
    facts { casts: true };

    /// x * x * x.
    op Cube[1] = "PowBackward0", Same;
    f |_, [x]| x * x * x;
    int |_, [x]| x.wrapping_mul(x).wrapping_mul(x);
    df |_, [x], _, g| g * (c::<R>(3.0) * x.square());
    complex Analytic;
    facts { casts: true };

    /// x to the power of -2, -1, 0, 1 or 4, by products.
    op SmallPower { e: i64 }[1] = "PowBackward0", Same;
    f |p, [x]| x.whole_power(p.e);
    int |p, [x]| super::integer::power(x, p.e);
    df |p, [x], _, g| match p.e {
        0 => c(0.0),
        // A function of x, if a constant one: it has a derivative, too.
        1 => R::select(x.equal(x), g, g),
        e => g * (c::<R>(e as f64) * x.whole_power(e - 1)),
    };
    steps |p| p.e == 1;
    complex Analytic;
    facts { casts: true };

    /// x to the power of 1/2 or -1/2.
    op RootPower { inverse: bool }[1] = "PowBackward0", FloatOnly;
    f |p, [x]| if p.inverse { x.rsqrt() } else { x.sqrt() };
    df |p, [x], y, g| if p.inverse {
        c::<R>(-0.5) * g * (y / x)
    } else {
        c::<R>(0.5) * g / y
    };
    facts { casts: true };

    /// x minus its integer part.
    op Frac[1] = "FracBackward0", FloatOnly;
    f |_, [x]| x - x.trunc();
    df |_, _, _, g| g;
    facts { half_loops: true };

    /// To a number of decimal digits, ties to even.
    op RoundDecimals { decimals: i64 }[1] = "RoundBackward1", FloatOnly;
    f |p, [x]| {
        let ten = k::<R>(10f64.powi(p.decimals.unsigned_abs().min(400) as i32));
        if p.decimals < 0 { (x / ten).round() * ten } else { (x * ten).round() / ten }
    };
    df |_, _, _, _g| c(0.0);

    /// x within [low, high]; NaN stays.
    op Clamp { low: Option<Scalar>, high: Option<Scalar> }[1] = "ClampBackward1", Same;
    f |p, [x]| {
        let x = match p.low { Some(l) => at_least(x, k(l.f64())), None => x };
        match p.high { Some(h) => at_most(x, k(h.f64())), None => x }
    };
    int |p, [x]| {
        let x = match p.low { Some(l) => x.max(l.i64()), None => x };
        match p.high { Some(h) => x.min(h.i64()), None => x }
    };
    df |p, [x], _, g| {
        // Without branches: a compiler may compare with what is no bound before it asks.
        let low = p.low.map_or(f64::NEG_INFINITY, Scalar::f64);
        let high = p.high.map_or(f64::INFINITY, Scalar::f64);
        R::select(x.le(k(high)), R::select(x.ge(k(low)), g, c(0.0)), c(0.0))
    };
    check |p, t, _| {
        // A negative bound of unsigned integers is zero.
        let (_, most) = t.limits();
        let least = if t.is_signed() { t.limits().0 } else { i64::MIN };
        let held = |s: Scalar| (least..=most).contains(&s.i64());
        ensure!(
            !t.is_int() || [p.low, p.high].into_iter().flatten().all(held),
            Runtime,
            "clamp: value cannot be converted to type {} without overflow: bounds {:?} and {:?}",
            t.c_name(), p.low, p.high
        );
        Ok(())
    };
    facts { half_loops: true };
    cpu impl;

    /// Numbers for NaN and the infinities.
    op NanToNum { nan: f64, high: f64, low: f64 }[1] = "NanToNumBackward0", Same;
    f |p, [x]| x.finite(p.nan, p.high, p.low);
    int |_, [x]| x;
    df |_, [x], _, g| R::select(x.abs().lt(c(f64::INFINITY)), g, c(0.0));
    complex Analytic;
    wgsl |_| "m_finite(t0)";
    facts { half_loops: true };

    /// Degrees to radians.
    op Deg2rad[1] = "Deg2RadBackward0", Float;
    f |_, [x]| x * c(PI / 180.0);
    df |_, _, _, g| g * c(PI / 180.0);
    check |_, t, _| refuse_complex("deg2rad", "is not supported", t);

    /// Radians to degrees.
    op Rad2deg[1] = "Rad2DegBackward0", Float;
    f |_, [x]| x * c(180.0 / PI);
    df |_, _, _, g| g * c(180.0 / PI);
    check |_, t, _| refuse_complex("rad2deg", "is not supported", t);

    /// The argument of a real number: pi below zero.
    op Angle[1] = "AngleBackward0", Float;
    f |_, [x]| R::select(x.is_nan(), x, R::select(x.lt(c(0.0)), c(PI), c(0.0)));
    df |_, _, _, _g| c(0.0);

    /// 1 / x.
    op Reciprocal[1] = "ReciprocalBackward0", Float;
    f |_, [x]| c::<R>(1.0) / x;
    df |_, _, y, g| -g * (y * y);
    complex Analytic;
    facts { half_loops: true };

    /// Square root; NaN below 0.
    op Sqrt[1] = "SqrtBackward0", Float;
    f |_, [x]| x.sqrt();
    df |_, _, y, g| g / (c::<R>(2.0) * y);
    complex Analytic;
    facts { half_loops: true };

    /// 1 / sqrt(x).
    op Rsqrt[1] = "RsqrtBackward0", Float;
    f |_, [x]| x.rsqrt();
    df |_, _, y, g| c::<R>(-0.5) * g * (y * y * y);
    complex Analytic;
    facts { half_loops: true };

    /// e^x.
    op Exp[1] = "ExpBackward0", Float;
    f |_, [x]| x.exp();
    df |_, _, y, g| g * y;
    complex Analytic;
    cpu impl;

    /// 2^x.
    op Exp2[1] = "Exp2Backward0", Float;
    f |_, [x]| x.exp2();
    df |_, _, y, g| g * y * c(LN_2);
    complex Analytic;

    /// e^x - 1, accurate near 0.
    op Expm1[1] = "Expm1Backward0", Float;
    f |_, [x]| x.expm1();
    df |_, _, y, g| g * (y + c(1.0));
    complex Analytic;

    /// Natural logarithm.
    op Log[1] = "LogBackward0", Float;
    f |_, [x]| x.ln();
    df |_, [x], _, g| g / x;
    complex Analytic;
    cpu impl;

    /// Logarithm to base 2.
    op Log2[1] = "Log2Backward0", Float;
    f |_, [x]| x.log2();
    df |_, [x], _, g| g / (x * c(LN_2));
    complex Analytic;

    /// Logarithm to base 10.
    op Log10[1] = "Log10Backward0", Float;
    f |_, [x]| x.log10();
    df |_, [x], _, g| g / (x * c(LN_10));
    complex Analytic;

    /// log(1 + x), accurate near 0.
    op Log1p[1] = "Log1PBackward0", Float;
    f |_, [x]| x.log1p();
    df |_, [x], _, g| g / (x + c(1.0));
    complex Analytic;

    /// Sine of x in radians.
    op Sin[1] = "SinBackward0", Float;
    f |_, [x]| x.sin();
    df |_, [x], _, g| g * x.cos();
    complex Analytic;
    facts { guarded: true };

    /// Cosine of x in radians.
    op Cos[1] = "CosBackward0", Float;
    f |_, [x]| x.cos();
    df |_, [x], _, g| -g * x.sin();
    complex Analytic;
    facts { guarded: true };

    /// Tangent of x in radians.
    op Tan[1] = "TanBackward0", Float;
    f |_, [x]| x.tan();
    df |_, _, y, g| g * (c::<R>(1.0) + y * y);
    complex Analytic;
    facts { guarded: true };

    /// Arc sine in radians.
    op Asin[1] = "AsinBackward0", Float;
    f |_, [x]| x.asin();
    df |_, [x], _, g| g * (c::<R>(1.0) - x * x).rsqrt();
    complex Analytic;

    /// Arc cosine in radians.
    op Acos[1] = "AcosBackward0", Float;
    f |_, [x]| x.acos();
    df |_, [x], _, g| -g * (c::<R>(1.0) - x * x).rsqrt();
    complex Analytic;

    /// Arc tangent in radians.
    op Atan[1] = "AtanBackward0", Float;
    f |_, [x]| x.atan();
    df |_, [x], _, g| g / (x * x + c(1.0));
    complex Analytic;

    /// Hyperbolic sine.
    op Sinh[1] = "SinhBackward0", Float;
    f |_, [x]| x.sinh();
    df |_, [x], _, g| g * x.cosh();
    complex Analytic;

    /// Hyperbolic cosine.
    op Cosh[1] = "CoshBackward0", Float;
    f |_, [x]| x.cosh();
    df |_, [x], _, g| g * x.sinh();
    complex Analytic;

    /// Hyperbolic tangent.
    op Tanh[1] = "TanhBackward0", Float;
    f |_, [x]| x.tanh();
    df |_, _, y, g| g * (c::<R>(1.0) - y * y);
    complex Analytic;

    /// Inverse hyperbolic sine.
    op Asinh[1] = "AsinhBackward0", Float;
    f |_, [x]| x.asinh();
    df |_, [x], _, g| g * (x * x + c(1.0)).rsqrt();
    complex Analytic;

    /// Inverse hyperbolic cosine.
    op Acosh[1] = "AcoshBackward0", Float;
    f |_, [x]| x.acosh();
    df |_, [x], _, g| {
        // The slope of x^2 - 1, which has a root left of -1 too, for negative real numbers.
        let x = R::select(x.abs().equal(-x), -x, x);
        g * ((x - c(1.0)).rsqrt() * (x + c(1.0)).rsqrt())
    };
    complex Analytic;

    /// Inverse hyperbolic tangent.
    op Atanh[1] = "AtanhBackward0", Float;
    f |_, [x]| x.atanh();
    df |_, [x], _, g| g / (c::<R>(1.0) - x * x);
    complex Analytic;

    /// 1 / (1 + e^-x).
    op Sigmoid[1] = "SigmoidBackward0", Float;
    f |_, [x]| x.sigmoid();
    df |_, _, y, g| g * ((c::<R>(1.0) - y) * y);
    complex Analytic;
    cpu impl;

    /// Error function.
    op Erf[1] = "ErfBackward0", Float;
    f |_, [x]| x.erf();
    df |_, [x], _, g| g * (c::<R>(2.0 / PI.sqrt()) * (-(x * x)).exp());

    /// 1 - erf(x), accurate for large x.
    op Erfc[1] = "ErfcBackward0", Float;
    f |_, [x]| x.erfc();
    df |_, [x], _, g| g * (c::<R>(-2.0 / PI.sqrt()) * (-(x * x)).exp());

    /// Inverse of erf.
    op Erfinv[1] = "ErfinvBackward0", Float;
    f |_, [x]| x.erfinv();
    df |_, _, y, g| g * (c::<R>(PI.sqrt() / 2.0) * (y * y).exp());
    facts { guarded: true };

    /// log |gamma(x)|.
    op Lgamma[1] = "LgammaBackward0", Float;
    f |_, [x]| x.lgamma();
    df |_, [x], _, g| g * x.digamma();
    facts { guarded: true };

    /// The logarithmic derivative of gamma.
    op Digamma[1] = "DigammaBackward0", Float;
    f |_, [x]| x.digamma();
    df |_, [x], _, g| g * x.polygamma(1);
    facts { guarded: true };

    /// The derivative of digamma.
    op Trigamma[1] = "PolygammaBackward0", Float;
    f |_, [x]| x.polygamma(1);
    df |_, [x], _, g| g * x.polygamma(2);
    facts { guarded: true };

    /// The n-th derivative of digamma.
    op Polygamma { n: u32 }[1] = "PolygammaBackward0", Float;
    f |p, [x]| if p.n == 0 { x.digamma() } else { x.polygamma(p.n) };
    df |p, [x], _, g| g * x.polygamma(p.n + 1);

    /// Whether x is NaN.
    op IsNan[1] = "IsnanBackward0", Bool;
    f |_, [x]| R::of(x.is_nan());
    int |_, _| 0;
    df |_, _, _, _g| c(0.0);
    complex Analytic;
    facts { unsigned: true, float8: true };

    /// Whether x is zero.
    op LogicalNot[1] = "LogicalNotBackward0", Bool;
    f |_, [x]| R::of(x.equal(c(0.0)));
    int |_, [x]| (x == 0) as i64;
    df |_, _, _, _g| c(0.0);
    complex Analytic;

    /// The logarithm of the odds, of x within [low, high].
    op Logit { low: f64, high: f64 }[1] = "LogitBackward0", Float;
    f |p, [x]| {
        let z = x.max(k(p.low)).min(k(p.high));
        (z / (c::<R>(1.0) - z)).ln()
    };
    df |p, [x], _, g| {
        let d = g / (x * (c::<R>(1.0) - x));
        let d = R::select(R::either(x.lt(c(0.0)), x.gt(c(1.0))), c(f64::NAN), d);
        R::select(R::either(x.lt(k(p.low)), x.gt(k(p.high))), c(0.0), d)
    };

    /// sin(pi x) / (pi x); 1 at 0.
    op Sinc[1] = "SincBackward0", Float;
    f |_, [x]| {
        let t = c::<R>(PI) * x;
        R::select(x.equal(c(0.0)), c(1.0), t.sin() / t)
    };
    df |_, [x], _, g| {
        // (t cos t - sin t) / t^2, by its series where the difference would cancel.
        let t = c::<R>(PI) * x;
        let (small, s) = (t.abs().lt(c(0.5)), t * t);
        let series = c::<R>(-1.0 / 3.0) + s * (c::<R>(1.0 / 30.0) + s * (c::<R>(-1.0 / 840.0)
            + s * (c::<R>(1.0 / 45360.0) + s * (c::<R>(-1.0 / 3991680.0)
            + s * c(1.0 / 518918400.0)))));
        let far = R::select(small, c(1.0), t);
        let slope = (far * far.cos() - far.sin()) / (far * far);
        g * (c::<R>(PI) * R::select(small, t * series, slope))
    };
    complex Analytic;
    facts { guarded: true };
}

impl Cpu<1> for Neg {
    fn own_bits(&self, _: DType) -> Option<Kernel<u16>> {
        Some(neg_bits)
    }

    fn own_parts(&self, t: DType) -> Option<Parts> {
        parts::negatives(t)
    }
}

impl Cpu<1> for Abs {
    fn own_bits(&self, _: DType) -> Option<Kernel<u16>> {
        Some(abs_bits)
    }

    fn own_parts(&self, t: DType) -> Option<Parts> {
        parts::moduli(t)
    }
}

impl Cpu<1> for Conj {
    fn own_parts(&self, t: DType) -> Option<Parts> {
        parts::conjugates(t)
    }
}

impl Cpu<1> for Sign {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x]: [I; 1]) -> I {
        I::low((x > I::low(0)) as i32 - (x < I::low(0)) as i32)
    }
}

impl Cpu<1> for Clamp {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x]: [I; 1]) -> I {
        let x = match self.low {
            Some(l) => x.max(I::nearest(l.i64())),
            None => x,
        };
        match self.high {
            Some(h) => x.min(I::nearest(h.i64())),
            None => x,
        }
    }
}

impl Cpu<1> for Exp {
    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::exp::own::<super::cpu::exp::Exponential>(which)
    }

    #[inline(always)]
    fn own64(which: Own) -> Option<Kernel<f64>> {
        super::cpu::exp::own64::<super::cpu::exp::Exponential>(which)
    }
}

impl Cpu<1> for Log {
    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::log::own(which)
    }
}

impl Cpu<1> for Sigmoid {
    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::exp::own::<super::cpu::exp::Sigmoid>(which)
    }

    #[inline(always)]
    fn own64(which: Own) -> Option<Kernel<f64>> {
        super::cpu::exp::own64::<super::cpu::exp::Sigmoid>(which)
    }
}
