//! The results of an op for all slices: by its own rule, by the same op of one dimension more, by
//! broadcasting, along a dimension in which its work can be cut, or slice by slice.

use super::{derived, Batch, Input};
use crate::autograd::mode;
use crate::dispatch::{self, Run};
use crate::error::Result;
use crate::op::{function_name, Mapped, Mask, Op, Tensors};
use crate::ops::shape::join::stack;
use crate::schema::Value;
use crate::tensor::Tensor;
use crate::{bail, host};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

/// What happens where an op runs slice by slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Loops {
    Quiet,
    Warned,
    Refused,
}

static LOOPS: AtomicU8 = AtomicU8::new(Loops::Warned as u8);
static COUNTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// How often ops ran slice by slice, by their names.
pub fn loops() -> BTreeMap<String, u64> {
    COUNTS.lock().clone()
}

/// Says what happens where an op runs slice by slice, and gives what did.
pub fn set_loops(how: Loops) -> Loops {
    match LOOPS.swap(how as u8, Ordering::Relaxed) {
        0 => Loops::Quiet,
        1 => Loops::Warned,
        _ => Loops::Refused,
    }
}

/// The results of an op for all slices, along a dimension in front; `logical` are the inputs of one.
pub(super) fn results(
    batch: &Batch,
    op: &dyn Op,
    inputs: &[Input],
    logical: &[&Tensor],
) -> Result<Tensors> {
    let size = batch.size;
    let x: SmallVec<[Tensor; 4]> = inputs.iter().map(|i| i.t.clone()).collect();
    let mut mapped: Mask = 0;
    for (i, input) in inputs.iter().enumerate() {
        mapped |= (input.mapped as Mask) << i.min(63);
    }
    let m = Mapped {
        x: &x,
        mapped,
        size,
    };
    if x.len() > 64 {
        // One bit stands for all from the last one on.
        let x = derived::all_mapped(inputs, size)?;
        let mapped = Mask::MAX;
        let m = Mapped {
            x: &x,
            mapped,
            size,
        };
        return by_rules(batch, op, &m, logical);
    }
    by_rules(batch, op, &m, logical)
}

fn by_rules(batch: &Batch, op: &dyn Op, m: &Mapped, logical: &[&Tensor]) -> Result<Tensors> {
    if let Some(y) = op.batching().map_or(Ok(None), |b| b.map(m))? {
        return Ok(y);
    }
    let metas = dispatch::metas(logical);
    if let Some(y) = derived::of_many(op, m, &metas)? {
        return Ok(y);
    }
    if op.traits().elementwise {
        let x = derived::aligned(op, m, &metas)?;
        let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
        return dispatch::call_kept(op.keep(), &x);
    }
    if let Some(y) = derived::folded(op, m, &metas)? {
        return Ok(y);
    }
    if let Some(y) = by_ops(batch, op, logical)? {
        return Ok(y);
    }
    by_slices(op, m, logical)
}

/// The results by ops that have rules, which are asked for in the function again.
fn by_ops(batch: &Batch, op: &dyn Op, logical: &[&Tensor]) -> Result<Option<Tensors>> {
    let (Some(me), Some(rules)) = (batch.me.upgrade(), op.batching()) else {
        return Ok(None);
    };
    // Gradients within the function go by the op itself.
    let x: SmallVec<[Tensor; 4]> = logical.iter().map(|t| t.detach()).collect();
    let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
    let Some(y) = dispatch::interpreted(me, || rules.map_by_ops(&x))? else {
        return Ok(None);
    };
    let whole = |t: &Tensor| match batch.whole(t)? {
        Some(whole) => Ok(whole),
        None => t.expand_to(&crate::shape::of_many(batch.size, t.shape())),
    };
    y.iter().map(whole).collect::<Result<_>>().map(Some)
}

/// The inputs of an op that elements of the first one are written by, aligned with it; `None` where it
/// is not elementwise.
pub(super) fn aligned_in_place(
    op: &dyn Op,
    inputs: &[Input],
) -> Result<Option<SmallVec<[Tensor; 4]>>> {
    let x: SmallVec<[Tensor; 4]> = inputs.iter().map(|i| i.t.clone()).collect();
    let mut mapped: Mask = 0;
    for (i, input) in inputs.iter().enumerate() {
        mapped |= (input.mapped as Mask) << i;
    }
    let size = x[0].size(0);
    let m = Mapped {
        x: &x,
        mapped,
        size,
    };
    if !op.traits().elementwise {
        return Ok(None);
    }
    derived::aligned_to(&m, m.ndim(0)).map(Some)
}

/// The results of inputs without slices.
pub(super) fn found(op: &dyn Op, x: &[&Tensor]) -> Result<Tensors> {
    match op.batching().and_then(|b| b.find(x)) {
        Some(y) => y,
        None => dispatch::call_kept(op.keep(), x),
    }
}

