//! Pointwise kernels that wait for others, to run as one. What a kernel writes is a value of its
//! group until the group is recorded: kernels that read it take the value, and memory that nobody
//! holds by then is never written. No group touches what another one writes, so their order does not
//! matter, and any other command first records the groups that it meets ([`Gpu::flush_pending`]).
//!
//! A value is the bits that its memory would hold: what comes out is bit for bit what the kernels
//! give one by one.

mod kernel;
mod root;

use super::pointwise::{self, Anew, Part, MAX_INPUTS, MAX_SCALARS};
use crate::clock::{self, Client};
use crate::dtype::DType;
use crate::error::{function_name, Result};
use crate::key::{Key, Map};
use crate::launch::Prologue;
use crate::pipeline::Tail;
use crate::place::{Place, Walk};
use crate::shader::Acc;
use crate::{stream, Buffer, Gpu, View};
use kernel::Before;
use root::FusionRoot;
use smallvec::SmallVec;
use std::sync::Arc;

/// Groups that wait at a time, each of its own shape.
const MAX_GROUPS: usize = 4;
/// Kernels of one group: as many as a mask has bits.
const MAX_NODES: usize = 64;
/// Views that a group reads or writes.
pub(super) const MAX_PLACES: usize = 24;
const MAX_DIMS: usize = 8;
/// Words that the parameters of a group may have.
pub(super) const MAX_WORDS: usize = stream::PARAM_WINDOW as usize / 4;
/// Words of a parameter block in front of all others.
pub(super) const HEAD: usize = 2;

type Sizes = SmallVec<[usize; 6]>;

/// The groups of one GPU.
pub(super) struct Waiting {
    pub on: bool,
    groups: Vec<Group>,
    /// Bodies by their keys; none for what only a kernel of its own can run.
    bodies: Map<(Key, u8), Option<Arc<Body>>>,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting {
            on: std::env::var("PYTENSORLIB_WGPU_FUSE").map_or(true, |v| v != "0"),
            groups: Vec::new(),
            bodies: Map::default(),
        }
    }
}

/// A function `op` and what it may call.
pub(super) struct Body {
    pub key: Key,
    pub acc: Acc,
    pub text: String,
    /// Bytes of the text and of all that it calls, and how often loops among that may turn.
    pub length: usize,
    pub turns: usize,
}

/// A view that the group reads as it was before.
pub(super) struct Load {
    pub from: Buffer,
    pub place: Place,
}

/// A view that holds a value of the group.
pub(super) struct Store {
    pub to: Buffer,
    /// [`Buffer::past`] when it was written to.
    past: u64,
    pub place: Place,
    pub value: Source,
    /// Whether a root reads it, which is still to come.
    pub read: bool,
}

impl Store {
    /// Whether anybody but a root can still read it.
    pub fn is_held(&self) -> bool {
        self.to.past() == self.past
    }

    pub fn is_live(&self) -> bool {
        self.read || self.is_held()
    }
}

/// One kernel.
pub(super) struct Node {
    pub body: Arc<Body>,
    pub x: SmallVec<[Arg; 3]>,
    pub dtype: DType,
    pub scalars: SmallVec<[[u32; 2]; 2]>,
    pub anew: Option<Anew>,
    /// The node of the graph that it works for.
    pub client: Client,
}

#[derive(Clone, Copy)]
pub(super) struct Arg {
    pub source: Source,
    pub dtype: DType,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source {
    Load(usize),
    Node(usize),
    /// What the root gives.
    Root,
}

impl Source {
    /// A mask of nodes with this one, if it is one.
    fn mark(&self, mask: u64) -> u64 {
        match self {
            Source::Node(j) => mask | 1 << j,
            Source::Load(_) | Source::Root => mask,
        }
    }
}

/// Kernels over as many logical indices.
pub(super) struct Group {
    pub n: usize,
    /// The shape of what is strided.
    pub shape: Option<Sizes>,
    pub nodes: Vec<Node>,
    pub loads: Vec<Load>,
    pub stores: Vec<Store>,
    /// [`Buffer::bits`] of all that it writes, and of all that it reads or writes.
    bits: [u64; 2],
    /// Words of scalars so far.
    pub words: usize,
    /// The kernel that has the others in the place where it stores.
    pub root: Option<Box<FusionRoot>>,
    /// What makes that which the root reads.
    pub before: Option<Before>,
    /// Memory that nobody else gets until the group is recorded.
    kept: SmallVec<[Buffer; 1]>,
}

/// A kernel that asks to wait.
struct Call<'a> {
    x: &'a [View<'a>],
    y: View<'a>,
    x_places: SmallVec<[Place; 4]>,
    y_place: Place,
    words: usize,
    anew: Option<Anew>,
}

