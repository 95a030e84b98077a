//! Special functions.

use super::pointwise;
use super::{c, Cpu, Polynomial, Real, Special, Special2};
use crate::cpu::math::f64x::CLOSE;

const PI: f64 = std::f64::consts::PI;

pointwise! {
    /// The modified Bessel function of order 0.
    op I0[1] = "I0Backward0", Float;
    f |_, [x]| x.special(Special::I0);
    df |_, [x], _, g| g * x.special(Special::I1);

    /// e^-|x| i0(x).
    op I0e[1] = "SpecialI0EBackward0", Float;
    f |_, [x]| x.special(Special::I0e);
    df |_, [x], y, g| g * (x.special(Special::I1e) - x.sign() * y);

    /// The modified Bessel function of order 1.
    op I1[1] = "SpecialI1Backward0", Float;
    f |_, [x]| x.special(Special::I1);
    df |_, [x], y, g| g * R::select(
        x.equal(c(0.0)), c(0.5), x.special(Special::I0) - y / x);

    /// e^-|x| i1(x).
    op I1e[1] = "SpecialI1EBackward0", Float;
    f |_, [x]| x.special(Special::I1e);
    df |_, [x], y, g| g * R::select(
        x.abs().lt(c(1e-20)),
        c(0.5),
        x.special(Special::I0e) - y * (x.sign() + c::<R>(1.0) / x));

    /// The x left of which the standard normal density has the area given.
    op Ndtri[1] = "SpecialNdtriBackward0", Float;
    f |_, [x]| x.special(Special::Ndtri);
    df |_, _, y, g| g * (c::<R>((2.0 * PI).sqrt()) * (y * y * c(0.5)).exp());
    facts { guarded: true };

    /// The logarithm of the area under the standard normal density left of x.
    op LogNdtr[1] = "SpecialLogNdtrBackward0", Float;
    f |_, [x]| x.special(Special::LogNdtr);
    df |_, [x], _, g|
        g * (c::<R>((2.0 / PI).sqrt()) / (-x * c(0.5f64.sqrt())).special(Special::Erfcx));

    /// The area under the standard normal density left of x.
    op Ndtr[1] = "SpecialNdtrBackward0", Float;
    f |_, [x]| c::<R>(0.5) * (-x * c(0.5f64.sqrt())).erfc();
    df |_, [x], _, g|
        g * (c::<R>(1.0 / (2.0 * PI).sqrt()) * (x * x * c(-0.5)).exp());

    /// e^(x^2) erfc(x).
    op Erfcx[1] = "SpecialErfcxBackward0", Float;
    f |_, [x]| x.special(Special::Erfcx);
    df |_, [x], y, g| g * (c::<R>(2.0) * x * y - c(2.0 / PI.sqrt()));

    /// -x log(x); 0 at 0, -inf below.
    op Entr[1] = "SpecialEntrBackward0", Float;
    f |_, [x]| {
        let inside = R::select(x.gt(c(0.0)), -x * x.ln(), c(f64::NEG_INFINITY));
        R::select(x.is_nan(), x, R::select(x.equal(c(0.0)), c(0.0), inside))
    };
    df |_, [x], _, g| g * (-c::<R>(1.0) - x.ln());

    /// The fraction of x, from 1/2 to 1, before a power of two.
    op Mantissa[1] = "FrexpBackward0", FloatOnly;
    f |_, [x]| x.special(Special::Mantissa);
    df |_, [x], _, g| g * (-x.special(Special::Exponent)).exp2();

    /// The power of two that belongs to the mantissa.
    op Exponent[1] = "FrexpBackward0", FloatOnly;
    f |_, [x]| x.special(Special::Exponent);
    df |_, _, _, _g| c(0.0);

    /// sin(x) / x; 1 at 0.
    op SphericalJ0[1] = "SpecialSphericalBesselJ0Backward0", Float;
    f |_, [x]| {
        let y = x.sin() / x;
        let y = R::select(x.equal(c(0.0)), c(1.0), y);
        R::select(x.abs().equal(c(f64::INFINITY)), c(0.0), y)
    };
    df |_, _, _, _g| c(0.0);
    facts { detached: true, guarded: true };

    /// The Bessel function of the first kind of order 0.
    op BesselJ0[1] = "SpecialBesselJ0Backward0", Float;
    f |_, [x]| x.special(Special::BesselJ0);
    df |_, _, _, _g| c(0.0);
    facts { detached: true, guarded: true };
    cpu impl;

    /// The Bessel function of the first kind of order 1.
    op BesselJ1[1] = "SpecialBesselJ1Backward0", Float;
    f |_, [x]| x.special(Special::BesselJ1);
    df |_, _, _, _g| c(0.0);
    facts { detached: true, guarded: true };
    cpu impl;

    /// The Bessel function of the second kind of order 0.
    op BesselY0[1] = "SpecialBesselY0Backward0", Float;
    f |_, [x]| x.special(Special::BesselY0);
    df |_, _, _, _g| c(0.0);
    facts { detached: true, guarded: true };
    cpu impl;

    /// The Bessel function of the second kind of order 1.
    op BesselY1[1] = "SpecialBesselY1Backward0", Float;
    f |_, [x]| x.special(Special::BesselY1);
    df |_, _, _, _g| c(0.0);
    facts { detached: true, guarded: true };
    cpu impl;

    /// A modified Bessel or Airy function without a derivative.
    op Bessel { f: Special }[1] = "SpecialBesselBackward0", Float;
    f |p, [x]| x.special(p.f);
    df |_, _, _, _g| c(0.0);
    facts { detached: true };

    /// An orthogonal polynomial of x; y is the degree.
    op Orthogonal { family: Polynomial }[2] = "SpecialPolynomialBackward0", Float;
    f |p, [x, y]| x.special2(y, Special2::Polynomial(p.family));
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { detached: true };

    /// The same polynomial at 2x - 1.
    op Shifted { family: Polynomial }[2] = "SpecialShiftedPolynomialBackward0", Float;
    f |p, [x, y]| (x + x - c(1.0)).special2(y, Special2::Polynomial(p.family));
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { detached: true };
}

impl Cpu<1> for BesselJ0 {
    const CLOSE: f64 = CLOSE;
    #[inline(always)]
    fn close<R: Real>(&self, [x]: [R; 1]) -> R {
        x.special(Special::CloseJ0)
    }
}

impl Cpu<1> for BesselJ1 {
    const CLOSE: f64 = CLOSE;
    #[inline(always)]
    fn close<R: Real>(&self, [x]: [R; 1]) -> R {
        x.special(Special::CloseJ1)
    }
}

impl Cpu<1> for BesselY0 {
    const CLOSE: f64 = CLOSE;
    #[inline(always)]
    fn close<R: Real>(&self, [x]: [R; 1]) -> R {
        x.special(Special::CloseY0)
    }
}

impl Cpu<1> for BesselY1 {
    const CLOSE: f64 = CLOSE;
    #[inline(always)]
    fn close<R: Real>(&self, [x]: [R; 1]) -> R {
        x.special(Special::CloseY1)
    }
}
