//! Pointwise ops: one formula each, from which every kernel and derivative follows.

pub mod binary;
pub mod complex;
mod cost;
pub mod cpu;
#[cfg(test)]
mod dual;
pub mod expr;
mod fast;
pub mod gpu;
pub mod methods;
pub mod real;
pub mod special;
pub mod ternary;
pub mod unary;

crate::ops::family! { activation arithmetic compare math }

use crate::autograd::{mode, step, Vjp};
use crate::cpu::elements::{Compute, Element};
use crate::cpu::pointwise::{run, run_bits, Kernel};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Promotion, Scalar};
use crate::error::{self, Error, Kind, Result};
use crate::gpu::{Acc, Gpu};
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    function_name, Derivative, Grads, Mask, Metas, Op, Repeats, Save, TensorMeta, Value as OpValue,
};
use crate::schema::{Args, Value};
use crate::shape::{self, Dims};
use crate::tensor::Tensor;
use crate::{bail, ensure};
pub use complex::Complex;
use cost::reads;
use cpu::{grad32, grad64, kernel32, kernel64, kernel_bool, kernel_half};
use cpu::{kernel_i16, kernel_i32, kernel_i64, kernel_i8, kernel_u8};
pub use real::{c, k, Float, Polynomial, Real, Special, Special2};
use smallvec::SmallVec;
use std::hash::Hash;

/// How the types of inputs and result are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// The promoted type of the inputs.
    Same,
    /// As `Same`; integers and bool raise.
    FloatOnly,
    /// As `Same`; integers and bool become the default floating type.
    Float,
    /// Computed in the promoted type; the result is bool.
    Bool,
    /// As `Same`; floating types raise.
    IntOnly,
}

/// A pointwise op of `N` inputs.
pub trait Pointwise<const N: usize>: OpValue + Clone + Eq + Hash {
    const NODE: &'static str;
    const TYPES: Types;
    /// Whether `int` is written; without it integers raise.
    const INT: bool;
    /// Whether integers divide by the second input, so that zeros there raise.
    const DIVIDES: bool = false;
    /// Whether `int` is a loop of its own.
    const ITERATES: bool = false;
    /// Inputs without a derivative: asking for their gradient raises.
    const OPAQUE: Mask = 0;
    /// Whether the result never needs a gradient.
    const DETACHED: bool = false;
    /// Whether the gradient steps with what it reads: under `create_graph` it depends on that, with
    /// a slope of nothing.
    const STEPS: bool = false;
    /// Whether loops use the vector code of functions that does not reach every argument; without
    /// it such functions (`sin`, `cos`, `tan`) are exact everywhere and scalar.
    const GUARDED: bool = false;
    /// Whether `half` is written.
    const HALF: bool = false;
    /// Whether `int` on the bits of wide unsigned integers gives theirs, or they keep their order.
    const UNSIGNED: bool = false;
    /// Inputs whose numbers keep the digits that a half type lacks, as factors and addends do.
    const EXACT: Mask = 0;
    /// Whether `out=` may have another type; ops that leave a number's type alone take its own only.
    const CASTS: bool = N != 1 || matches!(Self::TYPES, Types::Float | Types::Bool);
    /// Whether it may write to elements that share memory.
    const REPEATS: Repeats = Repeats::Refused;
    /// What the op means for complex numbers.
    const COMPLEX: Complex = Complex::No;
    fn f<R: Real>(&self, x: [R; N]) -> R;
    /// The op as exact as float16 and bfloat16 ask for, where that is cheaper.
    fn half(&self, x: [f32; N]) -> f32 {
        self.f(x)
    }
    /// The op on integers and bool, with wrapping arithmetic.
    fn int(&self, _x: [i64; N]) -> i64 {
        error::unwind(Error::new(
            Kind::NotImplemented,
            format!(
                "{} is not implemented for integers",
                std::any::type_name::<Self>()
            ),
        ))
    }
    /// A loop written by hand for this machine.
    fn own(_which: Own) -> Option<Kernel<f32>> {
        None
    }
    /// The same over the bits of float16 or bfloat16.
    fn own_bits(&self, _dtype: DType) -> Option<Kernel<u16>> {
        None
    }
    /// Gradients of the inputs for gradient `g` of the output `y`.
    fn df<R: Real>(&self, x: [R; N], y: R, g: R) -> [R; N];
    /// The same op with numbers of one kind, which loops need not tell apart again and again.
    fn settled(&self, integers: bool) -> Self;
    /// Refuses inputs that the op does not take; `dtype` is their promoted type.
    fn check<M: AsRef<Meta>>(&self, _dtype: DType, _x: &[M]) -> Result<()> {
        Ok(())
    }
    /// The op on integers as shader text over `t0`, `t1`, ... where `f` does not say it.
    fn wgsl(&self) -> Option<&'static str> {
        None
    }
    /// See [`Derivative::overwritten`].
    fn overwritten(&self) -> Result<()> {
        Ok(())
    }
    /// The gradient of input `i` where it needs no kernel (`add` hands it on).
    fn direct(&self, _i: usize, _g: &Tensor) -> Option<Result<Tensor>> {
        None
    }
}