impl Call<'_> {
    fn n(&self) -> usize {
        self.y.numel()
    }

    /// The words of the tensor with the widest elements.
    fn spread(&self) -> usize {
        let size = self.x_places.iter().map(|p| p.size).max();
        self.n() * size.unwrap_or(0).max(self.y_place.size) / 4
    }

    fn is_strided(&self) -> bool {
        self.y_place.is_strided() || self.x_places.iter().any(Place::is_strided)
    }
}

impl Group {
    fn new(n: usize) -> Group {
        Group {
            n,
            shape: None,
            nodes: Vec::new(),
            loads: Vec::new(),
            stores: Vec::new(),
            bits: [0; 2],
            words: 0,
            root: None,
            before: None,
            kept: SmallVec::new(),
        }
    }

    /// The group of a kernel that gives `y`.
    pub fn led(root: Box<FusionRoot>, y: &View, before: Option<Before>) -> Group {
        let stores = vec![Store {
            to: y.buffer.lent(),
            past: y.buffer.past(),
            place: root.place.clone(),
            value: Source::Root,
            read: false,
        }];
        let mut bits = before.as_ref().map_or([0; 2], |b| b.group.bits);
        for (i, b) in root.buffers.iter().enumerate() {
            bits[1] |= b.bits();
            bits[0] |= if i < root.writes { b.bits() } else { 0 };
        }
        Group {
            stores,
            bits,
            root: Some(root),
            before,
            ..Group::new(y.numel())
        }
    }

    pub fn live<'a>(&'a self, b: &'a Buffer) -> impl Iterator<Item = &'a Store> {
        self.stores.iter().filter(|s| s.to.same(b) && s.is_live())
    }

    /// Whether a command that reads or writes this memory has to come behind the group.
    pub fn meets(&self, b: &Buffer, writes: bool) -> bool {
        if self.bits[writes as usize] & b.bits() == 0 {
            return false;
        }
        self.live(b).next().is_some()
            || writes && self.loads.iter().any(|l| l.from.same(b))
            || self.head_meets(b, writes)
            || self.before.as_ref().is_some_and(|g| g.meets(b, writes))
    }

    /// Whether it has to come behind the root.
    fn head_meets(&self, b: &Buffer, writes: bool) -> bool {
        let taken = self.before.as_ref().is_some_and(|g| g.taken().is_some());
        let root = self.root.as_ref();
        root.is_some_and(|h| h.meets(b, writes, taken))
    }

