//! Linear maps along one dimension after another, on the GPU.

use super::{Axis, Resample};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::DivTrunc;
use crate::shape::Dims;
use crate::tensor::Tensor;

params! {
    struct Block {
        n: u32,
        inputs: u32,
        outputs: u32,
        inner: u32,
        x_offset: u32,
        y_offset: u32,
        index_at: u32,
        weight_at: u32,
        divisor_at: u32,
    }
}
shader! { static RESAMPLE: Block = "resample.wgsl", Acc::ALL }

/// Terms of one output: below software Vulkan's 65,535 loop iterations.
const MAX_TERMS: usize = 60_000;

/// Runs the map on a contiguous tensor.
pub fn run(gpu: &Gpu, op: &Resample, x: &Tensor, y: &Tensor) -> Result<()> {
    let acc = Acc::of(y.dtype())?;
    if let (Some(all), false, false) = (&op.divisors, y.dtype().is_float(), op.adjoint) {
        // Integers are divided once, whole sums.
        let sums = Resample {
            divisors: None,
            ..op.clone()
        };
        run(gpu, &sums, x, y)?;
        let lead = y.ndim() - all.len();
        for (d, each) in all.iter().enumerate() {
            let mut shape = Dims::from_elem(1, y.ndim());
            shape[lead + d] = each.len();
            let by = Tensor::from_slice(&each[..], &shape, DType::F64)?.to_dtype(y.dtype())?;
            y.write_from(&apply(DivTrunc, [y, &by.to_device(gpu.device())?])?)?;
        }
        return Ok(());
    }
    let weighted = op.axes.iter().any(|a| !a.weight.is_empty());
    // Whole weights, and sums that are rounded after each dimension, the last one first.
    let bytes = weighted && y.dtype() == DType::U8 && op.divisors.is_none();
    ensure!(
        bytes || y.dtype().is_float() || !(weighted || op.divisors.is_some()),
        NoKernel,
        "wgpu: resample: weights of {}",
        y.dtype()
    );
    let sizes = |f: fn(&Axis) -> usize| -> Dims { op.axes.iter().map(f).collect() };
    let (from, to) = (sizes(|a| a.inputs), sizes(Axis::outputs));
    let order: Vec<usize> = match op.divisors {
        // What is divided by depends on the place, also where elements stay where they are.
        Some(_) => (0..op.axes.len()).collect(),
        None => op.order(&from, &to, bytes),
    };
    let Some((&last, rest)) = order.split_last() else {
        return y.write_from(x);
    };
    let mut shape = x.shape().clone();
    let lead = shape.len() - op.axes.len();
    let mut x = x.clone();
    for &d in rest {
        shape[lead + d] = to[d];
        let next = Tensor::empty(&shape, acc.dtype(), gpu.device())?;
        pass(gpu, op, acc, d, bytes, &x, &next)?;
        x = next;
    }
    pass(gpu, op, acc, last, bytes, &x, y)
}

fn pass(
    gpu: &Gpu,
    op: &Resample,
    acc: Acc,
    d: usize,
    bytes: bool,
    x: &Tensor,
    y: &Tensor,
) -> Result<()> {
    let lead = y.ndim() - op.axes.len();
    let fixed = bytes.then(|| op.axes[d].fixed()).transpose()?;
    let (axis, digits) = fixed.as_ref().map_or((&op.axes[d], 0), |(a, n)| (a, *n));
    let longest = axis.most_terms();
    ensure!(
        longest < MAX_TERMS && x.numel().max(y.numel()) < 1 << 31,
        NoKernel,
        "wgpu: resample: {longest} terms, {} elements",
        y.numel()
    );
    let mut table: Vec<u32> = axis
        .start
        .iter()
        .chain(&axis.index)
        .map(|&n| n as u32)
        .collect();
    let size = acc.dtype().size() / 4;
    let put = |table: &mut Vec<u32>, numbers: &[f64]| {
        let at = table.len() as u32;
        for &v in numbers {
            table.extend_from_slice(&acc.words(v)[..size]);
        }
        at
    };
    let index_at = axis.start.len() as u32;
    let unit = 2f64.powi(digits);
    let weights: Vec<f64> = axis.weight.iter().map(|w| w * unit).collect();
    let weight_at = put(&mut table, &weights);
    let divisors = op.divisors.as_ref().map(|all| &all[d]);
    let divisor_at = put(&mut table, divisors.map_or(&[], |v| &v[..]));
    let host = Tensor::from_slice(&table, &[table.len()], DType::I32)?;
    let table = host.to_device(gpu.device())?;
    let p = Block {
        n: y.numel() as u32,
        inputs: axis.inputs as u32,
        outputs: axis.outputs() as u32,
        inner: x.shape()[lead + d + 1..].iter().product::<usize>() as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        index_at,
        weight_at,
        divisor_at,
    };
    RESAMPLE
        .launch(acc)
        .set("WEIGHTED", !axis.weight.is_empty())
        .set("DIGITS", digits as u32)
        .set("OVER_SUM", divisors.is_some() && !op.adjoint)
        .set("OVER_TERM", divisors.is_some() && op.adjoint)
        .writes("Y", y)
        .reads("X", x)
        .reads_words(&table)
        .each(gpu, &p, y.offset(), y.numel())
}
