//! What calls of a function asked for so far, as a tree: each point is a request, and the way there is those
//! before it. Calls that ask for the same go the same way.

use super::run::Arena;
use super::{Program, Run, Slot, Source, Step, Value};
use crate::device::Device;
use crate::dispatch::metas;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Metas, Op, TensorMeta};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Where every call begins.
pub(super) const START: usize = 0;
/// Points of a tree, requests that follow one, and programs.
const POINTS: usize = 1 << 15;
const NEXT: usize = 64;
const PROGRAMS: usize = 64;
/// Bytes that programs may hold beside those of the largest.
const IDLE: usize = 1 << 20;
/// Trees that are begun anew because they were full.
const TREES: usize = 4;

/// Counts changes of settings that kernels look at when they run.
static SETTINGS: AtomicU64 = AtomicU64::new(0);

/// Has work done that waits, and notes that kernels may be others from now on.
pub fn change_settings() -> Result<()> {
    super::settle()?;
    SETTINGS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn settings() -> u64 {
    SETTINGS.load(Ordering::Relaxed) + Gpu::openings() as u64
}

/// A request as calls made it before.
pub(super) struct Known {
    pub op: Arc<dyn Op>,
    pub x: Vec<Value>,
    pub y: Vec<Value>,
    /// What the op infers, where it writes to memory that is there.
    pub into: Option<Metas>,
    /// Whether numbers of the op differ from call to call.
    pub varies: bool,
}

/// What is asked for: tensors by the numbers of their slots.
pub(super) struct Asked<'a> {
    pub op: &'a dyn Op,
    pub x: &'a [&'a Tensor],
    pub x_slots: &'a [usize],
    pub y: &'a [Tensor],
    pub y_slots: &'a [usize],
    pub into: Option<&'a [TensorMeta]>,
}

#[derive(Default)]
struct Point {
    before: usize,
    known: Option<Known>,
    next: SmallVec<[usize; 2]>,
}

/// A part of a way as a program.
pub(super) struct Part {
    from: usize,
    to: usize,
    /// The slots made in it that outlive it.
    live: Vec<usize>,
    settings: u64,
    program: Arc<Program>,
    /// None where its memory is not worth being kept.
    run: Option<Run>,
    /// The slots whose memory is bound in each call, in the order of the program's inputs.
    pub bound: Arc<[usize]>,
    /// The step of each request that was not joined with others.
    pub steps: Arc<[Option<usize>]>,
}

pub(super) struct Paths {
    points: Vec<Point>,
    /// The latest first.
    parts: Vec<Part>,
    arena: Arena,
    /// Slots and waiting requests of the last call.
    pub rooms: [usize; 2],
    /// Trees before this one.
    trees: usize,
    full: bool,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths {
            points: vec![Point::default()],
            parts: Vec::new(),
            arena: Arena::default(),
            rooms: [0; 2],
            trees: 0,
            full: false,
        }
    }
}

impl Known {
    /// Whether a request is this one but for its op.
    fn fits(&self, asked: &Asked) -> bool {
        let same = |v: &Value, slot: usize, m: &Meta| v.slot == slot && v.meta == *m;
        let x = || asked.x.iter().zip(asked.x_slots).zip(&self.x);
        if asked.x.len() != self.x.len() || !x().all(|((t, &s), v)| same(v, s, t.meta())) {
            return false;
        }
        match (asked.into, &self.into) {
            (None, None) => true,
            (Some(new), Some(old)) => {
                let y = || asked.y.iter().zip(asked.y_slots).zip(&self.y);
                new == &old[..]
                    && asked.y.len() == self.y.len()
                    && y().all(|((t, &s), v)| same(v, s, t.meta()))
            }
            _ => false,
        }
    }

    /// Whether another op of its kind has such results.
    fn resembles(&self, asked: &Asked) -> bool {
        let kind = |op: &dyn Op| (op as &dyn Any).type_id();
        if kind(&*self.op) != kind(asked.op) {
            return false;
        }
        if self.into.is_some() {
            return true;
        }
        let x = metas(asked.x);
        match crate::dispatch::plan(asked.op, &x) {
            Ok(y) => y.len() == self.y.len() && y.iter().zip(&self.y).all(|(m, v)| *m == v.meta),
            Err(_) => false,
        }
    }
}

impl Part {
    /// The program with its memory.
    pub fn run(&mut self) -> &mut Run {
        self.run.as_mut().expect("a program that has its memory")
    }
}

impl Paths {
    /// Where a request leads; `None` where no call asked for it here.
    pub fn step(&mut self, at: usize, asked: &Asked) -> Option<usize> {
        let next = &self.points[at].next;
        let known = |&p: &usize| self.points[p].known.as_ref().expect("a request");
        let is_it = |p: &usize| known(p).fits(asked) && *known(p).op == *asked.op;
        let like_it = |p: &usize| known(p).fits(asked) && known(p).resembles(asked);
        let found = next.iter().position(is_it);
        let i = found.or_else(|| next.iter().position(like_it))?;
        let to = next[i];
        // The way that was taken last is looked at first.
        self.points[at].next[..=i].rotate_right(1);
        if found.is_none() && !self.known(to).varies {
            self.known_mut(to).varies = true;
            // Programs that know its numbers are made again.
            self.parts.clear();
        }
        Some(to)
    }

