//! Functions of two tensors, which broadcast against each other.

use super::cpu::complex::{self as parts, Parts};
use super::cpu::halves;
use super::pointwise;
use super::types::{no_bool, no_complex, refuse_complex};
use super::{c, k, Cpu, Half, Integer, Own, Real, Special2};
use crate::cpu::pointwise::Kernel;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Meta;
use crate::{bail, ensure};

fn alpha_fits(alpha: Scalar, t: DType) -> Result<()> {
    if t != DType::Bool && matches!(alpha, Scalar::Bool(_)) {
        bail!(Runtime, "Boolean alpha only supported for Boolean results.");
    }
    if t.is_integral() && alpha.is_float() {
        bail!(
            Runtime,
            "For integral input tensors, argument alpha must not be a floating point number."
        );
    }
    Ok(())
}

fn no_bool_difference(x: &[impl AsRef<Meta>]) -> Result<()> {
    match x
        .iter()
        .filter(|t| t.as_ref().dtype() == DType::Bool)
        .count()
    {
        0 => Ok(()),
        1 => bail!(
            Runtime,
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are \
             trying to invert a mask, use the `~` or `logical_not()` operator instead."
        ),
        _ => bail!(
            Runtime,
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` \
             or `logical_xor()` operator instead."
        ),
    }
}

/// Whether the scalar is one, so that a gradient passes unchanged.
#[inline(always)]
fn is_one(s: Scalar) -> bool {
    s.f64() == 1.0
}

#[inline(always)]
fn scaled<const W: usize>(alpha: Scalar, y: [f32; W]) -> [f32; W] {
    match is_one(alpha) {
        true => y,
        false => halves::products([[k::<f32>(alpha.f64()); W], y]),
    }
}

pointwise! {
    /// x + alpha * y.
    op Add { alpha: Scalar }[2] = "AddBackward0", Same;
    f |p, [x, y]| if is_one(p.alpha) { x + y } else { x + k::<R>(p.alpha.f64()) * y };
    int |p, [x, y]| x.wrapping_add(y.wrapping_mul(p.alpha.i64()));
    df |p, _, _, g| g, g * k(p.alpha.f64());
    check |p, t, _| alpha_fits(p.alpha, t);
    complex Analytic;
    direct |p, i, g| (i == 0 || is_one(p.alpha)).then(|| Ok(g.clone()));
    facts { half_loops: true, numbers: true, exact: 2 };
    cpu impl;

    /// x - alpha * y. Bool raises.
    op Sub { alpha: Scalar }[2] = "SubBackward0", Same;
    f |p, [x, y]| if is_one(p.alpha) { x - y } else { x - k::<R>(p.alpha.f64()) * y };
    int |p, [x, y]| x.wrapping_sub(y.wrapping_mul(p.alpha.i64()));
    df |p, _, _, g| g, -g * k(p.alpha.f64());
    check |p, t, x| no_bool_difference(x).and_then(|_| alpha_fits(p.alpha, t));
    complex Analytic;
    direct |_, i, g| (i == 0).then(|| Ok(g.clone()));
    facts { half_loops: true, numbers: true };
    cpu impl;

    /// x * y.
    op Mul[2] = "MulBackward0", Same;
    f |_, [x, y]| x * y;
    int |_, [x, y]| x.wrapping_mul(y);
    df |_, [x, y], _, g| g * y, g * x;
    complex Analytic;
    facts { half_loops: true, numbers: true, unsigned: true, float8: true, exact: 2 };
    cpu impl;

    /// x / y; integers become floating.
    op Div[2] = "DivBackward0", Float;
    f |_, [x, y]| x / y;
    df |_, [x, y], _, g| g / y, -g * ((x / y) / y);
    complex Analytic;
    facts { half_loops: true, numbers: true, exact: 2, dividend: true };
    cpu impl;

    /// x ** y.
    op Pow[2] = "PowBackward1", Same;
    f |_, [x, y]| x.pow(y);
    int |_, [x, y]| super::integer::power(x, y);
    df |_, [x, y], r, g|
        R::select(y.equal(c(0.0)), c(0.0), g * (y * x.pow(y - c(1.0)))),
        // y is |y| where it is not negative, which also means something for complex numbers.
        g * R::select(R::both(x.equal(c(0.0)), y.equal(y.abs())), c(0.0), r * x.ln());
    check |_, t, _| no_bool("pow", t);
    complex Analytic;

    /// The angle of the point (y, x) in radians; the first argument is the ordinate.
    op Atan2[2] = "Atan2Backward0", Float;
    f |_, [y, x]| y.atan2(x);
    df |_, [y, x], _, g|
        g * over_square(x, x, y),
        -g * over_square(y, x, y);

    /// The remainder with the sign of x.
    op Fmod[2] = "FmodBackward0", Same;
    f |_, [x, y]| x.fmod(y);
    int |_, [x, y]| if y == 0 { 0 } else { x.wrapping_rem(y) };
    df |_, [x, y], _, g| g, -g * (x / y).trunc();
    check |_, t, _| no_bool("fmod", t);
    facts { divides: true, guarded: true };
    cpu impl;

    /// The remainder with the sign of y.
    op Remainder[2] = "RemainderBackward0", Same;
    f |_, [x, y]| modulo(x, y);
    int |_, [x, y]| if y == 0 { 0 } else { int_modulo(x, y) };
    df |_, [x, y], _, g| g, -g * floor_quotient(x, y);
    check |_, t, _| no_bool("remainder", t);
    facts { divides: true, guarded: true };
    cpu impl;

    /// x / y rounded toward zero.
    op DivTrunc[2] = "DivBackward2", Same;
    f |_, [x, y]| (x / y).trunc();
    int |_, [x, y]| if y == 0 { 0 } else { x.wrapping_div(y) };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("div_trunc", t);
    wgsl |_| "m_trunc_div(t0, t1)";
    facts { divides: true, exact: 2 };
    cpu impl;

    /// x / y rounded down.
    op DivFloor[2] = "DivBackward2", Same;
    f |_, [x, y]| floor_quotient(x, y);
    int |_, [x, y]| if y == 0 { 0 } else { int_floor_quotient(x, y) };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("div_floor", t);
    wgsl |_| "m_floor_div(t0, t1)";
    facts { divides: true, guarded: true, exact: 2 };
    cpu impl;

    /// x / y rounded down, without a derivative.
    op FloorDivide[2] = "FloorDivideBackward0", Same;
    f |_, [x, y]| floor_quotient(x, y);
    int |_, [x, y]| if y == 0 { 0 } else { int_floor_quotient(x, y) };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("div_floor", t);
    wgsl |_| "m_floor_div(t0, t1)";
    facts { divides: true, opaque: 3, guarded: true, exact: 2 };
    cpu impl;

    /// x / y rounded toward zero, or down, where each step of that is rounded to a half type.
    op HalfQuotient { down: bool, to: Half }[2] = "DivBackward2", FloatOnly;
    f |p, [x, y]| half_quotient(x, y, p.down, p.to);
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { guarded: true };

    /// The same of `floor_divide`, which has no derivative.
    op HalfFloorDivide { to: Half }[2] = "FloorDivideBackward0", FloatOnly;
    f |p, [x, y]| half_quotient(x, y, true, p.to);
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { opaque: 3, guarded: true };

    /// |x| with the sign of y.
    op Copysign[2] = "CopysignBackward0", Float;
    f |_, [x, y]| x.copysign(y);
    df |_, [x, _y], r, g|
        R::select(x.equal(c(0.0)), c(0.0), g * (r / x)), c(0.0);
    cpu impl;

    /// The larger; NaN if either is. A tie shares the gradient.
    op Maximum[2] = "MaximumBackward0", Same;
    f |_, [x, y]| x.max(y);
    int |_, [x, y]| x.max(y);
    df |_, [x, y], _, g|
        R::select(x.lt(y), c(0.0), R::select(x.equal(y), g * c(0.5), g)),
        R::select(y.lt(x), c(0.0), R::select(x.equal(y), g * c(0.5), g));
    check |_, t, _| no_complex("maximum", t);
    facts { half_loops: true, numbers: true };
    cpu impl;

    /// The smaller; NaN if either is. A tie shares the gradient.
    op Minimum[2] = "MinimumBackward0", Same;
    f |_, [x, y]| x.min(y);
    int |_, [x, y]| x.min(y);
    df |_, [x, y], _, g|
        R::select(x.gt(y), c(0.0), R::select(x.equal(y), g * c(0.5), g)),
        R::select(y.gt(x), c(0.0), R::select(x.equal(y), g * c(0.5), g));
    check |_, t, _| no_complex("minimum", t);
    facts { half_loops: true, numbers: true };
    cpu impl;

    /// The larger, where a tie goes to x (`clamp_min`).
    op ClampMin[2] = "ClampMinBackward1", Same;
    f |_, [x, y]| x.max(y);
    int |_, [x, y]| x.max(y);
    df |_, [x, y], _, g|
        R::select(x.ge(y), g, c(0.0)), R::select(x.lt(y), g, c(0.0));
    facts { half_loops: true };

    /// The smaller, where a tie goes to x (`clamp_max`).
    op ClampMax[2] = "ClampMaxBackward1", Same;
    f |_, [x, y]| x.min(y);
    int |_, [x, y]| x.min(y);
    df |_, [x, y], _, g|
        R::select(x.le(y), g, c(0.0)), R::select(x.gt(y), g, c(0.0));
    facts { half_loops: true };

    /// The larger; a NaN counts as missing. A tie goes to x.
    op Fmax[2] = "FmaxBackward0", Same;
    f |_, [x, y]| R::select(R::either(x.ge(y), y.is_nan()), x, y);
    int |_, [x, y]| x.max(y);
    df |_, [x, y], _, g|
        R::select(R::either(x.ge(y), y.is_nan()), g, c(0.0)),
        R::select(R::either(x.ge(y), y.is_nan()), c(0.0), g);
    check |_, t, _| no_complex("fmax", t);
    facts { half_loops: true };

    /// The smaller; a NaN counts as missing. A tie goes to x.
    op Fmin[2] = "FminBackward0", Same;
    f |_, [x, y]| R::select(R::either(x.le(y), y.is_nan()), x, y);
    int |_, [x, y]| x.min(y);
    df |_, [x, y], _, g|
        R::select(R::either(x.le(y), y.is_nan()), g, c(0.0)),
        R::select(R::either(x.le(y), y.is_nan()), c(0.0), g);
    check |_, t, _| no_complex("fmin", t);
    facts { half_loops: true };

    /// sqrt(x^2 + y^2) without overflow.
    op Hypot[2] = "HypotBackward0", FloatOnly;
    f |_, [x, y]| {
        let (a, b) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
        let q = b / a;
        let infinite = R::either(x.abs().equal(c(f64::INFINITY)), y.abs().equal(c(f64::INFINITY)));
        let plain = R::select(a.equal(c(0.0)), a, a * (c::<R>(1.0) + q * q).sqrt());
        R::select(infinite, c(f64::INFINITY), plain)
    };
    df |_, [x, y], r, g| g * (x / r), g * (y / r);

    /// The next number after x toward y.
    op NextAfter { step: u32 }[2] = "NextafterBackward0", FloatOnly;
    f |p, [x, y]| x.special2(y, Special2::NextAfter(p.step));
    df |_, [x, y], _, g| R::select(x.equal(y), c(0.0), g), c(0.0);

    /// 0 below zero, 1 above, y at zero.
    op Heaviside[2] = "HeavisideBackward0", Same;
    f |_, [x, y]| R::select(x.equal(c(0.0)), y, R::of(x.gt(c(0.0))));
    int |_, [x, y]| if x == 0 { y } else { (x > 0) as i64 };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, x| {
        refuse_complex("heaviside", "is not yet implemented", t)?;
        ensure!(
            x[0].as_ref().dtype() == x[1].as_ref().dtype(),
            Runtime,
            "heaviside is not yet implemented for tensors with different dtypes."
        );
        Ok(())
    };
    facts { opaque: 3 };

    /// x * 2^y.
    op Ldexp[2] = "LdexpBackward0", Float;
    f |_, [x, y]| x * y.exp2();
    df |_, [_x, y], r, g| g * y.exp2(), g * r * c(std::f64::consts::LN_2);
    complex Analytic;

    /// x * log(y); 0 where x is 0, unless y is NaN.
    op Xlogy[2] = "XlogyBackward0", Float;
    f |_, [x, y]| R::select(
        R::both(x.equal(c(0.0)), R::not(y.is_nan())), c(0.0), x * y.ln());
    df |_, [x, y], _, g|
        g * R::select(
            R::both(x.equal(c(0.0)), y.le(c(0.0))), c(0.0), y.ln()),
        g * (x / y);

    /// x * log(1 + y); 0 where x is 0, unless y is NaN.
    op Xlog1py[2] = "SpecialXlog1PyBackward0", Float;
    f |_, [x, y]| R::select(
        R::both(x.equal(c(0.0)), R::not(y.is_nan())), c(0.0), x * y.log1p());
    df |_, [x, y], _, g|
        g * R::select(
            R::both(x.equal(c(0.0)), y.le(c(-1.0))), c(0.0), y.log1p()),
        g * (x / (y + c(1.0)));

    /// log(e^x + e^y).
    op Logaddexp[2] = "LogaddexpBackward0", FloatOnly;
    f |_, [x, y]| {
        // The one further right, and the way from there to the other.
        let less = x.lt(y);
        let (most, way) = (R::select(less, y, x), R::select(less, x - y, y - x));
        // Of two infinities alike there is no way; of complex numbers the angle may be any.
        let alike = R::not(R::either(less, y.lt(x)));
        R::select(
            R::both(alike, R::both(x.abs().equal(c(f64::INFINITY)), y.abs().equal(c(f64::INFINITY)))), y,
            most + way.exp().log1p())
    };
    df |_, [x, y], _, g| g * (x - y).sigmoid(), g * (y - x).sigmoid();
    complex Analytic;

    /// log2(2^x + 2^y).
    op Logaddexp2[2] = "Logaddexp2Backward0", FloatOnly;
    f |_, [x, y]| R::select(
        R::both(x.equal(y), x.abs().equal(c(f64::INFINITY))), x,
        x.max(y) + (-(x - y).abs()).exp2().log1p() * c(std::f64::consts::LOG2_E));
    df |_, [x, y], _, g|
        g * ((x - y) * c(std::f64::consts::LN_2)).sigmoid(),
        g * ((y - x) * c(std::f64::consts::LN_2)).sigmoid();

    /// Hurwitz's zeta function: the sum over k >= 0 of 1 / (k + y)^x.
    op Zeta[2] = "SpecialZetaBackward0", Float;
    f |_, [x, y]| x.special2(y, Special2::Zeta);
    df |_, [x, y], _, g|
        c(0.0),
        g * (-x * (x + c(1.0)).special2(y, Special2::Zeta));
    facts { opaque: 1 };

    /// The greatest common divisor, not negative.
    op Gcd[2] = "GcdBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |_, [x, y]| gcd(x, y);
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("gcd", t);
    wgsl |_| "m_gcd(t0, t1)";
    facts { iterates: true };

    /// The least common multiple, not negative.
    op Lcm[2] = "LcmBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |_, [x, y]| match gcd(x, y) {
        0 => 0,
        d => x.wrapping_div(d).wrapping_mul(y).wrapping_abs(),
    };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("lcm", t);
    wgsl |_| "m_lcm(t0, t1)";
    facts { iterates: true };

    /// The regularised lower incomplete gamma function of order x at y.
    op Igamma[2] = "IgammaBackward0", FloatOnly;
    f |_, [x, y]| x.special2(y, Special2::Igamma);
    df |_, [x, y], _, g|
        c(0.0), g * ((x - c(1.0)) * y.ln() - y - x.lgamma()).exp();
    facts { opaque: 1 };
    cpu impl;

    /// The regularised upper incomplete gamma function of order x at y.
    op Igammac[2] = "IgammacBackward0", FloatOnly;
    f |_, [x, y]| x.special2(y, Special2::Igammac);
    df |_, [x, y], _, g|
        c(0.0), -g * ((x - c(1.0)) * y.ln() - y - x.lgamma()).exp();
    facts { opaque: 1 };
    cpu impl;
}

impl Cpu<2> for Add {
    #[inline(always)]
    fn halves<const W: usize>(&self, [x, y]: [[f32; W]; 2]) -> [f32; W] {
        halves::sums([x, scaled(self.alpha, y)])
    }

    fn own_parts(&self, t: DType) -> Option<Parts> {
        is_one(self.alpha).then(|| parts::sums(t)).flatten()
    }
}

impl Cpu<2> for Sub {
    #[inline(always)]
    fn halves<const W: usize>(&self, [x, y]: [[f32; W]; 2]) -> [f32; W] {
        halves::differences([x, scaled(self.alpha, y)])
    }

    fn own_parts(&self, t: DType) -> Option<Parts> {
        is_one(self.alpha).then(|| parts::differences(t)).flatten()
    }
}

impl Cpu<2> for Mul {
    #[inline(always)]
    fn halves<const W: usize>(&self, x: [[f32; W]; 2]) -> [f32; W] {
        halves::products(x)
    }

    fn own_parts(&self, t: DType) -> Option<Parts> {
        parts::products(t)
    }
}

impl Cpu<2> for Div {
    #[inline(always)]
    fn halves<const W: usize>(&self, x: [[f32; W]; 2]) -> [f32; W] {
        halves::quotients(x)
    }

    fn own_parts(&self, t: DType) -> Option<Parts> {
        parts::quotients(t)
    }
}

impl Cpu<2> for Fmod {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::remains(x, y)
    }

    #[inline(always)]
    fn divided(&self, [x, y]: [f64; 2]) -> f64 {
        x - (x / y).trunc() * y
    }
}

impl Cpu<2> for Remainder {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::modulo(x, y)
    }

    #[inline(always)]
    fn divided(&self, [x, y]: [f64; 2]) -> f64 {
        x - (x / y).floor() * y
    }
}

impl Cpu<2> for DivTrunc {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::truncated(x, y)
    }

    #[inline(always)]
    fn divided(&self, [x, y]: [f64; 2]) -> f64 {
        (x / y).trunc()
    }
}

impl Cpu<2> for DivFloor {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::floored(x, y)
    }

    #[inline(always)]
    fn divided(&self, [x, y]: [f64; 2]) -> f64 {
        (x / y).floor()
    }
}

impl Cpu<2> for FloorDivide {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::floored(x, y)
    }

    #[inline(always)]
    fn divided(&self, [x, y]: [f64; 2]) -> f64 {
        (x / y).floor()
    }
}

impl Cpu<2> for Copysign {
    fn own_bits(&self, t: DType) -> Option<Kernel<u16>> {
        t.is_half().then(halves::copysign)
    }
}

impl Cpu<2> for Maximum {
    const HALF: bool = true;
    #[inline(always)]
    fn half(&self, [x, y]: [f32; 2]) -> f32 {
        if x.is_nan() {
            x + y
        } else if y < x {
            x
        } else {
            y
        }
    }

    #[inline(always)]
    fn halves<const W: usize>(&self, x: [[f32; W]; 2]) -> [f32; W] {
        halves::maxima(x)
    }
}

impl Cpu<2> for Minimum {
    const HALF: bool = true;
    #[inline(always)]
    fn half(&self, [x, y]: [f32; 2]) -> f32 {
        if x.is_nan() {
            x + y
        } else if x < y {
            x
        } else {
            y
        }
    }

    #[inline(always)]
    fn halves<const W: usize>(&self, x: [[f32; W]; 2]) -> [f32; W] {
        halves::minima(x)
    }
}

impl Cpu<2> for Igamma {
    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::incomplete::lower(which)
    }
}

impl Cpu<2> for Igammac {
    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::incomplete::upper(which)
    }
}

/// z / (x^2 + y^2); 0 at the origin.
#[inline(always)]
fn over_square<R: Real>(z: R, x: R, y: R) -> R {
    let r = x * x + y * y;
    R::select(r.equal(c(0.0)), c(0.0), z / r)
}

/// Whether a remainder `r` has the sign that the divisor has not.
#[inline(always)]
fn opposed<R: Real>(r: R, y: R) -> R::Mask {
    R::either(
        R::both(y.lt(c(0.0)), r.gt(c(0.0))),
        R::both(y.gt(c(0.0)), r.lt(c(0.0))),
    )
}

/// The remainder with the divisor's sign.
#[inline(always)]
fn modulo<R: Real>(x: R, y: R) -> R {
    let r = x.fmod(y);
    R::select(opposed(r, y), r + y, r)
}

/// The floor of the exact quotient: rounding of `x / y` must not carry it over an integer.
#[inline(always)]
fn floor_quotient<R: Real>(x: R, y: R) -> R {
    floor_in_steps(x, y, |v| v)
}

/// The same with each step rounded as asked.
#[inline(always)]
fn floor_in_steps<R: Real>(x: R, y: R, to: impl Fn(R) -> R) -> R {
    let r = x.fmod(y);
    let q = to(to(x - r) / y);
    let q = R::select(opposed(r, y), to(q - c(1.0)), q);
    let down = q.floor();
    let near = R::select((q - down).gt(c(0.5)), to(down + c(1.0)), down);
    let exact = R::select(q.equal(c(0.0)), c::<R>(0.0).copysign(x / y), near);
    R::select(y.equal(c(0.0)), x / y, exact)
}

#[inline(always)]
fn half_quotient<R: Real>(x: R, y: R, down: bool, to: Half) -> R {
    match down {
        true => floor_in_steps(x, y, |v| v.nearest(to)),
        false => (x / y).nearest(to).trunc(),
    }
}

#[inline(always)]
fn int_modulo(x: i64, y: i64) -> i64 {
    let r = x.wrapping_rem(y);
    if r != 0 && (r < 0) != (y < 0) {
        r + y
    } else {
        r
    }
}

#[inline(always)]
fn int_floor_quotient(x: i64, y: i64) -> i64 {
    let q = x.wrapping_div(y);
    if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) {
        q - 1
    } else {
        q
    }
}

fn gcd(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x.wrapping_abs(), y.wrapping_abs());
    while b != 0 {
        (a, b) = (b, a.wrapping_rem(b));
    }
    a.wrapping_abs()
}