/// What a loop of an op of one input computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Forward,
    /// As [`Pointwise::half`].
    Half,
    Gradient,
}

/// Declares pointwise ops. After the types: the formula, optionally the same on integers, and one
/// gradient per input; what it reads is what backward will keep.
macro_rules! pointwise {
    ($(
        $(#[doc = $doc:literal])*
        op $name:ident $({ $($field:ident: $ty:ty),* })? [$n:literal] = $node:literal, $types:ident;
        f |$p:pat_param, $x:pat_param| $f:expr;
        $(int |$ip:pat_param, $ix:pat_param| $int:expr;)?
        df |$dp:pat_param, $dx:pat_param, $dy:pat_param, $g:pat_param| $($d:expr),*;
        $(check |$cp:pat_param, $cd:pat_param, $cx:pat_param| $check:expr;)?
        $(divides $divides:literal;)?
        $(iterates $iterates:literal;)?
        $(opaque $opaque:literal;)?
        $(overwritten |$op:pat_param| $overwritten:expr;)?
        $(detached $detached:literal;)?
        $(guarded $guarded:literal;)?
        $(steps $steps:literal;)?
        $(half |$hp:pat_param, $hx:pat_param| $half:expr;)?
        $(own $own:path;)?
        $(bits |$bp:pat_param, $bt:pat_param| $bits:expr;)?
        $(complex $complex:ident;)?
        $(unsigned $unsigned:literal;)?
        $(exact $exact:literal;)?
        $(casts $casts:literal;)?
        $(repeats $repeats:ident;)?
        $(wgsl |$wp:pat_param| $wgsl:expr;)?
        $(direct |$qp:pat_param, $qi:pat_param, $qg:pat_param| $direct:expr;)?
    )*) => { $(
        $crate::ops::pointwise::pointwise!(@struct [$(#[doc = $doc])*] $name $({ $($field: $ty),* })?);
        impl $crate::ops::pointwise::Pointwise<$n> for $name {
            const NODE: &'static str = $node;
            const TYPES: $crate::ops::pointwise::Types = $crate::ops::pointwise::Types::$types;
            const INT: bool = false $(|| { let _ = stringify!($int); true })?;
            $(const DIVIDES: bool = $divides;)?
            $(const ITERATES: bool = $iterates;)?
            $(const OPAQUE: $crate::op::Mask = $opaque;)?
            $(const DETACHED: bool = $detached;)?
            $(const GUARDED: bool = $guarded;)?
            $(const STEPS: bool = $steps;)?
            const HALF: bool = false $(|| { let _ = stringify!($half); true })?;
            $(const UNSIGNED: bool = $unsigned;)?
            $(const EXACT: $crate::op::Mask = $exact;)?
            $(const CASTS: bool = $casts;)?
            $(const REPEATS: $crate::op::Repeats = $crate::op::Repeats::$repeats;)?
            $(const COMPLEX: $crate::ops::pointwise::Complex =
                $crate::ops::pointwise::Complex::$complex;)?
            #[inline(always)]
            fn f<R: $crate::ops::pointwise::Real>(&self, $x: [R; $n]) -> R {
                let $p = self;
                $f
            }
            $(#[inline(always)]
            fn half(&self, $hx: [f32; $n]) -> f32 {
                let $hp = self;
                $half
            })?
            $(#[inline(always)]
            fn own(
                which: $crate::ops::pointwise::Own,
            ) -> Option<$crate::cpu::pointwise::Kernel<f32>> {
                $own(which)
            })?
            $(fn own_bits(
                &self,
                $bt: $crate::dtype::DType,
            ) -> Option<$crate::cpu::pointwise::Kernel<u16>> {
                let $bp = self;
                $bits
            })?
            $(#[inline(always)]
            fn int(&self, $ix: [i64; $n]) -> i64 {
                let $ip = self;
                $int
            })?
            #[inline(always)]
            fn df<R: $crate::ops::pointwise::Real>(&self, $dx: [R; $n], $dy: R, $g: R) -> [R; $n] {
                let $dp = self;
                [$($d),*]
            }
            #[inline(always)]
            fn settled(&self, integers: bool) -> Self {
                let _ = integers;
                $crate::ops::pointwise::pointwise!(@settled self integers $({ $($field),* })?)
            }
            $(fn check<M: AsRef<$crate::meta::Meta>>(
                &self,
                $cd: $crate::dtype::DType,
                $cx: &[M],
            ) -> $crate::error::Result<()> {
                let $cp = self;
                $check
            })?
            $(fn wgsl(&self) -> Option<&'static str> {
                let $wp = self;
                Some($wgsl)
            })?
            $(fn overwritten(&self) -> $crate::error::Result<()> {
                let $op = self;
                $overwritten
            })?
            $(fn direct(
                &self,
                $qi: usize,
                $qg: &$crate::tensor::Tensor,
            ) -> Option<$crate::error::Result<$crate::tensor::Tensor>> {
                let $qp = self;
                $direct
            })?
        }
    )* };
    (@settled $self:ident $integers:ident) => { $self.clone() };
    (@settled $self:ident $integers:ident { $($field:ident),* }) => {
        Self { $($field: $crate::ops::pointwise::Parameter::settled(&$self.$field, $integers)),* }
    };
    (@struct [$($doc:tt)*] $name:ident) => {
        $($doc)*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name;
    };
    (@struct [$($doc:tt)*] $name:ident { $($field:ident: $ty:ty),* }) => {
        $($doc)*
        #[derive(Clone, Debug)]
        pub struct $name { $(pub $field: $ty),* }
        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                use $crate::ops::pointwise::Parameter;
                ($(self.$field.value(),)*) == ($(other.$field.value(),)*)
            }
        }
        impl std::cmp::Eq for $name {}
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                use $crate::ops::pointwise::Parameter;
                ($(self.$field.value(),)*).hash(state)
            }
        }
    };
}
pub(crate) use pointwise;

