//! Which steps of a program become one: pointwise ops over elements of one shape, and reductions of what
//! they compute, so that what nothing else reads never reaches memory.

use super::chain::{chained, Link, Space};
use super::{Program, Source, Step, Value};
use crate::device::Device;
use crate::layout::Layout;
use crate::meta::Meta;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// The most steps of a chain, and tensors that it looks at: each is a stream of its own.
const STEPS: usize = 64;
const STREAMS: usize = 16;
/// Elements from which on a chain is worth what it costs to begin one.
const LEAST: usize = 1 << 11;
/// Rows of a tensor that are worth being read one by one.
const ROW: usize = 16;
/// Elements up to which any layout will do: the caches hold what is read across.
const FEW: usize = 1 << 12;

/// Steps that are run in one place: a chain, if there is a space.
struct Item {
    steps: Vec<usize>,
    space: Option<Space>,
    /// The length of rows that are reduced.
    length: Option<usize>,
}

/// A slot that a step looks at.
#[derive(Clone, Copy)]
struct Access {
    step: usize,
    writes: bool,
}

struct Fuser<'a> {
    program: &'a Program,
    /// The fewest elements of a chain.
    least: usize,
    items: Vec<Item>,
    /// The item of each step so far.
    at: Vec<usize>,
    /// By slot, in the order of steps.
    accesses: HashMap<usize, Vec<Access>>,
    /// The order in which items run, and where each stands in it.
    order: Vec<usize>,
}

/// The steps, as few as may be, and how many of them come before the way back; tiles of a length for
/// tests.
pub(super) fn fused(program: &Program, tile: Option<usize>) -> (Vec<Step>, usize) {
    let mut fuser = Fuser {
        program,
        least: tile.map_or(LEAST, |_| 2),
        items: Vec::new(),
        at: Vec::new(),
        accesses: HashMap::new(),
        order: Vec::new(),
    };
    for i in 0..program.steps.len() {
        let item = fuser.place(i);
        fuser.items[item].steps.push(i);
        fuser.at.push(item);
        let step = &program.steps[i];
        for (v, writes) in uses(step) {
            let list = fuser.accesses.entry(v.slot).or_default();
            list.push(Access { step: i, writes });
        }
    }
    fuser.merge();
    let (mut steps, mut forward) = (Vec::new(), 0);
    for &i in &fuser.order {
        let item = &fuser.items[i];
        match fuser.chain(item, tile) {
            Some(chain) => steps.push(chain),
            None => steps.extend(item.steps.iter().map(|&s| program.steps[s].clone())),
        }
        if item.steps.iter().all(|&s| s < program.steps_forward()) {
            forward = steps.len();
        }
    }
    (steps, forward)
}

/// What a step reads and writes.
fn uses(step: &Step) -> impl Iterator<Item = (&Value, bool)> {
    let reads = step.x.iter().map(|v| (v, false));
    reads.chain(step.y.iter().map(|v| (v, true)))
}

/// Whether it computes each element of its one result by itself.
fn is_each(step: &Step) -> bool {
    let [y] = &step.y[..] else { return false };
    let host = |v: &Value| v.meta.device() == Device::Cpu && !v.meta.is_sparse();
    if step.varies || !uses(step).all(|(v, _)| host(v)) || y.meta.numel() < 2 {
        return false;
    }
    let own = match step.into.as_deref() {
        None => true,
        Some([m]) => m.dtype == y.meta.dtype() && m.shape == *y.meta.shape(),
        _ => false,
    };
    let metas: SmallVec<[&Meta; 4]> = step.x.iter().map(|v| &v.meta).collect();
    let apart = |v: &Value| {
        v.slot != y.slot || v.meta.layout() == y.meta.layout() && v.meta.dtype() == y.meta.dtype()
    };
    let plain = own && !y.meta.layout().overlaps_itself() && step.x.iter().all(apart);
    plain
        && step
            .op
            .fusion()
            .is_some_and(|f| f.element_loop(&metas).is_some())
}

/// Whether it reduces the rows of a contiguous tensor, and to which length.
fn as_fold(step: &Step) -> Option<Link> {
    let ([x], [y], None, false) = (&step.x[..], &step.y[..], &step.into, step.varies) else {
        return None;
    };
    let (fold, mask) = step.op.fusion()?.reduction(&x.meta)?;
    let plain = x.meta.device() == Device::Cpu && x.meta.is_contiguous() && y.meta.is_contiguous();
    if !plain || x.slot == y.slot || x.meta.numel() < 2 {
        return None;
    }
    let (mut length, mut inside) = (1, false);
    for (d, &n) in x.meta.shape().iter().enumerate().filter(|(_, &n)| n > 1) {
        if inside && !mask.has(d) {
            return None;
        }
        inside = mask.has(d);
        length *= if inside { n } else { 1 };
    }
    let takes = length > 1 && fold.takes(x.meta.numel() / length, length);
    takes.then_some(Link::Fold(fold, length))
}

