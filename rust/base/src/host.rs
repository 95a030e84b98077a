//! Callbacks to the embedding language, set once at start.

use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Functions of the host language. Without a host (as in `cargo test`) the defaults apply.
pub struct Host {
    /// Runs the function with the interpreter's lock released, where the caller holds it.
    pub unlocked: fn(&mut dyn FnMut()),
    /// Runs the function once on a thread of its own, and waits for it; an error is that of an
    /// interruption of the wait.
    pub elsewhere: fn(&mut (dyn FnMut() + Send)) -> Result<()>,
    /// What a user's interruption (Ctrl-C) raises on this thread, once, where it is there.
    pub interruption: fn() -> Option<Error>,
    /// The host's call stack as text, for anomaly mode.
    pub traceback: fn() -> Option<String>,
    /// The line of the user's program that is at work, such as `train.py:12`.
    pub place: fn() -> Option<String>,
    /// The calls of the host language at work on this thread, the innermost first: `train.py(12): step`.
    pub frames: fn() -> Vec<String>,
    /// The modules whose calls are at work on this thread, by their classes.
    pub modules: fn() -> String,
    /// Shows a warning to the user.
    pub warn: fn(&str),
    /// Frees the object that a tensor kept until now.
    pub free_object: fn(*mut c_void),
}

static HOST: OnceLock<Host> = OnceLock::new();
/// Warnings that came once.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Whether they come each time.
static WARNS_ALWAYS: AtomicBool = AtomicBool::new(false);
/// What `use_deterministic_algorithms` asks for: 0 nothing, 1 a warning, 2 an error.
static DETERMINISM: AtomicU8 = AtomicU8::new(0);
/// Whether it then asks for known values in memory that nothing was written to.
static FILLS: AtomicBool = AtomicBool::new(true);
/// What happens where the host waits for what a GPU computed: 0 nothing, 1 a warning, 2 an error, 3 an error since
/// what is asked for is being captured.
static WAITING: AtomicU8 = AtomicU8::new(0);
/// Whether a kernel may be chosen by time alone where another one gives other bits.
static CHOICE: AtomicBool = AtomicBool::new(true);
thread_local!(static KEEP: Cell<u32> = const { Cell::new(0) });

/// How often a thread asks for an interruption: asking takes the host's lock for a moment.
const TICK: Duration = Duration::from_millis(100);

/// Work below about 20 us is not worth the 40 ns of releasing the lock.
pub const WORTH_UNLOCKING: usize = 1 << 15;

pub fn install(host: Host) {
    let _ = HOST.set(host);
}

/// Runs `f` with the host's lock released, unless [`keep_locked`] is in force.
pub fn unlocked<R>(f: impl FnOnce() -> R) -> R {
    match HOST.get() {
        Some(host) if KEEP.get() == 0 => {
            let (mut f, mut out) = (Some(f), None);
            (host.unlocked)(&mut || {
                if let Some(f) = f.take() {
                    out = Some(f());
                }
            });
            out.expect("the host runs the function once")
        }
        _ => f(),
    }
}

/// Runs `f` on a thread of its own, where stack and the host's count of calls begin anew.
pub fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    let Some(host) = HOST.get() else {
        let done = std::thread::scope(|s| s.spawn(f).join());
        return Ok(done.unwrap_or_else(|cause| resume_unwind(cause)));
    };
    let (mut f, mut out) = (Some(f), None);
    (host.elsewhere)(&mut || {
        if let Some(f) = f.take() {
            out = Some(catch_unwind(AssertUnwindSafe(f)));
        }
    })?;
    let done = out.expect("the host runs the function once");
    Ok(done.unwrap_or_else(|cause| resume_unwind(cause)))
}

/// Runs `f` and keeps the host's lock throughout: needed while one of our own locks is held, for a
/// thread that waits for ours with the host's lock in hand would never let us finish.
pub fn keep_locked<R>(f: impl FnOnce() -> R) -> R {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            KEEP.set(KEEP.get() - 1);
        }
    }
    KEEP.set(KEEP.get() + 1);
    let _guard = Guard;
    f()
}

