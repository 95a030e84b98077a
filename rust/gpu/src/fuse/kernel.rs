//! The kernel of a group of pointwise bodies: what tells it from others, its parameters, and its text,
//! which is made only where no such group was seen before.

use super::root::FusionRoot;
use super::{Arg, Body, Group, Load, Node, Source, Store, HEAD, MAX_PLACES};
use crate::bail;
use crate::binding::Bound;
use crate::command_list::Tolds;
use crate::error::Result;
use crate::geometry::WORKGROUP;
use crate::key::key;
use crate::pipeline::{Bindings, Make};
use crate::place::{Place, Walk};
use crate::shader::Acc;
use crate::shape;
use crate::{clock, text, Buffer, Gpu};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

mod epilogue;
mod prologue;
mod wide;

pub(super) use prologue::Before;
use prologue::FusedOperand;

const NAME: &str = "fused";
/// Turns that the loop of a quotient takes at most.
const QUOTIENT: usize = 6;

/// What a body finds in a kernel of its own, and not here.
const OWN: &[&str] = &[
    "p", "y", "y_lanes", "at", "value", "load0", "load1", "load2", "load3", "load4", "load5", "x0",
    "x1", "x2", "x3", "x4", "x5", "DIMS", "Y", "X0", "X1", "X2", "X3", "X4", "X5",
];

/// Whether a body takes all it reads from its arguments, its scalars and its position.
pub(super) fn is_closed(body: &str) -> bool {
    !text::words(body).any(|w| OWN.contains(&w))
}

/// A dimension of the walk, innermost last: its length, and the step of each strided place.
type Dim = shape::Walk<MAX_PLACES>;

