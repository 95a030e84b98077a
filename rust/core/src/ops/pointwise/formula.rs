//! What runs a pointwise op, compiled once for all of them: an op gives its loops, its texts and its
//! facts by [`Formula`], whatever its type.

mod derivative;
mod loops;

pub use derivative::{jvp, vjp};
pub use loops::each;

use super::cpu::complex::Parts;
use super::cpu::{grad32, grad64, halves, kernel32, kernel64, kernel_bool, kernel_half};
use super::cpu::{kernel_i16, kernel_i32, kernel_i64, kernel_i8, kernel_u8};
use super::cpu::{number32, number64, number_bool};
use super::cpu::{number_i16, number_i32, number_i64, number_i8, number_u8};
use super::gpu::Wgsl;
use super::gradient::PwGrad;
use super::types::{common_shape, promoted};
use super::{complex, cost, expr, gpu, Complex, Facts, Pointwise, Pw, Types};
use crate::cpu::elements::{Bool, Element};
use crate::cpu::pointwise::{run, run_bits, Kernel};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::{Acc, Gpu};
use crate::meta::Meta;
use crate::op::{function_name, Derivative, Grads, Mask, Metas, ReplayArgs, TensorMeta};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use loops::{run_int, with_number, with_numbers};
use smallvec::SmallVec;

/// The loops of an op over elements of one type.
pub struct Loops<T> {
    kernel: Kernel<T>,
    /// For either input of two that is a number; they take a [`Numbered`](crate::cpu::pointwise::spread::Numbered).
    number: Option<[Kernel<T>; 2]>,
}

/// The loops of an op over integers.
pub struct IntLoops {
    i64: Loops<i64>,
    i32: Loops<i32>,
    i16: Loops<i16>,
    i8: Loops<i8>,
    u8: Loops<u8>,
    bool: Loops<Bool>,
}

/// A pointwise op of any type.
pub trait Formula: Derivative {
    fn facts(&self) -> &'static Facts;
    fn check(&self, dtype: DType, x: &[&Meta]) -> Result<()>;
    /// What loops take as their parameters.
    fn params(&self) -> *const ();
    fn loop_f32(&self) -> Kernel<f32>;
    fn loop_f64(&self) -> Kernel<f64>;
    fn loop_half(&self) -> Kernel<f32>;
    fn loop_bits(&self, dtype: DType) -> Option<Kernel<u16>>;
    /// The loops for either input of two that is a number; they take a [`Numbered`](crate::cpu::pointwise::spread::Numbered).
    fn number_f32(&self) -> Option<[Kernel<f32>; 2]>;
    fn number_f64(&self) -> Option<[Kernel<f64>; 2]>;
    fn number_bits(&self, dtype: DType) -> Option<[Kernel<u16>; 2]>;
    /// None where integers raise.
    fn int_loops(&self) -> Option<IntLoops>;
    fn grain(&self, double: bool) -> usize;
    fn int_grain(&self, size: usize) -> usize;
    /// The loop over complex numbers of an op that takes them.
    fn loop_complex(&self) -> complex::Loop;
    /// As [`Cpu::own_parts`](super::Cpu::own_parts).
    fn loop_parts(&self, dtype: DType) -> Option<Parts>;
    /// The formula as shader text.
    fn shade(&self, x: &[Wgsl]) -> Wgsl;
    /// As [`Pointwise::wgsl`].
    fn text(&self) -> Option<&'static str>;
    /// What the gradient of each input reads: inputs, and whether the output.
    fn reads(&self) -> SmallVec<[(Mask, bool); 4]>;
    fn gradients(
        &self,
        x: &[Option<Tensor>],
        y: Option<&Tensor>,
        g: &Tensor,
        wanted: Mask,
    ) -> Result<Grads>;
    fn direct(&self, i: usize, g: &Tensor) -> Option<Result<Tensor>>;
    /// As [`Pointwise::steps`].
    fn steps_with_reads(&self) -> bool;
    /// The gradient of input `i` in one kernel; `x` are `g`, `y` and the inputs.
    fn fused_gradient(&self, i: usize, x: &[&Tensor]) -> Result<Tensor>;
    fn gradient_f32(&self, i: usize) -> Kernel<f32>;
    fn gradient_f64(&self, i: usize) -> Kernel<f64>;
    fn gradient_grain(&self, i: usize, double: bool) -> usize;
    fn shade_gradient(&self, i: usize, x: &[Wgsl]) -> Wgsl;
}