/// A field of a pointwise op.
pub trait Parameter: Clone {
    /// What is compared and hashed.
    type Value: Eq + Hash;
    fn value(&self) -> Self::Value;
    /// As the only kind of number that integers or floats ask for.
    fn settled(&self, _integers: bool) -> Self {
        self.clone()
    }
}
impl Parameter for Scalar {
    type Value = Scalar;
    fn value(&self) -> Scalar {
        *self
    }
    #[inline(always)]
    fn settled(&self, integers: bool) -> Scalar {
        match integers {
            true => Scalar::Int(self.i64()),
            false => Scalar::Float(self.f64()),
        }
    }
}
impl Parameter for f64 {
    type Value = u64;
    fn value(&self) -> u64 {
        self.to_bits()
    }
}
impl<T: Parameter> Parameter for Option<T> {
    type Value = Option<T::Value>;
    fn value(&self) -> Option<T::Value> {
        self.as_ref().map(T::value)
    }
    #[inline(always)]
    fn settled(&self, integers: bool) -> Option<T> {
        self.as_ref().map(|t| t.settled(integers))
    }
}
macro_rules! plain {
    ($($t:ty)*) => { $(impl Parameter for $t {
        type Value = $t;
        fn value(&self) -> $t {
            *self
        }
    })* };
}
plain! { i64 u32 bool Special Special2 Polynomial }

/// A pointwise op as an op.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pw<P, const N: usize>(pub P);

/// Computes and records a pointwise op.
pub fn apply<P: Pointwise<N>, const N: usize>(op: P, x: [&Tensor; N]) -> Result<Tensor> {
    dispatch::call1(Pw(op), &x)
}

