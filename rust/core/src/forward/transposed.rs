//! The tangent of an op that has no rule for it. The product of a gradient with its Jacobian, `vjp`, is
//! linear in the gradient: the transpose of that, by another `vjp`, is the product with a tangent.

use super::unknown;
use crate::autograd::jvp::{plus, Followed};
use crate::autograd::{engine, mode, Edge, Tangents};
use crate::batch;
use crate::dispatch;
use crate::error::{Kind, Result};
use crate::op::Tensors;
use crate::ops::shape::view::View;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Runs `f` while gradients are recorded.
fn recording<R>(f: impl FnOnce() -> R) -> R {
    struct Guard(bool);
    impl Drop for Guard {
        fn drop(&mut self) {
            mode::set_inference(self.0);
        }
    }
    let _guard = Guard(mode::set_inference(false));
    mode::with_grad(true, f)
}

/// A leaf with the content of a tensor, by which is differentiated here.
fn leaf(t: &Tensor) -> Result<Tensor> {
    let own = match t.is_inference() {
        true => t.copy_dense()?,
        false => t.clone(),
    };
    let leaf = batch::leaf(&own).unwrap_or_else(|| own.detach());
    leaf.set_requires_grad(true)?;
    Ok(leaf)
}

fn pass(
    roots: &[(Edge, Tensor)],
    inputs: &[Edge],
    create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    let request = engine::Request {
        roots,
        inputs,
        accumulate: false,
        keep_graph: true,
        create_graph,
    };
    engine::backward(&request)
}

/// The results of `run`, and their tangents for those of the inputs.
pub(super) fn along(
    name: &str,
    run: &dyn Fn(&[&Tensor]) -> Result<Tensors>,
    x: &[&Tensor],
    t: &[Option<Tensor>],
) -> Result<Followed> {
    // Whether someone below asks for gradients of what comes out.
    let outer = mode::grad()
        && (x.iter().any(|t| t.requires_grad()) || t.iter().flatten().any(Tensor::requires_grad));
    recording(|| {
        let mut inside: SmallVec<[Tensor; 4]> = SmallVec::new();
        for (i, x) in x.iter().enumerate() {
            inside.push(match t[i] {
                Some(_) if outer && x.requires_grad() => {
                    let name = "ViewBackward0";
                    dispatch::view(View { name }, x, x.layout().clone())?
                }
                Some(_) => leaf(x)?,
                None if x.is_inference() => x.copy_dense()?,
                None => (*x).clone(),
            });
        }
        let refs: SmallVec<[&Tensor; 4]> = inside.iter().collect();
        let y = run(&refs)?;
        let along = match products(&inside, &y, t, outer) {
            Err(e) if e.kind == Kind::NotImplemented && e.text.contains("derivative") => {
                return unknown(name, &e.text)
            }
            found => found?,
        };
        let left = y.into_iter().map(|y| match outer {
            true => y,
            false => y.detach(),
        });
        Ok((left.collect(), along))
    })
}

fn products(x: &[Tensor], y: &[Tensor], t: &[Option<Tensor>], outer: bool) -> Result<Tangents> {
    let mut edges: SmallVec<[Edge; 4]> = SmallVec::new();
    let mut tangents: SmallVec<[&Tensor; 4]> = SmallVec::new();
    for (x, t) in x.iter().zip(t) {
        if let (Some(t), Some(edge)) = (t, x.edge()?) {
            edges.push(edge);
            tangents.push(t);
        }
    }
    let mut live: SmallVec<[(usize, Edge); 1]> = SmallVec::new();
    for (k, y) in y.iter().enumerate() {
        if let Some(edge) = y.requires_grad().then(|| y.edge()).transpose()?.flatten() {
            live.push((k, edge));
        }
    }
    let mut out = Tangents::from_elem(None, y.len());
    if live.is_empty() {
        return Ok(out);
    }
    if let [(k, edge)] = &live[..] {
        let y = &y[*k];
        if y.numel() == 1
            && !y.dtype().is_complex()
            && !tangents.iter().any(|t| t.dtype().is_complex())
        {
            // One gradient is all of the Jacobian.
            let one = y.blank(y.shape(), 1.into(), y.dtype(), y.device())?;
            let found = pass(&[(edge.clone(), one)], &edges, outer)?;
            let mut sum: Option<Tensor> = None;
            for (g, t) in found.iter().zip(&tangents) {
                let Some(g) = g else { continue };
                let part = mode::with_grad(outer, || g.mul(t)?.sum_mask(all(g)?, false, None))?;
                sum = Some(mode::with_grad(outer, || plus(sum, part))?);
            }
            out[*k] = sum.map(|s| s.reshape_to(y.shape())).transpose()?;
            return Ok(out);
        }
    }
    // Any values do: the second pass is linear in them.
    let mut probes: SmallVec<[(Edge, Tensor); 1]> = SmallVec::new();
    for (k, edge) in &live {
        let y = &y[*k];
        let zeros = y.blank(y.shape(), 0.into(), y.dtype(), y.device())?;
        probes.push((edge.clone(), leaf(&zeros)?));
    }
    let found = pass(&probes, &edges, true)?;
    let mut roots: SmallVec<[(Edge, Tensor); 4]> = SmallVec::new();
    for (g, t) in found.iter().zip(&tangents) {
        let Some(g) = g.as_ref().filter(|g| g.requires_grad()) else {
            continue;
        };
        if let Some(edge) = g.edge()? {
            roots.push((edge, (*t).clone()));
        }
    }
    if roots.is_empty() {
        return Ok(out);
    }
    let mut inputs: SmallVec<[Edge; 1]> = SmallVec::new();
    for (_, probe) in &probes {
        inputs.extend(probe.edge()?);
    }
    let found = pass(&roots, &inputs, outer)?;
    for ((k, _), found) in live.iter().zip(found) {
        out[*k] = found;
    }
    Ok(out)
}

/// All dimensions of a tensor.
fn all(t: &Tensor) -> Result<crate::shape::DimSet> {
    Ok(crate::shape::DimSet::all(t.ndim()))
}
