//! From two records that are equal to a program.

use super::record::{whole, Found, LeafSeen, OutputSeen, Seen};
use super::run::sharing;
use super::{After, Back, End, Leaf, Output, Program, Slot, Source, Step, Trace, Value};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

impl Trace {
    /// Where the kernels' order, or what they are given, is not that of the call before.
    pub fn differs(&self, before: &Trace) -> Result<Option<String>> {
        if self.steps.len() != before.steps.len() || self.slots.len() != before.slots.len() {
            let (a, b) = (before.steps.len(), self.steps.len());
            return Ok(Some(format!("one call runs {a} kernels, the next {b}")));
        }
        for (a, b) in before.steps.iter().zip(&self.steps) {
            if !alike(a, b) {
                return Ok(Some(format!("{:?} follows {:?} in one place", b.op, a.op)));
            }
        }
        let metas = |t: &Trace| -> Vec<_> { t.inputs.iter().map(|t| t.meta().clone()).collect() };
        let ends = |(a, b): (&LeafSeen, &LeafSeen)| {
            // What was there before the first call is not known.
            let made = |l: &LeafSeen| matches!(l.after, After::Made(_));
            a.after == b.after || a.before.is_none() && !made(a) && !made(b)
        };
        let result = |o: &OutputSeen| (o.value.clone(), o.given, o.spent.clone());
        let results = |t: &Trace| -> Vec<_> { t.outputs.iter().map(result).collect() };
        let leaf = |t: &Trace| -> Vec<_> { t.leaves.iter().map(|l| address(&l.tensor)).collect() };
        if metas(self) != metas(before) || results(self) != results(before) {
            return Ok(Some(
                "inputs or results are of other shapes or types".into(),
            ));
        }
        let back = |t: &Trace| t.back.as_ref().map(told);
        let leaves = || before.leaves.iter().zip(&self.leaves);
        if leaf(self) != leaf(before) || !leaves().all(ends) || back(self) != back(before) {
            return Ok(Some("other gradients are computed".into()));
        }
        if self.leaves.iter().any(|l| l.before.is_none()) {
            return Ok(Some("other leaves are used".into()));
        }
        for (i, (a, b)) in before.slots.iter().zip(&self.slots).enumerate() {
            let uses = a.found == b.found && a.written == b.written && a.fresh == b.fresh;
            if !uses || !(same(a, b) || a.fresh || equal(a, b)?) {
                let used = |s: &&Step| s.x.iter().chain(&s.y).any(|v| v.slot == i);
                let step = self.steps.iter().find(used);
                return Ok(Some(match step {
                    Some(s) => format!("{:?} is given other numbers", s.op),
                    None => "it returns other numbers".into(),
                }));
            }
        }
        Ok(None)
    }

    /// The program of this call, which does [not differ](Trace::differs) from the one before.
    pub fn program(self, before: &Trace) -> Program {
        let before_of = |l: &Option<Tensor>| l.as_ref().map(|g| self.find(g));
        let leaves = self.leaves.iter().map(|l| Leaf {
            tensor: l.tensor.clone(),
            before: l.before.as_ref().and_then(before_of),
            after: l.after.clone(),
        });
        let leaves: Vec<Leaf> = leaves.collect();
        let itself = |o: &OutputSeen, a: &OutputSeen| match (&o.itself, &a.itself) {
            (Some(b), Some(a)) => a.same(b).then(|| b.clone()),
            _ => None,
        };
        let outputs =
            self.outputs
                .iter()
                .zip(&before.outputs)
                .map(|(o, a)| match (o.given, itself(o, a)) {
                    (Some(i), _) => Output::Given(i),
                    (None, Some(t)) => Output::Kept(t),
                    (None, None) => Output::Made(o.value.clone(), o.spent.clone()),
                });
        let outputs: Vec<Output> = outputs.collect();
        let mut slots: Vec<Slot> = Vec::with_capacity(self.slots.len());
        for (seen, old) in self.slots.iter().zip(&before.slots) {
            let source = match (seen.found, &seen.kept) {
                (Found::Input(i), _) => Source::Input(i),
                (Found::There, Some(kept)) if same(seen, old) => Source::State(kept.clone()),
                (Found::There, Some(kept)) if !seen.fresh => {
                    Source::Constant(seen.start.clone().unwrap_or_else(|| whole(kept)))
                }
                _ => Source::Made,
            };
            slots.push(Slot {
                source,
                bytes: seen.bytes,
                device: seen.device,
                written: seen.written,
                escapes: false,
            });
        }
        for o in &outputs {
            if let Output::Made(v, _) = o {
                slots[v.slot].escapes = true;
            }
        }
        let grads = self.back.iter().flat_map(|b| &b.ends);
        for v in grads.filter_map(|(_, v)| v.as_ref()) {
            slots[v.slot].escapes = true;
        }
        for l in &leaves {
            if let After::Made(v) = &l.after {
                slots[v.slot].escapes = true;
            }
        }
        Program {
            inputs: self.inputs.iter().map(|t| t.meta().clone()).collect(),
            sharing: sharing(&self.inputs),
            slots,
            steps: self.steps,
            outputs,
            leaves,
            back: self.back,
        }
    }
}

/// A way back, to be compared.
#[allow(clippy::type_complexity)]
fn told(b: &Back) -> (usize, Vec<(usize, Value)>, Vec<(usize, Option<Value>)>) {
    let end = |(e, v): &(End, Option<Value>)| match e {
        End::Input(i) => (*i, v.clone()),
        End::Leaf(t) => (address(t), v.clone()),
    };
    (b.from, b.roots.clone(), b.ends.iter().map(end).collect())
}

fn address(t: &Tensor) -> usize {
    std::ptr::from_ref(t.meta()) as usize
}

/// Whether two steps are one but for the key of random numbers.
fn alike(a: &Step, b: &Step) -> bool {
    let plain = |s: &Step| s.key.and_then(|_| s.op.replay()?.with_key(Some([0; 4])));
    let ops = match (plain(a), plain(b)) {
        (Some(a), Some(b)) => *a == *b,
        _ => *a.op == *b.op,
    };
    ops && a.key == b.key && a.x == b.x && a.y == b.y && a.into == b.into
}

/// Whether both calls found one and the same memory.
fn same(a: &Seen, b: &Seen) -> bool {
    match (a.found, &a.kept, &b.kept) {
        (Found::There, Some(a), Some(b)) => a.same(b),
        (Found::There, ..) => false,
        _ => true,
    }
}

/// Whether memory that each call made anew, unseen, held the same when it began.
fn equal(a: &Seen, b: &Seen) -> Result<bool> {
    let first = |s: &Seen| match (&s.start, &s.kept) {
        (Some(start), _) => Some(start.clone()),
        (None, Some(kept)) if !s.written => Some(whole(kept)),
        _ => None,
    };
    let (Some(a), Some(b)) = (first(a), first(b)) else {
        return Ok(false);
    };
    if (a.numel(), a.device()) != (b.numel(), b.device()) || a.device() == Device::Meta {
        return Ok(false);
    }
    let (a, b) = (a.to_host()?, b.to_host()?);
    // SAFETY: bytes in host memory, which nobody writes to meanwhile.
    Ok(unsafe { a.slice::<u8>() == b.slice::<u8>() })
}
