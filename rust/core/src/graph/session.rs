//! A call of a function whose requests are put off while they are those of calls before, and are run
//! together: when the call ends, or when somebody wants elements that they write. The host language runs
//! in every call, so nothing that it does is skipped, repeated or guessed.

use super::paths::{Asked, Known, Paths, START};
use super::Value;
use crate::autograd::{self, mode, Request as Pass};
use crate::batch::Batch;
use crate::device::Device;
use crate::dispatch::{self, heeded, InForce, Interpreter, Request, RequestKind};
use crate::ensure;
use crate::error::Result;
use crate::forward::Forward;
use crate::host;
use crate::op::{Op, TensorMeta, Tensors};
use crate::storage::{set_settle, Held, Storage};
use crate::tensor::{byte_count, Tensor};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Requests that wait at most, and slots of a call that is followed.
const QUEUE: usize = 4096;
const SLOTS: usize = 1 << 16;
/// Digits of a mark that name a slot: a request may go past [`SLOTS`]. The others name the call.
const DIGITS: u32 = 24;
/// Elements up to which work in host memory is done at once, where nothing of it waits.
static TINY: AtomicUsize = AtomicUsize::new(16);

/// Sets the elements up to which work in host memory is done at once, where nothing of it waits.
pub fn set_tiny(elements: usize) {
    TINY.store(elements, Ordering::Relaxed);
}

/// Counts calls.
static NUMBER: AtomicU64 = AtomicU64::new(1);
/// The calls at work, of all threads.
static CALLS: Mutex<Vec<Weak<Session>>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether a call is at work on this thread.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread runs what waited.
    static RUNS: Cell<bool> = const { Cell::new(false) };
    /// The function that was called last on this thread.
    static LAST: RefCell<Weak<Matched>> = const { RefCell::new(Weak::new()) };
}

/// Runs all that waits, of all threads.
pub fn settle() -> Result<()> {
    ensure!(
        !RUNS.get(),
        Assertion,
        "work that was put off waits for itself"
    );
    let calls: Vec<Arc<Session>> = CALLS.lock().iter().filter_map(Weak::upgrade).collect();
    calls.iter().try_for_each(|c| c.settle())
}

/// Calls that are matched with those before.
struct Calls {
    /// None while one is at work.
    paths: Mutex<Option<Box<Paths>>>,
    counts: Mutex<Counts>,
}

/// A function whose calls are matched, and the backward passes that follow them.
pub struct Matched {
    calls: Calls,
    back: Calls,
}

/// What became of a function's calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Requests that were matched, and all others that were looked at.
    pub matched: u64,
    pub others: u64,
    /// Programs, and how often one ran.
    pub programs: usize,
    pub runs: u64,
}

/// A call at work.
pub struct Session(Mutex<Work>);

struct Work {
    paths: Box<Paths>,
    /// The point of the last request, and that from which on they wait.
    at: usize,
    from: usize,
    /// Whether the calls before went the same way up to here.
    known: bool,
    /// Whether nothing is followed any more.
    off: bool,
    slots: Vec<Slot>,
    /// What memory is marked by that has slot 0; higher marks name higher slots.
    first: u64,
    /// Of requests that wait, ops with other numbers than those before.
    queue: Vec<Option<Arc<dyn Op>>>,
    waiting: Vec<usize>,
    /// Slots that would wait.
    noted: Vec<usize>,
    counts: Counts,
}

struct Slot {
    bytes: usize,
    device: Device,
    /// Memory that is still to be made.
    to_come: Option<Storage>,
    /// Memory that is there, while work on it waits.
    held: Option<(Storage, Held)>,
    /// Whether work on it would wait, if the calls before had gone the same way.
    would_wait: bool,
    /// Whether work that waits writes to memory that was there.
    written: bool,
}

enum Answer {
    /// Work that waits, with its results.
    Later(Tensors),
    /// To be run now; with `true`, noted.
    Now(bool),
    /// As `Now(false)`, after what waits.
    After,
}

