//! Gradients and tangents of any pointwise op.

use super::Formula;
use crate::autograd::jvp::{self, along, Promised};
use crate::autograd::{mode, step, Jvp, Tangents, Vjp};
use crate::bail;
use crate::error::Result;
use crate::op::{function_name, Grads};
use crate::ops::pointwise::{Complex, Types};
use crate::tensor::Tensor;
use smallvec::SmallVec;

pub fn vjp(op: &dyn Formula, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
    let (facts, reads) = (op.facts(), op.reads());
    let mut out: Grads = SmallVec::from_elem(None, reads.len());
    let Some(g) = &g[0] else { return Ok(out) };
    if let Some(i) = (0..reads.len()).find(|&i| cx.needs(i) && facts.opaque >> i & 1 == 1) {
        bail!(
            NotImplemented,
            "the derivative for '{}' of '{}' is not implemented.",
            ["self", "other"][i.min(1)],
            function_name(op.name())
        );
    }
    // What each gradient reads, unpacked once.
    let save = op.save(cx.needed());
    let mut x: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for i in 0..reads.len() {
        x.push(match save.inputs >> i & 1 {
            1 => Some(cx.input(i)?),
            _ => None,
        });
    }
    let y = match save.outputs {
        1 => Some(cx.output(0)?),
        _ => None,
    };
    let read = || x.iter().chain([&y]).flatten();
    let complex = g.dtype().is_complex() || read().any(|t| t.dtype().is_complex());
    if complex && facts.complex == Complex::Forward {
        bail!(
            NotImplemented,
            "{}: the derivative for complex numbers is not implemented",
            function_name(op.name())
        );
    }
    if mode::grad() || complex || Promised::is(g) {
        // The formula over tensors gives the gradient as a graph.
        out = op.gradients(&x, y.as_ref(), g, cx.needed())?;
        if op.steps_with_reads() && mode::grad() {
            let read: SmallVec<[&Tensor; 4]> = read().collect();
            for d in out.iter_mut().flatten().filter(|d| !d.requires_grad()) {
                *d = step::reading(d, &read)?;
            }
        }
        return Ok(out);
    }
    for (i, (inputs_read, output_read)) in reads.into_iter().enumerate() {
        if !cx.needs(i) {
            continue;
        }
        if let Some(d) = op.direct(i, g) {
            out[i] = Some(d?);
            continue;
        }
        let mut inputs: SmallVec<[&Tensor; 6]> = SmallVec::new();
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
        out[i] = Some(op.fused_gradient(i, &inputs)?);
    }
    Ok(out)
}

/// The sum, over the inputs, of the gradient of each for its tangent: the Jacobian is a diagonal.
pub fn jvp(op: &dyn Formula, cx: &Jvp) -> Result<Option<Tangents>> {
    let facts = op.facts();
    if matches!(facts.types, Types::Bool | Types::IntOnly) {
        return Ok(Some(Tangents::from_elem(None, 1)));
    }
    let n = cx.inputs();
    if let Some(i) = (0..n).find(|&i| cx.tangent(i).is_some() && facts.opaque >> i & 1 == 1) {
        bail!(
            NotImplemented,
            "Trying to use forward AD with {0} that does not support it because it has not been \
             implemented yet: the derivative for '{1}' of '{0}' is not implemented.",
            function_name(op.name()),
            ["self", "other"][i.min(1)]
        );
    }
    let complex = |t: &Tensor| t.dtype().is_complex();
    if (0..n).any(|i| complex(cx.input(i)) || cx.tangent(i).is_some_and(complex)) {
        return Ok(None);
    }
    let same = (1..n).all(|i| cx.input(i).dtype() == cx.input(0).dtype());
    let dtype = match same && cx.input(0).dtype().is_float() {
        true => cx.input(0).dtype(),
        false => cx.output(0)?.dtype(),
    };
    let mut sum: Option<Tensor> = None;
    for (i, (inputs_read, output_read)) in op.reads().into_iter().enumerate() {
        let Some(t) = cx.tangent(i) else { continue };
        let t = t.to_dtype(dtype)?;
        if let Some(d) = op.direct(i, &t) {
            sum = Some(jvp::plus(sum, d?)?);
            continue;
        }
        let y = match output_read {
            true => Some(cx.output(0)?),
            false => None,
        };
        let read = |j: usize| (inputs_read >> j & 1 == 1).then(|| cx.input(j));
        let read: SmallVec<[Option<&Tensor>; 4]> = (0..n).map(read).collect();
        let mut all = read.iter().flatten().copied().chain(y).chain([&t]);
        let d = if Promised::is(&t) || (mode::grad() && all.any(|t| t.requires_grad())) {
            let x: SmallVec<[Option<Tensor>; 4]> = read.iter().map(|x| x.cloned()).collect();
            op.gradients(&x, y, &t, 1 << i)?[i].take()
        } else {
            let mut x: SmallVec<[&Tensor; 6]> = SmallVec::from_slice(&[&t, y.unwrap_or(&t)]);
            x.extend(read.iter().map(|x| x.unwrap_or(&t)));
            Some(op.fused_gradient(i, &x)?)
        };
        if let Some(d) = d {
            sum = Some(jvp::plus(sum, d)?);
        }
    }
    match sum {
        Some(t) => along(t),
        None => Ok(Some(Tangents::from_elem(None, 1))),
    }
}
