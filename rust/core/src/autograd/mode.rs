//! The thread's switches: grad mode, inference mode, anomaly mode.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

thread_local! {
    static GRAD: Cell<bool> = const { Cell::new(true) };
    static INFERENCE: Cell<bool> = const { Cell::new(false) };
}
static ANOMALY: AtomicU8 = AtomicU8::new(0);

/// Whether ops record a graph on this thread.
pub fn grad() -> bool {
    GRAD.get()
}
/// Sets grad mode and gives the earlier one.
pub fn set_grad(on: bool) -> bool {
    GRAD.replace(on)
}
/// Whether new tensors are inference tensors.
pub fn inference() -> bool {
    INFERENCE.get()
}
pub fn set_inference(on: bool) -> bool {
    INFERENCE.replace(on)
}
/// Anomaly mode: whether nodes keep the call stack, and whether gradients are checked for NaN.
pub fn anomaly() -> Option<bool> {
    match ANOMALY.load(Ordering::Relaxed) {
        0 => None,
        mode => Some(mode == 2),
    }
}
pub fn set_anomaly(on: bool, check_nan: bool) {
    ANOMALY.store(on as u8 + (on && check_nan) as u8, Ordering::Relaxed);
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
