//! A kernel and the pointwise work around it as one step: what makes its operand and what goes on from its result
//! runs in its tiles, while they lie in a cache.

use super::chain::{Chain, Made};
use super::{Step, Value};
use crate::autograd::Vjp;
use crate::bail;
use crate::cpu::pointwise::chain::Parts;
use crate::cpu::pointwise::fusion::Candidates;
use crate::dispatch;
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, Rare, TensorMeta, Traits};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// A product, a norm or another kernel, the root, with chains before and after it as one op.
#[derive(Clone)]
pub struct Group(Arc<Members>);

struct Members {
    /// Computes the root's first input.
    before: Option<Member>,
    root: Arc<dyn Op>,
    /// How many inputs and results the root has.
    counts: [usize; 2],
    /// Reads its first result.
    after: Option<Member>,
    metas: Vec<Meta>,
    /// Whether the root did not take what comes before it, which then goes first.
    apart: AtomicBool,
    /// Chains that the root took when it last ran.
    taken: AtomicUsize,
}

/// A chain, and how many inputs and results it has.
struct Member {
    chain: Chain,
    counts: [usize; 2],
}

impl Member {
    fn new(made: &Made) -> Member {
        Member {
            chain: made.chain.clone(),
            counts: [made.x.len(), made.y.len()],
        }
    }
}

/// The steps as one.
pub(super) fn grouped(before: Option<Made>, root: &Step, after: Option<Made>) -> Step {
    let (mut x, mut y): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut add = |from: &[Value], to: &[Value]| {
        x.extend_from_slice(from);
        y.extend_from_slice(to);
    };
    // The root's results are the first.
    add(&root.x, &root.y);
    for made in before.iter().chain(&after) {
        add(&made.x, &made.y);
    }
    let op = Group(Arc::new(Members {
        before: before.as_ref().map(Member::new),
        root: root.op.clone(),
        counts: [root.x.len(), root.y.len()],
        after: after.as_ref().map(Member::new),
        metas: y.iter().map(|v| v.meta.clone()).collect(),
        apart: AtomicBool::new(false),
        taken: AtomicUsize::new(0),
    }));
    Step {
        op: Arc::new(op),
        x,
        y,
        into: None,
        key: None,
        varies: false,
        number: None,
    }
}

impl Group {
    /// The chains that it has, and those that the root took when it last ran.
    pub(super) fn chains(&self) -> [usize; 2] {
        let m = &*self.0;
        let count = m.before.is_some() as usize + m.after.is_some() as usize;
        [count, m.taken.load(Relaxed)]
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &*self.0;
        let chain = |m: &Option<Member>| m.as_ref().map(|m| m.chain.clone());
        let (before, after) = (chain(&m.before), chain(&m.after));
        (f.debug_tuple("Group")
            .field(&before)
            .field(&m.root)
            .field(&after))
        .finish()
    }
}

/// Groups are equal where they are the same.
impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Group {}
impl Hash for Group {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Derivative for Group {
    fn name(&self) -> &'static str {
        self.0.root.name()
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "a group of recorded steps has no derivative: the gradients are steps themselves"
        )
    }
}

impl Op for Group {
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, _x: &[&Meta]) -> Result<Metas> {
        Ok(self.0.metas.iter().map(TensorMeta::of).collect())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let m = &*self.0;
        let (root_x, x) = x.split_at(m.counts[0]);
        let (root_y, y) = y.split_at(m.counts[1]);
        let [inputs, results] = m.before.as_ref().map_or([0; 2], |b| b.counts);
        let (before_x, after_x) = x.split_at(inputs);
        let (before_y, after_y) = y.split_at(results);
        // The operands in the types that chains read are there until the end.
        let before = at_work(&m.before, before_x, before_y)?;
        let after = at_work(&m.after, after_x, after_y)?;
        let perform = |before: Option<&At>| -> Result<[bool; 2]> {
            let mut candidates = Candidates::default();
            if let Some(at) = before {
                candidates =
                    candidates.with_prologue(&at.parts, root_x[0].bytes_ptr(), root_x[0].numel());
            }
            if let Some(at) = &after {
                candidates =
                    candidates.with_epilogue(&at.parts, root_y[0].bytes_ptr(), root_y[0].numel());
            }
            let run = || dispatch::perform(&*m.root, root_x, root_y, None);
            let (done, taken) = candidates.run(run);
            done.map(|()| taken)
        };
        let first = before.as_ref().filter(|_| m.apart.load(Relaxed));
        let offered = before.as_ref().filter(|_| first.is_none());
        if let Some(at) = first {
            // SAFETY: nobody else computes this.
            unsafe { at.parts.all() };
        }
        let mut taken = perform(offered)?;
        if let (Some(at), false) = (offered, taken[0]) {
            // The root read what was not there, and nothing went on from it.
            m.apart.store(true, Relaxed);
            // SAFETY: nobody else computes this.
            unsafe { at.parts.all() };
            taken = perform(None)?;
        }
        if let (Some(at), false) = (&after, taken[1]) {
            // SAFETY: nobody else computes this.
            unsafe { at.parts.all() };
        }
        let count = taken.into_iter().filter(|t| *t).count();
        m.taken.store(count, Relaxed);
        Ok(())
    }
    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        let m = &*self.0;
        let chains = m
            .before
            .iter()
            .chain(&m.after)
            .map(|c| c.chain.work(&[], &[]));
        let [inputs, results] = m.counts;
        chains.sum::<usize>() + m.root.work(&x[..inputs], &y[..results])
    }
}

/// A chain at work on tensors.
struct At<'a> {
    parts: Parts<'a>,
    /// What `parts` reads.
    _kept: SmallVec<[Tensor; 4]>,
}

fn at_work<'a>(member: &'a Option<Member>, x: &[&Tensor], y: &[Tensor]) -> Result<Option<At<'a>>> {
    let Some(member) = member else {
        return Ok(None);
    };
    let (parts, _kept) = member.chain.parts(x, y)?;
    Ok(Some(At { parts, _kept }))
}
