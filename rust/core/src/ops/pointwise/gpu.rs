//! Shader text as numbers: a formula over [`Wgsl`] is the body of a GPU kernel. Equal
//! subexpressions get one name, so each is written and computed once.

use super::{Half, Polynomial, Real, Special, Special2};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::key::{key, Key, Map};
use crate::gpu::pointwise::numbered;
use crate::gpu::{Acc, Gpu, Tail, View};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::transfer::{ran, view};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::rc::Rc;

/// The number of a value in the text: a number or, as a mask, a truth value.
#[derive(Clone, Copy)]
pub struct Wgsl(u32);

/// How a value comes from those before it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Value {
    Input(u32),
    /// The k-th number among the parameters.
    Scalar(u32),
    /// The number whose parts are the k-th and the next one.
    Pair(u32),
    /// Number `v` of the type computed in, by the bits of a float64.
    Number(u64),
    Infix(&'static str, u32, u32),
    Call(&'static str, SmallVec<[u32; 3]>),
    /// `m_polygamma` of this order.
    Polygamma(u32, u32),
    Not(u32),
    /// Text of the op's own.
    Own(&'static str),
}

/// A formula as it is read: its values in order, each once. The text is made of them where these
/// values were not seen before, so that a call costs no text.
struct Trace {
    acc: Acc,
    values: Vec<Value>,
    numbers: Map<Value, u32>,
    scalars: SmallVec<[[u32; 2]; 8]>,
    /// How many of them are arguments.
    operands: usize,
    /// Whether everything so far has a text in this type.
    complete: bool,
    /// Texts by type, values and result.
    texts: Map<Key, Rc<str>>,
}

thread_local!(static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) });

fn with<R>(f: impl FnOnce(&mut Trace) -> R) -> R {
    TRACE.with_borrow_mut(|t| {
        f(t.get_or_insert_with(|| Trace {
            acc: Acc::F32,
            values: Vec::new(),
            numbers: Map::default(),
            scalars: SmallVec::new(),
            operands: 0,
            complete: true,
            texts: Map::default(),
        }))
    })
}

impl Trace {
    fn value(&mut self, value: Value) -> Wgsl {
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        Wgsl(number)
    }

    fn is_complex(&self) -> bool {
        self.acc.is_complex()
    }

    fn is_int(&self) -> bool {
        matches!(self.acc, Acc::I32 | Acc::I64)
    }

    /// An argument that is a number; the first scalars are these, in their order.
    fn operand(&mut self, number: Number) -> Wgsl {
        let first = self.scalars.len() as u32;
        self.scalars.extend_from_slice(number.scalars());
        self.operands = self.scalars.len();
        self.value(match number.count {
            1 => Value::Scalar(first),
            _ => Value::Pair(first),
        })
    }

    fn scalar(&mut self, words: [u32; 2]) -> Wgsl {
        // What an argument is may be another number in the next call.
        let own = &self.scalars[self.operands..];
        let at = own.iter().position(|w| *w == words).unwrap_or(own.len());
        if at == own.len() {
            self.scalars.push(words);
        }
        self.value(Value::Scalar((self.operands + at) as u32))
    }

    /// A number, with the bits that it has in the type.
    fn number(&self, v: f64) -> String {
        if self.is_int() {
            return format!("Acc({})", v as i64);
        }
        if self.acc == Acc::F32 && (v as f32).is_finite() {
            return format!("Acc({:?})", v as f32);
        }
        // By its bits: shaders have no infinity, and a plain number is a float32.
        let [lo, hi] = self.acc.words(v);
        format!("from_words({lo}u, {hi}u)")
    }

    /// Products that a driver could join with the sum that they are part of, and round once.
    fn summed(&self) -> HashSet<u32> {
        let mut parts = HashSet::new();
        if !matches!(self.acc, Acc::F32 | Acc::F64) {
            return parts;
        }
        for value in &self.values {
            if let Value::Infix("+" | "-", a, b) = value {
                parts.extend([*a, *b]);
            }
        }
        // A sign is no more than a part of the sum.
        for (n, value) in self.values.iter().enumerate().rev() {
            if let (Value::Call("m_neg", args), true) = (value, parts.contains(&(n as u32))) {
                parts.insert(args[0]);
            }
        }
        parts
    }

