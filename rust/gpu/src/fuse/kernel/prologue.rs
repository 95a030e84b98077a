//! Roots that take what they read as it is made: by the nodes of a group that comes before, whose values nobody
//! else reads. A root's file reads the elements of such an operand `x` by its function `read_x` (and those of two
//! bytes in pairs by `read_two_x`), in whose place it gets one of the same name that computes them. The first buffer
//! that this reads is bound where the operand would be.

use super::super::{Group, Load, Source, Store, HEAD, MAX_WORDS};
use super::{Plan, Writer, NAME};
use crate::bail;
use crate::error::Result;
use crate::launch::Prologue;
use crate::layout::reach;
use crate::place::Walk;
use crate::Buffer;
use smallvec::SmallVec;

/// Bytes of the text of what is computed more than once for each element, for all those times together: a quotient
/// or a transcendental function three times, some arithmetic thirty times.
const MAX_LENGTH: usize = 9 << 10;
/// Turns of loops of what is computed that an invocation takes at most, beside those of the root: software Vulkan
/// ends it after 65,535.
const MAX_TURNS: usize = 32_768;

/// A group that comes before another one's root.
pub(crate) struct Before {
    pub group: Box<Group>,
    /// The place that the root reads, which may take the values instead; none of the results of parts.
    pub taken: Option<FusedOperand>,
}

/// What a root takes as it is made: the node that makes it, the element that is its first, and the operand's name.
#[derive(Clone, Copy)]
pub(crate) struct FusedOperand {
    pub node: usize,
    pub offset: usize,
    pub name: &'static str,
}

impl Before {
    /// What the root takes, where nobody else can read anything of the group; then that stays so.
    pub fn taken(&self) -> Option<FusedOperand> {
        let held = self.group.stores.iter().any(Store::is_held);
        self.taken.filter(|_| !held)
    }

    /// [`Group::meets`]: what is taken is no memory.
    pub fn meets(&self, b: &Buffer, writes: bool) -> bool {
        match self.taken() {
            Some(_) => writes && self.group.loads.iter().any(|l| l.from.same(b)),
            None => self.group.meets(b, writes),
        }
    }

    /// The buffers and words of parameters that a root has more where it takes what it may.
    pub fn takes(&self) -> (usize, usize) {
        let Some(taken) = self.taken else {
            return (0, 0);
        };
        let (buffers, words) = self.group.reads(self.group.needed(1 << taken.node));
        (buffers - 1, words)
    }
}

impl Group {
    /// What these nodes read.
    fn loads_of(&self, needed: u64) -> impl Iterator<Item = &Load> {
        let nodes = self.nodes.iter().enumerate();
        let args = nodes.filter(move |(i, _)| needed >> i & 1 == 1);
        let mut read = SmallVec::<[bool; 32]>::from_elem(false, self.loads.len());
        for arg in args.flat_map(|(_, n)| &n.x) {
            if let Source::Load(i) = arg.source {
                read[i] = true;
            }
        }
        let loads = self.loads.iter().zip(read);
        loads.filter_map(|(load, read)| read.then_some(load))
    }

    /// The buffers that these nodes read, and the words of parameters of what they make.
    fn reads(&self, needed: u64) -> (usize, usize) {
        let loads = self.loads_of(needed);
        let mut ids: SmallVec<[u64; 16]> = loads.map(|l| l.from.raw().id).collect();
        ids.sort_unstable();
        ids.dedup();
        let dims = self.shape.as_ref().map_or(0, |s| s.len());
        let words = HEAD + self.words + self.loads.len() * (1 + dims) + dims;
        (ids.len(), words)
    }