/// Runs an op for one slice after another.
#[cold]
pub(super) fn by_slices(op: &dyn Op, m: &Mapped, logical: &[&Tensor]) -> Result<Tensors> {
    let name = function_name(op.name());
    note_loop(&name)?;
    let once = |i: Option<usize>| -> Result<Tensors> {
        let mut x: SmallVec<[Tensor; 4]> = SmallVec::new();
        for (k, t) in m.x.iter().enumerate() {
            x.push(match (m.has(k), i) {
                (false, _) => t.clone(),
                (true, Some(i)) => t.select(0, i as i64)?,
                (true, None) => {
                    let one = logical[k];
                    Tensor::zeros(one.shape(), one.dtype(), one.device())?
                }
            });
        }
        let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
        found(op, &x)
    };
    if m.size == 0 {
        let empty = |t: Tensor| stack(&[t], 0)?.narrow(0, 0, 0);
        return once(None)?.into_iter().map(empty).collect();
    }
    let all: Vec<Tensors> = (0..m.size).map(|i| once(Some(i))).collect::<Result<_>>()?;
    let mut y = Tensors::new();
    for k in 0..all[0].len() {
        let each: Vec<Tensor> = all.iter().map(|y| y[k].clone()).collect();
        let alike = each.iter().all(|t| t.shape() == each[0].shape());
        if !alike || all.iter().any(|y| y.len() != all[0].len()) {
            return dynamic(&name);
        }
        y.push(stack(&each, 0)?);
    }
    Ok(y)
}

/// Runs a function of arguments for one slice after another; `None` where its results are no tensors, or a
/// gradient within the function that is mapped would be lost.
#[cold]
pub(super) fn values_by_slices(
    batch: &Batch,
    name: &str,
    values: &[Value],
    run: &Run,
) -> Option<Result<Value>> {
    let recorded = |t: &Tensor| mode::grad() && t.requires_grad();
    let (mut own, mut lost) = (false, false);
    for t in values.iter().flat_map(tensors) {
        own |= batch.own(t).is_some();
        lost |= recorded(t);
    }
    if !own {
        return dispatch::by_slices(name, values, run);
    }
    if lost || batch.size == 0 {
        return None;
    }
    let each = |i: usize| -> Result<Value> {
        let values: Vec<Value> = (values.iter())
            .map(|v| changed(v, &|t| batch.slice(t, i)))
            .collect::<Result<_>>()?;
        run(&values)
    };
    if let Err(e) = note_loop(name) {
        return Some(Err(e));
    }
    let all: Result<Vec<Value>> = (0..batch.size).map(each).collect();
    let all = match all {
        Ok(all) => all,
        Err(e) => return Some(Err(e)),
    };
    let lists: Vec<Vec<&Tensor>> = all.iter().map(|v| tensors(v).collect()).collect();
    if lists[0].is_empty() {
        return None;
    }
    let mut stacked = Vec::new();
    for k in 0..lists[0].len() {
        let each: Vec<Tensor> = lists
            .iter()
            .filter_map(|l| l.get(k).map(|t| (*t).clone()))
            .collect();
        if each.len() != lists.len() || each.iter().any(|t| t.shape() != each[0].shape()) {
            return Some(dynamic(name));
        }
        match stack(&each, 0) {
            Ok(t) => stacked.push(batch.one(t, None)),
            Err(e) => return Some(Err(e)),
        }
    }
    Some(Ok(match &all[0] {
        Value::Tensor(_) => Value::Tensor(stacked.swap_remove(0)),
        Value::Tuple(_) => Value::Tuple(stacked),
        _ => Value::Tensors(stacked),
    }))
}

/// The tensors of a value.
fn tensors(v: &Value) -> Box<dyn Iterator<Item = &Tensor> + '_> {
    match v {
        Value::Tensor(t) => Box::new(std::iter::once(t)),
        Value::Tensors(all) | Value::Tuple(all) => Box::new(all.iter()),
        Value::OptionalTensors(all) => Box::new(all.iter().flatten()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The same value of other tensors.
fn changed(v: &Value, f: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Value> {
    let list = |all: &[Tensor]| all.iter().map(f).collect::<Result<Vec<_>>>();
    Ok(match v {
        Value::Tensor(t) => Value::Tensor(f(t)?),
        Value::Tensors(all) => Value::Tensors(list(all)?),
        Value::Tuple(all) => Value::Tuple(list(all)?),
        Value::OptionalTensors(all) => Value::OptionalTensors(
            (all.iter())
                .map(|t| t.as_ref().map(f).transpose())
                .collect::<Result<_>>()?,
        ),
        other => other.clone(),
    })
}

/// Refuses results of other shapes for other slices.
fn dynamic<T>(name: &str) -> Result<T> {
    bail!(
        Runtime,
        "vmap: It looks like you're attempting to use vmap over aten::{name}, whose results have other \
         shapes for other slices. We do not support batching operators that can output dynamic shape. \
         Attempted to vmap over aten::{name}"
    )
}

fn note_loop(name: &str) -> Result<()> {
    *COUNTS.lock().entry(name.into()).or_insert(0) += 1;
    match LOOPS.load(Ordering::Relaxed) {
        0 => Ok(()),
        1 => {
            host::warn_once(&format!(
                "There is a performance drop because we have not yet implemented the batching rule \
                 for aten::{name}. It runs once for each slice."
            ));
            Ok(())
        }
        _ => bail!(
            Runtime,
            "Batching rule not implemented for aten::{name}; the fallback path, which runs it once \
             for each slice, is turned off"
        ),
    }
}
