//! Maps of lines that a GPU's kernel does not bind: parts of the outputs, or of one output's terms, read
//! parts of the line.

use super::gpu::MAX_VOLUME;
use super::{Axis, Resample};
use crate::dispatch;
use crate::dtype::Bitwise;
use crate::error::Result;
use crate::op::{Op, Tensors};
use crate::tensor::Tensor;
use crate::transfer::{is_short, may_be_large};
use smallvec::smallvec;
use std::ops::Range;
use std::sync::Arc;

impl Axis {
    /// These outputs, and the inputs that they read; `None` where that is nothing.
    fn of_outputs(&self, outputs: Range<usize>) -> Option<(Axis, Range<usize>)> {
        let terms = self.start[outputs.start]..self.start[outputs.end];
        let index = &self.index[terms.clone()];
        let (low, high) = (*index.iter().min()?, *index.iter().max()? + 1);
        let start = &self.start[outputs.start..=outputs.end];
        let weight = match self.weight.is_empty() {
            true => Vec::new(),
            false => self.weight[terms.clone()].to_vec(),
        };
        let part = Axis {
            inputs: high - low,
            outputs: outputs.len(),
            start: start.iter().map(|at| at - terms.start).collect(),
            index: index.iter().map(|at| at - low).collect(),
            weight: Bitwise(weight),
        };
        Some((part, low..high))
    }

    /// These inputs, and the outputs that read them; `None` where that is nothing.
    fn of_inputs(&self, inputs: Range<usize>) -> Option<(Axis, Range<usize>)> {
        let reads = |i: usize| {
            let terms = self.start[i]..self.start[i + 1];
            terms.filter(|&t| inputs.contains(&self.index[t]))
        };
        let mut outputs = (0..self.outputs()).filter(|&i| reads(i).next().is_some());
        let low = outputs.next()?;
        let high = outputs.next_back().unwrap_or(low) + 1;
        let mut part = Axis {
            inputs: inputs.len(),
            outputs: high - low,
            start: vec![0],
            index: Vec::new(),
            weight: Bitwise(Vec::new()),
        };
        for i in low..high {
            for t in reads(i) {
                part.index.push(self.index[t] - inputs.start);
                part.weight.0.extend(self.weight.get(t));
            }
            part.start.push(part.index.len());
        }
        Some((part, low..high))
    }

    /// The terms of an output at most.
    pub(super) fn most_terms(&self) -> usize {
        let all = self.start.windows(2).map(|w| w[1] - w[0]);
        all.max().unwrap_or(0)
    }

    /// The words of the table that a kernel reads, of the type that it computes in.
    fn words(&self, size: usize) -> usize {
        self.start.len() + self.index.len() + (self.weight.len() + self.outputs()) * size / 4
    }
}

impl Resample {
    /// The map from some inputs to some outputs of dimension `d`.
    fn along(&self, d: usize, axis: Axis, inputs: Range<usize>, outputs: Range<usize>) -> Resample {
        let mut op = self.clone();
        let mut axes = (*self.axes).clone();
        axes[d] = axis;
        op.axes = Arc::new(axes);
        op.divisors = self.divisors.as_ref().map(|all| {
            let mut all = (**all).clone();
            let own = if self.adjoint { inputs } else { outputs };
            all[d] = Bitwise(all[d][own].to_vec());
            Arc::new(all)
        });
        op.pool = None;
        op
    }
}

/// `None` where it is not for their size that a kernel does not take these, or nothing can be cut.
pub fn by_halves(op: &Resample, x: &Tensor) -> Result<Option<Tensors>> {
    let (dtype, device) = (x.dtype(), x.device());
    let meta = op.infer(&[x.meta()])?.swap_remove(0);
    let most = x.numel().max(meta.shape.iter().product());
    if dtype.is_complex() {
        if is_short(device, most, dtype) {
            return Ok(None);
        }
        let part = |k| dispatch::call1(op.clone(), &[&x.real_part(k)?]);
        return Ok(Some(smallvec![Tensor::of_parts(&part(0)?, &part(1)?)?]));
    }
    let weighted = op.axes.iter().any(|a| !a.weight.is_empty());
    if weighted && !dtype.is_float() {
        return Ok(None);
    }
    let size = dtype.compute().size();
    let table = op.axes.iter().map(|a| a.words(size)).max().unwrap_or(0);
    let terms: usize = op.axes.iter().map(Axis::most_terms).product();
    let is_long = device.is_gpu() && terms >= MAX_VOLUME - 1;
    if !is_long && !may_be_large(device, (most * size).max(4 * table)) {
        return Ok(None);
    }
    let length = |&d: &usize| op.axes[d].inputs.max(op.axes[d].outputs());
    let Some(d) = (0..op.axes.len()).max_by_key(length) else {
        return Ok(None);
    };
    let (axis, dim) = (&op.axes[d], (x.ndim() - op.axes.len() + d) as i64);
    let n = axis.outputs();
    let narrow = |t: &Tensor, of: &Range<usize>| t.narrow(dim, of.start as i64, of.len() as i64);
    let outputs = [0..n / 2, n / 2..n];
    let spread = || {
        let read = |of: &Range<usize>| {
            axis.of_outputs(of.clone())
                .map_or(0, |(_, read)| read.len())
        };
        let both: usize = outputs.iter().map(read).sum();
        axis.index.len() >= 2 * n && 2 * both >= 3 * axis.inputs
    };
    if n > 1 && !spread() {
        let y = Tensor::zeros(&meta.shape, dtype, device)?;
        for of in outputs {
            if let Some((part, read)) = axis.of_outputs(of.clone()) {
                let x = narrow(x, &read)?;
                let part = dispatch::call1(op.along(d, part, read, of.clone()), &[&x])?;
                narrow(&y, &of)?.write_from(&part)?;
            }
        }
        return Ok(Some(smallvec![y]));
    }
    // Where halves of the outputs read most of the inputs, or there is one, halves of the inputs are read.
    let divided = op.divisors.is_some() && !dtype.is_float();
    if axis.inputs < 2 || divided {
        // Integers are divided once, whole sums.
        return Ok(None);
    }
    let (wide, m) = (x.to_dtype(dtype.compute())?, axis.inputs);
    let y = Tensor::zeros(&meta.shape, wide.dtype(), device)?;
    for of in [0..m / 2, m / 2..m] {
        if let Some((part, reached)) = axis.of_inputs(of.clone()) {
            let x = narrow(&wide, &of)?;
            let part = dispatch::call1(op.along(d, part, of, reached.clone()), &[&x])?;
            let place = narrow(&y, &reached)?;
            place.write_from(&place.add(&part)?)?;
        }
    }
    Ok(Some(smallvec![y.to_dtype(dtype)?]))
}