/// The loops of an op for either input of two that is a number, where it has such loops.
macro_rules! by_number {
    ($P:ident, $N:ident, $of:ident) => {
        match const { $P::FACTS.numbers && $N == 2 } {
            true => Some([$of::<$P, $N, 0>(), $of::<$P, $N, 1>()]),
            false => None,
        }
    };
}

impl<P: Pointwise<N>, const N: usize> Formula for Pw<P, N> {
    fn facts(&self) -> &'static Facts {
        const { &P::FACTS }
    }
    fn check(&self, dtype: DType, x: &[&Meta]) -> Result<()> {
        self.0.check(dtype, x)
    }
    fn params(&self) -> *const () {
        (&raw const self.0).cast()
    }
    fn loop_f32(&self) -> Kernel<f32> {
        kernel32::<P, N>()
    }
    fn loop_f64(&self) -> Kernel<f64> {
        kernel64::<P, N>()
    }
    fn loop_half(&self) -> Kernel<f32> {
        match P::HALF {
            true => kernel_half::<P, N>(),
            false => kernel32::<P, N>(),
        }
    }
    fn loop_bits(&self, dtype: DType) -> Option<Kernel<u16>> {
        match const { P::FACTS.half_loops } {
            true => halves::formula::<P, N>(dtype),
            false => self.0.own_bits(dtype),
        }
    }
    fn number_f32(&self) -> Option<[Kernel<f32>; 2]> {
        by_number!(P, N, number32)
    }
    fn number_f64(&self) -> Option<[Kernel<f64>; 2]> {
        by_number!(P, N, number64)
    }
    fn number_bits(&self, dtype: DType) -> Option<[Kernel<u16>; 2]> {
        match const { P::FACTS.numbers && N == 2 } {
            true => halves::numbered::<P, N>(dtype),
            false => None,
        }
    }
    fn int_loops(&self) -> Option<IntLoops> {
        if const { !P::FACTS.int } {
            return None;
        }
        macro_rules! loops {
            ($($t:ident: $kernel:ident $number:ident;)*) => {
                Some(IntLoops { $($t: Loops {
                    kernel: $kernel::<P, N>(),
                    number: by_number!(P, N, $number),
                },)* })
            };
        }
        loops! {
            i64: kernel_i64 number_i64;
            i32: kernel_i32 number_i32;
            i16: kernel_i16 number_i16;
            i8: kernel_i8 number_i8;
            u8: kernel_u8 number_u8;
            bool: kernel_bool number_bool;
        }
    }
    fn grain(&self, double: bool) -> usize {
        cost::grain(&self.0, double)
    }
    fn int_grain(&self, size: usize) -> usize {
        cost::int_grain(&self.0, size)
    }
    fn loop_complex(&self) -> complex::Loop {
        complex::formula::<P, N>
    }
    fn loop_parts(&self, dtype: DType) -> Option<Parts> {
        self.0.own_parts(dtype)
    }
    fn shade(&self, x: &[Wgsl]) -> Wgsl {
        self.0.f(std::array::from_fn(|i| x[i]))
    }
    fn text(&self) -> Option<&'static str> {
        self.0.wgsl()
    }
    fn reads(&self) -> SmallVec<[(Mask, bool); 4]> {
        SmallVec::from_slice(&cost::reads(&self.0))
    }
    fn gradients(
        &self,
        x: &[Option<Tensor>],
        y: Option<&Tensor>,
        g: &Tensor,
        wanted: Mask,
    ) -> Result<Grads> {
        expr::gradients(&self.0, x, y, g, wanted)
    }
    fn direct(&self, i: usize, g: &Tensor) -> Option<Result<Tensor>> {
        self.0.direct(i, g)
    }
    fn steps_with_reads(&self) -> bool {
        self.0.steps()
    }
    fn fused_gradient(&self, i: usize, x: &[&Tensor]) -> Result<Tensor> {
        let op = PwGrad {
            op: Pw(self.0.clone()),
            i,
        };
        Ok(dispatch::compute(&op, x)?.swap_remove(0))
    }
    fn gradient_f32(&self, i: usize) -> Kernel<f32> {
        grad32::<P, N>(i)
    }
    fn gradient_f64(&self, i: usize) -> Kernel<f64> {
        grad64::<P, N>(i)
    }
    fn gradient_grain(&self, i: usize, double: bool) -> usize {
        cost::gradient_grain(&self.0, i, double)
    }
    fn shade_gradient(&self, i: usize, x: &[Wgsl]) -> Wgsl {
        self.0.df(std::array::from_fn(|j| x[j + 2]), x[1], x[0])[i]
    }
}