/// What a user's interruption raises on this thread. Asked often, it asks the host every [`TICK`], and
/// not at all while one of our own locks is held.
pub fn interruption() -> Option<Error> {
    thread_local!(static ASKED: Cell<Option<Instant>> = const { Cell::new(None) });
    let host = HOST.get().filter(|_| KEEP.get() == 0)?;
    let now = Instant::now();
    if ASKED.get().is_some_and(|asked| now - asked < TICK) {
        return None;
    }
    ASKED.set(Some(now));
    // Others need not wait for the lock to be told so.
    if !crate::os::may_be_interrupted() {
        return None;
    }
    (host.interruption)()
}

pub fn traceback() -> Option<String> {
    HOST.get().and_then(|h| (h.traceback)())
}

pub fn place() -> Option<String> {
    HOST.get().and_then(|h| (h.place)())
}

pub fn frames() -> Vec<String> {
    HOST.get().map_or_else(Vec::new, |h| (h.frames)())
}

pub fn modules() -> String {
    HOST.get().map_or_else(String::new, |h| (h.modules)())
}

/// The tensor that kept this object of the host's is gone.
#[cold]
pub fn free_object(object: *mut c_void) {
    if let Some(host) = HOST.get() {
        (host.free_object)(object);
    }
}

pub fn warn(text: &str) {
    match HOST.get() {
        Some(h) => (h.warn)(text),
        None => eprintln!("warning: {text}"),
    }
}

/// Warns of something the first time that it is done; each time where `set_warn_always` asks for it.
#[cold]
pub fn warn_once(text: &str) {
    let mut told = TOLD.lock();
    let known = told.iter().any(|t| t == text);
    if !known {
        told.push(text.to_owned());
    }
    drop(told);
    if !known || WARNS_ALWAYS.load(Ordering::Relaxed) {
        warn(text);
    }
}

/// Whether warnings that come once come each time.
pub fn set_warn_always(on: bool) {
    WARNS_ALWAYS.store(on, Ordering::Relaxed);
}

/// Says what is to happen where PyTorch leaves a result open, and whether new memory is filled then.
pub fn set_determinism(level: u8, fills: bool) {
    DETERMINISM.store(level, Ordering::Relaxed);
    FILLS.store(fills, Ordering::Relaxed);
}

/// Whether `use_deterministic_algorithms` asks for anything.
pub fn is_deterministic() -> bool {
    DETERMINISM.load(Ordering::Relaxed) != 0
}

/// Says what happens where the host waits for what a GPU computed; returns what did.
pub fn set_waiting(level: u8) -> u8 {
    WAITING.swap(level, Ordering::Relaxed)
}

/// Tells that the host is about to wait for what a GPU computed, where someone wants to hear of it.
pub fn waits_for_gpu() -> Result<()> {
    const TEXT: &str = "called a synchronizing CUDA operation: elements are read on the host, which waits for the \
         GPU (torch.cuda.set_sync_debug_mode)";
    match WAITING.load(Ordering::Relaxed) {
        0 => {}
        1 => warn(TEXT),
        3 => crate::bail!(
            Runtime,
            "operation not permitted when stream is capturing: elements are read on the host, where a replay could \
             not follow. Read them after the block"
        ),
        _ => crate::bail!(Runtime, "{TEXT}"),
    }
    Ok(())
}

/// Says whether kernels may be chosen by time where their bits differ (`cudnn.deterministic` forbids it).
pub fn set_choice(free: bool) {
    CHOICE.store(free, Ordering::Relaxed);
}

/// Whether kernels may be chosen by time where their bits differ.
pub fn may_choose() -> bool {
    CHOICE.load(Ordering::Relaxed) && !is_deterministic()
}

/// Whether memory that nothing was written to is to hold known values.
pub fn fills_memory() -> bool {
    is_deterministic() && FILLS.load(Ordering::Relaxed)
}

/// Tells that PyTorch leaves open which of several values for one place stays. Here it is the last;
/// but who asks for determinism wants to hear of it.
pub fn left_open(name: &str) -> Result<()> {
    let asked = match DETERMINISM.load(Ordering::Relaxed) {
        0 => return Ok(()),
        1 => "True, warn_only=True",
        _ => "True",
    };
    let text = format!(
        "{name} does not have a deterministic implementation, but you set \
         'torch.use_deterministic_algorithms({asked})'. You can turn off determinism just for this \
         operation, or you can use the 'warn_only=True' option, if that's acceptable for your \
         application. Of several values for one place the last stays here; PyTorch leaves open \
         which."
    );
    crate::ensure!(asked != "True", Runtime, "{text}");
    warn(&text);
    Ok(())
}
