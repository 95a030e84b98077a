//! Signatures in PyTorch's notation, and the arguments that the binding reads by them.
//!
//! `name(Tensor self, int dim, *, ScalarType? dtype=None) -> (Tensor values, Tensor indices)`.
//! Types: `Tensor`, `Tensor|Scalar` (a number becomes a 0-d tensor), `Scalar`, `int`, `float`,
//! `bool`, `str`, `ScalarType`, `Device`, `Layout`, `MemoryFormat`, `Generator`, and lists `int[]`,
//! `int[2]` (one int stands for all), `float[]`, `bool[]`, `Tensor[]`, `Tensor?[]`. A `?` after a
//! type allows `None`.

use crate::autograd::mode;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::{self, Result};
use crate::meta::Form;
use crate::op::{Op, TensorMeta};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::{bail, ensure};
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

/// Where an entry is found and which forms it has; combined with `|`.
pub mod flag {
    /// A function of the top-level module.
    pub const FN: u32 = 1;
    /// A method of `Tensor`.
    pub const METHOD: u32 = 2;
    /// Also `name_`, writing to `self`.
    pub const INPLACE: u32 = 4;
    /// Also with `out=`.
    pub const OUT: u32 = 8;
    /// Computes through [`super::Args::apply`], which writes to the destination itself.
    pub const DIRECT: u32 = 16;
    /// A function of `_C._nn`.
    pub const NN: u32 = 32;
    /// A function of `linalg`; its name is without the prefix.
    pub const LINALG: u32 = 64;
    /// A function of `special`.
    pub const SPECIAL: u32 = 128;
    /// Returns a tensor of its own or a tuple; used for `fft`.
    pub const FFT: u32 = 256;
    /// In place or with `out=`, no operand but numbers and the first one may lie in the memory written to.
    pub const APART: u32 = 512;
    /// With `out=`, no operand may lie in the memory written to.
    pub const SEPARATE: u32 = 262144;
    /// With `out=`, an operand may be what is written to, but not lie in a part of that memory.
    pub const WHOLE: u32 = 524288;
    /// `OUT`, where the tensor may be of another type that results are cast to.
    pub const CASTS: u32 = OUT | 1024;
    /// `CASTS`, where the result is of the type that the argument `dtype` says; without it, `out`'s.
    pub const TYPED: u32 = CASTS | 16384;
    /// Takes numbers with an imaginary part.
    pub const COMPLEX: u32 = 2048;
    /// The results of a batch of images in channels-last order lie in that order, too.
    pub const FORMAT: u32 = 4096;
    /// Numbers given by name may also come by position, before the term that each scales, and with an
    /// imaginary part.
    pub const SCALES: u32 = COMPLEX | 8192;
    /// Results of the shape of the first argument lie as `empty_like` makes of it.
    pub const LIKE: u32 = 131072;
    /// Takes sparse tensors as well; others are refused where they come with one.
    pub const SPARSE: u32 = 32768;
    /// What a function that is declared elsewhere does where an argument is sparse.
    pub const ALSO: u32 = SPARSE | DIRECT | 65536;
    /// What most functions of a tensor are.
    pub const ALL: u32 = FN | METHOD | INPLACE | OUT;
    /// The same, for pointwise ops.
    pub const PW: u32 = ALL | DIRECT;
}

/// A public function, declared once: signature, documentation, where it lives, what it does.
pub struct Entry {
    pub schema: &'static str,
    pub doc: &'static str,
    pub flags: u32,
    pub run: fn(&Args) -> Result<Value>,
}

