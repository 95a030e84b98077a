//! Shader text as numbers: a formula over [`Wgsl`] is the body of a GPU kernel. Equal
//! subexpressions get one name, so each is written and computed once.

use super::{Real, Special, Special2};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::pointwise::pointwise;
use crate::gpu::View;
use crate::gpu::{Acc, Gpu};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::transfer::{ran, view};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The name of a value in the text: a number or, as a mask, a truth value.
#[derive(Clone, Copy)]
pub struct Wgsl(u32);

struct Text {
    acc: Acc,
    lines: String,
    names: HashMap<String, u32>,
    scalars: SmallVec<[[u32; 2]; 8]>,
    /// Whether everything so far has a text in this type.
    complete: bool,
}

thread_local!(static TEXT: RefCell<Option<Text>> = const { RefCell::new(None) });

fn with<R>(f: impl FnOnce(&mut Text) -> R) -> R {
    TEXT.with_borrow_mut(|t| {
        f(t.get_or_insert_with(|| Text {
            acc: Acc::F32,
            lines: String::new(),
            names: HashMap::new(),
            scalars: SmallVec::new(),
            complete: true,
        }))
    })
}

impl Text {
    fn name(&mut self, value: String) -> Wgsl {
        let next = self.names.len() as u32;
        if let Some(&n) = self.names.get(&value) {
            return Wgsl(n);
        }
        let _ = writeln!(self.lines, "    let t{next} = {value};");
        self.names.insert(value, next);
        Wgsl(next)
    }

    fn is_int(&self) -> bool {
        matches!(self.acc, Acc::I32 | Acc::I64)
    }

    fn scalar(&mut self, words: [u32; 2]) -> Wgsl {
        let at = self.scalars.iter().position(|w| *w == words);
        let at = at.unwrap_or_else(|| {
            self.scalars.push(words);
            self.scalars.len() - 1
        });
        self.name(format!("scalar({at}u)"))
    }
}

/// A value by its text.
pub fn emit(value: String) -> Wgsl {
    with(|t| t.name(value))
}

/// A value that integers do not have; the formula then has no text for them.
fn float_only(value: impl FnOnce() -> String, x: Wgsl) -> Wgsl {
    with(|t| {
        if t.is_int() {
            t.complete = false;
            return x;
        }
        t.name(value())
    })
}

/// A value without a shader function.
fn missing(x: Wgsl) -> Wgsl {
    with(|t| t.complete = false);
    x
}

/// A shader function and what its `scalar(k)` stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub text: String,
    pub scalars: SmallVec<[[u32; 2]; 8]>,
}

/// The formula over arguments that are tensors (`None`) or numbers. No text where it has none in
/// this type.
pub fn body(acc: Acc, x: &[Option<[u32; 2]>], formula: &dyn Fn(&[Wgsl]) -> Wgsl) -> Option<Body> {
    with(|t| {
        t.acc = acc;
        t.lines.clear();
        t.names.clear();
        t.scalars.clear();
        t.complete = true;
    });
    let mut tensors = 0;
    let mut parameters = String::new();
    let args: SmallVec<[Wgsl; 6]> = x
        .iter()
        .map(|x| match x {
            Some(words) => with(|t| t.scalar(*words)),
            None => {
                let comma = if tensors == 0 { "" } else { ", " };
                let _ = write!(parameters, "{comma}a{tensors}: Acc");
                tensors += 1;
                emit(format!("a{}", tensors - 1))
            }
        })
        .collect();
    let result = formula(&args).0;
    with(|t| {
        t.complete.then(|| Body {
            text: format!(
                "fn op({parameters}) -> Acc {{\n{}    return t{result};\n}}\n",
                t.lines
            ),
            scalars: t.scalars.clone(),
        })
    })
}

