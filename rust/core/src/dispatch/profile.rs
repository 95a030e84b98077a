//! The profiler: which operators are called, when, and how long they take.

use super::apply::{apply, Interpreter, Kind, Request};
use crate::error::Result;
use crate::gpu::{clock, Gpu};
use crate::host;
use crate::op::{TensorMeta, Tensors};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// One request, with times in nanoseconds since the profile began.
#[derive(Clone, Debug)]
pub struct Event {
    /// As [`clock::Work`] tells it.
    pub request: u64,
    /// The modules at work, by their classes.
    pub modules: String,
    /// PyTorch's name of the graph node.
    pub name: &'static str,
    pub start: u64,
    pub end: u64,
    /// What was read, with shapes and types.
    pub x: Vec<TensorMeta>,
    /// What was made or written to.
    pub y: Vec<TensorMeta>,
    /// Whether the results are new memory.
    pub fresh: bool,
    /// The host's calls at work, the innermost first, where they are asked for.
    pub stack: Vec<String>,
}

/// An interpreter that notes each request and hands it on.
pub struct Profile {
    began: Instant,
    events: Mutex<Vec<Event>>,
    /// Whether it notes the host's calls at work.
    stacks: bool,
}

impl Profile {
    /// One that begins now, and notes the host's calls at work or not.
    pub fn new(stacks: bool) -> Profile {
        Profile {
            began: Instant::now(),
            events: Mutex::new(Vec::new()),
            stacks,
        }
    }

    /// What was noted since the last call.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock())
    }

    /// Lets the GPUs note times, until as many calls of [`Profile::unwatch`].
    pub fn watch(&self) {
        // What waits was asked for before, and what goes wrong there shows with its results.
        Gpu::opened().for_each(|gpu| drop(gpu.settle_all()));
        clock::watch();
    }

    /// Ends it, and gives what the GPUs did since the profile began, by their numbers; times count
    /// from then.
    pub fn unwatch(&self) -> Result<Vec<(u8, clock::Work)>> {
        // What waits was asked for while times were noted.
        let settled = Gpu::opened().try_for_each(Gpu::settle_all);
        clock::unwatch();
        settled?;
        let began = clock::at(self.began);
        let mut out = Vec::new();
        for gpu in Gpu::opened() {
            for mut w in gpu.works()? {
                for time in [&mut w.recorded, &mut w.begin, &mut w.end] {
                    *time -= began;
                }
                if w.recorded >= 0.0 {
                    out.push((gpu.number(), w));
                }
            }
            if !clock::watched() {
                gpu.forget_works();
            }
        }
        Ok(out)
    }

    /// Nanoseconds since the profile began.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

impl Interpreter for Profile {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let (name, into, fresh) = match request.kind {
            Kind::Compute { op } => (op.name(), [].as_slice(), true),
            Kind::Into { op, y, .. } => (op.name(), y, false),
            Kind::View { op, .. } => (op.name(), [].as_slice(), false),
        };
        let x = request.x.iter().map(|t| TensorMeta::of(t.meta())).collect();
        // The number that another profile gave it, or the next.
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = match clock::request() {
            0 => NUMBERS.fetch_add(1, Ordering::Relaxed) + 1,
            given => given,
        };
        let start = self.now();
        let made = clock::answering(number, || apply(request))?;
        let end = self.now();
        let y = into
            .iter()
            .chain(&made)
            .map(|t| TensorMeta::of(t.meta()))
            .collect();
        let event = Event {
            request: number,
            modules: host::modules(),
            name,
            start,
            end,
            x,
            y,
            fresh,
            stack: match self.stacks {
                true => host::frames(),
                false => Vec::new(),
            },
        };
        self.events.lock().push(event);
        Ok(made)
    }
}