/// Declares the entries of a family of ops.
#[macro_export]
macro_rules! entries {
    ($($(#[doc = $doc:literal])* $schema:literal, $flags:expr, $run:expr;)*) => {
        pub const ENTRIES: &[$crate::schema::Entry] = &[$($crate::schema::Entry {
            schema: $schema,
            doc: concat!($($doc, "\n"),*),
            flags: { #[allow(unused_imports)] use $crate::schema::flag::*; $flags },
            run: $run,
        }),*];
    };
}

/// Where a result goes.
#[derive(Clone)]
pub enum Dest {
    New,
    /// `x_()`: back into the first argument.
    InPlace,
    /// `out=`.
    Out(Vec<Tensor>),
}

/// Arguments in the order of the signature, defaults filled in.
pub struct Args<'a> {
    pub values: &'a [Value],
    pub dest: &'a Dest,
    pub schema: &'a Schema,
}

impl Args<'_> {
    fn wrong<T>(&self, i: usize, want: &str) -> Result<T> {
        let name = self.schema.params.get(i).map_or("?", |p| p.name);
        bail!(
            Type,
            "{}(): argument '{name}' (position {}) must be {want}, not {:?}",
            self.schema.name,
            i + 1,
            self.values.get(i)
        )
    }
    pub fn is_none(&self, i: usize) -> bool {
        matches!(self.values[i], Value::None)
    }
    pub fn tensor(&self, i: usize) -> Result<&Tensor> {
        match &self.values[i] {
            Value::Tensor(t) => Ok(t),
            _ => self.wrong(i, "Tensor"),
        }
    }
    pub fn opt_tensor(&self, i: usize) -> Option<&Tensor> {
        match &self.values[i] {
            Value::Tensor(t) => Some(t),
            _ => None,
        }
    }
    pub fn tensors(&self, i: usize) -> Result<&[Tensor]> {
        match &self.values[i] {
            Value::Tensors(t) => Ok(t),
            _ => self.wrong(i, "tuple of Tensors"),
        }
    }
    pub fn opt_tensors(&self, i: usize) -> Result<&[Option<Tensor>]> {
        match &self.values[i] {
            Value::OptionalTensors(t) => Ok(t),
            _ => self.wrong(i, "tuple of Tensors"),
        }
    }
    pub fn scalar(&self, i: usize) -> Result<Scalar> {
        match (self.opt_scalar(i), &self.values[i]) {
            (Some(s), _) => Ok(s),
            (None, Value::Tensor(t)) if t.is_wrapped() => self.beyond(t.item()?),
            _ => self.wrong(i, "Number"),
        }
    }
    /// A factor or a bound beyond int64: the nearest number where a floating or complex tensor takes it.
    fn beyond(&self, value: Scalar) -> Result<Scalar> {
        let floating = |v: &Value| matches!(v, Value::Tensor(t) if !t.dtype().is_integral());
        ensure!(
            self.values.iter().any(floating),
            Runtime,
            "{}(): value cannot be converted to type int64_t without overflow: {value}",
            self.schema.name
        );
        Ok(Scalar::Float(value.f64()))
    }
    pub fn opt_scalar(&self, i: usize) -> Option<Scalar> {
        match self.values[i] {
            Value::Bool(b) => Some(Scalar::Bool(b)),
            Value::Int(v) => Some(Scalar::Int(v)),
            Value::Float(v) => Some(Scalar::Float(v)),
            _ => None,
        }
    }
    /// A number of any kind, as a 0-d tensor.
    pub fn number(&self, i: usize) -> Result<Tensor> {
        match self.values[i] {
            Value::Complex(re, im) => Tensor::complex_number(re, im),
            Value::Tensor(ref t) if t.is_wrapped() => Ok(t.clone()),
            _ => Tensor::number(self.scalar(i)?),
        }
    }
    pub fn int(&self, i: usize) -> Result<i64> {
        match self.values[i] {
            Value::Int(v) => Ok(v),
            Value::Bool(b) => Ok(b as i64),
            _ => self.wrong(i, "int"),
        }
    }
    pub fn opt_int(&self, i: usize) -> Option<i64> {
        match self.values[i] {
            Value::Int(v) => Some(v),
            _ => None,
        }
    }
    pub fn float(&self, i: usize) -> Result<f64> {
        match (self.opt_scalar(i), &self.values[i]) {
            (Some(s), _) => Ok(s.f64()),
            (None, Value::Tensor(t)) if t.is_wrapped() => Ok(t.item()?.f64()),
            _ => self.wrong(i, "float"),
        }
    }
    pub fn opt_float(&self, i: usize) -> Option<f64> {
        self.opt_scalar(i).map(Scalar::f64)
    }
    pub fn bool(&self, i: usize) -> Result<bool> {
        match self.values[i] {
            Value::Bool(b) => Ok(b),
            Value::Int(v) => Ok(v != 0),
            _ => self.wrong(i, "bool"),
        }
    }
    pub fn ints(&self, i: usize) -> Result<&[i64]> {
        match &self.values[i] {
            Value::Ints(v) => Ok(v),
            _ => self.wrong(i, "tuple of ints"),
        }
    }
    pub fn opt_ints(&self, i: usize) -> Option<&[i64]> {
        match &self.values[i] {
            Value::Ints(v) => Some(v),
            _ => None,
        }
    }
    pub fn floats(&self, i: usize) -> Result<&[f64]> {
        match &self.values[i] {
            Value::Floats(v) => Ok(v),
            _ => self.wrong(i, "tuple of floats"),
        }
    }
    pub fn opt_floats(&self, i: usize) -> Option<&[f64]> {
        match &self.values[i] {
            Value::Floats(v) => Some(v),
            _ => None,
        }
    }
    pub fn bools(&self, i: usize) -> Result<&[bool]> {
        match &self.values[i] {
            Value::Bools(v) => Ok(v),
            _ => self.wrong(i, "tuple of bools"),
        }
    }
    pub fn str(&self, i: usize) -> Result<&str> {
        match &self.values[i] {
            Value::Str(s) => Ok(s),
            _ => self.wrong(i, "str"),
        }
    }
    pub fn opt_str(&self, i: usize) -> Option<&str> {
        match &self.values[i] {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
    pub fn dtype(&self, i: usize) -> Option<DType> {
        match self.values[i] {
            Value::DType(d) => Some(d),
            _ => None,
        }
    }
    pub fn device(&self, i: usize) -> Option<Device> {
        match self.values[i] {
            Value::Device(d) => Some(d),
            _ => None,
        }
    }
    pub fn form(&self, i: usize) -> Option<Form> {
        match self.values[i] {
            Value::Layout(form) => Some(form),
            _ => None,
        }
    }
    pub fn memory_format(&self, i: usize) -> Option<MemoryFormat> {
        match self.values[i] {
            Value::MemoryFormat(m) => Some(m),
            _ => None,
        }
    }
    /// The generator named, or the default one of the device.
    pub fn generator(&self, i: usize, device: Device) -> Arc<Generator> {
        match &self.values[i] {
            Value::Generator(g) => g.clone(),
            _ => crate::rng::default_generator(device),
        }
    }

    /// Computes an op with one result to wherever the result goes.
    pub fn call<O: Op>(&self, op: O, x: &[&Tensor]) -> Result<Value> {
        Ok(Value::Tensor(match self.dest {
            Dest::New => dispatch::call1(op, x)?,
            Dest::InPlace => dispatch::call_into(op, x, self.tensor(0)?, true)?,
            Dest::Out(out) => dispatch::call_into(op, x, &out[0], false)?,
        }))
    }
}

/// Refuses operands in the memory of the first, which is to be written to.
fn check_apart(values: &[Value]) -> Result<()> {
    let Some((Value::Tensor(target), operands)) = values.split_first() else {
        return Ok(());
    };
    let check = |t: &Tensor| match t.ndim() {
        0 => Ok(()),
        _ => dispatch::check_apart(t, target),
    };
    for value in operands {
        match value {
            Value::Tensor(t) => check(t)?,
            // A mask is read before anything is written.
            Value::OptionalTensors(ts) => {
                let positions = ts.iter().flatten().filter(|t| t.dtype() != DType::Bool);
                positions.into_iter().try_for_each(check)?;
            }
            _ => {}
        }
    }
    Ok(())
}

const OVERLAP: u32 = flag::APART | flag::SEPARATE | flag::WHOLE;

/// Refuses results in the memory of operands where the function's flags ask for that.
fn check_out(flags: u32, values: &[Value], outs: &[Tensor]) -> Result<()> {
    let one = |place: usize, t: &Tensor| {
        outs.iter().try_for_each(|out| {
            let whole = matches!(dispatch::overlap(t, out), dispatch::Overlap::Same);
            let first = flags & flag::APART != 0 && (place == 0 || t.ndim() == 0);
            match whole && flags & flag::SEPARATE == 0 && (first || flags & flag::WHOLE != 0) {
                true => Ok(()),
                false => dispatch::check_apart(t, out),
            }
        })
    };
    if flags & flag::SEPARATE != 0 {
        outs.iter().try_for_each(dispatch::check_overlap)?;
    }
    for (place, value) in values.iter().enumerate() {
        match value {
            Value::Tensor(t) => one(place, t)?,
            Value::Tensors(ts) => ts.iter().try_for_each(|t| one(place, t))?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether the strides of images or volumes, or of all in a list, suggest channels-last order.
fn channels_last(value: Option<&Value>) -> bool {
    let one = |t: &Tensor| t.layout().suggests_channels_last();
    match value {
        Some(Value::Tensor(t)) => one(t),
        Some(Value::Tensors(ts)) => !ts.is_empty() && ts.iter().all(one),
        _ => false,
    }
}

/// The results in the order of the images or the weight.
fn formatted(values: &[Value], y: Value) -> Result<Value> {
    if !channels_last(values.first()) && !channels_last(values.get(1)) {
        return Ok(y);
    }
    each(y, Tensor::in_channels_last)
}

/// The results that have the shape of the first argument, in its order.
fn alike(values: &[Value], y: Value) -> Result<Value> {
    match values.first() {
        Some(Value::Tensor(x)) if !x.layout().is_plain() => {
            each(y, |t| match t.shape() == x.shape() {
                true => t.in_order_of(x),
                false => Ok(t),
            })
        }
        _ => Ok(y),
    }
}

fn each(y: Value, one: impl Fn(Tensor) -> Result<Tensor>) -> Result<Value> {
    Ok(match y {
        Value::Tensor(t) => Value::Tensor(one(t)?),
        Value::Tuple(ts) => Value::Tuple(ts.into_iter().map(one).collect::<Result<_>>()?),
        other => other,
    })
}

/// Results that lie in nobody else's memory are views of nothing that can be seen: each stands in
/// the graph where it was, as a tensor of its own.
#[inline(always)]
fn settle(values: &[Value], y: &mut Value) {
    let view = |t: &Tensor| t.view_of().is_some();
    match y {
        Value::Tensor(t) if view(t) => settle_view(values, t),
        Value::Tuple(all) if all.iter().any(view) => settle_all(values, all),
        _ => {}
    }
}

fn settle_view(values: &[Value], t: &mut Tensor) {
    let shares = |v: &Value| match v {
        Value::Tensor(x) => x.shares_storage(t),
        Value::Tensors(xs) => xs.iter().any(|x| x.shares_storage(t)),
        Value::OptionalTensors(xs) => xs.iter().flatten().any(|x| x.shares_storage(t)),
        _ => false,
    };
    // Of slices each view has its own storage.
    if t.view_of().is_some() && !t.stands() && !values.iter().any(shares) {
        *t = t.unviewed();
    }
}

fn settle_all(values: &[Value], all: &mut [Tensor]) {
    for i in 0..all.len() {
        if all.iter().filter(|x| x.shares_storage(&all[i])).count() == 1 {
            settle_view(values, &mut all[i]);
        }
    }
}

/// Runs a function that reads elements for each of many slices, where these would be computed at once.
#[cold]
fn slice_by_slice(schema: &Schema, values: &[Value], run: &dispatch::Run) -> Option<Result<Value>> {
    let writes = schema.name.ends_with('_');
    match mode::interpreted() && !writes {
        true => dispatch::by_slices(schema.name, values, run),
        false => None,
    }
}

impl Entry {
    /// Runs the function and brings its results to their destination. With `out=`, a tensor of
    /// another shape is replaced: the caller stores what is returned in its place.
    pub fn invoke(&self, schema: &Schema, values: &mut [Value], dest: &Dest) -> Result<Value> {
        let direct = self.flags & flag::DIRECT != 0;
        if let (true, Dest::InPlace) = (self.flags & flag::APART != 0, dest) {
            check_apart(values)?;
        }
        if let (true, Dest::Out(outs)) = (self.flags & OVERLAP != 0, dest) {
            check_out(self.flags, values, outs)?;
        }
        match dest {
            Dest::New => {
                let run = |values: &[Value]| {
                    (self.run)(&Args {
                        values,
                        dest,
                        schema,
                    })
                };
                let ran = match mode::interpreted() {
                    false => run(values),
                    // Kernels that read elements unwind.
                    true => error::caught(|| run(values)),
                };
                let mut y = match ran {
                    Err(e) if e.unread => slice_by_slice(schema, values, &run).ok_or(e)??,
                    y => y?,
                };
                if self.flags & flag::FORMAT != 0 {
                    y = formatted(values, y)?;
                }
                if self.flags & flag::LIKE != 0 {
                    y = alike(values, y)?;
                }
                settle(values, &mut y);
                Ok(y)
            }
            _ if direct => (self.run)(&Args {
                values,
                dest,
                schema,
            }),
            Dest::InPlace => {
                let Some(Value::Tensor(target)) = values.first().cloned() else {
                    bail!(Type, "the first argument must be a Tensor");
                };
                let tracked = mode::grad()
                    && values
                        .iter()
                        .any(|v| matches!(v, Value::Tensor(t) if t.requires_grad()));
                target.check_inplace(tracked)?;
                if self.flags & flag::TYPED == flag::TYPED {
                    let other = |v: &Value| match v {
                        Value::DType(d) if *d != target.dtype() => Some(*d),
                        _ => None,
                    };
                    if let Some(d) = values.iter().find_map(other) {
                        bail!(
                            Runtime,
                            "Bad in-place call: input tensor dtype {} and output tensor dtype {} \
                             should match",
                            target.dtype().c_name(),
                            d.c_name()
                        );
                    }
                }
                if tracked {
                    // What backward needs of the old value must outlive it.
                    values[0] = Value::Tensor(target.copy_dense()?);
                }
                let result = (self.run)(&Args {
                    values,
                    dest: &Dest::New,
                    schema,
                })?;
                let Value::Tensor(result) = result else {
                    bail!(Type, "the result is not one tensor");
                };
                dispatch::destination(&target, &TensorMeta::of(&result), true)?;
                target.copy_from(&result)?;
                Ok(Value::Tensor(target))
            }
            Dest::Out(outs) => {
                let tracked = |v: &Value| match v {
                    Value::Tensor(t) => t.requires_grad(),
                    Value::Tensors(ts) => ts.iter().any(Tensor::requires_grad),
                    _ => false,
                };
                let tracked = mode::grad() && values.iter().any(tracked);
                if mode::grad() && outs.iter().any(Tensor::requires_grad) {
                    dispatch::refuse_out()?;
                }
                let mut casts = self.flags & flag::CASTS == flag::CASTS;
                if self.flags & flag::TYPED == flag::TYPED {
                    let i = schema.params.iter().position(|p| p.ty == Type::DType);
                    if let (Some(i), [out, ..]) = (i, &outs[..]) {
                        casts = matches!(values[i], Value::None);
                        let same_kind = matches!(&values[0], Value::Tensor(x)
                            if x.dtype().is_float() == out.dtype().is_float());
                        if casts && same_kind {
                            values[i] = Value::DType(out.dtype());
                        }
                    }
                }
                let results = match (self.run)(&Args {
                    values,
                    dest: &Dest::New,
                    schema,
                })? {
                    Value::Tensor(t) => vec![t],
                    // `nonzero`, whose one result is a tuple where that is asked for.
                    Value::Tuple(_) if schema.returns.len() == 1 => bail!(
                        Runtime,
                        "{} does not support the out kwarg when as_tuple is True",
                        schema.name
                    ),
                    Value::Tensors(t) | Value::Tuple(t) => t,
                    _ => bail!(Type, "takes no out="),
                };
                if tracked && results.iter().any(Tensor::requires_grad) {
                    dispatch::refuse_out()?;
                }
                ensure!(
                    results.len() == outs.len() || !self.schema.ends_with("-> Tensor[]"),
                    Runtime,
                    "{}_out expected an out= argument of size {}, got size {}",
                    schema.name,
                    results.len(),
                    outs.len()
                );
                ensure!(
                    results.len() == outs.len(),
                    Type,
                    "{}(): argument 'out' must hold {} tensors, got {}",
                    schema.name,
                    results.len(),
                    outs.len()
                );
                let mut written = Vec::new();
                for (place, (out, result)) in outs.iter().zip(&results).enumerate() {
                    let meta = TensorMeta::of(result);
                    if !casts {
                        dispatch::check_type(out, &meta, place)?;
                    }
                    written.push(dispatch::deliver(result, out)?);
                }
                Ok(match written.len() {
                    1 => Value::Tensor(written.swap_remove(0)),
                    _ => Value::Tuple(written),
                })
            }
        }
    }
}