/// Whether elements of a tensor are neighbours along the way, or stay what they are.
fn runs_well(layout: &Layout) -> bool {
    if layout.numel() <= FEW {
        return true;
    }
    let mut dims = (layout.shape.iter().zip(&layout.strides).rev()).filter(|(&n, _)| n > 1);
    let Some((&n, &step)) = dims.next() else {
        return true;
    };
    // A short row that repeats is read once.
    let next = dims.next().map(|(_, &step)| step);
    (step == 0 || step == 1) && (n >= ROW || next == Some(0) || next == Some(step * n as isize))
}

impl Fuser<'_> {
    fn step(&self, i: usize) -> &Step {
        &self.program.steps[i]
    }

    /// The item that step `i`, the next one, goes to.
    fn place(&mut self, i: usize) -> usize {
        let program = self.program;
        let step = &program.steps[i];
        let fold = as_fold(step);
        let each = fold.is_none() && is_each(step);
        if each || fold.is_some() {
            for item in self.candidates(i) {
                if self.fits(item, step, &fold) && self.reaches(item, step) {
                    if let Some(Link::Fold(_, length)) = fold {
                        self.items[item].length = Some(length);
                    }
                    return item;
                }
            }
        }
        let space = each.then(|| Space::of(&step.y[0].meta));
        let well = |s: &Space| {
            let shape = step.y[0].meta.shape();
            let walk = |v: &Value| s.walk(&v.meta, shape).is_some_and(|l| runs_well(&l));
            s.count() >= self.least && uses(step).all(|(v, _)| walk(v))
        };
        self.items.push(Item {
            steps: Vec::new(),
            space: space.filter(well),
            length: None,
        });
        self.order.push(self.items.len() - 1);
        self.items.len() - 1
    }

    /// Chains that look at what the step looks at, the last first.
    fn candidates(&self, i: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        // The way there and the way back run each by itself.
        let back = |step: usize| step >= self.program.steps_forward();
        for (v, _) in uses(self.step(i)) {
            // What is read everywhere joins nothing.
            if v.meta.numel() < 2 {
                continue;
            }
            for a in self.accesses.get(&v.slot).into_iter().flatten().rev() {
                let item = self.at[a.step];
                let same = back(a.step) == back(i);
                if same && self.items[item].space.is_some() && !found.contains(&item) {
                    found.push(item);
                }
            }
        }
        found.sort_by_key(|&i| std::cmp::Reverse(self.position(i)));
        found
    }

    fn position(&self, item: usize) -> usize {
        self.order.iter().position(|&i| i == item).unwrap_or(0)
    }

    fn fits(&self, item: usize, step: &Step, fold: &Option<Link>) -> bool {
        match fold {
            Some(Link::Fold(_, length)) => self.takes_fold(item, step, *length),
            _ => self.takes(item, step),
        }
    }

    /// Whether a chain may go on with a pointwise step.
    fn takes(&self, item: usize, step: &Step) -> bool {
        let it = &self.items[item];
        let Some(space) = &it.space else { return false };
        let shape = step.y[0].meta.shape();
        if it.steps.len() >= STEPS || space.count() != step.y[0].meta.numel() {
            return false;
        }
        let mut streams: HashSet<usize> = uses(step).map(|(v, _)| v.slot).collect();
        for &other in &it.steps {
            let other = self.step(other);
            let theirs = match other.y[0].meta.numel() == space.count() {
                true => other.y[0].meta.shape(),
                // A reduction's.
                false => other.x[0].meta.shape(),
            };
            streams.extend(uses(other).map(|(v, _)| v.slot));
            for (b, b_writes) in uses(other) {
                for (a, a_writes) in uses(step).filter(|(a, _)| a.slot == b.slot) {
                    if !a_writes && !b_writes {
                        continue;
                    }
                    // The one value that the chain knows, element for element.
                    if b.meta.numel() != space.count() || a.meta.dtype() != b.meta.dtype() {
                        return false;
                    }
                    match (space.walk(&a.meta, shape), space.walk(&b.meta, theirs)) {
                        (Some(a), Some(b)) if a.same_places(&b) => {}
                        _ => return false,
                    }
                }
            }
        }
        let well = |v: &Value| space.walk(&v.meta, shape).is_some_and(|l| runs_well(&l));
        streams.len() <= STREAMS && uses(step).all(|(v, _)| well(v))
    }

    /// Whether a chain computes what a step reduces.
    fn takes_fold(&self, item: usize, step: &Step, length: usize) -> bool {
        let it = &self.items[item];
        let (Some(space), x) = (&it.space, &step.x[0]) else {
            return false;
        };
        let fits = space.is_plain() && it.length.is_none_or(|l| l == length);
        let writes = |&i: &usize| {
            let y = &self.step(i).y[0];
            y.slot == x.slot && y.meta.layout().offset == x.meta.layout().offset
        };
        let apart = |&i: &usize| uses(self.step(i)).all(|(v, _)| v.slot != step.y[0].slot);
        let last = it.steps.iter().rev().find(|i| writes(i));
        let same = last.is_some_and(|&i| {
            let y = &self.step(i).y[0].meta;
            y.is_contiguous() && y.numel() == x.meta.numel() && y.dtype() == x.meta.dtype()
        });
        fits && same && x.meta.numel() == space.count() && it.steps.iter().all(apart)
    }

    /// Whether the step may run where the chain does, which may be put later for that.
    fn reaches(&mut self, item: usize, step: &Step) -> bool {
        let here = self.position(item);
        let mut after = here;
        for (v, writes) in uses(step) {
            for a in self.accesses.get(&v.slot).into_iter().flatten() {
                if writes || a.writes {
                    after = after.max(self.position(self.at[a.step]));
                }
            }
        }
        if self.depends(&self.order[here + 1..=after], item) {
            return false;
        }
        self.order[here..=after].rotate_left(1);
        true
    }

    /// Makes one chain of two that look at the same tensors, such as a function and its gradient, whose first
    /// step knew nothing of it.
    fn merge(&mut self) {
        let mut k = 0;
        while k < self.order.len() {
            let item = self.order[k];
            match self.items[item].space.is_some().then(|| self.join(item)) {
                Some(Some(other)) => k = self.position(other),
                _ => k += 1,
            }
        }
    }

    /// Gives the steps of an item to one before it, where there is one that takes them.
    fn join(&mut self, item: usize) -> Option<usize> {
        let here = self.position(item);
        let steps = self.items[item].steps.clone();
        let mut before: Vec<usize> = steps.iter().flat_map(|&s| self.candidates(s)).collect();
        before.retain(|&other| self.position(other) < here);
        before.sort_by_key(|&other| std::cmp::Reverse(self.position(other)));
        before.dedup();
        before.into_iter().find(|&other| {
            let there = self.position(other);
            let between = &self.order[there + 1..here];
            let down = !self.depends(between, other);
            if !down && self.depends(between, item) || !self.takes_all(other, &steps) {
                return false;
            }
            self.order.remove(here);
            if down {
                self.order[there..here].rotate_left(1);
            }
            steps.iter().for_each(|&s| self.at[s] = other);
            self.items[item].steps.clear();
            true
        })
    }

    /// Adds steps to a chain, all or none.
    fn takes_all(&mut self, item: usize, steps: &[usize]) -> bool {
        let (count, length) = (self.items[item].steps.len(), self.items[item].length);
        let program = self.program;
        for &s in steps {
            let step = &program.steps[s];
            let fold = as_fold(step);
            if !self.fits(item, step, &fold) {
                self.items[item].steps.truncate(count);
                self.items[item].length = length;
                return false;
            }
            if let Some(Link::Fold(_, length)) = fold {
                self.items[item].length = Some(length);
            }
            self.items[item].steps.push(s);
        }
        true
    }

    /// Whether items look at what another one writes, or write what it looks at.
    fn depends(&self, items: &[usize], other: usize) -> bool {
        let theirs: HashMap<usize, bool> = (self.items[other].steps.iter())
            .flat_map(|&s| uses(self.step(s)).map(|(v, w)| (v.slot, w)))
            .fold(HashMap::new(), |mut all, (slot, writes)| {
                *all.entry(slot).or_default() |= writes;
                all
            });
        let meets = |&s: &usize| {
            uses(self.step(s)).any(|(v, w)| theirs.get(&v.slot).is_some_and(|&t| t || w))
        };
        let mut steps = items.iter().flat_map(|&i| &self.items[i].steps);
        steps.any(meets)
    }

    /// The steps of an item as one.
    fn chain(&self, item: &Item, tile: Option<usize>) -> Option<Step> {
        let space = item.space.as_ref().filter(|_| item.steps.len() > 1)?;
        let link = |&i: &usize| {
            let step = self.step(i);
            (step, as_fold(step).unwrap_or(Link::Each))
        };
        let steps: Vec<(&Step, Link)> = item.steps.iter().map(link).collect();
        let outside = |slot: usize| {
            let s = &self.program.slots[slot];
            let mut others = self.accesses[&slot].iter();
            s.escapes
                || !matches!(s.source, Source::Made)
                || others.any(|a| !item.steps.contains(&a.step))
        };
        chained(space, &steps, outside, tile)
    }
}