/// As [`apply`] for a small call of the plainest kind; see [`dispatch::quick`].
pub fn quickly<P: Pointwise<N>, const N: usize>(op: P, x: &[&Tensor; N]) -> Option<Result<Tensor>> {
    dispatch::quick(Pw(op), x)
}

/// As [`apply`], into `x[0]`.
pub fn apply_<P: Pointwise<N>, const N: usize>(op: P, x: [&Tensor; N]) -> Result<Tensor> {
    dispatch::call_into(Pw(op), &x, x[0], true)
}

impl Args<'_> {
    /// Computes a pointwise op to wherever the result goes.
    pub fn apply<P: Pointwise<N>, const N: usize>(&self, op: P, x: [&Tensor; N]) -> Result<Value> {
        self.call(Pw(op), &x)
    }
}

fn promoted(x: &[impl AsRef<Meta>]) -> Result<DType> {
    let first = x[0].as_ref();
    if x.len() == 1
        || (x.len() == 2 && first.dtype() == x[1].as_ref().dtype() && !first.is_wrapped())
    {
        return Ok(first.dtype());
    }
    let mut p = Promotion::default();
    for t in x.iter().map(AsRef::as_ref) {
        p.add(t.dtype(), t.ndim(), t.is_wrapped());
    }
    p.result()
}

fn common_shape(x: &[impl AsRef<Meta>]) -> Result<Dims> {
    let mut shape = Dims::from_slice(x[0].as_ref().shape());
    for t in x[1..].iter().map(AsRef::as_ref) {
        if t.shape() != &shape {
            shape = shape::broadcast(&shape, t.shape())?;
        }
    }
    Ok(shape)
}

impl<P: Pointwise<N>, const N: usize> Pw<P, N> {
    /// The type that inputs are converted to, and the result's.
    fn types(&self, x: &[impl AsRef<Meta>]) -> Result<(DType, DType)> {
        let name = || function_name(P::NODE);
        let t = promoted(x)?;
        if t.is_complex() {
            self.0.check(t, x)?;
            let output = match (P::COMPLEX, P::TYPES) {
                (Complex::No, _) => bail!(
                    NotImplemented,
                    "\"{}_cpu\" not implemented for '{}'",
                    name(),
                    t.scalar_name()
                ),
                (_, Types::Bool) => DType::Bool,
                (Complex::Modulus, _) => complex::part_type(t),
                _ => t,
            };
            return Ok((t, output));
        }
        self.0.check(t, x)?;
        let (inputs, output) = match P::TYPES {
            Types::Same => (t, t),
            Types::Float => (t.to_float(), t.to_float()),
            Types::Bool => (t, DType::Bool),
            Types::FloatOnly => {
                ensure!(
                    t.is_float(),
                    NotImplemented,
                    "\"{}_cpu\" not implemented for '{}'",
                    name(),
                    t.scalar_name()
                );
                (t, t)
            }
            Types::IntOnly => {
                ensure!(
                    t.is_integral(),
                    NotImplemented,
                    "\"{}_cpu\" not implemented for '{}': it takes integers and bool",
                    name(),
                    t.scalar_name()
                );
                (t, t)
            }
        };
        ensure!(
            inputs.is_float() || P::INT,
            NotImplemented,
            "\"{}_cpu\" not implemented for '{}'",
            name(),
            t.scalar_name()
        );
        ensure!(
            !inputs.is_integral() || !t.is_wide_unsigned() || P::UNSIGNED,
            NotImplemented,
            "\"{}_cpu\" not implemented for '{}'",
            name(),
            t.scalar_name()
        );
        Ok((inputs, output))
    }

    /// Refuses numbers that loops over i64 do not compute with; `t` is the type of the loop.
    fn check_numbers(t: DType, x: &[&Tensor]) -> Result<()> {
        if !t.is_integral() || t == DType::U64 {
            return Ok(());
        }
        for x in x.iter().filter(|x| x.dtype() == DType::U64) {
            let value = x.item()?;
            ensure!(
                !matches!(value, Scalar::UInt(_)),
                Runtime,
                "{}: value cannot be converted to type int64_t without overflow: {value}",
                function_name(P::NODE)
            );
        }
        Ok(())
    }

