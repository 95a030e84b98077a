//! Formulas as shader text: straight-line code in which every value has a name once.
//!
//! The text is for the `pointwise` shader: it defines `fn op(a0: Acc, ...) -> Acc`, calls the `m_`
//! functions of the compute type's file, and reads the op's parameters as `scalar(k)`, so that one
//! text serves all their values.

use super::{Pointwise, Real, Special, Special2, Types};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

/// A shader function and the numbers that its `scalar(k)` stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub text: String,
    pub scalars: Vec<f64>,
    /// Whether the text also means the op on integers: it neither divides nor has a fraction.
    pub integers: bool,
}

/// The op over `a0`, `a1`, ...; `None` where a function in it has no shader counterpart.
pub fn forward<P: Pointwise<N>, const N: usize>(op: &P) -> Option<Body> {
    // Formulas over bits exist for integers only.
    if P::TYPES == Types::IntOnly {
        return None;
    }
    body(N, || op.f(std::array::from_fn(argument)))
}

/// The gradient of input `i` over the result's gradient `a0`, the result `a1` and the inputs
/// `a2`, `a3`, ...
pub fn gradient<P: Pointwise<N>, const N: usize>(op: &P, i: usize) -> Option<Body> {
    if P::TYPES == Types::IntOnly || P::OPAQUE >> i & 1 == 1 {
        return None;
    }
    body(N + 2, || {
        let x = std::array::from_fn(|j| argument(j + 2));
        op.df(x, argument(1), argument(0))[i]
    })
}

/// A value of the text, by its place among the statements.
#[derive(Clone, Copy)]
pub struct Wgsl(usize);

/// A truth value of the text.
#[derive(Clone, Copy)]
pub struct Truth(usize);

#[derive(Default)]
struct Code {
    lines: Vec<String>,
    seen: HashMap<String, usize>,
    scalars: Vec<f64>,
    missing: bool,
    fractions: bool,
}

thread_local!(static CODE: RefCell<Code> = RefCell::default());

fn emit(line: String) -> usize {
    CODE.with_borrow_mut(|code| match code.seen.get(&line) {
        Some(&at) => at,
        None => {
            code.lines.push(line.clone());
            code.seen.insert(line, code.lines.len() - 1);
            code.lines.len() - 1
        }
    })
}

fn argument(i: usize) -> Wgsl {
    Wgsl(emit(format!("a{i}")))
}

fn body(arguments: usize, formula: impl FnOnce() -> Wgsl) -> Option<Body> {
    CODE.with_borrow_mut(|code| *code = Code::default());
    let result = formula();
    let code = CODE.take();
    if code.missing {
        return None;
    }
    let names: Vec<String> = (0..arguments).map(|i| format!("a{i}: Acc")).collect();
    let mut text = format!("fn op({}) -> Acc {{\n", names.join(", "));
    for (i, line) in code.lines.iter().enumerate() {
        let _ = writeln!(text, "    let t{i} = {line};");
    }
    let _ = write!(text, "    return t{};\n}}\n", result.0);
    let integers = !code.fractions && code.scalars.iter().all(|v| v.trunc() == *v);
    Some(Body {
        text,
        scalars: code.scalars,
        integers,
    })
}

fn unsupported(x: Wgsl) -> Wgsl {
    CODE.with_borrow_mut(|code| code.missing = true);
    x
}

fn fraction() {
    CODE.with_borrow_mut(|code| code.fractions = true);
}

macro_rules! operators {
    ($($tr:ident $m:ident $op:literal;)*) => { $(
        impl std::ops::$tr for Wgsl {
            type Output = Wgsl;
            fn $m(self, o: Wgsl) -> Wgsl {
                Wgsl(emit(format!(concat!("t{} ", $op, " t{}"), self.0, o.0)))
            }
        }
    )* };
}
operators! { Add add "+"; Sub sub "-"; Mul mul "*"; }

impl std::ops::Div for Wgsl {
    type Output = Wgsl;
    fn div(self, o: Wgsl) -> Wgsl {
        fraction();
        Wgsl(emit(format!("t{} / t{}", self.0, o.0)))
    }
}

impl std::ops::Neg for Wgsl {
    type Output = Wgsl;
    fn neg(self) -> Wgsl {
        Wgsl(emit(format!("m_neg(t{})", self.0)))
    }
}