/// What of a group is recorded.
struct Plan<'a> {
    nodes: SmallVec<[(usize, &'a Node); 16]>,
    loads: SmallVec<[(usize, &'a Load); 16]>,
    stores: &'a [Store],
    root: Option<&'a FusionRoot>,
    /// What makes that which the root takes.
    before: Option<Box<Plan<'a>>>,
    /// What a root takes of this, and how many other buffers its own are behind.
    taken: Option<(FusedOperand, usize)>,
    /// Bindings beside the root's: those written to first.
    buffers: SmallVec<[&'a Buffer; 8]>,
    writes: usize,
    /// Of what is strided.
    dims: SmallVec<[Dim; 5]>,
    /// Logical indices of one unit, so that it writes whole words.
    lanes: usize,
    /// Units of one invocation, where it reads all before it writes any (see [`wide`]); else 0, and it has one.
    times: usize,
}

impl<'a> Plan<'a> {
    fn of(gpu: &Gpu, group: &'a Group, needed: u64) -> Plan<'a> {
        let mut plan = Plan::new(group, needed, &group.stores);
        plan.times = plan.units(gpu, group.n);
        let behind = plan.buffers.len();
        let before = group.before.as_ref();
        plan.before = before.and_then(|b| Plan::taken(b, behind));
        plan
    }

    /// Of one unit for each invocation.
    fn new(group: &'a Group, needed: u64, stores: &'a [Store]) -> Plan<'a> {
        let nodes: SmallVec<[_; 16]> = group.nodes.iter().enumerate().collect();
        let nodes: SmallVec<[(usize, &Node); 16]> = nodes
            .into_iter()
            .filter(|(i, _)| needed >> i & 1 == 1)
            .collect();
        let args = || nodes.iter().flat_map(|(_, n)| &n.x);
        let reads = |i: usize| args().any(|a| matches!(a.source, Source::Load(l) if l == i));
        let loads: SmallVec<[(usize, &Load); 16]> = group
            .loads
            .iter()
            .enumerate()
            .filter(|(i, _)| reads(*i))
            .collect();
        let mut buffers: SmallVec<[&Buffer; 8]> = SmallVec::new();
        let root = group.root.as_deref();
        let mut bind = |b: &'a Buffer| {
            let new = !buffers.iter().any(|k| k.same(b));
            if new && !root.is_some_and(|h| h.y().same(b)) {
                buffers.push(b);
            }
            buffers.len()
        };
        let writes = stores.iter().map(|s| bind(&s.to)).last().unwrap_or(0);
        loads.iter().for_each(|(_, l)| {
            bind(&l.from);
        });
        let lanes = stores.iter().map(|s| 4 / s.place.size.min(4));
        let mut plan = Plan {
            lanes: lanes.max().unwrap_or(1),
            times: 0,
            nodes,
            loads,
            stores,
            root,
            before: None,
            taken: None,
            buffers,
            writes,
            dims: SmallVec::new(),
        };
        if let Some(shape) = &group.shape {
            plan.dims = plan.walked(shape);
        }
        plan
    }

    /// What the root binds.
    fn head_bound(&self) -> SmallVec<[Bound<'a>; 16]> {
        let taken = self.before.as_ref().map(|b| b.buffers[0]);
        self.root.map_or_else(SmallVec::new, |h| h.bound(taken))
    }

    /// The buffers beside those, the ones written to first.
    fn more(&self) -> impl Iterator<Item = &'a Buffer> + '_ {
        let before = self.before.iter().flat_map(|b| &b.buffers[1..]);
        self.buffers.iter().chain(before).copied()
    }

    /// Whether anything else runs where the root stores.
    fn finishes(&self) -> bool {
        self.root.is_some() && !self.nodes.is_empty()
    }

    /// The dimensions that strided places walk through.
    fn walked(&self, shape: &[usize]) -> SmallVec<[Dim; 5]> {
        let strided = self.places().filter_map(|p| match &p.walk {
            Walk::Strided(steps) => Some(steps),
            _ => None,
        });
        let strided: SmallVec<[_; MAX_PLACES]> = strided.collect();
        match strided.is_empty() {
            true => SmallVec::new(),
            false => shape::coalesce((0..shape.len()).map(|d| Dim {
                n: shape[d],
                step: std::array::from_fn(|t| strided.get(t).map_or(0, |s| s[d])),
            })),
        }
    }

    /// Those of loads, then those of stores.
    fn places(&self) -> impl Iterator<Item = &Place> + '_ {
        let loads = self.loads.iter().map(|(_, l)| &l.place);
        loads.chain(self.stores.iter().map(|s| &s.place))
    }

    /// The number of its binding; none of what the root gives.
    fn binding(&self, b: &Buffer) -> Option<usize> {
        self.buffers.iter().position(|k| k.same(b))
    }

    fn memory(&self, b: &Buffer) -> String {
        match (self.binding(b), self.taken) {
            (None, _) => "y".to_string(),
            (Some(0), Some((taken, _))) => taken.name.to_string(),
            (Some(i), Some((_, behind))) => format!("memory{}", behind + i - 1),
            (Some(i), None) => format!("memory{i}"),
        }
    }

    /// Whether invocations write words of it together.
    fn is_shared(&self, b: &Buffer) -> bool {
        let narrow = |s: &Store| s.place.size < 4 && s.to.same(b);
        self.root.is_some() && self.stores.iter().any(narrow)
    }

    /// A value of the group as a number.
    fn number(&self, source: Source) -> u64 {
        match source {
            Source::Load(i) => (self.load(i) as u64) << 2,
            Source::Node(i) => (self.node(i) as u64) << 2 | 1,
            Source::Root => 2,
        }
    }

    fn node(&self, i: usize) -> usize {
        let known = self.nodes.iter().position(|(k, _)| *k == i);
        known.expect("what a needed node reads is needed")
    }

    fn load(&self, i: usize) -> usize {
        let known = self.loads.iter().position(|(k, _)| *k == i);
        known.expect("what a needed node reads is loaded")
    }

    /// What tells its text from others.
    fn key(&self) -> crate::key::Key {
        let mut k: SmallVec<[u64; 256]> = SmallVec::new();
        let counts = [
            self.nodes.len(),
            self.loads.len(),
            self.stores.len(),
            self.writes,
        ];
        k.extend(counts.map(|n| n as u64));
        k.extend([self.buffers.len() as u64, self.dims.len() as u64]);
        match self.times {
            0 => k.push(0),
            _ => k.extend(self.kinds()),
        }
        for (_, node) in &self.nodes {
            k.extend(node.body.key);
            let sizes = (node.x.len() << 8 | node.scalars.len()) as u64;
            k.extend([node.body.acc as u64, node.dtype as u64, sizes]);
            for arg in &node.x {
                k.push(self.number(arg.source) << 8 | arg.dtype as u64);
            }
        }
        let mut strided = 0;
        for place in self.places() {
            let walk = match &place.walk {
                Walk::Still => 0,
                Walk::Linear => 1,
                Walk::Strided(_) => {
                    let bit = |(d, dim): (usize, &Dim)| ((dim.step[strided] != 0) as u64) << d;
                    let moves: u64 = self.dims.iter().enumerate().map(bit).sum();
                    strided += 1;
                    moves << 2 | 2
                }
            };
            k.push(walk << 8 | place.size as u64);
        }
        let bound = |b| self.binding(b).map_or(u64::MAX, |i| i as u64);
        k.extend(self.loads.iter().map(|(_, l)| bound(&l.from)));
        k.extend(self.stores.iter().map(|s| bound(&s.to)));
        k.extend(self.stores.iter().map(|s| self.number(s.value)));
        let taken = self.taken.map(|(t, _)| (self.node(t.node), t.name));
        let before = self.before.as_ref().map(|b| b.key());
        key(&(
            NAME,
            &k[..],
            self.root.map(FusionRoot::kernel),
            taken,
            before,
        ))
    }

    /// The parameter block, in the order in which the text takes its words. The first is how many
    /// logical indices there are, or where the root's result begins, or what it takes.
    fn words(&self, n: usize) -> SmallVec<[u32; 64]> {
        // The second word is a zero of which no compiler knows.
        let first = self.root.map_or(n, |h| h.place.offset);
        let first = self.taken.map_or(first, |(t, _)| t.offset);
        let mut w: SmallVec<[u32; 64]> = SmallVec::from_slice(&[first as u32, 0]);
        debug_assert_eq!(w.len(), HEAD);
        for (_, node) in &self.nodes {
            w.extend(node.scalars.iter().flatten().copied());
        }
        w.extend(self.dims.iter().map(|d| d.n as u32));
        let mut strided = 0;
        for place in self.places() {
            w.push(place.offset as u32);
            if let Walk::Strided(_) = place.walk {
                let steps = self.dims.iter().map(|d| d.step[strided]);
                w.extend(steps.filter(|&s| s != 0).map(|s| s as u32));
                strided += 1;
            }
        }
        w
    }

    /// Words of the parameter block that are others in each call; its own begin at `first`.
    fn told(&self, first: usize) -> Tolds {
        let mut told = Tolds::new();
        let mut word = first + HEAD;
        for (_, node) in &self.nodes {
            told.extend(node.anew.map(|anew| anew.at(word)));
            word += 2 * node.scalars.len();
        }
        told
    }

    fn text(&self) -> Result<String> {
        let mut writer = Writer::new(self);
        match self.root {
            None if self.times > 0 => writer.wide(),
            None => writer.main(),
            Some(_) if self.finishes() => writer.finish(),
            Some(_) => {}
        }
        if let Some(before) = &self.before {
            writer.reads_of(before);
        }
        writer.whole()
    }
}

/// Whether the kernel of the nodes that `needed` names has invocations that make several words.
pub(super) fn is_wide(gpu: &Gpu, group: &Group, needed: u64) -> bool {
    gpu.is_wide(2 * group.n) && Plan::of(gpu, group, needed).times > 0
}

/// Bytes of a body and of all that it calls, and how often loops among that may turn: more than any count where
/// there are others than those of quotients.
pub(super) fn measured(acc: Acc, body: &str) -> (usize, usize) {
    let texts = [text::PRELUDE, acc.prelude(), acc.math(), SCALAR];
    let items: Vec<_> = texts.iter().flat_map(|t| text::items(t)).collect();
    let mut all = text::named(&items, body);
    all.push(body);
    let turns = |t: &&str| -> usize {
        let own = |w: &str| match w {
            "quotient" | "divide" => QUOTIENT,
            "for" | "loop" | "while" if !t.starts_with("fn quotient(") => usize::MAX,
            _ => 0,
        };
        text::words(t).map(own).fold(0, usize::saturating_add)
    };
    let length = all.iter().map(|t| t.len()).sum();
    (length, all.iter().map(turns).fold(0, usize::saturating_add))
}

/// Records the nodes that `needed` names as one kernel.
pub(super) fn record(gpu: &Gpu, group: &Group, needed: u64) -> Result<()> {
    let (plan, n) = (&Plan::of(gpu, group, needed), group.n);
    let mut bound = plan.head_bound();
    let root = |h: &FusionRoot| (h.params.clone(), h.told.clone());
    let (mut words, mut told) = plan.root.map(root).unwrap_or_default();
    words.resize(words.len().next_multiple_of(4), 0);
    let own = (plan.root.is_none() || plan.finishes()).then_some(plan);
    for part in own.into_iter().chain(plan.before.as_deref()) {
        told.extend(part.told(words.len()));
        words.extend(part.words(n));
    }
    words.resize(words.len().next_multiple_of(4), 0);
    let roots = bound.len();
    let own = roots..roots + plan.writes;
    bound.extend(plan.more().map(|buffer| Bound {
        buffer,
        window: None,
    }));
    let make = Make {
        name: NAME,
        entry: plan.root.map_or("main", |h| h.kernel().entry),
        trusted: true,
        bindings: Bindings {
            count: bound.len(),
            written: [0..plan.root.map_or(0, |h| h.writes), own],
        },
    };
    let units = WORKGROUP * plan.times.max(1);
    let groups = n.div_ceil(plan.lanes).div_ceil(units);
    let grid = gpu.grid(plan.root.map_or(groups, |h| h.groups))?;
    let mut pipelines = gpu.pipelines.lock();
    let pipeline = pipelines.known(&gpu.device, plan.key(), make, || plan.text())?;
    drop(pipelines);
    let work = || {
        let groups = grid.iter().map(|&n| n as u64).product();
        // Where more runs where the root stores, the memory of its own result is not written for it.
        let left = plan.finishes().then(|| bound[0].buffer);
        let is_left = |b: &Bound| left.is_some_and(|left| left.same(b.buffer));
        let (root, more) = bound.split_at(roots);
        let root = root.iter().filter(|b| !is_left(b));
        let all: SmallVec<[&Bound; 16]> = root.chain(more).collect();
        let first = |i: usize| !all[..i].iter().any(|b| b.buffer.same(all[i].buffer));
        let each = (0..all.len()).filter(|&i| first(i));
        let bytes = each.map(|i| all[i].buffer.bytes()).sum();
        let name = group
            .root
            .as_deref()
            .map_or(NAME.to_string(), FusionRoot::name);
        clock::Work::new(&name, group.clients(needed), groups, bytes)
    };
    let params = bytemuck::cast_slice(&words);
    let mut stream = gpu.stream.lock();
    let kept = gpu.is_recording().then_some(&told[..]);
    stream.dispatch(&pipeline, &bound, params, grid, kept, work);
    drop(stream);
    gpu.check()
}

/// Of each type that is computed in.
const SCALAR: &str = "fn scalar(k: u32) -> Acc {
    return from_words(scalar_word(2u * k), scalar_word(2u * k + 1u));
}
";

/// Of all types. `base` is where the scalars of the node at hand begin.
const SCALARS: &str = "var<private> base: u32;
var<private> position: u32;
fn scalar_word(j: u32) -> u32 {
    let k = base + j;
    return p.more[k / 4u][k % 4u];
}
fn zero_word() -> u32 {
    return p.more[0u][1u];
}
";

/// Where the parameter block of a file or of one of its parts begins.
const BLOCK: &str = "struct Params {";

/// A text with a suffix behind each of these names.
fn renamed(text: &str, names: &HashSet<&str>, suffix: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        out.push_str(&rest[..end]);
        if names.contains(&rest[..end]) {
            out.push_str(suffix);
        }
        rest = &rest[end..];
        let next = rest.find(is_word).unwrap_or(rest.len());
        out.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    out
}

/// What every body that computes in a type may call: the names, and the text with its suffix.
struct Library {
    names: HashSet<&'static str>,
    text: String,
}

fn library(acc: Acc) -> &'static Library {
    static MADE: [OnceLock<Library>; Acc::EACH.len()] =
        [const { OnceLock::new() }; Acc::EACH.len()];
    MADE[acc as usize].get_or_init(|| {
        let texts = [acc.prelude(), acc.math(), SCALAR];
        let names = texts.iter().flat_map(|t| text::items(t)).map(|item| item.0);
        let names = names.collect();
        Library {
            text: renamed(&texts.concat(), &names, &suffix(acc)),
            names,
        }
    })
}