    /// What comparisons of uint64 read instead: integers of i64 in the same order, or floating
    /// numbers where one is negative, which decides.
    fn ordered(x: &[&Tensor]) -> Result<SmallVec<[Tensor; 4]>> {
        let below = |t: &&Tensor| {
            let signed = t.dtype() != DType::U64;
            Ok(signed && t.numel() == 1 && t.item()?.f64() < 0.0)
        };
        let any = x
            .iter()
            .map(below)
            .collect::<Result<SmallVec<[bool; 4]>>>()?;
        let negative = any.contains(&true);
        x.iter()
            .map(|t| match negative {
                true => t.to_dtype(DType::F64),
                false => t.to_dtype(DType::U64)?.in_signed_order(),
            })
            .collect()
    }

    /// The inputs with 0-d tensors and numbers in the type that all are converted to, where it
    /// matters that one has a type of its own: half types compute with numbers that they hold
    /// (but for those in `EXACT`), and of integers the low bits are taken before a formula sees
    /// them. Comparisons of integers see them whole: 261 is no int8, so none equals it.
    fn settled(&self, t: DType, x: &[&Tensor]) -> Result<Option<SmallVec<[Tensor; 4]>>> {
        let truth = P::TYPES == Types::Bool;
        if !(t.is_half() || t.is_int() && !truth) {
            return Ok(None);
        }
        let exact = |i: usize| t.is_half() && !truth && P::EXACT >> i & 1 == 1;
        let (low, high) = t.limits();
        let holds = |v: Scalar| match t.is_half() {
            true => t.nearest(v.f64()) == v.f64(),
            false => (low..=high).contains(&v.i64()),
        };
        let other = |i: usize, x: &Tensor| {
            x.ndim() == 0
                && x.dtype().size() > t.size()
                && !exact(i)
                && (x.device() != Device::Cpu || !x.item().is_ok_and(holds))
        };
        if !x.iter().enumerate().any(|(i, x)| other(i, x)) {
            return Ok(None);
        }
        let each = x.iter().enumerate().map(|(i, x)| match other(i, x) {
            true => x.to_dtype(t),
            false => Ok((*x).clone()),
        });
        each.collect::<Result<_>>().map(Some)
    }
}

impl<P: Pointwise<N>, const N: usize> Derivative for Pw<P, N> {
    fn name(&self) -> &'static str {
        P::NODE
    }

    fn save(&self, needs: Mask) -> Save {
        let mut save = Save::NONE;
        for (i, (inputs, output)) in reads(&self.0).into_iter().enumerate() {
            if needs >> i & 1 == 1 {
                save.inputs |= inputs;
                save.outputs |= output as Mask;
            }
        }
        save
    }

    fn overwritten(&self) -> Result<()> {
        self.0.overwritten()
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, N);
        let Some(g) = &g[0] else { return Ok(out) };
        if let Some(i) = (0..N).find(|&i| cx.needs(i) && P::OPAQUE >> i & 1 == 1) {
            bail!(
                NotImplemented,
                "the derivative for '{}' of '{}' is not implemented.",
                ["self", "other"][i.min(1)],
                function_name(P::NODE)
            );
        }
        // What each gradient reads, unpacked once.
        let save = self.save((0..N).fold(0, |m, i| m | (cx.needs(i) as Mask) << i));
        let mut x: [Option<Tensor>; N] = [const { None }; N];
        for (i, slot) in x.iter_mut().enumerate() {
            if save.inputs >> i & 1 == 1 {
                *slot = Some(cx.input(i)?);
            }
        }
        let y = if save.outputs == 1 {
            Some(cx.output(0)?)
        } else {
            None
        };
        let complex = g.dtype().is_complex()
            || x.iter()
                .chain([&y])
                .flatten()
                .any(|t| t.dtype().is_complex());
        if complex && P::COMPLEX == Complex::Forward {
            bail!(
                NotImplemented,
                "{}: the derivative for complex numbers is not implemented",
                function_name(P::NODE)
            );
        }
        if mode::grad() || complex {
            // The formula over tensors gives the gradient as a graph.
            let wanted: [bool; N] = std::array::from_fn(|i| cx.needs(i));
            for (i, d) in expr::gradients(&self.0, &x, y.as_ref(), g, wanted)?
                .into_iter()
                .enumerate()
            {
                out[i] = d;
            }
            if P::STEPS && mode::grad() {
                let read: SmallVec<[&Tensor; 4]> = x.iter().chain([&y]).flatten().collect();
                for d in out.iter_mut().flatten().filter(|d| !d.requires_grad()) {
                    *d = step::reading(d, &read)?;
                }
            }
            return Ok(out);
        }
        for (i, (inputs_read, output_read)) in reads(&self.0).into_iter().enumerate() {
            if !cx.needs(i) {
                continue;
            }
            out[i] = Some(match self.0.direct(i, g) {
                Some(d) => d?,
                None => {
                    let op = PwGrad {
                        op: self.0.clone(),
                        i,
                    };
                    let mut inputs: SmallVec<[&Tensor; 5]> = SmallVec::new();
                    inputs.push(g);
                    // What the formula does not read may be anything of the shape.
                    inputs.push(match (&y, output_read) {
                        (Some(y), true) => y,
                        _ => g,
                    });
                    for (j, slot) in x.iter().enumerate() {
                        inputs.push(match (slot, inputs_read >> j & 1) {
                            (Some(t), 1) => t,
                            _ => g,
                        });
                    }
                    dispatch::compute(&op, &inputs)?.swap_remove(0)
                }
            });
        }
        Ok(out)
    }
}