    /// The live store at this place, where there is one.
    fn held<'a>(&'a self, v: &'a View, place: &'a Place) -> Option<&'a Store> {
        self.live(v.buffer).find(|s| s.place == *place)
    }

    fn is_of(&self, call: &Call) -> bool {
        let alike = |shape: &Sizes| !call.is_strided() || shape[..] == *call.y.shape;
        self.n == call.n() && self.shape.as_ref().is_none_or(alike)
    }

    /// Whether the group can have one more kernel.
    fn takes(&mut self, call: &Call, max_buffers: usize) -> bool {
        self.stores.retain(Store::is_live);
        let mut ids: SmallVec<[u64; 16]> = SmallVec::new();
        let mut see = |b: &Buffer| {
            let id = b.raw().id;
            if !ids.contains(&id) && !self.root.as_ref().is_some_and(|h| h.y().same(b)) {
                ids.push(id);
            }
        };
        self.loads.iter().for_each(|l| see(&l.from));
        self.stores.iter().for_each(|s| see(&s.to));
        call.x.iter().chain([&call.y]).for_each(|v| see(v.buffer));
        let places = self.loads.len() + self.stores.len() + call.x.len() + 1;
        let dims = call
            .y
            .shape
            .len()
            .max(self.shape.as_ref().map_or(0, |s| s.len()));
        let (bound, params) = self.root.as_deref().map_or((0, 0), FusionRoot::takes);
        let (more, made) = self.before.as_ref().map_or((0, 0), Before::takes);
        let words = HEAD + params + made + self.words + call.words + places * (1 + dims) + dims;
        let shape = match call.is_strided() {
            true => call.y.shape,
            false => self.shape.as_deref().unwrap_or(&[]),
        };
        // The same elements, or none of them.
        let fits = |a: &Place, b: &Place| a == b || a.is_apart(b, self.n, shape);
        let same = |v: &View, place: &Place| self.live(v.buffer).all(|s| fits(&s.place, place));
        self.nodes.len() < MAX_NODES
            && bound + more + ids.len() <= max_buffers
            && places <= MAX_PLACES
            && words <= MAX_WORDS
            && call.x.iter().zip(&call.x_places).all(|(v, p)| same(v, p))
            && same(&call.y, &call.y_place)
            && self
                .loads
                .iter()
                .all(|l| !l.from.same(call.y.buffer) || fits(&l.place, &call.y_place))
            && self.root.as_ref().is_none_or(|h| {
                let known = |(v, p): (&View, &Place)| self.held(v, p).is_some();
                let reads = |(v, p)| known((v, p)) || !self.head_meets(v.buffer, false);
                let over = h.y().same(call.y.buffer) && h.place == call.y_place;
                // As narrow as the root's, or else words.
                let before = self.before.as_ref();
                let meets = |v: &View, writes| before.is_some_and(|g| g.meets(v.buffer, writes));
                (call.y_place.size >= 4 || call.y_place.size == h.place.size)
                    && !meets(&call.y, true)
                    && !call.x.iter().any(|v| meets(v, false))
                    && call.x.iter().zip(&call.x_places).all(reads)
                    && (over || !self.head_meets(call.y.buffer, true))
            })
    }

    fn push(&mut self, call: &Call, body: Arc<Body>, scalars: &[[u32; 2]]) {
        if call.is_strided() {
            self.shape = Some(call.y.shape.into());
        }
        let mut x = SmallVec::new();
        for (v, place) in call.x.iter().zip(&call.x_places) {
            let made = self.held(v, place).map(|s| s.value);
            let source = made.unwrap_or_else(|| self.load(v, place));
            x.push(Arg {
                source,
                dtype: v.dtype,
            });
        }
        let node = self.nodes.len();
        self.words += call.words;
        let written = call.y.buffer.bits();
        let read = call.x.iter().map(|v| v.buffer.bits());
        self.bits[0] |= written;
        self.bits[1] |= read.fold(written, |all, bits| all | bits);
        self.nodes.push(Node {
            body,
            x,
            dtype: call.y.dtype,
            scalars: scalars.into(),
            anew: call.anew,
            client: Client::here(),
        });
        let (to, place) = (call.y.buffer, &call.y_place);
        self.stores.retain(|s| !s.to.same(to) || s.place != *place);
        self.stores.push(Store {
            to: to.lent(),
            past: to.past(),
            place: place.clone(),
            value: Source::Node(node),
            read: false,
        });
    }

    fn load(&mut self, v: &View, place: &Place) -> Source {
        let known = |l: &Load| l.from.same(v.buffer) && l.place == *place;
        let at = self.loads.iter().position(known);
        Source::Load(at.unwrap_or_else(|| {
            self.loads.push(Load {
                from: v.buffer.lent(),
                place: place.clone(),
            });
            self.loads.len() - 1
        }))
    }

    /// Goes on without a root whose result is memory by now.
    fn read_from(&mut self, root: &FusionRoot) {
        self.stores.retain(|s| !matches!(s.value, Source::Root));
        self.loads.push(Load {
            from: root.y().lent(),
            place: root.place.clone(),
        });
        let load = Source::Load(self.loads.len() - 1);
        for arg in self.nodes.iter_mut().flat_map(|n| &mut n.x) {
            if let Source::Root = arg.source {
                arg.source = load;
            }
        }
    }

    /// Records what anybody can still read.
    fn record(mut self, gpu: &Gpu) -> Result<()> {
        if gpu.is_outside() {
            gpu.tear();
        }
        if let Some(before) = self.before.take_if(|b| b.taken().is_none()) {
            before.group.record(gpu)?;
        }
        self.stores.retain(Store::is_live);
        // A root stores elements one by one, which costs more where they share words: one such result
        // is what it has alone.
        let narrow = self.stores.iter().filter(|s| s.place.size < 4).count();
        if let Some(root) = self.root.take_if(|_| narrow > 1) {
            self.read_from(&root);
            let alone = Group {
                root: Some(root),
                before: self.before.take(),
                ..Group::new(self.n)
            };
            alone.record_live(gpu)?;
        }
        self.record_live(gpu)
    }

    /// Records the root, and what the stores hold.
    fn record_live(&self, gpu: &Gpu) -> Result<()> {
        let needed = self.needed(self.stores.iter().fold(0, |mask, s| s.value.mark(mask)));
        let recorded = match (needed.count_ones(), &self.root, &self.before) {
            (0, None, _) => Ok(()),
            (0, Some(root), None) => root.record(gpu),
            (1, None, _) if !kernel::is_wide(gpu, self, needed) => {
                self.alone(gpu, needed.trailing_zeros() as usize)
            }
            _ => kernel::record(gpu, self, needed),
        };
        self.named(recorded, needed)
    }

    /// These nodes and all whose values they read.
    pub fn needed(&self, mut mask: u64) -> u64 {
        for (i, node) in self.nodes.iter().enumerate().rev() {
            if mask >> i & 1 == 1 {
                mask = node.x.iter().fold(mask, |mask, a| a.source.mark(mask));
            }
        }
        mask
    }

    /// What these nodes work for.
    fn own_clients(&self, needed: u64) -> impl Iterator<Item = Client> + '_ {
        let needed = move |(i, _): &(usize, &Node)| needed >> i & 1 == 1;
        let nodes = self.nodes.iter().enumerate().filter(needed);
        nodes.map(|(_, n)| n.client)
    }

    /// What a kernel of the root and of these nodes works for.
    pub fn clients(&self, needed: u64) -> SmallVec<[Client; 1]> {
        let taken = self
            .before
            .iter()
            .filter_map(|b| Some((b, b.taken()?.node)));
        let taken = taken.flat_map(|(b, node)| b.group.own_clients(b.group.needed(1 << node)));
        taken
            .chain(self.root.iter().map(|h| h.client))
            .chain(self.own_clients(needed))
            .collect()
    }

    /// Says in an error which operators a kernel of the root and of these nodes works for.
    fn named(&self, recorded: Result<()>, needed: u64) -> Result<()> {
        recorded.map_err(|mut e| {
            let clients = self.clients(needed);
            let names: Vec<String> = clients.iter().map(|c| function_name(c.op)).collect();
            e.text += &format!(" (in the kernel of {})", names.join(", "));
            e
        })
    }

    /// Records the only kernel as what it would have been.
    fn alone(&self, gpu: &Gpu, i: usize) -> Result<()> {
        let (node, store) = (&self.nodes[i], &self.stores[0]);
        let flat = Sizes::from_slice(&[self.n]);
        let shape = self.shape.as_ref().unwrap_or(&flat);
        let steps = |place: &Place| -> SmallVec<[isize; 6]> {
            match &place.walk {
                Walk::Still => SmallVec::from_elem(0, shape.len()),
                Walk::Strided(steps) => steps.clone(),
                Walk::Linear => {
                    let mut steps = SmallVec::from_elem(1, shape.len());
                    for d in (1..shape.len()).rev() {
                        steps[d - 1] = steps[d] * shape[d] as isize;
                    }
                    steps
                }
            }
        };
        let loads = node.x.iter().filter_map(|a| match a.source {
            Source::Load(l) => Some((&self.loads[l], a.dtype)),
            _ => None,
        });
        let loads: SmallVec<[_; 3]> = loads.map(|(l, d)| (l, d, steps(&l.place))).collect();
        let x: SmallVec<[View; MAX_INPUTS]> = loads
            .iter()
            .map(|(load, dtype, strides)| View {
                buffer: &load.from,
                offset: load.place.offset,
                shape,
                strides,
                dtype: *dtype,
            })
            .collect();
        let y = View {
            buffer: &store.to,
            offset: store.place.offset,
            shape,
            strides: &steps(&store.place),
            dtype: node.dtype,
        };
        let body = Tail {
            text: &node.body.text,
            key: node.body.key,
        };
        let whole = Part {
            first: 0,
            settled: true,
            anew: node.anew,
        };
        let launch = || pointwise::launch(gpu, node.body.acc, body, &x, y, &node.scalars, whole);
        node.client.at_work(launch)
    }
}