macro_rules! calls {
    ($($f:ident)*) => { $(
        fn $f(self) -> Wgsl {
            Wgsl(emit(format!(concat!("m_", stringify!($f), "(t{})"), self.0)))
        }
    )* };
}

macro_rules! calls_of_two {
    ($($f:ident)*) => { $(
        fn $f(self, o: Wgsl) -> Wgsl {
            Wgsl(emit(format!(concat!("m_", stringify!($f), "(t{}, t{})"), self.0, o.0)))
        }
    )* };
}

impl Real for Wgsl {
    type Mask = Truth;

    fn lit(v: f64) -> Wgsl {
        if v.trunc() != v {
            fraction();
        }
        Wgsl(emit(match v {
            v if v.is_nan() => "m_nan()".into(),
            v if v == f64::INFINITY => "m_inf()".into(),
            v if v == f64::NEG_INFINITY => "-m_inf()".into(),
            // Integers have no point, so that the text is good for integer types too.
            v if v.trunc() == v && v.abs() < 1e6 => format!("Acc({v})"),
            v => format!("Acc({v:?})"),
        }))
    }
    fn param(v: f64) -> Wgsl {
        let k = CODE.with_borrow_mut(|code| {
            code.scalars.push(v);
            code.scalars.len() - 1
        });
        Wgsl(emit(format!("scalar({k}u)")))
    }
    fn lt(self, o: Wgsl) -> Truth {
        Truth(emit(format!("t{} < t{}", self.0, o.0)))
    }
    fn le(self, o: Wgsl) -> Truth {
        Truth(emit(format!("t{} <= t{}", self.0, o.0)))
    }
    fn equal(self, o: Wgsl) -> Truth {
        Truth(emit(format!("t{} == t{}", self.0, o.0)))
    }
    fn is_nan(self) -> Truth {
        Truth(emit(format!("m_is_nan(t{})", self.0)))
    }
    fn both(a: Truth, b: Truth) -> Truth {
        Truth(emit(format!("t{} && t{}", a.0, b.0)))
    }
    fn either(a: Truth, b: Truth) -> Truth {
        Truth(emit(format!("t{} || t{}", a.0, b.0)))
    }
    fn not(a: Truth) -> Truth {
        Truth(emit(format!("!t{}", a.0)))
    }
    fn select(m: Truth, yes: Wgsl, no: Wgsl) -> Wgsl {
        Wgsl(emit(format!("select(t{}, t{}, t{})", no.0, yes.0, m.0)))
    }
    calls! {
        abs sqrt rsqrt floor ceil trunc round exp exp2 expm1 ln log2 log10 log1p sin cos tan asin
        acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma sign
    }
    calls_of_two! { pow atan2 fmod copysign min max }
    fn polygamma(self, n: u32) -> Wgsl {
        Wgsl(emit(format!("m_polygamma({n}u, t{})", self.0)))
    }
    fn special(self, _f: Special) -> Wgsl {
        unsupported(self)
    }
    fn special2(self, _o: Wgsl, _f: Special2) -> Wgsl {
        unsupported(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{activation::*, binary::*, special::*, unary::*};
    use super::*;
    use crate::dtype::Scalar;

    #[test]
    fn forward_shares_subexpressions() {
        let body = forward(&Silu).unwrap();
        assert_eq!(
            body.text,
            "fn op(a0: Acc) -> Acc {\n    let t0 = a0;\n    let t1 = m_sigmoid(t0);\n    \
             let t2 = t0 * t1;\n    return t2;\n}\n"
        );
        assert!(body.scalars.is_empty());
    }

    #[test]
    fn parameters_are_scalars_not_text() {
        let at = |alpha| {
            forward(&Add {
                alpha: Scalar::Float(alpha),
            })
            .unwrap()
        };
        assert_eq!(at(2.5).text, at(-3.0).text);
        assert_eq!(at(2.5).scalars, [2.5]);
        let op = Elu {
            alpha: 1.0,
            scale: 2.0,
            input_scale: 3.0,
        };
        assert!(gradient(&op, 0)
            .unwrap()
            .text
            .starts_with("fn op(a0: Acc, a1: Acc, a2: Acc)"));
    }

    #[test]
    fn special_functions_have_no_text() {
        assert!(forward(&I0).is_none() && forward(&Gcd).is_none() && forward(&Sinc).is_some());
    }
}