fn suffix(acc: Acc) -> String {
    format!("_{}", acc.dtype())
}

/// The integer format whose elements have so many bytes.
fn format(size: usize) -> &'static str {
    match size {
        1 => "U8",
        2 => "I16",
        4 => "I32",
        _ => "I64",
    }
}

struct Writer<'a, 'g> {
    plan: &'a Plan<'g>,
    /// The bodies, each once.
    bodies: Vec<&'a Arc<Body>>,
    /// Words of the parameter block that have a name by now.
    word: usize,
    out: String,
}

impl<'a, 'g> Writer<'a, 'g> {
    fn new(plan: &'a Plan<'g>) -> Writer<'a, 'g> {
        let mut bodies: Vec<&Arc<Body>> = Vec::new();
        let before = plan.before.iter().flat_map(|b| &b.nodes);
        for (_, node) in plan.nodes.iter().chain(before) {
            if !bodies.iter().any(|b| Arc::ptr_eq(b, &node.body)) {
                bodies.push(&node.body);
            }
        }
        Writer {
            plan,
            bodies,
            word: 0,
            out: String::with_capacity(4 << 10),
        }
    }

    fn line(&mut self, text: std::fmt::Arguments) {
        let _ = self.out.write_fmt(text);
        self.out.push('\n');
    }