    fn text(&self, inputs: usize, result: u32) -> String {
        let summed = self.summed();
        let names: Vec<String> = (0..inputs).map(|i| format!("a{i}: Acc")).collect();
        let mut out = format!("fn op({}) -> Acc {{\n", names.join(", "));
        for (n, value) in self.values.iter().enumerate() {
            let _ = write!(out, "    let t{n} = ");
            let _ = match value {
                Value::Input(i) => write!(out, "a{i}"),
                Value::Scalar(k) => write!(out, "scalar({k}u)"),
                Value::Pair(k) => write!(out, "of_parts(scalar({k}u), scalar({}u))", k + 1),
                Value::Number(bits) => out.write_str(&self.number(f64::from_bits(*bits))),
                Value::Infix("*", a, b) if summed.contains(&(n as u32)) => {
                    write!(out, "apart(t{a} * t{b}, zero_word())")
                }
                Value::Infix(sign, a, b) => write!(out, "t{a} {sign} t{b}"),
                Value::Call(name, args) => {
                    let args: Vec<String> = args.iter().map(|a| format!("t{a}")).collect();
                    write!(out, "{name}({})", args.join(", "))
                }
                Value::Polygamma(order, a) => write!(out, "m_polygamma({order}u, t{a})"),
                Value::Not(a) => write!(out, "!t{a}"),
                Value::Own(text) => out.write_str(text),
            };
            out.push_str(";\n");
        }
        let _ = writeln!(out, "    return t{result};\n}}");
        out
    }
}

/// A value by a text of the op's own.
pub fn own(text: &'static str) -> Wgsl {
    with(|t| t.value(Value::Own(text)))
}

fn call(name: &'static str, args: &[Wgsl]) -> Wgsl {
    let args = args.iter().map(|a| a.0).collect();
    with(|t| t.value(Value::Call(name, args)))
}

fn infix(sign: &'static str, a: Wgsl, b: Wgsl) -> Wgsl {
    with(|t| t.value(Value::Infix(sign, a.0, b.0)))
}

/// A sign of the shader language, or the function that stands for it where numbers are pairs.
fn infix_or(sign: &'static str, pairs: &'static str, a: Wgsl, b: Wgsl) -> Wgsl {
    match with(|t| t.is_complex()) {
        true => call(pairs, &[a, b]),
        false => infix(sign, a, b),
    }
}

/// What drivers do not do as IEEE 754 says: a function of the type's prelude in the place of a sign.
fn exact(sign: &'static str, float: &'static str, pairs: &'static str, a: Wgsl, b: Wgsl) -> Wgsl {
    match with(|t| t.acc) {
        Acc::F32 | Acc::F64 => call(float, &[a, b]),
        Acc::C64 | Acc::C128 => call(pairs, &[a, b]),
        Acc::I32 | Acc::I64 => infix(sign, a, b),
    }
}

/// A value that integers do not have; the formula then has no text for them.
fn float_only(value: impl FnOnce() -> Wgsl, x: Wgsl) -> Wgsl {
    match with(|t| t.is_int()) {
        true => missing(x),
        false => value(),
    }
}

/// A value without a shader function.
fn missing(x: Wgsl) -> Wgsl {
    with(|t| t.complete = false);
    x
}

/// A shader function and what its `scalar(k)` stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub text: Rc<str>,
    key: Key,
    pub scalars: SmallVec<[[u32; 2]; 8]>,
}

