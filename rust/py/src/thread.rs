//! Work on a thread of its own, with a stack and a count of calls that begin anew.

use crate::error::from_py;
use crate::overrides;
use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pytensorlib_core::device;
use pytensorlib_core::error::Result;
use std::cell::RefCell;
use std::ffi::c_long;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::thread::{scope, Builder};
use std::time::Duration;

/// As much as the first thread has, usually.
const STACK: usize = 8 << 20;
/// How often the thread that waits looks for a signal.
const TICK: Duration = Duration::from_millis(50);

/// Threads of which each waits for the next: Python's number of the last, which does the work.
type Chain = Arc<AtomicU64>;
thread_local!(static CHAIN: RefCell<Option<Chain>> = const { RefCell::new(None) });

fn thread_number(py: Python<'_>) -> PyResult<u64> {
    py.import("threading")?
        .getattr("get_ident")?
        .call0()?
        .extract()
}

/// Runs `f` on a thread of its own while this one waits without the interpreter. A signal whose
/// handler raises, such as Ctrl-C, raises in the thread that does the work, and here when that
/// has ended.
pub fn elsewhere(f: &mut (dyn FnMut() + Send)) -> Result<()> {
    let outer = CHAIN.with_borrow(Clone::clone);
    let first = outer.is_none();
    let chain = outer.unwrap_or_default();
    let (rest, place) = (overrides::rest(), device::default_device());
    let current = device::current_gpu();
    let work = Mutex::new(f);
    let inside = |py: Python<'_>| {
        overrides::set_rest(rest);
        device::set_default_device(place);
        device::set_current_gpu(current);
        CHAIN.set(Some(chain.clone()));
        let number = thread_number(py).unwrap_or(0);
        let before = chain.swap(number, Ordering::Relaxed);
        work.lock()();
        chain.store(before, Ordering::Relaxed);
    };
    let mut interruption = None;
    Python::attach(|py| {
        py.detach(|| {
            scope(|s| {
                let (tell, told) = channel::<()>();
                let thread = Builder::new().name("backward".into()).stack_size(STACK);
                let started = thread.spawn_scoped(s, || {
                    Python::attach(inside);
                    drop(tell);
                });
                if started.is_err() {
                    // No more threads: this one goes as deep as it can.
                    return Python::attach(|_| work.lock()());
                }
                while let Err(RecvTimeoutError::Timeout) = told.recv_timeout(TICK) {
                    if first && interruption.is_none() {
                        interruption = Python::attach(|py| signalled(py, &chain));
                    }
                }
            });
        });
    });
    match interruption {
        Some(e) => Err(from_py(e)),
        None => Ok(()),
    }
}

/// What the handler of a signal raises, which the thread that works gets to see too.
fn signalled(py: Python<'_>, chain: &Chain) -> Option<PyErr> {
    let e = py.check_signals().err()?;
    let number = chain.load(Ordering::Relaxed) as c_long;
    // SAFETY: attached; the class is a live object. A number that no thread has is ignored.
    unsafe { ffi::PyThreadState_SetAsyncExc(number, e.get_type(py).as_ptr()) };
    Some(e)
}
