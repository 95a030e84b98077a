//! Pointwise ops: one formula each, from which every kernel and derivative follows.

pub mod binary;
pub mod complex;
mod cost;
pub mod cpu;
mod declare;
#[cfg(test)]
mod dual;
pub mod expr;
mod fast;
pub mod gpu;
mod gradient;
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
use crate::error::Result;
use crate::gpu::{Acc, Gpu};
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{function_name, Derivative, Grads, Mask, Metas, Op, Repeats, Save, TensorMeta};
use crate::schema::{Args, Value};
use crate::shape::{self, Dims};
use crate::tensor::Tensor;
use crate::{bail, ensure};
pub use complex::Complex;
use cost::reads;
use cpu::{kernel32, kernel64, kernel_bool, kernel_half};
use cpu::{kernel_i16, kernel_i32, kernel_i64, kernel_i8, kernel_u8};
pub(crate) use declare::pointwise;
pub use declare::{Own, Parameter, Pointwise, Types};
pub use gradient::fused_gradient;
use gradient::PwGrad;
pub use real::{c, k, Float, Polynomial, Real, Special, Special2};
use smallvec::SmallVec;
use std::hash::Hash;

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
                "value cannot be converted to type int64_t without overflow: {value}"
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
            if self.0.steps() && mode::grad() {
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
