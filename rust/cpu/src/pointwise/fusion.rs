//! Prologues and epilogues: chains that a kernel runs on parts of its operand or its result while they lie in a
//! cache.
//!
//! Whoever has a kernel run offers the chains here ([`Candidates::run`]). A kernel that can takes them when it begins
//! ([`Fused::new`]), by the memory of its operand and its result. A chain that was not taken runs as a whole, before
//! or after; so it is the kernel alone that knows.

use super::chain::{Parts, Worker};
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
pub struct Candidates<'a> {
    prologue: Option<Side<'a>>,
    epilogue: Option<Side<'a>>,
}

thread_local! {
    /// What is offered to the kernel that this thread calls.
    static OFFERED: Cell<*const Candidates<'static>> = const { Cell::new(ptr::null()) };
}

/// Puts back what was offered before.
struct Restore(*const Candidates<'static>);

impl Drop for Restore {
    fn drop(&mut self) {
        OFFERED.set(self.0);
    }
}

impl<'a> Candidates<'a> {
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
        let prologue = Candidates::side(parts, shared, count);
        Candidates { prologue, ..self }
    }

    /// With an epilogue: a chain that reads what the kernel computes.
    pub fn with_epilogue(self, parts: &'a Parts<'a>, shared: *const u8, count: usize) -> Self {
        let epilogue = Candidates::side(parts, shared, count);
        Candidates { epilogue, ..self }
    }

    /// Calls a kernel, and tells which of the chains it took.
    pub fn run<R>(&self, kernel: impl FnOnce() -> R) -> (R, [bool; 2]) {
        let _restore = Restore(OFFERED.replace(ptr::from_ref(self).cast()));
        let result = kernel();
        let taken = |side: &Option<Side>| side.as_ref().is_some_and(|s| s.taken.get());
        (result, [taken(&self.prologue), taken(&self.epilogue)])
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
pub struct Fused<'a> {
    prologue: Option<&'a Parts<'a>>,
    epilogue: Option<&'a Parts<'a>>,
}

impl Fused<'_> {
    /// What is offered to a kernel that reads all of `x`, if it is asked for, and writes all of `y`, which have so
    /// many elements, each once. It then has [`Workers`] run each part, once. Where what makes `x` is not taken,
    /// nothing is.
    ///
    /// # Safety
    /// It is used in the kernel's call alone.
    pub unsafe fn new(x: Option<*const u8>, y: *const u8, count: usize) -> Self {
        // SAFETY: whoever offers something waits for the kernel's end.
        let Some(offered) = (unsafe { OFFERED.get().as_ref() }) else {
            return Fused::default();
        };
        let mut taken = Fused::default();
        if let Some(side) = &offered.prologue {
            if !x.is_some_and(|x| side.take(x, count)) {
                return taken;
            }
            taken.prologue = Some(side.parts);
        }
        let epilogue = offered.epilogue.as_ref().filter(|side| side.take(y, count));
        taken.epilogue = epilogue.map(|side| side.parts);
        taken
    }

    pub fn is_none(&self) -> bool {
        self.prologue.is_none() && self.epilogue.is_none()
    }

    /// The buffers of a thread.
    pub fn begin(&self) -> Workers<'_> {
        Workers {
            prologue: self.prologue.map(Parts::begin),
            epilogue: self.epilogue.map(Parts::begin),
        }
    }
}

/// What a thread runs beside the kernel's work.
pub struct Workers<'a> {
    prologue: Option<Worker<'a>>,
    epilogue: Option<Worker<'a>>,
}

impl Workers<'_> {
    /// Makes elements `start..start + n` of the operand, before they are read.
    ///
    /// # Safety
    /// They lie in the tensor, and nobody else makes them.
    #[inline]
    pub unsafe fn prologue(&mut self, start: usize, n: usize) {
        if let Some(worker) = &mut self.prologue {
            // SAFETY: the elements lie in the tensor, and nobody else makes them.
            unsafe { worker.run(start, n) };
        }
    }

    /// Goes on from elements `start..start + n` of the result, which are written.
    ///
    /// # Safety
    /// They lie in the tensor, and nobody else goes on from them or reads them.
    #[inline]
    pub unsafe fn epilogue(&mut self, start: usize, n: usize) {
        if let Some(worker) = &mut self.epilogue {
            // SAFETY: the elements lie in the tensor, and nobody else reads them or goes on from them.
            unsafe { worker.run(start, n) };
        }
    }

    /// [`Workers::epilogue`] of `rows` rows of `n` elements, `step` apart.
    ///
    /// # Safety
    /// As for that.
    pub unsafe fn epilogue_rows(&mut self, start: usize, rows: usize, n: usize, step: usize) {
        if self.epilogue.is_none() {
            return;
        }
        let (rows, n) = if n == step { (1, rows * n) } else { (rows, n) };
        for r in 0..rows {
            // SAFETY: each row lies in the tensor, and nobody else goes on from it.
            unsafe { self.epilogue(start + r * step, n) };
        }
    }
}