/// Whether a function of slices or of tangents is at work on this thread: its tensors have no memory of their own.
fn is_transformed() -> bool {
    if !mode::interpreted() {
        return false;
    }
    let here = InForce::here();
    here.each::<Batch>().next().is_some() || here.each::<Forward>().next().is_some()
}

impl Calls {
    fn new() -> Calls {
        Calls {
            paths: Mutex::new(Some(Box::default())),
            counts: Mutex::default(),
        }
    }

    /// Begins a call; `None` where it runs as it is: within another one, where another thread calls the
    /// same function, and under interpreters that see all tensors or make some of their own.
    fn begin(&self) -> Option<Arc<Session>> {
        if WITHIN.get() || heeded(&[]) || is_transformed() {
            return None;
        }
        let mut paths = self.paths.lock().take()?;
        if !paths.begin() {
            *self.paths.lock() = Some(paths);
            return None;
        }
        set_settle(settle);
        let [slots, queue] = paths.rooms;
        let session = Arc::new(Session(Mutex::new(Work {
            paths,
            at: START,
            from: START,
            known: true,
            off: false,
            slots: Vec::with_capacity(slots),
            first: NUMBER.fetch_add(1, Ordering::Relaxed) << DIGITS,
            queue: Vec::with_capacity(queue),
            waiting: Vec::with_capacity(slots),
            noted: Vec::new(),
            counts: Counts::default(),
        })));
        CALLS.lock().push(Arc::downgrade(&session));
        WITHIN.set(true);
        InForce::here().above(session.clone()).put();
        Some(session)
    }

    /// Ends a call: what waits runs.
    fn end(&self, session: &Arc<Session>) -> Result<()> {
        let me: Arc<dyn Interpreter> = session.clone();
        InForce::here().without(&me).put();
        WITHIN.set(false);
        let done = session.settle();
        CALLS
            .lock()
            .retain(|c| !std::ptr::eq(c.as_ptr(), Arc::as_ptr(session)));
        let mut work = session.lock();
        let slots = std::mem::take(&mut work.slots);
        work.off = true;
        let mut paths = std::mem::take(&mut work.paths);
        paths.rooms = [slots.len(), work.queue.capacity()];
        let new = work.counts;
        drop(work);
        drop(slots);
        let mut counts = self.counts.lock();
        counts.matched += new.matched;
        counts.others += new.others;
        counts.runs += new.runs;
        counts.programs = paths.programs();
        drop(counts);
        *self.paths.lock() = Some(paths);
        done
    }

    /// Runs `f` as a call.
    fn call<R>(&self, f: impl FnOnce() -> R) -> (R, Result<()>) {
        let Some(session) = self.begin() else {
            return (f(), Ok(()));
        };
        struct Ends<'a>(&'a Calls, Option<Arc<Session>>);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                // It unwinds, and what goes wrong beside is lost.
                self.1.take().map(|session| self.0.end(&session));
            }
        }
        let mut ends = Ends(self, Some(session));
        let result = f();
        let done = ends.1.take().map_or(Ok(()), |session| self.end(&session));
        (result, done)
    }

    fn forget(&self) {
        if let Some(paths) = &mut *self.paths.lock() {
            **paths = Paths::default();
        }
    }
}

impl Matched {
    pub fn new() -> Arc<Matched> {
        Arc::new(Matched {
            calls: Calls::new(),
            back: Calls::new(),
        })
    }

    /// Runs `f`, a call of the function; and whether all that it asked for has run.
    pub fn call<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> (R, Result<()>) {
        let within = WITHIN.get();
        let done = self.calls.call(f);
        if !within {
            LAST.set(Arc::downgrade(self));
        }
        done
    }

    /// Forgets all calls.
    pub fn forget(&self) {
        self.calls.forget();
        self.back.forget();
    }

    /// Counts of the calls, and of the backward passes that followed them.
    pub fn counts(&self) -> [Counts; 2] {
        [*self.calls.counts.lock(), *self.back.counts.lock()]
    }
}