/// The formula over arguments that are tensors (`None`) or numbers. No text where it has none in
/// this type.
pub fn body(acc: Acc, x: &[Option<Number>], formula: &dyn Fn(&[Wgsl]) -> Wgsl) -> Option<Body> {
    with(|t| {
        t.acc = acc;
        t.values.clear();
        t.numbers.clear();
        t.scalars.clear();
        t.operands = 0;
        t.complete = true;
    });
    let mut tensors = 0;
    let args: SmallVec<[Wgsl; 6]> = x
        .iter()
        .map(|x| match x {
            Some(number) => with(|t| t.operand(*number)),
            None => {
                tensors += 1;
                with(|t| t.value(Value::Input(tensors - 1)))
            }
        })
        .collect();
    let result = formula(&args).0;
    with(|t| {
        if !t.complete {
            return None;
        }
        let key = key(&(acc, tensors, &t.values, result));
        let text = match t.texts.get(&key) {
            Some(text) => text.clone(),
            None => {
                let text: Rc<str> = t.text(tensors as usize, result).into();
                t.texts.insert(key, text.clone());
                text
            }
        };
        Some(Body {
            text,
            key,
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
    let args: SmallVec<[Option<Number>; 6]> = x
        .iter()
        .map(|t| match on_gpu(t) {
            true => Ok(None),
            false => number(acc, t).map(Some),
        })
        .collect::<Result<_>>()?;
    let Some(body) = body(acc, &args, formula) else {
        return Ok(false);
    };
    // Only kernels in float64 can read it.
    let read = |t: &Tensor| match (t.dtype(), acc) {
        (DType::F64, Acc::F64 | Acc::C128) => Ok(t.clone()),
        (DType::F64, _) | (DType::I64, Acc::C64) => t.to_dtype(DType::F32),
        _ => Ok(t.clone()),
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
    let text = Tail {
        text: &body.text,
        key: body.key,
    };
    let numbers = args.iter().flatten().map(|number| number.count).sum();
    ran(numbered(gpu, acc, text, &views, to, &body.scalars, numbers))
}

/// A number of the host as a parameter, or as two, its parts.
#[derive(Clone, Copy)]
pub struct Number {
    words: [[u32; 2]; 2],
    count: usize,
}

impl Number {
    fn one(words: [u32; 2]) -> Number {
        Number {
            words: [words, [0; 2]],
            count: 1,
        }
    }

    pub fn scalars(&self) -> &[[u32; 2]] {
        &self.words[..self.count]
    }
}

/// A number of the host for kernels that compute in `acc`.
pub fn number(acc: Acc, t: &Tensor) -> Result<Number> {
    if acc == Acc::C128 {
        let (re, im) = t.complex_item()?;
        return Ok(Number {
            words: [acc.words(re), acc.words(im)],
            count: 2,
        });
    }
    if t.dtype().is_complex() {
        let (re, im) = t.complex_item()?;
        return Ok(Number::one([(re as f32).to_bits(), (im as f32).to_bits()]));
    }
    t.item().map(|v| Number::one(words(acc, v)))
}

fn words(acc: Acc, v: Scalar) -> [u32; 2] {
    match v {
        Scalar::Float(v) => acc.words(v),
        other => acc.int_words(other.i64()),
    }
}

macro_rules! operators {
    ($($tr:ident $m:ident $sign:literal $pairs:literal;)*) => { $(
        impl $tr for Wgsl {
            type Output = Wgsl;
            fn $m(self, o: Wgsl) -> Wgsl {
                infix_or($sign, $pairs, self, o)
            }
        }
    )* };
}
operators! {
    Add add "+" "m_add";
    Sub sub "-" "m_sub";
    Mul mul "*" "m_mul";
}
impl Div for Wgsl {
    type Output = Wgsl;
    fn div(self, o: Wgsl) -> Wgsl {
        float_only(|| exact("/", "divide", "m_div", self, o), self)
    }
}
impl Neg for Wgsl {
    type Output = Wgsl;
    fn neg(self) -> Wgsl {
        call("m_neg", &[self])
    }
}

macro_rules! compared {
    ($($m:ident $sign:literal $float:literal $pairs:literal;)*) => { $(
        fn $m(self, o: Wgsl) -> Wgsl {
            exact($sign, $float, $pairs, self, o)
        }
    )* };
}

/// Functions of the math files that every type has, and those of floating types.
macro_rules! functions {
    (any: $($a:ident)*; float: $($f:ident)*; pairs: $($p:ident)*; whole: $($w:ident)*;) => {
        $(fn $a(self) -> Wgsl {
            call(concat!("m_", stringify!($a)), &[self])
        })*
        $(fn $f(self) -> Wgsl {
            float_only(|| call(concat!("m_", stringify!($f)), &[self]), self)
        })*
        $(fn $p(self, o: Wgsl) -> Wgsl {
            call(concat!("m_", stringify!($p)), &[self, o])
        })*
        // Integers are whole already.
        $(fn $w(self) -> Wgsl {
            match with(|t| t.is_int()) {
                true => self,
                false => call(concat!("m_", stringify!($w)), &[self]),
            }
        })*
    };
}

impl Real for Wgsl {
    type Mask = Wgsl;

    fn lit(v: f64) -> Wgsl {
        with(|t| {
            let exact = v.fract() == 0.0 && v.abs() < 2147483648.0;
            t.complete &= !t.is_int() || exact;
            t.value(Value::Number(v.to_bits()))
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
        lt "<" "less" "m_less";
        le "<=" "at_most" "m_at_most";
        equal "==" "equal" "m_equal";
    }

    fn conj(self) -> Wgsl {
        match with(|t| t.is_complex()) {
            true => call("m_conj", &[self]),
            false => self,
        }
    }
    fn finite(self, nan: f64, high: f64, low: f64) -> Wgsl {
        if with(|t| t.is_complex()) {
            return call(
                "m_finite",
                &[self, Wgsl::param(nan), Wgsl::param(high), Wgsl::param(low)],
            );
        }
        let infinite = |sign: f64| self.equal(Wgsl::lit(sign * f64::INFINITY));
        let y = Wgsl::select(infinite(1.0), Wgsl::param(high), self);
        let y = Wgsl::select(infinite(-1.0), Wgsl::param(low), y);
        Wgsl::select(self.is_nan(), Wgsl::param(nan), y)
    }
    fn is_nan(self) -> Wgsl {
        call("m_is_nan", &[self])
    }
    fn is_infinite(self) -> Wgsl {
        match with(|t| t.is_complex()) {
            true => call("m_is_infinite", &[self]),
            false => self.abs().equal(Wgsl::lit(f64::INFINITY)),
        }
    }
    fn is_finite(self) -> Wgsl {
        match with(|t| t.is_complex()) {
            true => call("m_is_finite", &[self]),
            false => self.abs().lt(Wgsl::lit(f64::INFINITY)),
        }
    }
    fn both(a: Wgsl, b: Wgsl) -> Wgsl {
        infix("&&", a, b)
    }
    fn either(a: Wgsl, b: Wgsl) -> Wgsl {
        infix("||", a, b)
    }
    fn not(a: Wgsl) -> Wgsl {
        with(|t| t.value(Value::Not(a.0)))
    }
    fn select(m: Wgsl, yes: Wgsl, no: Wgsl) -> Wgsl {
        call("select", &[no, yes, m])
    }

    functions! {
        any: abs sign;
        float: sqrt rsqrt exp exp2 expm1 ln log2 log10 log1p sin cos tan asin acos atan sinh cosh
            tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma;
        pairs: min max fmod pow;
        whole: floor ceil trunc round;
    }

    fn nearest(self, of: Half) -> Wgsl {
        match (with(|t| t.acc), of) {
            (Acc::F32, Half::F16) => call("m_nearest_f16", &[self]),
            (Acc::F32, Half::BF16) => call("m_nearest_bf16", &[self]),
            _ => self,
        }
    }
    fn polygamma(self, n: u32) -> Wgsl {
        let value = Value::Polygamma(n, self.0);
        float_only(|| with(|t| t.value(value)), self)
    }
    fn atan2(self, x: Wgsl) -> Wgsl {
        float_only(|| call("m_atan2", &[self, x]), self)
    }
    fn copysign(self, sign: Wgsl) -> Wgsl {
        float_only(|| call("m_copysign", &[self, sign]), self)
    }
    fn special(self, f: Special) -> Wgsl {
        let name = match f {
            Special::I0 => "m_i0",
            Special::I0e => "m_i0e",
            Special::I1 => "m_i1",
            Special::I1e => "m_i1e",
            Special::Ndtri => "m_ndtri",
            Special::LogNdtr => "m_log_ndtr",
            Special::Erfcx => "m_erfcx",
            Special::BesselJ0 | Special::CloseJ0 => "m_bessel_j0",
            Special::BesselJ1 | Special::CloseJ1 => "m_bessel_j1",
            Special::BesselY0 | Special::CloseY0 => "m_bessel_y0",
            Special::BesselY1 | Special::CloseY1 => "m_bessel_y1",
            Special::K0 => "m_k0",
            Special::K0e => "m_k0e",
            Special::K1 => "m_k1",
            Special::K1e => "m_k1e",
            Special::AiryAi => "m_airy_ai",
            Special::Mantissa => "m_mantissa",
            Special::Exponent => "m_exponent",
        };
        float_only(|| call(name, &[self]), self)
    }
    fn special2(self, o: Wgsl, f: Special2) -> Wgsl {
        let name = match f {
            Special2::Zeta => "m_zeta",
            Special2::Igamma => "m_igamma",
            Special2::Igammac => "m_igammac",
            Special2::NextAfter(step) => {
                let step = Wgsl::lit(step as f64);
                return float_only(|| call("m_next_after", &[self, o, step]), self);
            }
            Special2::Polynomial(Polynomial::ChebyshevT) => "m_chebyshev_t",
            Special2::Polynomial(Polynomial::ChebyshevU) => "m_chebyshev_u",
            Special2::Polynomial(Polynomial::ChebyshevV) => "m_chebyshev_v",
            Special2::Polynomial(Polynomial::ChebyshevW) => "m_chebyshev_w",
            Special2::Polynomial(Polynomial::HermiteH) => "m_hermite_h",
            Special2::Polynomial(Polynomial::HermiteHe) => "m_hermite_he",
            Special2::Polynomial(Polynomial::Laguerre) => "m_laguerre",
            Special2::Polynomial(Polynomial::Legendre) => "m_legendre",
        };
        float_only(|| call(name, &[self, o]), self)
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
            &*body.text,
            "fn op(a0: Acc) -> Acc {\n    let t0 = a0;\n    let t1 = m_sigmoid(t0);\n    \
             let t2 = t0 * t1;\n    return t2;\n}\n"
        );
        assert!(body.scalars.is_empty());
    }

    /// A driver may take it that no number is NaN, and join a product with a sum.
    #[test]
    fn body_of_floats_compares_and_divides_by_functions() {
        let text = |op: &dyn Fn(&[Wgsl]) -> Wgsl, acc| body(acc, &[None; 2], op).unwrap().text;
        let all = |x: &[Wgsl]| {
            let (a, b) = (x[0], x[1]);
            let less = Wgsl::either(a.lt(b), Wgsl::not(a.ge(b)));
            let m = Wgsl::both(less, Wgsl::either(a.le(b), Wgsl::both(a.gt(b), a.equal(b))));
            Wgsl::select(m, a.min(b) / a.max(b), a - -(a * b) + a * a * b)
        };
        for acc in [Acc::F32, Acc::F64] {
            let text = text(&all, acc);
            let rest = text.replace("-> Acc", "");
            assert!(
                !rest.contains(['<', '>', '/']) && !rest.contains("=="),
                "{text}"
            );
            // a * a is rounded by the product that it is a part of.
            assert_eq!(text.matches("apart(").count(), 2, "{text}");
            crate::gpu::testing::valid_body(acc, &text, 2);
        }
        let text = text(
            &|x| Wgsl::select(x[0].lt(x[1]), x[0] * x[1] + x[0], x[1]),
            Acc::I32,
        );
        assert!(
            text.contains("t0 < t1") && !text.contains("apart"),
            "{text}"
        );
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
    fn body_of_equal_formulas_is_one_text() {
        let at = |alpha| forward(&Add { alpha }, Acc::F32).unwrap();
        let (a, b) = (at(Scalar::Float(0.5)), at(Scalar::Float(7.0)));
        assert!(Rc::ptr_eq(&a.text, &b.text) && a.key == b.key);
        let other = forward(
            &Add {
                alpha: Scalar::Float(0.5),
            },
            Acc::F64,
        )
        .unwrap();
        assert_ne!(a.key, other.key);
        assert_ne!(a.key, forward(&Mul, Acc::F32).unwrap().key);
    }

    #[test]
    fn body_numbers_take_no_tensor() {
        let body = body(Acc::I32, &[None, Some(Number::one([7, 0]))], &|x| {
            Mul.f([x[0], x[1]])
        })
        .unwrap();
        assert!(body.text.starts_with("fn op(a0: Acc) -> Acc {"));
        assert!(body.text.contains("scalar(0u)"));
    }

    #[test]
    fn body_without_shader_function_is_none() {
        assert!(forward(&Mantissa, Acc::I32).is_none());
        assert!(forward(&I0, Acc::F32).is_some());
        assert!(forward(&Sinc, Acc::F32).is_some());
        assert!(forward(&Exp, Acc::I32).is_none());
        assert!(forward(&Floor, Acc::I32).is_some());
    }
}
