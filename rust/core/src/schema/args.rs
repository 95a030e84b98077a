//! The arguments that an entry runs on, each read by its name in the signature.

use super::{MemoryFormat, Schema, Value};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Form;
use crate::op::Op;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

/// Where a result goes.
#[derive(Clone)]
pub enum Dest {
    New,
    /// `x_()`: back into the first argument.
    InPlace,
    /// `out=`.
    Out(Vec<Tensor>),
}

/// The signature of one entry, as a type: names in it become positions while the crate compiles.
/// [`crate::entries!`] makes one for each entry, called `Sig`.
pub trait Signature {
    const TEXT: &'static str;
}

/// Where an argument stands in a signature. [`crate::arg!`] makes it of the argument's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(usize);

/// The place of the parameter that has one of these names; there must be one. [`crate::arg!`] calls it.
pub const fn position(signature: &str, names: &[&str]) -> At {
    let mut i = 0;
    while i < names.len() {
        if let Some(at) = find(signature, names[i]) {
            return at;
        }
        i += 1;
    }
    panic!("the signature has no argument of this name")
}

/// The place of the parameter of this name, if there is one. [`crate::arg!`] calls it.
pub const fn find(signature: &str, name: &str) -> Option<At> {
    let (text, name) = (signature.as_bytes(), name.as_bytes());
    let mut i = 0;
    while text[i] != b'(' {
        i += 1;
    }
    i += 1;
    let (mut at, mut depth) = (0, 0);
    // The word read last is the name once `=`, `,` or the end follows.
    let (mut word, mut default) = (i, false);
    loop {
        let c = text[i];
        let ends = depth == 0 && (c == b',' || c == b')');
        if !default && (ends || c == b'=') {
            if same(text, word, i, name) {
                return Some(At(at));
            }
            default = true;
        }
        if ends {
            if c == b')' {
                return None;
            }
            // A lone `*` is no parameter.
            if text[word] != b'*' {
                at += 1;
            }
            (word, default) = (i + 1, false);
        }
        match c {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b' ' if !default => word = i + 1,
            _ => {}
        }
        i += 1;
    }
}

/// Whether `text[start..end]` is `name`.
const fn same(text: &[u8], start: usize, end: usize, name: &[u8]) -> bool {
    if end - start != name.len() {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if text[start + i] != name[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The place of an argument, by its name in the signature `Sig`: that of the entry around it, or of
/// the `Args<Sig>` of a function that several entries call. A name that the signature lacks does not
/// compile. `arg!(a | b)` is the one of these that the signature has, `arg!(a?)` an `Option`.
#[macro_export]
macro_rules! arg {
    ($name:ident ?) => {
        const {
            $crate::schema::find(
                <Sig as $crate::schema::Signature>::TEXT,
                stringify!($name),
            )
        }
    };
    ($($name:ident)|+) => {
        const {
            $crate::schema::position(
                <Sig as $crate::schema::Signature>::TEXT,
                &[$(stringify!($name)),+],
            )
        }
    };
}

/// The arguments of a call, defaults filled in, which are read by [`crate::arg!`]. With a signature
/// as type, names are looked up in it; without one, a function gets the places from its caller.
#[repr(C)]
pub struct Args<'a, Sig = ()> {
    /// In the order of the signature.
    values: &'a [Value],
    pub dest: &'a Dest,
    pub schema: &'a Schema,
    signature: PhantomData<Sig>,
}

impl<'a> Args<'a> {
    pub(super) fn new(values: &'a [Value], dest: &'a Dest, schema: &'a Schema) -> Args<'a> {
        Args {
            values,
            dest,
            schema,
            signature: PhantomData,
        }
    }

    /// The same arguments with the names of the signature that they were parsed by.
    #[inline(always)]
    pub fn named<Sig: Signature>(&self) -> &Args<'a, Sig> {
        // SAFETY: the layouts are one (`repr(C)`): `Sig` is a type of which nothing is stored.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl<'a, Sig> Args<'a, Sig> {
    /// The same call with another destination.
    pub fn to<'b>(&self, dest: &'b Dest) -> Args<'b, Sig>
    where
        'a: 'b,
    {
        Args {
            values: self.values,
            dest,
            schema: self.schema,
            signature: PhantomData,
        }
    }

    /// Every argument, in the order of the signature.
    pub fn values(&self) -> &'a [Value] {
        self.values
    }

    /// The arguments before this one.
    pub fn before(&self, i: At) -> &'a [Value] {
        &self.values[..i.0]
    }

    /// What an argument is called.
    pub fn name(&self, i: At) -> &'static str {
        self.schema.params[i.0].name
    }
}