impl<P: Pointwise<N>, const N: usize> Op for Pw<P, N> {
    // `types` tells which it computes with.
    fn unsigned(&self) -> bool {
        true
    }
    fn opaque(&self) -> bool {
        P::OPAQUE != 0
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let (_, dtype) = self.types(x)?;
        let shape = common_shape(x)?;
        Ok(SmallVec::from_elem(
            TensorMeta {
                shape,
                dtype,
                device: dispatch::device(x),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (t, output) = self.types(x)?;
        Self::check_numbers(t, x)?;
        if t == DType::U64 && P::TYPES == Types::Bool {
            let x = Self::ordered(x)?;
            let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
            return self.cpu(&x, y);
        }
        if t.size() < 8 && !t.is_complex() {
            if let Some(x) = self.settled(t, x)? {
                let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
                return self.cpu(&x, y);
            }
            if output.is_half() && y[0].dtype() != output {
                // What half types cannot hold shows in a wider `out=` too.
                let own = Tensor::empty(y[0].shape(), output, y[0].device())?;
                self.cpu(x, std::slice::from_ref(&own))?;
                return y[0].write_from(&own);
            }
        }
        let inputs: SmallVec<[Option<&Tensor>; 4]> = x.iter().copied().map(Some).collect();
        if t.is_complex() {
            return complex::compute(&self.0, x, &y[0]);
        }
        if P::DIVIDES && t.is_integral() && has_zero(x[1])? {
            bail!(Runtime, "ZeroDivisionError");
        }
        let params = (&raw const self.0).cast::<()>();
        if t.is_integral() {
            if P::INT {
                // SAFETY: as below.
                unsafe { run_int(&self.0, t, &inputs, &y[0]) };
            }
            return Ok(());
        }
        let grain = cost::grain(&self.0, t == DType::F64);
        if t.is_half() {
            if let Some(kernel) = self.0.own_bits(t) {
                // SAFETY: as below; the kernel is for this type.
                if unsafe { run_bits(kernel, params, t, x, &y[0], grain) } {
                    return Ok(());
                }
            }
        }
        // SAFETY: `params` points to the op that the kernels are instantiated for; `dispatch`
        // checked devices, shapes and overlap.
        unsafe {
            match t.compute() {
                DType::F64 => run::<f64>(kernel64::<P, N>(), params, &inputs, &y[0], grain),
                _ if P::HALF && t.is_half() => {
                    run::<f32>(kernel_half::<P, N>(), params, &inputs, &y[0], grain)
                }
                _ => run::<f32>(kernel32::<P, N>(), params, &inputs, &y[0], grain),
            }
        }
        Ok(())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let t = self.types(x)?.0;
        Self::check_numbers(t, x)?;
        if let Some(x) = self.settled(t, x)? {
            let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
            return self.gpu(gpu, &x, y);
        }
        let acc = Acc::of(t)?;
        if let Some(text) = self.0.wgsl() {
            if acc.has_functions(text) {
                return gpu::launch(gpu, acc, x, &y[0], |_| gpu::emit(text.into()));
            }
        }
        // Ops of integers only have no formula over numbers.
        if P::TYPES == Types::IntOnly {
            return Ok(false);
        }
        gpu::launch(gpu, acc, x, &y[0], |a| {
            self.0.f(std::array::from_fn(|i| a[i]))
        })
    }

    fn pointwise(&self) -> bool {
        true
    }

    fn casts(&self) -> bool {
        P::CASTS
    }

    fn repeats(&self) -> Repeats {
        P::REPEATS
    }

    fn quick(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        let dtype = match P::TYPES {
            Types::Same | Types::Float | Types::FloatOnly => DType::F32,
            Types::Bool => DType::Bool,
            Types::IntOnly => return None,
        };
        let mut call = fast::Call::new(x);
        if !call.fits(x) {
            return None;
        }
        if let Err(e) = self.0.check(DType::F32, x) {
            return Some(Err(e));
        }
        let y = match call.result(dtype) {
            Ok(y) => y,
            Err(e) => return Some(Err(e)),
        };
        let params = (&raw const self.0).cast::<()>();
        // SAFETY: `params` points to the op that the kernel is instantiated for.
        unsafe { call.run(kernel32::<P, N>(), params, &y) };
        Some(Ok(y))
    }

    fn quick_into(&self, x: &[&Tensor], y: &Tensor) -> Result<bool> {
        if !matches!(P::TYPES, Types::Same | Types::Float | Types::FloatOnly) {
            return Ok(false);
        }
        let mut call = fast::Call::new(x);
        if !call.fits(x) || !call.may_write(x, y) {
            return Ok(false);
        }
        self.0.check(DType::F32, x)?;
        let params = (&raw const self.0).cast::<()>();
        // SAFETY: the parameters are the kernel's own, it takes as many operands as were looked at, and the
        // call may write to `y`.
        unsafe { call.run(kernel32::<P, N>(), params, y) };
        Ok(true)
    }

    fn detached_outputs(&self) -> Mask {
        P::DETACHED as Mask
    }

    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        output_layout(x, &y.shape)
    }
}

/// Computes integers in their own type where all inputs have it, else in `i64`.
// SAFETY: as for `run`.
unsafe fn run_int<P: Pointwise<N>, const N: usize>(
    op: &P,
    t: DType,
    x: &[Option<&Tensor>],
    y: &Tensor,
) {
    // SAFETY: `x` and `y` are as for `run`, and every operand has the type `T`.
    unsafe fn as_is<T: Compute>(
        kernel: Kernel<T>,
        params: *const (),
        x: &[Option<&Tensor>],
        y: &Tensor,
        grain: usize,
    ) -> bool {
        // A number beyond the type's range means more than its low bits.
        let fits = |t: &Tensor| {
            t.dtype() == T::DTYPE
                || (t.numel() == 1
                    && t.dtype() == DType::I64
                    && T::DTYPE != DType::Bool
                    && *t.ptr::<i64>() == T::of_i64(*t.ptr::<i64>()).to_i64())
        };
        let all = x.iter().flatten().all(|t| fits(t));
        if all {
            run::<T>(kernel, params, x, y, grain);
        }
        all
    }
    let params = std::ptr::from_ref(op).cast::<()>();
    let grain = cost::int_grain(op, t.size());
    let done = match t {
        DType::I32 => as_is(kernel_i32::<P, N>(), params, x, y, grain),
        DType::I16 => as_is(kernel_i16::<P, N>(), params, x, y, grain),
        DType::I8 => as_is(kernel_i8::<P, N>(), params, x, y, grain),
        DType::U8 => as_is(kernel_u8::<P, N>(), params, x, y, grain),
        DType::Bool => as_is(kernel_bool::<P, N>(), params, x, y, grain),
        _ => false,
    };
    if !done {
        run::<i64>(kernel_i64::<P, N>(), params, x, y, grain);
    }
}

/// Whether a tensor of integers has a zero.
fn has_zero(x: &Tensor) -> Result<bool> {
    let x = x.to_host()?.prepared(x.dtype())?;
    Ok(crate::with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of this type.
        unsafe { x.slice::<T>() }.iter().any(|&v| Element::to_i64(v) == 0)
    }))
}