pub fn infer(op: &dyn Formula, x: &[&Meta]) -> Result<Metas> {
    let (_, dtype) = types(op, x)?;
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

#[cold]
fn refuse<T>(op: &dyn Derivative, t: DType, more: &str) -> Result<T> {
    let name = function_name(op.name());
    let advice = match t.is_rare() {
        true => format!(
            "; convert the tensor with .to(dtype), such as .to(torch.{})",
            t.usual()
        ),
        false => String::new(),
    };
    bail!(
        NoKernel,
        "\"{name}_cpu\" not implemented for '{}'{more}{advice}",
        t.scalar_name()
    )
}

/// The type that inputs are converted to, and the result's.
fn types(op: &dyn Formula, x: &[&Meta]) -> Result<(DType, DType)> {
    let facts = op.facts();
    let t = promoted(x)?;
    op.check(t, x)?;
    if t.is_complex() {
        let output = match (facts.complex, facts.types) {
            (Complex::No, _) => return refuse(op, t, ""),
            (_, Types::Bool) => DType::Bool,
            (Complex::Modulus, _) => t.part(),
            _ => t,
        };
        return Ok((t, output));
    }
    let (inputs, output) = match facts.types {
        Types::Same => (t, t),
        Types::Float => (t.to_float(), t.to_float()),
        Types::Bool => (t, DType::Bool),
        Types::FloatOnly if !t.is_float() => return refuse(op, t, ""),
        Types::IntOnly if !t.is_integral() => return refuse(op, t, ": it takes integers and bool"),
        Types::FloatOnly | Types::IntOnly => (t, t),
    };
    if !inputs.is_float() && !facts.int
        || inputs.is_integral() && t.is_wide_unsigned() && !facts.unsigned
        || t.is_float8() && !facts.float8
    {
        return refuse(op, t, "");
    }
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

/// What comparisons of uint64 read instead: integers of i64 in the same order, or floating numbers
/// where one is negative, which decides.
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

/// The inputs with 0-d tensors and numbers in the type that all are converted to, where it matters
/// that one has a type of its own: half types compute with numbers that they hold (but for those in
/// `EXACT`), and of integers the low bits are taken before a formula sees them. Comparisons of
/// integers see them whole: 261 is no int8, so none equals it.
fn settled(facts: &Facts, t: DType, x: &[&Tensor]) -> Result<Option<SmallVec<[Tensor; 4]>>> {
    let truth = facts.types == Types::Bool;
    let small = t.is_half() || t.is_float8();
    if !(small || t.is_int() && !truth) {
        return Ok(None);
    }
    let exact = |i: usize, x: &Tensor| t.is_half() && facts.keeps(i, x.is_wrapped());
    let (low, high) = t.limits();
    let holds = |v: Scalar| match small {
        true => t.nearest(v.f64()) == v.f64(),
        false => (low..=high).contains(&v.i64()),
    };
    let other = |i: usize, x: &Tensor| {
        x.ndim() == 0
            && x.dtype().size() > t.size()
            && !exact(i, x)
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

pub fn cpu(op: &dyn Formula, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let facts = op.facts();
    let (t, output) = types(op, &dispatch::metas(x))?;
    check_numbers(t, x)?;
    if t == DType::U64 && facts.types == Types::Bool {
        let x = ordered(x)?;
        let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
        return cpu(op, &x, y);
    }
    if t.size() < 8 && !t.is_complex() {
        if let Some(x) = settled(facts, t, x)? {
            let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
            return cpu(op, &x, y);
        }
        if output.is_half() && y[0].dtype() != output {
            // What half types cannot hold shows in a wider `out=` too.
            let own = Tensor::empty(y[0].shape(), output, y[0].device())?;
            cpu(op, x, std::slice::from_ref(&own))?;
            return y[0].write_from(&own);
        }
    }
    if t.is_complex() {
        return complex::compute(op, (t, output), x, &y[0]);
    }
    if facts.divides && t.is_integral() && has_zero(x[1])? {
        bail!(Runtime, "ZeroDivisionError");
    }
    let inputs: SmallVec<[Option<&Tensor>; 4]> = x.iter().copied().map(Some).collect();
    let params = op.params();
    let grain = match t.is_integral() {
        true => op.int_grain(t.size()),
        false => op.grain(t == DType::F64),
    };
    if with_number(op, t, x, &y[0], grain) || with_numbers(op, t, x, &y[0], grain) {
        return Ok(());
    }
    if t.is_integral() {
        if let Some(loops) = op.int_loops() {
            // SAFETY: the loops and `params` are the op's; `dispatch` checked devices and shapes.
            unsafe { run_int(&loops, params, t, &inputs, &y[0], grain) };
        }
        return Ok(());
    }
    if t.is_half() {
        if let Some(kernel) = op.loop_bits(t) {
            // SAFETY: the kernel is the op's for this type; `dispatch` checked the tensors.
            if unsafe { run_bits(kernel, params, t, x, &y[0], grain) } {
                return Ok(());
            }
        }
    }
    // SAFETY: `params` points to the op that the kernels are instantiated for; `dispatch` checked
    // devices, shapes and overlap.
    unsafe {
        match t.compute() {
            DType::F64 => run::<f64, _>(op.loop_f64(), params, &inputs, &y[0], grain),
            _ if t.is_half() => run::<f32, _>(op.loop_half(), params, &inputs, &y[0], grain),
            _ => run::<f32, _>(op.loop_f32(), params, &inputs, &y[0], grain),
        }
    }
    Ok(())
}

/// Whether a tensor of integers has a zero.
fn has_zero(x: &Tensor) -> Result<bool> {
    let x = x.to_host()?.prepared(x.dtype())?;
    Ok(crate::with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of this type.
        let x = unsafe { x.slice::<T>() };
        // In blocks, within which vectors need not ask whether there was one.
        let among = |x: &[T]| x.iter().fold(false, |any, &v| any | (Element::to_i64(v) == 0));
        x.chunks(4096).any(among)
    }))
}

/// The numbers of the host among the inputs, as shaders have them.
pub fn replay_args(op: &dyn Formula, x: &[&Tensor]) -> Result<ReplayArgs> {
    let t = types(op, &dispatch::metas(x))?.0;
    let settled = settled(op.facts(), t, x)?;
    let x: SmallVec<[&Tensor; 4]> = match &settled {
        Some(x) => x.iter().collect(),
        None => x.into(),
    };
    let mut words = ReplayArgs::new();
    for x in x.iter().filter(|x| !x.device().is_gpu()) {
        words.extend(
            gpu::number(Acc::of_any(t)?, x)?
                .scalars()
                .iter()
                .flatten()
                .copied(),
        );
    }
    Ok(words)
}

pub fn gpu(op: &dyn Formula, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
    let facts = op.facts();
    let (t, output) = types(op, &dispatch::metas(x))?;
    if output.size() < 4 && y[0].dtype() != output {
        // What a narrow type cannot hold shows in a wider `out=` too.
        let own = Tensor::empty(y[0].shape(), output, y[0].device())?;
        let done = self::gpu(op, gpu, x, std::slice::from_ref(&own))?;
        if done {
            y[0].write_from(&own)?;
        }
        return Ok(done);
    }
    check_numbers(t, x)?;
    if let Some(x) = settled(facts, t, x)? {
        let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
        return self::gpu(op, gpu, &x, y);
    }
    let acc = Acc::of_any(t)?;
    if let Some(text) = op.text() {
        // Texts are of real numbers: a product of two pairs is that of their parts.
        if !acc.is_complex() && acc.has_functions(text) {
            return gpu::launch(gpu, acc, x, &y[0], &|_| gpu::own(text));
        }
    }
    // Ops of integers only have no formula over numbers.
    if facts.types == Types::IntOnly {
        return Ok(false);
    }
    gpu::launch(gpu, acc, x, &y[0], &|x| op.shade(x))
}
