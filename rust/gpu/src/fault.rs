//! An index out of range: kernels cannot raise, so they note the first one for the next read.

use super::{Buffer, Gpu};
use crate::error::{function_name, Error, Kind, Result};
use crate::host;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::OnceLock;

/// What a kernel notes: `[seen, index, size, who, dispatch]`, the index as two words, padded.
const WORDS: usize = 8;
/// What kernels leave for the host, as bytes; zeros are nothing.
pub(super) type Note = [u8; 4 * WORDS];
pub(super) const NO_NOTE: Note = [0; 4 * WORDS];

thread_local! {
    /// The node whose kernels are being recorded.
    static NAME: Cell<&'static str> = const { Cell::new("") };
}

/// Runs `f`, whose kernels work for the node of this name. A node made of others stays the one.
pub fn working_for<R>(name: &'static str, f: impl FnOnce() -> R) -> R {
    let outer = NAME.get();
    working_now_for(if outer.is_empty() { name } else { outer }, f)
}

/// Runs `f`, whose kernels work for this node, whichever is at work.
pub(super) fn working_now_for<R>(name: &'static str, f: impl FnOnce() -> R) -> R {
    struct Outer(&'static str);
    impl Drop for Outer {
        fn drop(&mut self) {
            NAME.set(self.0);
        }
    }
    let _outer = Outer(NAME.replace(name));
    f()
}

/// The node whose kernels are being recorded.
pub(super) fn name() -> &'static str {
    NAME.get()
}

#[derive(Default)]
pub(super) struct Faults {
    buffer: OnceLock<Buffer>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether a kernel that may note something was recorded since the last look.
    armed: bool,
    /// Names and kinds of error by their number in the note.
    known: Vec<(&'static str, Kind)>,
    /// Where in the host's program the latest of these dispatches were asked for.
    places: VecDeque<(u32, String)>,
}

/// So many places are remembered, where nothing is read for long.
const PLACES: usize = 1024;

/// Where a kernel notes an index out of range, and the words by which it names itself.
pub struct FaultSlot<'a> {
    pub buffer: &'a Buffer,
    pub words: [u32; 2],
}

/// An error of the node `name`, whoever comes to know of it.
fn error(name: &str, kind: Kind, what: &str, size: u32, how: &str) -> Error {
    let name = function_name(name);
    let text = format!("{name}: {what} is out of bounds for dimension with size {size}{how}");
    Error::new(kind, text).of(name)
}

/// The error for indices into a dimension without elements, which no kernel may read.
pub fn check_size(kind: Kind, size: usize) -> Result<()> {
    if size > 0 {
        return Ok(());
    }
    Err(error(NAME.get(), kind, "any index", 0, ""))
}

impl Gpu {
    /// Where kernels of the node at hand note an index out of range, which is an error of `kind`.
    /// The next read or synchronisation looks at it.
    pub fn index_fault(&self, kind: Kind) -> Result<FaultSlot<'_>> {
        let faults = &self.faults;
        if faults.buffer.get().is_none() {
            let b = self.alloc(4 * WORDS)?;
            self.write(&b, 0, &[0; 4 * WORDS])?;
            // Another thread may have been first; its buffer is as good.
            let _ = faults.buffer.set(b);
        }
        let key = (NAME.get(), kind);
        // Asked before our lock is taken, for the host has one too.
        let place = host::place();
        let mut stream = self.stream.lock();
        let dispatch = stream.stats.dispatches as u32;
        if let (Some(recording), true) = (&mut stream.recording, self.is_recording()) {
            recording.faults.push(dispatch);
        }
        drop(stream);
        let mut state = faults.state.lock();
        state.armed = true;
        let who = state.known.iter().position(|k| *k == key);
        let who = who.unwrap_or_else(|| {
            state.known.push(key);
            state.known.len() - 1
        });
        if state.places.len() >= PLACES {
            state.places.pop_front();
        }
        state.places.extend(place.map(|place| (dispatch, place)));
        Ok(FaultSlot {
            buffer: faults.buffer.get().expect("just set"),
            words: [who as u32, dispatch],
        })
    }

    /// The identity of the memory where kernels note it.
    pub(super) fn fault_memory(&self) -> Option<u64> {
        self.faults.buffer.get().map(|b| b.raw().id)
    }

    /// Says that dispatches which were asked for under these numbers are recorded again.
    pub(super) fn expect_faults(&self, dispatches: &[u32]) {
        if dispatches.is_empty() {
            return;
        }
        let place = host::place();
        let mut state = self.faults.state.lock();
        state.armed = true;
        for &dispatch in dispatches {
            if let Some(old) = state.places.iter().position(|p| p.0 == dispatch) {
                state.places.remove(old);
            }
            if state.places.len() >= PLACES {
                state.places.pop_front();
            }
            let place = place.iter().map(|place| (dispatch, place.clone()));
            state.places.extend(place);
        }
    }

    pub(super) fn check_index(&self) -> Result<()> {
        let Some(buffer) = self.noted() else {
            return Ok(());
        };
        let mut note = NO_NOTE;
        self.read_piece(buffer, 0, &mut note, None)?;
        self.judge(note)
    }

    /// Where kernels left what they found since someone last looked, if any could have.
    pub(super) fn noted(&self) -> Option<&Buffer> {
        let armed = std::mem::take(&mut self.faults.state.lock().armed);
        self.faults.buffer.get().filter(|_| armed)
    }

    /// Raises what kernels left there.
    pub(super) fn judge(&self, note: Note) -> Result<()> {
        let Some(buffer) = self.faults.buffer.get() else {
            return Ok(());
        };
        let note: [u32; WORDS] = bytemuck::cast(note);
        let [seen, low, high, size, who, dispatch, ..] = note;
        let index = (low as u64 | (high as u64) << 32) as i64;
        let places = std::mem::take(&mut self.faults.state.lock().places);
        if seen == 0 {
            return Ok(());
        }
        self.write(buffer, 0, &[0; 4 * WORDS])?;
        let known = self.faults.state.lock().known.get(who as usize).copied();
        let (name, kind) = known.unwrap_or(("index", Kind::Index));
        let what = format!("index {index}");
        let place = places.iter().find(|p| p.0 == dispatch);
        let place = place.map_or(String::new(), |p| format!(", asked for at {},", p.1));
        let how = format!(
            " (found by the GPU in dispatch {dispatch} of this process{place} and raised at the \
             first read after it)"
        );
        Err(error(name, kind, &what, size, &how))
    }
}