/// Computes `y` from `x` on the GPU by the formula; false where it has no kernel in this type.
/// Operands on the CPU have one element and become parameters.
pub fn launch(
    gpu: &Gpu,
    acc: Acc,
    x: &[&Tensor],
    y: &Tensor,
    formula: &dyn Fn(&[Wgsl]) -> Wgsl,
) -> Result<bool> {
    let on_gpu = |t: &Tensor| t.storage().buffer().is_some();
    let args: SmallVec<[Option<[u32; 2]>; 6]> = x
        .iter()
        .map(|t| match on_gpu(t) {
            true => Ok(None),
            false => t.item().map(|v| Some(words(acc, v))),
        })
        .collect::<Result<_>>()?;
    let Some(body) = body(acc, &args, formula) else {
        return Ok(false);
    };
    // Only kernels in float64 can read it.
    let read = |t: &Tensor| match t.dtype() == DType::F64 && acc != Acc::F64 {
        true => t.to_dtype(DType::F32),
        false => Ok(t.clone()),
    };
    let layouts: SmallVec<[(Tensor, Layout); 6]> = x
        .iter()
        .filter(|t| on_gpu(t))
        .map(|t| read(t).map(|t| (t.clone(), t.layout().expand_to(y.shape()))))
        .collect::<Result<_>>()?;
    let views: SmallVec<[View; 6]> = layouts
        .iter()
        .map(|(t, l)| view(t, l))
        .collect::<Result<_>>()?;
    let to = view(y, y.layout())?;
    ran(pointwise(gpu, acc, &body.text, &views, to, &body.scalars))
}

fn words(acc: Acc, v: Scalar) -> [u32; 2] {
    match v {
        Scalar::Float(v) => acc.words(v),
        other => acc.int_words(other.i64()),
    }
}

macro_rules! operators {
    ($($tr:ident $m:ident $sign:literal;)*) => { $(
        impl $tr for Wgsl {
            type Output = Wgsl;
            fn $m(self, o: Wgsl) -> Wgsl {
                emit(format!(concat!("t{} ", $sign, " t{}"), self.0, o.0))
            }
        }
    )* };
}
operators! {
    Add add "+";
    Sub sub "-";
    Mul mul "*";
}
impl Div for Wgsl {
    type Output = Wgsl;
    fn div(self, o: Wgsl) -> Wgsl {
        float_only(|| format!("t{} / t{}", self.0, o.0), self)
    }
}
impl Neg for Wgsl {
    type Output = Wgsl;
    fn neg(self) -> Wgsl {
        emit(format!("m_neg(t{})", self.0))
    }
}

macro_rules! compared {
    ($($m:ident $sign:literal;)*) => { $(
        fn $m(self, o: Wgsl) -> Wgsl {
            emit(format!(concat!("t{} ", $sign, " t{}"), self.0, o.0))
        }
    )* };
}

/// Functions of the math files that every type has, and those of floating types.
macro_rules! functions {
    (any: $($a:ident)*; float: $($f:ident)*; pairs: $($p:ident)*; whole: $($w:ident)*;) => {
        $(fn $a(self) -> Wgsl {
            emit(format!(concat!("m_", stringify!($a), "(t{})"), self.0))
        })*
        $(fn $f(self) -> Wgsl {
            float_only(|| format!(concat!("m_", stringify!($f), "(t{})"), self.0), self)
        })*
        $(fn $p(self, o: Wgsl) -> Wgsl {
            emit(format!(concat!("m_", stringify!($p), "(t{}, t{})"), self.0, o.0))
        })*
        // Integers are whole already.
        $(fn $w(self) -> Wgsl {
            with(|t| match t.is_int() {
                true => self,
                false => t.name(format!(concat!("m_", stringify!($w), "(t{})"), self.0)),
            })
        })*
    };
}

impl Real for Wgsl {
    type Mask = Wgsl;

    fn lit(v: f64) -> Wgsl {
        with(|t| {
            if t.is_int() {
                t.complete &= v.fract() == 0.0 && v.abs() < 2147483648.0;
                return t.name(format!("Acc({})", v as i64));
            }
            let finite = match t.acc {
                Acc::F32 => (v as f32).is_finite(),
                _ => v.is_finite(),
            };
            if finite && t.acc == Acc::F32 {
                return t.name(format!("Acc({:?})", v as f32));
            }
            // By its bits: shaders have no infinity, and a plain number is a float32.
            let [lo, hi] = t.acc.words(v);
            t.name(format!("from_words({lo}u, {hi}u)"))
        })
    }

