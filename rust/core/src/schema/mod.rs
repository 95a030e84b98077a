//! Signatures in PyTorch's notation, and the arguments that the binding reads by them.
//!
//! `name(Tensor self, int dim, *, ScalarType? dtype=None) -> (Tensor values, Tensor indices)`.
//! Types: `Tensor`, `Tensor|Scalar` (a number becomes a 0-d tensor), `Scalar`, `int`, `float`,
//! `bool`, `str`, `ScalarType`, `Device`, `Layout`, `MemoryFormat`, `Generator`, and lists `int[]`,
//! `int[2]` (one int stands for all), `float[]`, `bool[]`, `Tensor[]`, `Tensor?[]`. A `?` after a
//! type allows `None`.

mod args;
mod entry;

use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::meta::Form;
use crate::rng::Generator;
use crate::tensor::Tensor;
pub use args::{find, position, Args, At, Dest, Signature};
pub use entry::{flag, Entry};
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Tensor,
    /// A tensor, or a number that stands for one.
    Operand,
    Scalar,
    Int,
    Float,
    Bool,
    Str,
    DType,
    Device,
    Layout,
    MemoryFormat,
    Generator,
    /// With a length, one int stands for a list of it; 1 also for any list.
    Ints(Option<usize>),
    Floats,
    Bools,
    Tensors,
    OptionalTensors,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub name: &'static str,
    pub ty: Type,
    pub nullable: bool,
    pub default: Option<Value>,
    pub keyword_only: bool,
}

#[derive(Clone, Debug)]
pub struct Schema {
    pub name: &'static str,
    pub params: Vec<Param>,
    /// Names of the results where the signature gives them: a named tuple.
    pub returns: Vec<Option<&'static str>>,
}

/// How elements of a tensor are to be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryFormat {
    Contiguous,
    Preserve,
    ChannelsLast,
    ChannelsLast3d,
}

/// An argument or a result.
#[derive(Clone)]
pub enum Value {
    None,
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    OptionalTensors(Vec<Option<Tensor>>),
    /// A fixed number of results (a tuple); `Tensors` is a list.
    Tuple(Vec<Tensor>),
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A number with an imaginary part, which few functions take.
    Complex(f64, f64),
    Ints(SmallVec<[i64; 5]>),
    Floats(Vec<f64>),
    Bools(Vec<bool>),
    Str(Arc<str>),
    DType(DType),
    Device(Device),
    Layout(Form),
    MemoryFormat(MemoryFormat),
    Generator(Arc<Generator>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Complex(re, im) => write!(f, "({re}{im:+}j)"),
            Value::Ints(v) => write!(f, "{:?}", &v[..]),
            Value::Floats(v) => write!(f, "{v:?}"),
            Value::Bools(v) => write!(f, "{v:?}"),
            Value::Str(s) => write!(f, "'{s}'"),
            Value::DType(d) => write!(f, "{d}"),
            Value::Device(d) => write!(f, "{d}"),
            Value::MemoryFormat(m) => write!(f, "{m:?}"),
            Value::Tensor(t) => write!(f, "{t:?}"),
            _ => f.write_str("..."),
        }
    }
}

impl Value {
    /// Whether a sparse tensor is among it, or such a layout is asked for.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        match self {
            Value::Tensor(t) => t.is_sparse(),
            Value::Tensors(ts) => ts.iter().any(|t| t.is_sparse()),
            Value::OptionalTensors(ts) => ts.iter().flatten().any(|t| t.is_sparse()),
            Value::Layout(form) => form.is_sparse(),
            _ => false,
        }
    }
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Value {
        Value::Tensor(t)
    }
}

impl From<&[usize]> for Value {
    fn from(sizes: &[usize]) -> Value {
        Value::Ints(sizes.iter().map(|&n| n as i64).collect())
    }
}

impl From<Scalar> for Value {
    fn from(s: Scalar) -> Value {
        match s {
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => Value::Int(i),
            Scalar::UInt(u) => Value::Float(u as f64),
            Scalar::Float(x) => Value::Float(x),
        }
    }
}

