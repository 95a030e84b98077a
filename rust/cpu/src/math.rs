//! Elementary and special functions of one element.
//!
//! [`f32x`] and the elementary functions of [`f64x`] are written without branches, so that a loop
//! over them becomes vector code where `per_isa!` compiles it for AVX2 or wider. Bounds are in
//! units in the last place and held by the tests below, and for float64 by tests in Python against
//! a wider float. The rest of [`f64x`] is scalar: `libm` and `special`.
//!
//! Fused multiply-add is meant everywhere; without the instruction it is a slow library call
//! with the same result, so an element does not change with the loop it stands in.

mod bessel;
pub mod f32x;
pub mod f64x;
mod incomplete;
mod special;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(x: f32) -> i64 {
        let i = x.to_bits() as i32;
        (if i < 0 { i32::MIN.wrapping_sub(i) } else { i }) as i64
    }

    /// Checks one function over about half a million floats of all sizes within [lo, hi].
    fn sweep(name: &str, f: fn(f32) -> f32, exact: fn(f64) -> f64, lo: f32, hi: f32, bound: f64) {
        let (mut worst, mut at) = (0.0, 0.0);
        let mut i = order(lo);
        let step = ((order(hi) - i) / 500_000).max(1);
        while i <= order(hi) {
            let j = if i < 0 {
                (i32::MIN as i64 - i) as i32
            } else {
                i as i32
            };
            let x = f32::from_bits(j as u32);
            i += step;
            let (y, e) = (f(x), exact(x as f64));
            let want = e as f32;
            if y == want || (y.is_nan() && want.is_nan()) {
                continue;
            }
            let unit = (f32::from_bits((want.abs().to_bits()).max(1 << 23) & 0x7f80_0000) as f64)
                * 2f64.powi(-23);
            let off = ((y as f64 - e) / unit).abs();
            // A wrong infinity or NaN has no distance; it must fail.
            if off.is_nan() || off > worst {
                (worst, at) = (off, x);
            }
        }
        println!("{name:8} {worst:.3} at {at:e}");
        assert!(worst <= bound, "{name}: {worst} ulp at {at:e}: {}", f(at));
    }

    #[test]
    fn bounds_in_ulp() {
        let (m, t) = (f32::MAX, f32::from_bits(1));
        sweep("exp", f32x::exp, f64::exp, -m, m, 1.0);
        sweep("exp", f32x::exp, f64::exp, -105.0, -80.0, 1.0);
        sweep("exp", f32x::exp, f64::exp, 0.1, 89.0, 1.0);
        sweep("decay", f32x::decay, f64::exp, -87.336, -0.01, 1.0);
        sweep("exp2", f32x::exp2, f64::exp2, -152.0, -120.0, 1.0);
        sweep("exp2", f32x::exp2, f64::exp2, -m, m, 1.0);
        sweep("exp2", f32x::exp2, f64::exp2, 0.1, 129.0, 1.0);
        sweep("expm1", f32x::expm1, f64::exp_m1, -m, m, 1.5);
        sweep("expm1", f32x::expm1, f64::exp_m1, 0.01, 89.0, 1.5);
        sweep("expm1", f32x::expm1, f64::exp_m1, -20.0, -0.01, 1.5);
        sweep("ln", f32x::ln, f64::ln, 0.0, m, 1.0);
        sweep("ln", f32x::ln, f64::ln, 0.5, 2.0, 1.0);
        sweep("log2", f32x::log2, f64::log2, 0.0, m, 1.2);
        sweep("log2", f32x::log2, f64::log2, 0.5, 2.0, 1.2);
        sweep("log10", f32x::log10, f64::log10, 0.0, m, 0.51);
        sweep("log1p", f32x::log1p, f64::ln_1p, -1.0, m, 1.0);
        sweep("tanh", f32x::tanh, f64::tanh, -m, m, 2.0);
        sweep("tanh", f32x::tanh, f64::tanh, 0.2, 10.0, 2.0);
        sweep(
            "sigmoid",
            f32x::sigmoid,
            |x| 1.0 / (1.0 + (-x).exp()),
            -m,
            m,
            2.5,
        );
        sweep(
            "sigmoid",
            f32x::sigmoid,
            |x| 1.0 / (1.0 + (-x).exp()),
            -105.0,
            -0.1,
            2.5,
        );
        sweep("erf", f32x::erf, libm::erf, -m, m, 1.5);
        sweep("erf", f32x::erf, libm::erf, 0.2, 4.5, 1.5);
        sweep("erfc", f32x::erfc, libm::erfc, -m, m, 0.51);
        sweep("erfc", f32x::erfc, libm::erfc, 0.2, 10.5, 0.51);
        sweep("i1e", f32x::i1e, f64x::i1e, -m, m, 0.51);
        sweep("i1e", f32x::i1e, f64x::i1e, 1e-4, 60.0, 0.51);
        sweep("sin", f32x::sin, f64::sin, -m, m, 0.9);
        sweep("cos", f32x::cos, f64::cos, -m, m, 0.9);
        sweep("tan", f32x::tan, f64::tan, -m, m, 0.51);
        sweep("sin", f32x::sin, f64::sin, 0.01, 1.4e5, 0.9);
        sweep("cos", f32x::cos, f64::cos, 1e8, 1e14, 0.51);
        sweep("asin", f32x::asin, f64::asin, -1.1, 1.1, 0.52);
        sweep("acos", f32x::acos, f64::acos, -1.1, 1.1, 0.52);
        sweep("atan", f32x::atan, f64::atan, -m, m, 0.51);
        sweep("sinh", f32x::sinh, f64::sinh, -m, m, 0.51);
        sweep("sinh", f32x::sinh, f64::sinh, 0.001, 90.0, 0.51);
        sweep("cosh", f32x::cosh, f64::cosh, 0.001, m, 0.51);
        // The standard library's asinh and acosh lose digits near 0 and 1; libm's do not.
        sweep("asinh", f32x::asinh, libm::asinh, -m, m, 0.51);
        sweep("acosh", f32x::acosh, libm::acosh, 0.9, m, 0.51);
        sweep("acosh", f32x::acosh, libm::acosh, 1.0, 1.1, 0.51);
        sweep("atanh", f32x::atanh, libm::atanh, -1.1, 1.1, 0.51);
        sweep("rsqrt", f32x::rsqrt, |x| 1.0 / x.sqrt(), t, m, 1.5);
        sweep(
            "pow",
            |x| f32x::pow(x, 2.7),
            |x| x.powf(2.7f32 as f64),
            0.0,
            m,
            0.51,
        );
        sweep(
            "pow",
            |x| f32x::pow(1.3, x),
            |x| (1.3f32 as f64).powf(x),
            -m,
            m,
            0.51,
        );
        // libm's own erfc is right to about an ulp, and its difference from one loses nothing.
        sweep(
            "erfinv",
            |x| libm::erf(f32x::erfinv(x) as f64) as f32,
            |x| x,
            -0.9,
            0.9,
            2.0,
        );
        sweep("pow", |x| f32x::pow(x, 3.0), |x| x.powf(3.0), -m, m, 0.51);
        sweep(
            "atan2",
            |x| f32x::atan2(x, -0.7),
            |x| x.atan2(-0.7f32 as f64),
            -m,
            m,
            0.51,
        );
    }

    /// The widest distance from the system's library in units in the last place, over numbers
    /// spaced by ratio within [lo, hi] and their negatives where `lo` is negative.
    fn compare(name: &str, f: fn(f64) -> f64, g: fn(f64) -> f64, lo: f64, hi: f64, bound: f64) {
        let mut x = hi;
        while x > hi * 1e-12 && x > lo {
            for x in [x, -x] {
                if x < lo {
                    continue;
                }
                let (y, e) = (f(x), g(x));
                let unit = f64::from_bits(e.abs().to_bits() & 0x7ff << 52) * f64::EPSILON;
                let off = if y == e { 0.0 } else { (y - e).abs() / unit };
                assert!(off <= bound, "{name}({x:e}): {y:e} for {e:e}, {off} ulp");
            }
            x *= 0.9987;
        }
    }

    #[test]
    fn float64_agrees_with_the_system() {
        // Each side is within 2 ulp.
        let b = 3.0;
        compare("exp", f64x::exp, f64::exp, -700.0, 700.0, b);
        compare("exp2", f64x::exp2, f64::exp2, -1000.0, 1000.0, b);
        compare("expm1", f64x::expm1, f64::exp_m1, -50.0, 700.0, b);
        compare("ln", f64x::ln, f64::ln, 1e-300, 1e300, b);
        compare("ln", f64x::ln, f64::ln, 0.5, 2.0, b);
        compare("log2", f64x::log2, f64::log2, 1e-3, 1e6, b);
        compare("log10", f64x::log10, f64::log10, 1e-3, 1e6, b);
        compare("log1p", f64x::log1p, f64::ln_1p, -0.9, 1e6, b);
        compare("sin", f64x::sin, f64::sin, -1e10, 1e10, b);
        compare("cos", f64x::cos, f64::cos, -1e10, 1e10, b);
        compare("tan", f64x::tan, f64::tan, -1e10, 1e10, b);
        compare("asin", f64x::asin, f64::asin, -1.0, 1.0, b);
        compare("acos", f64x::acos, f64::acos, -1.0, 1.0, b);
        compare("atan", f64x::atan, f64::atan, -1e6, 1e6, b);
        compare("sinh", f64x::sinh, f64::sinh, -700.0, 700.0, b);
        compare("cosh", f64x::cosh, f64::cosh, -700.0, 700.0, b);
        compare("tanh", f64x::tanh, f64::tanh, -30.0, 30.0, b);
        compare("asinh", f64x::asinh, libm::asinh, -1e6, 1e6, b + 1.0);
        compare("acosh", f64x::acosh, libm::acosh, 1.0, 1e6, b + 1.0);
        compare("atanh", f64x::atanh, libm::atanh, -0.999, 0.999, b + 1.0);
        compare("erf", f64x::erf, libm::erf, -6.0, 6.0, b);
        compare("erfc", f64x::erfc, libm::erfc, -6.0, 26.0, b + 1.0);
        compare("pow", |x| f64x::pow(x, 2.7), |x| x.powf(2.7), 0.0, 1e100, b);
        compare(
            "pow",
            |x| f64x::pow(1.3, x),
            |x| 1.3f64.powf(x),
            -2e3,
            2e3,
            b,
        );
        compare(
            "atan2",
            |x| f64x::atan2(x, -0.7),
            |x| x.atan2(-0.7),
            -1e6,
            1e6,
            b,
        );
    }

    #[test]
    fn edges() {
        type Unary = (fn(f32) -> f32, fn(f32) -> f32);
        let pairs: [Unary; 18] = [
            (f32x::exp, f32::exp),
            (f32x::exp2, f32::exp2),
            (f32x::expm1, f32::exp_m1),
            (f32x::ln, f32::ln),
            (f32x::log2, f32::log2),
            (f32x::log10, f32::log10),
            (f32x::log1p, f32::ln_1p),
            (f32x::tanh, f32::tanh),
            (f32x::sin, f32::sin),
            (f32x::cos, f32::cos),
            (f32x::tan, f32::tan),
            (f32x::asin, f32::asin),
            (f32x::atan, f32::atan),
            (f32x::sinh, f32::sinh),
            (f32x::cosh, f32::cosh),
            (f32x::asinh, f32::asinh),
            (f32x::acosh, libm::acoshf),
            (f32x::atanh, f32::atanh),
        ];
        let inf = f32::INFINITY;
        let xs = [
            0.0,
            -0.0,
            inf,
            -inf,
            f32::NAN,
            1e-45,
            -1e-45,
            1.0,
            -1.0,
            -2.0,
            200.0,
            -200.0,
        ];
        for (i, (f, g)) in pairs.into_iter().enumerate() {
            for x in xs {
                let (y, e) = (f(x), g(x));
                assert_eq!(y.is_nan(), e.is_nan(), "{i} {x}");
                if y == 0.0 || y.is_infinite() {
                    assert!(
                        y == e && y.is_sign_positive() == e.is_sign_positive(),
                        "{i} {x} {y}"
                    );
                }
            }
        }
        for x in [
            0.0f32,
            -0.0,
            1.0,
            -1.0,
            2.0,
            -3.0,
            0.5,
            -0.5,
            inf,
            -inf,
            f32::NAN,
            1e-45,
        ] {
            for y in [
                0.0f32,
                -0.0,
                1.0,
                -1.0,
                2.0,
                3.0,
                -3.0,
                0.5,
                -2.5,
                inf,
                -inf,
                f32::NAN,
            ] {
                for (a, b) in [
                    (f32x::pow(x, y), x.powf(y)),
                    (f32x::atan2(x, y), x.atan2(y)),
                ] {
                    let near = (a - b).abs() <= b.abs() * 1e-6;
                    assert!(
                        a.to_bits() == b.to_bits() || near || (a.is_nan() && b.is_nan()),
                        "{x} {y}: {a} {b}"
                    );
                }
            }
        }
        // 2^-149 and 2^-1074 are the least numbers, and half of them rounds to zero.
        for (x, y) in [(-103.9, 1e-45), (-103.98, 0.0), (-104.5, 0.0), (-1e30, 0.0)] {
            assert_eq!(f32x::exp(x), y, "{x}");
        }
        for (x, y) in [
            (-745.1, 5e-324),
            (-745.2, 0.0),
            (-746.0, 0.0),
            (-1e300, 0.0),
        ] {
            assert_eq!(f64x::exp(x), y, "{x}");
        }
        assert_eq!((f32x::exp2(-149.0), f32x::exp2(-150.5)), (1e-45, 0.0));
        assert_eq!((f64x::exp2(-1074.0), f64x::exp2(-1075.5)), (5e-324, 0.0));
        assert_eq!((f32x::exp(89.0), f64x::exp(710.0)), (inf, f64::INFINITY));
        assert_eq!(
            (f32x::decay(0.0), f32x::decay(-87.4), f32x::decay(-inf)),
            (1.0, 0.0, 0.0)
        );
        assert_eq!((f64x::decay(0.0), f64x::decay(-709.0)), (1.0, 0.0));
        assert_eq!(f64x::decay(f64::NEG_INFINITY), 0.0);
        assert!(f32x::decay(f32::NAN).is_nan() && f64x::decay(f64::NAN).is_nan());
        assert!(f32x::decay(-87.336) >= f32::MIN_POSITIVE);
        assert!(f64x::decay(-708.396) >= f64::MIN_POSITIVE);
        assert_eq!((f64x::erfc(27.22), f64x::erfc(27.3)), (5e-324, 0.0));
        assert_eq!(f32x::log2(8.0), 3.0);
        assert_eq!(f32x::log10(1000.0), 3.0);
        assert_eq!(f32x::sigmoid(-100.0), 3.8e-44);
    }

    #[test]
    fn special_functions() {
        let near = |y: f64, e: f64, tol: f64| {
            assert!((y - e).abs() <= tol * e.abs(), "{y:e} {e:e}");
        };
        // Computed with mpmath at 40 digits.
        near(f64x::digamma(0.3), -3.502_524_222_200_133, 1e-15);
        near(f64x::digamma(-3.7), -0.845_076_858_870_419_4, 1e-14);
        near(f64x::digamma(1e6), 13.815_510_057_964_191, 1e-15);
        near(f64x::trigamma(0.3), 12.245_364_546_107_732, 1e-15);
        near(f64x::trigamma(-3.7), 14.842_421_864_124_28, 1e-13);
        near(f64x::polygamma(3, 2.5), 0.223_905_848_817_252_06, 1e-14);
        near(f64x::polygamma(2, -1.5), -0.236_204_051_641_727_4, 1e-10);
        near(f64x::zeta(3.0, 0.2), 125.739_018_057_217_95, 1e-14);
        near(f64x::erfinv(0.5), 0.476_936_276_204_469_9, 1e-15);
        near(f64x::erfinv(-0.999_999), -3.458_910_737_275_499, 1e-14);
        near(f64x::erfinv(1e-12), 8.862_269_254_527_581e-13, 1e-15);
        near(f64x::ndtri(0.01), -2.326_347_874_040_841, 1e-14);
        near(f64x::ndtri(1e-300), -37.047_096_299_361_2, 1e-13);
        near(f64x::i0(3.0), 4.880_792_585_865_024_5, 1e-15);
        near(f64x::i0e(50.0), 0.056_561_626_647_454_19, 1e-13);
        near(f64x::i1(3.0), 3.953_370_217_402_609_3, 1e-15);
        near(f64x::i1e(-50.0), -0.055_993_123_892_895_4, 1e-13);
        near(f64x::igamma(2.5, 1.0), 0.150_854_963_915_390_36, 1e-13);
        near(f64x::igammac(2.5, 10.0), 0.001_249_730_563_031_375_3, 1e-12);
        near(f64x::igamma(1e4, 1.01e4), 0.841_348_750_447_179_6, 1e-12);
        assert_eq!(f64x::digamma(0.0), f64::NEG_INFINITY);
        assert_eq!(f64x::digamma(-0.0), f64::INFINITY);
        assert!(f64x::digamma(-2.0).is_nan() && f64x::erfinv(1.5).is_nan());
        assert_eq!(f64x::erfinv(1.0), f64::INFINITY);
        assert_eq!(f32x::erfinv(-1.0), f32::NEG_INFINITY);
        assert_eq!(f64x::ndtri(0.0), f64::NEG_INFINITY);
        assert_eq!(f64x::igamma(0.0, 1.0), 1.0);
        assert!(f64x::igamma(-1.0, 1.0).is_nan());
    }
}
