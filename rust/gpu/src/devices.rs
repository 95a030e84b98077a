//! The adapters of this machine, and the GPU of each, opened on first use.

use super::{adapter, choice, cooperative, tune, Gpu};
use crate::device::gpu_name;
use crate::error::{Error, Kind, Result};
use crate::{bail, ensure};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::OnceLock;

/// An error that is raised again each time.
type Why = (Kind, String);

fn why(e: &Error) -> Why {
    (e.kind, e.to_string())
}

/// An adapter, and its GPU from when it was first asked for.
struct Slot {
    adapter: wgpu::Adapter,
    /// Never freed, also where it is lost and another takes its place.
    gpu: AtomicPtr<Gpu>,
    /// Why it could not be opened.
    failed: Mutex<Option<Why>>,
}

impl Slot {
    fn now(&self) -> Option<&'static Gpu> {
        // SAFETY: what `open` puts there is never freed.
        unsafe { self.gpu.load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn open(&self, index: u8) -> Result<&'static Gpu> {
        let mut failed = self.failed.lock();
        let before = self.now();
        if let Some(gpu) = before.filter(|gpu| !gpu.is_lost()) {
            return Ok(gpu);
        }
        if let Some((kind, text)) = &*failed {
            return Err(Error::new(*kind, text.clone()));
        }
        let open = || {
            let opened = adapter::open(&self.adapter)?;
            let ways = format!("{:?}", cooperative::BLOCKS);
            let tuned = tune::Tuned::open(&opened.info, &ways)?;
            Ok::<_, Error>((opened, tuned, cooperative::Allowed::told()?))
        };
        let (opened, tuned, cooperation) = match open() {
            Ok(both) => both,
            Err(e) => {
                // What was there once may come back.
                *failed = before.is_none().then(|| why(&e));
                return Err(e);
            }
        };
        if let Some(lost) = before {
            lost.leave();
        }
        let gpu = Box::leak(Box::new(Gpu::new(index, opened, tuned, cooperation)));
        self.gpu.store(gpu, Ordering::Release);
        Ok(gpu)
    }
}

/// What there is, best first.
static SLOTS: OnceLock<std::result::Result<Vec<Slot>, Why>> = OnceLock::new();
/// Whether this process was forked from one that had asked for them.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Lets a forked child know that it is one.
fn watch_forks() {
    extern "C" fn in_child() {
        // Nothing but an atomic is safe there.
        FORKED.store(true, Ordering::Relaxed);
    }
    crate::os::at_fork(in_child);
}

fn slots() -> Result<&'static [Slot]> {
    ensure!(
        !FORKED.load(Ordering::Relaxed),
        Runtime,
        "Cannot re-initialize wgpu in forked subprocess. To use wgpu with multiprocessing, you \
         must use the 'spawn' start method"
    );
    let find = || {
        watch_forks();
        let slot = |adapter| Slot {
            adapter,
            gpu: AtomicPtr::default(),
            failed: Mutex::default(),
        };
        let adapters = adapter::found().map_err(|e| why(&e))?;
        Ok(adapters.into_iter().map(slot).collect())
    };
    let found = match SLOTS.get() {
        Some(found) => found,
        None => {
            let found = SLOTS.get_or_init(find);
            choice::tell();
            found
        }
    };
    match found {
        Ok(slots) => Ok(slots),
        Err((kind, text)) => Err(Error::new(*kind, text.clone())),
    }
}

impl Gpu {
    /// The GPU of this number, opened on first use, and anew after it was lost. Fails where there is no such adapter, and in
    /// a forked child.
    pub fn at(index: u8) -> Result<&'static Gpu> {
        let slots = slots()?;
        let Some(slot) = slots.get(index as usize) else {
            bail!(
                Runtime,
                "{0}: invalid device ordinal: there is no {0}:{index}, the last one is {0}:{1}",
                gpu_name(),
                slots.len() - 1
            );
        };
        match slot.now() {
            Some(gpu) if !gpu.is_lost() => Ok(gpu),
            _ => slot.open(index),
        }
    }

    /// The one of this number that was opened last. Fails in a forked child.
    pub(crate) fn now(index: u8) -> Result<Option<&'static Gpu>> {
        Ok(slots()?.get(index as usize).and_then(Slot::now))
    }

    /// Those in use by now.
    pub fn opened() -> impl Iterator<Item = &'static Gpu> {
        let ours = !FORKED.load(Ordering::Relaxed);
        let slots = SLOTS.get().filter(|_| ours);
        let slots = slots.and_then(|s| s.as_ref().ok()).into_iter().flatten();
        slots.filter_map(|s| s.now().filter(|gpu| !gpu.is_lost()))
    }

    /// How many adapters there are that this process can use.
    pub fn count() -> usize {
        slots().map_or(0, <[_]>::len)
    }
}