/// Runs a backward pass; after a call of a compiled function on this thread it is matched with the passes
/// before.
pub fn backward(request: &Pass) -> Result<Vec<Option<Tensor>>> {
    let last = LAST.with_borrow(Weak::upgrade);
    match last.filter(|_| !WITHIN.get()) {
        None => autograd::backward(request),
        Some(last) => {
            let (grads, done) = last.back.call(|| autograd::backward(request));
            done.and(grads)
        }
    }
}

impl Interpreter for Session {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let (op, y, into): (&dyn Op, &[Tensor], _) = match request.kind {
            RequestKind::View { .. } => return dispatch::apply(request),
            RequestKind::Compute { op } => (op, &[], None),
            RequestKind::Into { op, y, metas } => (op, y, Some(metas)),
        };
        if op.traits().draws && into.is_none() {
            let x = dispatch::metas(request.x);
            if let Some(drawn) = op.replay().map_or(Ok(None), |r| r.drawn(&x))? {
                let x: SmallVec<[&Tensor; 4]> =
                    request.x.iter().copied().chain(&drawn.more).collect();
                let kind = RequestKind::Compute { op: &*drawn.op };
                let mut results = self.apply(&Request { x: &x, kind })?;
                results.extend(drawn.rest);
                return Ok(results);
            }
        }
        loop {
            let sure = !op.traits().draws && self.is_sure(op, request.x)?;
            let answer = self.lock().ask(op, request.x, y, into, sure)?;
            match answer {
                Answer::Later(results) => return Ok(results),
                Answer::Now(false) => return dispatch::apply(request),
                Answer::Now(true) => {
                    let results = dispatch::apply(request)?;
                    let made = match into {
                        None => &results[..],
                        Some(_) => y,
                    };
                    self.lock().note(op, request.x, made, into);
                    return Ok(results);
                }
                // All that waits, also for other threads.
                Answer::After => {
                    settle()?;
                    let all = request.x.iter().copied().chain(y);
                    all.into_iter()
                        .try_for_each(|t| t.storage().flush_pending())?;
                }
            }
        }
    }

    fn heeds(&self, _x: &[&Tensor]) -> bool {
        false
    }
}

impl Session {
    /// The work, for which nobody waits with the host's lock in hand: who has it may want that.
    fn lock(&self) -> MutexGuard<'_, Work> {
        loop {
            if let Some(work) = self.0.try_lock() {
                return work;
            }
            host::unlocked(|| drop(self.0.lock()));
        }
    }

    /// Whether an op may run later. Numbers that work only reads can be looked at.
    fn is_sure(&self, op: &dyn Op, x: &[&Tensor]) -> Result<bool> {
        let numbers = |t: &&Tensor| t.dtype().is_int() && t.storage().waits();
        if !x.iter().any(numbers) {
            return op.sure(x);
        }
        let seen: SmallVec<[Tensor; 4]> = {
            let work = self.lock();
            let read = |t: &&Tensor| match work.find(t) {
                Some(Slot {
                    held: Some((storage, held)),
                    written: false,
                    ..
                }) if numbers(t) => {
                    Tensor::from_storage(storage.behind(held), t.layout().clone(), t.dtype())
                }
                _ => (*t).clone(),
            };
            x.iter().map(read).collect()
        };
        let seen: SmallVec<[&Tensor; 4]> = seen.iter().collect();
        op.sure(&seen)
    }

    /// Runs what waits.
    fn settle(&self) -> Result<()> {
        if self.0.try_lock().is_some_and(|w| w.waiting.is_empty()) {
            return Ok(());
        }
        let gone = host::unlocked(|| {
            let mut work = self.0.lock();
            if work.waiting.is_empty() {
                return Ok(Vec::new());
            }
            // With the interpreters out of force, and without asking the host for anything: who waits for
            // the lock may have the host's.
            host::keep_locked(|| {
                struct Runs;
                impl Drop for Runs {
                    fn drop(&mut self) {
                        RUNS.set(false);
                    }
                }
                RUNS.set(true);
                let _runs = Runs;
                dispatch::interpreted_below(|| mode::with_grad(false, || work.run()))
            })
        })?;
        // Dropping may call the host.
        drop(gone);
        Ok(())
    }
}

