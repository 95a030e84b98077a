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