impl<'a, Sig: Signature> Deref for Args<'a, Sig> {
    type Target = Args<'a>;

    #[inline(always)]
    fn deref(&self) -> &Args<'a> {
        // SAFETY: as in `named`, the layouts are one.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl Args<'_> {
    fn wrong<T>(&self, i: At, want: &str) -> Result<T> {
        let name = self.schema.params.get(i.0).map_or("?", |p| p.name);
        bail!(
            Type,
            "{}(): argument '{name}' (position {}) must be {want}, not {:?}",
            self.schema.name,
            i.0 + 1,
            self.values.get(i.0)
        )
    }
    /// The first argument, a tensor of whatever name.
    pub fn first(&self) -> Result<&Tensor> {
        self.tensor(At(0))
    }
    /// The argument, of whatever type.
    pub fn value(&self, i: At) -> &Value {
        &self.values[i.0]
    }
    pub fn is_none(&self, i: At) -> bool {
        matches!(self.values[i.0], Value::None)
    }
    pub fn tensor(&self, i: At) -> Result<&Tensor> {
        match &self.values[i.0] {
            Value::Tensor(t) => Ok(t),
            _ => self.wrong(i, "Tensor"),
        }
    }
    pub fn opt_tensor(&self, i: At) -> Option<&Tensor> {
        match &self.values[i.0] {
            Value::Tensor(t) => Some(t),
            _ => None,
        }
    }
    pub fn tensors(&self, i: At) -> Result<&[Tensor]> {
        match &self.values[i.0] {
            Value::Tensors(t) => Ok(t),
            _ => self.wrong(i, "tuple of Tensors"),
        }
    }
    pub fn opt_tensors(&self, i: At) -> Result<&[Option<Tensor>]> {
        match &self.values[i.0] {
            Value::OptionalTensors(t) => Ok(t),
            _ => self.wrong(i, "tuple of Tensors"),
        }
    }
    pub fn scalar(&self, i: At) -> Result<Scalar> {
        match (self.opt_scalar(i), &self.values[i.0]) {
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
    pub fn opt_scalar(&self, i: At) -> Option<Scalar> {
        match self.values[i.0] {
            Value::Bool(b) => Some(Scalar::Bool(b)),
            Value::Int(v) => Some(Scalar::Int(v)),
            Value::Float(v) => Some(Scalar::Float(v)),
            _ => None,
        }
    }
    /// A number of any kind, as a 0-d tensor.
    pub fn number(&self, i: At) -> Result<Tensor> {
        match self.values[i.0] {
            Value::Complex(re, im) => Tensor::complex_number(re, im),
            Value::Tensor(ref t) if t.is_wrapped() => Ok(t.clone()),
            _ => Tensor::number(self.scalar(i)?),
        }
    }
    pub fn int(&self, i: At) -> Result<i64> {
        match self.values[i.0] {
            Value::Int(v) => Ok(v),
            Value::Bool(b) => Ok(b as i64),
            _ => self.wrong(i, "int"),
        }
    }
    pub fn opt_int(&self, i: At) -> Option<i64> {
        match self.values[i.0] {
            Value::Int(v) => Some(v),
            _ => None,
        }
    }
    pub fn float(&self, i: At) -> Result<f64> {
        match (self.opt_scalar(i), &self.values[i.0]) {
            (Some(s), _) => Ok(s.f64()),
            (None, Value::Tensor(t)) if t.is_wrapped() => Ok(t.item()?.f64()),
            _ => self.wrong(i, "float"),
        }
    }
    pub fn opt_float(&self, i: At) -> Option<f64> {
        self.opt_scalar(i).map(Scalar::f64)
    }
    pub fn bool(&self, i: At) -> Result<bool> {
        match self.values[i.0] {
            Value::Bool(b) => Ok(b),
            Value::Int(v) => Ok(v != 0),
            _ => self.wrong(i, "bool"),
        }
    }
    pub fn ints(&self, i: At) -> Result<&[i64]> {
        match &self.values[i.0] {
            Value::Ints(v) => Ok(v),
            _ => self.wrong(i, "tuple of ints"),
        }
    }
    pub fn opt_ints(&self, i: At) -> Option<&[i64]> {
        match &self.values[i.0] {
            Value::Ints(v) => Some(v),
            _ => None,
        }
    }
    pub fn floats(&self, i: At) -> Result<&[f64]> {
        match &self.values[i.0] {
            Value::Floats(v) => Ok(v),
            _ => self.wrong(i, "tuple of floats"),
        }
    }
    pub fn opt_floats(&self, i: At) -> Option<&[f64]> {
        match &self.values[i.0] {
            Value::Floats(v) => Some(v),
            _ => None,
        }
    }
    pub fn bools(&self, i: At) -> Result<&[bool]> {
        match &self.values[i.0] {
            Value::Bools(v) => Ok(v),
            _ => self.wrong(i, "tuple of bools"),
        }
    }
    pub fn str(&self, i: At) -> Result<&str> {
        match &self.values[i.0] {
            Value::Str(s) => Ok(s),
            _ => self.wrong(i, "str"),
        }
    }
    pub fn opt_str(&self, i: At) -> Option<&str> {
        match &self.values[i.0] {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
    pub fn dtype(&self, i: At) -> Option<DType> {
        match self.values[i.0] {
            Value::DType(d) => Some(d),
            _ => None,
        }
    }
    pub fn device(&self, i: At) -> Option<Device> {
        match self.values[i.0] {
            Value::Device(d) => Some(d),
            _ => None,
        }
    }
    pub fn form(&self, i: At) -> Option<Form> {
        match self.values[i.0] {
            Value::Layout(form) => Some(form),
            _ => None,
        }
    }
    pub fn memory_format(&self, i: At) -> Option<MemoryFormat> {
        match self.values[i.0] {
            Value::MemoryFormat(m) => Some(m),
            _ => None,
        }
    }
    /// The generator named, or the default one of the device.
    pub fn generator(&self, i: At, device: Device) -> Arc<Generator> {
        match &self.values[i.0] {
            Value::Generator(g) => g.clone(),
            _ => crate::rng::default_generator(device),
        }
    }

    /// Computes an op with one result to wherever the result goes.
    pub fn call<O: Op>(&self, op: O, x: &[&Tensor]) -> Result<Value> {
        Ok(Value::Tensor(match self.dest {
            Dest::New => dispatch::call1(op, x)?,
            Dest::InPlace => dispatch::call_into(op, x, self.first()?, true)?,
            Dest::Out(out) => dispatch::call_into(op, x, &out[0], false)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{find, At};

    /// What the compiler finds in the text is what the parser makes of it, in every signature.
    #[test]
    fn names_stand_where_the_parsed_signature_has_them() {
        let ops = crate::ops::table();
        assert!(ops.len() > 900);
        for op in ops {
            let names: Vec<&str> = op.schema.params.iter().map(|p| p.name).collect();
            for (i, name) in names.iter().enumerate() {
                assert_eq!(
                    find(op.entry.schema, name),
                    Some(At(i)),
                    "{}",
                    op.entry.schema
                );
            }
            assert_eq!(find(op.entry.schema, "no_such_name"), None);
        }
    }
}