/// The memory order of a result where an input is not contiguous: PyTorch's, which sorts
/// dimensions by the inputs' strides and lets the first input that has an opinion decide.
pub fn output_layout(x: &[&Meta], shape: &[usize]) -> Option<Layout> {
    if x.iter().all(|t| t.is_contiguous()) || shape.contains(&0) {
        return None;
    }
    let first = x[0].layout();
    if x.iter()
        .all(|t| t.shape()[..] == *shape && t.strides() == x[0].strides())
        && first.is_dense()
    {
        let mut layout = first.clone();
        layout.offset = 0;
        return Some(layout);
    }
    let strides: SmallVec<[_; 4]> = x
        .iter()
        .map(|t| t.layout().expand_to(shape).strides)
        .collect();
    // 1 where dimension `a` must lie outside of `b`, -1 where inside, 0 where nobody cares.
    let compare = |a: usize, b: usize| {
        for s in &strides {
            match (s[a], s[b]) {
                (0, _) | (_, 0) => {}
                (p, q) if p < q => return -1,
                (p, q) if p > q => return 1,
                _ if shape[a] > shape[b] => return 1,
                _ => {}
            }
        }
        0
    };
    // Innermost first; stable insertion that passes over indifferent neighbours.
    let mut order: SmallVec<[usize; 5]> = (0..shape.len()).rev().collect();
    for i in 1..order.len() {
        let mut at = i;
        for j in (0..i).rev() {
            match compare(order[j], order[at]) {
                1 => {
                    order.swap(j, at);
                    at = j;
                }
                -1 => break,
                _ => {}
            }
        }
    }
    let mut layout = Layout::contiguous(shape);
    let mut step = 1;
    for &d in &order {
        layout.strides[d] = step;
        step *= shape[d] as isize;
    }
    Some(layout)
}