    /// Lets a root that reads `x`, and has so many buffers and words of parameters, wait for what the group makes of
    /// it: what it may take in its place, where that are not the results of parts. `None` where the group cannot
    /// wait with it.
    pub fn precedes(
        &mut self,
        x: &Prologue,
        (bound, params): (usize, usize),
        max_buffers: usize,
    ) -> Option<Option<FusedOperand>> {
        let view = &x.view;
        if let Some(root) = &self.root {
            // The results of parts: what comes before those is what is worth the wait.
            let first = |b: &Before| b.group.before.is_none();
            let parts = self.nodes.is_empty() && root.y().same(view.buffer);
            return (parts && self.before.as_ref().is_some_and(first)).then_some(None);
        }
        self.stores.retain(Store::is_live);
        let of = |s: &Store| s.to.same(view.buffer);
        let at = self.stores.iter().position(of)?;
        let alone = !self.stores[at + 1..].iter().any(of);
        let store = &self.stores[at];
        let Source::Node(node) = store.value else {
            return None;
        };
        let (low, high) = reach(view.offset, view.shape, view.strides);
        let offset = store.place.offset;
        let whole = store.place.walk == Walk::Linear && offset <= low && high <= offset + self.n;
        let needed = self.needed(1 << node);
        let (buffers, words) = self.reads(needed);
        let fits = alone
            && whole
            && self.nodes[node].dtype == view.dtype
            && buffers > 0
            && bound + buffers - 1 <= max_buffers
            && params.next_multiple_of(4) + words <= MAX_WORDS
            && self.is_worth(needed, x);
        self.stores[at].read |= fits;
        let name = x.name;
        fits.then_some(Some(FusedOperand { node, offset, name }))
    }

    /// Whether these nodes may be computed as often as the root reads: what they read then is no more than what
    /// a kernel of their own and the root read and write, and little is computed.
    fn is_worth(&self, needed: u64, x: &Prologue) -> bool {
        let times = x.times;
        let nodes = || (self.nodes.iter().enumerate()).filter(|(i, _)| needed >> i & 1 == 1);
        let length: usize = nodes().map(|(_, n)| n.body.length).sum();
        let loads = self.loads_of(needed).filter(|l| self.is_full(l)).count();
        let turns = nodes().map(|(_, n)| n.body.turns);
        let turns = turns.fold(0, usize::saturating_add);
        (turns == 0 || x.reads.saturating_mul(turns) <= MAX_TURNS)
            && (times == 1 || times * length <= MAX_LENGTH && times * loads <= times + loads + 1)
    }

    /// Whether each logical index has an element of its own.
    fn is_full(&self, load: &Load) -> bool {
        match (&load.place.walk, &self.shape) {
            (Walk::Still, _) => false,
            (Walk::Strided(steps), Some(shape)) => {
                shape.iter().zip(steps).all(|(&n, &s)| n == 1 || s != 0)
            }
            _ => true,
        }
    }
}

/// A file's text, in which the function that reads an operand has another name than what calls it.
pub(super) fn without_reads(own: String, name: &str) -> Result<String> {
    let (one, two) = (format!("fn read_{name}("), format!("fn read_two_{name}("));
    if !own.contains(&one) {
        bail!(Assertion, "{NAME}: a file without {one}");
    }
    let out = own.replace(&one, &format!("fn stored_{name}("));
    Ok(out.replace(&two, &format!("fn stored_two_{name}(")))
}

impl<'a> Plan<'a> {
    /// What a root takes of what comes before it; its other buffers are behind so many.
    pub(super) fn taken(before: &'a Before, behind: usize) -> Option<Box<Plan<'a>>> {
        let taken = before.taken()?;
        let group = &*before.group;
        let plan = Plan::new(group, group.needed(1 << taken.node), &[]);
        Some(Box::new(Plan {
            taken: Some((taken, behind)),
            ..plan
        }))
    }
}

impl<'a, 'g> Writer<'a, 'g> {
    /// The functions that read what the root takes of this.
    pub(super) fn reads_of(&mut self, plan: &'a Plan<'g>) {
        let Some((FusedOperand { node, name, .. }, _)) = plan.taken else {
            return;
        };
        let whole = std::mem::replace(&mut self.plan, plan);
        let (first, zero) = (self.take(), self.take());
        self.line(format_args!(
            "fn read_{name}(e: u32) -> Acc {{\nlet i = e - {first};\nlet zero = {zero};"
        ));
        self.body(None);
        let v = self.value(Source::Node(node));
        let high = match plan.nodes[plan.node(node)].1.dtype.size() {
            8 => format!("{v}h"),
            _ => "0u".to_string(),
        };
        let format = name.to_ascii_uppercase();
        self.line(format_args!(
            "return decode({format}, {v}, {high}, 0u);
}}
fn read_two_{name}(e: u32) -> vec2<Acc> {{
    return vec2(read_{name}(e), read_{name}(e + 1u));
}}"
        ));
        self.plan = whole;
    }
}