impl Waiting {
    /// The body of this key, kept from when it was first seen; none where it reads what only a
    /// kernel of its own has.
    fn body(&mut self, acc: Acc, tail: Tail) -> Option<Arc<Body>> {
        let known = self.bodies.entry((tail.key, acc as u8)).or_insert_with(|| {
            let fits = acc.has_functions(tail.text) && kernel::is_closed(tail.text);
            fits.then(|| {
                let (length, turns) = kernel::measured(acc, tail.text);
                Arc::new(Body {
                    key: tail.key,
                    acc,
                    text: tail.text.to_string(),
                    length,
                    turns,
                })
            })
        });
        known.clone()
    }

    /// Whether what reads this memory has to come behind a group.
    pub(super) fn meets(&self, b: &Buffer) -> bool {
        self.groups.iter().any(|g| g.meets(b, false))
    }

    /// Takes the group out that makes what a root of so many buffers and words of parameters takes.
    pub(super) fn before(
        &mut self,
        gpu: &Gpu,
        x: &Prologue,
        room: (usize, usize),
    ) -> Option<Before> {
        let meets = |g: &Group| g.meets(x.view.buffer, false);
        let i = self.groups.iter().position(meets)?;
        let taken = self.groups[i].precedes(x, room, gpu.max_buffers())?;
        let group = Box::new(self.groups.remove(i));
        Some(Before { group, taken })
    }