    fn param(v: f64) -> Wgsl {
        with(|t| {
            // An integer beyond 2^53 may have been another one.
            let exact = v.fract() == 0.0 && v.abs() < 9007199254740992.0;
            t.complete &= !t.is_int() || exact;
            let words = match t.is_int() {
                true => t.acc.int_words(v as i64),
                false => t.acc.words(v),
            };
            t.scalar(words)
        })
    }

    compared! {
        lt "<";
        le "<=";
        gt ">";
        ge ">=";
        equal "==";
    }

    fn is_nan(self) -> Wgsl {
        emit(format!("m_is_nan(t{})", self.0))
    }
    fn both(a: Wgsl, b: Wgsl) -> Wgsl {
        emit(format!("t{} && t{}", a.0, b.0))
    }
    fn either(a: Wgsl, b: Wgsl) -> Wgsl {
        emit(format!("t{} || t{}", a.0, b.0))
    }
    fn not(a: Wgsl) -> Wgsl {
        emit(format!("!t{}", a.0))
    }
    fn select(m: Wgsl, yes: Wgsl, no: Wgsl) -> Wgsl {
        emit(format!("select(t{}, t{}, t{})", no.0, yes.0, m.0))
    }

    functions! {
        any: abs sign;
        float: sqrt rsqrt exp exp2 expm1 ln log2 log10 log1p sin cos tan asin acos atan sinh cosh
            tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma;
        pairs: min max fmod pow;
        whole: floor ceil trunc round;
    }

    fn polygamma(self, n: u32) -> Wgsl {
        float_only(|| format!("m_polygamma({n}u, t{})", self.0), self)
    }
    fn atan2(self, x: Wgsl) -> Wgsl {
        float_only(|| format!("m_atan2(t{}, t{})", self.0, x.0), self)
    }
    fn copysign(self, sign: Wgsl) -> Wgsl {
        float_only(|| format!("m_copysign(t{}, t{})", self.0, sign.0), self)
    }
    fn special(self, _f: Special) -> Wgsl {
        missing(self)
    }
    fn special2(self, _o: Wgsl, _f: Special2) -> Wgsl {
        missing(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::activation::*;
    use super::super::binary::{Add, Mul};
    use super::super::special::*;
    use super::super::unary::*;
    use super::super::Pointwise;
    use super::*;

    fn forward<P: Pointwise<N>, const N: usize>(op: &P, acc: Acc) -> Option<Body> {
        body(acc, &[None; N], &|x| op.f(std::array::from_fn(|i| x[i])))
    }

    #[test]
    fn body_shares_subexpressions() {
        let body = forward(&Silu, Acc::F32).unwrap();
        assert_eq!(
            body.text,
            "fn op(a0: Acc) -> Acc {\n    let t0 = a0;\n    let t1 = m_sigmoid(t0);\n    \
             let t2 = t0 * t1;\n    return t2;\n}\n"
        );
        assert!(body.scalars.is_empty());
    }

    #[test]
    fn body_parameters_are_scalars_not_text() {
        let at = |alpha| {
            let alpha = Scalar::Float(alpha);
            forward(&Add { alpha }, Acc::F32).unwrap()
        };
        assert_eq!(at(2.5).text, at(-3.0).text);
        assert_eq!(at(2.5).scalars[..], [[2.5f32.to_bits(), 0]]);
    }

    #[test]
    fn body_numbers_take_no_tensor() {
        let body = body(Acc::I32, &[None, Some([7, 0])], &|x| Mul.f([x[0], x[1]])).unwrap();
        assert!(body.text.starts_with("fn op(a0: Acc) -> Acc {"));
        assert!(body.text.contains("scalar(0u)"));
    }

    #[test]
    fn body_without_shader_function_is_none() {
        assert!(forward(&I0, Acc::F32).is_none());
        assert!(forward(&Sinc, Acc::F32).is_some());
        assert!(forward(&Exp, Acc::I32).is_none());
        assert!(forward(&Floor, Acc::I32).is_some());
    }
}
