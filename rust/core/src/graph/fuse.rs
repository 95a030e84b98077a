//! Which steps of a program become one: pointwise ops over elements of one shape, and reductions of what
//! they compute, so that what nothing else reads never reaches memory.

use super::chain::{chained, Link, Made, Space};
use super::group::grouped;
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

/// Steps that are run in one place: a chain, if there is a space, or a group, if there is a root.
struct Item {
    steps: Vec<usize>,
    /// Of a group that of what goes on from the root.
    space: Option<Space>,
    /// The length of rows that are reduced.
    length: Option<usize>,
    /// The step in whose tiles the others run.
    root: Option<usize>,
    /// What comes before the root.
    before: Option<Space>,
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
    fuser.attach();
    let (mut steps, mut forward) = (Vec::new(), 0);
    for &i in &fuser.order {
        let item = &fuser.items[i];
        let one = match item.root {
            Some(root) => fuser.group(item, root, tile),
            None => fuser.chain(item, tile).map(Made::step),
        };
        match one {
            Some(one) => steps.push(one),
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

/// Whether a value, seen in a step over elements of `shape`, is `whole`, element for element along the way.
fn same_elements(space: &Space, (v, shape): (&Value, &[usize]), whole: &Value) -> bool {
    let (a, b) = (&v.meta, &whole.meta);
    let same = a.numel() == space.count() && b.numel() == space.count() && a.dtype() == b.dtype();
    let (a, b) = (space.walk(a, shape), space.walk(b, b.shape()));
    same && matches!((a, b), (Some(a), Some(b)) if a.same_places(&b))
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

/// Whether pointwise steps may run in the tiles of its kernel: before its first operand is read, and after its first
/// result is written.
fn sides(step: &Step) -> [bool; 2] {
    let plain = |v: &Value| v.meta.is_contiguous() && v.meta.numel() > 1;
    let host = |v: &Value| v.meta.device() == Device::Cpu && !v.meta.is_sparse();
    let fixed =
        step.into.is_none() && step.key.is_none() && !step.varies && !step.op.traits().draws;
    let (Some(x), Some(y)) = (step.x.first(), step.y.first()) else {
        return [false; 2];
    };
    if !fixed || !uses(step).all(|(v, _)| host(v)) {
        return [false; 2];
    }
    let [takes, gives] = step
        .op
        .fusion()
        .map_or([false; 2], |f| f.prologue_epilogue());
    let alone = |v: &Value| uses(step).filter(|(u, _)| u.slot == v.slot).count() == 1;
    [takes && plain(x) && alone(x), gives && plain(y) && alone(y)]
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
        let [takes, gives] = match each || fold.is_some() {
            true => [false; 2],
            false => sides(step),
        };
        let space = (each || gives).then(|| Space::of(&step.y[0].meta));
        let well = |s: &Space| {
            let shape = step.y[0].meta.shape();
            let walk = |v: &Value| s.walk(&v.meta, shape).is_some_and(|l| runs_well(&l));
            s.count() >= self.least && (gives || uses(step).all(|(v, _)| walk(v)))
        };
        self.items.push(Item {
            steps: Vec::new(),
            space: space.filter(well),
            length: None,
            root: (takes || gives).then_some(i),
            before: None,
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
        if it.root.is_some_and(|root| !self.follows(root, space, step)) {
            return false;
        }
        let mut streams: HashSet<usize> = uses(step).map(|(v, _)| v.slot).collect();
        for &other in it.steps.iter().filter(|&&s| Some(s) != it.root) {
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

    /// Whether a step may run where part of the root's first result is written: it looks at that alone, element for
    /// element, of what the root writes, and changes nothing that the root reads.
    fn follows(&self, root: usize, space: &Space, step: &Step) -> bool {
        let root = self.step(root);
        let (y, shape) = (&root.y[0], step.y[0].meta.shape());
        let met = uses(step).flat_map(|a| uses(root).map(move |b| (a, b)));
        let mut met = met.filter(|((a, aw), (b, bw))| a.slot == b.slot && (*aw || *bw));
        met.all(|((a, _), (b, _))| b.slot == y.slot && same_elements(space, (a, shape), y))
    }

    /// Whether a chain computes what a step reduces.
    fn takes_fold(&self, item: usize, step: &Step, length: usize) -> bool {
        let it = &self.items[item];
        let (Some(space), None, x) = (&it.space, it.root, &step.x[0]) else {
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
            let it = &self.items[item];
            let chain = it.space.is_some() && it.root.is_none();
            match chain.then(|| self.join(item)) {
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

    /// Gives roots the chains that make what they read first.
    fn attach(&mut self) {
        for item in 0..self.items.len() {
            let Some(root) = self.items[item].root else {
                continue;
            };
            let (step, [takes, _]) = (self.step(root), sides(self.step(root)));
            let writes = self.accesses[&step.x[0].slot].iter().rev();
            let last = writes
                .filter(|a| a.writes && a.step < root)
                .map(|a| self.at[a.step])
                .next();
            let Some(chain) = last.filter(|&chain| takes && self.leads(chain, item)) else {
                continue;
            };
            let (from, to) = (self.position(chain), self.position(item));
            if from > to {
                continue;
            }
            let between = &self.order[from + 1..to];
            if !self.depends(between, chain) {
                self.order.remove(from);
            } else if !self.depends(between, item) {
                self.order.remove(to);
                self.order[from] = item;
            } else {
                continue;
            }
            let mut steps = std::mem::take(&mut self.items[chain].steps);
            steps.iter().for_each(|&s| self.at[s] = item);
            steps.append(&mut self.items[item].steps);
            self.items[item].steps = steps;
            self.items[item].before = self.items[chain].space.take();
        }
    }

    /// Whether a chain may run where parts of what the root of a group reads first are about to be read: it makes
    /// all of that, and nothing else that the group looks at.
    fn leads(&self, chain: usize, group: usize) -> bool {
        let (it, group) = (&self.items[chain], &self.items[group]);
        let (Some(space), Some(root)) = (&it.space, group.root) else {
            return false;
        };
        let step = self.step(root);
        let (x, forward) = (&step.x[0], self.program.steps_forward());
        let same_way = it
            .steps
            .iter()
            .all(|&s| (s >= forward) == (root >= forward));
        let plain = it.root.is_none() && it.length.is_none() && space.is_plain();
        if !plain || !same_way || it.steps.len() + group.steps.len() > STEPS {
            return false;
        }
        let mut makes = false;
        for &s in &it.steps {
            let s = self.step(s);
            let shape = s.y[0].meta.shape();
            for (a, aw) in uses(s) {
                for (b, bw) in group.steps.iter().flat_map(|&g| uses(self.step(g))) {
                    if a.slot != b.slot || !(aw || bw) {
                        continue;
                    }
                    // Others of the group may look at the operand too, but what follows does so by element.
                    if b.slot != x.slot || bw || !same_elements(space, (a, shape), x) {
                        return false;
                    }
                    makes |= aw;
                }
            }
        }
        // What follows may not see parts that another thread is about to make.
        let mut follows = group.steps.iter().filter(|&&g| g != root);
        let apart = |&g: &usize| uses(self.step(g)).all(|(v, _)| v.slot != x.slot);
        makes && follows.all(apart)
    }

    /// The steps of an item as one, in the tiles of its root.
    fn group(&self, item: &Item, root: usize, tile: Option<usize>) -> Option<Step> {
        let at = item.steps.iter().position(|&s| s == root)?;
        let (before, after) = (&item.steps[..at], &item.steps[at + 1..]);
        if before.is_empty() && after.is_empty() {
            return None;
        }
        let made = |space: &Option<Space>, steps: &[usize], of: &[Step]| -> Option<Option<Made>> {
            if steps.is_empty() {
                return Some(None);
            }
            let links: Vec<(&Step, Link)> = of.iter().map(|s| (s, Link::Each)).collect();
            let outside = |slot: usize| self.is_outside(slot, steps);
            chained(space.as_ref()?, &links, outside, tile).map(Some)
        };
        let (root, follow) = self.renamed(root, after);
        let lead: Vec<Step> = before.iter().map(|&s| self.step(s).clone()).collect();
        let before = made(&item.before, before, &lead)?;
        Some(grouped(before, &root, made(&item.space, after, &follow)?))
    }

    /// A root and the steps after it. Where nobody else looks at the root's result, it is written where the first of
    /// them will write its own that others look at, and lies in a cache then.
    fn renamed(&self, root: usize, after: &[usize]) -> (Step, Vec<Step>) {
        let mut steps: Vec<Step> = after.iter().map(|&s| self.step(s).clone()).collect();
        let mut root_step = self.step(root).clone();
        let y = &self.step(root).y[0];
        let slot = &self.program.slots[y.slot];
        let own = |a: &Access| a.step == root || after.contains(&a.step) && !a.writes;
        let hidden = matches!(slot.source, Source::Made) && !slot.escapes;
        if !hidden || !self.accesses[&y.slot].iter().all(own) {
            return (root_step, steps);
        }
        let takes = |&j: &usize| {
            let (step, v) = (&steps[j], &steps[j].y[0]);
            let first = self.accesses[&v.slot].first();
            let fresh = first.is_some_and(|a| a.step == after[j]) && step.into.is_none();
            let alike = v.meta.is_contiguous()
                && v.meta.numel() == y.meta.numel()
                && v.meta.dtype() == y.meta.dtype()
                && v.meta.layout().offset == y.meta.layout().offset
                && self.program.slots[v.slot].bytes == slot.bytes;
            let later = &steps[j + 1..];
            let read = later.iter().any(|s| s.x.iter().any(|x| x.slot == y.slot));
            fresh && alike && !read && self.is_outside(v.slot, after)
        };
        let Some(j) = (0..steps.len()).find(takes) else {
            return (root_step, steps);
        };
        let to = steps[j].y[0].slot;
        root_step.y[0].slot = to;
        let seen = steps.iter_mut().flat_map(|s| &mut s.x);
        seen.filter(|v| v.slot == y.slot).for_each(|v| v.slot = to);
        (root_step, steps)
    }

    /// Whether others than these steps look at a slot.
    fn is_outside(&self, slot: usize, steps: &[usize]) -> bool {
        let s = &self.program.slots[slot];
        let mut others = self.accesses[&slot].iter();
        let made = matches!(s.source, Source::Made);
        s.escapes || !made || others.any(|a| !steps.contains(&a.step))
    }

    /// The steps of an item as one.
    fn chain(&self, item: &Item, tile: Option<usize>) -> Option<Made> {
        let space = item.space.as_ref().filter(|_| item.steps.len() > 1)?;
        let link = |&i: &usize| {
            let step = self.step(i);
            (step, as_fold(step).unwrap_or(Link::Each))
        };
        let steps: Vec<(&Step, Link)> = item.steps.iter().map(link).collect();
        let outside = |slot: usize| self.is_outside(slot, &item.steps);
        chained(space, &steps, outside, tile)
    }
}