    /// The request that followed the last time, and where it leads.
    pub fn latest(&self, at: usize) -> Option<(usize, &Known)> {
        let to = *self.points[at].next.first()?;
        Some((to, self.known(to)))
    }

    pub fn known(&self, at: usize) -> &Known {
        self.points[at].known.as_ref().expect("a request")
    }

    fn known_mut(&mut self, at: usize) -> &mut Known {
        self.points[at].known.as_mut().expect("a request")
    }

    /// Notes a request that was answered; `None` where there is no room for more.
    pub fn add(&mut self, at: usize, known: Known) -> Option<usize> {
        if self.points.len() >= POINTS || self.points[at].next.len() >= NEXT {
            self.full = true;
            return None;
        }
        let to = self.points.len();
        self.points.push(Point {
            before: at,
            known: Some(known),
            ..Point::default()
        });
        self.points[at].next.insert(0, to);
        Some(to)
    }

    /// Makes room before a call where there was none; false where calls are too different.
    pub fn begin(&mut self) -> bool {
        if self.full && self.trees < TREES {
            *self = Paths {
                trees: self.trees + 1,
                ..Paths::default()
            };
        }
        !self.full
    }

    /// The requests between two points.
    fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let mut way = Vec::new();
        let mut at = to;
        while at != from {
            way.push(at);
            at = self.points[at].before;
        }
        way.reverse();
        way
    }

    /// The program of what was asked for between two points, of which these slots outlive it; the device of
    /// each slot comes from `device`.
    pub fn part(
        &mut self,
        from: usize,
        to: usize,
        live: &[usize],
        slot: impl Fn(usize) -> (usize, Device),
    ) -> Result<&mut Part> {
        let now = settings();
        self.parts.retain(|p| p.settings == now);
        let is_it = |p: &Part| (p.to, p.from) == (to, from) && p.live == live;
        match self.parts.iter().position(is_it) {
            Some(i) => self.parts[..=i].rotate_right(1),
            None => {
                let part = self.made(from, to, live, slot)?;
                self.parts.truncate(PROGRAMS - 1);
                self.parts.insert(0, part);
            }
        }
        let part = &mut self.parts[0];
        if part.run.is_none() {
            part.run = Some(Run::within(part.program.clone(), &mut self.arena)?);
            self.trim();
        }
        Ok(&mut self.parts[0])
    }

    /// Frees memory that programs have beside the largest one's, of those that ran longest ago. They get
    /// some of that when they run again.
    fn trim(&mut self) {
        let runs = || self.parts.iter().filter_map(|p| p.run.as_ref());
        let most = runs().map(Run::held).max().unwrap_or(0) + IDLE;
        let (mut seen, mut all) = (HashSet::new(), 0);
        for part in &mut self.parts {
            if let Some(run) = &part.run {
                all += run.held_beside(&mut seen);
                if all > most {
                    part.run = None;
                }
            }
        }
    }

    fn made(
        &self,
        from: usize,
        to: usize,
        live: &[usize],
        slot: impl Fn(usize) -> (usize, Device),
    ) -> Result<Part> {
        let mut own: HashMap<usize, usize> = HashMap::new();
        let (mut slots, mut bound) = (Vec::new(), Vec::new());
        let mut value = |v: &Value, made: bool| {
            let at = *own.entry(v.slot).or_insert_with(|| {
                let lives = live.contains(&v.slot);
                let source = match made && !lives {
                    true => Source::Made,
                    false => {
                        bound.push(v.slot);
                        Source::Input(bound.len() - 1)
                    }
                };
                let (bytes, device) = slot(v.slot);
                slots.push(Slot {
                    source,
                    bytes,
                    device,
                    written: false,
                    escapes: made && lives,
                });
                slots.len() - 1
            });
            Value {
                slot: at,
                meta: v.meta.clone(),
            }
        };
        let way = self.way(from, to);
        let mut steps = Vec::with_capacity(way.len());
        for (number, &p) in way.iter().enumerate() {
            let known = self.known(p);
            let x = known.x.iter().map(|v| value(v, false)).collect();
            let y = known.y.iter();
            let y = y.map(|v| value(v, known.into.is_none())).collect();
            steps.push(Step {
                op: known.op.clone(),
                x,
                y,
                into: known.into.clone(),
                key: None,
                varies: known.varies,
                number: Some(number),
            });
        }
        for step in &steps {
            for v in &step.y {
                slots[v.slot].written = true;
            }
        }
        let mut program = Program::of(slots, steps);
        program.fuse();
        let mut at = vec![None; way.len()];
        for (i, step) in program.steps.iter().enumerate() {
            if let Some(number) = step.number {
                at[number] = Some(i);
            }
        }
        Ok(Part {
            from,
            live: live.to_vec(),
            to,
            settings: settings(),
            program: Arc::new(program),
            run: None,
            bound: bound.into(),
            steps: at.into(),
        })
    }

    /// How many programs there are.
    pub fn programs(&self) -> usize {
        self.parts.len()
    }
}