    /// The next words of the parameter block: the expression of each.
    fn take(&mut self) -> String {
        let k = self.word;
        self.word += 1;
        format!("p.more[{}u][{}u]", k / 4, k % 4)
    }

    /// What is written so far, with what it needs.
    fn whole(self) -> Result<String> {
        let more = format!("    more: array<vec4<u32>, {}>,\n", self.word.div_ceil(4));
        let (mut own, mut libraries) = match self.plan.root {
            None => {
                let params = "@group(0) @binding(0) var<uniform> p: Params;\n";
                (format!("{BLOCK}\n}}\n{params}"), vec![])
            }
            Some(root) => {
                let kernel = root.kernel();
                let tail = kernel.tail.map(|t| t.text);
                let finishes = self.plan.finishes();
                let (mut own, library) =
                    (kernel.source).parts(kernel.acc, kernel.constants, tail, !finishes)?;
                if finishes {
                    own = epilogue::with_finishes(own);
                }
                if let Some((taken, _)) = self.plan.before.as_ref().and_then(|b| b.taken) {
                    own = prologue::without_reads(own, taken.name)?;
                }
                (own, library)
            }
        };
        let bound = self.plan.head_bound().len();
        for (i, b) in self.plan.more().enumerate() {
            let access = match i < self.plan.writes {
                true => "read_write",
                false => "read",
            };
            let word = match self.plan.is_shared(b) {
                true => "atomic<u32>",
                false => "u32",
            };
            let _ = writeln!(
                own,
                "@group(0) @binding({}) var<storage, {access}> memory{i}: array<{word}>;",
                bound + i + 1
            );
        }
        let mut accs: Vec<Acc> = Vec::new();
        for (i, body) in self.bodies.iter().enumerate() {
            if !accs.contains(&body.acc) {
                accs.push(body.acc);
            }
            let known = &library(body.acc).names;
            let body_text = renamed(&body.text, known, &suffix(body.acc));
            let names = text::items(&body.text).into_iter().map(|item| item.0);
            own += &renamed(&body_text, &names.collect(), &format!("_{i}"));
        }
        own += &self.out;
        if libraries.is_empty() {
            libraries.push(text::PRELUDE);
        }
        libraries.push(SCALARS);
        libraries.extend(accs.into_iter().map(|acc| library(acc).text.as_str()));
        let (file, numbers) = self.plan.root.map_or(("", &[][..]), FusionRoot::text);
        let whole = text::with_library(file, numbers, libraries.into_iter(), &own);
        let end = whole.find(BLOCK).and_then(|at| {
            let end = whole[at..].find("\n}")?;
            Some(at + end + 1)
        });
        let Some(end) = end else {
            bail!(Assertion, "{NAME}: no {BLOCK}");
        };
        Ok([&whole[..end], &more, &whole[end..]].concat())
    }