/// Parses a signature. Signatures are constants of this crate: a mistake panics when the table is
/// built, which every test does.
pub fn parse(text: &'static str) -> Schema {
    let open = text
        .find('(')
        .unwrap_or_else(|| panic!("schema without (: {text}"));
    let arrow = text
        .rfind(") -> ")
        .unwrap_or_else(|| panic!("schema without ->: {text}"));
    let name = &text[..open];
    let mut params = Vec::new();
    let mut keyword_only = false;
    for part in split(&text[open + 1..arrow]) {
        if part == "*" {
            keyword_only = true;
            continue;
        }
        let (left, default) = match part.split_once('=') {
            Some((l, d)) => (l, Some(d)),
            None => (part, None),
        };
        let (ty, name) = left
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("bad parameter: {text}"));
        let nullable = ty.ends_with('?');
        let ty = parse_type(ty.trim_end_matches('?'), text);
        let default = default.map(|d| parse_default(d, ty, text));
        params.push(Param {
            name,
            ty,
            nullable,
            default,
            keyword_only,
        });
    }
    let out = text[arrow + 5..].trim();
    let returns = match out.strip_prefix('(') {
        Some(list) => split(list.trim_end_matches(')'))
            .into_iter()
            .map(|r| r.split_once(' ').map(|(_, n)| n))
            .collect(),
        None => vec![None],
    };
    Schema {
        name,
        params,
        returns,
    }
}

/// Splits at commas outside brackets.
fn split(text: &'static str) -> Vec<&'static str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, ch) in text.char_indices() {
        match ch {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        out.push(text[start..].trim());
    }
    out
}

fn parse_type(ty: &str, text: &str) -> Type {
    match ty {
        "Tensor" => Type::Tensor,
        "Tensor|Scalar" => Type::Operand,
        "Scalar" => Type::Scalar,
        "int" => Type::Int,
        "float" => Type::Float,
        "bool" => Type::Bool,
        "str" => Type::Str,
        "ScalarType" => Type::DType,
        "Device" => Type::Device,
        "Layout" => Type::Layout,
        "MemoryFormat" => Type::MemoryFormat,
        "Generator" => Type::Generator,
        "int[]" => Type::Ints(None),
        "float[]" => Type::Floats,
        "bool[]" => Type::Bools,
        "Tensor[]" => Type::Tensors,
        "Tensor?[]" => Type::OptionalTensors,
        _ => match ty.strip_prefix("int[").and_then(|t| t.strip_suffix(']')) {
            Some(n) => Type::Ints(Some(n.parse().expect("a length in int[n]"))),
            None => panic!("unknown type {ty} in {text}"),
        },
    }
}

fn parse_default(d: &'static str, ty: Type, text: &str) -> Value {
    match (d, ty) {
        ("None", _) => Value::None,
        ("True", _) => Value::Bool(true),
        ("False", _) => Value::Bool(false),
        ("[]", Type::Tensors) => Value::Tensors(Vec::new()),
        ("inf", _) => Value::Float(f64::INFINITY),
        (_, Type::Str) => Value::Str(d.trim_matches(['\'', '"']).into()),
        (_, Type::Ints(_)) => match d.strip_prefix('[').and_then(|d| d.strip_suffix(']')) {
            Some(list) => Value::Ints(
                split_static(list)
                    .map(|n| n.parse().expect("an int in a default"))
                    .collect(),
            ),
            None => {
                let n: i64 = d
                    .parse()
                    .unwrap_or_else(|_| panic!("bad default {d} in {text}"));
                let count = if let Type::Ints(Some(k)) = ty { k } else { 1 };
                Value::Ints(SmallVec::from_elem(n, count))
            }
        },
        (_, Type::Float) => Value::Float(d.parse().expect("a float default")),
        _ => match d.parse::<i64>() {
            Ok(i) => Value::Int(i),
            Err(_) => Value::Float(
                d.parse()
                    .unwrap_or_else(|_| panic!("bad default {d} in {text}")),
            ),
        },
    }
}

fn split_static(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(',').map(str::trim).filter(|s| !s.is_empty())
}