    pub(super) fn add(&mut self, gpu: &Gpu, group: Group) -> Result<()> {
        self.groups.push(group);
        match self.groups.len() > MAX_GROUPS {
            true => self.record(gpu, 0),
            false => Ok(()),
        }
    }

    fn record(&mut self, gpu: &Gpu, i: usize) -> Result<()> {
        // Groups go in the order in which they began.
        self.groups.remove(i).record(gpu)
    }

    fn record_all(&mut self, gpu: &Gpu) -> Result<()> {
        // All of them, also where one fails.
        let mut done = Ok(());
        for group in std::mem::take(&mut self.groups) {
            done = done.and(group.record(gpu));
        }
        done
    }

    /// Records the groups that a command on this memory has to come behind.
    pub fn flush_pending<'a>(
        &mut self,
        gpu: &Gpu,
        touched: impl Iterator<Item = (&'a Buffer, bool)>,
    ) -> Result<()> {
        for (b, writes) in touched {
            while let Some(i) = self.groups.iter().position(|g| g.meets(b, writes)) {
                self.record(gpu, i)?;
            }
        }
        Ok(())
    }
}

impl Gpu {
    /// Lets a kernel wait for others; false where it has to run alone. The tensors are not empty.
    pub(super) fn wait_for_more(
        &self,
        acc: Acc,
        body: Tail,
        x: &[View],
        y: View,
        scalars: &[[u32; 2]],
        anew: Option<Anew>,
    ) -> Result<bool> {
        let mut waiting = self.waiting.lock();
        let waits = waiting.on && !clock::apart();
        // Values of a group have two words at most.
        let long = acc == Acc::C128;
        if self.is_outside() || long || !waits && !self.is_wide(2 * y.numel()) {
            return Ok(false);
        }
        let call = Call {
            x,
            y,
            x_places: x.iter().map(Place::of).collect(),
            y_place: Place::of(&y),
            words: 2 * scalars.len(),
            anew,
        };
        let all = || x.iter().chain([&y]);
        let wide = acc != Acc::F64 && all().any(|v| v.dtype == DType::F64);
        // Places are told apart by where they begin, which a window hides.
        let most = self.info.max_binding;
        let large = |v: &View| v.buffer.window().is_some() || v.buffer.capacity() > most;
        // What is left of a lost device spoils no group.
        let gone = |v: &View| self.check_alive(v.buffer).is_err();
        let moved = |(v, p): (&View, &Place)| {
            let apart = || p.is_apart(&call.y_place, call.n(), y.shape);
            v.buffer.same(y.buffer) && *p != call.y_place && !apart()
        };
        if wide
            || x.len() > MAX_INPUTS
            || scalars.len() > MAX_SCALARS
            || call.n() > 1 << 31
            || y.shape.len() > MAX_DIMS
            || !call.y_place.is_writable(y.shape)
            || all().any(|v| large(v) || gone(v))
            || x.iter().zip(&call.x_places).any(moved)
            || self.require(acc, "").is_err()
        {
            return Ok(false);
        }
        if !waits && !self.is_wide(call.spread()) {
            return Ok(false);
        }
        let Some(body) = waiting.body(acc, body) else {
            return Ok(false);
        };
        let touched = x.iter().map(|v| (v.buffer, false));
        let touched = touched.chain([(y.buffer, true)]);
        if !waits {
            waiting.flush_pending(self, touched)?;
            let mut group = Group::new(call.n());
            group.push(&call, body, scalars);
            return group.record(self).map(|()| true);
        }
        let groups = &waiting.groups;
        let reads = |g: &Group| x.iter().any(|v| g.live(v.buffer).next().is_some());
        // A root is joined for what it gives.
        let of = |i: &usize| {
            let g = &groups[*i];
            g.is_of(&call) && (g.root.is_none() || reads(g))
        };
        let mut mine = (0..groups.len()).filter(of).find(|&i| reads(&groups[i]));
        mine = mine.or_else(|| (0..groups.len()).rev().find(of));
        if let Some(i) = mine {
            if !waiting.groups[i].takes(&call, self.max_buffers()) {
                waiting.record(self, i)?;
                mine = None;
            }
        }
        // Away from the list, so that the others alone are settled.
        let mut group = match mine {
            Some(i) => waiting.groups.remove(i),
            None => Group::new(call.n()),
        };
        let others = waiting.flush_pending(self, touched);
        group.push(&call, body, scalars);
        waiting.add(self, group)?;
        others.map(|()| true)
    }

