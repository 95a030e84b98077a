//! Prologues and epilogues: chains that a kernel runs on parts of its operand or its result while they lie in a
//! cache.
//!
//! Whoever has a kernel run offers the chains here ([`Beside::run`]). A kernel that can takes them when it begins
//! ([`Taken::new`]), by the memory of its operand and its result. A chain that was not taken runs as a whole, before
//! or after; so it is the kernel alone that knows.

use super::chain::{Hand, Parts};
use std::cell::Cell;
use std::ptr;

/// A chain, and the tensor of so many elements that it shares with a kernel.
struct Side<'a> {
    parts: &'a Parts<'a>,
    shared: *const u8,
    count: usize,
    taken: Cell<bool>,
}

/// What a kernel may run beside its own work.
#[derive(Default)]
pub struct Beside<'a> {
    before: Option<Side<'a>>,
    after: Option<Side<'a>>,
}

thread_local! {
    /// What is offered to the kernel that this thread calls.
    static OFFERED: Cell<*const Beside<'static>> = const { Cell::new(ptr::null()) };
}

/// Puts back what was offered before.
struct Restore(*const Beside<'static>);

impl Drop for Restore {
    fn drop(&mut self) {
        OFFERED.set(self.0);
    }
}

impl<'a> Beside<'a> {
    fn side(parts: &'a Parts<'a>, shared: *const u8, count: usize) -> Option<Side<'a>> {
        Some(Side {
            parts,
            shared,
            count,
            taken: Cell::new(false),
        })
    }

    /// With a prologue: a chain that computes what the kernel reads.
    pub fn with_prologue(self, parts: &'a Parts<'a>, shared: *const u8, count: usize) -> Self {
        let before = Beside::side(parts, shared, count);
        Beside { before, ..self }
    }

    /// With an epilogue: a chain that reads what the kernel computes.
    pub fn with_epilogue(self, parts: &'a Parts<'a>, shared: *const u8, count: usize) -> Self {
        let after = Beside::side(parts, shared, count);
        Beside { after, ..self }
    }

    /// Calls a kernel, and tells which of the chains it took.
    pub fn run<R>(&self, kernel: impl FnOnce() -> R) -> (R, [bool; 2]) {
        let _restore = Restore(OFFERED.replace(ptr::from_ref(self).cast()));
        let result = kernel();
        let taken = |side: &Option<Side>| side.as_ref().is_some_and(|s| s.taken.get());
        (result, [taken(&self.before), taken(&self.after)])
    }
}

impl Side<'_> {
    fn take(&self, shared: *const u8, count: usize) -> bool {
        let fits = self.shared == shared && self.count == count && !self.taken.get();
        if fits {
            self.taken.set(true);
        }
        fits
    }
}

/// What a kernel took.
#[derive(Clone, Copy, Default)]
pub struct Taken<'a> {
    before: Option<&'a Parts<'a>>,
    after: Option<&'a Parts<'a>>,
}

impl Taken<'_> {
    /// What is offered to a kernel that reads all of `x`, if it is asked for, and writes all of `y`, which have so
    /// many elements, each once. It then has [`Hands`] run each part, once. Where what makes `x` is not taken,
    /// nothing is.
    ///
    /// # Safety
    /// It is used in the kernel's call alone.
    pub unsafe fn new(x: Option<*const u8>, y: *const u8, count: usize) -> Self {
        // SAFETY: whoever offers something waits for the kernel's end.
        let Some(offered) = (unsafe { OFFERED.get().as_ref() }) else {
            return Taken::default();
        };
        let mut taken = Taken::default();
        if let Some(side) = &offered.before {
            if !x.is_some_and(|x| side.take(x, count)) {
                return taken;
            }
            taken.before = Some(side.parts);
        }
        let after = offered.after.as_ref().filter(|side| side.take(y, count));
        taken.after = after.map(|side| side.parts);
        taken
    }

    pub fn is_none(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }

    /// The buffers of a thread.
    pub fn begin(&self) -> Hands<'_> {
        Hands {
            before: self.before.map(Parts::begin),
            after: self.after.map(Parts::begin),
        }
    }
}

/// What a thread runs beside the kernel's work.
pub struct Hands<'a> {
    before: Option<Hand<'a>>,
    after: Option<Hand<'a>>,
}

impl Hands<'_> {
    /// Makes elements `start..start + n` of the operand, before they are read.
    ///
    /// # Safety
    /// They lie in the tensor, and nobody else makes them.
    #[inline]
    pub unsafe fn before(&mut self, start: usize, n: usize) {
        if let Some(hand) = &mut self.before {
            // SAFETY: the elements lie in the tensor, and nobody else makes them.
            unsafe { hand.run(start, n) };
        }
    }

    /// Goes on from elements `start..start + n` of the result, which are written.
    ///
    /// # Safety
    /// They lie in the tensor, and nobody else goes on from them or reads them.
    #[inline]
    pub unsafe fn after(&mut self, start: usize, n: usize) {
        if let Some(hand) = &mut self.after {
            // SAFETY: the elements lie in the tensor, and nobody else reads them or goes on from them.
            unsafe { hand.run(start, n) };
        }
    }

    /// [`Hands::after`] of `rows` rows of `n` elements, `step` apart.
    ///
    /// # Safety
    /// As for that.
    pub unsafe fn after_rows(&mut self, start: usize, rows: usize, n: usize, step: usize) {
        if self.after.is_none() {
            return;
        }
        let (rows, n) = if n == step { (1, rows * n) } else { (rows, n) };
        for r in 0..rows {
            // SAFETY: each row lies in the tensor, and nobody else goes on from it.
            unsafe { self.after(start + r * step, n) };
        }
    }
}