/// The gradient of input `i`, fused into one kernel: inputs are `g`, `y` and the op's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PwGrad<P, const N: usize> {
    op: P,
    i: usize,
}

/// The gradient of input `i`, not recorded; `inputs` are `g`, a stand-in for `y`, and the op's.
pub fn fused_gradient<P: Pointwise<N>, const N: usize>(
    op: &P,
    i: usize,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let op = PwGrad { op: op.clone(), i };
    Ok(dispatch::compute(&op, inputs)?.swap_remove(0))
}

impl<P: Pointwise<N>, const N: usize> Derivative for PwGrad<P, N> {
    fn name(&self) -> &'static str {
        P::NODE
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "{}: the fused gradient is never recorded",
            P::NODE
        )
    }
}

impl<P, const N: usize> PwGrad<P, N> {
    /// Gradients of f64 inputs in a mixed-type op stay f64.
    fn wide(&self, x: &[&Tensor]) -> bool {
        x[2..]
            .iter()
            .any(|t| t.dtype() == DType::F64 && t.ndim() > 0)
    }
}

impl<P: Pointwise<N>, const N: usize> Op for PwGrad<P, N> {
    fn unsigned(&self) -> bool {
        true
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = common_shape(x)?;
        let meta = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: dispatch::device(x),
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let inputs: SmallVec<[Option<&Tensor>; 5]> = x.iter().copied().map(Some).collect();
        let params = (&raw const self.op).cast::<()>();
        let double = y[0].dtype() == DType::F64 || self.wide(x);
        let grain = cost::gradient_grain(&self.op, self.i, double);
        // SAFETY: as for the forward kernels.
        unsafe {
            match double {
                true => run::<f64>(grad64::<P, N>(self.i), params, &inputs, &y[0], grain),
                false => run::<f32>(grad32::<P, N>(self.i), params, &inputs, &y[0], grain),
            }
        }
        Ok(())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let acc = match self.wide(x) {
            true => Acc::F64,
            false => Acc::of(y[0].dtype())?,
        };
        gpu::launch(gpu, acc, x, &y[0], |a| {
            self.op.df(std::array::from_fn(|i| a[i + 2]), a[1], a[0])[self.i]
        })
    }

    fn quick(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        let mut call = fast::Call::new(x);
        if !call.fits(x) {
            return None;
        }
        let y = match call.result(DType::F32) {
            Ok(y) => y,
            Err(e) => return Some(Err(e)),
        };
        let params = (&raw const self.op).cast::<()>();
        // SAFETY: `params` points to the op that the kernel is instantiated for.
        unsafe { call.run(grad32::<P, N>(self.i), params, &y) };
        Some(Ok(y))
    }

    fn pointwise(&self) -> bool {
        true
    }
}