    /// Buffers that one kernel binds.
    pub(super) fn max_buffers(&self) -> usize {
        self.info
            .limits
            .max_storage_buffers_per_shader_stage
            .min(16) as usize
    }

    /// Records what has to come before a command on this memory, which writes it or only reads it.
    pub(super) fn flush_pending<'a>(
        &self,
        touched: impl IntoIterator<Item = (&'a Buffer, bool)>,
    ) -> Result<()> {
        let mut waiting = self.waiting.lock();
        match waiting.groups.is_empty() {
            true => Ok(()),
            false => waiting.flush_pending(self, touched.into_iter()),
        }
    }

    /// Gives up memory: a root that waits and reads it has it until then, so that what follows may wait in other
    /// memory.
    pub(super) fn hand_over(&self, memory: Buffer) {
        let mut waiting = self.waiting.lock();
        let reads = |g: &&mut Group| g.head_meets(&memory, true);
        if let Some(group) = waiting.groups.iter_mut().find(reads) {
            group.kept.push(memory);
        }
    }

    /// Records all that waits.
    pub fn settle_all(&self) -> Result<()> {
        self.waiting.lock().record_all(self)
    }

    /// Says whether kernels may wait; tells what was before.
    pub fn set_fuse(&self, on: bool) -> Result<bool> {
        let mut waiting = self.waiting.lock();
        let before = std::mem::replace(&mut waiting.on, on);
        waiting.record_all(self).map(|()| before)
    }
}
