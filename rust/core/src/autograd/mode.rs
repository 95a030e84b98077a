//! The thread's switches: grad mode, inference mode, anomaly mode, whether calls are interpreted.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

/// Side by side, so that a call that asks for several looks the thread's memory up once.
struct Switches {
    grad: Cell<bool>,
    inference: Cell<bool>,
    interpreted: Cell<bool>,
    followed: Cell<bool>,
    forward: Cell<bool>,
    looked: Cell<bool>,
    read: Cell<bool>,
}
thread_local!(static HERE: Switches = const {
    Switches {
        grad: Cell::new(true),
        inference: Cell::new(false),
        interpreted: Cell::new(false),
        followed: Cell::new(false),
        forward: Cell::new(true),
        looked: Cell::new(false),
        read: Cell::new(false),
    }
});
static ANOMALY: AtomicU8 = AtomicU8::new(0);
/// Bits of it.
const ON: u8 = 1;
const UNCHECKED: u8 = 2;

/// Whether ops record a graph on this thread.
#[inline]
pub fn grad() -> bool {
    HERE.with(|s| s.grad.get())
}
/// Sets grad mode and gives the earlier one.
#[inline]
pub fn set_grad(on: bool) -> bool {
    HERE.with(|s| s.grad.replace(on))
}
/// Whether new tensors are inference tensors.
#[inline]
pub fn inference() -> bool {
    HERE.with(|s| s.inference.get())
}
#[inline]
pub fn set_inference(on: bool) -> bool {
    HERE.with(|s| s.inference.replace(on))
}
/// Grad mode, and whether calls are interpreted, by one look.
#[inline]
pub fn grad_and_interpreted() -> (bool, bool) {
    HERE.with(|s| (s.grad.get(), s.interpreted.get()))
}
/// Whether interpreters are in force on this thread (`dispatch::apply`): no short way may be taken.
#[inline]
pub fn interpreted() -> bool {
    HERE.with(|s| s.interpreted.get())
}
#[inline]
pub fn set_interpreted(on: bool) {
    HERE.with(|s| s.interpreted.set(on))
}
/// Whether an interpreter in force follows tangents: what is computed may be differentiated.
#[inline]
pub fn followed() -> bool {
    HERE.with(|s| s.followed.get())
}
#[inline]
pub fn set_followed(on: bool) {
    HERE.with(|s| s.followed.set(on))
}
/// Whether a derivative is to be written with ops that have one: it is recorded, or tangents are followed.
#[inline]
pub fn traced() -> bool {
    HERE.with(|s| s.grad.get() || s.followed.get())
}
/// Whether tangents are computed on this thread, where there are any.
pub fn forward() -> bool {
    HERE.with(|s| s.forward.get())
}
/// Sets that and gives the earlier one.
pub fn set_forward(on: bool) -> bool {
    HERE.with(|s| s.forward.replace(on))
}
/// Notes that elements are read past the interpreters in force, as by `item()`: what comes may depend
/// on them.
#[inline]
pub fn look() {
    HERE.with(|s| {
        if s.interpreted.get() {
            s.looked.set(true);
            s.read.set(true);
        }
    })
}
/// Whether that happened since this was last asked.
pub fn has_looked() -> bool {
    HERE.with(|s| s.looked.replace(false))
}
/// The same for calls that are matched, which may be recorded, too.
pub fn has_been_read() -> bool {
    HERE.with(|s| s.read.replace(false))
}
/// Anomaly mode: whether nodes keep the call stack, and whether gradients are checked for NaN.
#[inline]
pub fn anomaly() -> Option<bool> {
    let mode = ANOMALY.load(Ordering::Relaxed);
    (mode & ON != 0).then_some(mode & UNCHECKED == 0)
}
/// Whether gradients are checked for NaN once anomaly mode is on.
pub fn checks_nan() -> bool {
    ANOMALY.load(Ordering::Relaxed) & UNCHECKED == 0
}
pub fn set_anomaly(on: bool, check_nan: bool) {
    let mode = if on { ON } else { 0 } | if check_nan { 0 } else { UNCHECKED };
    ANOMALY.store(mode, Ordering::Relaxed);
}

/// Runs `f` with grad mode set, and sets it back whatever happens.
pub fn with_grad<R>(on: bool, f: impl FnOnce() -> R) -> R {
    struct Guard(bool);
    impl Drop for Guard {
        fn drop(&mut self) {
            set_grad(self.0);
        }
    }
    let _guard = Guard(set_grad(on));
    f()
}