    fn main(&mut self) {
        let plan = self.plan;
        self.line(format_args!(
            "@compute @workgroup_size({WORKGROUP})
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {{
    let id = (group.x + group.y * groups.x) * {WORKGROUP}u + local;"
        ));
        let (n, zero) = (self.take(), self.take());
        self.line(format_args!("let n = {n};\nlet zero = {zero};"));
        match plan.lanes {
            1 => self.line(format_args!("let i = id;\nif (i >= n) {{ return; }}")),
            lanes => {
                for s in 0..plan.stores.len() {
                    self.line(format_args!("var o{s} = 0u;"));
                }
                self.line(format_args!(
                    "for (var k = 0u; k < {lanes}u; k++) {{\n\
                     let i = id * {lanes}u + k;\nif (i >= n) {{ break; }}"
                ));
            }
        }
        self.body(None);
        if plan.lanes > 1 {
            self.line(format_args!("}}"));
        }
        self.line(format_args!("}}"));
    }

    /// Everything for the logical index `i`, but the store that is `left`, whose element it returns.
    fn body(&mut self, left: Option<usize>) -> Option<String> {
        let plan = self.plan;
        self.line(format_args!("position = i;"));
        let bases = self.scalars();
        self.coordinates("");
        let mut strided = 0;
        for (j, (_, load)) in plan.loads.iter().enumerate() {
            let e = self.element(&load.place, &mut strided, "");
            self.load(j, load, &e, "");
        }
        for (j, (_, node)) in plan.nodes.iter().enumerate() {
            self.node(j, node, bases[j]);
        }
        let mut at = None;
        for (s, store) in plan.stores.iter().enumerate() {
            let e = self.element(&store.place, &mut strided, "");
            match left == Some(s) {
                true => at = Some(e),
                false => self.store(s, store, &e),
            }
        }
        at
    }

    /// Where the scalars of each node begin.
    fn scalars(&mut self) -> Vec<usize> {
        let mut bases = Vec::new();
        for (_, node) in &self.plan.nodes {
            bases.push(self.word);
            self.word += 2 * node.scalars.len();
        }
        bases
    }

    /// Element `e` of what a load reads: `x` with the number of the load, and `of` behind all names.
    fn load(&mut self, j: usize, load: &Load, e: &str, of: &str) {
        let b = self.plan.memory(&load.from);
        let word = |i: String| match self.plan.is_shared(&load.from) {
            true => format!("atomicLoad(&{b}[{i}])"),
            false => format!("{b}[{i}]"),
        };
        let at = format!("e{j}{of}");
        let text = match load.place.size {
            8 => {
                let (low, high) = (word(format!("2u * {at}")), word(format!("2u * {at} + 1u")));
                format!("let x{j}{of} = {low};\nlet x{j}h{of} = {high};")
            }
            4 => format!("let x{j}{of} = {};", word(at.clone())),
            size => {
                let (f, mask) = (format(size), mask(size));
                let word = word(format!("word({f}, {at})"));
                format!("let x{j}{of} = ({word} >> lane_bit({f}, {at})) & {mask};")
            }
        };
        self.line(format_args!("let {at} = {e};\n{text}"));
    }

    /// Where the logical index `i` is along each dimension: `c0` along the outermost; `of` stands behind
    /// all names.
    fn coordinates(&mut self, of: &str) {
        let last = self.plan.dims.len();
        let sizes: Vec<String> = (0..last).map(|_| self.take()).collect();
        if last == 0 {
            return;
        }
        self.line(format_args!("var rest{of} = i{of};"));
        for (d, size) in sizes.iter().enumerate().skip(1).rev() {
            self.line(format_args!(
                "let q{d}{of} = rest{of} / {size};
let c{d}{of} = rest{of} - q{d}{of} * {size};
rest{of} = q{d}{of};"
            ));
        }
        self.line(format_args!("let c0{of} = rest{of};"));
    }

    /// The number of the element at the logical index.
    fn element(&mut self, place: &Place, strided: &mut usize, of: &str) -> String {
        let mut e = self.take();
        match &place.walk {
            Walk::Still => {}
            Walk::Linear => {
                let _ = write!(e, " + i{of}");
            }
            Walk::Strided(_) => {
                for (d, dim) in self.plan.dims.iter().enumerate() {
                    if dim.step[*strided] != 0 {
                        let step = self.take();
                        let _ = write!(e, " + c{d}{of} * {step}");
                    }
                }
                *strided += 1;
            }
        }
        e
    }

    fn node(&mut self, j: usize, node: &Node, base: usize) {
        let body = self.bodies.iter().position(|b| Arc::ptr_eq(b, &node.body));
        let body = body.expect("every node's body is listed");
        let acc = suffix(node.body.acc);
        let arg = |(i, a): (usize, &Arg)| {
            let name = self.value(a.source);
            // That both are one value, of which a driver would take the difference for zero, it does not see.
            let veil = match node.x[..i].iter().any(|b| b.source == a.source) {
                true => " ^ zero",
                false => "",
            };
            let high = match a.dtype.size() {
                8 => format!("{name}h{veil}"),
                _ => "0u".to_string(),
            };
            format!("decode{acc}({}u, {name}{veil}, {high}, 0u)", a.dtype as u32)
        };
        let args: Vec<String> = node.x.iter().enumerate().map(arg).collect();
        let f = node.dtype as u32;
        if !node.scalars.is_empty() {
            self.line(format_args!("base = {base}u;"));
        }
        self.line(format_args!(
            "let t{j} = encode{acc}({f}u, op_{body}({}));",
            args.join(", ")
        ));
        // Through the zero no compiler sees what it could join with what comes next.
        match node.dtype.size() {
            size @ (1 | 2) => {
                let mask = mask(size);
                self.line(format_args!("let v{j} = (t{j}.x & {mask}) ^ zero;"));
            }
            size => {
                self.line(format_args!("let v{j} = t{j}.x ^ zero;"));
                if size == 8 {
                    self.line(format_args!("let v{j}h = t{j}.y ^ zero;"));
                }
            }
        }
    }

    /// The name of a value.
    fn value(&self, source: Source) -> String {
        match source {
            Source::Load(i) => format!("x{}", self.plan.load(i)),
            Source::Node(i) => format!("v{}", self.plan.node(i)),
            Source::Root => "h".to_string(),
        }
    }

    fn store(&mut self, s: usize, store: &Store, e: &str) {
        let (v, b) = (self.value(store.value), self.plan.memory(&store.to));
        let shared = self.plan.is_shared(&store.to);
        let put = |i: &str, v: &str| match shared {
            true => format!("atomicStore(&{b}[{i}], {v});"),
            false => format!("{b}[{i}] = {v};"),
        };
        match store.place.size {
            8 => {
                let (low, high) = (format!("y{s}"), format!("y{s} + 1u"));
                let (low, high) = (put(&low, &v), put(&high, &format!("{v}h")));
                self.line(format_args!("let y{s} = 2u * ({e});\n{low}\n{high}"));
            }
            4 => self.line(format_args!("{}", put(e, &v))),
            // As `store_y` does: invocations own elements, not words.
            size if shared => {
                let f = format(size);
                self.line(format_args!(
                    "let y{s} = {e};
let w{s} = word({f}, y{s});
let have{s} = atomicLoad(&{b}[w{s}]);
atomicXor(&{b}[w{s}], (have{s} ^ ({v} << lane_bit({f}, y{s}))) & (lane_mask({f}) << lane_bit({f}, y{s})));"
                ));
            }
            size => {
                let (f, last, bits) = (format(size), 4 / size - 1, 8 * size);
                // What lies behind the last element in its word stays.
                self.line(format_args!(
                    "o{s} |= {v} << lane_bit({f}, i);
if ((i & {last}u) == {last}u || i + 1u == n) {{
    let w{s} = word({f}, {e});
    let have{s} = ((i & {last}u) + 1u) * {bits}u;
    if (have{s} < 32u) {{ o{s} |= {b}[w{s}] & (0xffffffffu << have{s}); }}
    {b}[w{s}] = o{s};
    o{s} = 0u;
}}"
                ));
            }
        }
    }
}

fn mask(size: usize) -> &'static str {
    match size {
        1 => "0xffu",
        _ => "0xffffu",
    }
}
