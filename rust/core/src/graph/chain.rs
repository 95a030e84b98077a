//! Steps over elements of one shape as one step, run tile by tile.

use super::{Step, Value};
use crate::autograd::Vjp;
use crate::cpu::pointwise::chain::{self, Total, Write};
use crate::cpu::reduce::Fold;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, Rare, TensorMeta, Traits};
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Pointwise ops, and reductions of what they compute, as one op.
#[derive(Clone)]
pub struct Chain(Arc<Parts>);

struct Parts {
    chain: chain::Chain,
    /// They keep what their loops read.
    ops: Vec<Arc<dyn Op>>,
    /// The type that an operand has first.
    first: Vec<Option<DType>>,
    x: Vec<Meta>,
    /// Those that loops write, then what is reduced.
    y: Vec<Meta>,
    written: usize,
}

/// What a chain iterates over: a shape, whose dimensions it visits in an order.
#[derive(Clone)]
pub(super) struct Space {
    shape: Dims,
    order: SmallVec<[i64; 5]>,
}

impl Space {
    /// That of a result: in the order of its memory.
    pub fn of(y: &Meta) -> Space {
        let mut order: SmallVec<[i64; 5]> = (0..y.ndim() as i64).collect();
        if !y.is_contiguous() {
            order.sort_by_key(|&d| std::cmp::Reverse(y.stride(d as usize)));
        }
        Space {
            shape: y.shape().clone(),
            order,
        }
    }

    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether elements are visited as they follow each other in a contiguous tensor.
    pub fn is_plain(&self) -> bool {
        self.order.is_sorted()
    }

    /// Where a tensor that broadcasts to `shape`, which has as many elements, is found along the way.
    pub fn walk(&self, t: &Meta, shape: &[usize]) -> Option<Layout> {
        if t.ndim() > shape.len() {
            return None;
        }
        let wide = t.layout().expand_to(shape);
        let own = match shape == &self.shape[..] {
            true => wide,
            false => wide.reshape(&self.shape)?,
        };
        own.permute(&self.order).ok()
    }
}

/// A step that computes each element by itself, or reduces rows.
pub(super) enum Link {
    Each,
    Fold(Fold, usize),
}

/// What links of a chain read: a tensor, along the way, with the type that it has first.
struct Read {
    value: Value,
    layout: Layout,
    first: Option<DType>,
}

/// A chain with what it reads and writes.
pub(super) struct Made {
    pub chain: Chain,
    pub x: Vec<Value>,
    pub y: Vec<Value>,
}

impl Made {
    pub fn step(self) -> Step {
        Step {
            op: Arc::new(self.chain),
            x: self.x,
            y: self.y,
            into: None,
            key: None,
            varies: false,
            number: None,
        }
    }
}

/// The steps as one; `outside` tells whether others look at a slot. `None` where there is no such chain.
pub(super) fn chained(
    space: &Space,
    steps: &[(&Step, Link)],
    outside: impl Fn(usize) -> bool,
    tile: Option<usize>,
) -> Option<Made> {
    #[derive(Clone, Copy)]
    enum From {
        Read(usize),
        Link(usize),
    }
    let mut reads: Vec<Read> = Vec::new();
    let mut links = Vec::new();
    // The last value of each slot that a link writes, and its tensor.
    let mut written: Vec<(&Value, usize)> = Vec::new();
    let mut index: HashMap<usize, usize> = HashMap::new();
    let mut folds = Vec::new();
    for (step, link) in steps {
        let y = &step.y[0];
        if let Link::Fold(fold, length) = link {
            let &w = index.get(&step.x[0].slot)?;
            folds.push((written[w].1, *fold, *length, y));
            continue;
        }
        let metas: SmallVec<[&Meta; 4]> = step.x.iter().map(|v| &v.meta).collect();
        let each = step.op.fusion()?.element_loop(&metas)?;
        let mut from: SmallVec<[From; 4]> = SmallVec::new();
        for (i, v) in step.x.iter().enumerate() {
            if let Some(&w) = index.get(&v.slot) {
                from.push(From::Link(written[w].1));
                continue;
            }
            let layout = space.walk(&v.meta, y.meta.shape())?;
            let first = (v.meta.ndim() == 0)
                .then(|| each.numbers.get(i).copied().flatten())
                .flatten()
                .filter(|&t| t != v.meta.dtype());
            let known = reads.iter().position(|r| {
                let same = r.value.slot == v.slot && r.layout == layout && r.first == first;
                same && r.value.meta.dtype() == v.meta.dtype()
            });
            from.push(From::Read(known.unwrap_or_else(|| {
                reads.push(Read {
                    value: v.clone(),
                    layout,
                    first,
                });
                reads.len() - 1
            })));
        }
        let at = links.len();
        links.push((each, from, y));
        match index.get(&y.slot) {
            Some(&w) => written[w] = (y, at),
            None => {
                index.insert(y.slot, written.len());
                written.push((y, at));
            }
        }
    }
    let n = reads.len();
    let inputs: Vec<(Layout, DType)> = reads
        .iter()
        .map(|r| {
            let dtype = r.first.unwrap_or(r.value.meta.dtype());
            (r.layout.clone(), dtype)
        })
        .collect();
    let number = |f: &From| match *f {
        From::Read(i) => i,
        From::Link(i) => n + i,
    };
    let each: Vec<chain::Step> = links
        .iter()
        .map(|(each, from, y)| chain::Step {
            each: *each,
            x: from.iter().map(number).collect(),
            dtype: y.meta.dtype(),
        })
        .collect();
    let mut writes = Vec::new();
    let mut y: Vec<Value> = Vec::new();
    for &(v, at) in written.iter().filter(|(v, _)| outside(v.slot)) {
        let layout = space.walk(&v.meta, v.meta.shape())?;
        let over = reads
            .iter()
            .position(|r| r.value.slot == v.slot && r.first.is_none());
        writes.push(Write {
            value: n + at,
            layout,
            over,
        });
        y.push(v.clone());
    }
    let written_count = writes.len();
    let mut totals = Vec::new();
    for (at, fold, length, v) in folds {
        totals.push(Total {
            value: n + at,
            fold,
            length,
        });
        y.push(v.clone());
    }
    let shape: Dims = space
        .order
        .iter()
        .map(|&d| space.shape[d as usize])
        .collect();
    let chain = chain::Chain::new(&shape, &inputs, &each, &writes, &totals, tile)?;
    let chain = Chain(Arc::new(Parts {
        chain,
        ops: steps.iter().map(|(s, _)| s.op.clone()).collect(),
        first: reads.iter().map(|r| r.first).collect(),
        x: reads.iter().map(|r| r.value.meta.clone()).collect(),
        y: y.iter().map(|v| v.meta.clone()).collect(),
        written: written_count,
    }));
    Some(Made {
        chain,
        x: reads.into_iter().map(|r| r.value).collect(),
        y,
    })
}