/// Whether work on a tensor may be put off.
fn is_plain(t: &Tensor) -> bool {
    !t.is_sparse() && !t.answers() && t.has_data() && t.numel() > 0
}

impl Work {
    /// What is to be done with a request.
    fn ask(
        &mut self,
        op: &dyn Op,
        x: &[&Tensor],
        y: &[Tensor],
        into: Option<&[TensorMeta]>,
        sure: bool,
    ) -> Result<Answer> {
        if sure && self.known && !self.off && self.queue.len() < QUEUE {
            if let Some(to) = self.next(op, x, y, into) {
                return self.put_off(to, op, x, y);
            }
        }
        let all = || x.iter().copied().chain(y);
        let waits = all().any(|t| t.storage().waits());
        if self.off {
            return Ok(match waits {
                true => Answer::After,
                false => Answer::Now(false),
            });
        }
        if mode::has_been_read() {
            self.forget_noted();
        }
        let would = |t: &Tensor| self.find(t).is_some_and(|s| s.would_wait);
        let waits = waits || !self.known && all().any(would);
        let other = match waits {
            true => Answer::After,
            false => Answer::Now(false),
        };
        let most = TINY.load(Ordering::Relaxed);
        let tiny = |t: &Tensor| t.numel() <= most && t.device() == Device::Cpu;
        if !waits && into.is_some() && all().all(tiny) {
            return Ok(other);
        }
        if !waits && into.is_none() && x.iter().all(|t| tiny(t)) {
            return Ok(other);
        }
        let slots = sure.then(|| self.places(x, y)).flatten();
        let Some(slots) = slots else {
            self.counts.others += 1;
            if waits {
                self.forget_noted();
            }
            return Ok(other);
        };
        if self.slots.len() >= SLOTS {
            self.off = true;
            return Ok(other);
        }
        if !self.known {
            return Ok(Answer::Now(true));
        }
        if self.queue.len() >= QUEUE {
            return Ok(Answer::After);
        }
        let (x_slots, y_slots) = slots.split_at(x.len());
        let asked = Asked {
            op,
            x,
            x_slots,
            y,
            y_slots,
            into,
        };
        let Some(to) = self.paths.step(self.at, &asked) else {
            // What was matched runs; from here on the call is another one.
            self.known = false;
            // Once this way is known, what waits will go on waiting here.
            for i in self.waiting.clone() {
                self.would_wait(i);
            }
            return match self.queue.is_empty() {
                true => Ok(Answer::Now(true)),
                false => Ok(Answer::After),
            };
        };
        self.put_off(to, op, x, y)
    }

    /// Where a request leads that is the one that followed here the last time: whatever such a one has to be
    /// held against, in one pass. Others are looked at closely.
    fn next(
        &self,
        op: &dyn Op,
        x: &[&Tensor],
        y: &[Tensor],
        into: Option<&[TensorMeta]>,
    ) -> Option<usize> {
        let (to, known) = self.paths.latest(self.at)?;
        if x.len() != known.x.len() || into != known.into.as_deref() {
            return None;
        }
        let (most, mut waits) = (TINY.load(Ordering::Relaxed), false);
        let mut new: SmallVec<[usize; 4]> = SmallVec::new();
        // Whether a tensor is that of a known request, and may wait.
        let mut same = |t: &Tensor, v: &Value| {
            let (s, there) = (t.storage(), self.place(t));
            let may = match s.waits() {
                true => there.is_some_and(|at| self.slots[at].waits()),
                false => s.may_wait(),
            };
            waits |= s.waits() || t.numel() > most || t.device() != Device::Cpu;
            let at = there.unwrap_or_else(|| {
                let at = new.iter().position(|&id| id == s.id());
                self.slots.len() + at.unwrap_or_else(|| (new.push(s.id()), new.len() - 1).1)
            });
            may && at == v.slot && v.meta == *t.meta() && is_plain(t)
        };
        let mut all = x.iter().zip(&known.x).all(|(t, v)| same(t, v));
        if into.is_some() {
            all = all && y.len() == known.y.len();
            all = all && y.iter().zip(&known.y).all(|(t, v)| same(t, v));
        }
        (all && waits && *known.op == *op).then_some(to)
    }

