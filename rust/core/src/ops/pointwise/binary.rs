//! Functions of two tensors, which broadcast against each other.

use super::{c, k};
use crate::bail;
use crate::dtype::{DType, Scalar};
use crate::pointwise;

fn alpha_fits(alpha: Scalar, t: DType) -> crate::error::Result<()> {
    if t == DType::Bool && !matches!(alpha, Scalar::Bool(_)) && alpha != Scalar::Int(1) {
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

/// Whether the scalar is one, so that a gradient passes unchanged.
fn is_one(s: Scalar) -> bool {
    s.f64() == 1.0
}

pointwise! {
    /// x + alpha * y.
    op Add { alpha: Scalar }[2] = "AddBackward0", Same;
    f |p, [x, y]| if is_one(p.alpha) { x + y } else { x + k::<R>(p.alpha.f64()) * y };
    int |p, [x, y]| x.wrapping_add(y.wrapping_mul(p.alpha.i64()));
    df |p, _, _, g| [0, false] g, [0, false] g * k(p.alpha.f64());
    check |p, t| alpha_fits(p.alpha, t);
    direct |p, i, g| (i == 0 || is_one(p.alpha)).then(|| Ok(g.clone()));

    /// x - alpha * y. Bool raises.
    op Sub { alpha: Scalar }[2] = "SubBackward0", Same;
    f |p, [x, y]| if is_one(p.alpha) { x - y } else { x - k::<R>(p.alpha.f64()) * y };
    int |p, [x, y]| x.wrapping_sub(y.wrapping_mul(p.alpha.i64()));
    df |p, _, _, g| [0, false] g, [0, false] -g * k(p.alpha.f64());
    check |p, t| if t == DType::Bool {
        bail!(
            Runtime,
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` \
             or `logical_xor()` operator instead."
        )
    } else {
        alpha_fits(p.alpha, t)
    };
    direct |_, i, g| (i == 0).then(|| Ok(g.clone()));

    /// x * y.
    op Mul[2] = "MulBackward0", Same;
    f |_, [x, y]| x * y;
    int |_, [x, y]| x.wrapping_mul(y);
    df |_, [x, y], _, g| [2, false] g * y, [1, false] g * x;

    /// x / y; integers become floating.
    op Div[2] = "DivBackward0", Float;
    f |_, [x, y]| x / y;
    df |_, [x, y], _, g| [2, false] g / y, [3, false] -g * ((x / y) / y);

    /// x ** y.
    op Pow[2] = "PowBackward1", Same;
    f |_, [x, y]| x.pow(y);
    int |_, [x, y]| int_pow(x, y);
    df |_, [x, y], r, g|
        [3, false] R::select(y.equal(c(0.0)), c(0.0), g * (y * x.pow(y - c(1.0)))),
        [3, true] g * R::select(
            R::either(r.equal(c(0.0)), R::both(x.equal(c(0.0)), y.ge(c(0.0)))), c(0.0),
            r * R::select(x.equal(c(0.0)), c(1.0), x).ln());

    /// The angle of the point (y, x) in radians; the first argument is the ordinate.
    op Atan2[2] = "Atan2Backward0", Float;
    f |_, [y, x]| y.atan2(x);
    df |_, [y, x], _, g|
        [3, false] g * (x / (x * x + y * y)),
        [3, false] -g * (y / (x * x + y * y));

    /// The remainder with the sign of x.
    op Fmod[2] = "FmodBackward0", Same;
    f |_, [x, y]| x.fmod(y);
    int |_, [x, y]| if y == 0 { 0 } else { x.wrapping_rem(y) };
    df |_, [x, y], _, g| [0, false] g, [3, false] -g * (x / y).trunc();

    /// |x| with the sign of y.
    op Copysign[2] = "CopysignBackward0", Float;
    f |_, [x, y]| x.copysign(y);
    df |_, [x, _y], r, g|
        [1, true] R::select(x.equal(c(0.0)), c(0.0), g * (r / x)), [0, false] c(0.0);

    /// The larger; NaN if either is. A tie shares the gradient.
    op Maximum[2] = "MaximumBackward0", Same;
    f |_, [x, y]| x.max(y);
    int |_, [x, y]| x.max(y);
    df |_, [x, y], _, g|
        [3, false] g * (R::of(x.gt(y)) + c::<R>(0.5) * R::of(x.equal(y))),
        [3, false] g * (R::of(y.gt(x)) + c::<R>(0.5) * R::of(x.equal(y)));

    /// The smaller; NaN if either is. A tie shares the gradient.
    op Minimum[2] = "MinimumBackward0", Same;
    f |_, [x, y]| x.min(y);
    int |_, [x, y]| x.min(y);
    df |_, [x, y], _, g|
        [3, false] g * (R::of(x.lt(y)) + c::<R>(0.5) * R::of(x.equal(y))),
        [3, false] g * (R::of(y.lt(x)) + c::<R>(0.5) * R::of(x.equal(y)));

    /// x < y.
    op Lt[2] = "LtBackward0", Bool;
    f |_, [x, y]| R::of(x.lt(y));
    int |_, [x, y]| (x < y) as i64;
    df |_, _, _, _g| [0, false] c(0.0), [0, false] c(0.0);

    /// x <= y.
    op Le[2] = "LeBackward0", Bool;
    f |_, [x, y]| R::of(x.le(y));
    int |_, [x, y]| (x <= y) as i64;
    df |_, _, _, _g| [0, false] c(0.0), [0, false] c(0.0);

    /// x == y.
    op Eq[2] = "EqBackward0", Bool;
    f |_, [x, y]| R::of(x.equal(y));
    int |_, [x, y]| (x == y) as i64;
    df |_, _, _, _g| [0, false] c(0.0), [0, false] c(0.0);

    /// Whether both are nonzero.
    op LogicalAnd[2] = "LogicalAndBackward0", Bool;
    f |_, [x, y]| R::of(R::not(R::either(x.equal(c(0.0)), y.equal(c(0.0)))));
    int |_, [x, y]| (x != 0 && y != 0) as i64;
    df |_, _, _, _g| [0, false] c(0.0), [0, false] c(0.0);

    /// Whether either is nonzero.
    op LogicalOr[2] = "LogicalOrBackward0", Bool;
    f |_, [x, y]| R::of(R::not(R::both(x.equal(c(0.0)), y.equal(c(0.0)))));
    int |_, [x, y]| (x != 0 || y != 0) as i64;
    df |_, _, _, _g| [0, false] c(0.0), [0, false] c(0.0);
}

/// Integer power with wrapping; a negative exponent gives 0 except for bases 1 and -1.
fn int_pow(x: i64, e: i64) -> i64 {
    if e >= 0 {
        let (mut base, mut e, mut out) = (x, e as u64, 1i64);
        while e > 0 {
            if e & 1 == 1 {
                out = out.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            e >>= 1;
        }
        return out;
    }
    match x {
        1 => 1,
        -1 => {
            if e % 2 == 0 {
                1
            } else {
                -1
            }
        }
        _ => 0,
    }
}