impl Chain {
    /// At work on tensors, where it reduces nothing, and what it reads in their place.
    pub(super) fn parts(
        &self,
        x: &[&Tensor],
        y: &[Tensor],
    ) -> Result<(chain::Parts<'_>, SmallVec<[Tensor; 4]>)> {
        let changed = self.changed(x, y)?;
        let parts = {
            let x = self.read(x, &changed);
            let y: SmallVec<[&Tensor; 8]> = y.iter().collect();
            // SAFETY: as for the kernel.
            unsafe { self.0.chain.parts(&x, &y) }
        };
        Ok((parts, changed))
    }

    /// The operands that are read in another type, in that; all must look as the chain was made for.
    fn changed(&self, x: &[&Tensor], y: &[Tensor]) -> Result<SmallVec<[Tensor; 4]>> {
        let parts = &*self.0;
        let alike = |t: &Tensor, m: &Meta| t.layout() == m.layout() && t.dtype() == m.dtype();
        let all = x.len() == parts.x.len()
            && y.len() == parts.y.len()
            && std::iter::zip(x, &parts.x).all(|(t, m)| alike(t, m))
            && std::iter::zip(y, &parts.y).all(|(t, m)| alike(t, m));
        ensure!(
            all,
            Assertion,
            "a chain was made for tensors of other layouts and types"
        );
        let mut changed: SmallVec<[Tensor; 4]> = SmallVec::new();
        for (t, dtype) in std::iter::zip(x, &parts.first) {
            if let Some(dtype) = *dtype {
                changed.push(t.to_dtype(dtype)?);
            }
        }
        Ok(changed)
    }

    /// What is read.
    fn read<'a>(&self, x: &[&'a Tensor], changed: &'a [Tensor]) -> SmallVec<[&'a Tensor; 8]> {
        let mut changed = changed.iter();
        std::iter::zip(x, &self.0.first)
            .map(|(&t, dtype)| match dtype {
                Some(_) => changed.next().unwrap_or(t),
                None => t,
            })
            .collect()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chain").field(&self.0.ops).finish()
    }
}

/// Chains are equal where they are the same.
impl PartialEq for Chain {
    fn eq(&self, other: &Chain) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Chain {}
impl Hash for Chain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Derivative for Chain {
    fn name(&self) -> &'static str {
        "Chain"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "a chain of recorded steps has no derivative: the gradients are steps themselves"
        )
    }
}

impl Op for Chain {
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, _x: &[&Meta]) -> Result<Metas> {
        Ok(self.0.y.iter().map(TensorMeta::of).collect())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let parts = &*self.0;
        let changed = self.changed(x, y)?;
        let x = self.read(x, &changed);
        let y: SmallVec<[&Tensor; 8]> = y.iter().collect();
        let (written, totals) = y.split_at(parts.written);
        // SAFETY: the tensors have the layouts and types that the chain was made for. Its makers keep tensors that
        // are written apart from others of other layouts; the ops live as long as the chain.
        unsafe { parts.chain.run(&x, written, totals) };
        Ok(())
    }
    fn work(&self, _x: &[&Meta], _y: &[&Meta]) -> usize {
        self.0.chain.work()
    }
}