    /// Puts a request off that leads to point `to`: its results, or that what waits has to run first.
    fn put_off(&mut self, to: usize, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<Answer> {
        for i in 0..x.len() + y.len() {
            let known = self.paths.known(to);
            let (t, at) = match x.get(i) {
                Some(t) => (*t, known.x[i].slot),
                None => (&y[i - x.len()], known.y[i - x.len()].slot),
            };
            if !self.wait(t, at) {
                return Ok(Answer::After);
            }
            if i >= x.len() {
                self.slots[at].written = true;
            }
        }
        self.counts.matched += 1;
        let known = self.paths.known(to);
        self.queue.push(known.varies.then(|| op.keep()));
        let mut results = Tensors::new();
        if known.into.is_none() {
            for v in &known.y {
                let m = &v.meta;
                let bytes = byte_count(m.shape(), m.dtype())?;
                let storage = Storage::to_come(bytes, m.device());
                storage.set_mark(self.first + self.slots.len() as u64);
                self.waiting.push(self.slots.len());
                self.slots.push(Slot {
                    bytes,
                    device: m.device(),
                    to_come: Some(storage.clone()),
                    held: None,
                    would_wait: false,
                    written: false,
                });
                results.push(Tensor::from_storage(storage, m.layout().clone(), m.dtype()));
            }
        }
        self.at = to;
        Ok(Answer::Later(results))
    }

    /// The slot of a tensor's memory. Another thread may have marked it since: then it counts as new.
    fn place(&self, t: &Tensor) -> Option<usize> {
        let at = t.storage().mark().wrapping_sub(self.first);
        (at < self.slots.len() as u64).then_some(at as usize)
    }

    fn find(&self, t: &Tensor) -> Option<&Slot> {
        self.place(t).map(|i| &self.slots[i])
    }

    /// Notes that work on a slot would wait.
    fn would_wait(&mut self, at: usize) {
        if !std::mem::replace(&mut self.slots[at].would_wait, true) {
            self.noted.push(at);
        }
    }

    /// Notes that all of it would have run.
    fn forget_noted(&mut self) {
        for i in std::mem::take(&mut self.noted) {
            self.slots[i].would_wait = false;
        }
    }

    /// The slot of memory that is there.
    fn slot(&mut self, t: &Tensor) -> usize {
        if let Some(at) = self.place(t) {
            return at;
        }
        let storage = t.storage();
        storage.set_mark(self.first + self.slots.len() as u64);
        self.slots.push(Slot {
            bytes: storage.bytes(),
            device: storage.device(),
            to_come: None,
            held: None,
            would_wait: false,
            written: false,
        });
        self.slots.len() - 1
    }

    /// The slots of a request's tensors, those of new memory in its order; `None` where some of it may not
    /// wait.
    fn places(&self, x: &[&Tensor], y: &[Tensor]) -> Option<SmallVec<[usize; 8]>> {
        let mut new: SmallVec<[usize; 8]> = SmallVec::new();
        let mut slot = |t: &Tensor| {
            let (s, id) = (t.storage(), t.storage().id());
            let known = self.place(t);
            let may = match s.waits() {
                // If not here, then for another thread.
                true => known.is_some_and(|i| self.slots[i].waits()),
                false => s.may_wait(),
            };
            if !may || !is_plain(t) {
                return None;
            }
            Some(known.unwrap_or_else(|| {
                let at = new.iter().position(|&n| n == id);
                self.slots.len()
                    + at.unwrap_or_else(|| {
                        new.push(id);
                        new.len() - 1
                    })
            }))
        };
        x.iter().copied().chain(y).map(&mut slot).collect()
    }

    /// Holds the memory of a slot, on which work now waits; false where another thread does.
    fn wait(&mut self, t: &Tensor, at: usize) -> bool {
        if at == self.slots.len() {
            self.slot(t);
        }
        let (slot, storage) = (&mut self.slots[at], t.storage());
        if slot.waits() {
            return true;
        }
        let Some(held) = storage.hold() else {
            return false;
        };
        slot.held = Some((storage.clone(), held));
        self.waiting.push(at);
        true
    }

    /// Notes a request that was run.
    fn note(&mut self, op: &dyn Op, x: &[&Tensor], y: &[Tensor], into: Option<&[TensorMeta]>) {
        if self.off {
            return;
        }
        let mut value = |t: &Tensor| Value {
            slot: self.slot(t),
            meta: t.meta().clone(),
        };
        let known = Known {
            op: op.keep(),
            x: x.iter().map(|t| value(t)).collect(),
            y: y.iter().map(value).collect(),
            into: into.map(Into::into),
            varies: false,
        };
        for v in known.x.iter().chain(&known.y) {
            self.would_wait(v.slot);
        }
        match self.paths.add(self.at, known) {
            Some(to) => (self.at, self.from) = (to, to),
            None => self.off = true,
        }
    }

    /// Runs what waits. Gives what is dropped then.
    fn run(&mut self) -> Result<Vec<Storage>> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut gone = Vec::with_capacity(waiting.len());
        let mut live = Vec::with_capacity(waiting.len());
        for &s in &waiting {
            // Of memory to come, that which somebody else still has.
            match &self.slots[s].to_come {
                Some(storage) if storage.handles() > 1 => live.push(s),
                Some(_) => gone.extend(self.slots[s].to_come.take()),
                None => {}
            }
        }
        let done = self.run_on(&live);
        if done.is_err() {
            // Their elements never came.
            for &s in &live {
                if let Some((storage, held)) = self.slots[s].held.take() {
                    storage.fail(Some(held));
                    gone.push(storage);
                } else if let Some(storage) = self.slots[s].to_come.take() {
                    storage.fail(None);
                    gone.push(storage);
                }
            }
        }
        for s in waiting {
            let slot = &mut self.slots[s];
            slot.written = false;
            if let Some((storage, held)) = slot.held.take() {
                storage.let_go(held);
                gone.push(storage);
            }
        }
        self.queue.clear();
        self.from = self.at;
        done.map(|()| gone)
    }

    fn run_on(&mut self, live: &[usize]) -> Result<()> {
        if self.queue.is_empty() {
            return Ok(());
        }
        for &s in live {
            let slot = &mut self.slots[s];
            let made = slot.to_come.as_ref().map(Storage::come).transpose()?;
            slot.held = slot.to_come.take().zip(made);
        }
        let slots = &self.slots;
        let known = |s: usize| (slots[s].bytes, slots[s].device);
        let part = self.paths.part(self.from, self.at, live, known)?;
        let (bound, steps) = (part.bound.clone(), part.steps.clone());
        let run = part.run();
        for (i, &s) in bound.iter().enumerate() {
            let (storage, held) = slots[s].held.as_ref().expect("memory that work waits on");
            run.bind_memory(i, storage, held);
        }
        for (number, op) in self.queue.iter().enumerate() {
            if let (Some(op), Some(at)) = (op, steps[number]) {
                run.set_op(at, op.clone());
            }
        }
        self.counts.runs += 1;
        run.all_steps()
    }
}

impl Slot {
    /// Whether work on it waits.
    fn waits(&self) -> bool {
        self.to_come.is_some() || self.held.is_some()
    }
}
