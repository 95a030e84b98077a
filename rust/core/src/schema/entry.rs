//! Public functions: where each is found, and how its result gets to where the caller wants it.

use super::{Args, Dest, Schema, Type, Value};
use crate::autograd::mode;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{self, Result};
use crate::op::TensorMeta;
use crate::tensor::Tensor;
use crate::{bail, ensure};

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
            run: {
                struct Sig;
                impl $crate::schema::Signature for Sig {
                    const TEXT: &'static str = $schema;
                }
                const RUN: fn(&$crate::schema::Args<Sig>) -> $crate::error::Result<$crate::schema::Value> =
                    $run;
                |args| RUN(args.named())
            },
        }),*];
    };
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
                let run = |values: &[Value]| (self.run)(&Args::new(values, dest, schema));
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
            _ if direct => (self.run)(&Args::new(values, dest, schema)),
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
                let result = (self.run)(&Args::new(values, &Dest::New, schema))?;
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
                        // A mean of integers has no type, whatever it is written to.
                        let computes = matches!(&values[0], Value::Tensor(x)
                            if x.dtype().is_float() || !out.dtype().is_float());
                        if casts && computes {
                            values[i] = Value::DType(out.dtype());
                        }
                    }
                }
                let results = match (self.run)(&Args::new(values, &Dest::New, schema))? {
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
